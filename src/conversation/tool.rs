//! Draws tool calls: one line each, with the changes to files or the end of an error.

use acp::{AgentToolCall, ToolContent, ToolKind, ToolStatus};

use serde_json::Value;

use crate::diff::{self, LineChange};
use crate::line::{Hue, Look, StyledLine};
use crate::words;

/// Lines of the text of a failed call.
const ERROR_LINES: usize = 3;

/// Draws the line of a call that is not printed yet.
pub(crate) fn running(tool: &AgentToolCall, millis: u64, cwd: &str, room: usize) -> StyledLine {
    let time = if millis < 1000 { String::new() } else { words::seconds(millis) };
    titled(glyph(tool.status, Look::YELLOW), tool, None, &time, cwd, room)
}

/// Draws a call that has ended. `millis` is `None` in a replayed conversation.
pub(crate) fn ended(
    tool: &AgentToolCall,
    millis: Option<u64>,
    cwd: &str,
    room: usize,
) -> Vec<StyledLine> {
    let glyph = glyph(tool.status, Look::DIM);
    let time = millis.map(words::duration).unwrap_or_default();
    let changes = changes(tool);
    let only = only_change(&changes, &title(tool, cwd), cwd);
    let mut rows = vec![titled(glyph, tool, only, &time, cwd, room)];
    if tool.status == ToolStatus::Failed {
        rows.extend(error_rows(tool, room));
    } else {
        rows.extend(change_rows(&changes, only.is_some(), cwd, room));
    }
    rows
}

fn glyph(status: ToolStatus, running: Look) -> StyledLine {
    match status {
        ToolStatus::Completed => StyledLine::new(Look::GREEN, "✓ "),
        ToolStatus::Failed => StyledLine::new(Look::RED, "✗ "),
        ToolStatus::Pending | ToolStatus::InProgress => StyledLine::new(running, "• "),
    }
}

/// Draws what a question asks about: a heading, and the changes to files.
pub(crate) fn asked(tool: &AgentToolCall, cwd: &str, room: usize) -> (StyledLine, Vec<StyledLine>) {
    let changes = changes(tool);
    let heading = heading(tool, cwd);
    let only = only_change(&changes, &heading, cwd);
    let mut line = StyledLine::new(Look::BOLD, &heading);
    if let Some(change) = only {
        line = line.with(Look::PLAIN, "  ");
        line.append(change.counts());
    }
    (line, change_rows(&changes, only.is_some(), cwd, room))
}

/// Returns the only change if the title names its file.
fn only_change<'c>(
    changes: &'c [(&str, LineChange)],
    title: &str,
    cwd: &str,
) -> Option<&'c LineChange> {
    match changes {
        [(path, change)] if title.contains(short_path(path, cwd)) => Some(change),
        _ => None,
    }
}

/// Draws the changes to files, each below its path unless the title names it.
fn change_rows(
    changes: &[(&str, LineChange)],
    is_named: bool,
    cwd: &str,
    room: usize,
) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    for (path, change) in changes {
        if !is_named {
            let counts = change.counts();
            let path_room = room.saturating_sub(counts.width() + 4);
            let path = StyledLine::new(Look::BOLD, short_path(path, cwd));
            let mut header = StyledLine::new(Look::PLAIN, "  ");
            header.append(cut_start(path, path_room));
            header = header.with(Look::PLAIN, "  ");
            header.append(counts);
            rows.push(header.cut(room));
        }
        rows.extend(indented(change.rows(room.saturating_sub(2))));
    }
    rows
}

/// Returns what the call does, in one line: its command or its title.
pub(crate) fn subject(tool: &AgentToolCall, cwd: &str) -> String {
    match command(tool) {
        Some(command) if tool.kind == ToolKind::Execute => first_line(&command),
        _ => title(tool, cwd),
    }
}

/// Returns the title after the kind of the call.
fn heading(tool: &AgentToolCall, cwd: &str) -> String {
    let title = title(tool, cwd);
    // The command follows in its own rows.
    if command(tool).is_some_and(|command| first_line(&command) == title) {
        return "run a command".to_owned();
    }
    let kind = kind(tool.kind);
    if title.to_lowercase().starts_with(kind) { title } else { format!("{kind} {title}") }
}

/// The shell command of the input: a text, or a list of words.
pub(crate) fn command(tool: &AgentToolCall) -> Option<String> {
    let command = match tool.input.get("command")? {
        Value::String(text) => text.clone(),
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => return None,
    };
    (!command.trim().is_empty()).then_some(command)
}

