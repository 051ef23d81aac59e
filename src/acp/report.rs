//! The reports of a session to its owner, in one form for all agents.

use serde_json::Value;

/// The agent, as it describes itself in its reply to `initialize`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentInfo {
    /// For example `gemini-cli`. Empty if it does not say.
    pub name: String,
    pub version: String,
    pub can_load: bool,
    /// It continues a session without a replay of its conversation (`session/resume`).
    pub can_resume: bool,
    pub can_list: bool,
    /// It takes a text into the turn that runs (`_session/steering`).
    pub can_steer: bool,
    /// Names of its ways to log in.
    pub logins: Vec<String>,
}

/// A report of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionReport {
    /// The agent has answered `initialize`.
    Initialized(AgentInfo),
    /// Prompts can be sent. Follows all reports of a replayed conversation.
    Ready {
        session: String,
        /// The conversation of an earlier run goes on.
        is_loaded: bool,
        /// The tags of [`SessionStart::seek`](crate::SessionStart) that were found in the replay.
        found: Vec<String>,
    },
    /// The session cannot begin: the process is to be ended.
    Refused(AgentFailure),
    /// A message of the user in a replayed conversation.
    User(String),
    /// A piece of the agent's answer. Pieces of one message have the same id, if they have one.
    Text {
        message: Option<String>,
        text: String,
    },
    /// A piece of the agent's reasoning.
    Thought(String),
    /// A tool call is new or has changed; this is its whole state.
    Tool(AgentToolCall),
    /// The whole plan, which replaces the last one.
    Plan(Vec<PlanEntry>),
    /// The commands that the agent offers, as `/name`.
    Commands(Vec<AgentCommand>),
    /// The current mode, and all modes. Empty for an agent without modes.
    Mode {
        current: String,
        available: Vec<SessionMode>,
    },
    /// The current model.
    Model(String),
    Title(String),
    /// Tokens of the context window.
    Context {
        used: u64,
        size: u64,
    },
    /// A remark of the agent that belongs to no turn.
    Notice(String),
    /// The agent repeats a failed request by itself; what it says about that.
    Retries(String),
    /// The first update of the turn of this prompt: the agent has received it.
    Received {
        tag: String,
    },
    /// A text was taken into the running turn, or refused with the reason.
    Steered {
        tag: String,
        result: Result<(), String>,
    },
    /// The agent asks; [`Session::answer`](crate::Session::answer) answers.
    Asked(AgentQuestion),
    /// The question is over without an answer of this side: the turn has ended, or the agent has
    /// withdrawn it.
    Withdrawn {
        id: QuestionId,
    },
    /// The turn has ended, and the next prompt can be sent.
    Ended(EndedTurn),
    /// Something that is not part of the protocol was received, for the log.
    Fault(String),
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedTurn {
    /// The tag of its prompt.
    pub tag: String,
    pub outcome: Outcome,
    /// Tokens of this turn. `None`: the agent does not report them.
    pub usage: Option<TokenUsage>,
}

/// The result of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Cancelled,
    /// A stop reason other than the end of the turn: `max_tokens`, `max_turn_requests`, `refusal`,
    /// or an unknown one.
    Stopped(String),
    Failed(AgentFailure),
}

/// An error of the agent or of its API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFailure {
    pub kind: FailureKind,
    /// One line.
    pub said: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The agent has no valid credentials.
    NeedsLogin,
    /// The account has reached its usage limit.
    Limited,
    /// The conversation is too long for the model.
    TooLong,
    Other,
}

/// Tokens of one turn.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TokenUsage {
    /// Without the part from the cache.
    pub input: u64,
    pub cached_input: u64,
    pub cache_write: u64,
    /// With the reasoning.
    pub output: u64,
    /// In US dollars. `None`: the agent does not say.
    pub cost: Option<f64>,
}

/// A tool call, merged from its parts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentToolCall {
    pub id: String,
    /// May be empty.
    pub title: String,
    pub kind: ToolKind,
    pub status: ToolStatus,
    pub input: Value,
    /// Text of the call, and its changes to files.
    pub content: Vec<ToolContent>,
    /// Paths of the files that it works on.
    pub locations: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolContent {
    Text(String),
    Diff(Diff),
}

/// The change of a part of a file, or of a whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diff {
    pub path: String,
    /// `None` for a new file.
    pub old: Option<String>,
    pub new: String,
}

/// The kind of a tool. Unknown kinds are `Other`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    SwitchMode,
    #[default]
    Other,
}

/// The state of a tool call. Unknown ones are `Pending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum ToolStatus {
    #[default]
    Pending,
    InProgress,
    Completed,
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    pub text: String,
    pub state: PlanState,
}

/// The state of a plan entry. Unknown ones are `Pending`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum PlanState {
    #[default]
    Pending,
    InProgress,
    Completed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// Without the slash.
    pub name: String,
    pub about: String,
}

/// One of several values, such as a mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionMode {
    pub id: String,
    pub name: String,
}

/// Identifies a question within its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QuestionId(pub u64);

/// A permission that the agent asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentQuestion {
    pub id: QuestionId,
    /// The tool call, with all that its earlier parts said.
    pub tool: AgentToolCall,
    /// In the agent's order.
    pub options: Vec<QuestionOption>,
    /// The text of the plan, if the agent asks to leave its plan mode.
    pub plan: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuestionOption {
    pub id: String,
    /// For a person.
    pub name: String,
    pub kind: OptionKind,
}

/// The effect of an option. An unknown kind is `Other`, which only a person chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum OptionKind {
    AllowOnce,
    AllowAlways,
    RejectOnce,
    RejectAlways,
    Other,
}
