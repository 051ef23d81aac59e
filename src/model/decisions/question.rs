//! Requests that members send to their lead: to approve a plan, use a tool, or reach a host.
//! Nothing is allowed by default, and a decision is final.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;

use crate::decisions::user_question::{self, UserQuestion};
use crate::id::{Incarnation, MemberName, RequestId};
use crate::mail::protocol::{
    AnsweredBy, Message, PermissionRequest, PermissionResponse, PermissionVerdict,
    PlanApprovalRequest, PlanApprovalResponse, SandboxPermissionRequest, SandboxPermissionResponse,
};
use crate::members::mode::Mode;
use crate::members::need::Need;
use crate::team::followup::LastNotification;
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum QuestionKind {
    /// Approval of a plan.
    Plan,
    /// One use of a tool.
    Permission,
    /// Access to a network host.
    Sandbox,
    /// A question of the program itself on its screen, such as whether it may trust a directory.
    Dialog,
}

impl QuestionKind {
    /// The name in tables and in `--json`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A message that requests a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    Plan(PlanApprovalRequest),
    Permission(PermissionRequest),
    Sandbox(SandboxPermissionRequest),
}

impl Ask {
    /// Extracts the request from a message; `None` if the message is of another kind.
    pub fn of(message: Message) -> Option<Ask> {
        match message {
            Message::PlanApprovalRequest(plan) => Some(Ask::Plan(plan)),
            Message::PermissionRequest(tool) => Some(Ask::Permission(tool)),
            Message::SandboxPermissionRequest(host) => Some(Ask::Sandbox(host)),
            Message::ShutdownRequest(_)
            | Message::ShutdownApproved(_)
            | Message::ShutdownRejected(_)
            | Message::PlanApprovalResponse(_)
            | Message::PermissionResponse(_)
            | Message::SandboxPermissionResponse(_)
            | Message::IdleNotification(_)
            | Message::TaskAssignment(_)
            | Message::TaskCompleted(_)
            | Message::TeamPermissionUpdate(_)
            | Message::ModeSetRequest(_)
            | Message::TeammateTerminated(_)
            | Message::Text(_)
            | Message::Unknown { .. }
            | Message::Malformed { .. } => None,
        }
    }

    pub fn kind(&self) -> QuestionKind {
        match self {
            Ask::Plan(_) => QuestionKind::Plan,
            Ask::Permission(tool) if tool.is_dialog => QuestionKind::Dialog,
            Ask::Permission(_) => QuestionKind::Permission,
            Ask::Sandbox(_) => QuestionKind::Sandbox,
        }
    }

    /// The member's id for the request, as received.
    pub fn request_id(&self) -> &str {
        match self {
            Ask::Plan(plan) => &plan.request_id,
            Ask::Permission(tool) => &tool.request_id,
            Ask::Sandbox(host) => &host.request_id,
        }
    }
}

/// The outcome of a request (PM-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum DecisionOutcome {
    Allowed,
    Denied,
    /// No answer arrived in time. This is distinct from a denial.
    TimedOut,
    /// An answer arrived after the deadline; the member was not notified.
    AnsweredTooLate,
    /// The run that asked is over or was superseded by a new one.
    AskerGone,
    /// The program stopped asking before an answer reached it. It may have been answered in its
    /// pane.
    Withdrawn,
}

impl DecisionOutcome {
    /// The name in tables and in `--json`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The result of giving an answer to a program: of typing it, or of sending it over ACP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Typed {
    /// The keys were typed and the dialog closed, or an agent over ACP was sent the answer.
    Taken,
    /// The dialog had already closed, or the question had ended; the program got nothing.
    Gone,
    /// The keys were typed, but the dialog is still open.
    Stays,
    /// An agent over ACP was sent a rejection: it has no option for this approval.
    Rejected,
}

impl Typed {
    /// The name in `--json`.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// A description for people.
    pub fn describe(self) -> &'static str {
        match self {
            Typed::Taken => "typed; the dialog closed",
            Typed::Gone => "nothing was typed: the dialog had closed",
            Typed::Stays => "typed; the dialog is still open",
            Typed::Rejected => "rejected, because the agent has no option for this approval",
        }
    }
}

/// [`Decision::by`] of a request whose dialog closed without an answer from phalanx.
pub const BY_PANE: &str = "pane";
/// The error of a denial without a reason.
pub const DENIED: &str = "denied";

