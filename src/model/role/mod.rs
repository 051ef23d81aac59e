//! Roles of teammates: prompt, model, mode, colour and tools, as defined in an agent file of Claude
//! Code or in the manifest.

mod front;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mode::Mode;
use super::rules::Rule;
use super::team::COLORS;
use front::{Field, Value};

/// Roles that need no definition: they are only names.
pub(crate) const PLAIN: [&str; 8] = [
    "engineer",
    "reviewer",
    "tester",
    "architect",
    "deployer",
    "researcher",
    "teammate",
    "general-purpose",
];

/// Roles and tools defined by a team, in addition to agent files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Roles {
    /// By role name.
    pub(crate) named: BTreeMap<String, Role>,
    /// Tools of members that have no list of their own or from their role.
    pub(crate) tools: Tools,
}

impl Roles {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Roles::default()
    }
}

/// Settings of teammates with this role. The request for a teammate supplies missing ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Role {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// Instructions for the member's program, in addition to its task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// One of [`COLORS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) color: Option<String>,
    /// Members with this role are not standing members: each task gets its own run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) task_only: bool,
    pub(crate) tools: Tools,
}

/// Tools that a program may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Tools {
    /// The only allowed tools; `None` means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed: Option<Vec<Rule>>,
    /// Forbidden tools; they override everything else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) disallowed: Vec<Rule>,
}

impl Tools {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Tools::default()
    }

    /// Falls back to `parent` for a missing list of allowed tools, and combines both lists of
    /// forbidden tools.
    pub(crate) fn or(self, parent: &Tools) -> Tools {
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
    pub(crate) fn words(&self) -> (Option<Vec<String>>, Vec<String>) {
        let words = |rules: &[Rule]| rules.iter().cloned().map(String::from).collect();
        (self.allowed.as_deref().map(words), words(&self.disallowed))
    }

    /// Removes tools that are forbidden entirely from the allowed ones.
    pub(crate) fn settled(mut self) -> Tools {
        let denied = |rule: &Rule| {
            self.disallowed.iter().any(|no| no.is_whole() && no.tool() == rule.tool())
        };
        if let Some(allowed) = &mut self.allowed {
            allowed.retain(|rule| !denied(rule));
        }
        self
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentFile {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Names of fields that phalanx does not use.
    pub(crate) unknown: Vec<String>,
}

impl AgentFile {
    /// Parses an agent file: fields between two `---` lines, followed by the prompt.
    ///
    /// # Errors
    /// Fails, naming the line where possible, if the front matter is malformed, a field has an
    /// invalid value, or `name` or `description` is missing. A restricting field that cannot be
    /// understood is an error, never skipped (ID-02).
    pub(crate) fn parse(text: &str) -> Result<AgentFile, String> {
        let (fields, body) = front::split(text)?;
        let (mut name, mut role, mut unknown) = (None, Role::default(), Vec::new());
        for field in &fields {
            match field.key.as_str() {
                "name" => name = field.word()?,
                "description" => role.description = field.word()?,
                "model" => role.model = field.word()?.filter(|model| model != "inherit"),
                "permissionMode" => {
                    role.mode = field.word()?.map(|word| mode(field, &word)).transpose()?
                }
                "color" => role.color = field.word()?.map(|word| color(field, word)).transpose()?,
                "tools" => role.tools.allowed = tools(field)?,
                "disallowedTools" => role.tools.disallowed = tools(field)?.unwrap_or_default(),
                other => unknown.push(other.to_owned()),
            }
        }
        role.prompt = Some(body.trim()).filter(|body| !body.is_empty()).map(str::to_owned);
        let name = name.ok_or("it has no `name`")?;
        if role.description.is_none() {
            // Claude Code skips such a file, and with it the role.
            return Err("it has no `description`".to_owned());
        }
        Ok(AgentFile { name, role, unknown })
    }
}

fn mode(field: &Field, word: &str) -> Result<Mode, String> {
    Mode::parse(word).ok_or_else(|| field.fault(&format!("no mode `{}`", word.escape_debug())))
}

fn color(field: &Field, word: String) -> Result<String, String> {
    match COLORS.contains(&word.as_str()) {
        true => Ok(word),
        false => {
            let known = COLORS.join(", ");
            Err(field.fault(&format!("no colour `{}`; known: {known}", word.escape_debug())))
        }
    }
}

/// Parses a list or comma-separated words; `None` for `*`, which allows all tools.
fn tools(field: &Field) -> Result<Option<Vec<Rule>>, String> {
    let words = match &field.value {
        Value::Text(text) => vec![text.clone()],
        Value::List(list) => list.clone(),
        Value::Nested => return Err(field.fault("not a list of tools")),
    };
    if words.iter().any(|word| word.trim() == "*") {
        return Ok(None);
    }
    let words = words.iter().filter(|word| !word.trim().is_empty());
    let rules: Result<Vec<_>, String> = words.map(|word| Rule::parse_list(word)).collect();
    rules
        .map(|rules| Some(rules.concat()))
        .map_err(|said| field.fault(&said.escape_debug().to_string()))
}
