//! What a worker can do. The driver carries effects out in order; it decides nothing.

use crate::model::id::{RequestId, TaskId};
use crate::model::lifecycle::Cause;
use crate::model::protocol::Message;
use crate::model::question::Typed;
use crate::model::task::{Outcome, Task};
use crate::ops::Ending;

/// A word to others that must not be lost: it is tried again, in order, until it is said.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Errand {
    /// This run is up.
    Hello,
    /// To the lead.
    Say(Box<Message>),
    /// On in life, and why.
    MoveOn(Cause, Option<String>),
    /// Why it is as it is, without a step in life; none: there is nothing to say any more.
    Remark(Option<String>),
    /// The dialog that asked has gone without an answer.
    Withdraw(RequestId),
    /// What became of the keys that answer a dialog.
    Typed(RequestId, Typed),
}

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Show a text in the pane.
    Print(String),
    /// Say in the journal that something is odd.
    Warn(String),
    /// These messages were handled.
    Acknowledge(Vec<String>),
    /// Reports `Mail` or `NoMail`.
    LookAtMail,
    /// Reports `Claimed`.
    Claim,
    /// Read a claimed task again before it is begun. Reports `Rechecked`.
    Recheck(TaskId),
    /// Start the task's command. Reports `CommandEnded`.
    Run(Box<Task>),
    /// End the running command with all that belongs to it.
    Cancel,
    /// Write how the task ended. Reports `TaskEnded`.
    EndTask { task: TaskId, ending: Ending, outcome: Outcome },
    /// Reports `Done`.
    Do(Errand),
}
