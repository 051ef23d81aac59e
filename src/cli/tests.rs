//! Parsing of the command line: each verb, and invalid input.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::time::Duration;

use clap::error::ErrorKind;
use clap::{Command, CommandFactory};

use crate::board::task::{TaskActionVerb, TaskVerb};
use crate::mail::inbox::MessageFormat;
use crate::out::Color;
use crate::team::TeamVerb;
use crate::team::lead_session::OnExit;
use crate::verbs::{Cli, InternalVerb, Verb, definition, parse};
use crate::views::status::StatusOutput;
use crate::wants_json;
use model::board::task_ref::TaskRef;
use model::id::TaskId;
use model::members::mode::Mode;
use model::members::placement::Layout;
use model::team::settings::BackendChoice;
use model::team::worktree::WorktreeRequest;
use ops::starting::spawn::StartedWhen;
use ops::views::wait::Until;

fn parsed(line: &str) -> Result<Cli, clap::Error> {
    let words = shlex::split(line).expect("a line for a shell");
    let words = std::iter::once("phalanx".to_owned()).chain(words);
    parse(&words.map(OsString::from).collect::<Vec<_>>())
}

fn cli(line: &str) -> Cli {
    parsed(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

fn verb(line: &str) -> Verb {
    cli(line).verb.expect("a verb")
}

fn refused(line: &str) -> bool {
    parsed(line).is_err()
}

#[test]
fn definition_passes_the_checks_of_clap() {
    Cli::command().debug_assert();
}

#[test]
fn internal_verbs_have_names_of_their_own() {
    let parsed = |words: &[&str]| {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        InternalVerb::parse(&words).map(|parsed| parsed.map_err(|error| error.kind()))
    };
    let exec = InternalVerb::Exec { spec: "/x".into() };
    assert_eq!(parsed(&["phalanx", "exec", "/x"]), Some(Ok(exec)));
    assert_eq!(parsed(&["phalanx", "worker"]), Some(Ok(InternalVerb::Worker)));
    assert_eq!(parsed(&["phalanx", "exec"]), Some(Err(ErrorKind::MissingRequiredArgument)));
    for words in [&["phalanx"][..], &["phalanx", "status"], &["phalanx", "-v", "exec", "/x"]] {
        assert_eq!(parsed(words), None);
    }
    let internal = InternalVerb::command();
    let both = internal.get_subcommands().filter(|verb| {
        let verbs = Cli::command();
        verbs.get_subcommands().any(|other| other.get_name() == verb.get_name())
    });
    assert_eq!(both.count(), 0);
}

/// Adds each verb that runs by itself, with the words of its group.
fn add_verbs(command: &Command, words: &[&str], found: &mut BTreeSet<String>) {
    if !words.is_empty() && !command.is_subcommand_required_set() {
        found.insert(words.join(" "));
    }
    for verb in command.get_subcommands() {
        add_verbs(verb, &[words, &[verb.get_name()]].concat(), found);
    }
}

/// SEC-04: the tables of docs/security.md name every verb, hidden and internal ones too, and
/// nothing else.
#[test]
fn sec_04_permission_tables_name_every_verb() {
    let mut verbs = BTreeSet::new();
    add_verbs(&definition(), &[], &mut verbs);
    add_verbs(&InternalVerb::command(), &[], &mut verbs);
    for hidden in
        ["host serve", "store serve", "exec", "highlight", "self-test-helper", "worker", "wrap"]
    {
        assert!(verbs.contains(hidden), "{hidden}");
    }
    let page = include_str!("../../docs/security.md");
    let (_, section) = page.split_once("## Permissions of a teammate").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("the next section");
    let columns = section.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let named = columns.flat_map(|column| column.split('`').skip(1).step_by(2));
    let named: BTreeSet<String> = named
        .map(|line| line.split(' ').take_while(|word| !word.starts_with('-')).collect::<Vec<_>>())
        .map(|words| words.join(" "))
        .collect();
    assert_eq!(named, verbs);
}

/// A page of help is read by its headings: at most eight options are under one.
#[test]
fn options_of_verbs_with_many_are_under_headings() {
    const HEADINGS: [&str; 8] = [
        "Program",
        "Work",
        "Place",
        "Limits",
        "Assignment",
        "Filter",
        "Shutdown",
        "Global options",
    ];
    fn visit(command: &Command, path: &str) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let shown = command.get_opts().filter(|arg| !arg.is_hide_set());
        let flags = shown.filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()));
        for arg in flags {
            assert_eq!(
                arg.is_global_set(),
                arg.get_help_heading() == Some("Global options"),
                "{path} {arg}"
            );
            *counts.entry(arg.get_help_heading().unwrap_or("Options")).or_default() += 1;
        }
        for (heading, count) in counts {
            assert!(heading == "Options" || HEADINGS.contains(&heading), "{path}: {heading}");
            assert!(count <= 8, "{path}: {count} options under {heading}");
        }
        for inner in command.get_subcommands() {
            visit(inner, &format!("{path} {}", inner.get_name()));
        }
    }
    visit(&definition(), "phalanx");
}

