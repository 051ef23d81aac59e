//! A worker's decisions: one pure step over what it knows, what happened, and the time (invariant 7).

pub(super) mod mail;

use super::effect::{Effect, Errand};
use super::event::{Event, Failure, Requests};
use super::state::{Asked, Finished, Job, Leaving, Pending, State, Work};
use crate::model::id::TaskId;
use crate::model::lifecycle::Cause;
use crate::model::protocol::{
    self, IdleNotification, Message, PlanApprovalRequest, PlanApprovalResponse, ShutdownApproved,
    ShutdownRejected, ShutdownStatus, TaskCompleted,
};
use crate::model::task::{Outcome, Task};
use crate::model::text;
use crate::model::time::{Timestamp, human};
use crate::ops::Ending;

/// After a failure nothing is tried for this long.
const PAUSE_MS: u64 = 1000;
/// The same when the mail cannot be had at all.
const LONG_PAUSE_MS: u64 = 60_000;
/// How long a cancelled command has to be gone.
const LEAVE_MS: u64 = 6000;

/// Takes in what happened and says what is to be done.
pub(crate) fn react(state: &mut State, event: Event, now: Timestamp) -> Vec<Effect> {
    let mut effects = Vec::new();
    match event {
        Event::Mail { mail, requests } => {
            reported(state, Asked::Mail);
            state.mail_due = false;
            state.pause_until = None;
            mail::read(state, mail, &requests, now, &mut effects);
        }
        Event::NoMail(failure) => {
            reported(state, Asked::Mail);
            complain(state, &failure, now, &mut effects);
            // Who cannot be told to end takes no work. What lasts is over when the roster says so.
            state.mail_due = true;
            state.pause_until =
                Some(now.plus_ms(if failure.lasting { LONG_PAUSE_MS } else { PAUSE_MS }));
        }
        Event::NotMarked(failure) => {
            state.mail_due |= !failure.lasting;
            complain(state, &failure, now, &mut effects);
        }
        Event::Requests(requests) => see_requests(state, &requests),
        Event::Accepted => state.accepted = true,
        Event::Board => state.claim_due = true,
        Event::Claimed(result) => see_claim(state, result, now, &mut effects),
        Event::Rechecked(result) => see_recheck(state, result, now, &mut effects),
        Event::CommandEnded { task, outcome } => {
            see_command_end(state, task, outcome, now, &mut effects)
        }
        Event::TaskEnded(result) => see_task_end(state, result, now, &mut effects),
        Event::Held => {
            reported(state, Asked::End);
            state.held = true;
        }
        Event::Refused(said) => see_refusal(state, said, &mut effects),
        Event::Done(result) => see_done(state, result, now, &mut effects),
        Event::Over(reason) => {
            if state.leaving.is_none() {
                effects.push(Effect::Print(format!("{}: {reason}", state.who())));
            }
            leave(state, 0, now, &mut effects);
        }
        Event::Signal(signal) => leave(state, signal.exit_code(), now, &mut effects),
        Event::Tick => {}
    }
    settle(state, now, &mut effects);
    effects
}

fn reported(state: &mut State, what: Asked) {
    if state.asked == Some(what) {
        state.asked = None;
    }
}

/// Says what failed, once, and waits a little before anything is tried again.
fn complain(state: &mut State, failure: &Failure, now: Timestamp, effects: &mut Vec<Effect>) {
    if !failure.lasting {
        state.pause_until = Some(now.plus_ms(PAUSE_MS));
    }
    if state.complaint.as_ref() != Some(&failure.text) {
        state.complaint = Some(failure.text.clone());
        effects.push(Effect::Print(format!("{}: {}", state.who(), failure.text)));
    }
}

/// A request that somebody else has brought to its end needs no answer any more.
fn see_requests(state: &mut State, requests: &Requests) {
    state.pending.retain(|pending| !pending.is_ended(requests));
}

