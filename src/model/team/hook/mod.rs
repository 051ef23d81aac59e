//! User-defined commands that run on events of a team: their event, the agents they apply to, and
//! the meaning of their exit codes.

#[cfg(test)]
mod tests;

use regex::RegexBuilder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Default timeout of a hook, in seconds.
pub const TIMEOUT_S: u64 = 60;
/// Maximum timeout of a hook, in seconds.
pub const LONGEST_S: u64 = 3600;

/// The event that triggers a hook.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::EnumIter,
    strum::IntoStaticStr,
    JsonSchema,
)]
pub enum HookEvent {
    /// A member proved that it runs.
    SubagentStart,
    /// A member's run ended.
    SubagentStop,
    /// A member became idle.
    TeammateIdle,
    /// A task is about to be completed.
    TaskCompleted,
}

impl HookEvent {
    /// The name in every configuration format.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns true if hooks of this event may be limited to certain agent types.
    pub fn has_matcher(self) -> bool {
        match self {
            HookEvent::SubagentStart | HookEvent::SubagentStop => true,
            HookEvent::TeammateIdle | HookEvent::TaskCompleted => false,
        }
    }

    /// Returns the consequence of a hook's exit code.
    pub fn verdict(self, code: i32) -> HookVerdict {
        match (code, self) {
            (0, HookEvent::SubagentStart) => HookVerdict::Show,
            (0, HookEvent::SubagentStop | HookEvent::TeammateIdle | HookEvent::TaskCompleted) => {
                HookVerdict::Nothing
            }
            (2, HookEvent::TeammateIdle | HookEvent::TaskCompleted) => HookVerdict::Hold,
            // Includes exit code 2 of SubagentStop: the agent has already exited and cannot
            // continue.
            (_, _) => HookVerdict::Complain,
        }
    }
}

/// The consequence of a hook's exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookVerdict {
    Nothing,
    /// Pass the hook's stdout to the agent.
    Show,
    /// Pass the hook's stderr to the agent, which continues: the task is not completed, the
    /// teammate not idle.
    Hold,
    /// Show the hook's stderr to the user, without further effect.
    Complain,
}

/// The command of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Invocation {
    /// Program and arguments.
    Program(Vec<String>),
    /// A command line for `sh`, as in Claude Code's settings.
    Line(String),
}

impl Invocation {
    /// Returns the command as text for display.
    pub fn shown(&self) -> String {
        match self {
            Invocation::Program(argv) => argv.join(" "),
            Invocation::Line(line) => line.clone(),
        }
    }
}

/// A command and the condition under which it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookCommand {
    pub event: HookEvent,
    /// Limits the hook to certain agent types; `None` means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matcher: Option<Matcher>,
    pub run: Invocation,
    /// Time after which the hook and all its child processes are stopped, in seconds.
    pub timeout_s: u64,
}

impl HookCommand {
    /// Returns true if the hook runs on this event for an agent of this type.
    pub fn is_for(&self, event: HookEvent, agent_type: &str) -> bool {
        self.event == event && self.matcher.as_ref().is_none_or(|matcher| matcher.fits(agent_type))
    }
}

/// The agent types that a hook applies to, in Claude Code's format: names separated by `|`, or a
/// regular expression that matches anywhere in the type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Matcher(String);

impl Matcher {
    /// Parses a matcher. Returns `None` for the empty string and `*`, which match all types.
    ///
    /// # Errors
    /// Fails if the text is not a valid regular expression or compiles to more than 1 MiB. The
    /// message is a predicate that follows `` `matcher` ``.
    pub fn parse(text: &str) -> Result<Option<Matcher>, String> {
        if text.is_empty() || text == "*" {
            return Ok(None);
        }
        Matcher::try_from(text.to_owned()).map(Some)
    }

    fn fits(&self, agent_type: &str) -> bool {
        if is_names(&self.0) {
            return self.0.split('|').any(|name| name == agent_type);
        }
        expression(&self.0).is_ok_and(|expression| expression.is_match(agent_type))
    }
}

impl TryFrom<String> for Matcher {
    type Error = String;

    fn try_from(text: String) -> Result<Matcher, String> {
        expression(&text)
            .map_err(|_| format!("is no regular expression: `{}`", text.escape_debug()))?;
        Ok(Matcher(text))
    }
}

impl From<Matcher> for String {
    fn from(matcher: Matcher) -> String {
        matcher.0
    }
}

fn is_names(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|'))
}

fn expression(text: &str) -> Result<regex::Regex, regex::Error> {
    // The limit bounds the memory that an expression from a configuration file can use.
    RegexBuilder::new(text).size_limit(1 << 20).build()
}
