//! Draws the open question, and finds the option that a key chooses.

use acp::{OptionKind, Question};

use crate::line::{Breaks, Look, StyledLine, wrap};
use crate::tool;

/// Rows of the command that is to be allowed.
const COMMAND_ROWS: usize = 8;

/// Draws a question; `others` wait behind it.
pub(crate) fn draw(question: &Question, others: usize, cwd: &str, room: usize) -> Vec<StyledLine> {
    let title = tool::heading(&question.tool, cwd);
    let mut head = StyledLine::new(Look { is_bold: true, ..Look::YELLOW }, "? ");
    head = head.with(Look::BOLD, &title);
    if others > 0 {
        head = head.with(Look::DIM, &format!("  ({others} more wait)"));
    }
    let mut rows = wrap(
        &head,
        &StyledLine::default(),
        &StyledLine::new(Look::PLAIN, "  "),
        room,
        Breaks::Words,
    );
    rows.truncate(3);
    if let Some(command) = tool::command(&question.tool) {
        let mut lines = Vec::new();
        for (at, line) in command.trim_end().lines().enumerate() {
            let first = StyledLine::new(Look::DIM, if at == 0 { "  $ " } else { "    " });
            let rest = StyledLine::new(Look::PLAIN, "    ");
            let body = StyledLine::new(Look::CYAN, line);
            lines.extend(wrap(&body, &first, &rest, room, Breaks::Anywhere));
        }
        let hidden = lines.len().saturating_sub(COMMAND_ROWS);
        lines.truncate(COMMAND_ROWS);
        rows.extend(lines);
        if hidden > 0 {
            rows.push(
                StyledLine::new(Look::YELLOW, &format!("    … {hidden} more lines")).cut(room),
            );
        }
    }
    rows.extend(tool::change_rows(&question.tool, cwd, room));
    rows.extend(option_rows(question, room));
    rows
}

/// Draws the options side by side while they fit, and the hint about keys.
fn option_rows(question: &Question, room: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    let mut row = StyledLine::default();
    for (at, option) in question.options.iter().enumerate() {
        let item = StyledLine::new(Look::BOLD, &format!("{}", at + 1))
            .with(Look::PLAIN, " ")
            .with(Look::PLAIN, &option.name);
        if !row.is_empty() && row.width() + 2 + item.width() > room {
            rows.push(std::mem::take(&mut row));
        }
        row = row.with(Look::PLAIN, "  ");
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
pub(crate) fn option_for(question: &Question, key: char) -> Option<&str> {
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
fn allow(question: &Question) -> Option<&str> {
    let mut found = question.options.iter().filter(|option| option.kind == OptionKind::AllowOnce);
    let option = found.next()?;
    found.next().is_none().then_some(option.id.as_str())
}

/// Returns the option that rejects once.
fn reject(question: &Question) -> Option<&str> {
    let mut options = question.options.iter();
    options.find(|option| option.kind == OptionKind::RejectOnce).map(|option| option.id.as_str())
}

/// Draws the line of a question that was answered: "allowed by team-lead" becomes
/// "✓ allowed: touch made.txt (by team-lead)".
pub(crate) fn decided(question: &Question, words: &str, cwd: &str, room: usize) -> StyledLine {
    let is_allowed = words.starts_with("allow") || words.starts_with("approve");
    let glyph = if is_allowed {
        StyledLine::new(Look::GREEN, "✓ ")
    } else {
        StyledLine::new(Look::RED, "✗ ")
    };
    let (verb, who) = match words.split_once(" by ") {
        Some((verb, who)) => (verb, format!(" (by {who})")),
        None => (words, String::new()),
    };
    let mut line = glyph.with(Look::PLAIN, &format!("{verb}: "));
    let subject = StyledLine::new(Look::PLAIN, &tool::subject(&question.tool, cwd));
    let who = StyledLine::new(Look::DIM, &who);
    let left = room.saturating_sub(line.width() + who.width());
    line.append(subject.cut(left.max(8)));
    line.append(who);
    line.cut(room)
}
