//! A manifest with a member for each process.

use std::fmt::Write;

use toml_edit::{Array, InlineTable, Value};

use super::list::{ProcessEntry, ProcessList};
use model::id::allowed_name;
use model::members::environ::may_be_set;
use model::members::placeholder::{quoted, quoted_value};
use model::members::readiness::{ReadyCheck, readiness_key};
use model::text;

/// Returns the manifest of a team. `file` names the file that it is made from, `next` the command
/// that runs it.
pub fn manifest(list: &ProcessList, file: &str, team: &str, next: &str) -> String {
    let (file, next) = (text::line(file), text::line(next));
    let mut whole = format!(
        "# Made by `phalanx init --from {file}`. Run it with:\n#\n#     {next}\n#\n\
         # Relative paths start in the directory in which `up` is run.\n\
         # `phalanx docs manifest` explains every key.\n"
    );
    let notes: Vec<String> = list.notes.iter().map(|note| comment(note)).collect();
    if !notes.is_empty() {
        whole.push_str(&format!("#\n{}", notes.concat()));
    }
    let description = Value::from(format!("the processes of {file}"));
    whole.push_str(&format!(
        "\n[team]\nname = {}\ndescription = {description}\n\
         # It has no tasks, and stays until `phalanx down`.\nfinish = \"manual\"\n",
        Value::from(team)
    ));
    let mut named: Vec<(&ProcessEntry, String)> = Vec::new();
    for entry in &list.processes {
        let name = unused_name(&entry.name, &named);
        named.push((entry, name));
    }
    for (entry, name) in &named {
        whole.push_str(&member(entry, name, &named));
    }
    whole
}

/// Returns a valid name that no other member has.
fn unused_name(name: &str, taken: &[(&ProcessEntry, String)]) -> String {
    let base = allowed_name(name).unwrap_or_else(|| "process".to_owned());
    let is_free = |name: &String| !taken.iter().any(|(_, other)| other.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    std::iter::once(base.clone()).chain(numbered).find(is_free).unwrap_or(base)
}

fn check(ready: &ReadyCheck) -> InlineTable {
    let mut table = InlineTable::new();
    if let Some(line) = &ready.line {
        table.insert("line", quoted(line).into());
    } else {
        table.insert("run", ready.run.iter().map(|word| quoted(word)).collect::<Array>().into());
    }
    table
}

fn comment(note: &str) -> String {
    format!("# {}\n", text::line(note))
}

fn member(entry: &ProcessEntry, name: &str, all: &[(&ProcessEntry, String)]) -> String {
    let mut lines = format!("[[member]]\nname = {}\n", Value::from(name));
    let run: Array = entry.run.iter().map(|word| quoted(word)).collect();
    // Writing to a string does not fail.
    let _ = writeln!(lines, "run = {run}");
    if let Some(cwd) = &entry.cwd {
        let _ = writeln!(lines, "cwd = {}", Value::from(quoted(cwd)));
    }
    let mut notes: Vec<String> = entry.notes.clone();
    let (known, other): (Vec<_>, Vec<_>) = entry.env.iter().partition(|(name, _)| may_be_set(name));
    notes.extend(other.iter().map(|(name, _)| format!("the variable {name} cannot be set")));
    if !known.is_empty() {
        let env: InlineTable =
            known.iter().map(|(name, value)| (name.as_str(), quoted_value(value))).collect();
        let _ = writeln!(lines, "env = {env}");
    }
    if let Some(restart) = entry.restart {
        let _ = writeln!(lines, "restart = \"{restart}\"");
    }
    if let Some(ready) = &entry.ready {
        let _ = writeln!(lines, "ready = {}", check(ready));
    }
    let mut after = Array::new();
    for source in &entry.after {
        let mut there = all.iter().filter(|(other, _)| other.source == *source && !other.is_off);
        if there.clone().next().is_none() {
            notes.push(format!("it depends on `{source}`, which is not started"));
        }
        there.by_ref().for_each(|(_, name)| after.push(readiness_key(name)));
    }
    if !after.is_empty() {
        let _ = writeln!(lines, "after = {after}");
    }
    let mut whole = format!("\n{}", notes.iter().map(|note| comment(note)).collect::<String>());
    if entry.is_off {
        whole.push_str("# It is not started by itself: remove the marks of comments, or use `phalanx spawn`.\n");
        lines = lines.lines().map(|line| format!("# {line}\n")).collect();
    }
    whole + &lines
}
