//! Arguments of the tools that have no type of the command line.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::mail::scope::ScopeArgs;
use model::board::task_ref::TaskRef;
use model::mail::protocol::ShutdownStatus;
use model::wire::Object;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct NoInput {}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TeamCreateInput {
    /// Name for the new team; a number is appended if it is taken.
    pub(super) team_name: String,
    /// Purpose of the team.
    pub(super) description: Option<String>,
    /// Role of the lead, such as "researcher".
    pub(super) agent_type: Option<String>,
}

/// The kinds of messages that `SendMessage` sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum SendMessageType {
    #[default]
    Message,
    Broadcast,
    ShutdownRequest,
    ShutdownResponse,
    PlanApprovalResponse,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SendMessageInput {
    /// Kind of message; `message` by default.
    #[serde(default, rename = "type")]
    #[schemars(schema_with = "crate::json::words::<SendMessageType>")]
    pub(super) kind: SendMessageType,
    /// Name of the member; not for a broadcast or a shutdown_response.
    pub(super) recipient: Option<String>,
    /// The message, or the reason.
    pub(super) content: Option<String>,
    /// Preview of 5 to 10 words.
    pub(super) summary: Option<String>,
    /// The request that a response answers.
    pub(super) request_id: Option<String>,
    /// The answer of a response.
    pub(super) approve: Option<bool>,
    /// Interrupt its program so that it reads this at once; not for Claude Code.
    #[serde(default)]
    pub(super) urgent: bool,
    /// State of the work, in a shutdown_response.
    #[serde(default)]
    #[schemars(schema_with = "crate::json::words::<ShutdownStatus>")]
    pub(super) status: Option<ShutdownStatus>,
    /// Work that is left to do, in a shutdown_response.
    #[serde(default)]
    pub(super) pending: Vec<String>,
    /// All work is committed, in a shutdown_response.
    pub(super) committed: Option<bool>,
    #[serde(flatten)]
    pub(super) scope: ScopeArgs,
}

/// The arguments of `TeamMessage` to send.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TextToMember {
    /// Recipient.
    pub(super) to: String,
    /// The message.
    pub(super) text: String,
}

/// The arguments of `TeamMessage` to broadcast.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TextToAll {
    /// The message.
    pub(super) text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ReadInboxInput {
    /// Seconds to wait for a message if there is none, at most 60.
    #[serde(default)]
    pub(super) wait: f64,
    /// Include messages that were read before.
    #[serde(default)]
    pub(super) all: bool,
    /// All messages since then: 90s, 10m, 2h, 1d, or a time.
    pub(super) since: Option<String>,
    /// Do not mark them as read.
    #[serde(default)]
    pub(super) peek: bool,
    /// Member whose mailbox the lead reads; its messages are not marked.
    pub(super) name: Option<String>,
}

/// A selection of tasks by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub(super) enum TaskFilter {
    Active,
    InReview,
    Completed,
    All,
}

/// The argument of lists of tasks beside those of `task list`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskFilterInput {
    /// Which tasks to list; by default those that have not ended.
    #[serde(default)]
    #[schemars(schema_with = "crate::json::words::<TaskFilter>")]
    pub(super) filter: Option<TaskFilter>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskGetInput {
    /// Id or key of the task.
    pub(super) id: TaskRef,
    /// Show the whole result, also if it has more than 8000 characters.
    #[serde(default)]
    pub(super) full: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskDeleteInput {
    /// Id or key of the task.
    pub(super) id: TaskRef,
    /// Delete it even if it has not ended.
    #[serde(default)]
    pub(super) force: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct TaskSearchInput {
    /// Words in the subject, the description or the comments.
    pub(super) query: String,
    /// Maximum number of tasks to print.
    pub(super) limit: Option<usize>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct RequestsInput {
    /// Show this request in full.
    pub(super) request_id: Option<String>,
    /// Include requests that were answered.
    #[serde(default)]
    pub(super) all: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct StatusInput {
    /// Explain this member: the facts behind its state and their sources.
    pub(super) name: Option<String>,
    /// Include completed tasks, and all former members.
    #[serde(default)]
    pub(super) all: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct ProfileInput {
    /// Show this profile in full.
    pub(super) name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SetInput {
    /// Keys with their new values, such as {"max_members": 12}.
    #[serde(default)]
    #[schemars(schema_with = "crate::json::object")]
    pub(super) set: Object,
    /// Keys to reset to their defaults.
    #[serde(default)]
    pub(super) unset: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SubmitPlanInput {
    /// The plan, as Markdown: what will be done, in which order, and how it is checked.
    pub(super) plan: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct HandoffInput {
    /// Name of the member; it is started if it is not on the team.
    pub(super) name: String,
    /// The work to do.
    pub(super) prompt: String,
    /// Profile of its program, if it is started.
    pub(super) profile: Option<String>,
    /// Role, if it is started.
    pub(super) role: Option<String>,
    /// Model, if it is started.
    pub(super) model: Option<String>,
    /// Host to run on, if it is started.
    pub(super) host: Option<String>,
    /// Working directory, if it is started.
    pub(super) cwd: Option<String>,
    /// Seconds to wait for the result, at most 600; 300 by default.
    pub(super) timeout: Option<f64>,
}
