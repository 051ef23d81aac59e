//! Foreign text as characters with their columns. A control character, a mark that changes the
//! direction of a text and a character that nothing shows become visible marks (SEC-10).

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use model::text;

/// Columns between tab stops.
pub(crate) const TAB: usize = 8;
/// Marks that combine with one character.
const MARKS: usize = 4;

/// A character with the marks that combine with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glyph<'a> {
    pub symbol: Cow<'a, str>,
    pub width: usize,
    /// Offset of the character in the bytes of the text.
    pub byte: usize,
}

/// Returns the characters of a text. Bytes that are not UTF-8 become replacement characters.
pub fn glyphs(text: &[u8]) -> impl Iterator<Item = Glyph<'_>> {
    let mut column = 0;
    let mut start = 0;
    text.utf8_chunks()
        .flat_map(move |chunk| {
            let begin = start;
            start += chunk.valid().len() + chunk.invalid().len();
            let bad = (!chunk.invalid().is_empty()).then(|| Glyph {
                symbol: Cow::Borrowed("\u{fffd}"),
                width: 1,
                byte: begin + chunk.valid().len(),
            });
            ValidGlyphs { text: chunk.valid(), at: 0 }
                .map(move |glyph| Glyph { byte: glyph.byte + begin, ..glyph })
                .chain(bad)
        })
        .map(move |mut glyph| {
            if glyph.symbol == "\t" {
                glyph.width = TAB - column % TAB;
                glyph.symbol = Cow::Borrowed(" ");
            }
            column += glyph.width;
            glyph
        })
}

/// The characters of a text; a tab is left as it is.
struct ValidGlyphs<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for ValidGlyphs<'a> {
    type Item = Glyph<'a>;

    fn next(&mut self) -> Option<Glyph<'a>> {
        loop {
            let byte = self.at;
            let rest = &self.text[byte..];
            let first = rest.chars().next()?;
            self.at += first.len_utf8();
            if matches!(first, '\u{fe0e}' | '\u{fe0f}') {
                // Selectors make the width of an emoji depend on the terminal.
                continue;
            }
            if first == '\t' {
                return Some(Glyph { symbol: Cow::Borrowed("\t"), width: 1, byte });
            }
            let width = first.width().unwrap_or(0);
            if width == 0 || is_hidden(first) {
                let mark = text::line(first.encode_utf8(&mut [0; 4]));
                let is_safe = mark.width() == 1 && !mark.contains(is_hidden);
                let symbol = if is_safe { Cow::Owned(mark) } else { Cow::Borrowed("\u{fffd}") };
                return Some(Glyph { symbol, width: 1, byte });
            }
            let mut end = first.len_utf8();
            for mark in rest[end..].chars().take(MARKS) {
                let next = end + mark.len_utf8();
                let is_mark =
                    mark.width() == Some(0) && !is_hidden(mark) && !first.is_ascii_control();
                if !is_mark || rest[..next].width() != width {
                    break;
                }
                end = next;
            }
            self.at = byte + end;
            return Some(Glyph { symbol: Cow::Borrowed(&rest[..end]), width, byte });
        }
    }
}

/// Returns true for characters that have no picture of their own or change the direction of text.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Returns the text as one safe line.
pub fn safe(text: &[u8]) -> String {
    glyphs(text)
        .flat_map(|glyph| {
            let spaces = if glyph.symbol == " " { glyph.width } else { 1 };
            std::iter::repeat_n(glyph.symbol, spaces)
        })
        .collect()
}

/// Cuts a safe text to `room` columns; `…` ends a text that was cut.
pub fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let fits = |glyph: &Glyph<'_>| {
        let is_in = glyph.width <= left;
        left = left.saturating_sub(glyph.width);
        is_in
    };
    let kept: String = glyphs(text.as_bytes()).take_while(fits).map(|glyph| glyph.symbol).collect();
    if room > 0 { kept + "…" } else { kept }
}

/// Cuts the beginning of a safe text, so that the end of a path stays.
pub fn cut_start(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut left = room.saturating_sub(1);
    let all: Vec<Glyph<'_>> = glyphs(text.as_bytes()).collect();
    let kept = all.iter().rev().take_while(|glyph| {
        let is_in = glyph.width <= left;
        left = left.saturating_sub(glyph.width);
        is_in
    });
    let from = all.len() - kept.count();
    let mark = if room > 0 { "…" } else { "" };
    all[from..].iter().fold(mark.to_owned(), |text, glyph| text + &glyph.symbol)
}

/// Wraps a safe text to rows of at most `room` columns, at spaces where that is possible.
pub fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(2);
    let (mut rows, mut row, mut used) = (Vec::new(), String::new(), 0);
    for word in text.split(' ') {
        if used > 0 && used + 1 + word.width() > room {
            rows.push(std::mem::take(&mut row));
            used = 0;
        } else if used > 0 {
            row.push(' ');
            used += 1;
        }
        for glyph in glyphs(word.as_bytes()) {
            if used + glyph.width > room {
                rows.push(std::mem::take(&mut row));
                used = 0;
            }
            row.push_str(&glyph.symbol);
            used += glyph.width;
        }
    }
    rows.push(row);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_10_hidden_characters_become_marks() {
        let hostile = "a\u{1b}[2J\u{202e}\u{200b}b\u{ad}c\u{feff}\u{9b}\u{2028}e\u{301}\r";
        let shown = safe(hostile.as_bytes());
        assert_eq!(shown, "a␛[2J��b�c���e\u{301}␍");
        assert_eq!(safe(b"a\tb\xff"), "a       b\u{fffd}");
    }

    #[test]
    fn texts_are_cut_and_wrapped_by_columns() {
        assert_eq!(cut("漢字漢字", 5), "漢字…");
        assert_eq!(cut_start("src/auth.rs", 8), "…auth.rs");
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("漢字漢字", 5), ["漢字", "漢字"]);
    }
}
