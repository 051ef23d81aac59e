//! Tests of exit codes and matchers.

use strum::IntoEnumIterator;

use super::*;

fn matcher(text: &str) -> Option<Matcher> {
    Matcher::parse(text).expect("an expression")
}

/// Exit code 2 of SubagentStop has no effect on its agent, which has already exited
/// (docs/events.md).
#[test]
fn exit_codes_lead_to_the_documented_verdicts() {
    use HookEvent::{SubagentStart, SubagentStop, TaskCompleted, TeammateIdle};
    use HookVerdict::{Complain, Hold, Nothing, Show};
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
    for event in HookEvent::iter() {
        assert_eq!(serde_json::to_value(event).expect("json"), event.as_str());
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
    let hook = HookCommand {
        event: HookEvent::SubagentStart,
        matcher: matcher("tester"),
        run: Invocation::Program(vec!["x".to_owned()]),
        timeout_s: 1,
    };
    assert!(hook.is_for(HookEvent::SubagentStart, "tester"));
    assert!(!hook.is_for(HookEvent::SubagentStart, "dev"));
    assert!(!hook.is_for(HookEvent::SubagentStop, "tester"));
    let text = serde_json::to_string(&hook).expect("json");
    assert_eq!(text, r#"{"event":"SubagentStart","matcher":"tester","run":["x"],"timeout_s":1}"#);
    assert_eq!(serde_json::from_str::<HookCommand>(&text).expect("json"), hook);
}
