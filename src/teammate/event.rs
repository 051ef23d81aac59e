//! Events of teammates and of workers.

use std::collections::BTreeMap;

use model::board::task::{CommandOutcome, Task};
use model::decisions::request::ShutdownRequest;
use model::id::TaskId;
use model::mail::envelope::Envelope;
use model::members::lifecycle::MemberState;
use sys::signal::Signal;

/// Request files by id, or the reason why a request could not be read.
pub(crate) type Requests = BTreeMap<String, Result<ShutdownRequest, String>>;

/// A failed operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OpFailure {
    /// The reason, for display.
    pub text: String,
    /// Set if a retry cannot help.
    pub lasting: bool,
}

/// An event of any teammate. Each carries all data needed to react to it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MemberEvent {
    /// The unread mail, oldest first, with the requests that it refers to. A message is repeated
    /// until it is acknowledged.
    Mail { mail: Vec<Envelope>, requests: Requests },
    /// The mail could not be read.
    NoMail(OpFailure),
    /// Messages could not be marked as read; they will be repeated.
    NotMarked(OpFailure),
    /// The current state of the unanswered requests.
    Requests(Requests),
    /// The spawner has confirmed that this run is up; the state in its record.
    Accepted(MemberState),
    /// The result of `Do`.
    Done(Result<(), OpFailure>),
    /// The team is gone or another run has taken over, with the reason.
    Over(String),
}

/// An event of a worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WorkerEvent {
    Member(MemberEvent),
    /// The task board changed.
    Board,
    /// The result of `Claim`; none: no task is available.
    Claimed(Result<Option<Box<Task>>, OpFailure>),
    /// The result of `Recheck`; none: the task is no longer assigned to this worker.
    Rechecked(Result<Option<Box<Task>>, OpFailure>),
    /// The result of `ConfirmStopped` or `GiveBack`.
    LetGo(Result<(), OpFailure>),
    /// The command of a task has exited, or could not be started.
    CommandEnded {
        task: TaskId,
        outcome: CommandOutcome,
    },
    /// The result of `EndTask`.
    TaskEnded(Result<(), OpFailure>),
    /// `EndTask` is waiting for hooks.
    Held,
    /// A hook refused the completion, with its reason.
    Refused(String),
    /// A signal asks this process to exit.
    Signal(Signal),
    /// A deadline has passed.
    Tick,
}

impl From<MemberEvent> for WorkerEvent {
    fn from(event: MemberEvent) -> WorkerEvent {
        WorkerEvent::Member(event)
    }
}
