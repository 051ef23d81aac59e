//! Draws a view. Only visible rows are built.

use std::time::Instant;

use ratatui::buffer::Buffer;
use ratatui::layout::{Rect, Size};
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use crate::annotation::AnnotationState;
use crate::cells::{dim, fill, put};
use crate::glyph;
use crate::help::KEYS;
use crate::index::{DiffPlace, DiffRow};
use crate::line::LineCells;
use crate::patch::{ChangeKind, FilePatch};
use crate::view::{DiffView, NOTE_INDENT};

/// Keys of the last row, in the order in which they are left out.
const HINTS: [&str; 12] = [
    "? help",
    "q close",
    "c comment",
    "] hunk",
    "} file",
    "f files",
    "V viewed",
    "/ search",
    "m next comment",
    "t split",
    "w words",
    "Enter fold",
];

impl DiffView {
    /// Draws the view. Lines whose words are not compared by the deadline are drawn without these
    /// differences.
    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer, deadline: Option<Instant>) {
        let area = area.intersection(buffer.area);
        self.set_size(Size::new(area.width, area.height));
        self.keep_visible();
        self.forget_comparisons();
        if area.is_empty() {
            return;
        }
        buffer.set_style(area, Style::reset());
        for y in area.top()..area.bottom() {
            fill(buffer, Rect { y, height: 1, ..area }, "", Style::default());
        }
        let height = u16::try_from(self.body_height()).unwrap_or(u16::MAX);
        let body_top = area.y + u16::from(area.height > 2);
        let body = Rect { y: body_top, height, ..area };
        if area.height > 2 {
            self.draw_title(Rect { height: 1, ..area }, buffer);
        }
        if area.height > 1 {
            self.draw_bottom(Rect { y: area.bottom() - 1, height: 1, ..area }, buffer);
        }
        let list = self.list_width();
        let diff = Rect { x: body.x + list, width: body.width - list, ..body };
        self.draw_rows(diff, buffer, deadline);
        if list > 0 {
            self.draw_list(Rect { width: list - 1, ..body }, buffer);
            for y in body.top()..body.bottom() {
                put(buffer, body.x + list - 1, y, 1, "│", dim());
            }
        } else if self.list.is_some() {
            self.draw_list(body, buffer);
        }
        if let Some(at) = self.help {
            let keys = self.owner_keys.iter().chain(&KEYS).skip(at).copied();
            let rows = keys.chain(std::iter::repeat(("", "")));
            for (row, (keys, words)) in (body.top()..body.bottom()).zip(rows) {
                let text = format!(" {keys:<16} {words}");
                fill(buffer, Rect { y: row, height: 1, ..body }, &text, Style::default());
            }
        }
    }

    /// Returns a style with its colour, or without it if colours are off.
    pub(crate) fn ink(&self, color: Color) -> Style {
        if self.has_color { Style::default().fg(color) } else { Style::default() }
    }

    fn draw_title(&self, area: Rect, buffer: &mut Buffer) {
        let room = usize::from(area.width);
        let (files, viewed) = (self.patch.files.len(), self.viewed.iter().filter(|v| **v).count());
        let file = self.place().file.map_or(0, |file| file + 1);
        let drafts = self.drafts();
        let plural = if drafts == 1 { "" } else { "s" };
        let long =
            format!("file {file}/{files} · {drafts} draft{plural} · viewed {viewed}/{files}");
        let long = if self.ignores_whitespace { format!("no white space · {long}") } else { long };
        let short = format!("{file}/{files} {drafts}✎ ✓{viewed}");
        let title = self.title.width();
        let right = if title + long.width() + 3 <= room { long } else { short };
        let left = glyph::cut(&self.title, room.saturating_sub(right.width() + 3));
        let bold = Style::default().add_modifier(Modifier::BOLD);
        put(buffer, area.x + 1, area.y, room.saturating_sub(1), &left, bold);
        if right.width() < room {
            let x = area.right() - 1 - u16::try_from(right.width()).unwrap_or(0);
            put(buffer, x, area.y, right.width(), &right, Style::default());
        }
    }

    fn draw_bottom(&self, area: Rect, buffer: &mut Buffer) {
        let room = usize::from(area.width);
        let text = if let Some(typed) = &self.typed {
            glyph::cut_start(&format!("/{}▏", glyph::safe(typed.as_bytes())), room)
        } else if !self.message.is_empty() {
            glyph::cut(&format!(" {}", self.message), room)
        } else {
            let hints: &[&str] = if self.help.is_some() {
                &["j/k scroll", "? close"]
            } else if self.list.is_some() {
                &["Enter open", "V viewed", "Esc close", "f hide"]
            } else if self.range.is_some() {
                &["c comment", "Esc no range"]
            } else if self.owner_hints.is_empty() {
                &HINTS
            } else {
                self.owner_hints
            };
            let mut text = String::new();
            for hint in hints {
                if text.width() + hint.width() + 2 <= room {
                    text.push_str(if text.is_empty() { " " } else { "  " });
                    text.push_str(hint);
                }
            }
            text
        };
        put(buffer, area.x, area.y, room, &text, Style::default());
    }

    fn draw_list(&self, area: Rect, buffer: &mut Buffer) {
        let height = usize::from(area.height);
        let current = self.list.or(self.place().file).unwrap_or(0);
        let first = current.saturating_sub(height / 2);
        let first = first.min(self.patch.files.len().saturating_sub(height));
        for (y, at) in (area.top()..area.bottom()).zip(first..) {
            let row = Rect { y, height: 1, ..area };
            let Some(file) = self.patch.files.get(at) else {
                fill(buffer, row, "", Style::default());
                continue;
            };
            let counts = format!(" {} ", counts(file));
            let room = usize::from(area.width).saturating_sub(counts.width() + 6);
            let path = glyph::cut_start(&glyph::safe(file.path()), room);
            let pad = " ".repeat(room.saturating_sub(path.width()));
            let mark = if at == current { "▶" } else { " " };
            let viewed = if self.viewed[at] { "✓" } else { "○" };
            let text = format!("{mark}{viewed} {} {path}{pad} {counts}", letter(file));
            let style = match self.list {
                Some(_) if at == current => Style::default().add_modifier(Modifier::REVERSED),
                _ if self.viewed[at] => dim(),
                _ => Style::default(),
            };
            fill(buffer, row, &text, style);
        }
    }

    fn draw_rows(&mut self, area: Rect, buffer: &mut Buffer, deadline: Option<Instant>) {
        self.is_cut = false;
        if self.index.total() == 0 {
            put(buffer, area.x + 1, area.y, usize::from(area.width), "no changes", dim());
            return;
        }
        let selected = self.selected_lines();
        for (y, row) in (area.top()..area.bottom()).zip(self.top..) {
            let Some(found) = self.row(row) else { break };
            let line = Rect { y, height: 1, ..area };
            match found {
                DiffRow::Note { note, part } => self.draw_note(line, buffer, note, part),
                DiffRow::File(file) => self.draw_file(line, buffer, file),
                DiffRow::Hunk(file, hunk) => self.draw_hunk(line, buffer, file, hunk),
                DiffRow::Lines { file, hunk, old, new } => {
                    let row = LineCells { file, hunk, old, new };
                    self.draw_lines(line, buffer, row, deadline);
                    let is_selected = selected.is_some_and(|(first, last)| {
                        [old, new]
                            .into_iter()
                            .flatten()
                            .any(|line| (first..=last).contains(&DiffPlace::line(file, hunk, line)))
                    });
                    if is_selected {
                        put(buffer, area.x, y, 1, "┃", self.ink(Color::Yellow));
                    }
                }
            }
            if row == self.cursor {
                let style = Style::default().add_modifier(Modifier::BOLD);
                put(buffer, area.x, y, 1, "▶", style);
            }
        }
        if self.is_pinned()
            && let Some(file) = self.file_of(self.top)
        {
            fill(buffer, Rect { height: 1, ..area }, "", Style::default());
            self.draw_file(Rect { height: 1, ..area }, buffer, file);
        }
    }

    pub(crate) fn file_of(&self, row: usize) -> Option<usize> {
        match self.row(row)? {
            DiffRow::Note { note, .. } => self.place_of_note(note).file,
            DiffRow::File(file) | DiffRow::Hunk(file, _) | DiffRow::Lines { file, .. } => {
                Some(file)
            }
        }
    }

    fn draw_file(&self, area: Rect, buffer: &mut Buffer, file: usize) {
        let patch = self.file(file);
        let is_open = !self.folded[file] && !patch.hunks.is_empty();
        let mark = match (self.viewed[file], is_open) {
            (true, _) => "✓",
            (false, true) => "▾",
            (false, false) => "▸",
        };
        let hidden = self.folded[file]
            .then(|| self.placed.iter().filter(|note| note.place.file == Some(file)).count());
        let mut about = kind(patch);
        match hidden {
            Some(1) => about.push_str(" · 1 comment"),
            Some(count @ 2..) => about.push_str(&format!(" · {count} comments")),
            _ => {}
        }
        let right = format!("  {}{about}", counts(patch));
        let room = usize::from(area.width).saturating_sub(3);
        let name = match (&patch.old, &patch.new) {
            (Some(old), Some(new)) if old != new => {
                format!("{} → {}", glyph::safe(old), glyph::safe(new))
            }
            _ => glyph::safe(patch.path()),
        };
        let name = glyph::cut_start(&name, room.saturating_sub(right.width()).max(room.min(12)));
        let bold = Style::default().add_modifier(Modifier::BOLD);
        put(buffer, area.x + 1, area.y, 1, mark, bold);
        put(buffer, area.x + 3, area.y, room, &name, bold);
        let used = name.width();
        let x = area.x + 3 + u16::try_from(used).unwrap_or(0);
        put(buffer, x, area.y, room.saturating_sub(used), &right, Style::default());
    }

    fn draw_hunk(&self, area: Rect, buffer: &mut Buffer, file: usize, hunk: usize) {
        let hunk = &self.file(file).hunks[hunk];
        let text = format!(
            "@@ -{},{} +{},{} @@ {}",
            hunk.old_start,
            hunk.old_len,
            hunk.new_start,
            hunk.new_len,
            glyph::safe(&hunk.section)
        );
        let room = usize::from(area.width).saturating_sub(1);
        put(buffer, area.x + 1, area.y, room, &glyph::cut(&text, room), dim());
    }

    fn draw_note(&self, area: Rect, buffer: &mut Buffer, note: usize, part: usize) {
        let style = match self.notes[note].state {
            AnnotationState::Draft => self.ink(Color::Yellow),
            AnnotationState::Sent => self.ink(Color::Cyan),
            AnnotationState::Answered => self.ink(Color::Magenta),
            AnnotationState::Resolved => dim(),
        };
        let room = usize::from(area.width).saturating_sub(NOTE_INDENT);
        let x = area.x + u16::try_from(NOTE_INDENT).unwrap_or(0);
        put(buffer, x, area.y, room, "┃", style.add_modifier(Modifier::BOLD));
        let text = self.note_rows[note].get(part).map_or("", String::as_str);
        put(buffer, x + 2, area.y, room.saturating_sub(2), text, style);
    }
}

