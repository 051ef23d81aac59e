//! Writes safe text into the cells of a screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use crate::glyph;

pub(crate) fn dim() -> Style {
    Style::default().add_modifier(Modifier::DIM)
}

/// Draws the characters of a safe text that fit into `room` columns.
pub fn put(buffer: &mut Buffer, x: u16, y: u16, room: usize, text: &str, style: Style) {
    let (mut x, mut left) = (x, room);
    for glyph in glyph::glyphs(text.as_bytes()) {
        if glyph.width > left || x >= buffer.area.right() {
            return;
        }
        set(buffer, x, y, &glyph.symbol, glyph.width, style);
        x += u16::try_from(glyph.width).unwrap_or(1);
        left -= glyph.width;
    }
}

/// Draws a character, and clears the cells that it also covers.
pub fn set(buffer: &mut Buffer, x: u16, y: u16, symbol: &str, width: usize, style: Style) {
    for at in 0..u16::try_from(width).unwrap_or(1) {
        if let Some(cell) = buffer.cell_mut((x + at, y)) {
            cell.reset();
            cell.set_symbol(if at == 0 { symbol } else { " " }).set_style(style);
        }
    }
}

/// Draws a row with a safe text, and clears its other cells.
pub fn fill(buffer: &mut Buffer, area: Rect, text: &str, style: Style) {
    for x in area.left()..area.right() {
        set(buffer, x, area.y, " ", 1, style);
    }
    put(buffer, area.x, area.y, usize::from(area.width), text, style);
}