/// The fields of an input that is not a command, as one text each.
pub(crate) fn fields(tool: &AgentToolCall) -> Vec<String> {
    let Value::Object(fields) = &tool.input else { return Vec::new() };
    fields
        .iter()
        .map(|(name, value)| match value {
            Value::String(text) => format!("{name}: {text}"),
            value => format!("{name}: {value}"),
        })
        .collect()
}

/// The path below the working directory.
fn short_path<'p>(path: &'p str, cwd: &str) -> &'p str {
    let below = path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/'));
    below.filter(|rest| !cwd.is_empty() && !rest.is_empty()).unwrap_or(path)
}

fn changes(tool: &AgentToolCall) -> Vec<(&str, LineChange)> {
    let content = tool.content.iter();
    content
        .filter_map(|content| match content {
            ToolContent::Diff(diff) => Some((diff.path.as_str(), diff::compare(diff))),
            ToolContent::Text(_) => None,
        })
        .collect()
}

/// Draws one line: glyph, kind, title, counts of changed lines and duration.
fn titled(
    mut line: StyledLine,
    tool: &AgentToolCall,
    change: Option<&LineChange>,
    time: &str,
    cwd: &str,
    room: usize,
) -> StyledLine {
    let title = title(tool, cwd);
    let kind = kind(tool.kind);
    // Many titles begin with the kind: "Read src/lib.rs".
    if !title.to_lowercase().starts_with(kind) {
        line = line.with(Look::CYAN, kind).with(Look::PLAIN, " ");
    }
    let mut end = StyledLine::default();
    if let Some(change) = change {
        end = end.with(Look::PLAIN, "  ");
        end.append(change.counts());
    }
    if !time.is_empty() {
        end = end.with(Look::DIM, "  ").with(Look::DIM, time);
    }
    let title_room = room.saturating_sub(line.width() + end.width());
    line.append(StyledLine::new(Look::PLAIN, &title).cut(title_room.max(8)));
    line.append(end);
    line.cut(room)
}

/// Returns the title in one line, without the working directory and marks of code.
fn title(tool: &AgentToolCall, cwd: &str) -> String {
    let mut title = first_line(tool.title.trim().trim_matches('`'));
    if !cwd.is_empty() {
        title = title.replace(&format!("{cwd}/"), "");
    }
    if title.is_empty() || title == "Terminal" {
        let location = tool.locations.first().map(|path| short_path(path, cwd).to_owned());
        let known = command(tool).or(location).unwrap_or_else(|| kind(tool.kind).to_owned());
        title = first_line(&known);
    }
    title
}

/// Returns the first line; `…` says that there are more.
fn first_line(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or("").trim_end();
    if lines.next().is_some() { format!("{first} …") } else { first.to_owned() }
}

fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Execute => "run",
        ToolKind::SwitchMode => "mode",
        ToolKind::Other => "tool",
        kind => kind.into(),
    }
}

/// Draws the last lines of the text of a failed call.
fn error_rows(tool: &AgentToolCall, room: usize) -> Vec<StyledLine> {
    let texts = tool.content.iter().rev().filter_map(|content| match content {
        ToolContent::Text(text) => Some(text),
        ToolContent::Diff(_) => None,
    });
    let lines = texts.flat_map(|text| text.lines().rev());
    let lines = lines.filter(|line| !line.trim().is_empty() && !line.trim().starts_with("```"));
    let mut rows: Vec<StyledLine> = lines
        .take(ERROR_LINES)
        .map(|line| {
            let look = Look { hue: Some(Hue::Red), ..Look::DIM };
            StyledLine::new(look, "  ").with(look, line.trim_end()).cut(room)
        })
        .collect();
    rows.reverse();
    rows
}

fn indented(rows: Vec<StyledLine>) -> impl Iterator<Item = StyledLine> {
    rows.into_iter().map(|row| {
        let mut line = StyledLine::new(Look::PLAIN, "  ");
        line.append(row);
        line
    })
}

/// Cuts the beginning of a path, whose end says more.
fn cut_start(path: StyledLine, room: usize) -> StyledLine {
    if path.width() <= room {
        return path;
    }
    let text = path.text();
    let mut kept = String::new();
    for (at, _) in text.char_indices() {
        if crate::line::width(&text[at..]) < room.max(1) {
            kept = format!("…{}", &text[at..]);
            break;
        }
    }
    StyledLine::new(Look::BOLD, &kept)
}
