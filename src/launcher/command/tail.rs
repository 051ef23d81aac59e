//! The end of a command's output as plain text, for its record. Interprets terminal escapes only as
//! far as needed to remove them.

use model::text;

/// Number of bytes kept.
const TAIL_BYTES: usize = 16 * 1024;
/// Number of lines stored in the record.
const LINES: usize = 50;

/// A buffer of the last bytes of a stream.
#[derive(Debug, Default)]
pub struct Tail {
    bytes: Vec<u8>,
    /// Set if bytes were dropped from the front.
    cut: bool,
}

impl Tail {
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Trim only at twice the size: draining moves all remaining bytes, which would be costly
        // per push.
        if self.bytes.len() > 2 * TAIL_BYTES {
            self.trim();
        }
    }

    fn trim(&mut self) {
        if let Some(surplus) = self.bytes.len().checked_sub(TAIL_BYTES).filter(|n| *n > 0) {
            self.bytes.drain(..surplus);
            self.cut = true;
        }
    }

    /// Returns the last lines as plain text.
    pub fn text(mut self) -> String {
        self.trim();
        // After a cut the first line may begin inside a character or an escape sequence.
        let whole =
            self.bytes.iter().position(|b| *b == b'\n').filter(|_| self.cut).map_or(0, |at| at + 1);
        text::last_lines(&plain(&String::from_utf8_lossy(&self.bytes[whole..])), LINES)
    }
}

/// Parser state within an escape sequence (ECMA-48).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EscapeState {
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte: one final byte follows.
    Intermediate,
    /// After ESC `[`: parameters, then a final byte.
    Control,
    /// In a string such as a title, terminated by BEL or ESC `\`.
    String,
    /// After an ESC inside a string.
    StringEscape,
}

/// Renders output as plain text: removes escapes; `\r` and backspace move the column, as on a
/// terminal.
fn plain(output: &str) -> String {
    let mut page = PlainText::default();
    let mut at = EscapeState::Text;
    for c in output.chars() {
        at = match at {
            EscapeState::Text => page.take(c),
            EscapeState::Escape => match c {
                '[' => EscapeState::Control,
                ']' | 'P' | 'X' | '^' | '_' => EscapeState::String,
                ' '..='/' => EscapeState::Intermediate,
                '\x1b' => at,
                _ => EscapeState::Text,
            },
            EscapeState::Intermediate => EscapeState::Text,
            EscapeState::Control => page.control(c),
            // An unterminated title must not swallow the rest of the output.
            EscapeState::String | EscapeState::StringEscape if c == '\n' => page.take(c),
            EscapeState::String | EscapeState::StringEscape => match c {
                '\x07' | '\u{9c}' => EscapeState::Text,
                '\\' if at == EscapeState::StringEscape => EscapeState::Text,
                '\x1b' => EscapeState::StringEscape,
                _ => EscapeState::String,
            },
        };
    }
    page.done.extend(page.line);
    page.done
}

#[derive(Default)]
struct PlainText {
    done: String,
    line: Vec<char>,
    column: usize,
    /// Parameter bytes of the current control sequence.
    parameters: String,
}

impl PlainText {
    fn take(&mut self, c: char) -> EscapeState {
        match c {
            '\x1b' => return EscapeState::Escape,
            '\u{9b}' => return EscapeState::Control,
            '\n' => {
                self.done.extend(self.line.drain(..));
                self.done.push('\n');
                self.column = 0;
            }
            '\r' => self.column = 0,
            '\x08' => self.column = self.column.saturating_sub(1),
            c if c.is_control() && c != '\t' => {}
            c => {
                match self.line.get_mut(self.column) {
                    Some(place) => *place = c,
                    None => self.line.push(c),
                }
                self.column += 1;
            }
        }
        EscapeState::Text
    }

    /// Processes the next character of a control sequence.
    fn control(&mut self, c: char) -> EscapeState {
        match c {
            '@'..='~' => self.apply(c),
            '\x1b' => {}
            _ => {
                self.parameters.push(c);
                return EscapeState::Control;
            }
        }
        self.parameters.clear();
        if c == '\x1b' { EscapeState::Escape } else { EscapeState::Text }
    }

    /// Applies a control sequence. Only "erase in line" affects plain text; progress bars use it.
    fn apply(&mut self, function: char) {
        match (function, self.parameters.as_str()) {
            ('K', "" | "0") => self.line.truncate(self.column),
            ('K', "2") => {
                self.line.clear();
                self.column = 0;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_removed_and_cursor_moves_applied() {
        let table = [
            ("plain", "plain"),
            ("a\r\nb\r\n", "a\nb\n"),
            ("\x1b[1;31mred\x1b[0m.", "red."),
            ("\x1b]0;title\x07x\x1b]8;;http://h\x1b\\y", "xy"),
            ("\x1b(Bx\x1b=y\x1bPq#0\x1b\\z", "xyz"),
            ("10%\r100%\rdone\x1b[K", "done"),
            ("long line\r\x1b[2Kok", "ok"),
            ("ab\x08c", "ac"),
            ("\x1b]0;never ended\nnext", "\nnext"),
            ("\x1b\x1b[mx\x07", "x"),
            ("ab\r\x1b[3\x1b[Kc", "c"),
            ("a\tb\u{1}", "a\tb"),
        ];
        for (output, shown) in table {
            assert_eq!(plain(output), shown, "{output:?}");
        }
    }

    #[test]
    fn only_whole_lines_of_the_end_are_kept() {
        let mut tail = Tail::default();
        for n in 0..100_000 {
            tail.push(format!("line {n}\r\n").as_bytes());
        }
        let text = tail.text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0], lines[49]), (50, "line 99950", "line 99999"));
    }

    #[test]
    fn a_single_line_longer_than_the_buffer_is_not_lost() {
        let mut tail = Tail::default();
        tail.push(&[b'x'; 5 * TAIL_BYTES]);
        assert_eq!(tail.text().len(), TAIL_BYTES);
    }
}
