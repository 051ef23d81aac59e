//! A terminal model that turns the output of a program into a [`Screenshot`]. It has no clock:
//! the caller passes the time since the last output.

use vt100::{Callbacks, Parser};

use super::snapshot::{ReportedProgress, Screenshot};
use model::members::query::QueryFilter;

/// Maximum length of a stored title in characters.
const TITLE: usize = 256;

/// A terminal that is never displayed, only read.
pub struct Screen(Parser<Beside>, QueryFilter);

/// Output that is not drawn: title and progress.
#[derive(Default)]
struct Beside {
    title: String,
    progress: ReportedProgress,
}

impl Screen {
    /// Creates an empty screen with at least two rows and columns. With one row, vt100 0.16.2
    /// panics on a line that is too long for it.
    pub fn new(rows: u16, cols: u16) -> Screen {
        let parser = Parser::new_with_callbacks(rows.max(2), cols.max(2), 0, Beside::default());
        Screen(parser, QueryFilter::default())
    }

    /// Processes output of a program whose queries another terminal answers.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }

    /// Processes output of a program that has no other terminal, and returns the answers to its
    /// queries. Programs wait for these before they draw anything.
    pub fn feed_and_answer(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Screen(parser, queries) = self;
        queries.pass(bytes, |part| {
            parser.process(part);
            parser.screen().cursor_position()
        })
    }

    /// Sets the size of the terminal.
    pub fn resize(&mut self, rows: u16, cols: u16) {
        self.0.screen_mut().set_size(rows.max(2), cols.max(2));
    }

    /// Returns a snapshot of the screen. `quiet_ms` is the time since the last output.
    pub fn look(&self, quiet_ms: u64) -> Screenshot {
        let (screen, beside) = (self.0.screen(), self.0.callbacks());
        let (rows, cols) = screen.size();
        let drawn = drawn_cursor(screen);
        let cursor = drawn.unwrap_or_else(|| screen.cursor_position());
        Screenshot {
            rows: screen.rows(0, cols).map(|row| row.trim_end().to_owned()).collect(),
            goes_on: (0..rows).map(|row| row > 0 && screen.row_wrapped(row - 1)).collect(),
            cursor,
            cursor_shown: drawn.is_some() || !screen.hide_cursor(),
            faint_from: (0..rows).map(|row| faint_from(screen, row, cursor)).collect(),
            title: beside.title.clone(),
            progress: beside.progress,
            alternate: screen.alternate_screen(),
            bracketed_paste: screen.bracketed_paste(),
            quiet_ms,
        }
    }

    /// Returns the terminal itself, for drawing.
    pub fn terminal(&self) -> &vt100::Screen {
        self.0.screen()
    }

    /// Returns output that draws this screen on an empty terminal of the same size, with title,
    /// progress and modes.
    pub fn recording(&self) -> Vec<u8> {
        let (screen, beside) = (self.0.screen(), self.0.callbacks());
        let mut output = Vec::new();
        if screen.alternate_screen() {
            output.extend(b"\x1b[?1049h");
        }
        if !beside.title.is_empty() {
            output.extend(format!("\x1b]2;{}\x1b\\", beside.title).bytes());
        }
        let progress = match beside.progress {
            ReportedProgress::Busy => Some(3),
            ReportedProgress::Error => Some(2),
            ReportedProgress::Paused => Some(4),
            ReportedProgress::None => None,
        };
        output.extend(progress.iter().flat_map(|n| format!("\x1b]9;4;{n}\x1b\\").into_bytes()));
        output.extend(screen.state_formatted());
        output
    }
}

/// Returns the position of the cursor that a program draws itself after hiding that of the
/// terminal: the only cell in reverse video. `None` if there is no such cell, or more than one.
fn drawn_cursor(screen: &vt100::Screen) -> Option<(u16, u16)> {
    if !screen.hide_cursor() {
        return None;
    }
    let (rows, cols) = screen.size();
    let cells = (0..rows).flat_map(|row| (0..cols).map(move |col| (row, col)));
    let mut reversed =
        cells.filter(|(row, col)| screen.cell(*row, *col).is_some_and(vt100::Cell::inverse));
    reversed.next().filter(|_| reversed.next().is_none())
}

/// Computes [`Screenshot::faint_from`] of a row.
fn faint_from(screen: &vt100::Screen, row: u16, cursor: (u16, u16)) -> Option<u16> {
    let (_, cols) = screen.size();
    let is_drawn = |col: &u16| {
        let blank = |cell: &vt100::Cell| cell.contents().trim().is_empty();
        (row, *col) != cursor && screen.cell(row, *col).is_some_and(|cell| !blank(cell))
    };
    let mut drawn = (0..cols).rev().filter(is_drawn).peekable();
    let is_faint = |col: &u16| {
        screen.cell(row, *col).is_some_and(|cell| cell.dim() || is_grey(cell.fgcolor()))
    };
    drawn.peek().filter(|col| is_faint(col))?;
    Some(drawn.find(|col| !is_faint(col)).map_or(0, |plain| plain + 1))
}

/// Returns true for the greys in which programs draw what is only suggested. Black is the colour of
/// typed text on a light background.
fn is_grey(color: vt100::Color) -> bool {
    match color {
        vt100::Color::Rgb(r, g, b) => {
            let (least, most) = (r.min(g).min(b), r.max(g).max(b));
            least >= 80 && most <= 160 && most - least <= 40
        }
        vt100::Color::Default | vt100::Color::Idx(_) => false,
    }
}

impl Callbacks for Beside {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.title = String::from_utf8_lossy(title).chars().take(TITLE).collect();
    }

    fn unhandled_osc(&mut self, _: &mut vt100::Screen, params: &[&[u8]]) {
        if let [b"9", b"4", state, ..] = params {
            self.progress = match *state {
                b"1" | b"3" => ReportedProgress::Busy,
                b"2" => ReportedProgress::Error,
                b"4" => ReportedProgress::Paused,
                _ => ReportedProgress::None,
            };
        }
    }
}
