//! A line of text that is being edited.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_width::UnicodeWidthStr;

/// Maximum length in characters.
const LONGEST: usize = 8_000;

/// A text and a cursor in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct LineEditor {
    chars: Vec<char>,
    cursor: usize,
}

impl LineEditor {
    /// Starts with this text and the cursor behind it.
    pub(super) fn with(text: &str) -> LineEditor {
        let mut editor = LineEditor::default();
        editor.insert(text);
        editor
    }

    /// Starts with the cursor between two texts.
    pub(super) fn with_cursor(before: &str, after: &str) -> LineEditor {
        let mut editor = LineEditor::with(before);
        let cursor = editor.cursor;
        editor.insert(after);
        LineEditor { cursor, ..editor }
    }

    /// Returns the text before the cursor and that behind it.
    pub(super) fn split(&self) -> (String, String) {
        let (before, after) = self.chars.split_at(self.cursor);
        (before.iter().collect(), after.iter().collect())
    }

    pub(super) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    /// Inserts text at the cursor. Control characters become spaces.
    pub(super) fn insert(&mut self, text: &str) {
        let room = LONGEST.saturating_sub(self.chars.len());
        let new: Vec<char> =
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(room).collect();
        let count = new.len();
        self.chars.splice(self.cursor..self.cursor, new);
        self.cursor += count;
    }

    /// Handles an editing key; returns false for any other key.
    pub(super) fn handle(&mut self, key: KeyEvent) -> bool {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('a') if ctrl => self.cursor = 0,
            KeyCode::Char('e') if ctrl => self.cursor = self.chars.len(),
            KeyCode::Char('u') if ctrl => {
                drop(self.chars.drain(..std::mem::take(&mut self.cursor)))
            }
            KeyCode::Char('k') if ctrl => self.chars.truncate(self.cursor),
            KeyCode::Char('w') if ctrl => self.delete_word(),
            KeyCode::Char(_) if ctrl || key.modifiers.contains(KeyModifiers::ALT) => return false,
            KeyCode::Char(c) => self.insert(&c.to_string()),
            KeyCode::Backspace if self.cursor > 0 => {
                self.cursor -= 1;
                self.chars.remove(self.cursor);
            }
            KeyCode::Delete if self.cursor < self.chars.len() => {
                self.chars.remove(self.cursor);
            }
            KeyCode::Backspace | KeyCode::Delete => {}
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.chars.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.chars.len(),
            _ => return false,
        }
        true
    }

    fn delete_word(&mut self) {
        let end = self.cursor;
        while self.cursor > 0 && self.chars[self.cursor - 1] == ' ' {
            self.cursor -= 1;
        }
        while self.cursor > 0 && self.chars[self.cursor - 1] != ' ' {
            self.cursor -= 1;
        }
        self.chars.drain(self.cursor..end);
    }

    /// Returns the part of the text that fits into `width` cells with the cursor in it, and the
    /// cursor's column.
    pub(super) fn window(&self, width: usize) -> (String, usize) {
        let mut start = 0;
        let column =
            |start: usize| self.chars[start..self.cursor].iter().collect::<String>().width();
        while start < self.cursor && column(start) >= width.max(1) {
            start += 1;
        }
        (self.chars[start..].iter().collect(), column(start))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut LineEditor, keys: &str) {
        for key in keys.split(' ') {
            let (code, modifiers) = match key {
                "left" => (KeyCode::Left, KeyModifiers::NONE),
                "back" => (KeyCode::Backspace, KeyModifiers::NONE),
                "del" => (KeyCode::Delete, KeyModifiers::NONE),
                "home" => (KeyCode::Home, KeyModifiers::NONE),
                "^w" => (KeyCode::Char('w'), KeyModifiers::CONTROL),
                "^u" => (KeyCode::Char('u'), KeyModifiers::CONTROL),
                "^k" => (KeyCode::Char('k'), KeyModifiers::CONTROL),
                other => (KeyCode::Char(other.chars().next().expect("a key")), KeyModifiers::NONE),
            };
            assert!(editor.handle(KeyEvent::new(code, modifiers)), "{key}");
        }
    }

    #[test]
    fn keys_edit_the_text_at_the_cursor() {
        let table = [
            ("a b c", "abc"),
            ("a b left x", "axb"),
            ("a b left back", "b"),
            ("a b home del", "b"),
            ("a b home back", "ab"),
            ("a b left ^k", "a"),
            ("a b left ^u", "b"),
        ];
        for (keys, text) in table {
            let mut editor = LineEditor::default();
            press(&mut editor, keys);
            assert_eq!(editor.text(), text, "{keys}");
        }
        let mut editor = LineEditor::with("one two  three");
        press(&mut editor, "^w");
        assert_eq!(editor.text(), "one two  ");
        press(&mut editor, "^w");
        assert_eq!(editor.text(), "one ");
    }

    #[test]
    fn pasted_control_characters_become_spaces() {
        let editor = LineEditor::with("a\u{1b}[2J\nb");
        assert_eq!(editor.text(), "a [2J b");
    }

    #[test]
    fn window_keeps_the_cursor_visible() {
        assert_eq!(LineEditor::with("abcdef").window(4), ("def".to_owned(), 3));
        assert_eq!(LineEditor::with("日本語").window(4), ("語".to_owned(), 2));
        let mut editor = LineEditor::with("abcdef");
        press(&mut editor, "home");
        assert_eq!(editor.window(4), ("abcdef".to_owned(), 0));
    }
}
