//! A picture that is drawn again in its own place. Each drawing is one write that leaves the terminal as it found it, so
//! that nothing has to be restored whenever it ends.

use std::io::{self, Write};

use crossterm::cursor::{Hide, MoveTo, MoveToColumn, MoveUp, Show};
use crossterm::queue;
use crossterm::terminal::{
    self, BeginSynchronizedUpdate, Clear, ClearType, DisableLineWrap, EnableLineWrap, EndSynchronizedUpdate,
};

/// The size of a terminal that does not tell it.
const SIZE: (u16, u16) = (80, 24);

/// What was drawn last.
pub(crate) struct Redraw {
    rows: u16,
    size: (u16, u16),
}

impl Redraw {
    /// Nothing is drawn yet; the first picture begins where the cursor is.
    pub(crate) fn new() -> Redraw {
        Redraw { rows: 0, size: size() }
    }

    /// Draws `picture` over the last one, cut to the terminal.
    ///
    /// # Errors
    /// What writing to stdout fails with.
    pub(crate) fn draw(&mut self, picture: &str) -> io::Result<()> {
        let size = size();
        let lines = fit(picture, size);
        let mut out = Vec::new();
        queue!(out, BeginSynchronizedUpdate, Hide, DisableLineWrap)?;
        if size != self.size {
            // The terminal has moved what was drawn: nobody knows where to.
            queue!(out, Clear(ClearType::All), MoveTo(0, 0))?;
        } else if self.rows > 0 {
            queue!(out, MoveUp(self.rows), MoveToColumn(0))?;
        }
        for line in &lines {
            // Before the text: behind a line of full width the cursor still stands on its last character.
            queue!(out, Clear(ClearType::UntilNewLine))?;
            out.extend_from_slice(line.as_bytes());
            out.extend_from_slice(b"\r\n");
        }
        queue!(out, Clear(ClearType::FromCursorDown), EnableLineWrap, Show, EndSynchronizedUpdate)?;
        let mut stdout = io::stdout().lock();
        stdout.write_all(&out)?;
        stdout.flush()?;
        self.rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        self.size = size;
        Ok(())
    }
}

fn size() -> (u16, u16) {
    terminal::size().ok().filter(|(width, height)| *width > 0 && *height > 0).unwrap_or(SIZE)
}

/// The lines that the terminal has room for; the last row is the cursor's.
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

/// Cuts a line that may hold colours of ours, which take no room.
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
    fn lines_are_cut_to_the_width_and_colours_take_none() {
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("abcde", 4), "abc…");
        assert_eq!(cut("", 4), "");
        assert_eq!(cut("\u{1b}[31mabcd\u{1b}[0m", 4), "\u{1b}[31mabcd\u{1b}[0m\u{1b}[0m");
        assert_eq!(cut("\u{1b}[31mabcde\u{1b}[0m", 4), "\u{1b}[31mabc…\u{1b}[0m");
    }

    #[test]
    fn what_has_no_room_is_counted() {
        assert_eq!(fit("a\nb\nc", (10, 4)), ["a", "b", "c"]);
        assert_eq!(fit("a\nb\nc\nd", (20, 4)), ["a", "b", "… 2 lines more"]);
        assert_eq!(fit("a\nb", (10, 1)), ["… 2 lines…"]);
    }
}
