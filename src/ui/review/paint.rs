//! Boxes and rows for the pages of a review.

use diff::cells::{fill, put};
use diff::glyph::{cut, safe, wrap};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use unicode_width::UnicodeWidthStr;

use crate::dashboard::{Theme, Tone};
use model::code::TokenKind;

/// Symbols of the pages with their replacements in ASCII.
const ASCII: [(&str, &str); 22] = [
    ("▶", ">"),
    ("▸", ">"),
    ("▾", "v"),
    ("┃", "|"),
    ("│", "|"),
    ("─", "-"),
    ("✓", "v"),
    ("✗", "x"),
    ("✎", "d"),
    ("↩", "a"),
    ("→", ">"),
    ("●", "*"),
    ("○", "o"),
    ("⚠", "!"),
    ("·", "-"),
    ("…", "~"),
    ("−", "-"),
    ("–", "-"),
    ("›", ">"),
    ("‹", "<"),
    ("▏", "_"),
    ("↓", "v"),
];

/// Returns the styles of the words of code. No word is red or green, which are the colours of
/// removed and added lines. They are among the 16 colours that each terminal makes legible.
pub(super) fn token_styles(theme: Theme) -> fn(TokenKind) -> Style {
    if theme.light {
        |kind| token_style(kind, Color::Blue, Color::Cyan)
    } else {
        |kind| token_style(kind, Color::LightBlue, Color::Yellow)
    }
}

fn token_style(kind: TokenKind, function: Color, string: Color) -> Style {
    let color = match kind {
        TokenKind::Comment => return Style::default(),
        TokenKind::Keyword => Color::Magenta,
        TokenKind::Function => function,
        TokenKind::String => string,
        TokenKind::Number | TokenKind::Constant | TokenKind::Type | TokenKind::Label => Color::Cyan,
    };
    Style::default().fg(color)
}

/// Writes one row of foreign text, and clears the rest of it.
pub(super) fn write(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    if !area.is_empty() {
        fill(buffer, area, &cut(&safe(text.as_bytes()), area.width.into()), style);
    }
}

/// Draws an empty box and returns the area in it.
pub(super) fn border(area: Rect, title: &str, theme: Theme, buffer: &mut Buffer) -> Rect {
    if area.width < 4 || area.height < 2 {
        return Rect { height: 0, ..area };
    }
    let (set, style) = (theme.border(), theme.style(Tone::Focus));
    let room = usize::from(area.width) - 2;
    for y in area.top()..area.bottom() {
        fill(buffer, Rect { y, height: 1, ..area }, "", Style::default());
        put(buffer, area.x, y, 1, set.vertical_left, style);
        put(buffer, area.right() - 1, y, 1, set.vertical_right, style);
    }
    for (y, left, middle, right) in [
        (area.top(), set.top_left, set.horizontal_top, set.top_right),
        (area.bottom() - 1, set.bottom_left, set.horizontal_bottom, set.bottom_right),
    ] {
        let line = format!("{left}{}{right}", middle.repeat(room));
        put(buffer, area.x, y, area.width.into(), &line, style);
    }
    if !title.is_empty() {
        let title = format!(" {} ", cut(&safe(title.as_bytes()), room.saturating_sub(4)));
        put(buffer, area.x + 2, area.y, room.saturating_sub(2), &title, style);
    }
    Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: area.height - 2 }
}

/// Wraps foreign text to rows of at most `room` columns. Rows keep the indentation of their line.
pub(super) fn rows_of(text: &str, room: usize) -> Vec<String> {
    let lines = text.split('\n').map(|line| safe(line.as_bytes()));
    let rows = lines.flat_map(|line| {
        let words = line.trim_start_matches(' ');
        let indent = " ".repeat((line.len() - words.len()).min(room / 2));
        let rows = wrap(words, room.saturating_sub(indent.width()));
        rows.into_iter().map(move |row| format!("{indent}{row}"))
    });
    rows.collect()
}

/// Replaces all that is not ASCII.
pub(super) fn to_ascii(area: Rect, buffer: &mut Buffer) {
    for position in area.positions() {
        let Some(cell) = buffer.cell_mut(position) else { continue };
        if !cell.symbol().is_ascii() {
            let known = ASCII.iter().find(|(symbol, _)| *symbol == cell.symbol());
            cell.set_symbol(known.map_or("?", |(_, ascii)| ascii));
        }
    }
}
