//! Inputs of the step of a member over ACP.

use super::super::event::MemberEvent;
use conversation::ConversationAction;
use sys::signal::Signal;

/// An input of the step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    Member(MemberEvent),
    /// Bytes from the agent's standard output.
    Output(Vec<u8>),
    /// A request of the person in the pane, or that of the lead's loop to leave.
    Person(ConversationAction),
    /// The agent has exited with this code, and its output has ended.
    Ended {
        code: i32,
        /// The last line of its standard error.
        said: Option<String>,
    },
    /// A signal asks this process to exit.
    Signal(Signal),
    /// A deadline has passed.
    Tick,
}
