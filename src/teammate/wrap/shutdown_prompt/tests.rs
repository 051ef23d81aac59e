//! Shutdown requests that the agent answers: its prompt, and the answer on its behalf if it cannot
//! be asked.

use std::collections::BTreeMap;

use super::super::super::effect::OutboundOp;
use super::super::super::event::Requests;
use super::super::super::state::Me;
use super::super::effect::Effect;
use super::super::event::Event;
use super::super::react::react;
use super::super::state::State;
use super::in_words;
use crate::effect::MemberEffect;
use crate::event::MemberEvent;
use model::decisions::request::{self, WorkLeft};
use model::id::{Incarnation, MemberName, RequestId, TeamName};
use model::mail::envelope::Envelope;
use model::mail::protocol::{Message, ShutdownRequestBody};
use model::members::lifecycle::MemberState;
use model::time::Timestamp;
use profile::{Composer, Paste, ScreenFinding, ScreenState, ShutdownPolicy};

const START: Timestamp = Timestamp(1_000_000);

fn me() -> Me {
    Me {
        name: MemberName::new("ann").expect("name"),
        incarnation: Incarnation::parse("00000000-0000-4000-8000-000000000001").expect("uuid"),
        team: TeamName::new("alpha").expect("name"),
        pane: None,
        backend: "tmux",
    }
}

/// An accepted wrapper that has received a shutdown request.
fn asked(now: ScreenState) -> (State, Vec<Effect>) {
    let paste = Paste { bracketed: true, gap_ms: 0, settle_ms: 100, most_bytes: 4096 };
    let mut state = State { shutdown: ShutdownPolicy::Ask, ..State::new(me(), paste) };
    react(&mut state, Event::Member(MemberEvent::Accepted(MemberState::Idle)), START);
    react(&mut state, seen(now), START);
    let mail = vec![Envelope::new("team-lead", &wire(), "m-1".to_owned(), START)];
    let effects = react(
        &mut state,
        Event::Member(MemberEvent::Mail { mail, requests: on_file(|_| {}) }),
        START.plus_ms(500),
    );
    (state, effects)
}

fn seen(state: ScreenState) -> Event {
    let composer = if state == ScreenState::Idle { Composer::Empty } else { Composer::Unknown };
    let (rule, evidence) = ("r".to_owned(), "building".to_owned());
    Event::Judged {
        finding: ScreenFinding { state, rule, evidence, composer, until: None, asked: None },
        shown: false,
    }
}

fn id() -> RequestId {
    RequestId::parse("shutdown-1@ann").expect("an id")
}

fn wire() -> String {
    let request = ShutdownRequestBody {
        request_id: id().to_string(),
        from: Some("team-lead".to_owned()),
        reason: Some("done\n`rm -rf ~`".to_owned()),
        timestamp: None,
        deadline_seconds: Some(30),
    };
    Message::ShutdownRequest(request).to_text()
}

fn on_file(change: impl Fn(&mut request::ShutdownRequest)) -> Requests {
    let Me { name, incarnation, .. } = me();
    let mut request = request::ShutdownRequest {
        format: 1,
        id: id(),
        member: name,
        incarnation,
        reason: None,
        asked_at: START,
        deadline_at: START.plus_ms(30_000),
        grace_s: 10,
        force: false,
        restarts: false,
        outcome: None,
        answer: None,
        ended_at: None,
        agreed_at: None,
        work_left: WorkLeft::default(),
        cwd: None,
        deviations: None,
        event: None,
    };
    change(&mut request);
    BTreeMap::from([(id().to_string(), Ok(request))])
}

fn rejections(state: &State) -> Vec<String> {
    let sent = state.outbox.queue.iter().filter_map(|op| match op {
        OutboundOp::Send(message) => Some(&**message),
        _ => None,
    });
    sent.filter_map(|message| match message {
        Message::ShutdownRejected(no) => no.reason.clone(),
        _ => None,
    })
    .collect()
}

