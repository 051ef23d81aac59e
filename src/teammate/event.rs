//! What a worker can be told. Each event carries all that is needed to react to it.

use std::collections::BTreeMap;

use crate::model::envelope::Envelope;
use crate::model::id::TaskId;
use crate::model::request::ShutdownRequest;
use crate::model::task::{Outcome, Task};
use crate::sys::signal::Signal;

/// The request files behind the ids that were named, or why there is none.
pub(crate) type Requests = BTreeMap<String, Result<ShutdownRequest, String>>;

/// Why something did not come about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) text: String,
    /// Trying again changes nothing.
    pub(crate) lasting: bool,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// The worker's unread mail, oldest first, with the requests it speaks of. The same message may come again until
    /// it is acknowledged.
    Mail { mail: Vec<Envelope>, requests: Requests },
    /// The mail could not be read.
    NoMail(Failure),
    /// Messages could not be marked; they will be seen again.
    NotMarked(Failure),
    /// The requests that wait for an answer, as they are now.
    Requests(Requests),
    /// Whoever started this run has seen that it is up, and knows where it stands.
    Accepted,
    /// Something about the tasks has changed.
    Board,
    /// What came of `Claim`.
    Claimed(Result<Option<Box<Task>>, Failure>),
    /// The result of `Recheck`; none: the task is no longer this worker's.
    Rechecked(Result<Option<Box<Task>>, Failure>),
    /// The command of a task has ended, or could not be started.
    CommandEnded { task: TaskId, outcome: Outcome },
    /// What came of `EndTask`.
    TaskEnded(Result<(), Failure>),
    /// `EndTask` takes its time: hooks are asked first.
    Held,
    /// A hook refuses the completion that `EndTask` was to write; why.
    Refused(String),
    /// What came of `Do`.
    Done(Result<(), Failure>),
    /// There is nothing to work for any more; why.
    Over(String),
    /// Somebody wants this process to end.
    Signal(Signal),
    /// Time has passed.
    Tick,
}
