//! Dialogs, as tables of screens, decisions, keys and reports.

use std::collections::BTreeMap;

use super::super::super::effect::OutboundOp;
use super::super::super::state::Me;
use super::super::effect::Effect;
use super::super::event::{Event, Keyed};
use super::super::react::react;
use super::super::state::State;
use super::Dialog;
use crate::effect::MemberEffect;
use crate::event::MemberEvent;
use model::decisions::question::Typed;
use model::id::{Incarnation, MemberName, RequestId, TeamName};
use model::mail::envelope::Envelope;
use model::mail::protocol::{AnsweredBy, Message, PermissionResponse, PermissionVerdict};
use model::members::lifecycle::MemberState;
use model::time::Timestamp;
use profile::{Composer, DialogKeys, DialogQuestion, Paste, ScreenFinding, ScreenState};

/// A wrapper with its own clock, whose outbound operations succeed at once.
struct Stand {
    state: State,
    now: Timestamp,
}

impl Stand {
    fn new() -> Stand {
        let me = Me {
            name: MemberName::new("ann").expect("name"),
            incarnation: Incarnation::parse("0a1b2c3d-0000-4000-8000-000000000001").expect("uuid"),
            team: TeamName::new("alpha").expect("name"),
            pane: None,
            backend: "tmux",
        };
        let paste = Paste { bracketed: true, gap_ms: 0, settle_ms: 100, most_bytes: 4096 };
        let keys = DialogKeys { allow: "y".to_owned(), deny: "n".to_owned() };
        let answers = BTreeMap::from([("run".to_owned(), keys)]);
        let state = State { answers, ..State::new(me, paste) };
        let mut stand = Stand { state, now: Timestamp(1_000_000) };
        stand.at(0, Event::Member(MemberEvent::Accepted(MemberState::Idle)));
        stand
    }

    /// The same with a dialog filed as a request.
    fn asking() -> (Stand, RequestId) {
        let mut stand = Stand::new();
        assert_eq!(stand.at(0, dialog("run", "ls")), ([].into(), [].into()));
        let (sent, typed) = stand.at(300, Event::Tick);
        let [OutboundOp::Send(sent)] = &sent[..] else { panic!("{sent:?}") };
        let Message::PermissionRequest(asked) = &**sent else { panic!("{sent:?}") };
        assert_eq!((asked.tool_name.as_str(), asked.description.as_deref()), ("run", Some("ls")));
        assert_eq!((asked.answered_by, typed), (Some(AnsweredBy::Keys), Vec::new()));
        let id = RequestId::parse(&asked.request_id).expect("an id");
        (stand, id)
    }

    /// The same while the keys for approval are being typed.
    fn typing() -> (Stand, RequestId) {
        let (mut stand, id) = Stand::asking();
        assert_eq!(stand.at(0, answer("team-lead", &id, true)).1, [keys("y")]);
        (stand, id)
    }

    /// Returns the operations and keys concerning dialogs.
    fn at(&mut self, after: u64, event: Event) -> (Vec<OutboundOp>, Vec<Effect>) {
        self.now = self.now.plus_ms(after);
        let (mut sent, mut typed) = (Vec::new(), Vec::new());
        let mut events = vec![event];
        while let Some(event) = events.pop() {
            for effect in react(&mut self.state, event, self.now) {
                match effect {
                    Effect::Member(MemberEffect::Do(op)) => {
                        events.push(Event::Member(MemberEvent::Done(Ok(()))));
                        sent.push(op);
                    }
                    Effect::Answer { .. } => typed.push(effect),
                    _ => {}
                }
            }
        }
        sent.retain(|op| {
            !matches!(op, OutboundOp::Hello | OutboundOp::Remark(_) | OutboundOp::MoveOn(..))
        });
        (sent, typed)
    }
}

fn keys(keys: &str) -> Effect {
    let asked = DialogQuestion { tool: None, text: "ls".to_owned() };
    Effect::Answer { dialog: Dialog { rule: "run".to_owned(), asked }, keys: keys.to_owned() }
}

fn dialog(rule: &str, text: &str) -> Event {
    let asked = Some(DialogQuestion { tool: None, text: text.to_owned() });
    seen(ScreenState::Dialog("permission".to_owned()), rule, asked)
}

fn working() -> Event {
    seen(ScreenState::Working, "works", None)
}

fn seen(state: ScreenState, rule: &str, asked: Option<DialogQuestion>) -> Event {
    let composer = Composer::Unknown;
    let finding = ScreenFinding {
        state,
        rule: rule.to_owned(),
        evidence: "e".to_owned(),
        composer,
        until: None,
        asked,
    };
    Event::Judged { finding, shown: false }
}

fn answer(from: &str, id: &RequestId, allowed: bool) -> Event {
    let verdict = match allowed {
        true => PermissionVerdict::Allowed { updated_input: None, permission_updates: Vec::new() },
        false => PermissionVerdict::Denied { error: String::new() },
    };
    let message =
        Message::PermissionResponse(PermissionResponse { request_id: id.to_string(), verdict });
    let envelope =
        Envelope::new(from, &message.to_text(), format!("{from}-{allowed}"), Timestamp(1));
    Event::Member(MemberEvent::Mail { mail: vec![envelope], requests: [].into() })
}

