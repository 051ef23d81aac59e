//! What a member asks its lead: may I carry this plan out, use this tool so, reach this host? As data: what was asked,
//! by which run, until when, and what came of it. Nothing here is allowed by default, and what is decided stays so.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::followup::Told;
use super::id::{Incarnation, MemberName, RequestId};
use super::mode::Mode;
use super::protocol::{
    AnsweredBy, Message, PermissionRequest, PermissionResponse, PermissionVerdict,
    PlanApprovalRequest, PlanApprovalResponse, SandboxPermissionRequest, SandboxPermissionResponse,
};
use super::time::Timestamp;

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum QuestionKind {
    /// A plan is to be approved.
    Plan,
    /// One use of a tool.
    Permission,
    /// A network host.
    Sandbox,
}

impl QuestionKind {
    /// The word for people and for `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            QuestionKind::Plan => "plan",
            QuestionKind::Permission => "permission",
            QuestionKind::Sandbox => "sandbox",
        }
    }
}

/// A message that asks something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ask {
    Plan(PlanApprovalRequest),
    Permission(PermissionRequest),
    Sandbox(SandboxPermissionRequest),
}

impl Ask {
    /// What a message asks; none if it asks nothing of this kind.
    pub(crate) fn of(message: Message) -> Option<Ask> {
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

    /// What kind of question it is.
    pub(crate) fn kind(&self) -> QuestionKind {
        match self {
            Ask::Plan(_) => QuestionKind::Plan,
            Ask::Permission(_) => QuestionKind::Permission,
            Ask::Sandbox(_) => QuestionKind::Sandbox,
        }
    }

    /// The member's id for it, as it came.
    pub(crate) fn request_id(&self) -> &str {
        match self {
            Ask::Plan(plan) => &plan.request_id,
            Ask::Permission(tool) => &tool.request_id,
            Ask::Sandbox(host) => &host.request_id,
        }
    }
}

/// What came of it (PM-04): five different things.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Allowed,
    Denied,
    /// Nobody answered in time. That is nobody's no.
    TimedOut,
    /// Somebody answered after that; the member was not told.
    AnsweredTooLate,
    /// The run that asked is over, or asked before the run that there is now.
    AskerGone,
}

impl Outcome {
    /// The word for people and for `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Outcome::Allowed => "allowed",
            Outcome::Denied => "denied",
            Outcome::TimedOut => "timed_out",
            Outcome::AnsweredTooLate => "answered_too_late",
            Outcome::AskerGone => "asker_gone",
        }
    }
}

/// What became of the keys that answer a dialog of a wrapped program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Typed {
    /// They were typed, and the dialog went.
    Taken,
    /// The dialog had gone before: nothing was typed.
    Gone,
    /// They were typed; the dialog is still open.
    Stays,
}

impl Typed {
    /// The word for `--json`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Typed::Taken => "taken",
            Typed::Gone => "gone",
            Typed::Stays => "stays",
        }
    }

    /// Reads the word.
    pub(crate) fn parse(word: &str) -> Option<Typed> {
        [Typed::Taken, Typed::Gone, Typed::Stays].into_iter().find(|typed| typed.as_str() == word)
    }

    /// For people.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            Typed::Taken => "typed; the dialog closed",
            Typed::Gone => "nothing was typed: the dialog had closed",
            Typed::Stays => "typed; the dialog is still open",
        }
    }
}

/// How a question ended, and through whom.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Decision {
    pub(crate) outcome: Outcome,
    /// Who decided: a member's name, `rule`, or `nobody`.
    pub(crate) by: String,
    /// The rule that decided, and where it stands: `allow Bash(git:*) of the team`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<String>,
    pub(crate) at: Timestamp,
    /// For the member to read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The mode to go on in, after a plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// Rules that the member may apply itself from now on; Claude Code's own form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) updates: Vec<Value>,
    /// The input that replaces the one in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<Value>,
    /// The id that the answer has in the member's mailbox; none where there is nobody to read one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply: Option<String>,
    /// The answer is in the mailbox.
    #[serde(default)]
    pub(crate) sent: bool,
    /// What its wrapper has made of that; none: nothing yet, or the program reads its answers itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) typed: Option<Typed>,
}

/// One question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// Form of this file.
    pub(crate) format: u32,
    pub(crate) id: RequestId,
    pub(crate) kind: QuestionKind,
    pub(crate) from: MemberName,
    /// The run that asked; none for a member that phalanx did not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) incarnation: Option<Incarnation>,
    /// The message that asked: the same one makes no second question.
    pub(crate) msg_id: String,
    /// When it was taken out of the mailbox.
    pub(crate) asked_at: Timestamp,
    /// From here on nobody's answer counts.
    pub(crate) deadline_at: Timestamp,
    /// How often whoever decides was told of it; none: not yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) told: Option<Told>,
    /// The message as it came.
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<Decision>,
    /// The journal's event of the asking.
    pub(crate) event: String,
}

impl Question {
    /// What was asked, as it came; none only if the file was tampered with.
    pub(crate) fn ask(&self) -> Option<Ask> {
        Ask::of(Message::parse(&self.message))
    }

    /// How the answer gets into a program that asks on its screen; none: it reads the answer itself.
    pub(crate) fn answered_by(&self) -> Option<AnsweredBy> {
        match self.ask()? {
            Ask::Permission(tool) => tool.answered_by,
            Ask::Plan(_) | Ask::Sandbox(_) => None,
        }
    }

    /// Whether nobody has decided yet.
    pub(crate) fn is_open(&self) -> bool {
        self.decision.is_none()
    }

    /// Whether its answer has still to be put into the member's mailbox.
    pub(crate) fn is_unsent(&self) -> bool {
        self.decision.as_ref().is_some_and(|d| d.reply.is_some() && !d.sent)
    }

    /// Whether nothing more is to be done about it.
    pub(crate) fn is_settled(&self) -> bool {
        !self.is_open() && !self.is_unsent()
    }

    /// `pending`, or the word of its outcome.
    pub(crate) fn state(&self) -> &'static str {
        self.decision.as_ref().map_or("pending", |d| d.outcome.as_str())
    }

    /// What it is about, for people; foreign text.
    pub(crate) fn summary(&self) -> String {
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
                // What its program asks the user stands there as a list; the first question tells what it is about (PM-05).
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

    /// The answer for the member's mailbox, in the form of the wire; none while there is nothing to say.
    pub(crate) fn reply(&self) -> Option<Message> {
        let decision = self.decision.as_ref()?;
        let request_id = self.id.to_string();
        let allowed = decision.outcome == Outcome::Allowed;
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
                        let error = decision.reason.clone().unwrap_or_else(|| "denied".to_owned());
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
