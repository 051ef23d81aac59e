//! Lines of styled text, wrapped or cut to a width. A span is made from foreign text only with its
//! control characters replaced, so a line contains no sequence of another program.

use std::borrow::Cow;

use model::text;
use unicode_width::UnicodeWidthChar;

/// Columns between tab stops.
const TAB: usize = 4;

/// Attributes of a text. With colours off, all are plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    pub(crate) is_bold: bool,
    pub(crate) is_dim: bool,
    pub(crate) hue: Option<Hue>,
}

/// A colour of the 16 that each terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hue {
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Look {
    pub(crate) const PLAIN: Look = Look { is_bold: false, is_dim: false, hue: None };
    pub(crate) const BOLD: Look = Look { is_bold: true, ..Look::PLAIN };
    pub(crate) const DIM: Look = Look { is_dim: true, ..Look::PLAIN };
    pub(crate) const RED: Look = Look::hue(Hue::Red);
    pub(crate) const GREEN: Look = Look::hue(Hue::Green);
    pub(crate) const YELLOW: Look = Look::hue(Hue::Yellow);
    pub(crate) const CYAN: Look = Look::hue(Hue::Cyan);

    const fn hue(hue: Hue) -> Look {
        Look { hue: Some(hue), ..Look::PLAIN }
    }

    /// Adds the parameters of the SGR sequence; none for plain text.
    fn write_codes(self, out: &mut String) {
        let hue = self.hue.map(|hue| match hue {
            Hue::Red => "31",
            Hue::Green => "32",
            Hue::Yellow => "33",
            Hue::Cyan => "36",
        });
        let codes = [self.is_bold.then_some("1"), self.is_dim.then_some("2"), hue];
        for code in codes.into_iter().flatten() {
            out.push_str("\u{1b}[");
            out.push_str(code);
            out.push('m');
        }
    }
}

/// A piece of a line in one look. Its text has no control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Span {
    look: Look,
    text: String,
}

impl Span {
    /// Makes control characters of `foreign` visible, and line breaks too.
    pub(crate) fn new(look: Look, foreign: &str) -> Span {
        Span { look, text: clean(foreign).into_owned() }
    }
}

/// One row of the terminal, or a text that is not wrapped yet.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StyledLine {
    spans: Vec<Span>,
}

impl StyledLine {
    pub(crate) fn new(look: Look, foreign: &str) -> StyledLine {
        StyledLine::default().with(look, foreign)
    }

    /// Adds a piece.
    pub(crate) fn with(mut self, look: Look, foreign: &str) -> StyledLine {
        self.push(Span::new(look, foreign));
        self
    }

    pub(crate) fn push(&mut self, span: Span) {
        match self.spans.last_mut() {
            Some(last) if last.look == span.look => last.text.push_str(&span.text),
            _ if span.text.is_empty() => {}
            _ => self.spans.push(span),
        }
    }

    /// Adds a character, which is not a control character.
    fn push_char(&mut self, look: Look, c: char) {
        match self.spans.last_mut() {
            Some(last) if last.look == look => last.text.push(c),
            _ => self.spans.push(Span { look, text: c.to_string() }),
        }
    }

    /// Adds the pieces of another line.
    pub(crate) fn append(&mut self, other: StyledLine) {
        other.spans.into_iter().for_each(|span| self.push(span));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(crate) fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.text)).sum()
    }

    /// The text without looks.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Cuts the line to `room` columns; `…` ends a line that was cut.
    pub(crate) fn cut(self, room: usize) -> StyledLine {
        if self.width() <= room {
            return self;
        }
        let mut line = StyledLine::default();
        let mut left = room.saturating_sub(1);
        let mut look = Look::PLAIN;
        'spans: for span in &self.spans {
            look = span.look;
            for c in span.text.chars() {
                match left.checked_sub(char_width(c)) {
                    Some(rest) => left = rest,
                    None => break 'spans,
                }
                line.push_char(look, c);
            }
        }
        if room > 0 {
            line.push_char(look, '…');
        }
        line
    }

    /// Adds spaces up to a width.
    pub(crate) fn padded(mut self, room: usize) -> StyledLine {
        let gap = room.saturating_sub(self.width());
        self.push(Span { look: Look::PLAIN, text: " ".repeat(gap) });
        self
    }

    /// Writes the line as bytes of the terminal, without a line break.
    pub(crate) fn write(&self, has_color: bool, out: &mut String) {
        for span in &self.spans {
            if has_color && span.look != Look::PLAIN {
                span.look.write_codes(out);
                out.push_str(&span.text);
                out.push_str("\u{1b}[0m");
            } else {
                out.push_str(&span.text);
            }
        }
    }
}

