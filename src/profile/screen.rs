//! What a program has drawn, from the bytes it printed: the source of a [`Look`]. Knows no process and no clock.

use std::ops::Range;

use vt100::{Callbacks, Parser};

use super::judge::Look;
use super::rule::Progress;

/// The longest title that is kept, characters.
const TITLE: usize = 256;

/// A terminal that is only looked at.
pub(crate) struct Screen(Parser<Beside>);

/// What a program says beside what it draws.
#[derive(Default)]
struct Beside {
    title: String,
    progress: Option<Progress>,
    answers: Vec<u8>,
}

impl Screen {
    /// An empty screen of so many rows and columns, at least two of each: with one row, vt100 0.16.2 panics when a line
    /// is too long for it.
    pub(crate) fn new(rows: u16, cols: u16) -> Screen {
        Screen(Parser::new_with_callbacks(rows.max(2), cols.max(2), 0, Beside::default()))
    }

    /// Takes in what the program printed. The more at once, the cheaper: lines that scroll away unseen are not drawn.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let (rows, _) = self.0.screen().size();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (run, after) = rest.split_at(text_run(rest));
            match unseen(run, usize::from(rows)) {
                Some(unseen) => {
                    self.0.process(&run[..unseen.start]);
                    self.0.process(&run[unseen.end..]);
                }
                None => self.0.process(run),
            }
            let (control, after) = after.split_at(after.len().min(1));
            self.0.process(control);
            rest = after;
        }
    }

    /// The terminal has another size now.
    pub(crate) fn resize(&mut self, rows: u16, cols: u16) {
        self.0.screen_mut().set_size(rows.max(2), cols.max(2));
    }

    /// What is to be seen now, after nothing came for `quiet_ms`.
    pub(crate) fn look(&self, quiet_ms: u64) -> Look {
        let (screen, beside) = (self.0.screen(), self.0.callbacks());
        let (rows, cols) = screen.size();
        Look {
            rows: screen.rows(0, cols).map(|row| row.trim_end().to_owned()).collect(),
            goes_on: (0..rows).map(|row| row > 0 && screen.row_wrapped(row - 1)).collect(),
            cursor: drawn_cursor(screen).unwrap_or_else(|| screen.cursor_position()),
            title: beside.title.clone(),
            progress: beside.progress.unwrap_or(Progress::None),
            alternate: screen.alternate_screen(),
            bracketed_paste: screen.bracketed_paste(),
            quiet_ms,
        }
    }

    /// Whether the program puts a question in these bytes.
    pub(crate) fn asks(bytes: &[u8]) -> bool {
        bytes.split(|byte| *byte == 0x1b).skip(1).any(|after| {
            let mut rest =
                after.iter().skip_while(|byte| matches!(byte, b'[' | b'0'..=b'9' | b';' | b'<'..=b'?'));
            matches!(rest.next(), Some(b'n' | b'c'))
        })
    }

    /// What a terminal would answer to the questions that the program has put since the last call: where the cursor
    /// is, what it is, whether it is well. Programs wait for that before they draw anything. Where a real terminal
    /// stands behind the program, that one answers.
    pub(crate) fn take_answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0.callbacks_mut().answers)
    }
}

/// Where a program that hides the terminal's cursor has drawn one of its own: the only cell in reverse. None where there is
/// no such cell, or several.
fn drawn_cursor(screen: &vt100::Screen) -> Option<(u16, u16)> {
    if !screen.hide_cursor() {
        return None;
    }
    let (rows, cols) = screen.size();
    let cells = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
    let mut reversed = cells.filter(|(row, col)| screen.cell(*row, *col).is_some_and(vt100::Cell::inverse));
    reversed.next().filter(|_| reversed.next().is_none())
}

/// How many of these bytes, from the first, only write lines and colour them.
fn text_run(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'\t' | b'\n' | b'\r' | 0x20..=0xc1 | 0xc3..=0xff => 1,
            // The control characters above ASCII.
            0xc2 if bytes.get(at + 1).is_some_and(|next| *next >= 0xa0) => 2,
            0x1b => match colour(&bytes[at..]) {
                Some(length) => length,
                None => return at,
            },
            _ => return at,
        };
    }
    at
}

/// The length of a complete `ESC [ … m` at the beginning.
fn colour(bytes: &[u8]) -> Option<usize> {
    let numbers = bytes.strip_prefix(b"\x1b[")?;
    let length = numbers.iter().position(|byte| !(byte.is_ascii_digit() || b";:".contains(byte)))?;
    (numbers[length] == b'm').then_some(length + 3)
}

/// The part of a run of lines that has scrolled away at its end: all but the first lines and the last twice `rows`, which
/// from wherever they begin push out whatever was there. What came before the run may be half a sequence, which a letter
/// ends, or half a string, which only a colour ends: from there on lines are lines. (Below a scrolling region lines overwrite each other instead: what is left of longer ones may differ.)
fn unseen(run: &[u8], rows: usize) -> Option<Range<usize>> {
    let from = |at: usize, is: fn(&u8) -> bool| run[at..].iter().position(is).map(|more| at + more);
    let colour = from(0, |byte| *byte == 0x1b).unwrap_or(0);
    let letter = from(colour, |byte| matches!(byte, 0x40..=0x7e) && *byte != b'[')?;
    let start = from(letter, |byte| *byte == b'\n')? + 1;
    let mut ends = run.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    // The line break before the last ones is drawn, too: they begin at the left.
    let end = ends.nth(2 * rows)?.checked_sub(1).filter(|at| *at >= start && run[*at] == b'\r')?;
    Some(start..end)
}

impl Callbacks for Beside {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = String::from_utf8_lossy(title).chars().take(TITLE).collect();
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        if let [b"9", b"4", state, ..] = params {
            self.progress = match *state {
                b"1" | b"3" => Some(Progress::Busy),
                b"2" => Some(Progress::Error),
                b"4" => Some(Progress::Paused),
                _ => None,
            };
        }
    }

    fn unhandled_csi(
        &mut self,
        screen: &mut vt100::Screen,
        first: Option<u8>,
        _: Option<u8>,
        params: &[&[u16]],
        last: char,
    ) {
        let number = params.first().and_then(|p| p.first()).copied().unwrap_or(0);
        let (row, col) = screen.cursor_position();
        match (first, last, number) {
            (None, 'n', 6) => self.answers.extend(format!("\x1b[{};{}R", row + 1, col + 1).bytes()),
            (Some(b'?'), 'n', 6) => self.answers.extend(format!("\x1b[?{};{}R", row + 1, col + 1).bytes()),
            (None, 'n', 5) => self.answers.extend(b"\x1b[0n"),
            (None, 'c', 0) => self.answers.extend(b"\x1b[?62;22c"),
            (_, _, _) => {}
        }
    }
}
