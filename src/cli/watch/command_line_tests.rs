//! Command lines of the dashboard, parsed with the definition of the verbs.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use serde_json::{Map, json};

use crate::board::task::{TaskActionVerb, TaskVerb};
use crate::board::worktree::WorktreeVerb;
use crate::verbs::{Verb, parse};
use model::board::task_ref::TaskRef;
use model::id::{MemberName, RequestId, TaskId};
use ui::dashboard::{RequestAnswer, TeamAction, command_line};

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

/// Key, highlighted member, task and request, and the words of the command line.
type WalkedLine = (String, Option<String>, Option<TaskId>, Option<String>, Vec<String>);

/// The walk of `ui` records all keys with what its frames show as highlighted.
#[test]
fn pm_09_key_acts_on_what_the_frame_shows_as_highlighted() {
    const WALK: &str = include_str!(
        "../../ui/dashboard/tests/snapshots/ui__dashboard__tests__command_lines__walk.snap"
    );
    let mut acted: BTreeMap<String, BTreeSet<ParsedObject>> = BTreeMap::new();
    for line in WALK.lines().filter(|line| line.starts_with('[')) {
        let (key, member, task, request, words): WalkedLine =
            serde_json::from_str(line).expect("a line of the walk");
        let object = object(&parsed(&words));
        let expected = match &object {
            ParsedObject::Member(_) => member.map(ParsedObject::Member),
            ParsedObject::Task(_) => task.map(ParsedObject::Task),
            ParsedObject::Request(_) => request.map(ParsedObject::Request),
            ParsedObject::None => Some(ParsedObject::None),
        };
        assert_eq!(Some(&object), expected.as_ref(), "{line}");
        acted.entry(key).or_default().insert(object);
    }
    // Each key with an action has acted, on as many objects as allow it.
    let counts: Vec<String> =
        acted.iter().map(|(key, objects)| format!("{key} {}", objects.len())).collect();
    let expected = "+ 1, A 8, B 5, C 8, D 1, E 11, Enter 11, K 8, M 1, N 1, Q 1, R 8, T 1, U 2, V 1, Y 2, \
        a 6, b 1, d 1, e 8, f 6, h 6, l 8, m 6, p 8, r 5, u 3, x 6, y 5";
    assert_eq!(counts.join(", "), expected);
}

#[test]
fn lines_of_the_keys_are_command_lines() {
    let table = include_str!("../../ui/dashboard/tests/command_lines.txt").lines();
    for row in table.filter(|row| !row.starts_with('#')) {
        let (_, line) = row.split_once('|').expect("keys and a line");
        let words = shlex::split(line).expect("quotes");
        if !words.is_empty() {
            parsed(&words);
        }
    }
}

/// Texts that a parser may take for something else.
const ODD: [&str; 6] = ["plain", "--", "--help", "-x", "a=b --team=x", "two\nlines ' \" \\ $(x)"];

#[test]
fn every_text_reaches_its_argument_unchanged() {
    let request = RequestId::parse("perm@x").expect("an id");
    for text in ODD {
        let text = text.to_owned();
        let line = |action: TeamAction| parsed(&command_line(&action));
        let send =
            TeamAction::Send { to: MemberName::new("ada").expect("a name"), text: text.clone() };
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