/// The decision that ended a request.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    pub outcome: DecisionOutcome,
    /// A member's name, `rule`, or `nobody`.
    pub by: String,
    /// The rule that decided and its origin, for example `allow Bash(git:*) of the team`.
    pub rule: Option<String>,
    /// The key of the dashboard with which a person decided.
    pub via: Option<String>,
    pub at: Timestamp,
    /// Explanation for the member.
    pub reason: Option<String>,
    /// Mode in which the member continues after a plan is approved.
    pub mode: Option<Mode>,
    /// Permission updates that the member may apply itself, in Claude Code's format.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub updates: Vec<Value>,
    /// Tool input that replaces the one in the request.
    pub input: Option<Value>,
    /// Message id of the answer in the member's mailbox; `None` if no member is left to read it.
    pub reply: Option<String>,
    /// The answer is in the mailbox.
    #[serde(default)]
    pub sent: bool,
    /// Result reported by the member's loop; `None` if there is none yet, or if the program reads
    /// answers itself.
    pub typed: Option<Typed>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Question {
    /// Format version of the file.
    pub format: u32,
    pub id: RequestId,
    pub kind: QuestionKind,
    pub from: MemberName,
    /// The run that asked; `None` for a member that phalanx did not start.
    pub incarnation: Option<Incarnation>,
    /// Id of the message that asked; a message creates at most one request.
    pub msg_id: String,
    /// Time at which the message was taken out of the mailbox.
    pub asked_at: Timestamp,
    /// Answers from this time on do not count.
    pub deadline_at: Timestamp,
    /// The last notification sent about the request; `None` before the first.
    #[serde(rename = "told", default, skip_serializing_if = "Option::is_none")]
    pub last_notification: Option<LastNotification>,
    /// The message as received.
    pub message: String,
    pub decision: Option<Decision>,
    /// Id of the journal event that recorded the request.
    pub event: String,
}

impl Question {
    /// Parses the message; `None` only if the file was tampered with.
    pub fn ask(&self) -> Option<Ask> {
        Ask::of(Message::parse(&self.message))
    }

    /// Returns the tool use that rules judge; `None` for a plan. Access to a host counts as a fetch
    /// from it.
    pub fn tool_use(&self) -> Option<(String, Value)> {
        match self.ask()? {
            Ask::Permission(tool) => Some((tool.tool_name, tool.input)),
            Ask::Sandbox(asked) => {
                // Rules match plain host names only.
                let plain = !asked.host.contains(['/', '?', '#']);
                let url = if plain { format!("https://{}/", asked.host) } else { String::new() };
                Some(("WebFetch".to_owned(), serde_json::json!({ "url": url })))
            }
            Ask::Plan(_) => None,
        }
    }

    /// Returns the question of the program itself; `None` for another request.
    pub fn dialog(&self) -> Option<PermissionRequest> {
        match self.ask() {
            Some(Ask::Permission(tool)) if tool.is_dialog => Some(tool),
            Some(_) | None => None,
        }
    }

    /// Returns what the member waits for.
    pub fn need(&self) -> Need {
        match self.kind {
            QuestionKind::Plan => Need::Plan,
            QuestionKind::Permission | QuestionKind::Sandbox
                if !self.user_questions().is_empty() =>
            {
                Need::Question
            }
            QuestionKind::Permission | QuestionKind::Sandbox => Need::Permission,
            QuestionKind::Dialog => {
                let name = self.dialog().map(|asked| asked.tool_name);
                name.and_then(|name| name.parse().ok()).unwrap_or(Need::Dialog)
            }
        }
    }

