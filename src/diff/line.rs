//! Draws the lines of a hunk, unified or side by side.

use std::ops::Range;
use std::time::Instant;

use model::code::TokenSpan;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use crate::cells::{dim, put, set};
use crate::glyph::glyphs;
use crate::index::{DiffPlace, partner};
use crate::keys::matches;
use crate::patch::LineKind;
use crate::view::DiffView;
use crate::words;

/// A narrower diff has one column of line numbers.
const TWO_NUMBERS_FROM: u16 = 60;
/// Bytes of the longest character with its marks, which is at least one column wide.
const LONGEST_GLYPH: usize = 20;

/// The lines of a row.
#[derive(Clone, Copy)]
pub(crate) struct LineCells {
    pub(crate) file: usize,
    pub(crate) hunk: usize,
    pub(crate) old: Option<usize>,
    pub(crate) new: Option<usize>,
}

impl DiffView {
    pub(crate) fn draw_lines(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        row: LineCells,
        deadline: Option<Instant>,
    ) {
        if self.splits() {
            let half = (area.width - 1) / 2;
            let left = Rect { width: half, ..area };
            let right = Rect { x: area.x + half + 1, width: area.width - half - 1, ..area };
            put(buffer, area.x + half, area.y, 1, "│", dim());
            for (line, area, is_old) in [(row.old, left, true), (row.new, right, false)] {
                if let Some(line) = line {
                    let place = DiffPlace::line(row.file, row.hunk, line);
                    let found = self.line(row.file, row.hunk, line);
                    let number = if is_old { found.old } else { found.new };
                    let numbers = [number.map_or(String::new(), |number| number.to_string())];
                    self.draw_line(area, buffer, place, &numbers, deadline);
                }
            }
        } else if let Some(line) = row.new.or(row.old) {
            let found = self.line(row.file, row.hunk, line);
            let text = |number: Option<u32>| number.map_or(String::new(), |n| n.to_string());
            let numbers = if area.width >= TWO_NUMBERS_FROM {
                vec![text(found.old), text(found.new)]
            } else {
                vec![text(found.new.or(found.old))]
            };
            let place = DiffPlace::line(row.file, row.hunk, line);
            self.draw_line(area, buffer, place, &numbers, deadline);
        }
    }

    fn draw_line(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        place: DiffPlace,
        numbers: &[String],
        deadline: Option<Instant>,
    ) {
        let (Some(file), Some(hunk), Some(at)) = (place.file, place.hunk, place.line) else {
            return;
        };
        let changed = self.changed_words(file, hunk, at, deadline);
        let line = self.line(file, hunk, at);
        let (mark, style) = match line.kind {
            LineKind::Context => (" ", Style::default()),
            LineKind::Added => ("+", self.ink(Color::Green)),
            LineKind::Removed => ("-", self.ink(Color::Red)),
        };
        let mut gutter = String::new();
        for number in numbers {
            gutter.push_str(&format!("{number:>width$} ", width = self.digits));
        }
        let room = usize::from(area.width).saturating_sub(1);
        put(buffer, area.x + 1, area.y, room, &gutter, dim());
        let used = gutter.len().min(room);
        let x = area.x + 1 + u16::try_from(used).unwrap_or(0);
        let room = room - used;
        put(buffer, x, area.y, room, mark, style.add_modifier(Modifier::BOLD));
        let (start, room) = (x + 2, room.saturating_sub(2));
        // Behind these bytes nothing is visible; a line can have megabytes.
        let most = (self.left + room + 1).saturating_mul(LONGEST_GLYPH);
        let text = line.text.get(..most).unwrap_or(&line.text);
        let found: Vec<Range<usize>> =
            if self.query.is_empty() { Vec::new() } else { matches(text, &self.query).collect() };
        let tokens = self.tokens(file, line);
        let has_newline = line.has_newline;
        let line = VisibleLine { text, has_newline, changed, found, tokens, style };
        let is_cut = draw_text(self, buffer, (start, area.y), room, &line);
        self.is_cut |= is_cut;
    }

