//! The events that the lead's step handles. Each carries all data that is needed to react to it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::state::LeadEnd;
use model::board::Board;
use model::decisions::question::Question;
use model::decisions::request::ShutdownRequest;
use model::id::{Incarnation, MemberName};
use model::mail::envelope::Envelope;
use model::members::record::MemberRecord;
use model::team::event::{Event as Noted, EventKind};
use model::team::settings::Settings;
use model::time::Timestamp;

/// A person's request to stop the lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Gracefully,
    ByForce,
    /// Stops only the lead; members keep running.
    Leaving,
    /// The machine or the session ends: members end with the lead, and the team stays.
    Interrupted,
}

/// The result of `Effect::StopRun`: the placement is proven closed, or the reason why not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoppedRun {
    pub name: MemberName,
    pub incarnation: Incarnation,
    pub result: Result<(), String>,
}

/// A message that answers a member's plan or question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerSent {
    pub member: MemberName,
    pub from: String,
    pub request_id: String,
}

impl AnswerSent {
    /// Returns the answer that a journal event records, if any.
    pub(crate) fn from_journal(event: &Noted) -> Option<AnswerSent> {
        let text = |key: &str| event.detail.get(key).and_then(Value::as_str);
        let answers =
            ["plan_approval_response", "permission_response", "sandbox_permission_response"];
        if event.event != EventKind::MessageSent || !answers.contains(&text("kind")?) {
            return None;
        }
        let (from, request_id) = (text("from")?.to_owned(), text("request_id")?.to_owned());
        Some(AnswerSent { member: event.member.clone()?, from, request_id })
    }
}

/// A sign of life: a member has sent a message, filed a request or said something about a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignOfLife {
    pub member: MemberName,
    pub at: Timestamp,
}

impl SignOfLife {
    /// Returns the sign of life that a journal event records, if any.
    pub(crate) fn from_journal(event: &Noted) -> Option<SignOfLife> {
        Some(SignOfLife { member: event.sign_of_life()?, at: event.at })
    }
}

/// An input of the lead's step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// The members in the team file, and their `isActive`.
    Roster(BTreeMap<MemberName, Option<bool>>),
    /// The unread mail of the lead, oldest first. A message is repeated until it is acknowledged.
    /// Deadlines of shutdown requests pass with this event only.
    Mail(Vec<Envelope>),
    /// The record of each member's latest run.
    Members(Vec<MemberRecord>),
    /// All shutdown requests.
    Requests(Vec<ShutdownRequest>),
    /// A new snapshot of the board.
    Board(Board),
    /// The settings changed.
    Settings { before: Box<Settings>, now: Box<Settings> },
    /// Members were sent answers to their plans or questions.
    Answers(Vec<AnswerSent>),
    /// Members have shown signs of life.
    SignsOfLife(Vec<SignOfLife>),
    /// The launcher of this run has exited; the record was read after that.
    Exited(Box<MemberRecord>),
    /// The results of `StopRun` effects that were carried out as one batch.
    RunsStopped(Vec<StoppedRun>),
    /// The result of `Start`: the members that could not be started, each with the reason.
    Started { kind: usize, names: Vec<MemberName>, failures: Vec<(MemberName, String)> },
    /// A person stops the team, gracefully or by force.
    Stop { force: bool },
    /// The lead ends at once, for this reason.
    End(LeadEnd),
    /// All filed questions that wait for an answer.
    Filed(Vec<Question>),
    /// New journal events; sent only if the team has hooks.
    Journal(Vec<Noted>),
    /// The result of `CheckActivity`.
    Activity { name: MemberName, incarnation: Incarnation, fingerprint: u64 },
    /// Time has passed.
    Tick,
}