/// The numbers of added and removed lines.
fn counts(file: &FilePatch) -> String {
    match (file.added, file.removed) {
        (0, 0) => String::new(),
        (added, 0) => format!("+{added}"),
        (0, removed) => format!("−{removed}"),
        (added, removed) => format!("+{added} −{removed}"),
    }
}

fn letter(file: &FilePatch) -> &'static str {
    match file.change {
        _ if file.is_binary => "B",
        ChangeKind::Added => "A",
        ChangeKind::Deleted => "D",
        ChangeKind::Modified => "M",
        ChangeKind::Renamed => "R",
        ChangeKind::Copied => "C",
        ChangeKind::Unmerged => "!",
    }
}

/// The kind of a change in words, each after a space and a dot.
fn kind(file: &FilePatch) -> String {
    let change = match file.change {
        ChangeKind::Added => " · new",
        ChangeKind::Deleted => " · deleted",
        ChangeKind::Modified => "",
        ChangeKind::Renamed => " · renamed",
        ChangeKind::Copied => " · copied",
        ChangeKind::Unmerged => " · conflict",
    };
    let binary = if file.is_binary { " · binary" } else { "" };
    let submodule = if file.is_submodule() { " · submodule" } else { "" };
    let mode = file.mode_change().map(|(old, new)| format!(" · mode {old:o} → {new:o}"));
    format!("{change}{binary}{submodule}{}", mode.unwrap_or_default())
}