fn see_claim(
    state: &mut State,
    result: Result<Option<Box<Task>>, Failure>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    reported(state, Asked::Claim);
    match result {
        Ok(Some(task)) if state.needs_approval => propose(state, &task, now, effects),
        Ok(Some(task)) => begin(state, task, now, effects),
        Ok(None) => {
            state.claim_due = false;
            rest(state, now, effects);
        }
        Err(failure) => {
            state.claim_due = !failure.lasting;
            complain(state, &failure, now, effects);
        }
    }
}

/// Asks the lead whether the task may be run.
fn propose(state: &mut State, task: &Task, now: Timestamp, effects: &mut Vec<Effect>) {
    let (job, me) = (Job::of(task, now), &state.me);
    let request_id = protocol::plan_request_id(&me.name, &me.team, now);
    let dir = task.extra.cwd.as_deref().map(|dir| format!("\n\nin {dir}")).unwrap_or_default();
    let plan = format!("# Run task #{}: {}\n\n    {}{dir}\n", task.id, task.subject, job.command);
    effects.push(Effect::Print(format!(
        "{}: waiting for approval of {}",
        state.who(),
        job.title()
    )));
    state.errands.push_back(Errand::Say(Box::new(Message::PlanApprovalRequest(
        PlanApprovalRequest {
            from: Some(state.me.name.to_string()),
            timestamp: Some(now.iso()),
            plan_file_path: None,
            plan_content: Some(plan),
            request_id: request_id.clone(),
        },
    ))));
    state.rested = false;
    state.work = Work::Proposed(job, request_id);
}

/// Handles the answer to a plan: an approved task is begun if it is still this worker's, a rejected one has failed.
fn hear_plan(state: &mut State, answer: &PlanApprovalResponse, effects: &mut Vec<Effect>) {
    let Work::Proposed(job, id) = &state.work else { return };
    if *id != answer.request_id {
        return;
    }
    if answer.approved {
        state.work = Work::Approved(job.clone());
        return;
    }
    let why = answer
        .feedback
        .as_deref()
        .map(|why| format!(": {}", text::short(why, 500)))
        .unwrap_or_default();
    let tail = format!("the lead rejected the plan{why}");
    effects.push(Effect::Print(format!("── task #{}: {tail}", job.id)));
    let outcome = Outcome { exit_code: None, signal: None, tail, elapsed_ms: 0 };
    state.work = Work::Ending(job.clone(), outcome);
}

fn see_recheck(
    state: &mut State,
    result: Result<Option<Box<Task>>, Failure>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    reported(state, Asked::Recheck);
    let Work::Approved(job) = &state.work else { return };
    match result {
        Ok(Some(task)) => return begin(state, task, now, effects),
        Err(failure) if !failure.lasting => return complain(state, &failure, now, effects),
        Ok(None) | Err(_) => {
            effects.push(Effect::Print(format!(
                "── task #{} is no longer assigned to this worker",
                job.id
            )));
        }
    }
    (state.work, state.claim_due) = (Work::Idle, true);
}

fn begin(state: &mut State, task: Box<Task>, now: Timestamp, effects: &mut Vec<Effect>) {
    let job = Job::of(&task, now);
    let subject = text::short(&job.subject, 120);
    effects.push(Effect::Print(format!("── task #{} · {subject}: {}", job.id, job.command)));
    effects.push(Effect::Run(task));
    state.errands.push_back(Errand::MoveOn(Cause::Work, Some(job.title())));
    state.rested = false;
    state.work = Work::Running(job);
}

