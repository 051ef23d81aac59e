//! Sessions of iTerm2 beside the caller's own, controlled through AppleScript. Acts only on
//! sessions that carry our token.

mod osa;
mod place;
mod quote;
mod script;
mod session;
mod survey;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use super::proof::{Observation, close_proven, judge};
use super::{Backend, BackendError, BeforeClose, CloseOutcome, Label, Mark, PlacementRequest};
use model::id::MemberName;
use model::members::input::{Input, Modes};
use model::members::placement::{BackendKind, Layout, Placement, Verdict};
use model::members::spec::Terminal;
use model::text;
use osa::Osa;
use script::{CONTENTS, FOCUS, NAME, WRITE};
use session::{iterm_session, list_sessions};
use survey::ItermRow;

pub use session::{Iterm2, ItermHome};

/// Timeout for the check whether the caller runs in iTerm2.
const PROBED_WITHIN: Duration = Duration::from_secs(3);
/// Length limit of a session's name, in characters.
const LONGEST_NAME: usize = 60;

/// Checks that the caller's terminal is a live session of a running iTerm2. Does not start iTerm2.
///
/// # Errors
/// Returns the reason why it is not, with an instruction for the user.
pub fn probe(program: PathBuf, tty: &str) -> Result<(), String> {
    let rows = sessions(program).map_err(|e| described(&e))?.ok_or("iTerm2 is not running")?;
    match survey::caller_session(&rows, Some(tty), None) {
        Some(_) => Ok(()),
        None => Err(format!("this terminal ({tty}) is no session of iTerm2")),
    }
}

/// Returns the number of sessions of iTerm2; `None` if it is not running or not installed. Does not
/// start iTerm2.
///
/// # Errors
/// Returns the reason why it does not answer, with an instruction for the user.
pub fn count_sessions(program: PathBuf) -> Result<Option<usize>, String> {
    match sessions(program) {
        Ok(rows) => Ok(rows.map(|rows| rows.len())),
        Err(BackendError::Iterm2 { code: Some(-2740 | -2741 | -10814 | -43), .. }) => Ok(None),
        Err(error) => Err(described(&error)),
    }
}

fn sessions(program: PathBuf) -> Result<Option<Vec<ItermRow>>, BackendError> {
    list_sessions(&Osa { within: PROBED_WITHIN, ..Osa::new(program) })
}

fn described(error: &BackendError) -> String {
    match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

impl Backend for Iterm2 {
    fn kind(&self) -> BackendKind {
        BackendKind::Iterm2
    }

    fn terminal(&self, _member: &MemberName) -> Terminal {
        Terminal::Pane
    }

    fn place(&self, launches: &[PlacementRequest]) -> Vec<Result<Placement, BackendError>> {
        let placed = place::place(self, launches);
        for (launch, placement) in launches.iter().zip(&placed) {
            if let Ok(placement) = placement {
                self.label(&[(Mark::new(placement, &launch.token), launch.label.clone())]);
            }
        }
        placed
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        let rows = self.survey().map_err(|error| error.to_string());
        let verdict = |mark: &Mark<'_>| match (iterm_session(mark.placement), &rows) {
            (Err(verdict), _) => verdict,
            (Ok(_), Err(reason)) => judge(Observation::Unclear(reason.clone())),
            (Ok(session), Ok(rows)) => survey::verdict(rows.as_deref(), session, mark.token),
        };
        marks.iter().map(verdict).collect()
    }

    fn close_all(&self, marks: &[Mark<'_>], before: &mut BeforeClose<'_>) -> Vec<CloseOutcome> {
        close_proven(marks, self.verify_all(marks), before, |proven| {
            proven.iter().map(|proven| self.close_one(proven)).collect()
        })
    }

    fn screen(&self, mark: Mark<'_>, lines: usize) -> Result<String, BackendError> {
        let shown = self.run_for_placement(&CONTENTS, mark, &[])?;
        Ok(text::last_lines(&shown, lines))
    }

    fn how_to_watch(&self, _placement: &Placement) -> String {
        match self.home.layout {
            Layout::Panes | Layout::Split => "its split beside yours, in iTerm2".to_owned(),
            Layout::Windows => "its tab of your window, in iTerm2".to_owned(),
        }
    }

    fn focus(&self, mark: Mark<'_>) -> Result<(), BackendError> {
        self.run_for_placement(&FOCUS, mark, &[]).map(drop)
    }

    /// iTerm2 does not report a terminal's modes to scripts, so keys are sent in their default
    /// encoding.
    fn write_input(&self, mark: Mark<'_>, input: &Input) -> Result<(), BackendError> {
        let bytes = input.bytes(Modes::default());
        let text = String::from_utf8_lossy(&bytes);
        self.run_for_placement(&WRITE, mark, &[&text]).map(drop)
    }

    fn label(&self, labels: &[(Mark<'_>, Label)]) {
        for (mark, label) in labels {
            let _ = self.run_for_placement(&NAME, *mark, &[&session_name(label)]);
        }
    }
}

/// Formats a label as `ada · tester · idle`. iTerm2 evaluates `\(…)` in a name, so backslashes are
/// replaced (SEC-02).
fn session_name(label: &Label) -> String {
    let parts = [Some(&label.name), label.role.as_ref(), Some(&label.state)];
    let words: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
    text::short(&words.join(" · "), LONGEST_NAME).replace('\\', "\u{fffd}")
}
