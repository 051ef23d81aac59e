//! Time limits of tasks and of the team.

use super::*;

/// A board with a task in progress of `owner` and one that has failed if `failed` is set.
fn board(owner: &str, failed: bool) -> Event {
    let mut running = Task::new(TaskId(1), "review", "");
    (running.state, running.owner) = (TaskState::InProgress, Some(owner.to_owned()));
    (running.extra.claimed_at, running.extra.timeout_s) = (Some(NOW), Some(20));
    let mut other = Task::new(TaskId(2), "test", "");
    other.state = if failed { TaskState::Failed } else { TaskState::Pending };
    let tasks = [running, other].map(|task| (task.id, task));
    Event::Board(Board { tasks: tasks.into(), ..Board::default() })
}

fn lead(settings: Settings) -> State {
    let members = [record("ann", 1, "codex"), record("bob", 2, "worker")];
    let mut state = State::new(Goal::Lead(Finish::TasksDone), Vec::new());
    state.settings = Some(settings);
    react(&mut state, Event::Members(members.to_vec()), NOW);
    state
}

fn ends(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::AskShutdown { .. }))
}

#[test]
fn tk_19_task_of_an_agent_fails_at_its_time_limit_and_a_worker_limits_its_own() {
    for (owner, fails) in [("ann", true), ("bob", false)] {
        let mut state = lead(Settings::by_hand(8));
        react(&mut state, board(owner, false), NOW);
        let late = NOW.plus_ms(20_000);
        assert_eq!(state.next_tick() == Some(late), fails, "{owner}");
        let expected = [Effect::FailLate(TaskId(1))];
        let is_expected = |effects: &[Effect]| effects.contains(&expected[0]);
        assert!(!is_expected(&react(&mut state, Event::Tick, late.minus_ms(1))));
        assert_eq!(is_expected(&react(&mut state, Event::Tick, late)), fails, "{owner}");
        assert!(!is_expected(&react(&mut state, Event::Tick, late)), "once");
    }
}

#[test]
fn tk_19_team_ends_at_its_time_limit() {
    let mut state = lead(Settings { timeout_s: Some(15), ..Settings::by_hand(8) });
    react(&mut state, board("bob", false), NOW);
    let limit = NOW.plus_ms(15_000);
    react(&mut state, Event::Tick, limit.minus_ms(2));
    assert_eq!(state.next_tick(), Some(limit));
    assert!(!ends(&react(&mut state, Event::Tick, limit.minus_ms(1))));
    assert!(ends(&react(&mut state, Event::Tick, limit)));
    let due = Some(limit.plus_ms(30_500));
    assert_eq!(state.phase, Phase::Stopping { end: LeadEnd::TimedOut, force: false, due });
}

#[test]
fn tk_19_failed_task_ends_a_team_that_fails_fast() {
    for (fail_fast, failed) in [(true, true), (true, false), (false, true)] {
        let mut state = lead(Settings { fail_fast, ..Settings::by_hand(8) });
        let effects = react(&mut state, board("bob", failed), NOW);
        assert_eq!(ends(&effects), fail_fast && failed, "{fail_fast}, {failed}");
    }
}
