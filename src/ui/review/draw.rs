//! Draws a review screen.

use std::time::Instant;

use diff::cells::put;
use diff::glyph::cut;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use unicode_width::UnicodeWidthStr;

use super::changes::answer_words;
use super::data::DiffRange;
use super::dialog::{
    CommentEditor, EditorPurpose, MessagePreview, OpenComment, RANGES, ReviewDialog, ReviewQuestion,
};
use super::keys::LIST_HINTS;
use super::overview;
use super::paint::{border, rows_of, to_ascii, write};
use super::state::ReviewScreen;
use crate::dashboard::{Theme, Tone};

/// Rows of the editor besides those of its text.
const EDITOR_FRAME: u16 = 3;

impl ReviewScreen {
    /// Draws the screen. Words of lines that are not compared by the deadline are drawn without
    /// their differences. Returns the place of the cursor while a text is written.
    pub fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        deadline: Option<Instant>,
    ) -> Option<Position> {
        let area = area.intersection(buffer.area);
        if area.is_empty() {
            return None;
        }
        for y in area.top()..area.bottom() {
            write(buffer, Rect { y, height: 1, ..area }, "", Style::default());
        }
        let last = Rect { y: area.bottom() - 1, height: 1, ..area };
        let below = self.editor_area(area);
        if let Some(request) = &self.loading {
            let words = format!(" reading the changes of {}… Esc cancels", request.member);
            let middle = Rect { y: area.y + area.height / 2, height: 1, ..area };
            write(buffer, middle, &words, self.theme.style(Tone::Strong));
        } else if let Some(page) = &mut self.changes {
            // The editor covers the keys of the view, which it does not have.
            let rest = below.map_or(area, |below| Rect { height: below.y + 1 - area.y, ..area });
            page.is_seen |= page.range != DiffRange::Uncommitted;
            page.is_drawn = true;
            page.view.draw(rest, buffer, deadline);
        } else {
            overview::draw(self, area, buffer);
            draw_hints(&LIST_HINTS, last, buffer);
        }
        let cursor = self.draw_dialog(area, below, buffer);
        self.draw_notice(last, buffer);
        if self.theme.ascii {
            to_ascii(area, buffer);
        }
        self.drawn = if self.loading.is_none() { self.object().ok() } else { None };
        cursor
    }

    /// Sets the title of the changes, which depends on the width and on newer changes.
    fn retitle(&mut self, width: usize) {
        let is_outdated = self.is_outdated();
        if let Some(page) = &mut self.changes {
            let title = page.title(width, is_outdated);
            page.view.set_title(&title);
        }
    }

    /// Returns the area of the editor at the bottom, if it is open.
    fn editor_area(&mut self, area: Rect) -> Option<Rect> {
        self.retitle(area.width.into());
        let Some(ReviewDialog::Editor(editor)) = &mut self.dialog else { return None };
        let rows = editor.area.height(usize::from(area.width.saturating_sub(4)));
        let rows = u16::try_from(rows).unwrap_or(u16::MAX).max(3);
        let height = rows.min(area.height / 2).saturating_add(EDITOR_FRAME).min(area.height);
        Some(Rect { y: area.bottom() - height, height, ..area })
    }

    /// Draws the message in the last row, above what is there.
    fn draw_notice(&self, last: Rect, buffer: &mut Buffer) {
        let Some(notice) = self.notice.as_ref().filter(|_| self.shows_notice) else {
            if let (Some(problem), None) = (&self.list_problem, &self.changes)
                && self.dialog.is_none()
                && self.list.is_some()
            {
                let words = format!(" not up to date: {problem}");
                write(buffer, last, &words, self.theme.style(Tone::Bad));
            }
            return;
        };
        let tone = if notice.is_problem { Tone::Bad } else { Tone::Good };
        let mut lines = notice.text.split('\n');
        let first = lines.next().unwrap_or_default();
        let room = usize::from(last.width).saturating_sub(1);
        let is_cut = lines.next().is_some() || first.width() > room;
        let words = if is_cut && room > 12 {
            format!(" {} (! all)", cut(first, room - 8))
        } else {
            format!(" {first}")
        };
        write(buffer, last, &words, self.theme.style(tone));
    }

    fn draw_dialog(
        &mut self,
        area: Rect,
        below: Option<Rect>,
        buffer: &mut Buffer,
    ) -> Option<Position> {
        let theme = self.theme;
        let dialog = self.dialog.as_mut()?;
        let hint = dialog.hint();
        match dialog {
            ReviewDialog::Editor(editor) => {
                return draw_editor(editor, &hint, below.unwrap_or(area), theme, buffer);
            }
            ReviewDialog::Page(page) => {
                let rows = |room| rows_of(&page.text, room);
                page.scroll = draw_text(&page.title, rows, page.scroll, &hint, area, theme, buffer);
                page.is_drawn = true;
            }
            ReviewDialog::Message(message) => {
                draw_message(message, &hint, area, theme, buffer);
            }
            ReviewDialog::Comment(open) => {
                let title = format!("{} · {}", open.comment.id, open.place);
                let rows = |room| comment_rows(open, room);
                open.scroll = draw_text(&title, rows, open.scroll, &hint, area, theme, buffer);
            }
            ReviewDialog::Question(question) => {
                draw_question(question, &hint, area, theme, buffer);
            }
            ReviewDialog::Ranges { at } => {
                let size = (34, 6);
                let inner = window("Changes", size, &hint, area, theme, buffer);
                for (y, (number, range)) in
                    (inner.top()..inner.bottom()).zip(RANGES.iter().enumerate())
                {
                    let is_selected = number == *at;
                    let mark = if is_selected { "▶" } else { " " };
                    let style =
                        if is_selected { theme.selected(true) } else { theme.style(Tone::Plain) };
                    let row = Rect { y, height: 1, ..inner };
                    write(buffer, row, &format!("{mark} {}", range.words()), style);
                }
            }
        }
        None
    }
}

