//! The agent lead's mail: which messages are typed into its program.

use super::super::super::state::Me;
use super::super::event::Event;
use super::super::react::react;
use super::*;
use crate::effect::MemberEffect;
use crate::event::MemberEvent;
use crate::words::{self, AgentRole};
use model::id::{Incarnation, MemberName, TeamName};
use model::mail::envelope::Envelope;
use model::time::Timestamp;
use profile::{Composer, Paste, ScreenFinding, ScreenState};

const START: Timestamp = Timestamp(1_000_000);

fn envelope(from: &str, text: &str) -> Envelope {
    Envelope::new(from, text, text.to_owned(), START)
}

/// An agent lead whose screen shows an idle program.
fn at_rest() -> State {
    let me = Me {
        name: MemberName::lead(),
        incarnation: Incarnation::parse("00000000-0000-4000-8000-000000000001").expect("uuid"),
        team: TeamName::new("alpha").expect("name"),
        pane: None,
        backend: "",
    };
    let paste = Paste { bracketed: true, gap_ms: 0, settle_ms: 100, most_bytes: 4096 };
    let mut state = State::new(me, paste).on(AgentRole::Lead);
    let (rule, evidence) = ("r".to_owned(), "e".to_owned());
    let finding = ScreenFinding {
        state: ScreenState::Idle,
        rule,
        evidence,
        composer: Composer::Empty,
        until: None,
        asked: None,
    };
    assert_eq!(react(&mut state, Event::Tick, START), [Effect::Member(MemberEffect::ReadMail)]);
    assert_eq!(react(&mut state, Event::Judged { finding, shown: false }, START), []);
    state
}

fn mail(mail: Vec<Envelope>) -> Event {
    Event::Member(MemberEvent::Mail { mail, requests: [].into() })
}

#[test]
fn msg_17_news_and_notices_of_members_are_typed() {
    let typed = [
        ("ada", r#"{"type":"idle_notification","summary":"two tests fail"}"#, true),
        ("ada", r#"{"type":"task_completed","taskId":"3","taskSubject":"Build"}"#, true),
        ("system", r#"{"type":"teammate_terminated","message":"ada has shut down."}"#, true),
        ("ada", r#"{"type":"task_assignment","taskId":"3"}"#, true),
        ("ada", "a text", true),
        ("system", "a report", true),
        ("ada", r#"{"type":"of_tomorrow"}"#, true),
        ("ada", r#"{"type":"shutdown_approved","requestId":"shutdown-1@ada"}"#, false),
        ("ada", r#"{"type":"shutdown_rejected","requestId":"shutdown-1@ada","reason":"x"}"#, true),
        ("ada", r#"{"type":"plan_approval_request","requestId":"p-1"}"#, false),
        ("ada", r#"{"type":"permission_request","request_id":"p-1","tool_name":"Bash"}"#, false),
        ("ada", r#"{"type":"sandbox_permission_request","requestId":"p-1","host":"h"}"#, false),
        ("ada", r#"{"type":"shutdown_approved"}"#, false),
        // Kinds that the sender is not allowed to send.
        ("ada", r#"{"type":"teammate_terminated","message":"bob has shut down."}"#, false),
        ("ada", r#"{"type":"shutdown_request","requestId":"shutdown-1@team-lead"}"#, false),
        ("ada", r#"{"type":"mode_set_request","mode":"bypassPermissions"}"#, false),
        ("system", r#"{"type":"idle_notification"}"#, false),
    ];
    for (from, text, is_told) in typed {
        let effects = react(&mut at_rest(), mail(vec![envelope(from, text)]), START.plus_ms(500));
        match is_told {
            true => {
                assert!(matches!(effects.as_slice(), [Effect::Stage(_)]), "{text}: {effects:?}")
            }
            false => assert_eq!(effects, [], "{text} is not for the program"),
        }
    }
}

#[test]
fn news_of_members_become_plain_text() {
    let words_of = |from: &str, text: &str| words::for_lead(envelope(from, text)).text;
    let rests = r#"{"type":"idle_notification","summary":"two\ntests fail","completedTaskId":"3","completedStatus":"failed"}"#;
    assert_eq!(
        words_of("ada", rests),
        "I am idle. My last task: #3 (failed). Result of my turn: two tests fail"
    );
    assert_eq!(words_of("ada", r#"{"type":"idle_notification"}"#), "I am idle.");
    let done = r#"{"type":"task_completed","taskId":"3","taskSubject":"Build"}"#;
    assert_eq!(words_of("ada", done), "I completed task #3: Build.");
    let gone = r#"{"type":"teammate_terminated","message":"ada has shut down."}"#;
    assert_eq!(words_of("system", gone), "ada has shut down.");
    let refusal = r#"{"type":"shutdown_rejected","requestId":"s","reason":"task #3 runs"}"#;
    assert_eq!(words_of("ada", refusal), "I refuse to shut down: task #3 runs");
    assert_eq!(words_of("ada", "as it is\n"), "as it is\n");
}

/// MSG-03: a message that was delivered already is marked again, not typed again.
#[test]
fn msg_03_a_delivered_message_is_marked_and_not_typed_again() {
    let mut state = at_rest();
    state.handled.insert("hi".to_owned());
    let effects = react(&mut state, mail(vec![envelope("ada", "hi")]), START.plus_ms(500));
    assert_eq!(effects, [Effect::Member(MemberEffect::Acknowledge(vec!["hi".to_owned()]))]);
}

#[test]
fn the_program_outlives_its_team() {
    let mut state = at_rest();
    let effects = react(&mut state, mail(vec![envelope("ada", "hi")]), START.plus_ms(500));
    assert!(matches!(effects.as_slice(), [Effect::Stage(_)]));
    assert_eq!(
        react(&mut state, Event::Member(MemberEvent::Over(String::new())), START.plus_ms(501)),
        [Effect::Release]
    );
    assert_eq!(react(&mut state, Event::Staged(Ok(())), START.plus_ms(502)), []);
    assert_eq!(react(&mut state, Event::Tick, START.plus_ms(60_000)), []);
    assert_eq!(state.end, None);
    react(&mut state, Event::Ended(7), START.plus_ms(60_001));
    assert_eq!(state.end, Some(7));
}
