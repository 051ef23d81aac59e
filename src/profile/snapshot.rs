//! Snapshot of a screen, as the rules of a profile see it.

use serde::{Deserialize, Serialize};

/// Snapshot of a screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Screenshot {
    /// Plain text of each row, without trailing blanks.
    pub rows: Vec<String>,
    /// For each row, true if the terminal wrapped the row above into it, so that both are one line
    /// of the program. A missing entry counts as false.
    pub goes_on: Vec<bool>,
    /// Row and column, counted from 0.
    pub cursor: (u16, u16),
    /// True if the terminal shows its cursor, or the program draws one of its own. Some programs
    /// draw no cursor without the focus.
    pub(crate) cursor_shown: bool,
    /// For each row, the column from which all drawn text is faint, apart from a cursor. A missing
    /// entry counts as `None`: the row does not end in faint text.
    pub(crate) faint_from: Vec<Option<u16>>,
    /// Title of the window.
    pub title: String,
    pub progress: ReportedProgress,
    /// True if the program uses the alternate screen.
    pub alternate: bool,
    /// True if the program requests bracketed paste.
    pub bracketed_paste: bool,
    /// Time since the last output, in milliseconds.
    pub quiet_ms: u64,
}

impl Screenshot {
    /// Creates a snapshot from text and a visible cursor; everything else has its default.
    pub fn of_text(text: &str) -> Screenshot {
        let rows = text.lines().map(|row| row.trim_end().to_owned()).collect();
        Screenshot { rows, cursor_shown: true, ..Screenshot::default() }
    }

    /// Returns true if all text drawn in the row from this column on is faint.
    pub(super) fn is_faint(&self, row: usize, column: usize) -> bool {
        let from = self.faint_from.get(row).copied().flatten();
        from.is_some_and(|from| usize::from(from) <= column)
    }

    pub(super) fn goes_on(&self, row: usize) -> bool {
        self.goes_on.get(row).is_some_and(|goes_on| *goes_on)
    }
}

/// Progress that a program reports (OSC 9;4).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportedProgress {
    #[default]
    None,
    Busy,
    Error,
    Paused,
}
