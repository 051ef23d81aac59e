//! Effects of the steps of teammates and of workers, which their drivers execute in order.

use model::board::task::{CommandOutcome, Task, TaskAction};
use model::decisions::question::Typed;
use model::id::{RequestId, TaskId};
use model::mail::protocol::Message;
use model::members::lifecycle::Cause;
use model::members::rate_limit::LimitHit;
use model::members::usage::Usage;

/// An operation on the store that must not be lost: retried in order until it succeeds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OutboundOp {
    /// Record that this run is up.
    Hello,
    /// Send a message to the lead.
    Send(Box<Message>),
    /// Change the member's state, with an optional reason.
    MoveOn(Cause, Option<String>),
    /// Set or clear the reason shown with the state, without changing the state.
    Remark(Option<String>),
    /// Record that the account of the program has reached its usage limit, or that this is over.
    Limit(Option<LimitHit>),
    /// End a question that was answered in the pane, or withdrawn; with the decision if the program
    /// says which.
    Withdraw(RequestId, Option<bool>),
    /// Record the session that the program has begun.
    Session(String),
    /// Add what a turn has used, with the name of the model if it is known.
    Usage(Option<String>, Usage),
    /// Report the outcome of typing the answer to a dialog.
    Typed(RequestId, Typed),
}

/// An action of the driver of any teammate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum MemberEffect {
    /// Journal a warning.
    Warn(String),
    /// Mark these messages as read.
    Acknowledge(Vec<String>),
    /// Read the mail. Reports `Mail` or `NoMail`.
    ReadMail,
    /// Execute an outbound operation. Reports `Done`.
    Do(OutboundOp),
}

/// An action of the driver of a worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum WorkerEffect {
    Member(MemberEffect),
    /// Print a text in the pane.
    Print(String),
    /// Claim the next task. Reports `Claimed`.
    Claim,
    /// Read a claimed task again. Reports `Rechecked`.
    Recheck(TaskId),
    /// Start the task's command. Reports `CommandEnded`.
    Run(Box<Task>),
    /// End the running command with its process tree: SIGTERM, and SIGKILL after the grace.
    Cancel {
        grace_ms: u64,
    },
    /// Record that the command has ended, for the member that takes the task. Reports `LetGo`.
    ConfirmStopped(TaskId),
    /// Give back a task whose command was ended and that no member has taken, with the reason.
    /// Reports `LetGo`.
    GiveBack(TaskId, Option<String>),
    /// Record the outcome of the task. Reports `TaskEnded`; if hooks guard it, first `Held`, and
    /// `Refused` if one of them objects.
    EndTask {
        task: TaskId,
        ending: TaskAction,
        outcome: CommandOutcome,
        /// Why it fails, if its outcome does not say so.
        reason: Option<String>,
    },
}
