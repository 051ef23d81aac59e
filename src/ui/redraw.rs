//! Draws a frame of lines over the last one. Each drawing is one write that leaves line wrapping
//! and the cursor as they were, so nothing must be restored when the process ends.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap,
    EndSynchronizedUpdate,
};

/// Columns and rows to assume for a terminal that does not report its size.
const SIZE: (u16, u16) = (80, 24);

#[derive(Default)]
pub struct Redraw {
    /// The visible width of each line.
    widths: Vec<usize>,
}

impl Redraw {
    /// Starts without a frame; the first one begins at the cursor.
    pub fn new() -> Redraw {
        Redraw::default()
    }

    /// Draws `frame` over the last one on stdout, cut to the terminal.
    ///
    /// # Errors
    /// Returns the error of writing to stdout.
    pub fn draw(&mut self, frame: &str) -> io::Result<()> {
        self.draw_on(&mut io::stdout().lock(), "", frame, size())
    }

    /// Draws `frame` over the last one on `out`, cut to `size`, after printing `above` as permanent
    /// lines.
    ///
    /// # Errors
    /// Returns the error of writing to `out`.
    pub(super) fn draw_on(
        &mut self,
        out: &mut impl Write,
        above: &str,
        frame: &str,
        size: (u16, u16),
    ) -> io::Result<()> {
        let lines = fit(frame, size);
        let mut bytes = Vec::new();
        queue!(bytes, BeginSynchronizedUpdate, Hide)?;
        let rows = rows(&self.widths, size.0);
        if rows > 0 {
            queue!(bytes, MoveUp(rows), MoveToColumn(0))?;
        }
        if !above.is_empty() {
            // These lines may wrap over rows of the last frame.
            queue!(bytes, Clear(ClearType::FromCursorDown))?;
        }
        for line in above.lines() {
            bytes.extend_from_slice(line.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        queue!(bytes, DisableLineWrap)?;
        for line in &lines {
            // Cleared before the text: after a line of full width the cursor is still on its last
            // character.
            queue!(bytes, Clear(ClearType::UntilNewLine))?;
            bytes.extend_from_slice(line.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        queue!(
            bytes,
            Clear(ClearType::FromCursorDown),
            EnableLineWrap,
            Show,
            EndSynchronizedUpdate
        )?;
        self.widths = lines.iter().map(|line| visible(line)).collect();
        out.write_all(&bytes)?;
        out.flush()
    }

    /// Keeps the last frame on the screen; the next one begins at the cursor.
    pub(super) fn forget(&mut self) {
        self.widths.clear();
    }
}

pub fn size() -> (u16, u16) {
    terminal::size().ok().filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(SIZE)
}

/// Returns the number of rows that lines of these widths occupy on a terminal of this width, which
/// may have wrapped them again after a resize.
fn rows(widths: &[usize], columns: u16) -> u16 {
    let columns = usize::from(columns).max(1);
    let rows: usize = widths.iter().map(|width| width.div_ceil(columns).max(1)).sum();
    u16::try_from(rows).unwrap_or(u16::MAX)
}

/// Returns the lines that fit on the terminal; the last row is left to the cursor.
fn fit(picture: &str, (width, height): (u16, u16)) -> Vec<String> {
    let (width, room) = (usize::from(width), usize::from(height).saturating_sub(1).max(1));
    let mut lines: Vec<String> = picture.lines().map(|line| cut(line, width)).collect();
    if lines.len() > room {
        let hidden = lines.len() - room + 1;
        lines.truncate(room - 1);
        lines.push(cut(&format!("… {hidden} lines more"), width));
    }
    lines
}

/// Cuts a line that may contain colour sequences, which have no width.
fn cut(line: &str, width: usize) -> String {
    let (mut out, mut room, mut colored) = (String::new(), width, false);
    let mut chars = line.chars();
    let mut left = visible(line);
    while let Some(c) = chars.next() {
        if c == '\u{1b}' {
            colored = true;
            out.push(c);
            for c in chars.by_ref() {
                out.push(c);
                if c == 'm' {
                    break;
                }
            }
            continue;
        }
        if room == 1 && left > 1 {
            out.push('…');
            break;
        }
        out.push(c);
        (room, left) = (room.saturating_sub(1), left - 1);
    }
    if colored {
        out.push_str("\u{1b}[0m");
    }
    out
}

fn visible(line: &str) -> usize {
    let mut parts = line.split('\u{1b}');
    let first = parts.next().map_or(0, |part| part.chars().count());
    let rest = parts.map(|part| part.split_once('m').map_or(0, |(_, text)| text.chars().count()));
    first + rest.sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_width_without_counting_colours() {
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("abcde", 4), "abc…");
        assert_eq!(cut("", 4), "");
        assert_eq!(cut("\u{1b}[31mabcd\u{1b}[0m", 4), "\u{1b}[31mabcd\u{1b}[0m\u{1b}[0m");
        assert_eq!(cut("\u{1b}[31mabcde\u{1b}[0m", 4), "\u{1b}[31mabc…\u{1b}[0m");
    }

    /// Returns the screen of a terminal emulator of this size after these drawings.
    fn screen(size: (u16, u16), drawings: &[(&str, &str)]) -> String {
        let mut parser = vt100::Parser::new(size.1, size.0, 0);
        parser.process(b"$ up\r\n");
        let mut redraw = Redraw::new();
        for (above, frame) in drawings {
            let mut bytes = Vec::new();
            redraw.draw_on(&mut bytes, above, frame, size).expect("a vector takes all");
            parser.process(&bytes);
        }
        parser.screen().contents()
    }

    #[test]
    fn frame_replaces_the_previous_one() {
        assert_eq!(screen((20, 6), &[("", "a\nbb\nccc"), ("", "d")]), "$ up\nd");
        assert_eq!(screen((20, 6), &[("", "a\nb"), ("", "")]), "$ up");
    }

    #[test]
    fn lines_above_the_frame_stay_and_wrap() {
        assert_eq!(
            screen((4, 6), &[("", "a\nb"), ("12345", "c"), ("x", "d")]),
            "$ up\n12345\nx\nd"
        );
    }

    #[test]
    fn line_of_full_width_does_not_wrap() {
        assert_eq!(screen((4, 6), &[("", "abcd\nefghi"), ("", "jkl")]), "$ up\njkl");
    }

    #[test]
    fn rows_are_counted_as_wrapped_by_a_narrower_terminal() {
        assert_eq!(rows(&[10, 0, 4], 10), 3);
        assert_eq!(rows(&[10, 0, 4], 4), 5);
        assert_eq!(rows(&[], 4), 0);
    }

    #[test]
    fn lines_that_do_not_fit_are_counted() {
        assert_eq!(fit("a\nb\nc", (10, 4)), ["a", "b", "c"]);
        assert_eq!(fit("a\nb\nc\nd", (20, 4)), ["a", "b", "… 2 lines more"]);
        assert_eq!(fit("a\nb", (10, 1)), ["… 2 lines…"]);
    }
}
