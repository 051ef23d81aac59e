//! Screen checks of native members, on a simulated clock.

use super::*;
use model::members::record::retrying_reason;

/// A member that was started long ago and works since now.
fn working(name: &str, profile: &str) -> MemberRecord {
    let mut record = record(name, 1, profile);
    record.asked_at = Timestamp(0);
    record.start.iter_mut().for_each(|start| start.at = Timestamp(0));
    MemberRecord { state: MemberState::Working, state_since: NOW, ..record }
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
    let (questions, first) = (NOW.plus_ms(5_000), NOW.plus_ms(15_000));
    assert_eq!(state.next_tick(), Some(questions), "the driver wakes for it");
    assert_eq!(react(&mut state, Event::Tick, NOW.plus_ms(4_999)), []);
    let check = [Effect::CheckIdle { name: who("ann"), incarnation: run(1) }];
    assert_eq!(react(&mut state, Event::Tick, questions), check);
    assert_eq!(state.next_tick(), Some(first));
    assert_eq!(react(&mut state, Event::Tick, first), check);
    assert_eq!(react(&mut state, Event::Tick, first.plus_ms(19_999)), []);
    assert_eq!(react(&mut state, Event::Tick, first.plus_ms(20_000)), check);
    // The next period of work restarts the schedule.
    let again = MemberRecord { state_since: first.plus_ms(70_000), ..working("ann", "claude") };
    react(&mut state, Event::Members(vec![again]), first.plus_ms(70_000));
    assert_eq!(state.next_tick(), Some(first.plus_ms(75_000)));
}

#[test]
fn only_native_members_that_are_up_have_their_screens_checked() {
    let told_by_us = working("bob", "codex");
    let mut starts = working("cid", "claude");
    starts.state = MemberState::Starting;
    let mut state = lead(vec![told_by_us, starts]);
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

/// PM-03, ST-04: a question of a first start is shown before the program reads its mail.
#[test]
fn pm_03_st_04_idle_native_member_is_checked_for_questions_in_its_first_minutes() {
    let mut state = lead(vec![record("ann", 1, "claude")]);
    let mut checks = 0;
    while let Some(at) = state.next_tick() {
        checks += looks(&react(&mut state, Event::Tick, at));
        assert!(checks < 40, "a member at rest costs nothing later");
    }
    assert_eq!(checks, 34, "each second for 30 s, then 50, 70, 90 and 110 s after its start");
}

/// ST-08: the end of the retries is seen soon.
#[test]
fn st_08_native_member_that_tries_again_is_checked_every_5_s() {
    let reason = Some(retrying_reason("529 refused · attempt 5/10"));
    let mut state = lead(vec![MemberRecord { reason, ..working("ann", "claude") }]);
    let first = NOW.plus_ms(5_000);
    assert_eq!(looks(&react(&mut state, Event::Tick, first)), 1);
    assert_eq!(state.next_tick(), Some(first.plus_ms(5_000)));
}

#[test]
fn pm_03_native_member_that_waits_for_a_person_is_checked_until_it_does_not() {
    let later = NOW.plus_ms(600_000);
    let asks = MemberRecord {
        reason: Some("blocked: dialog:trust (rule trust: Trust?)".to_owned()),
        ..record("ann", 1, "claude")
    };
    let mut state = lead(vec![asks]);
    assert_eq!(looks(&react(&mut state, Event::Tick, later)), 1);
    assert_eq!(state.next_tick(), Some(later.plus_ms(5_000)));
    react(&mut state, Event::Members(vec![record("ann", 1, "claude")]), later.plus_ms(1));
    assert_eq!(state.next_tick(), None);
}

/// PM-16: it does not report that a person has pressed Escape in its pane.
#[test]
fn pm_16_member_that_asked_for_a_permission_is_checked_often() {
    for (is_elsewhere, pause) in [(false, 1_000), (true, 5_000)] {
        let asks = working("ann", "claude");
        let asks = MemberRecord { state: MemberState::AwaitingPermission, is_elsewhere, ..asks };
        let mut state = lead(vec![asks]);
        for nth in 1..=3 {
            let at = NOW.plus_ms(nth * pause);
            assert_eq!(state.next_tick(), Some(at));
            assert_eq!(looks(&react(&mut state, Event::Tick, at)), 1);
        }
    }
}
