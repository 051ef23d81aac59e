//! Protocol messages in the `text` of mailbox entries: parsing, writing, and who may send which.
//! Parsing never fails: text that is not a protocol message is plain text, and a message without
//! its required fields is [`Message::Malformed`].

mod fields;
mod permission;
mod plan;
mod presence;
mod render;
mod shutdown;
mod work;

use fields::{Fields, Problem};
use serde_json::{Map, Value};

use super::id::MemberName;

pub(crate) use permission::{
    AnsweredBy, ModeSetRequest, PermissionRequest, PermissionResponse, PermissionVerdict,
    SandboxPermissionRequest, SandboxPermissionResponse, TeamPermissionUpdate,
};
pub(crate) use plan::{PlanApprovalRequest, PlanApprovalResponse, plan_request_id};
pub(crate) use presence::{IdleNotification, TeammateTerminated};
pub(crate) use render::{push_attribute, render_for_agent, without_tag};
pub(crate) use shutdown::{ShutdownApproved, ShutdownRejected, ShutdownRequest, ShutdownStatus};
pub(crate) use work::{TaskAssignment, TaskCompleted};

/// Maximum length of text that is parsed as JSON, in bytes. Plans are a few KiB; a log pasted into
/// a message is shown without being parsed.
pub(crate) const MAX_PROTOCOL_BYTES: usize = 1 << 20;

/// The content of one mailbox entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    ShutdownRequest(ShutdownRequest),
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
    Text(String),
    /// An object of an unknown kind: shown verbatim, without effect.
    Unknown {
        /// The value of `type`.
        kind: String,
        /// The text as received.
        raw: String,
    },
    /// An object of a known kind that lacks a required field: shown and journaled, without effect.
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
    pub(crate) fn parse(text: &str) -> Message {
        match typed_object(text) {
            None => Message::Text(text.to_owned()),
            Some((kind, object)) => match read(&kind, &Fields(&object)) {
                None => Message::Unknown { kind, raw: text.to_owned() },
                Some(Ok(message)) => message,
                Some(Err(problem)) => {
                    Message::Malformed { kind, problem: problem.to_string(), raw: text.to_owned() }
                }
            },
        }
    }

    /// Returns which reader handles the message in the lead's mailbox.
    pub(crate) fn at_the_lead(&self) -> AtTheLead {
        match self {
            Message::ShutdownApproved(_)
            | Message::ShutdownRejected(_)
            | Message::PlanApprovalRequest(_)
            | Message::PermissionRequest(_)
            | Message::SandboxPermissionRequest(_)
            | Message::Malformed { .. } => AtTheLead::Loop,
            Message::IdleNotification(_)
            | Message::TaskCompleted(_)
            | Message::TeammateTerminated(_) => AtTheLead::Both,
            Message::ShutdownRequest(_)
            | Message::PlanApprovalResponse(_)
            | Message::PermissionResponse(_)
            | Message::SandboxPermissionResponse(_)
            | Message::TaskAssignment(_)
            | Message::TeamPermissionUpdate(_)
            | Message::ModeSetRequest(_)
            | Message::Text(_)
            | Message::Unknown { .. } => AtTheLead::Reader,
        }
    }

    /// Returns true if the lead's loop acts on the message. While a loop runs, reading the lead's
    /// inbox must not mark such a message as read.
    pub(crate) fn is_for_the_loop(&self) -> bool {
        match self.at_the_lead() {
            AtTheLead::Loop | AtTheLead::Both => true,
            AtTheLead::Reader => false,
        }
    }

    /// Returns the text for a mailbox: compact JSON with keys in the order that Claude Code writes,
    /// or the text as received if the message is not of a known kind.
    pub(crate) fn to_text(&self) -> String {
        let object = match self {
            Message::ShutdownRequest(message) => message.write(),
            Message::ShutdownApproved(message) => message.write(),
            Message::ShutdownRejected(message) => message.write(),
            Message::PlanApprovalRequest(message) => message.write(),
            Message::PlanApprovalResponse(message) => message.write(),
            Message::PermissionRequest(message) => message.write(),
            Message::PermissionResponse(message) => message.write(),
            Message::SandboxPermissionRequest(message) => message.write(),
            Message::SandboxPermissionResponse(message) => message.write(),
            Message::IdleNotification(message) => message.write(),
            Message::TaskAssignment(message) => message.write(),
            Message::TaskCompleted(message) => message.write(),
            Message::TeamPermissionUpdate(message) => message.write(),
            Message::ModeSetRequest(message) => message.write(),
            Message::TeammateTerminated(message) => message.write(),
            Message::Text(raw) | Message::Unknown { raw, .. } | Message::Malformed { raw, .. } => {
                return raw.clone();
            }
        };
        Value::Object(object).to_string()
    }

    /// Returns the id of the request that the message makes or answers.
    pub(crate) fn request_id(&self) -> Option<&str> {
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

    /// Returns the value of `type`; `message` for plain text.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Message::ShutdownRequest(_) => ShutdownRequest::KIND,
            Message::ShutdownApproved(_) => ShutdownApproved::KIND,
            Message::ShutdownRejected(_) => ShutdownRejected::KIND,
            Message::PlanApprovalRequest(_) => PlanApprovalRequest::KIND,
            Message::PlanApprovalResponse(_) => PlanApprovalResponse::KIND,
            Message::PermissionRequest(_) => PermissionRequest::KIND,
            Message::PermissionResponse(_) => PermissionResponse::KIND,
            Message::SandboxPermissionRequest(_) => SandboxPermissionRequest::KIND,
            Message::SandboxPermissionResponse(_) => SandboxPermissionResponse::KIND,
            Message::IdleNotification(_) => IdleNotification::KIND,
            Message::TaskAssignment(_) => TaskAssignment::KIND,
            Message::TaskCompleted(_) => TaskCompleted::KIND,
            Message::TeamPermissionUpdate(_) => TeamPermissionUpdate::KIND,
            Message::ModeSetRequest(_) => ModeSetRequest::KIND,
            Message::TeammateTerminated(_) => TeammateTerminated::KIND,
            Message::Text(_) => "message",
            Message::Unknown { kind, .. } | Message::Malformed { kind, .. } => kind,
        }
    }
}

