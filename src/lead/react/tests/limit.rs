//! Usage limits: attempts to continue, and the report after the last one.

use super::*;
use model::members::rate_limit::{LimitHit, RateLimit, ResumePolicy};

const HOUR_MS: u64 = 3_600_000;

fn limited(limit: RateLimit) -> MemberRecord {
    MemberRecord { rate_limit: Some(limit), ..record("ann", 1, "codex") }
}

/// A refusal an hour before the limit ends.
fn refused(earlier: Option<&RateLimit>, at: Timestamp) -> RateLimit {
    let hit = LimitHit { said: "limit".to_owned(), until: Some(at.plus_ms(HOUR_MS)) };
    RateLimit::after(earlier, &hit, at)
}

fn leading_with(attempts: u32, limit: RateLimit) -> (State, Vec<Effect>) {
    let mut state = State::new(Goal::Lead(Finish::Manual), Vec::new());
    state.resume_limited = ResumePolicy { attempts };
    react(&mut state, Event::Requests(Vec::new()), NOW);
    react(&mut state, Event::Members(vec![record("ann", 1, "codex")]), NOW);
    let effects = react(&mut state, Event::Members(vec![limited(limit)]), NOW);
    (state, effects)
}

fn resumes() -> Effect {
    Effect::ResumeLimited { name: who("ann"), incarnation: run(1) }
}

fn reports() -> Effect {
    Effect::ReportLimit { name: who("ann"), incarnation: run(1) }
}

#[test]
fn limited_member_is_asked_to_continue_once_the_limit_has_ended() {
    let limit = refused(None, NOW);
    let (mut state, effects) = leading_with(2, limit.clone());
    assert_eq!(effects, []);
    let due = limit.next_attempt();
    assert_eq!(state.next_tick(), Some(due));
    assert_eq!(react(&mut state, Event::Tick, due.minus_ms(1)), []);
    assert_eq!(react(&mut state, Event::Tick, due), [resumes()]);
    assert_eq!(react(&mut state, Event::Tick, due), [], "the record is still the old one");
    let answers = MemberRecord { rate_limit: None, ..limited(limit) };
    react(&mut state, Event::Members(vec![answers]), due);
    assert_eq!(state.next_tick(), None);
}

#[test]
fn attempts_to_continue_are_bounded_and_then_reported() {
    let (mut state, _) = leading_with(2, refused(None, NOW));
    let (mut at, mut limit) = (NOW, refused(None, NOW));
    for _ in 0..2 {
        at = limit.next_attempt();
        assert_eq!(react(&mut state, Event::Tick, at), [resumes()]);
        limit = RateLimit { attempts: limit.attempts + 1, resumed_at: Some(at), ..limit };
        limit = refused(Some(&limit), at);
        let effects = react(&mut state, Event::Members(vec![limited(limit.clone())]), at);
        assert_eq!(effects, if limit.attempts == 2 { vec![reports()] } else { Vec::new() });
    }
    assert_eq!(state.next_tick(), None);
    let reported = RateLimit { is_reported: true, ..limit };
    assert_eq!(react(&mut state, Event::Members(vec![limited(reported)]), at), []);
}

#[test]
fn member_that_does_not_react_to_the_last_attempt_is_reported() {
    let limit = RateLimit { attempts: 1, resumed_at: Some(NOW), ..refused(None, NOW) };
    let (mut state, effects) = leading_with(1, limit.clone());
    assert_eq!(effects, []);
    let due = limit.next_attempt();
    assert_eq!(state.next_tick(), Some(due));
    assert_eq!(react(&mut state, Event::Tick, due), [reports()]);
}

#[test]
fn limit_is_reported_at_once_if_attempts_are_off() {
    assert_eq!(leading_with(0, refused(None, NOW)).1, [reports()]);
}

/// Time at the limit counts neither as a hang nor as silence.
#[test]
fn limited_member_is_not_unresponsive() {
    let given = |task_state| {
        let owner = Some("ann".to_owned());
        let task = Task { owner, state: task_state, ..Task::new(TaskId(1), "s", "d") };
        Event::Board(Board { tasks: [(TaskId(1), task)].into(), ..Board::default() })
    };
    for task_state in [TaskState::Pending, TaskState::InProgress] {
        for is_limited in [false, true] {
            let (mut state, _) = leading_with(9, refused(None, NOW));
            state.hang = Some(crate::state::HangRule::new(Default::default(), 60));
            let record = match is_limited {
                true => limited(refused(None, NOW)),
                false => record("ann", 1, "codex"),
            };
            react(&mut state, Event::Members(vec![record]), NOW);
            react(&mut state, given(task_state), NOW);
            let effects = react(&mut state, Event::Tick, NOW.plus_ms(HOUR_MS));
            assert_eq!(effects.is_empty(), is_limited, "{task_state:?} {effects:?}");
        }
    }
}
