//! Agent files of Claude Code, which define roles: front matter and a prompt.

mod front;
#[cfg(test)]
mod tests;

use front::{Field, FieldValue};
use model::decisions::rules::Rule;
use model::members::mode::Mode;
use model::team::COLORS;
use model::team::role::Role;

/// The contents of an agent file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    pub name: String,
    pub role: Role,
    /// Names of fields that phalanx does not use.
    pub unknown: Vec<String>,
}

impl AgentFile {
    /// Parses an agent file: fields between two `---` lines, followed by the prompt.
    ///
    /// # Errors
    /// Fails, naming the line where possible, if the front matter is malformed, a field has an
    /// invalid value, or `name` or `description` is missing. A restricting field that cannot be
    /// understood is an error, never skipped (ID-02).
    pub fn parse(text: &str) -> Result<AgentFile, String> {
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
    if COLORS.contains(&word.as_str()) {
        return Ok(word);
    }
    let known = COLORS.join(", ");
    Err(field.fault(&format!("no colour `{}`; known: {known}", word.escape_debug())))
}

/// Parses a list or comma-separated words; `None` for `*`, which allows all tools.
fn tools(field: &Field) -> Result<Option<Vec<Rule>>, String> {
    let words = match &field.value {
        FieldValue::Text(text) => vec![text.clone()],
        FieldValue::List(list) => list.clone(),
        FieldValue::Nested => return Err(field.fault("not a list of tools")),
    };
    if words.iter().any(|word| word.trim() == "*") {
        return Ok(None);
    }
    let words = words.iter().filter(|word| !word.trim().is_empty());
    let rules: Result<Vec<_>, String> = words.map(|word| Rule::parse_list(word)).collect();
    rules
        .map(|rules| Some(rules.concat()))
        .map_err(|problem| field.fault(&problem.escape_debug().to_string()))
}
