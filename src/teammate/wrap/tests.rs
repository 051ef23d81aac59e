//! The wrapper's step, as tables of state, event and effects.

use super::super::effect::OutboundOp;
use super::super::outbox::MemberOutbox;
use super::super::state::Me;
use super::effect::Effect;
use super::event::{Event, StageRefusal};
use super::react::react;
use super::state::State;
use crate::effect::MemberEffect;
use crate::event::{MemberEvent, OpFailure};
use crate::words::tests::PROTOCOL;
use model::id::{Incarnation, LEAD, MemberName, TeamName};
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::members::lifecycle::{Cause, MemberState};
use model::members::record::UNRECOGNISED;
use model::team::event::EventKind;
use model::time::Timestamp;
use profile::{Composer, MailDelivery, Paste, ScreenFinding, ScreenState};

mod limits;

/// A wrapper with its own clock.
struct Stand {
    state: State,
    now: Timestamp,
}

impl Stand {
    /// An accepted member whose program is idle and whose state has been reported.
    fn idle() -> Stand {
        let me = Me {
            name: MemberName::new("ann").expect("name"),
            incarnation: Incarnation::parse("00000000-0000-4000-8000-000000000001").expect("uuid"),
            team: TeamName::new("alpha").expect("name"),
            pane: None,
            backend: "tmux",
        };
        let paste = Paste { bracketed: true, gap_ms: 0, settle_ms: 100, most_bytes: 4096 };
        let mut stand = Stand { state: State::new(me, paste), now: Timestamp(1_000_000) };
        assert_eq!(stand.at(0, Event::Tick), [Effect::Member(MemberEffect::ReadMail)]);
        assert_eq!(stand.at(0, mail(&[])), []);
        assert_eq!(stand.see(0, ScreenState::Idle, Composer::Empty), []);
        assert_eq!(
            stand.at(300, Event::Tick),
            [Effect::Member(MemberEffect::Do(OutboundOp::Hello))]
        );
        assert_eq!(stand.at(0, Event::Member(MemberEvent::Done(Ok(())))), []);
        assert_eq!(stand.at(0, Event::Member(MemberEvent::Accepted(MemberState::Idle))), []);
        stand
    }

    /// The same with a text staged.
    fn staged() -> Stand {
        let mut stand = Stand::idle();
        assert_eq!(stand.at(0, mail(&["hi"])), [Effect::Stage(vec![envelope("hi")])]);
        assert_eq!(stand.at(0, Event::Staged(Ok(()))), [note(EventKind::MessageStaged, None)]);
        stand
    }

    /// The same after the submit key was typed once.
    fn submitted() -> Stand {
        let mut stand = Stand::staged();
        assert_eq!(stand.see(10, ScreenState::Idle, holds()), []);
        let submit = [note(EventKind::MessageSubmitted, None), Effect::Submit];
        assert_eq!(stand.at(100, Event::Tick), submit);
        stand
    }

    fn at(&mut self, after: u64, event: Event) -> Vec<Effect> {
        self.now = self.now.plus_ms(after);
        react(&mut self.state, event, self.now)
    }

    fn see(&mut self, after: u64, state: ScreenState, composer: Composer) -> Vec<Effect> {
        self.at(after, seen(state, composer, false))
    }
}

fn seen(state: ScreenState, composer: Composer, shown: bool) -> Event {
    let finding = ScreenFinding {
        state,
        rule: "r".to_owned(),
        evidence: "e".to_owned(),
        composer,
        until: None,
        asked: None,
    };
    Event::Judged { finding, shown }
}

fn holds() -> Composer {
    Composer::Holds("hi".to_owned())
}

fn envelope(text: &str) -> Envelope {
    Envelope::new("bob", text, text.to_owned(), Timestamp(1))
}

fn mail(texts: &[&str]) -> Event {
    Event::Member(MemberEvent::Mail {
        mail: texts.iter().map(|text| envelope(text)).collect(),
        requests: [].into(),
    })
}

