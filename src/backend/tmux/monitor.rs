//! Follows the screen of a pane. The system reports output on the pane's terminal, and each report
//! causes one capture. No tmux client is attached: tmux 3.3a sends a focus event (`ESC [ I`) to the
//! active pane of the session that a client attaches to, also if the client is in control mode and
//! `focus-events` is off, and a followed member must not receive input.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

use super::command::Server;
use super::identity::PaneClaim;
use super::row::{ScreenRow, rows};
use super::verb;
use crate::follow::{FailureCount, ImageFilter, ScreenImage};
use crate::pty::LiveScreen;
use crate::{BackendError, Mark};
use model::members::placement::Placement;
use sys::clock::Deadline;
use sys::output_watch::{OutputWatch, Wakeup};

/// Time for tmux to read what a program has written.
const SETTLE: Duration = Duration::from_millis(10);
/// Shortest and longest time between two captures. In between, it is this many times the duration
/// of a capture, so that captures take less than one percent of the time.
const GAP: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
const GAP_PER_CAPTURE: u32 = 130;
/// Time after a request for a capture in which the gap is the shortest: the person types.
const EAGER: Duration = Duration::from_secs(1);
/// Time without output after which the screen is captured again, in case that tmux was slow.
const CONFIRM: Duration = Duration::from_millis(250);
/// First interval of captures without output: a pane changes its size, shows echoed input, or
/// closes. The interval doubles while nothing changes.
const SWEEP: Duration = Duration::from_secs(1);
/// Longest such interval.
const LONGEST_SWEEP: Duration = Duration::from_secs(16);
/// Interval of captures on a system that does not report output.
const POLL: Duration = Duration::from_millis(500);

/// Passes the screen of the claimed pane to `on_screen` now and after each change, until `watch` is
/// stopped. tmux compares the identity of the pane in the step that captures it; `verify` finds out
/// why it refuses.
///
/// # Errors
/// The error of `verify` if the pane is not ours; another one after several failures in a row.
pub(super) fn follow(
    server: &Server<'_>,
    claim: &PaneClaim<'_>,
    watch: &mut OutputWatch,
    verify: &dyn Fn() -> Result<(), BackendError>,
    on_screen: &mut dyn FnMut(ScreenImage),
) -> Result<(), BackendError> {
    let (mut filter, mut failures) = (ImageFilter::new(on_screen), FailureCount::default());
    let mut terminal = None;
    let mut is_reported = false;
    let mut is_active = true;
    let mut sweep = SWEEP;
    let mut eager = Deadline::after(Duration::ZERO);
    loop {
        // Before the capture, so that output during the capture causes another one.
        watch.clear();
        let begun = Deadline::after(GAP.1);
        match capture(server, claim) {
            Ok(Some((row, image))) => {
                failures.reset();
                is_active |= filter.show(image);
                if terminal.as_ref() != Some(&row.tty) {
                    is_reported = watch.watch(Path::new(&row.tty));
                    terminal = Some(row.tty);
                }
            }
            Ok(None) => verify().or_else(|error| failures.add(error))?,
            Err(error) => failures.add(verify().err().unwrap_or(error))?,
        }
        let gap = if eager.expired() {
            (begun.elapsed() * GAP_PER_CAPTURE).clamp(GAP.0, GAP.1)
        } else {
            GAP.0
        };
        let limit = match (is_reported, is_active) {
            (false, _) => POLL,
            (_, true) => CONFIRM,
            (_, false) => sweep,
        };
        sweep = if is_active { SWEEP } else { (sweep * 2).min(LONGEST_SWEEP) };
        is_active = match watch.wait(limit) {
            Wakeup::Output => {
                if !watch.pause(gap.saturating_sub(begun.elapsed()).max(SETTLE)) {
                    return Ok(());
                }
                true
            }
            Wakeup::Asked => {
                eager = Deadline::after(EAGER);
                true
            }
            Wakeup::Timeout => false,
            Wakeup::Stopped => return Ok(()),
        };
    }
}

/// Returns the line of a pane's screen in which its program may ask for input. `None` if there is
/// none, if the pane is not ours or if tmux does not answer. Runs one tmux process.
pub fn prompt_line(program: &Path, placement: &Placement, token: &str) -> Option<String> {
    let claim = PaneClaim::parse(&Mark::new(placement, token)).ok()?;
    let (row, image) = capture(&claim.server(program), &claim).ok()??;
    if row.is_alternate {
        return None;
    }
    let mut terminal = LiveScreen::new((image.rows, image.cols));
    terminal.process(&image.bytes);
    terminal.prompt_line()
}

/// Captures the pane; `None` if it is not the claimed one.
fn capture(
    server: &Server<'_>,
    claim: &PaneClaim<'_>,
) -> Result<Option<(ScreenRow, ScreenImage)>, BackendError> {
    let answer = server.ask(&claim.guarded(&verb::capture_screen(claim.id)));
    // The row precedes the lines of the pane, so that no program can imitate it.
    let found =
        answer.lines.iter().enumerate().find_map(|(nth, line)| {
            Some((nth, rows::<ScreenRow>(std::slice::from_ref(line)).pop()?))
        });
    match (found, answer.problem) {
        (Some((nth, row)), _) => {
            let image = image(&row, &answer.lines[nth + 1..]);
            Ok(Some((row, image)))
        }
        (None, None) => Ok(None),
        (None, Some(problem)) => Err(problem),
    }
}

/// Draws the captured lines. tmux continues colours from one line to the next.
fn image(row: &ScreenRow, lines: &[String]) -> ScreenImage {
    let mut drawn = String::new();
    for (nth, line) in (1..=row.rows).zip(lines) {
        if !line.is_empty() {
            // Writing to a string does not fail.
            let _ = write!(drawn, "\x1b[{nth};1H{line}");
        }
    }
    let (y, x) = (row.cursor_y.saturating_add(1), row.cursor_x.saturating_add(1));
    let visible = if row.cursor { "" } else { "\x1b[?25l" };
    let _ = write!(drawn, "\x1b[m\x1b[{y};{x}H{visible}");
    ScreenImage { rows: row.rows, cols: row.cols, bytes: drawn.into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captured_lines_are_drawn_with_colours_and_cursor() {
        let row = ScreenRow {
            rows: 3,
            cols: 10,
            cursor_x: 4,
            cursor_y: 2,
            cursor: false,
            is_alternate: false,
            tty: String::new(),
        };
        let lines = ["\x1b[31mred", "red too", "\x1b[39mplain67890", "a hook's line"];
        let image = image(&row, &lines.map(str::to_owned));
        let mut terminal = vt100::Parser::new(image.rows, image.cols, 0);
        terminal.process(&image.bytes);
        let screen = terminal.screen();
        assert_eq!(screen.contents(), "red\nred too\nplain67890");
        let color = |y, x| screen.cell(y, x).expect("on the screen").fgcolor();
        assert_eq!([color(0, 0), color(1, 6)], [vt100::Color::Idx(1); 2]);
        assert_eq!(color(2, 0), vt100::Color::Default);
        assert_eq!((screen.cursor_position(), screen.hide_cursor()), ((2, 4), true));
    }
}
