//! Roles of teammates: prompt, model, mode, colour and tools, as defined in an agent file of Claude
//! Code or in the manifest.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::decisions::rules::Rule;
use crate::mail::access::LinkAccess;
use crate::members::mode::Mode;

/// The role of members that review the work of others.
pub const REVIEWER: &str = "reviewer";

const RESEARCHER: &str = "researcher";

/// Roles that need no definition: they are only names.
pub const PLAIN: [&str; 8] = [
    "engineer",
    REVIEWER,
    "tester",
    "architect",
    "deployer",
    RESEARCHER,
    "teammate",
    "general-purpose",
];

/// Roles and tools defined by a team, in addition to agent files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Roles {
    /// By role name.
    pub named: BTreeMap<String, Role>,
    /// Tools of members that have no list of their own or from their role.
    pub tools: Tools,
}

/// Returns true for a role whose members read, and change no files.
pub fn reads_only(role: Option<&str>) -> bool {
    role.is_some_and(|role| [REVIEWER, RESEARCHER].contains(&role))
}

impl Roles {
    pub fn is_empty(&self) -> bool {
        *self == Roles::default()
    }
}

/// Settings of teammates with this role. The request for a teammate supplies missing ones.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Role {
    pub description: Option<String>,
    /// Instructions for the member's program, in addition to its task.
    pub prompt: Option<String>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    /// Command line to which that of the program is appended.
    pub wrap: Option<Vec<String>>,
    /// One of [`COLORS`](crate::team::COLORS).
    pub color: Option<String>,
    /// Members with this role are not standing members: each task gets its own run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub task_only: bool,
    /// The users that may request work of members with this role.
    #[serde(skip_serializing_if = "LinkAccess::is_empty")]
    pub access: LinkAccess,
    pub tools: Tools,
}

/// Tools that a program may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tools {
    /// The only allowed tools; `None` means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<Rule>>,
    /// Forbidden tools; they override everything else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed: Vec<Rule>,
}

impl Tools {
    pub fn is_empty(&self) -> bool {
        *self == Tools::default()
    }

    /// Falls back to `parent` for a missing list of allowed tools, and combines both lists of
    /// forbidden tools.
    pub fn or(self, parent: &Tools) -> Tools {
        let mut disallowed = self.disallowed;
        disallowed.extend(
            parent
                .disallowed
                .iter()
                .filter(|rule| !disallowed.contains(rule))
                .cloned()
                .collect::<Vec<_>>(),
        );
        Tools { allowed: self.allowed.or_else(|| parent.allowed.clone()), disallowed }
    }

    /// Returns the lists for the team file: `allowedTools` and `disallowedTools`.
    pub fn words(&self) -> (Option<Vec<String>>, Vec<String>) {
        let words = |rules: &[Rule]| rules.iter().cloned().map(String::from).collect();
        (self.allowed.as_deref().map(words), words(&self.disallowed))
    }

    /// Removes tools that are forbidden entirely from the allowed ones.
    pub fn without_forbidden(mut self) -> Tools {
        let denied = |rule: &Rule| {
            self.disallowed.iter().any(|no| no.is_whole() && no.tool() == rule.tool())
        };
        if let Some(allowed) = &mut self.allowed {
            allowed.retain(|rule| !denied(rule));
        }
        self
    }
}