fn note(kind: EventKind, reason: Option<&str>) -> Effect {
    Effect::Journal { kind, ids: vec!["hi".to_owned()], reason: reason.map(str::to_owned) }
}

fn delivered() -> [Effect; 2] {
    [Effect::Release, Effect::Member(MemberEffect::Acknowledge(vec!["hi".to_owned()]))]
}

#[test]
fn msg_08_a_message_is_delivered_once_its_turn_is_seen() {
    let mut stand = Stand::submitted();
    assert_eq!(
        stand.see(10, ScreenState::Idle, Composer::Empty),
        [],
        "an empty composer alone proves nothing"
    );
    assert_eq!(stand.at(10, seen(ScreenState::Working, Composer::Empty, false)), delivered());
    let mut quick = Stand::submitted();
    assert_eq!(quick.at(10, seen(ScreenState::Idle, Composer::Empty, true)), delivered());
}

/// A program that reads its mail with tools gets one line for each set of new messages, and they
/// stay unread.
#[test]
fn program_with_tools_gets_one_line_for_new_messages() {
    let mut stand = Stand::idle();
    stand.state.mail = MailDelivery::Tools;
    assert_eq!(stand.at(0, mail(&["hi"])), [Effect::Announce(1)]);
    assert_eq!(stand.at(0, Event::Staged(Ok(()))), [note(EventKind::MessageStaged, None)]);
    assert_eq!(stand.see(10, ScreenState::Idle, holds()), []);
    let submit = [note(EventKind::MessageSubmitted, None), Effect::Submit];
    assert_eq!(stand.at(100, Event::Tick), submit);
    let taken = stand.at(10, seen(ScreenState::Idle, Composer::Empty, true));
    assert_eq!(taken, [Effect::Release], "nothing is acknowledged");
    assert_eq!(stand.at(1000, mail(&["hi"])), []);
    assert_eq!(stand.at(0, mail(&["hi", "ho", "hu"])), [Effect::Announce(2)]);
}

#[test]
fn msg_08_the_submit_key_is_typed_at_most_three_times() {
    let mut stand = Stand::submitted();
    for _ in 0..2 {
        assert_eq!(stand.at(1499, Event::Tick), []);
        assert_eq!(
            stand.at(1, Event::Tick),
            [note(EventKind::MessageSubmitted, None), Effect::Submit]
        );
    }
    let why = "the submit key had no effect";
    let given_up = stand.at(1500, Event::Tick);
    assert_eq!(given_up[..2], [note(EventKind::MessageUndelivered, Some(why)), Effect::Release]);
    let reported = Effect::Member(MemberEffect::Do(OutboundOp::Remark(Some(format!(
        "blocked: undelivered: {why}"
    )))));
    assert_eq!(given_up[2..], [reported]);
    assert_eq!(complete(&mut stand, &given_up)[1..], [announced(why)]);
    assert_eq!(stand.at(600_000, Event::Tick), [], "it is a person's now");
    assert_eq!(stand.at(0, seen(ScreenState::Working, Composer::Empty, true))[..2], delivered());
}

/// MSG-03: a text is typed once. If its delivery is not seen, it is reported, stays unread, and
/// does not block later mail.
#[test]
fn msg_03_a_text_that_vanishes_is_reported_and_not_retyped() {
    for (mut stand, why) in [
        (Stand::staged(), "the text was typed but did not appear in the composer"),
        (Stand::submitted(), "the submit key was pressed, but no turn started"),
    ] {
        stand.see(10, ScreenState::Idle, Composer::Empty);
        let reported = stand.at(10_000, Event::Tick);
        assert_eq!(
            reported[..2],
            [note(EventKind::MessageUndelivered, Some(why)), Effect::Release]
        );
        let remark = Effect::Member(MemberEffect::Do(OutboundOp::Remark(Some(format!(
            "blocked: undelivered: {why}"
        )))));
        assert_eq!(reported[2..], [remark]);
        assert_eq!(complete(&mut stand, &reported)[1..], [announced(why)]);
        assert_eq!(stand.at(3_600_000, Event::Tick), [], "{why}");
        assert_eq!(
            stand.at(0, mail(&["hi", "ho"])),
            [Effect::Stage(vec![envelope("ho")])],
            "{why}"
        );
        assert_eq!(stand.at(0, mail(&["hi", "ho"])), [], "{why}");
    }
}

