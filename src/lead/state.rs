//! What the lead knows. Everything here follows from events; nothing is read from anywhere.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::board::Board;
use crate::model::id::{Incarnation, MemberName, RequestId};
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::request::{ShutdownOutcome, ShutdownRequest};
use crate::model::settings::Finish;
use crate::model::time::Timestamp;

/// What the lead is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Lead until told otherwise, or until the tasks are over.
    Lead(Finish),
    /// Only bring these requests to their end: a verb does its own coordinating.
    Carry(BTreeSet<RequestId>),
}

/// Why the lead's work is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing can move on the board, and all members have ended.
    TasksOver,
    /// A person stopped it, and all members have ended.
    Stopped,
    /// The requests it was to carry have ended.
    Carried,
    /// The team was deleted by somebody.
    TeamGone,
}

/// How far the lead has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Leading,
    /// All members are to end; then it ends like this.
    Stopping {
        end: End,
        force: bool,
    },
    Done(End),
}

/// A run that is being ended, and what is to be said of it afterwards.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ending {
    pub(super) cause: Cause,
    pub(super) reason: String,
    pub(super) request: Option<(RequestId, ShutdownOutcome)>,
}

/// A living member.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    pub(super) incarnation: Incarnation,
    pub(super) state: MemberState,
    /// The state that its placement shows.
    pub(super) shown: Option<MemberState>,
    pub(super) reads_mail: bool,
    /// It has proven that it runs, and its end is looked out for.
    pub(super) watched: bool,
    pub(super) ending: Option<Ending>,
    /// It said no to the shutdown of a stopping team; it is asked again when it rests.
    pub(super) refused: bool,
    /// It could not be ended; why.
    pub(super) stuck: bool,
}

/// All that the lead knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(super) goal: Goal,
    pub(super) phase: Phase,
    pub(super) members: BTreeMap<MemberName, View>,
    /// Requests that have not ended.
    pub(super) open: BTreeMap<RequestId, ShutdownRequest>,
    /// None until the board was seen.
    pub(super) board: Option<Board>,
    pub(super) members_seen: bool,
    pub(super) requests_seen: bool,
    /// Messages that were acted upon; they may be seen again until they are marked.
    pub(super) handled: BTreeSet<String>,
}

impl State {
    /// A lead that knows nothing yet.
    pub(crate) fn new(goal: Goal) -> State {
        State {
            goal,
            phase: Phase::Leading,
            members: BTreeMap::new(),
            open: BTreeMap::new(),
            board: None,
            members_seen: false,
            requests_seen: false,
            handled: BTreeSet::new(),
        }
    }

    /// How it ended, once it has.
    pub(crate) fn end(&self) -> Option<End> {
        match self.phase {
            Phase::Done(end) => Some(end),
            Phase::Leading | Phase::Stopping { .. } => None,
        }
    }

    /// When it wants to be told that time has passed.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        let waiting = |r: &&ShutdownRequest| {
            self.members.get(&r.member).is_some_and(|v| v.ending.is_none() && !v.stuck)
        };
        self.open.values().filter(waiting).map(|r| r.deadline_at).min()
    }

    /// The open request for this run.
    pub(super) fn request_for(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
    ) -> Option<&ShutdownRequest> {
        self.open.values().find(|r| r.member == *name && r.incarnation == *incarnation)
    }
}
