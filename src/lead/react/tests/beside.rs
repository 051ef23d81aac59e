//! An agent lead beside the loop: it marks the messages that it gets as read itself.

use super::*;
use crate::state::Goal;

fn rests() -> Message {
    Message::IdleNotification(Default::default())
}

/// A lead with an agent lead and one member at work since `NOW`.
fn beside() -> State {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    state.has_agent_lead = true;
    let mut ada = record("ada", 1, "claude");
    ada.state = MemberState::Working;
    react(&mut state, Event::Members(vec![ada]), NOW);
    state
}

fn is_move(effect: &Effect) -> bool {
    matches!(effect, Effect::MoveOn { cause: Cause::Rest, .. })
}

#[test]
fn msg_03_message_for_both_is_handled_once_and_left_unread() {
    let mut state = beside();
    let first = react(&mut state, mail("ada", "m-1", &rests()), NOW);
    assert!(first.iter().any(is_move), "{first:?}");
    assert!(!first.iter().any(|effect| matches!(effect, Effect::Acknowledge { .. })), "{first:?}");
    // The member works again when the same message is read again.
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
fn idle_notification_older_than_the_work_is_ignored() {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    state.has_agent_lead = true;
    let mut ada = record("ada", 1, "claude");
    (ada.state, ada.state_since) = (MemberState::Working, NOW.plus_ms(1));
    react(&mut state, Event::Members(vec![ada]), NOW.plus_ms(2));
    let effects = react(&mut state, mail("ada", "m-1", &rests()), NOW.plus_ms(2));
    assert!(!effects.iter().any(is_move), "{effects:?}");
}

#[test]
fn messages_for_the_loop_alone_are_acknowledged() {
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
