//! What a teammate is for: its prompt, model, mode, colour and tools. Read from an agent file of Claude Code, or from the
//! manifest. Knows no directories and no programs.

mod front;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mode::Mode;
use super::rules::Rule;
use super::team::COLORS;
use front::{Field, Value};

/// Roles that are only a name (seed 004, agent types): nothing has to be written for them.
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

/// What a team's members can be for, beside what agent files say.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Roles {
    pub(crate) named: BTreeMap<String, Role>,
    /// For whoever has no list of its own and none by its role.
    pub(crate) tools: Tools,
}

impl Roles {
    /// Whether nothing is said.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Roles::default()
    }
}

/// What a teammate is for. What is not said is left to whoever asks for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Role {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    /// What its program is told beside its work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<Mode>,
    /// One of [`COLORS`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) color: Option<String>,
    /// Whoever is for this is no standing member: each task is a run of its own (seed 002, task-only agents).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) task_only: bool,
    pub(crate) tools: Tools,
}

/// Which tools a program may use.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Tools {
    /// Only these; none: all that there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) allowed: Option<Vec<Rule>>,
    /// Not these, whatever else is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) disallowed: Vec<Rule>,
}

impl Tools {
    /// Whether nothing is said.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Tools::default()
    }

    /// These, and where they say nothing those of `parent`. What either denies is denied (seed 004, resolution order).
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

    /// Returns the lists as the team file has them: `allowedTools`, `disallowedTools`.
    pub(crate) fn words(&self) -> (Option<Vec<String>>, Vec<String>) {
        let words = |rules: &[Rule]| rules.iter().cloned().map(String::from).collect();
        (self.allowed.as_deref().map(words), words(&self.disallowed))
    }

    /// The allowed ones without those that are denied as a whole.
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

/// An agent file of Claude Code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentFile {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Its fields that mean nothing here.
    pub(crate) unknown: Vec<String>,
}

impl AgentFile {
    /// Reads the text of a file: fields between two lines `---`, then the prompt.
    ///
    /// # Errors
    /// What is wrong, with the line. A field that restricts and cannot be understood is an error, not a warning (ID-02).
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
            // Claude Code passes such a file over, and the role with it.
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

/// A list, or words with commas between them; none for `*`, which is all.
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