/// MSG-03: a turn that starts late counts as ours if no person has typed since.
#[test]
fn msg_03_a_turn_that_starts_late_counts_as_delivery() {
    let mut stand = Stand::submitted();
    stand.see(10, ScreenState::Idle, Composer::Empty);
    stand.at(10_000, Event::Tick);
    assert_eq!(stand.see(50_000, ScreenState::Working, Composer::Unknown)[..2], delivered());
    let mut by_person = Stand::submitted();
    by_person.see(10, ScreenState::Idle, Composer::Empty);
    by_person.at(10_000, Event::Tick);
    by_person.at(10, Event::PersonTyped);
    let effects = by_person.see(50_000, ScreenState::Working, Composer::Unknown);
    assert!(!effects.contains(&delivered()[1]), "that turn may be a person's: {effects:?}");
}

/// MSG-08: if the program starts to work by itself while a text is staged, for example on its first
/// prompt, the submit key follows when it is idle. In the meantime a person may type, and then owns
/// the text.
#[test]
fn msg_08_a_staged_text_is_submitted_after_the_program_has_worked() {
    let mut stand = Stand::staged();
    stand.see(10, ScreenState::Working, holds());
    stand.at(300, Event::Tick);
    stand.at(0, Event::Member(MemberEvent::Done(Ok(()))));
    assert_eq!(stand.at(10_000, Event::Tick), [Effect::Release]);
    assert_eq!(stand.at(60_000, Event::Tick), []);
    let mut by_person = Stand { state: stand.state.clone(), now: stand.now };
    assert_eq!(stand.see(0, ScreenState::Idle, holds()), []);
    let submit = [note(EventKind::MessageSubmitted, None), Effect::Submit];
    assert_eq!(stand.at(100, Event::Tick), submit);
    assert_eq!(stand.at(10, seen(ScreenState::Working, Composer::Empty, false)), delivered());
    let why = "it was typed as the program started working, and then a person typed";
    let reported = [note(EventKind::MessageUndelivered, Some(why)), Effect::Release];
    assert_eq!(by_person.at(0, Event::PersonTyped), reported);
}

/// MSG-03: a text visible on the screen may be in a composer that is misread as empty. It does not
/// count as delivered and no other text is typed after it, until a person reads the message.
#[test]
fn msg_03_a_text_in_a_misread_composer_waits_for_a_person() {
    let mut stand = Stand::staged();
    stand.at(10, seen(ScreenState::Idle, Composer::Empty, true));
    stand.at(10_000, Event::Tick);
    stand.at(0, Event::Member(MemberEvent::Done(Ok(()))));
    assert_eq!(stand.at(60_000, mail(&["hi", "ho"])), []);
    assert_eq!(stand.at(60_000, Event::Tick), []);
    assert_eq!(stand.at(0, mail(&["ho"]))[0], Effect::Stage(vec![envelope("ho")]));
}

