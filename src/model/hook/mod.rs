//! The commands that a user has run when something happens in a team (protocol.md, section 9): when, whether, and what
//! their exit code means. Knows no files and runs nothing.

mod claude;
mod sheet;
#[cfg(test)]
mod tests;

use regex::RegexBuilder;
use serde::{Deserialize, Serialize};

pub(crate) use claude::{ClaudeHooks, read_claude};
pub(crate) use sheet::{OwnHooks, read_hooks, read_own};

/// How long a hook may run that does not say, seconds.
const TIMEOUT_S: u64 = 60;
/// How long any may run, seconds.
const LONGEST_S: u64 = 3600;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum HookEvent {
    /// A member has proven that it runs.
    SubagentStart,
    /// A member's run is over.
    SubagentStop,
    /// A member has nothing to do any more.
    TeammateIdle,
    /// A task is about to be completed.
    TaskCompleted,
}

impl HookEvent {
    /// As they are written everywhere.
    pub(crate) const ALL: [(&'static str, HookEvent); 4] = [
        ("SubagentStart", HookEvent::SubagentStart),
        ("SubagentStop", HookEvent::SubagentStop),
        ("TeammateIdle", HookEvent::TeammateIdle),
        ("TaskCompleted", HookEvent::TaskCompleted),
    ];

    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            HookEvent::SubagentStart => "SubagentStart",
            HookEvent::SubagentStop => "SubagentStop",
            HookEvent::TeammateIdle => "TeammateIdle",
            HookEvent::TaskCompleted => "TaskCompleted",
        }
    }

    /// Whether its hooks can be meant for some kinds of agents only.
    fn has_matcher(self) -> bool {
        match self {
            HookEvent::SubagentStart | HookEvent::SubagentStop => true,
            HookEvent::TeammateIdle | HookEvent::TaskCompleted => false,
        }
    }

    /// What follows from a hook that ended with this code.
    pub(crate) fn verdict(self, code: i32) -> Verdict {
        match (code, self) {
            (0, HookEvent::SubagentStart) => Verdict::Show,
            (0, HookEvent::SubagentStop | HookEvent::TeammateIdle | HookEvent::TaskCompleted) => {
                Verdict::Nothing
            }
            (2, HookEvent::TeammateIdle | HookEvent::TaskCompleted) => Verdict::Hold,
            // When phalanx hears of the end of a run there is nobody left who could go on.
            (_, _) => Verdict::Complain,
        }
    }
}

/// What follows from a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Nothing,
    /// Its stdout is for the agent.
    Show,
    /// Its stderr is for the agent, which goes on: the task is not completed, the teammate is not done.
    Hold,
    /// Its stderr is for the user, and nothing else follows.
    Complain,
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Words {
    /// Program and arguments.
    Program(Vec<String>),
    /// A line for `sh`, as Claude's settings have it.
    Line(String),
}

impl Words {
    /// For people.
    pub(crate) fn shown(&self) -> String {
        match self {
            Words::Program(argv) => argv.join(" "),
            Words::Line(line) => line.clone(),
        }
    }
}

/// One command and when to run it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hook {
    pub(crate) event: HookEvent,
    /// Only for agents of a type that it fits; none: for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) matcher: Option<Matcher>,
    pub(crate) run: Words,
    /// Then it is ended with all that it has started, seconds.
    pub(crate) timeout_s: u64,
}

impl Hook {
    /// Whether it is to run on this event of an agent of this type.
    pub(crate) fn is_for(&self, event: HookEvent, agent_type: &str) -> bool {
        self.event == event && self.matcher.as_ref().is_none_or(|matcher| matcher.fits(agent_type))
    }
}

/// Which types of agents a hook is for, in Claude's form: names between `|`, or a regular expression that is found
/// somewhere in the type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Matcher(String);

impl Matcher {
    /// None for the words that mean all: nothing, and `*`.
    ///
    /// # Errors
    /// What is wrong with the expression; it ends a sentence: `` `matcher` … ``.
    pub(crate) fn parse(text: &str) -> Result<Option<Matcher>, String> {
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
    // What somebody wrote must not take our memory.
    RegexBuilder::new(text).size_limit(1 << 20).build()
}