/// There is nothing to do; the lead is told when there was before.
fn rest(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if std::mem::replace(&mut state.rested, true) {
        return;
    }
    let last = state.last.take();
    let failure = last.as_ref().and_then(|last| last.failure.clone());
    let word = |good: &str| if failure.is_some() { "failed".to_owned() } else { good.to_owned() };
    let notice = IdleNotification {
        from: Some(state.me.name.to_string()),
        timestamp: Some(now.iso()),
        idle_reason: Some(word("available")),
        completed_status: last.as_ref().map(|_| word("success")),
        completed_task_id: last.map(|last| last.id.to_string()),
        failure_reason: failure.clone(),
        ..IdleNotification::default()
    };
    state.errands.push_back(Errand::MoveOn(Cause::Rest, None));
    state.errands.push_back(Errand::Say(Box::new(Message::IdleNotification(notice))));
    effects.push(Effect::Print(format!("{}: waiting for tasks", state.who())));
}

fn see_command_end(
    state: &mut State,
    task: TaskId,
    outcome: Outcome,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    let Work::Running(job) = &state.work else { return };
    if job.id != task {
        return;
    }
    let spent = human(outcome.elapsed_ms);
    let ran = outcome.exit_code.is_some() || outcome.signal.is_some();
    let how = match failure_of(&outcome) {
        _ if state.leaving.is_some() => {
            format!("interrupted after {}", human(now.since(job.since)))
        }
        None => format!("completed in {spent}"),
        Some(failure) if ran => format!("failed: {failure} after {spent}"),
        Some(reason) => format!("failed: {reason}"),
    };
    effects.push(Effect::Print(format!("── task #{task} {how}")));
    // Whoever ends this run gives the task back: it has not failed.
    state.work =
        if state.leaving.is_some() { Work::Idle } else { Work::Ending(job.clone(), outcome) };
}

/// What went wrong with the command, if so.
fn failure_of(outcome: &Outcome) -> Option<String> {
    match (outcome.exit_code, outcome.signal) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("exit code {code}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        (None, None) => Some(outcome.tail.clone()),
    }
}

fn see_task_end(
    state: &mut State,
    result: Result<(), Failure>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    reported(state, Asked::End);
    state.held = false;
    let Work::Ending(job, outcome) = &state.work else { return };
    let (job, failure) = (job.clone(), failure_of(outcome));
    match result {
        Ok(()) => {
            if failure.is_none() {
                let news = TaskCompleted {
                    from: Some(state.me.name.to_string()),
                    task_id: job.id.to_string(),
                    task_subject: Some(job.subject.clone()),
                    timestamp: Some(now.iso()),
                };
                state.errands.push_back(Errand::Say(Box::new(Message::TaskCompleted(news))));
            }
            state.last = Some(Finished { id: job.id, failure });
        }
        // The task has vanished or changed hands meanwhile.
        Err(lost) if lost.lasting => {
            let text =
                format!("task #{} ended, but its result was not recorded: {}", job.id, lost.text);
            effects.push(Effect::Print(text.clone()));
            effects.push(Effect::Warn(text));
        }
        Err(late) => return complain(state, &late, now, effects),
    }
    state.work = Work::Idle;
    // A request to end may be waiting: it is heard before more work is taken.
    state.mail_due = true;
    state.claim_due = true;
}

/// The command did well, and somebody finds that not enough: a worker cannot go on with it, so that the task has failed.
fn see_refusal(state: &mut State, said: String, effects: &mut Vec<Effect>) {
    state.held = false;
    let Work::Ending(_, outcome) = &mut state.work else { return };
    effects.push(Effect::Print(said.clone()));
    *outcome =
        Outcome { exit_code: None, signal: None, tail: said, elapsed_ms: outcome.elapsed_ms };
}

fn see_done(
    state: &mut State,
    result: Result<(), Failure>,
    now: Timestamp,
    effects: &mut Vec<Effect>,
) {
    reported(state, Asked::Errand);
    match result {
        Ok(()) => {
            state.complaint = None;
            state.errands.pop_front();
        }
        Err(failure) => {
            complain(state, &failure, now, effects);
            if failure.lasting {
                state.errands.pop_front();
                effects.push(Effect::Warn(failure.text));
            }
        }
    }
}

