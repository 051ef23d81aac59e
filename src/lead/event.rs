//! What the lead can be told. Each event carries all that is needed to react to it.

use crate::model::board::Board;
use crate::model::envelope::Envelope;
use crate::model::id::{Incarnation, MemberName};
use crate::model::record::MemberRecord;
use crate::model::request::ShutdownRequest;

/// A run that was to be ended: its placement is proven gone, or why not.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Terminated {
    pub(crate) name: MemberName,
    pub(crate) incarnation: Incarnation,
    pub(crate) result: Result<(), String>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// The unread mail of the lead, oldest first; the same message may come again until it is acknowledged.
    Mail(Vec<Envelope>),
    /// The records of all members' latest runs.
    Members(Vec<MemberRecord>),
    /// All shutdown requests.
    Requests(Vec<ShutdownRequest>),
    /// The board.
    Board(Board),
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
    /// Time has passed.
    Tick,
}