    /// Returns the bytes of a line that differ from the line that it replaces, or that replaces it.
    fn changed_words(
        &mut self,
        file: usize,
        hunk: usize,
        at: usize,
        deadline: Option<Instant>,
    ) -> Vec<Range<usize>> {
        let kind = self.line(file, hunk, at).kind;
        let other = partner(&self.blocks[file][hunk], at);
        let Some(other) = other.filter(|_| self.shows_words && kind != LineKind::Context) else {
            return Vec::new();
        };
        let (old, new) = if kind == LineKind::Removed { (at, other) } else { (other, at) };
        let lines = &self.patch.files[file].hunks[hunk].lines;
        let changes = self
            .compared
            .entry(DiffPlace::line(file, hunk, old))
            .or_insert_with(|| words::compare(&lines[old].text, &lines[new].text, deadline));
        let Some(changes) = changes else { return Vec::new() };
        if kind == LineKind::Removed { changes.old.clone() } else { changes.new.clone() }
    }
}

/// The beginning of a line, as far as it can be visible.
struct VisibleLine<'a> {
    text: &'a [u8],
    has_newline: bool,
    /// The bytes that differ from the other side.
    changed: Vec<Range<usize>>,
    /// The bytes that match the search.
    found: Vec<Range<usize>>,
    /// The words that have colours.
    tokens: &'a [TokenSpan],
    style: Style,
}

/// Draws a line from the column to which the view is scrolled. Returns true if it continues at the
/// right; the last column then has a mark.
fn draw_text(
    view: &DiffView,
    buffer: &mut Buffer,
    (x, y): (u16, u16),
    room: usize,
    line: &VisibleLine<'_>,
) -> bool {
    // The ranges are in order and do not overlap.
    let contains = |ranges: &[Range<usize>], byte| {
        let at = ranges.partition_point(|range| range.end <= byte);
        ranges.get(at).is_some_and(|range| range.start <= byte)
    };
    let mark = if view.has_color { Modifier::REVERSED } else { Modifier::UNDERLINED };
    let put_at = |buffer: &mut Buffer, column: usize, symbol: &str, width: usize, style: Style| {
        set(buffer, x + u16::try_from(column).unwrap_or(0), y, symbol, width, style);
    };
    let mut column = 0;
    for glyph in glyphs(line.text) {
        let (begin, end) = (column, column + glyph.width);
        column = end;
        if begin < view.left {
            continue;
        }
        let at = begin - view.left;
        if at + glyph.width > room {
            if let Some(last) = room.checked_sub(1) {
                // A wide character that would be half covered is removed.
                if last > 0 {
                    let before = (x + u16::try_from(last - 1).unwrap_or(0), y);
                    if buffer.cell(before).is_some_and(|cell| cell.symbol().width() > 1) {
                        put_at(buffer, last - 1, " ", 1, Style::default());
                    }
                }
                put_at(buffer, last, "›", 1, dim());
            }
            return true;
        }
        let style = if contains(&line.found, glyph.byte) {
            let found = view.ink(Color::Black);
            if view.has_color {
                found.bg(Color::Yellow)
            } else {
                found.add_modifier(Modifier::REVERSED)
            }
        } else if contains(&line.changed, glyph.byte) {
            line.style.add_modifier(mark)
        } else {
            view.token_style_at(line.tokens, glyph.byte, line.style)
        };
        put_at(buffer, at, &glyph.symbol, glyph.width, style);
    }
    if !line.has_newline && column >= view.left {
        let used = column - view.left + 1;
        let x = x + u16::try_from(used).unwrap_or(0);
        put(buffer, x, y, room.saturating_sub(used), "no newline at end", dim());
    }
    if view.left > 0 && room > 0 && column > 0 {
        put_at(buffer, 0, "‹", 1, dim());
    }
    false
}
