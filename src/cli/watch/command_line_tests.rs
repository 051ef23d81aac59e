//! Keys of the dashboard, parsed with the definition of the command line.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use serde_json::{Map, json};

use super::command_line::command_line;
use crate::board::task::{TaskActionVerb, TaskVerb};
use crate::board::worktree::WorktreeVerb;
use crate::verbs::{Verb, parse};
use model::board::task_ref::TaskRef;
use model::id::TaskId;
use ui::dashboard::tests::walk::{Step, walk};
use ui::dashboard::tests::{THEME, dashboard, name, picture, press};
use ui::dashboard::{ChosenCommand, Effect, RequestAnswer, TeamAction};

/// The object of a parsed command line.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum ParsedObject {
    Member(String),
    Task(TaskId),
    Request(String),
    /// The team, or something new.
    None,
}

/// Parses the words of a verb as the program does.
fn parsed(words: &[String]) -> Verb {
    let line = ["phalanx", "--config-dir", "/r", "--team", "site", "--as", "team-lead"];
    let line = line.into_iter().chain(words.iter().map(String::as_str)).map(OsString::from);
    let parsed = parse(&line.collect::<Vec<_>>());
    parsed.unwrap_or_else(|e| panic!("{words:?}: {e}")).verb.expect("a verb")
}

fn object(verb: &Verb) -> ParsedObject {
    use ParsedObject::{Member, None, Request, Task};
    let only = |names: &[String]| match names {
        [name] => Member(name.clone()),
        names => panic!("{names:?}"),
    };
    let task = |named: &TaskRef| match named {
        TaskRef::Id(id) => Task(*id),
        TaskRef::Key(key) => panic!("{key:?}"),
    };
    match verb {
        Verb::Send(args) => Member(args.to.clone()),
        Verb::Shutdown(args) => only(&args.names),
        Verb::Restart(args) => only(&args.names),
        Verb::Resume(args) => only(&args.names),
        Verb::Focus(args) | Verb::Hide(args) | Verb::Show(args) | Verb::Explain(args) => {
            Member(args.name.clone())
        }
        Verb::Attach(args) => Member(args.name.clone().expect("a name")),
        Verb::Logs(args) => only(&args.names),
        Verb::Worktree(WorktreeVerb::Diff(args)) => Member(args.name.clone()),
        Verb::Worktree(WorktreeVerb::Merge(args)) => Member(args.name.clone()),
        Verb::Review(args) => args.name.clone().map_or(None, Member),
        Verb::Answer(args) => Request(args.id.clone()),
        Verb::Task(TaskVerb::Get { id, .. }) => task(id),
        Verb::Task(TaskVerb::Update(args)) => task(&args.id),
        Verb::Task(TaskVerb::Action(action)) => match action {
            TaskActionVerb::Approve { id }
            | TaskActionVerb::Reject { id, .. }
            | TaskActionVerb::Cancel { id, .. }
            | TaskActionVerb::Retry { id }
            | TaskActionVerb::Assign { id, .. }
            | TaskActionVerb::Block { id, .. }
            | TaskActionVerb::Unblock { id, .. }
            | TaskActionVerb::Comment { id, .. } => task(id),
            other => panic!("no key does this: {other:?}"),
        },
        Verb::Task(TaskVerb::Create(_))
        | Verb::Broadcast(_)
        | Verb::Spawn(_)
        | Verb::Up(_)
        | Verb::Down(_) => None,
        other => panic!("no key does this: {other:?}"),
    }
}

fn actions(effects: &[Effect]) -> impl Iterator<Item = &TeamAction> {
    effects.iter().filter_map(|effect| match effect {
        Effect::Run { command: ChosenCommand::Action(action), .. }
        | Effect::RunHere(ChosenCommand::Action(action))
        | Effect::Page(ChosenCommand::Action(action)) => Some(action),
        _ => None,
    })
}

