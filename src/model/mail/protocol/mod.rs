//! Protocol messages in the `text` of mailbox entries: parsing, writing, and who may send which.
//! Parsing never fails: text that is not a protocol message is plain text, and a message without
//! its required fields is [`Message::Malformed`].

pub(super) mod fields;
pub mod news;
mod permission;
mod plan;
mod presence;
mod render;
mod shutdown;
mod work;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::id::MemberName;
use crate::wire::Object;
use fields::KeyCase;

pub use permission::{
    AnsweredBy, ModeSetRequest, PermissionRequest, PermissionResponse, PermissionVerdict,
    SandboxPermissionRequest, SandboxPermissionResponse, TeamPermissionUpdate,
};
pub use plan::{PlanApprovalRequest, PlanApprovalResponse, plan_request_id};
pub use presence::{IdleNotification, TeammateTerminated};
pub use render::{MAIL_HEADING, parse_rendered, render_for_agent};
pub(crate) use render::{push_attribute, without_tag};
pub use shutdown::{ShutdownApproved, ShutdownRejected, ShutdownRequestBody, ShutdownStatus};
pub use work::{TaskAssignment, TaskCompleted};

/// Maximum length of text that is parsed as JSON, in bytes. Plans are a few KiB; a log pasted into
/// a message is shown without being parsed.
pub(crate) const MAX_PROTOCOL_BYTES: usize = 1 << 20;

/// The content of one mailbox entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(tag = "type", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Message {
    ShutdownRequest(ShutdownRequestBody),
    ShutdownApproved(ShutdownApproved),
    ShutdownRejected(ShutdownRejected),
    PlanApprovalRequest(PlanApprovalRequest),
    PlanApprovalResponse(PlanApprovalResponse),
    PermissionRequest(PermissionRequest),
    PermissionResponse(PermissionResponse),
    SandboxPermissionRequest(SandboxPermissionRequest),
    SandboxPermissionResponse(SandboxPermissionResponse),
    IdleNotification(IdleNotification),
    TaskAssignment(TaskAssignment),
    TaskCompleted(TaskCompleted),
    TeamPermissionUpdate(TeamPermissionUpdate),
    ModeSetRequest(ModeSetRequest),
    TeammateTerminated(TeammateTerminated),
    /// Plain text: anything that is not exactly one JSON object with a `type`.
    #[serde(skip)]
    #[strum(serialize = "message")]
    Text(String),
    /// An object of an unknown kind: shown verbatim, without effect.
    #[serde(skip)]
    Unknown {
        /// The value of `type`.
        kind: String,
        /// The text as received.
        raw: String,
    },
    /// An object of a known kind that lacks a required field: shown and journaled, without effect.
    #[serde(skip)]
    Malformed {
        /// The value of `type`.
        kind: String,
        /// Description of the defect: lower case, no full stop.
        problem: String,
        /// The text as received.
        raw: String,
    },
}

impl Message {
    /// Parses the text of an entry. Only text that is a single JSON object, apart from surrounding
    /// white space, is a protocol message. JSON within longer text is plain text, as is text that
    /// is too long or too deeply nested.
    pub fn parse(text: &str) -> Message {
        match typed_object(text) {
            None => Message::Text(text.to_owned()),
            Some((kind, object)) => match read(&kind, object) {
                None => Message::Unknown { kind, raw: text.to_owned() },
                Some(Ok(message)) => message,
                Some(Err(problem)) => Message::Malformed { kind, problem, raw: text.to_owned() },
            },
        }
    }

    /// Returns the text for a mailbox: compact JSON with keys in the order that Claude Code writes,
    /// or the text as received if the message is not of a known kind.
    pub fn to_text(&self) -> String {
        match self {
            Message::Text(raw) | Message::Unknown { raw, .. } | Message::Malformed { raw, .. } => {
                raw.clone()
            }
            known => {
                let mut message =
                    serde_json::to_value(known).expect("a message has string keys only");
                if let Some(object) = message.as_object_mut() {
                    object.retain(|_, value| !value.is_null());
                }
                message.to_string()
            }
        }
    }

    /// Returns the id of the request that the message makes or answers.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Message::ShutdownRequest(message) => Some(&message.request_id),
            Message::ShutdownApproved(message) => Some(&message.request_id),
            Message::ShutdownRejected(message) => Some(&message.request_id),
            Message::PlanApprovalRequest(message) => Some(&message.request_id),
            Message::PlanApprovalResponse(message) => Some(&message.request_id),
            Message::PermissionRequest(message) => Some(&message.request_id),
            Message::PermissionResponse(message) => Some(&message.request_id),
            Message::SandboxPermissionRequest(message) => Some(&message.request_id),
            Message::SandboxPermissionResponse(message) => Some(&message.request_id),
            Message::IdleNotification(_)
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

