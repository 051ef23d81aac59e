//! The text that the user writes: editing, the history of what was typed, and its rows.

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::line::{Look, StyledLine, shown_width};

/// Typed texts that can be brought back.
const HISTORY: usize = 100;
/// A longer text is not kept in the history.
const KEPT: usize = 64 * 1024;
/// Columns of the mark before the text.
const MARK: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct PromptEditor {
    text: String,
    /// A byte position in the text.
    cursor: usize,
    history: Vec<String>,
    /// While the history is browsed: its texts and the new one, with their changes.
    browsed: Vec<String>,
    /// The place of the text in `browsed`.
    place: usize,
    /// The first visible row.
    scroll: usize,
}

/// The visible part of the text.
pub(crate) struct EditorView {
    pub(crate) rows: Vec<StyledLine>,
    pub(crate) cursor_row: usize,
    pub(crate) cursor_column: usize,
}

impl PromptEditor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn set_text(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    /// Empties the composer and returns its text, which the history keeps.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.browsed.clear();
        if !text.trim().is_empty() && text.len() <= KEPT && self.history.last() != Some(&text) {
            self.history.push(text.clone());
            if self.history.len() > HISTORY {
                self.history.remove(0);
            }
        }
        text
    }

    /// Inserts a text at the cursor.
    pub(crate) fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Inserts what was pasted. Terminals send line breaks of a paste as CR.
    pub(crate) fn paste(&mut self, text: &str) {
        self.insert(&model::text::line_breaks(text));
    }

    /// Applies an editing key.
    pub(crate) fn edit(&mut self, key: KeyEvent, room: usize) {
        let has_ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let has_alt = key.modifiers.contains(KeyModifiers::ALT);
        match (key.code, has_ctrl, has_alt) {
            (KeyCode::Enter, _, _) | (KeyCode::Char('j'), true, _) => self.insert("\n"),
            (KeyCode::Char('a'), true, _) | (KeyCode::Home, _, _) => {
                self.cursor = self.line_start()
            }
            (KeyCode::Char('e'), true, _) | (KeyCode::End, _, _) => self.cursor = self.line_end(),
            (KeyCode::Char('u'), true, _) => self.delete(self.line_start()..self.cursor),
            (KeyCode::Char('k'), true, _) => self.delete(self.cursor..self.line_end()),
            (KeyCode::Char('w'), true, _) | (KeyCode::Backspace, _, true) => {
                self.delete(self.word_before()..self.cursor);
            }
            (KeyCode::Char('b'), _, true) => self.cursor = self.word_before(),
            (KeyCode::Char('f'), _, true) => self.cursor = self.word_after(),
            (KeyCode::Left, true, _) | (KeyCode::Left, _, true) => self.cursor = self.word_before(),
            (KeyCode::Right, true, _) | (KeyCode::Right, _, true) => {
                self.cursor = self.word_after();
            }
            (KeyCode::Left, _, _) => self.cursor = self.before(),
            (KeyCode::Right, _, _) => self.cursor = self.after(),
            // Some terminals send Backspace as Ctrl-H.
            (KeyCode::Backspace, _, _) | (KeyCode::Char('h'), true, _) => {
                self.delete(self.before()..self.cursor)
            }
            (KeyCode::Delete, _, _) => self.delete(self.cursor..self.after()),
            (KeyCode::Up, _, _) => self.up(room),
            (KeyCode::Down, _, _) => self.down(room),
            // AltGr is sent as Ctrl and Alt.
            (KeyCode::Char(c), ctrl, alt) if ctrl == alt => {
                self.insert(c.encode_utf8(&mut [0; 4]));
            }
            _ => {}
        }
    }

    fn delete(&mut self, range: Range<usize>) {
        self.cursor = range.start;
        self.text.drain(range);
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// The beginning of the character before the cursor, with its combining characters.
    fn before(&self) -> usize {
        let mut at = self.cursor;
        let mut is_joined = true;
        while is_joined {
            let Some((start, c)) = self.text[..at].char_indices().next_back() else { return at };
            is_joined = is_combining(c) || self.text[..start].ends_with('\u{200d}');
            at = start;
        }
        at
    }

    /// The end of the character at the cursor, with its combining characters.
    fn after(&self) -> usize {
        let mut chars = self.text[self.cursor..].chars();
        let Some(mut last) = chars.next() else { return self.cursor };
        let mut end = self.cursor + last.len_utf8();
        for c in chars {
            if !is_combining(c) && last != '\u{200d}' {
                break;
            }
            end += c.len_utf8();
            last = c;
        }
        end
    }

    fn word_before(&self) -> usize {
        let text = self.text[..self.cursor].trim_end();
        text.char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace())
            .map_or(0, |(at, c)| at + c.len_utf8())
    }

    fn word_after(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let word = rest.len() - rest.trim_start().len();
        let end = rest[word..].find(char::is_whitespace).map_or(rest.len(), |at| word + at);
        self.cursor + end
    }

    /// Moves up a row, or in the first one to the text before in the history.
    fn up(&mut self, room: usize) {
        let rows = self.rows(room);
        let (row, column) = self.place_in(&rows);
        if row > 0 {
            self.cursor = self.at_column(&rows[row - 1], column);
            return;
        }
        if self.browsed.is_empty() {
            self.browsed = self.history.clone();
            self.browsed.push(String::new());
            self.place = self.history.len();
        }
        if let Some(place) = self.place.checked_sub(1) {
            self.browse(place);
        }
    }

    fn down(&mut self, room: usize) {
        let rows = self.rows(room);
        let (row, column) = self.place_in(&rows);
        if let Some(below) = rows.get(row + 1) {
            self.cursor = self.at_column(below, column);
        } else if self.place + 1 < self.browsed.len() {
            self.browse(self.place + 1);
        }
    }

    /// Exchanges the text for another one of the history. Changes stay until a text is sent.
    fn browse(&mut self, place: usize) {
        let text = std::mem::take(&mut self.browsed[place]);
        let left = std::mem::replace(&mut self.text, text);
        self.browsed[self.place] = left;
        self.place = place;
        self.cursor = self.text.len();
    }

    /// Returns the byte ranges of the rows at this width.
    fn rows(&self, room: usize) -> Vec<Range<usize>> {
        let room = text_room(room);
        let mut rows = Vec::new();
        let mut line_start = 0;
        for line in self.text.split('\n') {
            let mut start = line_start;
            let mut column = 0;
            for (at, c) in line.char_indices() {
                let width = shown_width(c, column);
                if column + width > room && column > 0 {
                    rows.push(start..line_start + at);
                    start = line_start + at;
                    column = 0;
                }
                column += shown_width(c, column);
            }
            rows.push(start..line_start + line.len());
            line_start += line.len() + 1;
        }
        rows
    }

    /// Returns the row and column of the cursor.
    fn place_in(&self, rows: &[Range<usize>]) -> (usize, usize) {
        let row = rows.partition_point(|row| row.start <= self.cursor).saturating_sub(1);
        let start = rows.get(row).map_or(0, |row| row.start);
        (row, columns(&self.text[start..self.cursor]))
    }

    /// Returns the position in a row that is nearest to a column.
    fn at_column(&self, row: &Range<usize>, column: usize) -> usize {
        let mut used = 0;
        for (at, c) in self.text[row.clone()].char_indices() {
            used += shown_width(c, used);
            if used > column {
                return row.start + at;
            }
        }
        row.end
    }

    /// Draws at most `most` rows around the cursor.
    pub(crate) fn view(&mut self, room: usize, most: usize) -> EditorView {
        let rows = self.rows(room);
        let (row, column) = self.place_in(&rows);
        let last = rows.len().saturating_sub(most);
        let start = self.scroll.clamp((row + 1).saturating_sub(most), row).min(last);
        self.scroll = start;
        let end = (start + most).min(rows.len());
        let shown = rows.iter().enumerate().take(end).skip(start);
        EditorView {
            rows: shown
                .map(|(at, range)| {
                    let has_more_above = at == start && start > 0;
                    let has_more_below = at + 1 == end && end < rows.len();
                    let mark = row_mark(at, has_more_above, has_more_below);
                    mark.with(Look::PLAIN, &self.text[range.clone()]).cut(room)
                })
                .collect(),
            cursor_row: row - start,
            cursor_column: (MARK + column).min(room - 1),
        }
    }
}

/// Returns what begins a row of the composer.
fn row_mark(at: usize, has_more_above: bool, has_more_below: bool) -> StyledLine {
    if has_more_above {
        StyledLine::new(Look::DIM, "↑ ")
    } else if has_more_below {
        StyledLine::new(Look::DIM, "↓ ")
    } else if at == 0 {
        StyledLine::new(Look { is_bold: true, ..Look::CYAN }, "> ")
    } else {
        StyledLine::new(Look::PLAIN, "  ")
    }
}

/// Columns of the text. The cursor needs one after the last character.
fn text_room(room: usize) -> usize {
    room.saturating_sub(MARK + 1).max(1)
}

fn columns(text: &str) -> usize {
    text.chars().fold(0, |column, c| column + shown_width(c, column))
}

fn is_combining(c: char) -> bool {
    c != '\n' && shown_width(c, 0) == 0
}
