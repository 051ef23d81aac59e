//! Writes frames: finished lines into the scrollback, and the live region below them, which each
//! frame replaces. Moves the cursor only relative to where the last frame left it.

use crate::line::{Breaks, StyledLine, char_width, wrap};

/// Rows and columns of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalSize {
    /// Its height.
    pub rows: u16,
    /// Its width.
    pub cols: u16,
}

impl TerminalSize {
    /// Columns to draw on. A wide character needs two.
    pub(crate) fn room(self) -> usize {
        usize::from(self.cols).max(2)
    }

    /// The most rows of the live region. One row stays for finished lines.
    pub(crate) fn live_rows(self) -> usize {
        usize::from(self.rows).saturating_sub(1).max(1)
    }
}

/// The rows below the finished lines, and the place of the cursor in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LiveRegion {
    pub(crate) rows: Vec<StyledLine>,
    pub(crate) cursor_row: usize,
    pub(crate) cursor_column: usize,
}

#[derive(Debug, Default)]
pub(crate) struct FrameWriter {
    has_color: bool,
    size: TerminalSize,
    /// The region on the terminal.
    drawn: LiveRegion,
    /// The size has changed since `drawn` was written.
    is_resized: bool,
}

impl FrameWriter {
    pub(crate) fn new(size: TerminalSize, has_color: bool) -> FrameWriter {
        FrameWriter { has_color, size, ..FrameWriter::default() }
    }

    pub(crate) fn size(&self) -> TerminalSize {
        self.size
    }

    #[cfg(test)]
    pub(crate) fn drawn(&self) -> &LiveRegion {
        &self.drawn
    }

    pub(crate) fn resize(&mut self, size: TerminalSize) {
        self.is_resized |= size != self.size;
        self.size = size;
    }

    /// Returns the bytes that print `finished` and replace the live region; none if nothing
    /// changes.
    pub(crate) fn write(
        &mut self,
        finished: impl ExactSizeIterator<Item = StyledLine>,
        live: LiveRegion,
    ) -> Vec<u8> {
        if finished.len() == 0 && !self.is_resized && live == self.drawn {
            return Vec::new();
        }
        let mut same = 0;
        let mut up = self.rows_above_cursor();
        if finished.len() == 0 && !self.is_resized {
            // Only the rows from the first difference on are written.
            let pairs = self.drawn.rows.iter().zip(&live.rows);
            same = pairs.take_while(|(old, new)| old == new).count();
            same = same.min(self.drawn.cursor_row).min(live.rows.len().saturating_sub(1));
            up -= same;
        }
        let mut out = String::from("\u{1b}[?2026h\u{1b}[?25l");
        if up > 0 {
            out.push_str(&format!("\u{1b}[{up}A"));
        }
        // Not one sequence: tmux moves the rows of a screen that is cleared from its first row on
        // into the scrollback.
        out.push_str("\r\u{1b}[K");
        if self.drawn_rows() > same + 1 {
            out.push_str("\u{1b}[1B\u{1b}[J\u{1b}[1A");
        }
        let none = StyledLine::default();
        let room = self.size.room();
        for line in finished {
            // The terminal may have become narrower since the line was wrapped.
            for row in wrap(&line, &none, &none, room, Breaks::Anywhere) {
                row.write(self.has_color, &mut out);
                out.push_str("\r\n");
            }
        }
        for (at, row) in live.rows.iter().enumerate().skip(same) {
            if at > same {
                out.push_str("\r\n");
            }
            row.write(self.has_color, &mut out);
        }
        let up = live.rows.len().saturating_sub(live.cursor_row + 1);
        if up > 0 {
            out.push_str(&format!("\u{1b}[{up}A"));
        }
        out.push('\r');
        if live.cursor_column > 0 {
            out.push_str(&format!("\u{1b}[{}C", live.cursor_column));
        }
        out.push_str("\u{1b}[?25h\u{1b}[?2026l");
        self.drawn = live;
        self.is_resized = false;
        out.into_bytes()
    }

    /// Returns the rows of the region on a terminal of this width.
    fn drawn_rows(&self) -> usize {
        let columns = self.size.room();
        self.drawn.rows.iter().map(|row| rewrapped(row, usize::MAX, columns)).sum()
    }

    /// Returns the rows between the top of the region and the cursor. A terminal of another width
    /// has wrapped the rows again.
    fn rows_above_cursor(&self) -> usize {
        let columns = self.size.room();
        let region = &self.drawn;
        let above: usize = region
            .rows
            .iter()
            .take(region.cursor_row)
            .map(|row| rewrapped(row, usize::MAX, columns))
            .sum();
        let within = region
            .rows
            .get(region.cursor_row)
            .map_or(1, |row| rewrapped(row, region.cursor_column, columns));
        above + within - 1
    }
}

/// Returns the rows that a line up to the character at column `length` takes on a terminal of this
/// width.
fn rewrapped(line: &StyledLine, length: usize, columns: usize) -> usize {
    let mut rows = 1;
    let mut used = 0;
    let mut total = 0;
    for width in line.text().chars().map(char_width) {
        if total > length {
            break;
        }
        if used + width > columns {
            rows += 1;
            used = 0;
        }
        used += width;
        total += width;
    }
    rows
}