    /// Returns true if `kind` is the `type` of a protocol message.
    pub fn is_kind(kind: &str) -> bool {
        read(kind, Object::new()).is_some()
    }

    /// Returns true for a message of a known kind with its required fields.
    pub fn is_protocol(&self) -> bool {
        !matches!(self, Message::Text(_) | Message::Unknown { .. } | Message::Malformed { .. })
    }

    /// Returns the value of `type`; `message` for plain text.
    pub fn kind(&self) -> &str {
        match self {
            Message::Unknown { kind, .. } | Message::Malformed { kind, .. } => kind,
            known => <&'static str>::from(known),
        }
    }
}

/// Parses the text as one object with a `type`. serde_json limits nesting to 128 levels; of
/// duplicate keys the last wins, as in Node.
fn typed_object(text: &str) -> Option<(String, Object)> {
    let trimmed = text.trim();
    if text.len() > MAX_PROTOCOL_BYTES || !trimmed.starts_with('{') {
        return None;
    }
    let object: Object = serde_json::from_str(trimmed).ok()?;
    let kind = object.get("type")?.as_str()?.to_owned();
    Some((kind, object))
}

/// Parses a message of this kind; `None` for unknown kinds. `shutdown_response` is unknown on
/// purpose: it is the input of a tool of Claude Code, which sends an approval or a rejection
/// instead.
fn read(kind: &str, mut object: Object) -> Option<Result<Message, String>> {
    fn read<T: DeserializeOwned>(
        object: Object,
        variant: fn(T) -> Message,
    ) -> Option<Result<Message, String>> {
        Some(fields::read(object).map(variant))
    }
    let case = match kind {
        "permission_request" | "permission_response" => KeyCase::Snake,
        _ => KeyCase::Camel,
    };
    fields::normalize(&mut object, case);
    match kind {
        "shutdown_request" => read(object, Message::ShutdownRequest),
        "shutdown_approved" => read(object, Message::ShutdownApproved),
        "shutdown_rejected" => read(object, Message::ShutdownRejected),
        "plan_approval_request" => read(object, Message::PlanApprovalRequest),
        "plan_approval_response" => read(object, Message::PlanApprovalResponse),
        "permission_request" => read(object, Message::PermissionRequest),
        "permission_response" => read(object, Message::PermissionResponse),
        "sandbox_permission_request" => read(object, Message::SandboxPermissionRequest),
        "sandbox_permission_response" => read(object, Message::SandboxPermissionResponse),
        "idle_notification" => read(object, Message::IdleNotification),
        "task_assignment" => read(object, Message::TaskAssignment),
        "task_completed" => read(object, Message::TaskCompleted),
        "team_permission_update" => read(object, Message::TeamPermissionUpdate),
        "mode_set_request" => read(object, Message::ModeSetRequest),
        "teammate_terminated" => read(object, Message::TeammateTerminated),
        _ => None,
    }
}

/// The role of a sender, determined from the transport and never from the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SenderRole {
    /// The lead of this team.
    Lead,
    /// Any other member.
    Member,
    /// Phalanx or Claude Code itself (`from` is `system`).
    System,
}

impl SenderRole {
    /// Returns the role for the `from` of a mailbox entry.
    pub fn from_name(from: &str) -> SenderRole {
        match MemberName::existing(from) {
            Ok(name) if name.is_lead() => SenderRole::Lead,
            Ok(name) if name.as_str() == "system" => SenderRole::System,
            Ok(_) | Err(_) => SenderRole::Member,
        }
    }
}

/// Returns true if the sender may send this kind of message at all. Other code checks whether the
/// request is open and whether the right member and incarnation answers it. Anyone may send
/// messages without effect. Members may send task assignments, because native members do so when
/// they reassign a task; the task file alone determines the owner.
pub fn may_send(sender: SenderRole, message: &Message) -> bool {
    match message {
        Message::ShutdownRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionResponse(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_) => sender == SenderRole::Lead,
        Message::ShutdownApproved(_)
        | Message::ShutdownRejected(_)
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
        | Message::IdleNotification(_)
        | Message::TaskCompleted(_) => sender == SenderRole::Member,
        Message::TeammateTerminated(_) => sender == SenderRole::System,
        Message::TaskAssignment(_) => sender == SenderRole::Lead || sender == SenderRole::Member,
        Message::Text(_) | Message::Unknown { .. } | Message::Malformed { .. } => true,
    }
}

#[cfg(test)]
mod tests;
