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
    /// The fields and words that phalanx does not use, each with what it uses instead.
    pub notes: Vec<String>,
}

impl AgentFile {
    /// Parses an agent file: fields between two `---` lines, followed by the prompt.
    ///
    /// # Errors
    /// Fails, naming the line where possible, if the front matter is malformed, a field has a value
    /// of another form, or `name` or `description` is missing. A restricting field that cannot be
    /// understood is an error, never skipped (ID-02).
    pub fn parse(text: &str) -> Result<AgentFile, String> {
        let (fields, body) = front::split(text)?;
        let (mut name, mut role, mut notes) = (None, Role::default(), Vec::new());
        for field in &fields {
            match field.key.as_str() {
                "name" => name = field.word()?,
                "description" => role.description = field.word()?,
                "model" => role.model = field.word()?.filter(|model| model != "inherit"),
                "permissionMode" => {
                    role.mode = known(
                        field,
                        &mut notes,
                        Mode::parse,
                        "the mode of a member without a role",
                    )?;
                }
                "color" => {
                    let color = |word: &str| COLORS.contains(&word).then(|| word.to_owned());
                    role.color = known(field, &mut notes, color, "the next free colour")?;
                }
                "tools" => role.tools.allowed = tools(field)?,
                "disallowedTools" => role.tools.disallowed = tools(field)?.unwrap_or_default(),
                other => notes.push(format!("`{}` is not applied", other.escape_debug())),
            }
        }
        role.prompt = Some(body.trim()).filter(|body| !body.is_empty()).map(str::to_owned);
        let name = name.ok_or("it has no `name`")?;
        if role.description.is_none() {
            // Claude Code skips such a file, and with it the role.
            return Err("it has no `description`".to_owned());
        }
        Ok(AgentFile { name, role, notes })
    }
}

/// Returns the value of a field if `parse` knows it. Otherwise adds a note, since Claude Code may
/// know words that phalanx does not; `instead` is what a member gets.
fn known<T>(
    field: &Field,
    notes: &mut Vec<String>,
    parse: impl Fn(&str) -> Option<T>,
    instead: &str,
) -> Result<Option<T>, String> {
    let Some(word) = field.word()? else { return Ok(None) };
    let found = parse(&word);
    if found.is_none() {
        let problem = format!("`{}` is unknown; {instead} is used instead", word.escape_debug());
        notes.push(field.fault(&problem));
    }
    Ok(found)
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
