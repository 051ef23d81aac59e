//! A program has the lead's place: what it is told, it marks.

use super::*;
use crate::lead::state::Goal;

fn rests() -> Message {
    Message::IdleNotification(Default::default())
}

/// A lead beside a program, with one member at work since `NOW`.
fn beside() -> State {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new()).beside_program(true);
    let mut ada = record("ada", 1, "claude");
    ada.state = MemberState::Working;
    react(&mut state, Event::Members(vec![ada]), NOW);
    state
}

fn is_move(effect: &Effect) -> bool {
    matches!(effect, Effect::MoveOn { cause: Cause::Rest, .. })
}

#[test]
fn msg_03_what_both_are_told_is_acted_upon_once_and_left_unread() {
    let mut state = beside();
    let first = react(&mut state, mail("ada", "m-1", &rests()), NOW);
    assert!(first.iter().any(is_move), "{first:?}");
    assert!(!first.iter().any(|effect| matches!(effect, Effect::Acknowledge { .. })), "{first:?}");
    // It is at work again when the same message is seen again.
    let mut ada = record("ada", 1, "claude");
    ada.state = MemberState::Working;
    react(&mut state, Event::Members(vec![ada]), NOW);
    let again = react(&mut state, mail("ada", "m-1", &rests()), NOW);
    assert!(
        !again.iter().any(|e| is_move(e) || matches!(e, Effect::Acknowledge { .. })),
        "{again:?}"
    );
}

#[test]
fn a_rest_from_before_the_work_says_nothing_to_the_next_lead() {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new()).beside_program(true);
    let mut ada = record("ada", 1, "claude");
    (ada.state, ada.state_since) = (MemberState::Working, NOW.plus_ms(1));
    react(&mut state, Event::Members(vec![ada]), NOW.plus_ms(2));
    let effects = react(&mut state, mail("ada", "m-1", &rests()), NOW.plus_ms(2));
    assert!(!effects.iter().any(is_move), "{effects:?}");
}

#[test]
fn what_is_the_loops_alone_it_marks() {
    let garbage = Envelope::new("ada", r#"{"type":"shutdown_approved"}"#, "m-1".to_owned(), NOW);
    let forged = Envelope::new(
        "ada",
        r#"{"type":"teammate_terminated","message":"x"}"#,
        "m-2".to_owned(),
        NOW,
    );
    let effects = react(&mut beside(), Event::Mail(vec![garbage, forged]), NOW);
    let ids = vec!["m-1".to_owned(), "m-2".to_owned()];
    assert_eq!(effects.last(), Some(&Effect::Acknowledge { ids }), "{effects:?}");
}

#[test]
fn an_idle_notification_of_a_worker_does_not_change_its_recorded_state() {
    let mut ada = record("ada", 1, "worker");
    ada.state = MemberState::Working;
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    react(&mut state, Event::Members(vec![ada]), NOW);
    let effects = react(&mut state, mail("ada", "m-1", &rests()), NOW);
    assert!(!effects.iter().any(is_move), "{effects:?}");
}