/// Draws the keys that fit into the row.
fn draw_hints(hints: &[&str], area: Rect, buffer: &mut Buffer) {
    let mut text = String::new();
    for hint in hints {
        if text.width() + hint.width() + 2 <= usize::from(area.width) {
            text.push_str(if text.is_empty() { " " } else { "  " });
            text.push_str(hint);
        }
    }
    write(buffer, area, &text, Style::default());
}

/// Draws a window in the middle, with the keys in its last row, and returns the area above these.
fn window(
    title: &str,
    (width, height): (u16, u16),
    hint: &str,
    area: Rect,
    theme: Theme,
    buffer: &mut Buffer,
) -> Rect {
    let wanted = u16::try_from(hint.width() + 4).unwrap_or(u16::MAX);
    let (width, height) = (width.max(wanted).min(area.width), height.min(area.height));
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    let inner = border(place, title, theme, buffer);
    let Some(rows) = inner.height.checked_sub(1) else { return inner };
    let keys = Rect { y: inner.bottom() - 1, height: 1, ..inner };
    write(buffer, keys, hint, theme.style(Tone::Dim));
    Rect { height: rows, ..inner }
}

/// Draws a text that can be scrolled, in a window of the size that it needs. Returns the rows above
/// the visible ones.
fn draw_text(
    title: &str,
    rows: impl FnOnce(usize) -> Vec<String>,
    scroll: usize,
    hint: &str,
    area: Rect,
    theme: Theme,
    buffer: &mut Buffer,
) -> usize {
    let width = area.width.saturating_sub(4).min(100);
    let rows = rows(usize::from(width.saturating_sub(4)));
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(3);
    let height = height.min(area.height.saturating_sub(2)).max(4);
    let room = usize::from(height.saturating_sub(3)).max(1);
    let most = rows.len().saturating_sub(room);
    let first = scroll.min(most);
    let hint = if most > 0 {
        format!("{hint} · {}/{}", (first + room).min(rows.len()), rows.len())
    } else {
        hint.to_owned()
    };
    let inner = window(title, (width, height), &hint, area, theme, buffer);
    for (y, row) in (inner.top()..inner.bottom()).zip(rows.iter().skip(first)) {
        put(buffer, inner.x, y, inner.width.into(), row, theme.style(Tone::Plain));
    }
    first
}