/// Parses the text as one object with a `type`. serde_json limits nesting to 128 levels; of
/// duplicate keys the last wins, as in Node.
fn typed_object(text: &str) -> Option<(String, Map<String, Value>)> {
    let trimmed = text.trim();
    if text.len() > MAX_PROTOCOL_BYTES || !trimmed.starts_with('{') {
        return None;
    }
    let object: Map<String, Value> = serde_json::from_str(trimmed).ok()?;
    let kind = object.get("type")?.as_str()?.to_owned();
    Some((kind, object))
}

/// Parses a message of this kind; `None` for unknown kinds. `shutdown_response` is unknown on
/// purpose: it is the input of a tool of Claude Code, which sends an approval or a rejection
/// instead.
fn read(kind: &str, fields: &Fields) -> Option<Result<Message, Problem>> {
    let message = match kind {
        ShutdownRequest::KIND => ShutdownRequest::read(fields).map(Message::ShutdownRequest),
        ShutdownApproved::KIND => ShutdownApproved::read(fields).map(Message::ShutdownApproved),
        ShutdownRejected::KIND => ShutdownRejected::read(fields).map(Message::ShutdownRejected),
        PlanApprovalRequest::KIND => {
            PlanApprovalRequest::read(fields).map(Message::PlanApprovalRequest)
        }
        PlanApprovalResponse::KIND => {
            PlanApprovalResponse::read(fields).map(Message::PlanApprovalResponse)
        }
        PermissionRequest::KIND => PermissionRequest::read(fields).map(Message::PermissionRequest),
        PermissionResponse::KIND => {
            PermissionResponse::read(fields).map(Message::PermissionResponse)
        }
        SandboxPermissionRequest::KIND => {
            SandboxPermissionRequest::read(fields).map(Message::SandboxPermissionRequest)
        }
        SandboxPermissionResponse::KIND => {
            SandboxPermissionResponse::read(fields).map(Message::SandboxPermissionResponse)
        }
        IdleNotification::KIND => IdleNotification::read(fields).map(Message::IdleNotification),
        TaskAssignment::KIND => TaskAssignment::read(fields).map(Message::TaskAssignment),
        TaskCompleted::KIND => TaskCompleted::read(fields).map(Message::TaskCompleted),
        TeamPermissionUpdate::KIND => {
            TeamPermissionUpdate::read(fields).map(Message::TeamPermissionUpdate)
        }
        ModeSetRequest::KIND => ModeSetRequest::read(fields).map(Message::ModeSetRequest),
        TeammateTerminated::KIND => {
            TeammateTerminated::read(fields).map(Message::TeammateTerminated)
        }
        _ => return None,
    };
    Some(message)
}

/// The reader that handles a message in the lead's mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtTheLead {
    /// The lead's loop, which marks the message as read.
    Loop,
    /// The loop acts on it and an agent lead is shown it. The agent lead, if there is one, marks it
    /// as read, otherwise the loop does.
    Both,
    /// The reader of the mailbox: a person or an agent lead.
    Reader,
}

/// The role of a sender, determined from the transport and never from the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The lead of this team.
    Lead,
    /// Any other member.
    Member,
    /// Phalanx or Claude Code itself (`from` is `system`).
    System,
}

impl Speaker {
    /// Returns the role for the `from` of a mailbox entry.
    pub(crate) fn named(from: &str) -> Speaker {
        match MemberName::existing(from) {
            Ok(name) if name.is_lead() => Speaker::Lead,
            Ok(name) if name.as_str() == "system" => Speaker::System,
            Ok(_) | Err(_) => Speaker::Member,
        }
    }
}

/// Returns true if the speaker may send this kind of message at all. Other code checks whether the
/// request is open and whether the right member and incarnation answers it. Anyone may send
/// messages without effect. Members may send task assignments, because native members do so when
/// they reassign a task; the task file alone determines the owner.
pub(crate) fn may_say(speaker: Speaker, message: &Message) -> bool {
    match message {
        Message::ShutdownRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionResponse(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_) => speaker == Speaker::Lead,
        Message::ShutdownApproved(_)
        | Message::ShutdownRejected(_)
        | Message::PlanApprovalRequest(_)
        | Message::PermissionRequest(_)
        | Message::SandboxPermissionRequest(_)
        | Message::IdleNotification(_)
        | Message::TaskCompleted(_) => speaker == Speaker::Member,
        Message::TeammateTerminated(_) => speaker == Speaker::System,
        Message::TaskAssignment(_) => speaker == Speaker::Lead || speaker == Speaker::Member,
        Message::Text(_) | Message::Unknown { .. } | Message::Malformed { .. } => true,
    }
}

#[cfg(test)]
mod tests;