/// Each `derive(Subcommand)` needs `defer = true`.
#[test]
fn arguments_of_verbs_are_defined_when_the_verb_is_given() {
    fn defined_at_once(command: &Command) -> Vec<String> {
        let inner = command.get_subcommands().flat_map(defined_at_once);
        let own = command.get_arguments().map(|arg| format!("{} {arg}", command.get_name()));
        own.chain(inner).collect()
    }
    let root = Cli::command();
    assert!(root.get_subcommands().count() > 40);
    let found: Vec<String> = root.get_subcommands().flat_map(defined_at_once).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn global_options_are_accepted_before_and_after_the_verb() {
    for line in [
        "-t demo --as ada --json --config-dir /c status -v --color never",
        "status --team demo --as=ada --json --config-dir /c --verbose --color=never",
    ] {
        let global = cli(line).global;
        assert_eq!(
            (global.team.as_deref(), global.speaker.as_deref()),
            (Some("demo"), Some("ada"))
        );
        assert_eq!((global.json, global.quiet, global.verbose), (true, false, true));
        assert_eq!(global.color, Color::Never);
        assert_eq!(global.config_dir.as_deref(), Some("/c".as_ref()));
    }
    assert!(refused("status -q -v"));
}

#[test]
fn up_down_lead_and_adopt_are_parsed() {
    let Verb::Up(up) = verb("up m.toml --detach --keep --backend pty") else {
        panic!("another verb")
    };
    assert_eq!((up.detach, up.keep, up.backend), (true, true, Some(BackendChoice::Pty)));
    assert_eq!(up.manifest, std::path::Path::new("m.toml"));
    let Verb::Down(down) = verb("down --reason done --deadline 5 --force") else {
        panic!("another verb")
    };
    assert_eq!((down.reason.as_deref(), down.deadline, down.force), (Some("done"), 5, true));
    let Verb::Lead(lead) = verb("lead --detach") else { panic!("another verb") };
    assert_eq!((lead.how.detach, lead.how.on_exit), (true, OnExit::Stop));
    let Verb::Lead(lead) = verb("lead --profile x -- claude -r") else { panic!("another verb") };
    assert_eq!(
        (lead.profile.as_deref(), lead.command),
        (Some("x"), vec!["claude".to_owned(), "-r".to_owned()])
    );
    let Verb::Adopt(adopt) = verb("adopt --on-exit refuse") else { panic!("another verb") };
    assert_eq!((adopt.how.detach, adopt.how.on_exit, adopt.force), (false, OnExit::Refuse, false));
    for line in [
        "up --dry-run --yes",
        "up a b",
        "up m --backend screen",
        "lead claude",
        "lead --detach -- claude",
        "down x",
    ] {
        assert!(refused(line), "{line}");
    }
}

#[test]
fn team_verbs_are_parsed() {
    let line = "team create demo --description d --agent-type lead --unique";
    let Verb::Team(TeamVerb::Create(create)) = verb(line) else { panic!("another verb") };
    assert_eq!((create.name.as_str(), create.unique), ("demo", true));
    assert_eq!(
        (create.description.as_deref(), create.agent_type.as_deref()),
        (Some("d"), Some("lead"))
    );
    assert_eq!((create.tmux_socket, create.settings), (None, None));
    assert!(matches!(verb("team list"), Verb::Team(TeamVerb::List)));
    assert!(matches!(verb("team show -t x"), Verb::Team(TeamVerb::Show)));
    assert!(matches!(verb("team delete --force"), Verb::Team(TeamVerb::Delete { force: true })));
    assert!(refused("team") && refused("team create") && refused("team delete demo"));
}

#[test]
fn spawn_takes_a_command_line_only_after_two_dashes() {
    let line = "spawn ada --profile shell --role r --model m --mode acceptEdits --plan --prompt p --cwd d \
                --backend tmux --layout windows --env A=1 --env B=x=y --until running --deadline 2.5 --unique \
                -- ls -t --json";
    let Verb::Spawn(spawn) = verb(line) else { panic!("another verb") };
    assert_eq!(
        (spawn.names, spawn.command.join(" ")),
        (vec!["ada".to_owned()], "ls -t --json".to_owned())
    );
    assert_eq!(spawn.env, [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "x=y".to_owned())]);
    assert_eq!((spawn.mode, spawn.layout), (Some(Mode::AcceptEdits), Some(Layout::Windows)));
    assert_eq!((spawn.until, spawn.deadline), (StartedWhen::Running, Duration::from_millis(2500)));
    assert_eq!((spawn.backend, spawn.plan, spawn.unique), (Some(BackendChoice::Tmux), true, true));
    for (line, request) in [("spawn a", None), ("spawn a --worktree", Some(WorktreeRequest::Own))] {
        assert!(matches!(verb(line), Verb::Spawn(spawn) if spawn.worktree == request));
    }
    let named = Some(WorktreeRequest::Branch("feat/x".to_owned()));
    assert!(
        matches!(verb("spawn a --worktree=feat/x"), Verb::Spawn(spawn) if spawn.worktree == named)
    );
    let Verb::Spawn(plain) = verb("spawn ada --prompt-file -") else { panic!("another verb") };
    assert_eq!((plain.deadline, plain.command.len()), (Duration::from_secs(30), 0));
    assert_eq!(plain.until, StartedWhen::Ready);
    let Verb::Spawn(several) = verb("spawn ann ben --plan cleo -- ls") else {
        panic!("another verb")
    };
    assert_eq!((several.names.join(" "), several.command.len()), ("ann ben cleo".to_owned(), 1));
    for line in [
        "spawn",
        "spawn -- ls",
        "spawn a --until idle",
        "spawn a --prompt x --prompt-file y",
        "spawn a --mode loud",
        "spawn a --layout tiles",
        "spawn a --worktree=-f",
        "spawn a --env A",
        "spawn a --deadline soon",
    ] {
        assert!(refused(line), "{line}");
    }
}

