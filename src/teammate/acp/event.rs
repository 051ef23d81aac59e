//! Inputs of the step of a member over ACP.

use super::super::event::MemberEvent;
use acp::QuestionId;
use sys::signal::Signal;

/// An input of the step.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event {
    Member(MemberEvent),
    /// Bytes from the agent's standard output.
    Output(Vec<u8>),
    /// A person has typed this prompt in the pane.
    Typed(String),
    /// A person cancels the turn.
    Cancelled,
    /// A person drops the typed prompts that wait.
    Dropped,
    /// A person has answered a question in the pane with this option.
    Chosen {
        id: QuestionId,
        option: String,
    },
    /// A person ends the program from its pane.
    Left,
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
