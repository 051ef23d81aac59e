//! Draws the open question, and finds the option that a key chooses.

use acp::{AgentQuestion, OptionKind};

use crate::line::{Breaks, Look, StyledLine, wrap};
use crate::tool;

/// Rows of the input that is to be allowed.
const INPUT_ROWS: usize = 8;

/// Draws a question; `others` wait behind it.
pub(crate) fn draw(
    question: &AgentQuestion,
    others: usize,
    cwd: &str,
    room: usize,
) -> Vec<StyledLine> {
    let (heading, changes) = tool::asked(&question.tool, cwd, room);
    let mut head = StyledLine::new(Look { is_bold: true, ..Look::YELLOW }, "? ");
    head.append(heading);
    if others > 0 {
        let verb = if others == 1 { "waits" } else { "wait" };
        head = head.with(Look::DIM, &format!("  ({others} more {verb})"));
    }
    let mut rows = wrap(
        &head,
        &StyledLine::default(),
        &StyledLine::new(Look::PLAIN, "  "),
        room,
        Breaks::Words,
    );
    rows.truncate(3);
    let input = match tool::command(&question.tool) {
        Some(command) => input_rows(command.trim_end().lines(), "$ ", room),
        None if changes.is_empty() && question.plan.is_none() => {
            let fields = tool::fields(&question.tool);
            input_rows(fields.iter().map(String::as_str), "", room)
        }
        None => Vec::new(),
    };
    rows.extend(input);
    rows.extend(changes);
    rows.extend(option_rows(question, room));
    rows
}

/// Draws the lines of an input, the first one after a mark.
fn input_rows<'l>(
    lines: impl Iterator<Item = &'l str>,
    mark: &str,
    room: usize,
) -> Vec<StyledLine> {
    let indent = " ".repeat(2 + mark.len());
    let rest = StyledLine::new(Look::PLAIN, &indent);
    let mut rows = Vec::new();
    for (at, line) in lines.enumerate() {
        let first = StyledLine::new(Look::DIM, "  ").with(Look::DIM, mark);
        let first = if at == 0 { &first } else { &rest };
        let body = StyledLine::new(Look::CYAN, line);
        rows.extend(wrap(&body, first, &rest, room, Breaks::Anywhere));
    }
    let hidden = rows.len().saturating_sub(INPUT_ROWS);
    if hidden > 1 {
        rows.truncate(INPUT_ROWS);
        let more = format!("{indent}… {hidden} more lines");
        rows.push(StyledLine::new(Look::YELLOW, &more).cut(room));
    }
    rows
}

/// Draws the options side by side while they fit, and the hint about keys. A long option is never
/// cut: its end may say what it allows.
fn option_rows(question: &AgentQuestion, room: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    let mut row = StyledLine::default();
    for (at, option) in question.options.iter().enumerate() {
        let item = StyledLine::new(Look::BOLD, &format!("{}", at + 1))
            .with(Look::PLAIN, " ")
            .with(Look::PLAIN, &option.name);
        if !row.is_empty() && row.width() + 2 + item.width() > room {
            rows.push(std::mem::take(&mut row));
        }
        let indent = StyledLine::new(Look::PLAIN, "  ");
        if item.width() + indent.width() > room {
            let rest = StyledLine::new(Look::PLAIN, "    ");
            rows.extend(wrap(&item, &indent, &rest, room, Breaks::Words));
            continue;
        }
        row.append(indent);
        row.append(item);
    }
    if !row.is_empty() {
        rows.push(row);
    }
    let mut keys = Vec::new();
    if allow(question).is_some() {
        keys.push("y allow".to_owned());
    }
    if reject(question).is_some() {
        keys.push("n reject".to_owned());
    }
    match question.options.len().min(9) {
        0 => {}
        1 => keys.push("1".to_owned()),
        last => keys.push(format!("1–{last}")),
    }
    rows.push(StyledLine::new(Look::DIM, "  ").with(Look::DIM, &keys.join("  ")));
    rows.into_iter().map(|row| row.cut(room)).collect()
}

/// Returns the id of the option that a key chooses.
pub(crate) fn option_for(question: &AgentQuestion, key: char) -> Option<&str> {
    match key {
        'y' => allow(question),
        'n' => reject(question),
        _ => {
            let number = key.to_digit(10)?.checked_sub(1)?;
            question.options.get(usize::try_from(number).ok()?).map(|option| option.id.as_str())
        }
    }
}

/// Returns the option that allows once. There is none if several do, because they differ in what
/// else they do.
fn allow(question: &AgentQuestion) -> Option<&str> {
    let mut found = question.options.iter().filter(|option| option.kind == OptionKind::AllowOnce);
    let option = found.next()?;
    found.next().is_none().then_some(option.id.as_str())
}

/// Returns the option that rejects once.
fn reject(question: &AgentQuestion) -> Option<&str> {
    let mut options = question.options.iter();
    options.find(|option| option.kind == OptionKind::RejectOnce).map(|option| option.id.as_str())
}

/// Draws the line of a question that was answered: "allowed by team-lead" becomes
/// "✓ allowed: touch made.txt (by team-lead)".
pub(crate) fn decided(question: &AgentQuestion, words: &str, cwd: &str, room: usize) -> StyledLine {
    let is_allowed = words.starts_with("allow") || words.starts_with("approve");
    let glyph = if is_allowed {
        StyledLine::new(Look::GREEN, "✓ ")
    } else {
        StyledLine::new(Look::RED, "✗ ")
    };
    let (verb, who) = match (words.split_once(" by "), words.split_once(" here: ")) {
        (_, Some((verb, option))) => (verb, format!(" (here: {option})")),
        (Some((verb, who)), None) => (verb, format!(" (by {who})")),
        (None, None) => (words, String::new()),
    };
    let mut line = glyph.with(Look::PLAIN, &format!("{verb}: "));
    let subject = StyledLine::new(Look::PLAIN, &tool::subject(&question.tool, cwd));
    let who = StyledLine::new(Look::DIM, &who);
    let left = room.saturating_sub(line.width() + who.width());
    line.append(subject.cut(left.max(8)));
    line.append(who);
    line.cut(room)
}