#[test]
fn pm_09_key_acts_on_what_the_frame_shows_as_highlighted() {
    let mut parsed_lines: BTreeMap<Vec<String>, ParsedObject> = BTreeMap::new();
    let mut acted: BTreeMap<String, BTreeSet<ParsedObject>> = BTreeMap::new();
    walk(|step: &Step| {
        let Step { case, key, object: shown, effects, is_refused } = step;
        let actions: Vec<&TeamAction> = actions(effects).collect();
        assert!(actions.len() <= 1, "{case}: {actions:?}");
        let Some(action) = actions.first() else { return };
        assert!(!is_refused, "{case}: {action:?}");
        let words = command_line(action);
        let object =
            parsed_lines.entry(words.clone()).or_insert_with(|| object(&parsed(&words))).clone();
        let expected = match &object {
            ParsedObject::Member(_) => {
                shown.member.clone().or(shown.owner.clone()).map(ParsedObject::Member)
            }
            ParsedObject::Task(_) => shown.task.map(ParsedObject::Task),
            ParsedObject::Request(_) => shown.request.clone().map(ParsedObject::Request),
            ParsedObject::None => Some(ParsedObject::None),
        };
        assert_eq!(Some(&object), expected.as_ref(), "{case}: {words:?} with {shown:?}");
        if key == "y" {
            let word = match &object {
                ParsedObject::Task(task) => format!("approve #{task}"),
                _ => format!("approve {}", shown.member.as_deref().unwrap_or_default()),
            };
            assert!(shown.footer.starts_with(&format!("y {word}")), "{case}: {}", shown.footer);
        }
        acted.entry(key.clone()).or_default().insert(object);
    });
    // Each key with an action has acted, on as many objects as allow it.
    let counts: Vec<String> =
        acted.iter().map(|(key, objects)| format!("{key} {}", objects.len())).collect();
    let expected = "+ 1, A 8, B 5, C 8, D 1, E 11, Enter 11, K 8, M 1, N 1, Q 1, R 8, T 1, U 2, V 1, Y 2, \
        a 6, b 1, d 1, e 8, f 6, h 6, l 8, m 6, p 8, r 5, u 3, x 6, y 5";
    assert_eq!(counts.join(", "), expected);
}

#[test]
fn keys_become_command_lines() {
    let table: &[(&str, &[&str])] = &[
        // ben is first, because he has waited longest.
        ("m 'hi there' Enter", &["send -- ben 'hi there'"]),
        ("m --x Enter", &["send -- ben --x"]),
        ("m Enter", &[]),
        ("m hi Escape", &[]),
        ("b 'all stop' Enter", &["broadcast -- 'all stop'"]),
        ("K y", &["shutdown -- ben"]),
        ("K n", &[]),
        ("R y", &["restart -- ben"]),
        ("f", &["focus -- ben"]),
        ("h", &["hide -- ben"]),
        ("a", &["attach -- ben"]),
        ("e", &["explain -- ben"]),
        ("l", &["logs -- ben"]),
        // ben has no worktree; ada does.
        ("d", &[]),
        ("D", &[]),
        ("c", &[]),
        ("/ ada Enter d", &["review -- ada"]),
        ("/ ada Enter D", &["worktree diff -- ada"]),
        ("V", &["review"]),
        ("/ ada Enter M", &["worktree merge --dry-run -- ada"]),
        // An edit is shown first.
        ("y", &[]),
        ("y y", &["answer --via=y --approve -- perm-1795-ben"]),
        ("Down y", &[]),
        ("r 'not now' Enter", &["answer --via=r --reject '--reason=not now' -- perm-1795-ben"]),
        ("n Enter y", &["answer --via=y --approve -- perm-1795-ben"]),
        ("n Enter r no Enter", &["answer --via=r --reject --reason=no -- perm-1795-ben"]),
        ("3 Right Right y", &["task approve 2"]),
        ("3 Right Right r no Enter", &["task reject 2 --reason=no"]),
        ("3 y", &[]),
        ("N 'Name it' Enter", &["task create '--subject=Name it'"]),
        ("N --x Enter", &["task create --subject=--x"]),
        ("3 p", &["task get 6"]),
        ("p", &[]),
        ("3 A C-u ada Enter", &["task assign 6 -- ada"]),
        ("3 u", &[]),
        ("3 Down u", &["task retry 7"]),
        ("3 x Enter", &["task cancel 6"]),
        ("3 x 'no time' Enter", &["task cancel 6 '--reason=no time'"]),
        ("3 B '#3, 4' Enter", &["task block 6 --by=3,4"]),
        ("3 B '#3, 01-01/T2' Enter", &["task block 6 --by=3,01-01/T2"]),
        ("3 U", &[]),
        ("3 Down Down U Enter", &["task unblock 4 --by=3"]),
        ("3 C -done Enter", &["task comment 6 -- -done"]),
        ("Q y", &["down"]),
        ("Q n", &[]),
        ("T review Tab 'Read it' Enter", &["up --detach '--task=Read it' -- review"]),
        ("+ eva Enter", &["spawn eva"]),
        ("+ eva Tab -x Enter", &["spawn eva --profile=-x"]),
    ];
    for (keys, expected) in table {
        let mut dashboard = dashboard(THEME);
        picture(&mut dashboard, 120, 40);
        let effects = press(&mut dashboard, keys);
        let lines: Vec<Vec<String>> = actions(&effects).map(command_line).collect();
        lines.iter().for_each(|words| drop(parsed(words)));
        let expected = expected.iter().map(|line| shlex::split(line).expect("quotes"));
        assert_eq!(lines, expected.collect::<Vec<_>>(), "{keys}");
    }
}

