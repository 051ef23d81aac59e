//! Draws tool calls: one line each, with the changes to files or the end of an error.

use acp::{ToolCall, ToolContent, ToolKind, ToolStatus};

use crate::diff::{self, LineChange};
use crate::line::{Hue, Look, StyledLine};
use crate::words;

/// Lines of the text of a failed call.
const ERROR_LINES: usize = 3;

/// Draws the line of a call that runs.
pub(crate) fn running(tool: &ToolCall, millis: u64, cwd: &str, room: usize) -> StyledLine {
    let time = if millis < 1000 { String::new() } else { words::seconds(millis) };
    let glyph = StyledLine::new(Look::YELLOW, "• ");
    titled(glyph, tool, None, &time, cwd, room)
}

/// Draws a call that has ended. `millis` is `None` in a replayed conversation.
pub(crate) fn ended(
    tool: &ToolCall,
    millis: Option<u64>,
    cwd: &str,
    room: usize,
) -> Vec<StyledLine> {
    let glyph = match tool.status {
        ToolStatus::Completed => StyledLine::new(Look::GREEN, "✓ "),
        ToolStatus::Failed => StyledLine::new(Look::RED, "✗ "),
        ToolStatus::Pending | ToolStatus::InProgress => StyledLine::new(Look::DIM, "• "),
    };
    let time = millis.map(words::duration).unwrap_or_default();
    let changes = changes(tool);
    // The only file is named in the title.
    let only = match changes.as_slice() {
        [(path, change)] if title(tool, cwd).contains(short_path(path, cwd)) => Some(change),
        _ => None,
    };
    let mut rows = vec![titled(glyph, tool, only, &time, cwd, room)];
    if tool.status == ToolStatus::Failed {
        rows.extend(error_rows(tool, room));
    } else if let Some(change) = only {
        rows.extend(indented(change.rows(room.saturating_sub(2))));
    } else {
        rows.extend(change_rows(tool, cwd, room));
    }
    rows
}

/// Draws the changes to files, each below its path.
pub(crate) fn change_rows(tool: &ToolCall, cwd: &str, room: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    for (path, change) in changes(tool) {
        let counts = change.counts();
        let path_room = room.saturating_sub(counts.width() + 4);
        let path = StyledLine::new(Look::BOLD, short_path(path, cwd));
        let mut header = StyledLine::new(Look::PLAIN, "  ");
        header.append(cut_start(path, path_room));
        header = header.with(Look::PLAIN, "  ");
        header.append(counts);
        rows.push(header.cut(room));
        rows.extend(indented(change.rows(room.saturating_sub(2))));
    }
    rows
}

/// Returns what the call does, in one line: its command or its title.
pub(crate) fn subject(tool: &ToolCall, cwd: &str) -> String {
    match command(tool) {
        Some(command) if tool.kind == ToolKind::Execute => first_line(command),
        _ => title(tool, cwd),
    }
}

/// Returns the title after the kind of the call.
pub(crate) fn heading(tool: &ToolCall, cwd: &str) -> String {
    let title = title(tool, cwd);
    // The command follows in its own rows.
    if command(tool).is_some_and(|command| first_line(command) == title) {
        return "run a command".to_owned();
    }
    let kind = kind(tool.kind);
    if title.to_lowercase().starts_with(kind) { title } else { format!("{kind} {title}") }
}

/// The shell command of the input.
pub(crate) fn command(tool: &ToolCall) -> Option<&str> {
    tool.input.get("command").and_then(|command| command.as_str()).filter(|text| !text.is_empty())
}

/// The path below the working directory.
fn short_path<'p>(path: &'p str, cwd: &str) -> &'p str {
    let below = path.strip_prefix(cwd).and_then(|rest| rest.strip_prefix('/'));
    below.filter(|rest| !cwd.is_empty() && !rest.is_empty()).unwrap_or(path)
}

fn changes(tool: &ToolCall) -> Vec<(&str, LineChange)> {
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
    tool: &ToolCall,
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
fn title(tool: &ToolCall, cwd: &str) -> String {
    let mut title = first_line(tool.title.trim().trim_matches('`'));
    if !cwd.is_empty() {
        title = title.replace(&format!("{cwd}/"), "");
    }
    if title.is_empty() || title == "Terminal" {
        let location = tool.locations.first().map(|path| short_path(path, cwd));
        let known = command(tool).or(location).unwrap_or(kind(tool.kind));
        title = first_line(known);
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
fn error_rows(tool: &ToolCall, room: usize) -> Vec<StyledLine> {
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
