//! The worker's step: a pure function of its state, an event and the time.

pub(super) mod mail;
mod stop;

use super::effect::{MemberEffect, OutboundOp, WorkerEffect};
use super::event::{MemberEvent, OpFailure, WorkerEvent};
use super::state::{
    CurrentTask, LONG_PAUSE_MS, LastTask, Leaving, Outstanding, PAUSE_MS, Work, WorkerState,
    follow_clock, is_ended,
};
use model::board::task::{CommandOutcome, Task, TaskAction};
use model::id::TaskId;
use model::mail::protocol::{self, IdleNotification, Message, PlanApprovalRequest, TaskCompleted};
use model::members::lifecycle::Cause;
use model::text;
use model::time::{Timestamp, human};
use sys::signal;

/// Time until a worker exits although its cancelled command still runs, in milliseconds.
const LEAVE_MS: u64 = 6000;

/// Applies an event to the state and returns the effects to execute.
pub(crate) fn react(
    state: &mut WorkerState,
    event: WorkerEvent,
    now: Timestamp,
) -> Vec<WorkerEffect> {
    let own_times =
        [state.pause_until.as_mut(), state.leaving.as_mut().map(|leaving| &mut leaving.by)];
    follow_clock(&mut state.now, now, own_times.into_iter().flatten());
    match event {
        WorkerEvent::Member(MemberEvent::Mail { mail, requests }) => {
            state.reported(Outstanding::Mail);
            state.mail_due = false;
            state.pause_until = None;
            mail::read(state, mail, &requests);
        }
        WorkerEvent::Member(MemberEvent::NoMail(failure)) => {
            state.reported(Outstanding::Mail);
            state.complain(&failure);
            // A worker that cannot receive a shutdown request must not claim tasks. A lasting
            // failure ends with a change of the roster.
            state.mail_due = true;
            state.pause_until =
                Some(now.plus_ms(if failure.lasting { LONG_PAUSE_MS } else { PAUSE_MS }));
        }
        WorkerEvent::Member(MemberEvent::NotMarked(failure)) => {
            state.mail_due |= !failure.lasting;
            state.complain(&failure);
        }
        WorkerEvent::Member(MemberEvent::Requests(requests)) => {
            // A request that has ended needs no answer.
            state.pending.retain(|request| !is_ended(request, &requests));
        }
        WorkerEvent::Member(MemberEvent::Accepted(_)) => state.accepted = true,
        WorkerEvent::Board => (state.claim_due, state.check_due) = (true, true),
        WorkerEvent::Claimed(result) => handle_claim(state, result),
        WorkerEvent::Rechecked(result) => handle_recheck(state, result),
        WorkerEvent::CommandEnded { task, outcome } => handle_command_end(state, task, outcome),
        WorkerEvent::LetGo(result) => stop::handle_let_go(state, result),
        WorkerEvent::TaskEnded(result) => handle_task_end(state, result),
        WorkerEvent::Held => {
            state.reported(Outstanding::End);
            state.held = true;
        }
        WorkerEvent::Refused(reason) => handle_refusal(state, reason),
        WorkerEvent::Member(MemberEvent::Done(result)) => handle_done(state, result),
        WorkerEvent::Member(MemberEvent::Over(reason)) => {
            if state.leaving.is_none() {
                state.print(format!("{}: {reason}", state.who()));
            }
            leave(state, 0);
        }
        WorkerEvent::Signal(signal) => leave(state, signal.exit_code()),
        WorkerEvent::Tick => {}
    }
    advance(state);
    std::mem::take(&mut state.effects)
}

fn handle_claim(state: &mut WorkerState, result: Result<Option<Box<Task>>, OpFailure>) {
    state.reported(Outstanding::Claim);
    match result {
        Ok(Some(task)) if state.needs_approval => propose(state, &task),
        Ok(Some(task)) => begin(state, task),
        Ok(None) => {
            state.claim_due = false;
            rest(state);
        }
        Err(failure) => {
            state.claim_due = !failure.lasting;
            state.complain(&failure);
        }
    }
}

