//! The Agent Client Protocol (version 1), without I/O. [`Session`] is the client side: bytes of an
//! agent come in, bytes for it and reports for the session's owner go out. [`AgentSide`] is the
//! other one, for a client such as an editor.

mod agent_side;
mod calls;
mod client_wire;
mod early;
mod failure;
mod lines;
mod questions;
mod replay;
mod report;
mod session;
mod settings;
mod setup;
mod start;
mod turn;
mod updates;
mod usage;
mod wire;
mod writer;

pub use agent_side::{AgentSide, ClientCall};
pub use report::{
    AgentCommand, AgentFailure, AgentInfo, AgentQuestion, AgentToolCall, Diff, EndedTurn,
    FailureKind, OptionKind, Outcome, PlanEntry, PlanState, QuestionId, QuestionOption,
    SessionMode, SessionReport, TokenUsage, ToolContent, ToolKind, ToolStatus,
};
pub use session::Session;
pub use start::{AgentTraits, McpServer, ModeChoice, SessionStart, UsageBasis};

#[cfg(test)]
mod tests;
