//! Merges an order with its role (ID-02). Has no side effects.

use serde_json::json;

use super::super::roles::{ResolvedRole, RoleSource};
use crate::model::order::Order;
use crate::model::role::{Role, Tools};
use crate::model::rules::Rule;
use crate::model::text;
use crate::profile::{Names, Profile};

/// An order after its role has been applied.
pub(super) struct Part {
    pub(super) order: Order,
    pub(super) color: Option<String>,
    pub(super) tools: Tools,
    /// The role as JSON, for a program that accepts roles but cannot find this one itself.
    pub(super) agents: Option<String>,
    /// The role's instructions, for a program that accepts no roles.
    pub(super) duty: Option<String>,
    /// Messages for the user.
    pub(super) warnings: Vec<String>,
}

/// Fills the gaps of `order` from its role, then from the tool rules common to the team.
pub(super) fn fill(
    order: &Order,
    found: Option<ResolvedRole>,
    common: &Tools,
    profile: &Profile,
) -> Part {
    let (order, tools) = (order.clone(), order.tools.clone());
    let mut part =
        Part { order, color: None, tools, agents: None, duty: None, warnings: Vec::new() };
    if let Some(found) = found {
        cast(&mut part, found, profile);
    }
    part.tools = std::mem::take(&mut part.tools).or(common).without_forbidden();
    part.warnings.extend(unenforced(&part.tools, profile));
    part
}

/// Applies the role. Settings of an agent file that this program does not support cause warnings,
/// because such files are written for another program.
fn cast(part: &mut Part, ResolvedRole { name, role, source }: ResolvedRole, profile: &Profile) {
    let (shown, program) = (text::line(&name), &profile.name);
    let mut warn = |said: String| part.warnings.push(format!("role `{shown}`: {said}"));
    let at_home = profile.takes(Names::Agents);
    let from_file = matches!(source, RoleSource::File(_, _));
    if part.order.model.is_none() {
        match &role.model {
            Some(model) if (from_file && !at_home) || !profile.takes(Names::Model) => {
                warn(format!("its model, `{}`, is not passed to `{program}`", text::line(model)));
            }
            model => part.order.model.clone_from(model),
        }
    }
    if part.order.mode.is_none() {
        match role.mode {
            Some(mode) if from_file && profile.mode_words(mode).is_none() => {
                warn(format!("`{program}` has no mode `{}`", mode.as_str()));
            }
            mode => part.order.mode = mode,
        }
    }
    if let RoleSource::File(path, unknown) = &source {
        let said =
            |field: &String| format!("{}: `{}` is not applied", path.display(), text::line(field));
        part.warnings.extend(unknown.iter().map(said));
    }
    part.agents =
        (at_home && source == RoleSource::Manifest).then(|| definition(&name, &role)).flatten();
    part.duty = role.prompt.filter(|_| !at_home);
    part.color = role.color;
    part.tools = std::mem::take(&mut part.tools).or(&role.tools);
}

/// Formats the role for Claude Code's `--agents`. Model and tools have separate flags.
fn definition(name: &str, role: &Role) -> Option<String> {
    let prompt = role.prompt.as_deref()?;
    let description =
        role.description.as_deref().filter(|words| !words.trim().is_empty()).unwrap_or(name);
    Some(json!({ name: { "description": description, "prompt": prompt } }).to_string())
}

/// Returns warnings about tool rules that this program cannot enforce.
fn unenforced(tools: &Tools, profile: &Profile) -> Vec<String> {
    let words =
        |rules: &[Rule]| rules.iter().cloned().map(String::from).collect::<Vec<_>>().join(", ");
    let mut said = Vec::new();
    if let Some(allowed) = &tools.allowed {
        let narrow: Vec<Rule> = allowed.iter().filter(|rule| !rule.is_whole()).cloned().collect();
        if !profile.takes(Names::AllowedTools) {
            said.push(format!(
                "`{}` cannot be held to these tools: {}",
                profile.name,
                words(allowed)
            ));
        } else if !narrow.is_empty() {
            said.push(format!(
                "`{}` is held to whole tools, not to {}",
                profile.name,
                words(&narrow)
            ));
        }
    }
    if !tools.disallowed.is_empty() && !profile.takes(Names::DisallowedTools) {
        let words = words(&tools.disallowed);
        said.push(format!("`{}` cannot be kept from these tools: {words}", profile.name));
    }
    said
}
