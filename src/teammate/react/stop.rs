//! The end of a command whose task another member takes from this worker, or that ends with it.

use super::super::effect::WorkerEffect;
use super::super::event::OpFailure;
use super::super::state::{Outstanding, Work, WorkerState};
use model::board::task::Task;
use model::id::TaskId;
use model::time::human;

/// Time that the taker has beyond its own deadline, in milliseconds. After it the task is given
/// back: the taker was killed.
const LATE_MS: u64 = 2000;
/// Time between SIGTERM and SIGKILL for a command that another process waits for, in milliseconds.
pub(super) const CANCEL_MS: u64 = 2000;

/// Handles the task as it is now, while its command runs or after it was ended.
pub(super) fn handle_recheck(
    state: &mut WorkerState,
    result: Result<Option<Box<Task>>, OpFailure>,
) {
    let found = match result {
        Ok(found) => found,
        Err(failure) if !failure.lasting => {
            state.check_due = true;
            return state.complain(&failure);
        }
        Err(_) => None,
    };
    let stopping = found.as_ref().and_then(|task| task.extra.stopping.as_ref());
    match &mut state.work {
        Work::Running(job) => {
            let how = match (&found, stopping) {
                (Some(_), None) => return,
                (_, Some(stopping)) => format!("is taken by {}", stopping.by),
                (None, None) => "is no longer assigned to this worker".to_owned(),
            };
            state
                .effects
                .push(WorkerEffect::Print(format!("── task #{} {how}: ending it", job.id)));
            state.effects.push(WorkerEffect::Cancel { grace_ms: CANCEL_MS });
            state.work = Work::Stopping { job: job.clone(), asked: stopping.is_some() };
        }
        // Nothing of the command runs yet.
        Work::Proposed(job, _) | Work::Approved(job) if stopping.is_some() => {
            let until = state.now.plus_ms(LATE_MS);
            state.work = Work::Stopped { job: job.clone(), confirmed: false, until };
        }
        Work::Stopped { until, .. } if found.is_some() => {
            // Without the mark, the taker was refused.
            *until = stopping.map_or(state.now, |stopping| stopping.until.plus_ms(LATE_MS));
        }
        Work::Stopped { .. } => rest(state),
        Work::Idle
        | Work::Proposed(..)
        | Work::Approved(_)
        | Work::Stopping { .. }
        | Work::Ending(..) => {}
    }
}

/// Ends a command that has run for longer than it may. Its task fails.
pub(super) fn end_late_command(state: &mut WorkerState) {
    let Work::Running(job) = &mut state.work else { return };
    if job.limit().is_some_and(|limit| limit <= state.now) {
        job.is_late = true;
        let text = format!("── task #{} has reached its time limit: ending it", job.id);
        state
            .effects
            .extend([WorkerEffect::Print(text), WorkerEffect::Cancel { grace_ms: CANCEL_MS }]);
    }
}

/// Ends the running command of a worker that is asked to end, which agrees once its task is given
/// back.
pub(super) fn end_command(state: &mut WorkerState) {
    let (now, pending) = (state.now, state.pending.iter());
    let Some(grace_ms) = pending.map(|request| request.grace_s.saturating_mul(1000)).min() else {
        return;
    };
    match &mut state.work {
        Work::Running(job) => {
            let text = format!("── asked to end: ending task #{}", job.id);
            state.effects.extend([WorkerEffect::Print(text), WorkerEffect::Cancel { grace_ms }]);
            state.work = Work::Stopping { job: job.clone(), asked: false };
        }
        Work::Stopped { confirmed, until, .. } => (*confirmed, *until) = (true, now),
        Work::Idle
        | Work::Proposed(..)
        | Work::Approved(_)
        | Work::Stopping { .. }
        | Work::Ending(..) => {}
    }
}

/// Handles the exit of a command that was ended before its own end. Returns true if it was one.
pub(super) fn is_end(state: &mut WorkerState, task: TaskId) -> bool {
    let Work::Stopping { job, asked } = &state.work else { return false };
    if job.id != task {
        return false;
    }
    let spent = human(state.now.since(job.since));
    state.effects.push(WorkerEffect::Print(format!("── task #{task} was ended after {spent}")));
    if (*asked || !state.pending.is_empty()) && state.leaving.is_none() {
        let until = state.now.plus_ms(LATE_MS);
        state.work = Work::Stopped { job: job.clone(), confirmed: false, until };
    } else {
        rest(state);
    }
    true
}

/// Handles the result of a confirmation, or of giving the task back.
pub(super) fn handle_let_go(state: &mut WorkerState, result: Result<(), OpFailure>) {
    state.reported(Outstanding::LetGo);
    let Work::Stopped { confirmed, .. } = &mut state.work else { return };
    match result {
        Ok(()) if !*confirmed => {
            *confirmed = true;
            state.check_due = true;
        }
        Err(failure) if !failure.lasting => state.complain(&failure),
        Ok(()) | Err(_) => rest(state),
    }
}

/// Returns the next operation for a task that another member may take.
pub(super) fn next(state: &mut WorkerState) -> Option<(Outstanding, WorkerEffect)> {
    match &state.work {
        Work::Stopped { job, confirmed: false, .. } => {
            Some((Outstanding::LetGo, WorkerEffect::ConfirmStopped(job.id)))
        }
        Work::Proposed(job, _) | Work::Running(job) | Work::Stopped { job, .. }
            if state.check_due =>
        {
            state.check_due = false;
            Some((Outstanding::Recheck, WorkerEffect::Recheck(job.id)))
        }
        Work::Stopped { job, until, .. } if *until <= state.now => {
            let asked = state.pending.first();
            let reason = asked.map(|asked| {
                let why = asked.reason.as_deref().unwrap_or("its worker was asked to end");
                format!("its command was ended: {why}")
            });
            Some((Outstanding::LetGo, WorkerEffect::GiveBack(job.id, reason)))
        }
        _ => None,
    }
}

/// The task is no longer this worker's.
fn rest(state: &mut WorkerState) {
    state.work = Work::Idle;
    (state.mail_due, state.claim_due) = (true, true);
}
