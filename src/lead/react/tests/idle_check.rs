//! Screen checks of native members, on a simulated clock.

use super::*;

fn working(name: &str, profile: &str) -> MemberRecord {
    MemberRecord { state: MemberState::Working, state_since: NOW, ..record(name, 1, profile) }
}

fn looks(effects: &[Effect]) -> usize {
    effects.iter().filter(|effect| matches!(effect, Effect::CheckIdle { .. })).count()
}

fn lead(members: Vec<MemberRecord>) -> State {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Members(members), NOW);
    state
}

#[test]
fn msg_13_screen_of_a_native_member_is_checked_until_it_reports_idle() {
    let mut state = lead(vec![working("ann", "claude")]);
    let first = NOW.plus_ms(15_000);
    assert_eq!(state.next_tick(), Some(first), "the driver wakes for it");
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(14_999)), []);
    let check = [Effect::CheckIdle { name: who("ann"), incarnation: run(1) }];
    assert_eq!(react(&mut state, Event::Tick, first), check);
    assert_eq!(react(&mut state, Event::Tick, first.plus_ms(19_999)), []);
    assert_eq!(react(&mut state, Event::Tick, first.plus_ms(20_000)), check);
    // The next period of work restarts the schedule.
    let again = MemberRecord { state_since: first.plus_ms(70_000), ..working("ann", "claude") };
    react(&mut state, Event::Members(vec![again]), first.plus_ms(70_000));
    assert_eq!(state.next_tick(), Some(first.plus_ms(85_000)));
}

#[test]
fn only_working_native_members_have_their_screens_checked() {
    let rests = record("ann", 1, "claude");
    let told_by_us = working("bob", "codex");
    let mut starts = working("cid", "claude");
    starts.state = MemberState::Starting;
    let mut state = lead(vec![rests, told_by_us, starts]);
    assert_eq!(state.next_tick(), None);
    assert_eq!(looks(&react(&mut state, Event::Tick, NOW.plus_ms(1_000_000))), 0);
}

#[test]
fn member_that_reports_idle_in_time_is_not_checked() {
    let mut state = lead(vec![working("ann", "claude")]);
    react(
        &mut state,
        mail("ann", "m-1", &Message::IdleNotification(Default::default())),
        NOW.plus_ms(14_000),
    );
    assert_eq!(looks(&react(&mut state, Event::Tick, NOW.plus_ms(15_000))), 0);
}
