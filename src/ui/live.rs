//! Lines at the bottom of a terminal that are drawn again and again. Knows nothing of what they say.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Rows of a terminal that does not tell its size.
const ROWS: u16 = 24;

/// The lines on stderr.
pub(super) struct Live {
    screen: MultiProgress,
    lines: Vec<ProgressBar>,
}

impl Live {
    pub(super) fn new() -> Live {
        // Nearly never by itself: the lines are drawn together, once all of them are up to date.
        let target = ProgressDrawTarget::stderr_with_hz(1);
        Live { screen: MultiProgress::with_draw_target(target), lines: Vec::new() }
    }

    /// How many lines there is room for, with one left for the cursor.
    pub(super) fn rows() -> usize {
        let rows = crossterm::terminal::size().map_or(ROWS, |(_, rows)| rows);
        usize::from(rows.saturating_sub(1)).max(1)
    }

    /// Draws these lines in the place of the earlier ones.
    pub(super) fn draw(&mut self, wanted: &[String]) {
        while self.lines.len() > wanted.len() {
            if let Some(line) = self.lines.pop() {
                line.finish_and_clear();
                self.screen.remove(&line);
            }
        }
        while self.lines.len() < wanted.len() {
            let line = self.screen.add(ProgressBar::new_spinner());
            line.set_style(style());
            self.lines.push(line);
        }
        for (line, text) in self.lines.iter().zip(wanted) {
            line.set_message(text.clone());
        }
        if let Some(last) = self.lines.last() {
            last.force_draw();
        }
    }

    /// Puts a line above the others; it stays.
    pub(super) fn say(&self, words: &str) {
        // A terminal that is gone hears nothing.
        let _ = self.screen.println(words);
    }

    /// Takes the lines away.
    pub(super) fn clear(&mut self) {
        self.draw(&[]);
        let _ = self.screen.clear();
    }
}

/// The line as it is, cut to the terminal's width.
fn style() -> ProgressStyle {
    ProgressStyle::with_template("{wide_msg}").unwrap_or_else(|_| ProgressStyle::default_spinner())
}
