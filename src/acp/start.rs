//! What a session begins with.

/// The parameters of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionStart {
    /// The absolute path of its directory.
    pub cwd: String,
    pub mcp: Vec<McpServer>,
    /// The session of an earlier run to continue.
    pub load: Option<String>,
    /// Texts to look for in the user's messages of a replayed conversation.
    pub seek: Vec<String>,
    /// Are set in this order after the session is made or loaded, and confirmed before the first
    /// prompt.
    pub modes: Vec<ModeChoice>,
    pub model: Option<String>,
    pub traits: AgentTraits,
    /// Version of this client.
    pub version: String,
}

/// A permission mode of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModeChoice {
    /// The id of one of its modes.
    Mode(String),
    /// An option of its session, and its value.
    Option { id: String, value: String },
}

/// What differs between agents and is not said in the protocol.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentTraits {
    pub usage: UsageBasis,
    /// Begins a piece of the answer that says why the turn has failed, although its stop reason is
    /// `end_turn`.
    pub failure_prefix: Option<String>,
}

/// What the tokens in the reply to a prompt count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageBasis {
    #[default]
    Turn,
    /// All turns of the session so far.
    Session,
    /// The last request of the turn.
    Request,
}

/// A server of tools that the agent starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    pub name: String,
    pub command: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
}
