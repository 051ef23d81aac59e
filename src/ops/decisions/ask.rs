//! `plan submit` and `ask permission`: requests of a member whose program has no way of its own to
//! ask the lead.

use model::text;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::decisions::decide;
use crate::mail::post::Post;
use crate::mail::send;
use crate::{Context, Kind, OpsError, now};
use model::decisions::question::DecisionOutcome;
use model::id::{MemberName, RequestId};
use model::mail::protocol::{Message, PermissionRequest, PlanApprovalRequest, plan_request_id};
use store::{StoreError, TeamStore};
use sys::rand;

/// The poll interval: a request can time out without a change on disk.
const SWEEP: Duration = Duration::from_millis(500);

/// A tool use that a member asks permission for.
#[derive(Debug, Clone)]
pub struct ToolUse {
    pub tool: String,
    pub input: Value,
    pub description: Option<String>,
}

/// A request that was sent to the lead, or its answer.
#[derive(Debug, Clone, Serialize)]
pub struct FiledRequest {
    pub request_id: RequestId,
    /// `pending`, or `allowed` if the caller waited for the answer.
    pub state: &'static str,
    /// The input that is allowed, if the answer changed it.
    pub input: Option<Value>,
}

/// Sends the speaker's plan to the lead. The answer arrives as a message.
///
/// # Errors
/// [`OpsError::Usage`] for the lead, which approves plans; [`OpsError::ReadsNoMail`] for a member
/// that would not see the answer.
pub fn submit_plan(
    ctx: &Context,
    team: &TeamStore,
    file: Option<String>,
    text: String,
) -> Result<FiledRequest, OpsError> {
    let name = asker(ctx)?;
    if !send::reads_mail(team, name)? {
        return Err(OpsError::ReadsNoMail { name: name.clone() });
    }
    let request_id = plan_request_id(name, team.name(), now());
    let message = Message::PlanApprovalRequest(PlanApprovalRequest {
        from: Some(name.to_string()),
        timestamp: Some(now().iso()),
        plan_file_path: file,
        plan_content: Some(text),
        request_id: request_id.clone(),
    });
    Post::report(team, name, message).send(team)?;
    Ok(FiledRequest { request_id: RequestId::parse(&request_id)?, state: "pending", input: None })
}

/// Asks the lead to allow the use of a tool. A member that reads mail receives the answer as a
/// message; for any other the call blocks until the answer.
///
/// # Errors
/// [`OpsError::Usage`] for the lead; a refusal for a member that would block in a
/// team that phalanx did not create; a refusal if the lead denies it;
/// A refusal if it expires, or the caller's run ends, without an answer.
pub fn ask_permission(
    ctx: &Context,
    team: &TeamStore,
    wanted: ToolUse,
) -> Result<FiledRequest, OpsError> {
    let name = asker(ctx)?;
    let reads_mail = send::reads_mail(team, name)?;
    if !reads_mail && team.settings()?.is_none() {
        return Err(OpsError::refused(
            format!(
                "the lead of team `{}` answers by messages, and this member reads none",
                team.name()
            ),
            "ask the lead with `phalanx send team-lead TEXT`, and watch the terminal",
        ));
    }
    let request_id = format!("perm-{}-{}", now().0, &rand::uuid()[..8]);
    let message = Message::PermissionRequest(PermissionRequest {
        request_id: request_id.clone(),
        agent_id: Some(name.to_string()),
        tool_name: wanted.tool,
        description: wanted.description,
        input: wanted.input,
        ..PermissionRequest::default()
    });
    Post::report(team, name, message).send(team)?;
    let id = RequestId::parse(&request_id)?;
    if reads_mail {
        Ok(FiledRequest { request_id: id, state: "pending", input: None })
    } else {
        answer(ctx, team, id)
    }
}

fn asker(ctx: &Context) -> Result<&MemberName, OpsError> {
    if ctx.speaker.is_lead() {
        let problem = "the lead has nobody to ask: it answers what members ask".to_owned();
        let hint = Some("a member runs this, or `--as NAME` names one".to_owned());
        return Err(OpsError::Usage { problem, hint });
    }
    Ok(&ctx.speaker)
}

/// Waits until the request is decided. Without a running lead, this process files the request and
/// expires it, as `requests` does.
fn answer(ctx: &Context, team: &TeamStore, id: RequestId) -> Result<FiledRequest, OpsError> {
    let changes = team.changes()?;
    loop {
        decide::process_requests(ctx, team)?;
        let question = match team.question(&id) {
            Err(StoreError::NoSuchRequest { .. }) => None,
            found => Some(found?),
        };
        if let Some(decision) = question.and_then(|question| question.decision) {
            return match decision.outcome {
                DecisionOutcome::Allowed => Ok(FiledRequest {
                    request_id: id,
                    state: decision.outcome.as_str(),
                    input: decision.input,
                }),
                DecisionOutcome::Denied => {
                    let reason = decision.reason.map(|said| format!(": {}", text::line(&said)));
                    Err(OpsError::refused(
                        format!("request `{id}` was denied{}", reason.unwrap_or_default()),
                        "do it another way, or ask again with a reason",
                    ))
                }
                DecisionOutcome::TimedOut
                | DecisionOutcome::AnsweredTooLate
                | DecisionOutcome::AskerGone
                | DecisionOutcome::Withdrawn => {
                    let state = decision.outcome.as_str().replace('_', " ");
                    Err(OpsError::described(
                        Kind::Deadline,
                        format!("request `{id}` was not answered: {state}"),
                        "nobody has rejected it: ask again, or see who decides with \
                         `phalanx requests`",
                    ))
                }
            };
        }
        changes.wait(SWEEP);
    }
}