#[test]
fn msg_11_nothing_is_typed_while_a_person_types_or_left_a_draft() {
    let mut stand = Stand::idle();
    assert_eq!(stand.at(0, Event::PersonTyped), []);
    assert_eq!(stand.at(0, mail(&["hi"])), []);
    assert_eq!(stand.see(1000, ScreenState::Idle, holds()), []);
    assert_eq!(stand.at(29_999, Event::Tick), [], "a draft waits for its writer");
    let effects = stand.at(1, Event::Tick);
    let why = "a draft of 2 characters is in its composer";
    assert_eq!(complete(&mut stand, &effects), [undelivered(why), announced(why)]);
    assert_eq!(stand.at(600_000, Event::Tick), [], "as before");
    assert_eq!(stand.see(0, ScreenState::Idle, Composer::Empty), []);
    assert_eq!(stand.at(100, Event::Tick), [Effect::Stage(vec![envelope("hi")])]);
    assert_eq!(stand.at(0, Event::Staged(Err(StageRefusal::PersonTyping))), [], "it was quicker");
    let effects = stand.at(1999, Event::Tick);
    let rests = [OutboundOp::Remark(None), OutboundOp::MoveOn(Cause::Rest, None)];
    assert_eq!(complete(&mut stand, &effects), rests);
    assert_eq!(stand.at(1, Event::Tick), [Effect::Stage(vec![envelope("hi")])]);
}

/// MSG-21: a screen that no rule matches is reported, and mail that waits for it is announced once.
#[test]
fn msg_21_unrecognised_screen_and_its_mail_are_reported() {
    let mut stand = Stand::idle();
    stand.see(0, ScreenState::Unknown, Composer::Unknown);
    assert_eq!(stand.at(0, mail(&["hi"])), []);
    assert_eq!(stand.at(29_999, Event::Tick), []);
    assert_eq!(stand.state.next_tick(stand.now), Some(stand.now.plus_ms(1)));
    let effects = stand.at(1, Event::Tick);
    let expected = [undelivered(UNRECOGNISED), announced(UNRECOGNISED)];
    assert_eq!(complete(&mut stand, &effects), expected);
    assert_eq!(stand.see(600_000, ScreenState::Unknown, Composer::Unknown), []);
    stand.see(0, ScreenState::Idle, Composer::Empty);
    assert_eq!(stand.at(100, Event::Tick), [Effect::Stage(vec![envelope("hi")])]);
}

/// MSG-21: an empty composer on such a screen gets the mail after a while.
#[test]
fn msg_21_composer_of_an_unrecognised_screen_gets_mail_after_a_while() {
    let mut stand = Stand::idle();
    stand.see(0, ScreenState::Unknown, Composer::Empty);
    stand.at(0, mail(&["hi"]));
    assert_eq!(stand.at(29_999, Event::Tick), []);
    let effects = stand.at(1, Event::Tick);
    assert_eq!(effects[0], Effect::Stage(vec![envelope("hi")]));
    let reason = OutboundOp::Remark(Some(UNRECOGNISED.to_owned()));
    assert_eq!(complete(&mut stand, &effects), [reason]);
    assert_eq!(stand.at(0, Event::Staged(Ok(()))), [note(EventKind::MessageStaged, None)]);
    assert_eq!(stand.see(10, ScreenState::Unknown, holds()), []);
    let submit = [note(EventKind::MessageSubmitted, None), Effect::Submit];
    assert_eq!(stand.at(100, Event::Tick), submit);
    assert_eq!(stand.at(10, seen(ScreenState::Unknown, Composer::Empty, true)), delivered());
}

/// SP-21: a start that was accepted without a known screen does not count as ready before one.
#[test]
fn sp_21_program_is_ready_only_with_a_recognised_screen() {
    let mut stand = Stand::idle();
    stand.state.outbox = MemberOutbox::new(false);
    stand.see(0, ScreenState::Unknown, Composer::Unknown);
    assert_eq!(stand.at(60_000, Event::Tick), [], "its spawner waits for it");
    let effects = stand.at(0, Event::Member(MemberEvent::Accepted(MemberState::Idle)));
    let reason = OutboundOp::Remark(Some(UNRECOGNISED.to_owned()));
    assert_eq!(complete(&mut stand, &effects), [reason]);
    stand.see(0, ScreenState::Idle, Composer::Empty);
    let effects = stand.at(300, Event::Tick);
    let ops = complete(&mut stand, &effects);
    assert_eq!(ops[0], OutboundOp::Remark(None));
    assert!(ops.contains(&OutboundOp::Hello), "{ops:?}");
}