#[test]
fn mail_verbs_are_parsed() {
    let Verb::Send(send) = verb("send ada 'hi there' --summary s") else { panic!("another verb") };
    assert_eq!(
        (send.to.as_str(), send.text.as_deref(), send.summary.as_deref()),
        ("ada", Some("hi there"), Some("s"))
    );
    let Verb::Send(piped) = verb("send ada -") else { panic!("another verb") };
    assert_eq!(piped.text.as_deref(), Some("-"));
    assert!(matches!(verb("broadcast"), Verb::Broadcast(b) if b.text.is_none()));
    let Verb::Inbox(inbox) = verb("inbox bob --all --peek --follow --format xml") else {
        panic!("another verb")
    };
    assert_eq!((inbox.name.as_deref(), inbox.format), (Some("bob"), Some(MessageFormat::Xml)));
    assert!(inbox.all && inbox.peek && inbox.follow && !inbox.consume && !inbox.clear);
    for line in [
        "send",
        "inbox --peek --consume",
        "inbox --consume --clear",
        "inbox --clear -f",
        "inbox --format x",
    ] {
        assert!(refused(line), "{line}");
    }
}

#[test]
fn task_verbs_are_parsed() {
    let line = "task create 'Run it' --description d --active-form a --owner ada --blocked-by 1 '#2' --blocked-by 3,4 \
                --priority -2 --file 'a/**' --file b --type bug --metadata '{\"k\": 1}' -- cargo test --all";
    let Verb::Task(TaskVerb::Create(create)) = verb(line) else { panic!("another verb") };
    assert_eq!((create.subject.as_str(), create.description.as_str()), ("Run it", "d"));
    assert_eq!(create.blocked_by, [1, 2, 3, 4].map(|id| TaskRef::Id(TaskId(id))));
    let fields = create.fields;
    assert_eq!((fields.priority, fields.kind.as_deref()), (Some(-2), Some("bug")));
    assert_eq!(
        (fields.files.unwrap_or_default().join(" "), fields.command.join(" ")),
        ("a/** b".to_owned(), "cargo test --all".to_owned())
    );
    assert_eq!(fields.metadata.and_then(|m| m.get("k").cloned()), Some(1.into()));
    assert!(matches!(verb("task list --all"), Verb::Task(TaskVerb::List(args)) if args.all));
    let get = verb("task get 3");
    assert!(matches!(get, Verb::Task(TaskVerb::Get { id: TaskRef::Id(TaskId(3)), full: false })));
    let retry = verb("task retry '#3'");
    assert!(matches!(
        retry,
        Verb::Task(TaskVerb::Action(TaskActionVerb::Retry { id: TaskRef::Id(TaskId(3)) }))
    ));
    for line in [
        "task",
        "task create",
        "task get ''",
        "task get x y",
        "task get 0",
        "task claim 1 2",
        "task create s --metadata '[]'",
        "task create s --metadata '{\"phalanx\": {}}'",
        "task create s --blocked-by",
    ] {
        assert!(refused(line), "{line}");
    }
}

