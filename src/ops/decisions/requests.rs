//! `requests`: lists what members ask, and shows one request.

use serde::Serialize;
use serde_json::Value;

use crate::authority::names::suggest_nearest_request;
use crate::decisions::decide::{ApprovalPreview, approval_preview, process_requests};
use crate::{Context, OpsError, now};
use model::decisions::question::{Question, Typed};
use model::decisions::request::{ShutdownOutcome, ShutdownRequest};
use model::decisions::user_question::{self, UserQuestion};
use model::id::{MemberName, RequestId};
use model::mail::protocol::AnsweredBy;
use model::time::Timestamp;
use store::TeamStore;

/// A request as `requests` shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Shown {
    pub request_id: RequestId,
    pub kind: &'static str,
    pub from: MemberName,
    pub state: &'static str,
    pub age_ms: u64,
    pub summary: String,
    /// The message as received; for a shutdown its reason.
    pub body: Value,
    /// The incarnation that asked, or that was asked to shut down.
    pub incarnation: Option<String>,
    /// Input that the answer put in place of the one in `body`.
    pub updated_input: Option<Value>,
    pub left_ms: Option<u64>,
    pub by: Option<String>,
    pub rule: Option<String>,
    pub reason: Option<String>,
    /// The way to answer a dialog that a wrapper read from the screen: `keys` or `pane`.
    pub answered_by: Option<&'static str>,
    pub typed: Option<Typed>,
    /// The consequences of approving it; `None` unless it is an open request to use a tool.
    #[serde(skip)]
    pub preview: Option<ApprovalPreview>,
}

impl Shown {
    /// Returns what the program asks its user, to be answered instead of approved.
    pub fn user_questions(&self) -> Vec<UserQuestion> {
        let is_typed = self.answered_by.is_some();
        let input = self.body.get("input").filter(|_| !is_typed && self.kind == "permission");
        input.map(user_question::questions_in).unwrap_or_default()
    }
}

/// Returns the open requests, or with `all` every request, shutdowns included; oldest first.
pub fn list(ctx: &Context, team: &TeamStore, all: bool) -> Result<Vec<Shown>, OpsError> {
    process_requests(ctx, team)?;
    let at = now();
    let shutdowns = team.requests()?.into_iter().filter(|r| all || r.is_open());
    let questions = team.questions()?.into_iter().filter(|q| all || q.is_open());
    let mut shown: Vec<Shown> = shutdowns.map(|r| describe_shutdown(r, at)).collect();
    for question in questions {
        let preview = approval_preview(ctx, team, &question)?;
        shown.push(Shown { preview, ..describe_question(question, at) });
    }
    shown.sort_by_key(|one| std::cmp::Reverse(one.age_ms));
    Ok(shown)
}

/// Returns one request, open or not. The error for an unknown id suggests the nearest one.
pub fn show(ctx: &Context, team: &TeamStore, id: &RequestId) -> Result<Shown, OpsError> {
    process_requests(ctx, team)?;
    if id.is_shutdown() {
        return Ok(describe_shutdown(suggest_nearest_request(team, id, team.request(id))?, now()));
    }
    Ok(describe_question(suggest_nearest_request(team, id, team.question(id))?, now()))
}

fn describe_question(question: Question, at: Timestamp) -> Shown {
    let summary = question.summary();
    let left_ms = question.is_open().then(|| question.deadline_at.since(at));
    let (state, answered_by) = (question.state(), question.answered_by().map(AnsweredBy::as_str));
    let body = serde_json::from_str(&question.message).unwrap_or_default();
    let typed = question.typed();
    let updated_input = question.decision.as_ref().and_then(|decision| decision.input.clone());
    let (by, rule, reason) = question
        .decision
        .map_or((None, None, None), |decision| (Some(decision.by), decision.rule, decision.reason));
    Shown {
        kind: question.kind.as_str(),
        request_id: question.id,
        from: question.from,
        state,
        age_ms: at.since(question.asked_at),
        summary,
        body,
        incarnation: question.incarnation.map(|i| i.to_string()),
        updated_input,
        left_ms,
        by,
        rule,
        reason,
        answered_by,
        typed,
        preview: None,
    }
}

fn describe_shutdown(request: ShutdownRequest, at: Timestamp) -> Shown {
    Shown {
        kind: "shutdown",
        request_id: request.id,
        from: request.member,
        state: request.outcome.map_or("pending", ShutdownOutcome::as_str),
        age_ms: at.since(request.asked_at),
        summary: "shutdown request".to_owned(),
        body: request.reason.into(),
        incarnation: Some(request.incarnation.to_string()),
        updated_input: None,
        left_ms: request.outcome.is_none().then(|| request.deadline_at.since(at)),
        by: None,
        rule: None,
        reason: request.answer,
        answered_by: None,
        typed: None,
        preview: None,
    }
}
