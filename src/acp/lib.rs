//! The client side of the Agent Client Protocol (version 1), without I/O: bytes of the agent come
//! in, bytes for it and reports for the session's owner go out.

mod calls;
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

pub use report::{
    AgentInfo, Choice, Command, Diff, Failure, FailureKind, OptionKind, Outcome, PlanEntry,
    PlanState, Question, QuestionId, QuestionOption, Report, TokenUsage, ToolCall, ToolContent,
    ToolKind, ToolStatus, TurnEnd,
};
pub use session::Session;
pub use start::{AgentTraits, McpServer, ModeChoice, Start, UsageCount};

#[cfg(test)]
mod tests;