fn draw_message(
    message: &mut MessagePreview,
    hint: &str,
    area: Rect,
    theme: Theme,
    buffer: &mut Buffer,
) {
    let title = format!("Message to {}", message.member);
    let rows = |room| match &message.text {
        Some(text) => rows_of(text, room),
        None => vec!["making the message…".to_owned()],
    };
    message.scroll = draw_text(&title, rows, message.scroll, hint, area, theme, buffer);
    message.is_drawn = message.text.is_some();
}

fn draw_question(
    question: &mut ReviewQuestion,
    hint: &str,
    area: Rect,
    theme: Theme,
    buffer: &mut Buffer,
) {
    let width = area.width.saturating_sub(4).min(76);
    let room = usize::from(width.saturating_sub(4));
    let words = rows_of(&question.words, room).into_iter().map(|row| (row, Tone::Strong));
    let details = question.details.iter().flat_map(|line| rows_of(line, room));
    let rows: Vec<_> = words.chain(details.map(|row| (row, Tone::Plain))).collect();
    let height = u16::try_from(rows.len()).unwrap_or(u16::MAX).saturating_add(4);
    let inner = window("Question", (width, height), hint, area, theme, buffer);
    for (y, (row, tone)) in (inner.top()..inner.bottom()).zip(rows) {
        put(buffer, inner.x, y, inner.width.into(), &row, theme.style(tone));
    }
    question.is_drawn = true;
}

/// Returns the rows of a comment: state, code, text and answer.
fn comment_rows(open: &OpenComment, room: usize) -> Vec<String> {
    let comment = &open.comment;
    let (kind, state): (&str, &str) = (comment.kind.into(), comment.state().into());
    let mut rows = rows_of(&format!("{kind} · {state} · by {}", comment.by), room);
    let lines = comment.place.as_ref().and_then(|place| place.lines.as_ref());
    if let (true, Some(lines)) = (open.shows_code, lines) {
        rows.extend(lines.quote.iter().map(|line| cut(&format!("  │ {line}"), room)));
    }
    rows.push(String::new());
    rows.extend(rows_of(&comment.text, room));
    if let Some(answer) = answer_words(comment) {
        rows.push(String::new());
        rows.extend(rows_of(&answer, room));
    }
    rows
}

fn draw_editor(
    editor: &mut CommentEditor,
    hint: &str,
    area: Rect,
    theme: Theme,
    buffer: &mut Buffer,
) -> Option<Position> {
    editor.is_drawn = true;
    let kind: &str = editor.kind.into();
    let member = &editor.member;
    let title = match &editor.purpose {
        EditorPurpose::New { place: None, .. } => format!("{kind} · all of the work of {member}"),
        EditorPurpose::New { place: Some(place), .. } => {
            let lines = place.lines.as_ref().map(|lines| {
                let side: &str = lines.side.into();
                if lines.first == lines.last {
                    format!(":{} ({side})", lines.first)
                } else {
                    format!(":{}-{} ({side})", lines.first, lines.last)
                }
            });
            format!("{kind} · {member} · {}{}", place.path, lines.unwrap_or_default())
        }
        EditorPurpose::Revise(id) => format!("{kind} · {member} · {id}"),
        EditorPurpose::Reopen(id) => format!("reopen {id} of {member}: what is left to do"),
    };
    let inner = border(area, &title, theme, buffer);
    let rows = inner.height.checked_sub(1)?;
    let last = Rect { y: inner.bottom() - 1, height: 1, ..inner };
    match &editor.problem {
        Some(problem) if !editor.is_leaving => {
            write(buffer, last, problem, theme.style(Tone::Bad));
        }
        _ => write(buffer, last, hint, theme.style(Tone::Dim)),
    }
    let text = Rect { height: rows, ..inner };
    if text.is_empty() {
        return None;
    }
    let (shown, (x, y)) = editor.area.window(text);
    for (row, line) in (text.top()..text.bottom()).zip(shown) {
        put(buffer, text.x, row, text.width.into(), line, theme.style(Tone::Plain));
    }
    let x = (text.x + x).min(text.right() - 1);
    Some(Position { x, y: text.y + y })
}
