//! Mail handling of the worker.

use std::collections::BTreeSet;

use super::super::effect::{MemberEffect, WorkerEffect};
use super::super::event::Requests;
use super::super::state::{Me, Work, WorkerState};
use model::board::task::CommandOutcome;
use model::decisions::request;
use model::id::{LEAD, RequestId};
use model::mail::envelope::Envelope;
use model::mail::protocol::{Message, PlanApprovalResponse, ShutdownRequestBody};
use model::text;

/// Handles each message once and acknowledges it.
pub(super) fn read(state: &mut WorkerState, mail: Vec<Envelope>, requests: &Requests) {
    let mut done = Vec::new();
    for envelope in mail.into_iter().filter(|e| !e.read) {
        if state.handled.insert(envelope.msg_id.clone()) {
            handle(state, &envelope, requests);
        }
        done.push(envelope.msg_id);
    }
    if !done.is_empty() {
        state.effects.push(WorkerEffect::Member(MemberEffect::Acknowledge(done)));
    }
}

fn handle(state: &mut WorkerState, envelope: &Envelope, requests: &Requests) {
    let from = text::line(&envelope.from);
    let message = Message::parse(&envelope.text);
    match &message {
        Message::Text(words)
        | Message::Unknown { raw: words, .. }
        | Message::Malformed { raw: words, .. } => {
            state.print(format!("message from {from}: {words}"));
        }
        // The task itself is on the board; the message only triggers a claim.
        Message::TaskAssignment(_) => state.claim_due = true,
        Message::ShutdownRequest(asked) => {
            handle_shutdown_request(state, &envelope.from, asked, requests)
        }
        // Only the lead may approve (SEC-04).
        Message::PlanApprovalResponse(answer) if envelope.from == LEAD => {
            handle_plan_answer(state, answer);
        }
        Message::ShutdownApproved(_)
        | Message::ShutdownRejected(_)
        | Message::PlanApprovalRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionRequest(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionRequest(_)
        | Message::SandboxPermissionResponse(_)
        | Message::IdleNotification(_)
        | Message::TaskCompleted(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_)
        | Message::TeammateTerminated(_) => {
            state.print(format!(
                "ignored a {} from {from}: workers do not handle it",
                message.kind()
            ));
        }
    }
}

/// Accepts a shutdown request if it is valid for this run.
fn handle_shutdown_request(
    state: &mut WorkerState,
    from: &str,
    asked: &ShutdownRequestBody,
    requests: &Requests,
) {
    match accept(&state.me, &mut state.honoured, from, asked, requests) {
        Ok(request) => {
            let reason = text::after_colon(asked.reason.as_deref().map(text::line));
            state.print(format!("{LEAD} requests shutdown{reason}"));
            state.pending.push(request);
        }
        Err(text) => {
            state.print(text.clone());
            state.effects.push(WorkerEffect::Member(MemberEffect::Warn(text)));
        }
    }
}

/// Accepts a shutdown request if it is valid for this run, once.
///
/// # Errors
///
/// The request is ignored; the text says why, for display.
pub(crate) fn accept(
    me: &Me,
    honoured: &mut BTreeSet<RequestId>,
    from: &str,
    asked: &ShutdownRequestBody,
    requests: &Requests,
) -> Result<request::ShutdownRequest, String> {
    let request = valid(me, honoured, from, asked, requests).map_err(|problem| {
        let id = text::short(&asked.request_id, 120);
        format!("ignored shutdown request `{id}`: {problem}")
    })?;
    honoured.insert(request.id.clone());
    Ok(request)
}

/// Validates a shutdown request: only the lead may send one, and only the run it names answers,
/// once (SD-10, SD-11). The request file is authoritative; the message only refers to it.
///
/// # Errors
///
/// The reason for ignoring the request, for display.
fn valid(
    me: &Me,
    honoured: &BTreeSet<RequestId>,
    from: &str,
    asked: &ShutdownRequestBody,
    requests: &Requests,
) -> Result<request::ShutdownRequest, String> {
    if from != LEAD {
        return Err(format!(
            "it came from `{}`; only {LEAD} may request a shutdown",
            text::line(from)
        ));
    }
    let request = match requests.get(&asked.request_id) {
        Some(found) => found.clone()?,
        None => return Err("there is no such request".to_owned()),
    };
    if request.id.as_str() != asked.request_id {
        return Err(format!("its file is that of `{}`", request.id));
    }
    if request.member != me.name {
        return Err(format!("it was sent to `{}`", request.member));
    }
    if request.incarnation != me.incarnation {
        return Err("it was sent to an earlier run".to_owned());
    }
    if !request.is_open() || honoured.contains(&request.id) {
        return Err("it has been answered".to_owned());
    }
    Ok(request)
}

/// Handles the answer to a plan: an approved task is read again before it starts, a rejected one
/// fails.
fn handle_plan_answer(state: &mut WorkerState, answer: &PlanApprovalResponse) {
    let Work::Proposed(job, id) = &state.work else { return };
    if *id != answer.request_id {
        return;
    }
    if answer.approved {
        state.work = Work::Approved(job.clone());
        return;
    }
    let why = text::after_colon(answer.feedback.as_deref().map(|why| text::short(why, 500)));
    let tail = format!("the lead rejected the plan{why}");
    state.effects.push(WorkerEffect::Print(format!("── task #{}: {tail}", job.id)));
    let outcome = CommandOutcome { exit_code: None, signal: None, tail, elapsed_ms: 0 };
    state.work = Work::Ending(job.clone(), outcome);
}