/// Asks the lead to approve the task.
fn propose(state: &mut WorkerState, task: &Task) {
    let (job, me) = (CurrentTask::new(task, state.now), &state.me);
    let request_id = protocol::plan_request_id(&me.name, &me.team, state.now);
    let dir = task.extra.cwd.as_deref().map(|dir| format!("\n\nin {dir}")).unwrap_or_default();
    let plan = format!("# Run task #{}: {}\n\n    {}{dir}\n", task.id, task.subject, job.command);
    state.print(format!("{}: waiting for approval of {}", state.who(), job.title()));
    state.send(Message::PlanApprovalRequest(PlanApprovalRequest {
        from: Some(state.me.name.to_string()),
        timestamp: Some(state.now.iso()),
        plan_file_path: None,
        plan_content: Some(plan),
        request_id: request_id.clone(),
    }));
    state.idle_reported = false;
    state.check_due = false;
    state.work = Work::Proposed(job, request_id);
}

fn handle_recheck(state: &mut WorkerState, result: Result<Option<Box<Task>>, OpFailure>) {
    state.reported(Outstanding::Recheck);
    let is_taken = matches!(&result, Ok(Some(task)) if task.extra.stopping.is_some());
    let job = match &state.work {
        Work::Approved(job) if !is_taken => job,
        _ => return stop::handle_recheck(state, result),
    };
    match result {
        Ok(Some(task)) => return begin(state, task),
        Err(failure) if !failure.lasting => return state.complain(&failure),
        Ok(None) | Err(_) => {
            state.print(format!("── task #{} is no longer assigned to this worker", job.id));
        }
    }
    (state.work, state.claim_due) = (Work::Idle, true);
}

fn begin(state: &mut WorkerState, task: Box<Task>) {
    let job = CurrentTask::new(&task, state.now);
    let subject = text::short(&job.subject, 120);
    state.print(format!("── task #{} · {subject}: {}", job.id, job.command));
    state.check_due = false;
    state.effects.push(WorkerEffect::Run(task));
    state.outbound.push_back(OutboundOp::MoveOn(Cause::Work, Some(job.title())));
    state.idle_reported = false;
    state.work = Work::Running(job);
}

/// Becomes idle. The lead is notified only if the worker was busy before.
fn rest(state: &mut WorkerState) {
    if std::mem::replace(&mut state.idle_reported, true) {
        return;
    }
    let last = state.last.take();
    let failure = last.as_ref().and_then(|last| last.failure.clone());
    let status = if failure.is_some() { "failed" } else { "resolved" };
    let notice = IdleNotification {
        completed_status: last.as_ref().map(|_| status.to_owned()),
        completed_task_id: last.map(|last| last.id.to_string()),
        ..state.me.idle_notice(failure, state.now)
    };
    state.outbound.push_back(OutboundOp::MoveOn(Cause::Rest, None));
    state.send(Message::IdleNotification(notice));
    state.print(format!("{}: waiting for tasks", state.who()));
}

fn handle_command_end(state: &mut WorkerState, task: TaskId, mut outcome: CommandOutcome) {
    if stop::is_end(state, task) {
        return;
    }
    let Work::Running(job) = &state.work else { return };
    if job.id != task {
        return;
    }
    if job.is_late && outcome.exit_code == Some(0) {
        (outcome.exit_code, outcome.signal) = (None, Some(signal::TERM));
    }
    let spent = human(outcome.elapsed_ms);
    let ran = outcome.exit_code.is_some() || outcome.signal.is_some();
    let how = match failure_of(&outcome) {
        _ if state.leaving.is_some() => {
            format!("interrupted after {}", human(state.now.since(job.since)))
        }
        None => format!("completed in {spent}"),
        Some(failure) if ran => format!("failed: {failure} after {spent}"),
        Some(reason) => format!("failed: {reason}"),
    };
    state.effects.push(WorkerEffect::Print(format!("── task #{task} {how}")));
    // An interrupted task has not failed: the process that ends this run releases it.
    state.work =
        if state.leaving.is_some() { Work::Idle } else { Work::Ending(job.clone(), outcome) };
}

/// Returns the reason if the command failed.
fn failure_of(outcome: &CommandOutcome) -> Option<String> {
    match (outcome.exit_code, outcome.signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        (None, None) => Some(outcome.tail.clone()),
    }
}

fn handle_task_end(state: &mut WorkerState, result: Result<(), OpFailure>) {
    state.reported(Outstanding::End);
    state.held = false;
    let Work::Ending(job, outcome) = &state.work else { return };
    let (job, failure) = (job.clone(), failure_of(outcome));
    match result {
        Ok(()) => {
            if failure.is_none() {
                state.send(Message::TaskCompleted(TaskCompleted {
                    from: Some(state.me.name.to_string()),
                    task_id: job.id.to_string(),
                    task_subject: Some(job.subject.clone()),
                    timestamp: Some(state.now.iso()),
                }));
            }
            state.last = Some(LastTask { id: job.id, failure });
        }
        // The task was deleted or reassigned in the meantime.
        Err(lost) if lost.lasting => {
            let text =
                format!("task #{} ended, but its result was not recorded: {}", job.id, lost.text);
            state.print(text.clone());
            state.effects.push(WorkerEffect::Member(MemberEffect::Warn(text)));
        }
        Err(late) => return state.complain(&late),
    }
    state.work = Work::Idle;
    // Check for a shutdown request before claiming more work.
    state.mail_due = true;
    state.claim_due = true;
}