/// Texts that a parser may take for something else.
const ODD: [&str; 6] = ["plain", "--", "--help", "-x", "a=b --team=x", "two\nlines ' \" \\ $(x)"];

#[test]
fn every_text_reaches_its_argument_unchanged() {
    let request = model::id::RequestId::parse("perm@x").expect("an id");
    for text in ODD {
        let text = text.to_owned();
        let line = |action: TeamAction| parsed(&command_line(&action));
        let send = TeamAction::Send { to: name("ada"), text: text.clone() };
        let Verb::Send(args) = line(send) else { panic!("send") };
        assert_eq!((args.to.as_str(), args.text), ("ada", Some(text.clone())));
        let Verb::Broadcast(args) = line(TeamAction::Broadcast { text: text.clone() }) else {
            panic!("broadcast")
        };
        assert_eq!(args.text, Some(text.clone()));
        let create = TeamAction::CreateTask { subject: text.clone() };
        let Verb::Task(TaskVerb::Create(args)) = line(create) else { panic!("create") };
        assert_eq!(args.subject_option.as_ref(), Some(&text));
        assert!(args.fields.command.is_empty(), "{:?}", args.fields.command);
        let edit = TeamAction::EditTask {
            task: TaskId(3),
            subject: Some(text.clone()),
            description: Some(text.clone()),
        };
        let Verb::Task(TaskVerb::Update(args)) = line(edit) else { panic!("update") };
        assert_eq!((args.subject, args.description), (Some(text.clone()), Some(text.clone())));
        let comment = TeamAction::CommentTask { task: TaskId(3), text: text.clone() };
        let Verb::Task(TaskVerb::Action(TaskActionVerb::Comment { id, text: found })) =
            line(comment)
        else {
            panic!("comment")
        };
        assert_eq!((id, found), (TaskRef::Id(TaskId(3)), text.clone()));
        let answers = RequestAnswer::Answers(vec![format!("1={text}"), format!("2={text}")]);
        let answers =
            TeamAction::Answer { request: request.clone(), answer: answers, key: text.clone() };
        let Verb::Answer(args) = line(answers) else { panic!("answer") };
        assert_eq!(args.answer, [format!("1={text}"), format!("2={text}")]);
        assert!(!args.approve && args.input.is_none());
        let reject = RequestAnswer::Reject { reason: text.clone() };
        let input = Map::from_iter([("command".to_owned(), json!(text))]);
        for (answer, expected) in [
            (reject, (Some(text.clone()), None)),
            (RequestAnswer::ApproveWith(input.clone()), (None, Some(input))),
        ] {
            let answer = TeamAction::Answer { request: request.clone(), answer, key: text.clone() };
            let Verb::Answer(args) = line(answer) else { panic!("answer") };
            assert!(args.answer.is_empty());
            assert_eq!((args.id.as_str(), args.via), ("perm@x", Some(text.clone())));
            assert_eq!((args.reason, args.input), expected);
        }
    }
}
