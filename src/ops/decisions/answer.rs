//! `answer`: a member's reply to a request that it received. The lead acts on the reply.

use serde::Serialize;

use crate::authority::names;
use crate::mail::post::Post;
use crate::{Context, OpsError, now};
use model::decisions::request::{ShutdownRequest, WorkLeft};
use model::id::RequestId;
use model::mail::protocol::{Message, ShutdownApproved, ShutdownRejected};
use store::TeamStore;

/// A member's reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShutdownAnswer {
    /// The member agrees to shut down; the state in which it leaves its work.
    Approve(WorkLeft),
    Reject {
        reason: String,
    },
}

/// The output of `answer`.
#[derive(Debug, Clone, Serialize)]
pub struct SentAnswer {
    pub success: bool,
    pub message: String,
    pub request_id: RequestId,
    pub msg_id: String,
}

/// Requests that a member can answer.
enum Asked {
    Shutdown(ShutdownRequest),
}

/// Sends the speaker's answer to the lead.
///
/// # Errors
/// [`OpsError::NoSuchRequest`] for an unknown id; a refusal for a speaker other than
/// the member or incarnation that was asked (SD-10, SD-11); a refusal for a request
/// that is answered or closed. Nothing is sent then.
pub fn answer(
    ctx: &Context,
    team: &TeamStore,
    id: &RequestId,
    answer: ShutdownAnswer,
) -> Result<SentAnswer, OpsError> {
    let message = match asked(team, id)? {
        Asked::Shutdown(request) => {
            must_be_asked(ctx, &request)?;
            shutdown_answer(ctx, team, &request, answer)?
        }
    };
    let stored = format!("{} stored in the mailbox of the lead", message.kind());
    let msg_id = Post::report(team, &ctx.speaker, message).send(team)?;
    Ok(SentAnswer { success: true, message: stored, request_id: id.clone(), msg_id })
}

fn asked(team: &TeamStore, id: &RequestId) -> Result<Asked, OpsError> {
    Ok(Asked::Shutdown(names::suggest_nearest_request(team, id, team.request(id))?))
}

fn must_be_asked(ctx: &Context, request: &ShutdownRequest) -> Result<(), OpsError> {
    let refused = |why: String| {
        Err(OpsError::refused(
            format!("`{}` may not answer `{}`: {why}", ctx.speaker, request.id),
            "a member answers for itself: `--as NAME`",
        ))
    };
    if !request.member.clashes_with(ctx.speaker.as_str()) {
        return refused(format!("it was sent to `{}`", request.member));
    }
    // A caller that acts for the member from outside has no incarnation of its own.
    let run = ctx.caller.var("PHALANX_INCARNATION").map(|run| run.to_string_lossy().into_owned());
    if run.is_some_and(|run| run != request.incarnation.as_str()) {
        return refused("it was sent to another run of this member".to_owned());
    }
    let over = match request.outcome {
        Some(outcome) => Some(format!("it ended as {}", outcome.as_str())),
        None => request.agreed_at.map(|_| "it was already answered".to_owned()),
    };
    over.map_or(Ok(()), |why| {
        Err(OpsError::refused(
            format!("request `{}` is closed: {why}", request.id),
            "see what happened to it with `phalanx events`",
        ))
    })
}

fn shutdown_answer(
    ctx: &Context,
    team: &TeamStore,
    request: &ShutdownRequest,
    answer: ShutdownAnswer,
) -> Result<Message, OpsError> {
    let (request_id, from) = (request.id.to_string(), Some(ctx.speaker.to_string()));
    let timestamp = Some(now().iso());
    Ok(match answer {
        ShutdownAnswer::Approve(WorkLeft { status, pending_work, artifacts_committed }) => {
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
        ShutdownAnswer::Reject { reason } => {
            let reason = Some(reason);
            Message::ShutdownRejected(ShutdownRejected { request_id, from, reason, timestamp })
        }
    })
}
