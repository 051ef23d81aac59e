//! The tables of docs/mcp.md: the tools with their commands, and what no tool has.

use std::fmt::Write as _;

use clap::{Arg, Command};

use super::absent::NOT_OVER_MCP;
use super::table::TOOLS;
use super::tools::{Audience, ToolDefinition, ToolEffect};
use super::wording::command_of;
use crate::verbs::definition;

/// Returns the table of the tools.
pub(crate) fn tools() -> String {
    let mut table = "| tool | for | what it does | commands |\n|---|---|---|---|\n".to_owned();
    for tool in TOOLS {
        let audience = match tool.audience {
            Audience::Lead => "lead",
            Audience::Teammate => "teammate",
            Audience::Everyone => "all",
        };
        let words = tool.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let about = words.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let (name, verbs) = (tool.name, verbs(tool));
        writeln!(table, "| `{name}` | {audience} | {about} | {verbs} |")
            .expect("write to a string");
    }
    table
}

/// The verbs of a tool; those that a lead in delegate mode does not have are marked.
fn verbs(tool: &ToolDefinition) -> String {
    let actions = tool.actions.iter().flat_map(|action| {
        let mark = if action.effect == ToolEffect::Works { "\\*" } else { "" };
        action.verbs.iter().map(move |verb| format!("`{verb}`{mark}"))
    });
    let mut verbs: Vec<String> = Vec::new();
    actions.for_each(|verb| {
        if !verbs.contains(&verb) {
            verbs.push(verb);
        }
    });
    if verbs.is_empty() { "–".to_owned() } else { verbs.join(", ") }
}

/// Returns the table of the commands and options that no tool has.
pub(crate) fn omissions() -> String {
    let root = definition();
    let mut table = "| command or option | reason |\n|---|---|\n".to_owned();
    for (verb, field, _, reason) in NOT_OVER_MCP {
        let option = command_of(&root, verb).and_then(|command| shown(command, field));
        let option = option.map(|option| format!(" {option}")).unwrap_or_default();
        writeln!(table, "| `{verb}{option}` | {reason} |").expect("write to a string");
    }
    table
}

fn shown(command: &Command, field: &str) -> Option<String> {
    let arg: &Arg = command.get_arguments().find(|arg| arg.get_id() == field)?;
    let positional =
        || arg.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    arg.get_long().map(|long| format!("--{long}")).or_else(positional)
}
