//! `isActive` of native members in the team file, on a simulated clock.

use super::*;

fn roster(is_active: Option<bool>) -> Event {
    Event::Roster([(MemberName::lead(), None), (who("ann"), is_active)].into())
}

fn lead(profile: &str, state: MemberState) -> State {
    let mut lead = State::new(Goal::Lead(Finish::Manual), Vec::new());
    react(&mut lead, Event::Requests(Vec::new()), NOW);
    let ann = MemberRecord { state, state_since: NOW, ..record("ann", 1, profile) };
    react(&mut lead, Event::Members(vec![ann]), NOW);
    lead
}

fn moves(effects: &[Effect]) -> Vec<Cause> {
    let of_move = |effect: &Effect| match effect {
        Effect::MoveOn { cause, .. } => Some(*cause),
        _ => None,
    };
    effects.iter().filter_map(of_move).collect()
}

/// ST-01: the record of a native member follows the team file once both have disagreed for a
/// second.
#[test]
fn st_01_record_follows_what_a_native_program_says() {
    let at = |ms| NOW.plus_ms(ms);
    for (state, says, expected) in [
        (MemberState::Idle, Some(true), Some(Cause::Work)),
        (MemberState::Working, Some(false), Some(Cause::Rest)),
        (MemberState::Idle, Some(false), None),
        (MemberState::Working, Some(true), None),
        (MemberState::Idle, None, None),
        (MemberState::AwaitingPermission, Some(false), None),
        (MemberState::ShutdownRequested, Some(false), None),
    ] {
        let mut state_of = lead("claude", state);
        assert_eq!(moves(&react(&mut state_of, roster(says), at(5_000))), [], "{state:?}");
        assert_eq!(moves(&react(&mut state_of, Event::Tick, at(5_999))), [], "{state:?}");
        if expected.is_some() {
            assert_eq!(state_of.next_tick(), Some(at(6_000)), "the driver wakes for it");
        }
        let moved = moves(&react(&mut state_of, Event::Tick, at(6_000)));
        assert_eq!(moved, expected.into_iter().collect::<Vec<_>>(), "{state:?} {says:?}");
        assert_eq!(moves(&react(&mut state_of, Event::Tick, at(9_000))), [], "once");
    }
}

/// ST-01: Claude Code 2.1.34 sends its idle notification before it changes the team file.
#[test]
fn st_01_idle_member_whose_team_file_is_late_stays_idle() {
    let mut state = lead("claude", MemberState::Working);
    react(&mut state, roster(Some(true)), NOW.plus_ms(1_000));
    let at = NOW.plus_ms(14_000);
    let idle = Message::IdleNotification(Default::default());
    assert_eq!(moves(&react(&mut state, mail("ann", "m-1", &idle), at)), [Cause::Rest]);
    react(&mut state, roster(Some(false)), at.plus_ms(100));
    assert_eq!(moves(&react(&mut state, Event::Tick, at.plus_ms(5_000))), []);
}

/// The wrapper or the worker of another program records its state itself.
#[test]
fn team_file_says_nothing_about_programs_that_are_not_native() {
    let mut state = lead("codex", MemberState::Idle);
    react(&mut state, roster(Some(true)), NOW);
    assert_eq!(moves(&react(&mut state, Event::Tick, NOW.plus_ms(60_000))), []);
}