#[test]
fn pm_01_a_dialog_over_a_staged_text_gets_no_key() {
    let mut stand = Stand::staged();
    let dialog = || ScreenState::Dialog("trust".to_owned());
    let effects = stand.see(5, dialog(), Composer::Unknown);
    assert_eq!(
        effects,
        [note(EventKind::MessageUndelivered, Some("a dialog opened")), Effect::Release]
    );
    let reported = OutboundOp::Remark(Some("blocked: dialog:trust (rule r: e)".to_owned()));
    assert_eq!(stand.at(300, Event::Tick), [Effect::Member(MemberEffect::Do(reported))]);
    assert_eq!(stand.at(0, Event::Member(MemberEvent::Done(Ok(())))), []);
    assert_eq!(stand.at(60_000, Event::Tick), []);
}

#[test]
fn nothing_is_typed_unless_idle_with_an_empty_composer() {
    for (state, composer) in [
        (ScreenState::Unknown, Composer::Unknown),
        (ScreenState::Idle, Composer::Unknown),
        (ScreenState::Working, Composer::Empty),
        (ScreenState::NeedsLogin, Composer::Unknown),
    ] {
        let mut stand = Stand::idle();
        stand.see(0, state.clone(), composer);
        let effects = stand.at(0, mail(&["hi"]));
        assert!(!effects.iter().any(|e| matches!(e, Effect::Stage(_))), "{state}: {effects:?}");
        let effects = stand.at(5000, Event::Tick);
        assert!(!effects.iter().any(|e| matches!(e, Effect::Stage(_))), "{state}: {effects:?}");
    }
}

#[test]
fn msg_12_each_transition_is_reported_once() {
    let mut stand = Stand::idle();
    assert_eq!(stand.see(0, ScreenState::Working, Composer::Empty), []);
    assert_eq!(stand.at(299, Event::Tick), [], "a flicker is not believed");
    assert_eq!(
        stand.at(1, Event::Tick),
        [Effect::Member(MemberEffect::Do(OutboundOp::MoveOn(Cause::Work, None)))]
    );
    assert_eq!(stand.at(0, Event::Member(MemberEvent::Done(Ok(())))), []);
    assert_eq!(stand.at(9000, Event::Tick), []);
    assert_eq!(stand.see(0, ScreenState::Idle, Composer::Empty), []);
    assert_eq!(
        stand.at(300, Event::Tick),
        [Effect::Member(MemberEffect::Do(OutboundOp::MoveOn(Cause::Rest, None)))]
    );
    let notified = stand.at(0, Event::Member(MemberEvent::Done(Ok(()))));
    assert!(
        matches!(notified[..], [Effect::Member(MemberEffect::Do(OutboundOp::Send(_)))]),
        "{notified:?}"
    );
    assert_eq!(stand.at(0, Event::Member(MemberEvent::Done(Ok(())))), []);
    assert_eq!(stand.state.next_tick(stand.now), None, "rest costs nothing");
}

#[test]
fn msg_03_a_repeated_message_is_not_typed_again() {
    let mut stand = Stand::submitted();
    assert_eq!(stand.at(1, mail(&["hi"])), []);
    assert_eq!(stand.at(10, seen(ScreenState::Idle, Composer::Empty, true)), delivered());
    assert_eq!(
        stand.at(500, mail(&["hi"])),
        [Effect::Member(MemberEffect::Acknowledge(vec!["hi".to_owned()]))]
    );
}

#[test]
fn msg_11_delivery_does_not_wait_for_a_clock_that_was_set_back() {
    let mut stand = Stand::idle();
    assert_eq!(stand.at(0, Event::PersonTyped), []);
    assert_eq!(stand.at(0, mail(&["hi"])), []);
    stand.now = Timestamp(500_000);
    assert_eq!(stand.at(0, Event::Tick), []);
    assert_eq!(stand.state.next_tick(stand.now), Some(stand.now.plus_ms(2000)));
    assert_eq!(stand.at(1999, Event::Tick), []);
    let staged = Effect::Stage(vec![envelope("hi")]);
    assert_eq!(stand.at(1, Event::Tick), std::slice::from_ref(&staged));
    // After a failure there is a longer pause.
    let failure = OpFailure { text: "no space".to_owned(), lasting: false };
    stand.at(0, Event::Staged(Err(StageRefusal::Failed(failure))));
    stand.now = Timestamp(100_000);
    assert!(!stand.at(0, Event::Tick).contains(&staged));
    assert!(!stand.at(59_999, Event::Tick).contains(&staged));
    assert!(stand.at(1, Event::Tick).contains(&staged));
}

