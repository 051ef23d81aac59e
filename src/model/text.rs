//! Sanitizes foreign text for display. Every name, message, screen line and path from another
//! program passes through here before it reaches a terminal (SEC-10).

use std::borrow::Cow;
use std::fmt::{Display, Write};

/// Returns the text as one line. Tabs become spaces; other control characters (escapes, line
/// breaks, C1, bidirectional overrides) become visible marks, so nothing is dropped silently.
pub fn line(foreign: &str) -> String {
    foreign.chars().map(visible).collect()
}

/// Returns the text with its line breaks; each line is treated as by [`line()`].
pub fn block(foreign: &str) -> String {
    foreign
        .split('\n')
        .map(|l| line(l.strip_suffix('\r').unwrap_or(l)))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the text with CR LF and lone CR as LF. Text from Windows and from web services has them.
pub fn line_breaks(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Escapes the control characters that JSON permits in a string and a terminal acts on: DEL, C1 and
/// bidirectional overrides. The document stays the same.
pub fn json(document: &str) -> Cow<'_, str> {
    if document.bytes().all(|byte| byte.is_ascii() && byte != 0x7f) {
        return Cow::Borrowed(document);
    }
    let mut out = String::with_capacity(document.len());
    for c in document.chars() {
        if c.is_ascii() && c != '\u{7f}' || !is_control(c) {
            out.push(c);
        } else {
            // Writing to a string does not fail, and all of them have four digits.
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        }
    }
    Cow::Owned(out)
}

/// Converts terminal output to plain text: removes escape sequences and bells, and applies carriage
/// returns and backspaces so that overwritten text disappears. Other control characters are treated
/// as by [`line()`].
pub fn plain(printed: &str) -> String {
    let mut out = String::with_capacity(printed.len());
    let mut chars = printed.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            // Each terminal on the way may add one.
            '\r' if matches!(chars.peek(), Some('\n' | '\r')) => {}
            '\r' => out.truncate(out.rfind('\n').map_or(0, |at| at + 1)),
            '\u{8}' if !out.ends_with('\n') => drop(out.pop()),
            '\n' => out.push('\n'),
            '\u{7}' => {}
            c => out.push(visible(c)),
        }
    }
    out
}

/// Skips the rest of an escape sequence: CSI up to its final byte, OSC and other string sequences
/// up to their terminator, others by one character.
fn skip_sequence(chars: &mut std::iter::Peekable<std::str::Chars>) {
    match chars.next() {
        Some('[') => {
            chars.find(|c| ('@'..='~').contains(c));
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                match c {
                    '\u{7}' => return,
                    '\u{1b}' => {
                        chars.next_if_eq(&'\\');
                        return;
                    }
                    _ => {}
                }
            }
        }
        Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => {
            chars.next();
        }
        Some(_) | None => {}
    }
}

/// Returns one line of at most `max` characters; longer text ends with `…`.
pub fn short(foreign: &str, max: usize) -> String {
    let mut shown: String = line(foreign).chars().take(max + 1).collect();
    if shown.chars().count() > max {
        shown = shown.chars().take(max.saturating_sub(1)).collect();
        shown.push('…');
    }
    shown
}

/// Returns the words after a colon, to be appended; nothing without words.
pub fn after_colon(words: Option<impl Display>) -> String {
    words.map(|words| format!(": {words}")).unwrap_or_default()
}

/// Returns the last `max` lines, not counting trailing empty ones.
pub fn last_lines(text: &str, max: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(max)..].join("\n")
}

fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{0}'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        '\u{7f}' => '\u{2421}',
        c if is_control(c) => '\u{fffd}',
        _ => c,
    }
}

/// Returns true for C0, DEL, C1, and what changes the direction of a text.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_10_output_contains_no_control_characters() {
        let hostile = "a\u{1b}]0;title\u{7}b\r\nc\u{9b}2Jd\u{202e}e\u{7f}";
        for shown in [line(hostile), block(hostile), short(hostile, 8)] {
            assert!(!shown.chars().any(|c| c.is_control() && c != '\n'), "{shown:?}");
        }
        assert_eq!(line("a\nb"), "a\u{240a}b");
    }

    #[test]
    fn sec_10_json_text_has_no_control_characters_and_the_same_content() {
        let hostile =
            "a\u{1b}[2J\u{7f}\u{80}\u{9b}2J\u{9f}\u{200f}\u{202e}\u{2066}\\\"é\u{1f600}\n";
        let document = serde_json::json!({ hostile: [hostile, "\u{a0}"] });
        for text in [document.to_string(), format!("{document:#}")] {
            let escaped = json(&text);
            assert!(!escaped.chars().any(|c| is_control(c) && c != '\n'), "{escaped}");
            assert!(escaped.contains("\\u009b2J") && escaped.contains("é\u{1f600}"), "{escaped}");
            let read: serde_json::Value = serde_json::from_str(&escaped).expect("json");
            assert_eq!(read, document);
        }
    }

    #[test]
    fn terminal_output_becomes_plain_text() {
        let printed = "\u{1b}[1;31mred\u{1b}[0m\r\n50%\r100%\n\u{1b}]0;title\u{7}a\u{1b}]8;;x\u{1b}\\b\u{1b}(Bc\u{9b}d";
        assert_eq!(plain(printed), "red\n100%\nabc\u{fffd}d");
        assert_eq!(plain("one\r\r\ntwo\r\r\r\n"), "one\ntwo\n");
        assert_eq!(plain("cut\u{1b}["), "cut");
        assert_eq!(plain("ab\u{8}c"), "ac");
    }

    #[test]
    fn short_truncates_and_last_lines_skips_trailing_blanks() {
        assert_eq!(short("abcdef", 4), "abc…");
        assert_eq!(short("abcd", 4), "abcd");
        assert_eq!(last_lines("1\n2\n3\n\n\n", 2), "2\n3");
        assert_eq!(last_lines("", 5), "");
    }
}