/// The places of a line where [`wrap`] may break it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// At spaces and beside wide characters; inside a word only if it is longer than the line.
    Words,
    /// Anywhere. Spaces stay.
    Anywhere,
}

/// Wraps a text to `room` columns. `first` begins the first row and `rest` each other.
pub(crate) fn wrap(
    body: &StyledLine,
    first: &StyledLine,
    rest: &StyledLine,
    room: usize,
    breaks: Breaks,
) -> Vec<StyledLine> {
    let chars: Vec<(char, Look)> =
        body.spans.iter().flat_map(|span| span.text.chars().map(|c| (c, span.look))).collect();
    let mut rows = Vec::new();
    let mut at = 0;
    loop {
        let prefix = if rows.is_empty() { first } else { rest };
        // A prefix that leaves no room is cut, so each row takes at least one wide character.
        let mut row = prefix.clone().cut(room.saturating_sub(2));
        let (end, next) = row_end(&chars, at, room.saturating_sub(row.width()).max(1), breaks);
        for (c, look) in &chars[at..end] {
            row.push_char(*look, *c);
        }
        rows.push(row);
        at = next;
        if at >= chars.len() {
            return rows;
        }
    }
}

/// Returns the end of the row that begins at `start`, and the beginning of the next one.
fn row_end(chars: &[(char, Look)], start: usize, room: usize, breaks: Breaks) -> (usize, usize) {
    let mut used = 0;
    let mut at_word = None;
    for (at, (c, _)) in chars.iter().enumerate().skip(start) {
        let width = char_width(*c);
        let is_first = at == start;
        let is_beside_wide =
            !is_first && width > 0 && (width == 2 || char_width(chars[at - 1].0) == 2);
        if breaks == Breaks::Words && !is_first && (*c == ' ' || is_beside_wide) {
            at_word = Some(at);
        }
        if used + width > room && !is_first {
            let end = at_word.unwrap_or(at);
            if breaks == Breaks::Anywhere {
                return (at, at);
            }
            let spaces = chars[end..].iter().take_while(|(c, _)| *c == ' ').count();
            return (end, end + spaces);
        }
        used += width;
    }
    (chars.len(), chars.len())
}

/// Replaces what a terminal acts on, expands tabs, and drops what makes the width of a character
/// depend on the terminal: emoji selectors, joiners between emoji and soft hyphens.
fn clean(foreign: &str) -> Cow<'_, str> {
    if foreign.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(foreign);
    }
    let mut out = String::with_capacity(foreign.len());
    let mut column = 0;
    let mut last = 0;
    for c in foreign.chars() {
        let columns = shown_width(c, column);
        match c {
            '\t' => out.extend(std::iter::repeat_n(' ', columns)),
            '\u{fe0e}' | '\u{fe0f}' | '\u{ad}' => {}
            '\u{200d}' if last == 2 => {}
            '\u{61c}' | '\u{2028}' | '\u{2029}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
        column += columns;
        if columns > 0 {
            last = columns;
        }
    }
    Cow::Owned(text::line(&out))
}

/// Columns that a character of a foreign text takes when it is shown at `column`.
pub(crate) fn shown_width(c: char, column: usize) -> usize {
    match c {
        '\t' => TAB - column % TAB,
        '\u{fe0e}' | '\u{fe0f}' | '\u{ad}' | '\u{200d}' => 0,
        '\u{61c}' | '\u{2028}' | '\u{2029}' => 1,
        // A control character becomes one visible mark.
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => 1,
        c => c.width().unwrap_or(1),
    }
}

/// Columns of a character; the terminal draws a combining one over the character before it.
pub(crate) fn char_width(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// Columns of a text without control characters.
pub(crate) fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}