#[test]
fn shutdown_requires_names_or_all() {
    let Verb::Shutdown(some) = verb("shutdown ada ben --reason r --no-wait") else {
        panic!("another verb")
    };
    assert_eq!((some.names.len(), some.deadline, some.no_wait, some.all), (2, 30, true, false));
    let Verb::Shutdown(all) = verb("shutdown --all --force --deadline 3") else {
        panic!("another verb")
    };
    assert_eq!((all.names.len(), all.deadline, all.force, all.all), (0, 3, true, true));
    assert!(refused("shutdown") && refused("shutdown ada --all"));
}

#[test]
fn read_only_and_wait_verbs_are_parsed() {
    let table = [
        ("ready", Until::Ready),
        ("idle", Until::Idle),
        ("gone", Until::Gone),
        ("done", Until::Done),
        ("unresponsive", Until::State("unresponsive".to_owned())),
        ("task=7", Until::Tasks(vec![TaskRef::Id(TaskId(7))])),
        ("task=7,8", Until::Tasks(vec![TaskRef::Id(TaskId(7)), TaskRef::Id(TaskId(8))])),
    ];
    for (word, until) in table {
        let Verb::Wait(wait) = verb(&format!("wait ada ben --any --until {word} --timeout 0.5"))
        else {
            panic!("another verb")
        };
        assert_eq!((wait.until, wait.names.len(), wait.any), (vec![until], 2, true));
        assert_eq!(wait.timeout, Some(Duration::from_millis(500)));
    }
    let watched = |line: &str| match verb(line) {
        Verb::Status(status) => status.watch,
        other => panic!("{other:?}"),
    };
    assert!(!watched("status") && watched("status --watch") && watched("status -w"));
    let format = |line: &str| match verb(line) {
        Verb::Status(status) => status.format,
        other => panic!("{other:?}"),
    };
    assert_eq!(format("status"), None);
    assert_eq!(format("status --format text"), Some(StatusOutput::Text));
    assert_eq!(format("status --format tmux"), Some(StatusOutput::Tmux));
    assert!(refused("status --format tmux --watch") && refused("status --format html"));
    assert!(matches!(verb("popup"), Verb::Popup) && refused("popup demo"));
    assert!(matches!(verb("ps"), Verb::Ps));
    assert!(matches!(verb("doctor --fix"), Verb::Doctor(doctor) if doctor.fix));
    assert!(matches!(verb("doctor --self-test"), Verb::Doctor(doctor) if doctor.self_test));
    assert!(refused("doctor --self-test --fix"));
    for line in ["explain ada", "focus ada", "hide ada", "show ada"] {
        match verb(line) {
            Verb::Explain(named) | Verb::Focus(named) | Verb::Hide(named) | Verb::Show(named) => {
                assert_eq!(named.name, "ada");
            }
            other => panic!("{line}: {other:?}"),
        }
    }
    for line in
        ["ps ada", "explain", "focus", "hide", "show a b", "completions", "completions tcsh"]
    {
        assert!(refused(line), "{line}");
    }
    assert!(matches!(verb("attach"), Verb::Attach(_)));
    assert!(matches!(verb("events -f"), Verb::Events(e) if e.follow));
    assert!(matches!(verb("peek ada"), Verb::Peek(p) if p.lines == 20));
    assert!(matches!(verb("peek ada -n 3"), Verb::Peek(p) if p.lines == 3));
    assert!(matches!(verb("logs ada -f"), Verb::Logs(l) if l.follow && l.names == ["ada"]));
    for line in [
        "wait",
        "wait --until later",
        "wait --until task=",
        "wait --until idle --timeout -1",
        "peek",
        "logs -n x",
        "type ada",
        "keys ada",
        "keys ada Entre",
        "requests show",
    ] {
        assert!(refused(line), "{line}");
    }
}