    /// Returns what the program asks its user, to be answered instead of allowed.
    pub fn user_questions(&self) -> Vec<UserQuestion> {
        match self.ask() {
            Some(Ask::Permission(tool)) if tool.answered_by.is_none() => {
                user_question::questions_in(&tool.input)
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// Returns the way in which an answer reaches a program that asks on its screen; `None` if the
    /// program reads answers itself.
    pub fn answered_by(&self) -> Option<AnsweredBy> {
        match self.ask()? {
            Ask::Permission(tool) => tool.answered_by,
            Ask::Plan(_) | Ask::Sandbox(_) => None,
        }
    }

    /// Returns true if the answer decides how a turn of the program goes on, which ends with the
    /// turn. After `phalanx ask` and after a plan, the answer begins another turn.
    pub fn is_in_turn(&self) -> bool {
        self.kind == QuestionKind::Sandbox
            || matches!(self.ask(), Some(Ask::Permission(tool)) if tool.tool_use_id.is_some())
    }

    pub fn is_open(&self) -> bool {
        self.decision.is_none()
    }

    /// Returns true if the member's loop gives the answer to the program and reports the result: it
    /// types it, or sends it to an agent over ACP.
    pub fn reports_result(&self) -> bool {
        self.answered_by().is_some()
            || self.incarnation.as_ref().is_some_and(|run| run.has_asked(self.id.as_str()))
    }

    /// Returns the reported result, unless the outcome says it: an agent over ACP has no dialog.
    pub fn typed(&self) -> Option<Typed> {
        let typed = self.decision.as_ref()?.typed?;
        (typed == Typed::Rejected || self.answered_by().is_some()).then_some(typed)
    }

    /// Returns true if it was answered outside of the pane, and its program has not been seen to
    /// take the answer. Only a loop that reports results sees that.
    pub fn is_untaken(&self) -> bool {
        self.decision.as_ref().is_some_and(|d| {
            let is_answer = matches!(d.outcome, DecisionOutcome::Allowed | DecisionOutcome::Denied);
            let is_taken = matches!(d.typed, Some(Typed::Taken | Typed::Rejected));
            is_answer && d.by != BY_PANE && !is_taken
        })
    }

    /// Returns true if the answer has yet to be put into the member's mailbox.
    pub fn is_unsent(&self) -> bool {
        self.decision.as_ref().is_some_and(|d| d.reply.is_some() && !d.sent)
    }

    /// Returns true if no work is left for this request.
    pub fn is_settled(&self) -> bool {
        !self.is_open() && !self.is_unsent()
    }

    /// `pending`, or the name of the outcome. Until its program has taken an answer, the request is
    /// only `answered`, if the member's loop reports that.
    pub fn state(&self) -> &'static str {
        let state = self.decision.as_ref().map_or("pending", |d| d.outcome.as_str());
        if self.is_untaken() && self.reports_result() { "answered" } else { state }
    }

    /// A one-line description for people. It contains unsanitized text from the member.
    pub fn summary(&self) -> String {
        match self.ask() {
            Some(Ask::Plan(plan)) => {
                let content = plan.plan_content.unwrap_or_default();
                let head = content
                    .lines()
                    .map(|l| l.trim_start_matches('#').trim())
                    .find(|l| !l.is_empty());
                head.map(str::to_owned)
                    .or(plan.plan_file_path)
                    .unwrap_or_else(|| "a plan".to_owned())
            }
            Some(Ask::Permission(tool)) => {
                let keys = ["command", "file_path", "path", "notebook_path", "url"];
                let what =
                    keys.iter().find_map(|key| tool.input.get(key)?.as_str().map(str::to_owned));
                // Questions to the user come as a list; the first one describes the request
                // (PM-05).
                let asked = || {
                    tool.input
                        .get("questions")?
                        .get(0)?
                        .get("question")?
                        .as_str()
                        .map(str::to_owned)
                };
                let what = what
                    .or_else(asked)
                    .or(tool.description)
                    .map(|w| format!(": {w}"))
                    .unwrap_or_default();
                let place = match tool.answered_by {
                    Some(AnsweredBy::Pane) => "only in its pane: ",
                    Some(AnsweredBy::Keys) | None => "",
                };
                format!("{place}{}{what}", tool.tool_name)
            }
            Some(Ask::Sandbox(asked)) => format!("reach {}", asked.host),
            None => "an unreadable request".to_owned(),
        }
    }

    /// Returns the answer for the member's mailbox; `None` while there is no decision.
    pub fn reply(&self) -> Option<Message> {
        let decision = self.decision.as_ref()?;
        let request_id = self.id.to_string();
        let allowed = decision.outcome == DecisionOutcome::Allowed;
        Some(match self.ask()? {
            Ask::Plan(_) => Message::PlanApprovalResponse(PlanApprovalResponse {
                request_id,
                approved: allowed,
                feedback: decision.reason.clone(),
                timestamp: Some(decision.at.iso()),
                permission_mode: decision
                    .mode
                    .filter(|_| allowed)
                    .map(|mode| mode.as_str().to_owned()),
            }),
            Ask::Permission(tool) => {
                let verdict = match allowed {
                    true => PermissionVerdict::Allowed {
                        updated_input: Some(decision.input.clone().unwrap_or(tool.input)),
                        permission_updates: decision.updates.clone(),
                    },
                    false => {
                        let error = decision.reason.clone().unwrap_or_else(|| DENIED.to_owned());
                        PermissionVerdict::Denied { error }
                    }
                };
                Message::PermissionResponse(PermissionResponse { request_id, verdict })
            }
            Ask::Sandbox(asked) => {
                let host = Some(asked.host);
                Message::SandboxPermissionResponse(SandboxPermissionResponse {
                    request_id,
                    host,
                    allow: allowed,
                })
            }
        })
    }
}
