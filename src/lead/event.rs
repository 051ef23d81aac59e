//! What the lead can be told. Each event carries all that is needed to react to it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::model::board::Board;
use crate::model::envelope::Envelope;
use crate::model::event::{Event as Noted, EventKind};
use crate::model::id::{Incarnation, MemberName};
use crate::model::protocol::{
    IdleNotification, PermissionResponse, PlanApprovalResponse, SandboxPermissionResponse,
};
use crate::model::question::Question;
use crate::model::record::MemberRecord;
use crate::model::request::ShutdownRequest;
use crate::model::settings::Settings;
use crate::model::time::Timestamp;

/// A run that was to be ended: its placement is proven gone, or why not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Terminated {
    pub(crate) name: MemberName,
    pub(crate) incarnation: Incarnation,
    pub(crate) result: Result<(), String>,
}

/// A message that answers a member's plan or question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) member: MemberName,
    pub(crate) from: String,
    pub(crate) request_id: String,
}

impl Answer {
    /// The answer that this line of the journal tells of, if it does.
    pub(crate) fn told_by(event: &Noted) -> Option<Answer> {
        let text = |key: &str| event.detail.get(key).and_then(Value::as_str);
        let answers =
            [PlanApprovalResponse::KIND, PermissionResponse::KIND, SandboxPermissionResponse::KIND];
        if event.event != EventKind::MessageSent || !answers.contains(&text("kind")?) {
            return None;
        }
        let (from, request_id) = (text("from")?.to_owned(), text("request_id")?.to_owned());
        Some(Answer { member: event.member.clone()?, from, request_id })
    }
}

/// A member has said something of its own accord.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spoken {
    pub(crate) member: MemberName,
    pub(crate) at: Timestamp,
}

impl Spoken {
    /// What this line of the journal tells of, if it does. That it rests a program says without being asked.
    pub(crate) fn told_by(event: &Noted) -> Option<Spoken> {
        let text = |key: &str| event.detail.get(key).and_then(Value::as_str);
        let member = if event.event == EventKind::RequestFiled {
            event.member.clone()
        } else if event.event == EventKind::MessageSent && text("kind")? != IdleNotification::KIND {
            MemberName::existing(text("from")?).ok()
        } else {
            None
        };
        Some(Spoken { member: member?, at: event.at })
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// Who is on the team, by its file.
    Roster(BTreeSet<MemberName>),
    /// The unread mail of the lead, oldest first; the same message may come again until it is acknowledged.
    Mail(Vec<Envelope>),
    /// The records of all members' latest runs.
    Members(Vec<MemberRecord>),
    /// All shutdown requests.
    Requests(Vec<ShutdownRequest>),
    /// The board.
    Board(Board),
    /// The team's settings changed.
    Settings { before: Box<Settings>, now: Box<Settings> },
    /// Members were given answers to what they had asked.
    Answers(Vec<Answer>),
    /// Members have said something, to whomever.
    Spoken(Vec<Spoken>),
    /// The launcher of this run is gone; the record was read after that.
    Exited(Box<MemberRecord>),
    /// Effects `Terminate` have ended, those that were carried out together.
    Terminated(Vec<Terminated>),
    /// The effect `Start` has ended: who could not be started, and why.
    Started { kind: usize, names: Vec<MemberName>, failures: Vec<(MemberName, String)> },
    /// A person wants it to end: gracefully, or at once.
    Stop { force: bool },
    /// A person wants the lead to end, and the members to run on.
    Leave,
    /// The team is no longer on disk.
    TeamGone,
    /// What members have asked, was filed, and waits for an answer: all of it.
    Filed(Vec<Question>),
    /// What the journal tells, where there are hooks that may want to hear of it.
    Journal(Vec<Noted>),
    /// The result of `CheckActivity`.
    Activity { name: MemberName, incarnation: Incarnation, fingerprint: u64 },
    /// Time has passed.
    Tick,
}