#[test]
fn json_is_detected_on_an_invalid_line() {
    let words = |line: &str| line.split(' ').map(OsString::from).collect::<Vec<_>>();
    assert!(wants_json(&words("phalanx nonsense --json")));
    assert!(!wants_json(&words("phalanx spawn x -- prog --json")));
}

#[test]
fn request_verbs_are_parsed() {
    let Verb::Requests(requests) = verb("requests --all") else { panic!("another verb") };
    assert!(requests.all);
    let Verb::Answer(answer) = verb("answer p-1@ada --approve --mode acceptEdits --reason ok")
    else {
        panic!("another verb")
    };
    assert_eq!((answer.id.as_str(), answer.approve, answer.reject), ("p-1@ada", true, false));
    assert_eq!((answer.mode, answer.reason.as_deref()), (Some(Mode::AcceptEdits), Some("ok")));
    let Verb::Mode(mode) = verb("mode ada plan") else { panic!("another verb") };
    assert_eq!((mode.name.as_deref(), mode.mode, mode.all), (Some("ada"), Some(Mode::Plan), false));
    let Verb::Answer(answer) = verb("answer p --approve --always --input {}") else {
        panic!("another verb")
    };
    assert!(answer.always && answer.input.is_some_and(|input| input.is_empty()));
    for line in [
        "answer p",
        "answer p --approve --input []",
        "answer p --reject --always",
        "answer p --approve --reject",
        "answer p --approve --mode root",
        "mode ada",
    ] {
        assert!(refused(line), "{line}");
    }
}
