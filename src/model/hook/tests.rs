//! Tests of exit codes, matchers, and both configuration formats.

use super::*;

fn own(text: &str) -> Result<OwnHooks, String> {
    read_own(text).map_err(|e| e.to_string())
}

fn matcher(text: &str) -> Option<Matcher> {
    Matcher::parse(text).expect("an expression")
}

/// Exit code 2 of SubagentStop has no effect on its agent, which has already exited
/// (docs/hooks.md).
#[test]
fn exit_codes_lead_to_the_documented_verdicts() {
    use HookEvent::{SubagentStart, SubagentStop, TaskCompleted, TeammateIdle};
    use Verdict::{Complain, Hold, Nothing, Show};
    let table = [
        (SubagentStart, [Show, Complain, Complain]),
        (SubagentStop, [Nothing, Complain, Complain]),
        (TeammateIdle, [Nothing, Hold, Complain]),
        (TaskCompleted, [Nothing, Hold, Complain]),
    ];
    for (event, verdicts) in table {
        assert_eq!([0, 2, 1].map(|code| event.verdict(code)), verdicts, "{event:?}");
        assert_eq!([-1, 3, 127, 255].map(|code| event.verdict(code)), [Complain; 4], "{event:?}");
    }
}

#[test]
fn events_have_the_same_name_in_all_formats() {
    for (word, event) in HookEvent::ALL {
        assert_eq!(event.as_str(), word);
        assert_eq!(serde_json::to_value(event).expect("json"), word);
    }
}

#[test]
fn matchers_accept_names_or_expressions() {
    let fits = |text: &str, kind: &str| matcher(text).is_none_or(|matcher| matcher.fits(kind));
    for (text, kind, expected) in [
        ("", "tester", true),
        ("*", "tester", true),
        ("tester", "tester", true),
        ("tester", "tester-2", false),
        ("Tester", "tester", false),
        ("dev|tester", "tester", true),
        ("general-purpose", "general-purpose", true),
        ("test.*", "my-tester", true),
        ("^test.*$", "my-tester", false),
        ("^(dev|qa)-[0-9]+$", "qa-7", true),
        ("a|", "", true),
    ] {
        assert_eq!(fits(text, kind), expected, "{text:?} {kind:?}");
    }
    assert!(Matcher::parse("(").is_err());
    // An expression that would compile to a huge program is refused when it is parsed.
    assert!(Matcher::parse("(a{1000}){1000}").is_err());
}