/// Handles a hook's refusal after a successful command: the worker cannot improve the result, so
/// the task fails.
fn handle_refusal(state: &mut WorkerState, reason: String) {
    state.held = false;
    let Work::Ending(_, outcome) = &mut state.work else { return };
    state.effects.push(WorkerEffect::Print(reason.clone()));
    *outcome = CommandOutcome { exit_code: None, signal: None, tail: reason, ..*outcome };
}

fn handle_done(state: &mut WorkerState, result: Result<(), OpFailure>) {
    state.reported(Outstanding::OutboundOp);
    match result {
        Ok(()) => {
            state.complaint = None;
            state.outbound.pop_front();
        }
        Err(failure) => {
            state.complain(&failure);
            if failure.lasting {
                state.outbound.pop_front();
                state.effects.push(WorkerEffect::Member(MemberEffect::Warn(failure.text)));
            }
        }
    }
}

/// Exits without a shutdown request, after cancelling a running command.
fn leave(state: &mut WorkerState, code: i32) {
    if state.leaving.is_some() {
        return;
    }
    state.leaving = Some(Leaving { code, by: state.now.plus_ms(LEAVE_MS) });
    if matches!(state.work, Work::Running(_) | Work::Stopping { .. }) {
        state.effects.push(WorkerEffect::Cancel { grace_ms: stop::CANCEL_MS });
    }
}

/// Chooses the next effect; at most one operation is outstanding.
fn advance(state: &mut WorkerState) {
    if state.end.is_some() {
        return;
    }
    if let Some(leaving) = state.leaving {
        let runs = matches!(state.work, Work::Running(_) | Work::Stopping { .. });
        state.end = (!runs || leaving.by <= state.now).then_some(leaving.code);
        return;
    }
    stop::end_late_command(state);
    stop::end_command(state);
    answer_requests(state);
    if state.asked.is_some() || state.pause_until.is_some_and(|until| state.now < until) {
        return;
    }
    state.pause_until = None;
    if let Some((asked, effect)) = next(state) {
        state.asked = Some(asked);
        state.effects.push(effect);
    }
}

fn next(state: &mut WorkerState) -> Option<(Outstanding, WorkerEffect)> {
    if let Some(op) = state.outbound.front() {
        return Some((Outstanding::OutboundOp, WorkerEffect::Member(MemberEffect::Do(op.clone()))));
    }
    if state.agreed {
        state.end = Some(0);
        return None;
    }
    if let Work::Ending(job, outcome) = &state.work
        && !state.held
    {
        let ending =
            if failure_of(outcome).is_none() { TaskAction::Complete } else { TaskAction::Fail };
        return Some((
            Outstanding::End,
            WorkerEffect::EndTask {
                task: job.id,
                ending,
                outcome: outcome.clone(),
                reason: job.lateness(),
            },
        ));
    }
    if state.mail_due {
        return Some((Outstanding::Mail, WorkerEffect::Member(MemberEffect::ReadMail)));
    }
    if let Work::Approved(job) = &state.work {
        return Some((Outstanding::Recheck, WorkerEffect::Recheck(job.id)));
    }
    if let Some(next) = stop::next(state) {
        return Some(next);
    }
    let free = state.work == Work::Idle && state.accepted;
    (free && state.claim_due).then_some((Outstanding::Claim, WorkerEffect::Claim))
}

/// Agrees to shutdown requests once no command runs.
fn answer_requests(state: &mut WorkerState) {
    match &state.work {
        // The outstanding claim may yield a task, which makes the worker busy.
        Work::Idle if state.asked == Some(Outstanding::Claim) => {}
        Work::Idle | Work::Proposed(..) | Work::Approved(_) => {
            for request in std::mem::take(&mut state.pending) {
                state.send(state.me.agreement(&request, state.now));
                state.agreed = true;
            }
        }
        Work::Running(_) | Work::Stopping { .. } | Work::Stopped { .. } | Work::Ending(..) => {}
    }
}

#[cfg(test)]
mod tests;
