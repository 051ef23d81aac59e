//! Protocol messages: what the `text` of a mailbox entry says (protocol.md section 5). Pure text ↔ data, and
//! who has the say in what. Knows nothing of mailboxes, pending requests, incarnations, or of what happens
//! next.
//!
//! Reading never fails: whatever is not a protocol message is text, whatever only claims to be one is
//! [`Message::Malformed`].

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

/// Longer texts are not looked into, bytes. A plan is a few KiB; a log pasted into a mail need not be parsed
/// to be shown.
pub(crate) const MAX_PROTOCOL_BYTES: usize = 1 << 20;

/// What one mailbox entry says.
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
    /// Plain text: everything that is not, as a whole, one JSON object with a `type`.
    Text(String),
    /// An object of a kind that we do not know: shown as it is, without effect.
    Unknown {
        /// Its `type`.
        kind: String,
        /// The whole text as it came.
        raw: String,
    },
    /// An object of a known kind that lacks what makes it one: shown and journalled, without effect.
    Malformed {
        /// Its `type`.
        kind: String,
        /// What is wrong, lower case, without a full stop.
        problem: String,
        /// The whole text as it came.
        raw: String,
    },
}

impl Message {
    /// What this text says. Only a text that is one JSON object from end to end (white space around it aside)
    /// can be a protocol message; JSON inside a longer text is text, and so is what is too long or too deeply
    /// nested to read.
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

    /// Who sees to it when it comes to the lead.
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

    /// Whether it is for a lead's loop to act upon: a person may see it, and takes it from nobody.
    pub(crate) fn is_for_the_loop(&self) -> bool {
        match self.at_the_lead() {
            AtTheLead::Loop | AtTheLead::Both => true,
            AtTheLead::Reader => false,
        }
    }

    /// The text to put into a mailbox: compact JSON with the keys in their observed order; for what is not
    /// ours to write, the text as it came.
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

    /// The id of the request that it is, or answers.
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

    /// The name of the kind on the wire; `message` for plain text.
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

/// The object and its `type`, if the whole text is one. serde_json stops at a nesting of 128, and of two
/// equal keys the last counts, as in Node.
fn typed_object(text: &str) -> Option<(String, Map<String, Value>)> {
    let trimmed = text.trim();
    if text.len() > MAX_PROTOCOL_BYTES || !trimmed.starts_with('{') {
        return None;
    }
    let object: Map<String, Value> = serde_json::from_str(trimmed).ok()?;
    let kind = object.get("type")?.as_str()?.to_owned();
    Some((kind, object))
}

/// The message of this kind; `None` when the kind is not one of ours. `shutdown_response` is not: it is the
/// input of a tool, and on the wire it has become an approval or a rejection.
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

/// Who sees to a message in the lead's mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtTheLead {
    /// The lead's loop, and it marks it as read.
    Loop,
    /// The loop acts upon it, and a program in the lead's place is told of it: then that marks it as read, else the loop.
    Both,
    /// Whoever reads the mailbox: a person, or a program in the lead's place.
    Reader,
}

/// In which capacity an entry was sent. Set by whoever delivers it, from the transport; never from the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The lead of this team.
    Lead,
    /// Any other member.
    Member,
    /// The machinery itself (`from` is `system`).
    System,
}

impl Speaker {
    /// By the name that an entry of a mailbox bears.
    pub(crate) fn named(from: &str) -> Speaker {
        match MemberName::existing(from) {
            Ok(name) if name.is_lead() => Speaker::Lead,
            Ok(name) if name.as_str() == "system" => Speaker::System,
            Ok(_) | Err(_) => Speaker::Member,
        }
    }
}

/// May this speaker say this at all? Whether the request is open, and answered by the member and the
/// incarnation that it names, is asked elsewhere. What has no effect may be said by anybody; so may the news
/// of an assignment, since a native member that gives a task away writes it too, and the task file alone says
/// whose task it is.
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