/// Goes without having been asked; a running command is ended first.
fn leave(state: &mut State, code: i32, now: Timestamp, effects: &mut Vec<Effect>) {
    if state.leaving.is_some() {
        return;
    }
    state.leaving = Some(Leaving { code, by: now.plus_ms(LEAVE_MS) });
    if matches!(state.work, Work::Running(_)) {
        effects.push(Effect::Cancel);
    }
}

/// What is to be done next, one thing at a time.
fn settle(state: &mut State, now: Timestamp, effects: &mut Vec<Effect>) {
    if state.end.is_some() {
        return;
    }
    if let Some(leaving) = state.leaving {
        let runs = matches!(state.work, Work::Running(_));
        state.end = (!runs || leaving.by <= now).then_some(leaving.code);
        return;
    }
    answer_requests(state, now);
    // A clock that was set back must not make a pause of a year.
    let pauses = |until: Timestamp| now < until && until.since(now) <= LONG_PAUSE_MS;
    if state.asked.is_some() || state.pause_until.is_some_and(pauses) {
        return;
    }
    state.pause_until = None;
    if let Some((asked, effect)) = next(state) {
        state.asked = Some(asked);
        effects.push(effect);
    }
}

fn next(state: &mut State) -> Option<(Asked, Effect)> {
    if let Some(errand) = state.errands.front() {
        return Some((Asked::Errand, Effect::Do(errand.clone())));
    }
    if state.agreed {
        state.end = Some(0);
        return None;
    }
    if let Work::Ending(job, outcome) = &state.work
        && !state.held
    {
        let ending = if failure_of(outcome).is_none() { Ending::Completed } else { Ending::Failed };
        return Some((
            Asked::End,
            Effect::EndTask { task: job.id, ending, outcome: outcome.clone() },
        ));
    }
    if state.mail_due {
        return Some((Asked::Mail, Effect::LookAtMail));
    }
    if let Work::Approved(job) = &state.work {
        return Some((Asked::Recheck, Effect::Recheck(job.id)));
    }
    let free = state.work == Work::Idle && state.accepted;
    (free && state.claim_due).then_some((Asked::Claim, Effect::Claim))
}

/// An idle worker agrees. A busy one waits as long as it may, since the task can end in time, and then says no.
fn answer_requests(state: &mut State, now: Timestamp) {
    let from = Some(state.me.name.to_string());
    let timestamp = Some(now.iso());
    match &state.work {
        // What is being claimed may be given to it: then it is busy.
        Work::Idle if state.asked == Some(Asked::Claim) => {}
        Work::Idle | Work::Proposed(..) | Work::Approved(_) => {
            for pending in std::mem::take(&mut state.pending) {
                let answer = ShutdownApproved {
                    request_id: pending.request.id.to_string(),
                    from: from.clone(),
                    timestamp: timestamp.clone(),
                    pane_id: state.me.pane.clone(),
                    backend_type: Some(state.me.backend.to_owned()),
                    status: Some(ShutdownStatus::Clean),
                    pending_work: Vec::new(),
                    artifacts_committed: None,
                };
                state.errands.push_back(Errand::Say(Box::new(Message::ShutdownApproved(answer))));
                state.agreed = true;
            }
        }
        Work::Running(job) | Work::Ending(job, _) => {
            let reason = job.excuse(now);
            let (due, open) =
                std::mem::take(&mut state.pending).into_iter().partition(|p| p.answer_by <= now);
            state.pending = open;
            state.errands.extend(Vec::into_iter(due).map(|pending: Pending| {
                let request_id = pending.request.id.to_string();
                let (from, timestamp, reason) =
                    (from.clone(), timestamp.clone(), Some(reason.clone()));
                let answer = ShutdownRejected { request_id, from, reason, timestamp };
                Errand::Say(Box::new(Message::ShutdownRejected(answer)))
            }));
        }
    }
}

#[cfg(test)]
mod tests;