#[test]
fn pm_04_the_decision_is_typed_and_its_outcome_reported() {
    for (allowed, key) in [(true, "y"), (false, "n")] {
        let (mut stand, id) = Stand::asking();
        assert_eq!(stand.at(60_000, Event::Tick), ([].into(), [].into()), "nothing by default");
        assert_eq!(stand.at(0, answer("team-lead", &id, allowed)), ([].into(), [keys(key)].into()));
        assert_eq!(stand.at(0, Event::Answered(Keyed::Typed)), ([].into(), [].into()));
        assert_eq!(stand.at(0, working()).0, []);
        assert_eq!(
            stand.at(300, Event::Tick),
            ([OutboundOp::Typed(id, Typed::Taken)].into(), [].into())
        );
    }
}

#[test]
fn sec_04_only_the_lead_answers_and_only_this_request() {
    let (mut stand, id) = Stand::asking();
    assert_eq!(stand.at(0, answer("bob", &id, true)).1, []);
    let other = RequestId::parse("perm-1-x").expect("an id");
    assert_eq!(stand.at(0, answer("team-lead", &other, true)).1, []);
}

#[test]
fn pm_01_keys_are_typed_only_into_the_dialog_they_answer() {
    for next in [dialog("run", "rm -rf /"), dialog("other", "ls"), working()] {
        let (mut stand, id) = Stand::asking();
        stand.at(0, next.clone());
        assert_eq!(stand.at(0, answer("team-lead", &id, true)).1, [], "{next:?}");
        let (sent, typed) = stand.at(300, Event::Tick);
        assert_eq!(
            (&sent[0], typed),
            (&OutboundOp::Typed(id, Typed::Gone), Vec::new()),
            "{next:?}"
        );
        let asks_anew = matches!(sent.get(1), Some(OutboundOp::Send(_)));
        assert_eq!(asks_anew, next != working(), "{next:?}");
    }
    // The driver found the dialog gone when it judged the screen again; it does not retry.
    let (mut stand, id) = Stand::typing();
    assert_eq!(stand.at(0, Event::Answered(Keyed::Gone)).1, []);
    assert_eq!(stand.at(0, working()).1, []);
    assert_eq!(stand.at(300, Event::Tick).0, [OutboundOp::Typed(id, Typed::Gone)]);
}

#[test]
fn pm_04_a_dialog_that_disappears_is_withdrawn() {
    let (mut stand, id) = Stand::asking();
    stand.at(0, working());
    assert_eq!(stand.at(299, Event::Tick).0, [], "a flicker is not believed");
    assert_eq!(stand.at(1, Event::Tick).0, [OutboundOp::Withdraw(id.clone(), None)]);
    // A late answer is reported as such and not typed into the program.
    assert_eq!(stand.at(0, answer("team-lead", &id, true)).0, [OutboundOp::Typed(id, Typed::Gone)]);
    assert_eq!(stand.state.waiting, []);
}

#[test]
fn msg_11_keys_wait_while_a_person_types() {
    let (mut stand, id) = Stand::asking();
    stand.at(0, Event::PersonTyped);
    assert_eq!(stand.at(0, answer("team-lead", &id, true)).1, []);
    assert_eq!(stand.at(1999, Event::Tick).1, []);
    assert_eq!(stand.state.next_tick(stand.now), Some(stand.now.plus_ms(1)));
    assert_eq!(stand.at(1, Event::Tick).1, [keys("y")]);
    assert_eq!(stand.at(0, Event::Answered(Keyed::PersonTyping)).1, [], "it was quicker");
    assert_eq!(stand.at(2000, Event::Tick).1, [keys("y")]);
}

#[test]
fn pm_04_keys_are_typed_once() {
    let (mut stand, id) = Stand::typing();
    stand.at(0, Event::Answered(Keyed::Typed));
    assert_eq!(stand.at(9999, Event::Tick), ([].into(), [].into()));
    let stays = OutboundOp::Typed(id.clone(), Typed::Stays);
    assert_eq!(stand.at(1, Event::Tick), ([stays].into(), [].into()));
    assert_eq!(stand.at(600_000, Event::Tick), ([].into(), [].into()));
    assert_eq!(stand.state.next_tick(stand.now), None, "rest costs nothing");
    // Something else than the keys has closed it.
    stand.at(0, working());
    assert_eq!(stand.at(300, Event::Tick).0, [OutboundOp::Withdraw(id, None)]);
}

#[test]
fn pm_03_a_dialog_without_keys_is_answered_in_the_pane() {
    let mut stand = Stand::new();
    stand.at(0, dialog("other", "ls"));
    let (sent, _) = stand.at(300, Event::Tick);
    let [OutboundOp::Send(sent)] = &sent[..] else { panic!("{sent:?}") };
    let Message::PermissionRequest(asked) = &**sent else { panic!("{sent:?}") };
    assert_eq!(asked.answered_by, Some(AnsweredBy::Pane));
    let mut stand = Stand::new();
    let asked = Some(DialogQuestion { tool: None, text: "this folder".to_owned() });
    stand.at(0, seen(ScreenState::Dialog("trust".to_owned()), "trust", asked));
    assert_eq!(stand.at(300, Event::Tick).0, []);
}