fn op(effects: &[Effect]) -> Option<&OutboundOp> {
    effects.iter().find_map(|effect| match effect {
        Effect::Member(MemberEffect::Do(op)) => Some(op),
        _ => None,
    })
}

/// The screen of a program whose last turn ended with an error.
fn refused(needs_login: bool) -> Event {
    seen(ScreenState::Failed { needs_login }, Composer::Empty, false)
}

fn undelivered(why: &str) -> OutboundOp {
    OutboundOp::Remark(Some(format!("blocked: undelivered: {why}")))
}

/// The message to the lead about mail that waits.
fn announced(why: &str) -> OutboundOp {
    let text = format!("Mail for ann waits: {why}; see `phalanx peek ann`.");
    OutboundOp::Send(Box::new(Message::Text(text)))
}

/// Completes all operations and returns them.
fn complete(stand: &mut Stand, effects: &[Effect]) -> Vec<OutboundOp> {
    let mut ops: Vec<OutboundOp> = op(effects).cloned().into_iter().collect();
    while ops.len() < 20 {
        let effects = stand.at(0, Event::Member(MemberEvent::Done(Ok(()))));
        let Some(next) = op(&effects) else { return ops };
        ops.push(next.clone());
    }
    panic!("{ops:?}");
}

#[test]
fn st_03_error_of_a_turn_is_reported_until_the_next_turn() {
    for worked in [true, false] {
        let mut stand = Stand::idle();
        if worked {
            stand.see(0, ScreenState::Working, Composer::Empty);
            let effects = stand.at(400, Event::Tick);
            complete(&mut stand, &effects);
        }
        stand.at(0, refused(true));
        let effects = stand.at(400, Event::Tick);
        let ops = complete(&mut stand, &effects);
        let [
            OutboundOp::MoveOn(Cause::Rest, None),
            OutboundOp::Remark(Some(reason)),
            OutboundOp::Send(notice),
        ] = &ops[..]
        else {
            panic!("{ops:?}");
        };
        assert_eq!(reason, "failed:login: e");
        let Message::IdleNotification(notice) = &**notice else { panic!("{notice:?}") };
        assert_eq!(notice.idle_reason.as_deref(), Some("failed"));
        assert_eq!(notice.failure_reason.as_deref(), Some("e"));

        let delivery = [Effect::Stage(vec![envelope("hi")])];
        assert_eq!(stand.at(400, mail(&["hi"])), delivery, "the next turn can begin");
        stand.see(0, ScreenState::Working, Composer::Empty);
        let effects = stand.at(400, Event::Tick);
        let ops = complete(&mut stand, &effects);
        assert_eq!(ops, [OutboundOp::Remark(None), OutboundOp::MoveOn(Cause::Work, None)]);
    }
}

#[test]
fn ac_13_no_message_of_the_protocol_is_typed_as_json() {
    for from in [LEAD, "bob", "system"] {
        for text in PROTOCOL {
            let mail = vec![Envelope { from: from.to_owned(), ..envelope(text) }];
            let event = MemberEvent::Mail { mail, requests: [].into() };
            for effect in Stand::idle().at(0, Event::Member(event)) {
                let Effect::Stage(staged) = effect else { continue };
                let is_json = |envelope: &Envelope| envelope.text.contains("\"type\"");
                assert!(!staged.iter().any(is_json), "{text} from {from}: {staged:?}");
            }
        }
    }
}