#[test]
fn hook_applies_to_one_event_and_matching_agents() {
    let hook = Hook {
        event: HookEvent::SubagentStart,
        matcher: matcher("tester"),
        run: Words::Program(vec!["x".to_owned()]),
        timeout_s: 1,
    };
    assert!(hook.is_for(HookEvent::SubagentStart, "tester"));
    assert!(!hook.is_for(HookEvent::SubagentStart, "dev"));
    assert!(!hook.is_for(HookEvent::SubagentStop, "tester"));
    let text = serde_json::to_string(&hook).expect("json");
    assert_eq!(text, r#"{"event":"SubagentStart","matcher":"tester","run":["x"],"timeout_s":1}"#);
    assert_eq!(serde_json::from_str::<Hook>(&text).expect("json"), hook);
}

#[test]
fn own_format_is_parsed() {
    let text = "trusted = [\"/src/app\"]\n[[hook]]\nevent = \"TaskCompleted\"\nrun = [\"check\", \"a b\"]\n\
        timeout = 5\n[[hook]]\nevent = \"SubagentStop\"\nmatcher = \"dev|qa\"\nrun = [\"bye\"]\n";
    let read = own(text).expect("hooks");
    assert_eq!(read.trusted, ["/src/app"]);
    let program = |words: &[&str]| Words::Program(words.iter().map(|w| (*w).to_owned()).collect());
    let expected = [
        Hook {
            event: HookEvent::TaskCompleted,
            matcher: None,
            run: program(&["check", "a b"]),
            timeout_s: 5,
        },
        Hook {
            event: HookEvent::SubagentStop,
            matcher: matcher("dev|qa"),
            run: program(&["bye"]),
            timeout_s: 60,
        },
    ];
    assert_eq!(read.hooks, expected);
    assert_eq!(own("").expect("empty"), OwnHooks::default());
}

#[test]
fn faults_in_own_format_have_positions() {
    for (text, said) in [
        ("[[hook]]\nrun = [\"x\"]\n", "1:1: [[hook]] has no `event`"),
        ("[[hook]]\nevent = \"TeammateIdle\"\n", "1:1: [[hook]] has no `run`"),
        (
            "[[hook]]\nevent = \"TeamateIdle\"\nrun = [\"x\"]\n",
            "2:9: unknown event `TeamateIdle`; known: `SubagentStart`, `SubagentStop`, `TeammateIdle`, \
             `TaskCompleted`; did you mean `TeammateIdle`?",
        ),
        (
            "[[hook]]\nevent = \"SubagentStart\"\nrun = \"x\"\n",
            "3:7: `run` in [[hook]] must be a list of strings (program and arguments); it is not run by a shell",
        ),
        (
            "[[hook]]\nevent = \"TaskCompleted\"\nmatcher = \"dev\"\nrun = [\"x\"]\n",
            "3:11: `matcher` in [[hook]] has no meaning for TaskCompleted: it runs for every one",
        ),
        (
            "[[hook]]\nevent = \"SubagentStop\"\nmatcher = \"(\"\nrun = [\"x\"]\n",
            "3:11: `matcher` in [[hook]] is no regular expression: `(`",
        ),
        (
            "[[hook]]\nevent = \"SubagentStop\"\nrun = [\"x\"]\ntimeout = 0\n",
            "4:11: `timeout` in [[hook]] must be from 1 to 3600, in seconds",
        ),
        (
            "[[hook]]\nevent = \"SubagentStop\"\nrun = [\"x\"]\ncommand = \"y\"\n",
            "4:1: unknown key `command` in [[hook]]; did you mean `run`?",
        ),
        ("trusted = [\"app\"]\n", "1:12: `trusted` in hooks.toml: `app` is not an absolute path"),
        ("[hook]\n", "1:1: `hook` must be a list of tables, [[hook]], not one table"),
    ] {
        assert_eq!(own(text).expect_err(text), said);
    }
}

#[test]
fn claude_format_is_parsed() {
    let text = r#"{"model": "opus", "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "no"}]}],
        "SubagentStart": [{"matcher": "tester|dev", "hooks": [
            {"type": "command", "command": "echo hi", "timeout": 2.5},
            {"type": "command", "command": "echo all"}]}],
        "TaskCompleted": [{"matcher": "ignored(", "hooks": [{"type": "command", "command": "a && b", "timeout": 1e9}]}]
    }}"#;
    let read = read_claude(text).expect("settings");
    let line = |event, kinds: &str, line: &str, timeout_s| Hook {
        event,
        matcher: matcher(kinds),
        run: Words::Line(line.to_owned()),
        timeout_s,
    };
    let expected = [
        line(HookEvent::SubagentStart, "tester|dev", "echo hi", 3),
        line(HookEvent::SubagentStart, "tester|dev", "echo all", 60),
        line(HookEvent::TaskCompleted, "", "a && b", 3600),
    ];
    assert_eq!((read.hooks.as_slice(), read.disabled), (expected.as_slice(), false));
    assert_eq!(read.problems, Vec::<String>::new());
    assert_eq!(read_claude("{}").expect("settings"), ClaudeHooks::default());
    assert!(read_claude(r#"{"disableAllHooks": true}"#).expect("settings").disabled);
}

/// Invalid parts are reported and skipped; valid parts next to them are read.
#[test]
fn invalid_parts_of_claude_format_are_reported() {
    let of = |hooks: &str| read_claude(&format!(r#"{{"hooks": {hooks}}}"#)).expect("an object");
    for (hooks, said) in [
        ("7", "`hooks` is not an object"),
        (r#"{"TeammateIdle": {}}"#, "`TeammateIdle` is not a list"),
        (r#"{"TeammateIdle": ["x"]}"#, "an entry of `TeammateIdle` has no list `hooks`"),
        (
            r#"{"SubagentStop": [{"matcher": "(", "hooks": []}]}"#,
            "a `matcher` of `SubagentStop` is no regular expression: `(`",
        ),
        (r#"{"TeammateIdle": [{"hooks": [{}]}]}"#, "a hook of `TeammateIdle` has no `type`"),
        (
            r#"{"TeammateIdle": [{"hooks": [{"type": "prompt", "prompt": "?"}]}]}"#,
            "a hook of `TeammateIdle` is of the type `prompt`, which phalanx does not run",
        ),
        (
            r#"{"TeammateIdle": [{"hooks": [{"type": "command", "command": " "}]}]}"#,
            "a hook of `TeammateIdle` has no `command`",
        ),
        (
            r#"{"TeammateIdle": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}"#,
            "a hook of `TeammateIdle` has a `timeout` that is no number of seconds",
        ),
    ] {
        let read = of(hooks);
        assert_eq!(
            (read.problems.as_slice(), read.hooks.len()),
            ([said.to_owned()].as_slice(), 0),
            "{hooks}"
        );
    }
    let beside = r#"{"TeammateIdle": [7, {"hooks": [{"type": "command", "command": "x"}]}]}"#;
    assert_eq!((of(beside).hooks.len(), of(beside).problems.len()), (1, 1));
    for text in ["", "[]", "{", "\u{0}", "null", r#"{"hooks": "#] {
        assert!(read_claude(text).is_err(), "{text:?}");
    }
}