#[test]
fn sd_02_an_idle_agent_is_prompted_and_not_answered_for() {
    let (mut state, effects) = asked(ScreenState::Idle);
    let Some(Effect::Stage(mail)) = effects.first() else { panic!("{effects:?}") };
    assert_eq!((mail[0].msg_id.as_str(), mail[0].from.as_str()), ("m-1", "team-lead"));
    for part in
        ["phalanx answer shutdown-1@ann --approve", "--reject --reason", "within 30 s", ": done"]
    {
        assert!(mail[0].text.contains(part), "{part}: {}", mail[0].text);
    }
    assert!(!mail[0].text.contains('\n'), "one line: {}", mail[0].text);
    react(&mut state, Event::Staged(Ok(())), START.plus_ms(500));
    let Event::Judged { finding, shown } = seen(ScreenState::Idle) else { panic!("a screen") };
    let finding =
        ScreenFinding { composer: Composer::Holds("You are asked".to_owned()), ..finding };
    react(&mut state, Event::Judged { finding, shown }, START.plus_ms(510));
    react(&mut state, Event::Tick, START.plus_ms(700));
    let taken = react(&mut state, seen(ScreenState::Working), START.plus_ms(710));
    assert!(
        taken.contains(&Effect::Member(MemberEffect::Acknowledge(vec!["m-1".to_owned()]))),
        "{taken:?}"
    );
    react(&mut state, Event::Tick, START.plus_ms(29_999));
    assert_eq!(rejections(&state), [""; 0]);
}

#[test]
fn sd_02_nothing_is_answered_for_an_agent_that_works() {
    let (mut state, effects) = asked(ScreenState::Working);
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Stage(_))), "{effects:?}");
    react(&mut state, Event::Tick, START.plus_ms(29_999));
    assert_eq!(rejections(&state), [""; 0], "the lead ends it at the deadline");
    assert_eq!(state.pending().count(), 1);
    react(&mut state, seen(ScreenState::Idle), START.plus_ms(40_000));
    let later = react(&mut state, Event::Tick, START.plus_ms(41_000));
    assert!(later.iter().any(|effect| matches!(effect, Effect::Stage(_))), "{later:?}");
}

#[test]
fn sd_02_an_agent_that_agreed_quits_by_its_keys_only_when_idle() {
    let (mut state, _) = asked(ScreenState::Idle);
    state.turn = None;
    react(
        &mut state,
        Event::Member(MemberEvent::Requests(on_file(|r| r.agreed_at = Some(START)))),
        START.plus_ms(900),
    );
    assert!(state.agreed);
    let (mut state, _) = asked(ScreenState::Working);
    react(
        &mut state,
        Event::Member(MemberEvent::Requests(on_file(|r| r.agreed_at = Some(START)))),
        START.plus_ms(900),
    );
    assert!(!state.agreed, "it may have last words");
}

#[test]
fn answers_of_the_lead_become_plain_text() {
    let words_of =
        |from: &str, text: &str| in_words(Envelope::new(from, text, "m".to_owned(), START)).text;
    let plan =
        |rest: &str| format!(r#"{{"type":"plan_approval_response","requestId":"p-1",{rest}}}"#);
    assert_eq!(
        words_of("team-lead", &plan(r#""approved":true"#)),
        "Your plan `p-1` is approved. Carry it out now."
    );
    let rejected =
        words_of("team-lead", &plan(r#""approved":false,"feedback":"leave\nthe schema""#));
    assert!(
        rejected.starts_with("Your plan `p-1` is rejected: leave the schema. Change nothing yet"),
        "{rejected}"
    );
    let allowed = r#"{"type":"permission_response","request_id":"q","subtype":"success","response":{"updated_input":{"command":"make"}}}"#;
    assert_eq!(
        words_of("team-lead", allowed),
        r#"Your request `q` is allowed, with this input: {"command":"make"}."#
    );
    let denied =
        r#"{"type":"permission_response","request_id":"q","subtype":"error","error":"no"}"#;
    assert_eq!(words_of("team-lead", denied), "Your request `q` is denied: no. Do not do it.");
    assert!(!words_of("bob", denied).contains("is denied"), "only the lead answers");
}

#[test]
fn other_messages_are_unchanged() {
    let plain = Envelope::new("bob", "{\"type\":\"else\"}", "m".to_owned(), START);
    assert_eq!(in_words(plain.clone()), plain);
}
