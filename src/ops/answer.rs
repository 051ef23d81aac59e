//! `answer`: a member's word on what it was asked. Carrying out what follows is the lead's.

use serde::Serialize;

use super::context::{Context, now};
use super::error::OpsError;
use super::{decide, send};
use crate::model::id::RequestId;
use crate::model::protocol::{Message, ShutdownApproved, ShutdownRejected};
use crate::model::request::{Parting, ShutdownRequest};
use crate::store::TeamStore;

/// Yes or no, and what goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What a member that is to end says of its work.
    Approve(Parting),
    Reject {
        reason: String,
    },
}

/// What `answer` gives.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Answered {
    pub(crate) success: bool,
    pub(crate) message: String,
    pub(crate) request_id: RequestId,
    pub(crate) msg_id: String,
}

/// Requests that can be answered.
enum Asked {
    Shutdown(ShutdownRequest),
}

/// Answers a request in the name of the speaker.
///
/// # Errors
/// Only who was asked may answer, only that run of it, and only once (SD-10, SD-11); nothing is sent then.
pub(crate) fn answer(
    ctx: &Context,
    team: &TeamStore,
    id: &RequestId,
    answer: Answer,
) -> Result<Answered, OpsError> {
    let message = match asked(team, id)? {
        Asked::Shutdown(request) => {
            must_be_asked(ctx, &request)?;
            shutdown_answer(ctx, team, &request, answer)?
        }
    };
    let msg_id = send::report(team, &ctx.speaker, &message)?;
    let message = format!("{} stored in the mailbox of the lead", message.kind());
    Ok(Answered { success: true, message, request_id: id.clone(), msg_id })
}

fn asked(team: &TeamStore, id: &RequestId) -> Result<Asked, OpsError> {
    Ok(Asked::Shutdown(decide::known(team, id, team.request(id))?))
}

fn must_be_asked(ctx: &Context, request: &ShutdownRequest) -> Result<(), OpsError> {
    let refused = |why: String| {
        Err(OpsError::NotYours { speaker: ctx.speaker.clone(), id: request.id.clone(), why })
    };
    if !request.member.clashes_with(ctx.speaker.as_str()) {
        return refused(format!("it was sent to `{}`", request.member));
    }
    // Whoever speaks for a member from elsewhere has no run of its own.
    let run = ctx.caller.var("PHALANX_INCARNATION").map(|run| run.to_string_lossy().into_owned());
    if run.is_some_and(|run| run != request.incarnation.as_str()) {
        return refused("it was sent to another run of this member".to_owned());
    }
    let over = match request.outcome {
        Some(outcome) => Some(format!("it ended as {}", outcome.as_str())),
        None => request.agreed_at.map(|_| "it was already answered".to_owned()),
    };
    over.map_or(Ok(()), |why| Err(OpsError::Answered { id: request.id.clone(), why }))
}

fn shutdown_answer(
    ctx: &Context,
    team: &TeamStore,
    request: &ShutdownRequest,
    answer: Answer,
) -> Result<Message, OpsError> {
    let (request_id, from) = (request.id.to_string(), Some(ctx.speaker.to_string()));
    let timestamp = Some(now().iso());
    Ok(match answer {
        Answer::Approve(Parting { status, pending_work, artifacts_committed }) => {
            let record = team.member_record(&request.member)?;
            let placement = record.as_ref().and_then(|record| record.placement.as_ref());
            Message::ShutdownApproved(ShutdownApproved {
                request_id,
                from,
                timestamp,
                pane_id: placement.map(|placement| placement.roster_pane().to_owned()),
                backend_type: record.as_ref().map(|record| record.backend.wire().to_owned()),
                status,
                pending_work,
                artifacts_committed,
            })
        }
        Answer::Reject { reason } => {
            let reason = Some(reason);
            Message::ShutdownRejected(ShutdownRejected { request_id, from, reason, timestamp })
        }
    })
}
