//! A text of several lines that is being edited.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use diff::glyph::glyphs;
use ratatui::layout::Rect;
use unicode_width::UnicodeWidthStr;

/// Maximum length in bytes, which is that of a comment.
const LONGEST: usize = 16 * 1024;

/// A text and a cursor in it, which is an offset in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TextArea {
    text: String,
    cursor: usize,
    /// Columns of the last frame, by which lines are wrapped.
    width: usize,
}

/// A row on the screen: the bytes `start..end` of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TextRow {
    start: usize,
    end: usize,
}

impl TextArea {
    /// Starts with this text and the cursor behind it.
    pub(super) fn with(text: &str) -> TextArea {
        let mut area = TextArea { width: 80, ..TextArea::default() };
        area.insert(text);
        area
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Inserts text at the cursor. Line breaks stay; a tab becomes spaces, and another control
    /// character a space.
    pub(super) fn insert(&mut self, text: &str) {
        let text = model::text::line_breaks(text);
        let mut new = String::new();
        for c in text.chars() {
            let mut bytes = [0; 4];
            let shown = match c {
                '\n' => "\n",
                '\t' => "    ",
                c if c.is_control() => " ",
                c => c.encode_utf8(&mut bytes),
            };
            if self.text.len() + new.len() + shown.len() > LONGEST {
                break;
            }
            new.push_str(shown);
        }
        self.text.insert_str(self.cursor, &new);
        self.cursor += new.len();
    }

    /// Handles an editing key; returns false for any other key.
    pub(super) fn handle(&mut self, key: KeyEvent) -> bool {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if ctrl => self.cursor = self.line_start(),
            KeyCode::Char('e') if ctrl => self.cursor = self.line_end(),
            KeyCode::Char('u') if ctrl => self.delete(self.line_start(), self.cursor),
            KeyCode::Char('k') if ctrl => self.delete(self.cursor, self.line_end()),
            KeyCode::Char('w') if ctrl => self.delete(self.word_start(), self.cursor),
            KeyCode::Char(_) if ctrl || alt => return false,
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.delete(self.before(), self.cursor),
            KeyCode::Delete => self.delete(self.cursor, self.after()),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Up => self.move_by_row(false),
            KeyCode::Down => self.move_by_row(true),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            _ => return false,
        }
        true
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end_matches(' ');
        let kept = before.trim_end_matches(|c: char| c != ' ' && c != '\n');
        if kept.len() < self.cursor { kept.len() } else { self.before() }
    }

    /// Returns the start of the character before the cursor.
    fn before(&self) -> usize {
        let start = self.line_start();
        if start == self.cursor {
            return self.cursor.saturating_sub(1);
        }
        let line = &self.text[start..self.cursor];
        glyphs(line.as_bytes()).last().map_or(start, |glyph| start + glyph.byte)
    }

    /// Returns the end of the character at the cursor.
    fn after(&self) -> usize {
        let end = self.line_end();
        if end == self.cursor {
            return (end + 1).min(self.text.len());
        }
        let rest = &self.text[self.cursor..end];
        glyphs(rest.as_bytes()).nth(1).map_or(end, |glyph| self.cursor + glyph.byte)
    }

    /// Returns the rows of the text.
    fn rows(&self) -> Vec<TextRow> {
        let width = self.width.max(2);
        let (mut rows, mut start) = (Vec::new(), 0);
        for line in self.text.split('\n') {
            let (mut row, mut used) = (start, 0);
            for glyph in glyphs(line.as_bytes()) {
                if used + glyph.width > width {
                    rows.push(TextRow { start: row, end: start + glyph.byte });
                    (row, used) = (start + glyph.byte, 0);
                }
                used += glyph.width;
            }
            rows.push(TextRow { start: row, end: start + line.len() });
            start += line.len() + 1;
        }
        rows
    }

    /// Returns the row of the cursor. At the end of a wrapped row, that is the next row.
    fn row_of_cursor(&self, rows: &[TextRow]) -> usize {
        rows.partition_point(|row| row.start <= self.cursor).saturating_sub(1)
    }

    fn columns(&self, from: usize, to: usize) -> usize {
        glyphs(&self.text.as_bytes()[from..to]).map(|glyph| glyph.width).sum()
    }

    fn move_by_row(&mut self, down: bool) {
        let rows = self.rows();
        let at = self.row_of_cursor(&rows);
        let target = if down { Some(at + 1) } else { at.checked_sub(1) };
        let Some(row) = target.and_then(|at| rows.get(at)) else { return };
        let column = self.columns(rows[at].start, self.cursor);
        let (mut cursor, mut used) = (row.start, 0);
        for glyph in glyphs(&self.text.as_bytes()[row.start..row.end]) {
            if used >= column {
                break;
            }
            used += glyph.width;
            cursor = row.start
                + glyph.byte
                + self.text[row.start + glyph.byte..row.end]
                    .chars()
                    .next()
                    .map_or(0, char::len_utf8);
        }
        let is_wrapped = rows.iter().any(|next| next.start == row.end && next.end > row.end);
        if is_wrapped && cursor >= row.end {
            // The end of this row is the start of the next one.
            let last = glyphs(&self.text.as_bytes()[row.start..row.end]).last();
            self.cursor = last.map_or(row.start, |glyph| row.start + glyph.byte);
            return;
        }
        self.cursor = cursor.min(row.end);
        // Behind a character with its marks.
        while !self.is_boundary(row.start) && self.cursor < row.end {
            self.cursor += self.text[self.cursor..].chars().next().map_or(1, char::len_utf8);
        }
    }

