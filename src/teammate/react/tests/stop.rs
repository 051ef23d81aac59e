//! Commands whose task another member takes.

use super::*;
use model::board::task::Stopping;

const UNTIL: Timestamp = Timestamp(1_010_000);

/// The task as the lead has it stop.
fn wanted() -> Box<Task> {
    let mut task = task(3);
    task.state = model::board::task::TaskState::InProgress;
    task.extra.stopping =
        Some(Stopping { by: "team-lead".to_owned(), until: UNTIL, stopped: false });
    task
}

fn rechecked(found: Option<Box<Task>>) -> Event {
    Event::Rechecked(Ok(found))
}

/// A worker that has ended the command for the lead, and has confirmed it.
fn stopped() -> WorkerState {
    let mut state = busy();
    assert_eq!(react(&mut state, Event::Board, NOW), [Effect::Recheck(TaskId(3))]);
    let said = "── task #3 is taken by team-lead: ending it".to_owned();
    let effects = react(&mut state, rechecked(Some(wanted())), NOW);
    assert_eq!(effects, [Effect::Print(said), Effect::Cancel { grace_ms: 2000 }]);
    // The outcome of an ended command is no outcome of the task.
    let effects = react(&mut state, ended(143), NOW);
    assert_eq!(effects[1..], [Effect::ConfirmStopped(TaskId(3))]);
    assert_eq!(react(&mut state, Event::LetGo(Ok(())), NOW), [Effect::Recheck(TaskId(3))]);
    assert_eq!(react(&mut state, rechecked(Some(wanted())), NOW), []);
    state
}

#[test]
fn tk_11_a_command_goes_on_while_nobody_takes_its_task() {
    let mut state = busy();
    assert_eq!(react(&mut state, Event::Board, NOW), [Effect::Recheck(TaskId(3))]);
    assert_eq!(react(&mut state, rechecked(Some(task(3))), NOW), []);
    assert!(matches!(state.work, Work::Running(_)));
}

#[test]
fn tk_11_a_worker_goes_on_once_its_task_was_taken() {
    let mut state = stopped();
    assert_eq!(react(&mut state, Event::Board, NOW), [Effect::Recheck(TaskId(3))]);
    let effects = react(&mut state, rechecked(None), NOW);
    assert_eq!(effects, [Effect::Member(MemberEffect::ReadMail)]);
    assert_eq!(react(&mut state, mail(&[]), NOW), [Effect::Claim]);
    assert_eq!(state.work, Work::Idle);
}

/// The process that took the task was killed before it did.
#[test]
fn tk_11_a_worker_gives_back_a_task_that_nobody_takes() {
    let mut state = stopped();
    let late = UNTIL.plus_ms(2000);
    assert_eq!(state.next_tick(), Some(late));
    assert_eq!(react(&mut state, Event::Tick, UNTIL), []);
    assert_eq!(react(&mut state, Event::Tick, late), [Effect::GiveBack(TaskId(3), None)]);
    let effects = react(&mut state, Event::LetGo(Ok(())), late);
    assert_eq!(effects, [Effect::Member(MemberEffect::ReadMail)]);
}

/// Another program has given the task away or deleted it: nobody waits for a confirmation.
#[test]
fn tk_11_the_command_of_a_lost_task_is_ended() {
    let mut state = busy();
    react(&mut state, Event::Board, NOW);
    let effects = react(&mut state, rechecked(None), NOW);
    assert_eq!(effects[1..], [Effect::Cancel { grace_ms: 2000 }]);
    let effects = react(&mut state, ended(143), NOW);
    assert_eq!(effects[1..], [Effect::Member(MemberEffect::ReadMail)]);
    assert_eq!(state.work, Work::Idle);
}

/// A command that has ended by itself meanwhile has its outcome.
#[test]
fn tk_11_a_command_that_ends_first_is_recorded() {
    let mut state = busy();
    react(&mut state, Event::Board, NOW);
    let effects = react(&mut state, ended(0), NOW);
    assert_eq!(effects.len(), 1, "the check is outstanding: {effects:?}");
    let effects = react(&mut state, rechecked(Some(wanted())), NOW);
    assert!(matches!(effects[..], [Effect::EndTask { ending: TaskAction::Complete, .. }]));
}

/// The lead takes a task whose plan it has not answered, or has just approved: no command runs, and
/// none begins.
#[test]
fn tk_11_a_task_that_waits_for_its_approval_is_let_go_at_once() {
    for approved in [false, true] {
        let mut state = idle();
        let job = CurrentTask::new(&task(3), NOW);
        state.work = match approved {
            true => Work::Approved(job),
            false => Work::Proposed(job, "plan-1".to_owned()),
        };
        assert_eq!(react(&mut state, Event::Board, NOW), [Effect::Recheck(TaskId(3))]);
        let effects = react(&mut state, rechecked(Some(wanted())), NOW);
        assert_eq!(effects, [Effect::ConfirmStopped(TaskId(3))], "approved: {approved}");
    }
}