    /// Returns true if the cursor does not separate a character from its marks.
    fn is_boundary(&self, start: usize) -> bool {
        let line = &self.text.as_bytes()[start..self.line_end()];
        let offset = self.cursor - start;
        offset == line.len() || glyphs(line).any(|glyph| glyph.byte == offset)
    }

    /// Returns the visible rows of an area of this size, with the place of the cursor in it.
    pub(super) fn window(&mut self, area: Rect) -> (Vec<&str>, (u16, u16)) {
        // The last column is for the cursor behind the text.
        self.width = usize::from(area.width.saturating_sub(1));
        let rows = self.rows();
        let at = self.row_of_cursor(&rows);
        let height = usize::from(area.height).max(1);
        let first = (at + 1).saturating_sub(height);
        let column = self.columns(rows[at].start, self.cursor);
        let place = (u16::try_from(column).unwrap_or(0), u16::try_from(at - first).unwrap_or(0));
        let shown = rows[first..].iter().take(height).map(|row| &self.text[row.start..row.end]);
        (shown.collect(), place)
    }

    /// Returns the number of rows at this width.
    pub(super) fn height(&mut self, width: usize) -> usize {
        self.width = width.saturating_sub(1);
        self.rows().len()
    }

    pub(super) fn is_blank(&self) -> bool {
        self.text.trim().width() == 0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn press(area: &mut TextArea, code: KeyCode) {
        area.handle(KeyEvent::new(code, KeyModifiers::NONE));
    }

    fn control(area: &mut TextArea, key: char) {
        area.handle(KeyEvent::new(KeyCode::Char(key), KeyModifiers::CONTROL));
    }

    #[test]
    fn keys_edit_the_text_at_the_cursor() {
        let mut area = TextArea::with("one\ntwo three");
        control(&mut area, 'w');
        assert_eq!(area.text(), "one\ntwo ");
        press(&mut area, KeyCode::Up);
        press(&mut area, KeyCode::Char('!'));
        assert_eq!(area.text(), "one!\ntwo ");
        press(&mut area, KeyCode::Delete);
        assert_eq!(area.text(), "one!two ");
        press(&mut area, KeyCode::Home);
        control(&mut area, 'k');
        assert_eq!(area.text(), "");
        for code in [KeyCode::Backspace, KeyCode::Delete, KeyCode::Left, KeyCode::Up] {
            press(&mut area, code);
        }
        assert_eq!(area.text(), "");
    }

    #[test]
    fn lines_are_wrapped_and_the_cursor_stays_visible() {
        let mut area = TextArea::with("abcdef\n漢字漢字");
        let size = Rect::new(0, 0, 6, 3);
        assert_eq!(area.window(size), (vec!["f", "漢字", "漢字"], (4, 2)));
        press(&mut area, KeyCode::Up);
        press(&mut area, KeyCode::Up);
        assert_eq!(area.window(size), (vec!["abcde", "f", "漢字"], (1, 1)));
    }

    #[test]
    fn pasted_control_characters_become_spaces() {
        assert_eq!(TextArea::with("a\u{1b}[2J\r\nb\tc").text(), "a [2J\nb    c");
        assert_eq!(TextArea::with(&"x".repeat(20_000)).text().len(), LONGEST);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn any_keys_keep_the_cursor_on_a_character(
            text in "[ab \\n漢e\u{301}\u{200b}\u{fe0f}]{0,40}",
            keys in prop::collection::vec(0..12usize, 0..40),
            width in 0..12u16,
        ) {
            let mut area = TextArea::with(&text);
            for key in keys {
                match key {
                    0 => press(&mut area, KeyCode::Left),
                    1 => press(&mut area, KeyCode::Right),
                    2 => press(&mut area, KeyCode::Up),
                    3 => press(&mut area, KeyCode::Down),
                    4 => press(&mut area, KeyCode::Home),
                    5 => press(&mut area, KeyCode::End),
                    6 => press(&mut area, KeyCode::Backspace),
                    7 => press(&mut area, KeyCode::Delete),
                    8 => control(&mut area, 'w'),
                    9 => control(&mut area, 'u'),
                    10 => area.insert("字\u{301}"),
                    _ => drop(area.window(Rect::new(0, 0, width, 3))),
                }
                prop_assert!(area.text.is_char_boundary(area.cursor));
                let (rows, (_, row)) = area.window(Rect::new(0, 0, width, 3));
                prop_assert!(usize::from(row) < rows.len());
            }
        }
    }
}
