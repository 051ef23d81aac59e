//! Sessions of iTerm2 beside the caller's own, controlled through AppleScript. Acts only on
//! sessions that carry our token.

mod osa;
mod place;
mod quote;
mod script;
mod survey;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use super::proof::{Observation, Proven, close_proven, judge};
use super::{Backend, BackendError, BeforeClose, CloseOutcome, Label, Mark, PlacementRequest};
use crate::model::id::MemberName;
use crate::model::input::{Input, Modes};
use crate::model::placement::{BackendKind, ItermSession, Layout, Placement, Verdict};
use crate::model::spec::Terminal;
use crate::model::text;
use crate::sys::clock::{self, Deadline};
use osa::Osa;
use script::{CLOSE, CONTENTS, DONE, FOCUS, NAME, NOT_FOUND, NOT_OURS, NOT_RUNNING, Script, WRITE};
use survey::ItermRow;

/// Timeout for the check whether the caller runs in iTerm2.
const PROBED_WITHIN: Duration = Duration::from_secs(3);
/// Time that a session may take to get its terminal, or to disappear after it was closed.
const SESSION_TIMEOUT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
/// Length limit of a session's name, in characters.
const LONGEST_NAME: usize = 60;

/// The location of a team's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ItermHome {
    /// The path of `osascript`, from the caller's `PATH`.
    pub(crate) program: PathBuf,
    /// The caller's terminal device, if it has one.
    pub(crate) tty: Option<String>,
    /// `$ITERM_SESSION_ID` (`w0t1p2:UUID`); may be inherited and belong to another session.
    pub(crate) hint: Option<String>,
    /// Marks sessions as this team's (`user.phalanx_team`).
    pub(crate) tag: String,
    pub(crate) layout: Layout,
}

#[derive(Debug, Clone)]
pub(crate) struct Iterm2 {
    home: ItermHome,
    osa: Osa,
}

/// Checks that the caller's terminal is a live session of a running iTerm2. Does not start iTerm2.
///
/// # Errors
/// Returns the reason why it is not, with an instruction for the user.
pub(crate) fn probe(program: PathBuf, tty: &str) -> Result<(), String> {
    let osa = Osa { within: PROBED_WITHIN, ..Osa::new(program) };
    let rows = list_sessions(&osa).map_err(|error| match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    })?;
    let rows = rows.ok_or("iTerm2 is not running")?;
    match survey::caller_session(&rows, Some(tty), None) {
        Some(_) => Ok(()),
        None => Err(format!("this terminal ({tty}) is no session of iTerm2")),
    }
}

fn list_sessions(osa: &Osa) -> Result<Option<Vec<ItermRow>>, BackendError> {
    survey::read(&osa.run(&script::SURVEY, &[])?)
}

impl Iterm2 {
    pub(crate) fn new(home: ItermHome) -> Iterm2 {
        let osa = Osa::new(home.program.clone());
        Iterm2 { home, osa }
    }

    fn survey(&self) -> Result<Option<Vec<ItermRow>>, BackendError> {
        list_sessions(&self.osa)
    }

    /// Runs a script for one session. The script itself compares id, terminal and token before it
    /// acts. Returns the lines of its answer after the first, which is `done`.
    fn run_for_session(
        &self,
        script: &Script,
        session: &ItermSession,
        token: &str,
        more: &[&str],
    ) -> Result<String, BackendError> {
        let proof = [session.session_id.as_str(), session.tty.as_str(), token];
        let answer = self.osa.run(script, &[&proof, more].concat())?;
        let (first, rest) = answer.split_once('\n').unwrap_or((&answer, ""));
        let observation = match first {
            DONE => return Ok(rest.to_owned()),
            NOT_RUNNING | NOT_FOUND => Observation::Absent,
            NOT_OURS => Observation::different("terminal or token"),
            _ => return Err(osa::unreadable(script, &answer)),
        };
        Err(BackendError::NotOurs {
            place: Placement::Iterm2(session.clone()).to_string(),
            verdict: judge(observation),
        })
    }

    /// Runs [`Iterm2::run_for_session`] for a placement, which must be an iTerm2 session.
    fn run_for_placement(
        &self,
        script: &Script,
        mark: Mark<'_>,
        more: &[&str],
    ) -> Result<String, BackendError> {
        match iterm_session(mark.placement) {
            Ok(session) => self.run_for_session(script, session, mark.token, more),
            Err(verdict) => {
                Err(BackendError::NotOurs { place: mark.placement.to_string(), verdict })
            }
        }
    }

    /// Closes a session and waits until it is gone; one that stays is an error (LY-10).
    fn close_one(&self, proven: &Proven<'_>) -> CloseOutcome {
        let Mark { placement, token } = proven.mark();
        let session = match iterm_session(placement) {
            Ok(session) => session,
            Err(verdict) => return CloseOutcome::refused(verdict),
        };
        let asked = self.run_for_session(&CLOSE, session, token, &[]);
        let problem = match asked {
            Ok(_) => None,
            Err(BackendError::NotOurs { verdict: Verdict::Gone, .. }) => {
                return CloseOutcome::Closed;
            }
            Err(BackendError::NotOurs { verdict, .. }) => return CloseOutcome::refused(verdict),
            // Closing the last session of a window also removes the objects that the script uses,
            // so that it may fail after the close. Only the survey shows whether the session is
            // gone.
            Err(error) => Some(error),
        };
        let deadline = Deadline::after(SESSION_TIMEOUT);
        loop {
            match self.verify_one(session, token) {
                Verdict::Gone => return CloseOutcome::Closed,
                Verdict::Owned | Verdict::Foreign { .. } | Verdict::Unknown { .. }
                    if deadline.expired() =>
                {
                    let place = placement.to_string();
                    let waited_ms =
                        u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
                    let still_there = BackendError::StillThere { place, waited_ms };
                    return CloseOutcome::Failed(problem.unwrap_or(still_there));
                }
                Verdict::Owned | Verdict::Foreign { .. } | Verdict::Unknown { .. } => (),
            }
            clock::sleep(PAUSE.min(deadline.remaining()));
        }
    }

    fn verify_one(&self, session: &ItermSession, token: &str) -> Verdict {
        match self.survey() {
            Ok(rows) => survey::verdict(rows.as_deref(), session, token),
            Err(error) => judge(Observation::Unclear(error.to_string())),
        }
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
        self.label_placed(launches, &placed);
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

    fn screen(
        &self,
        placement: &Placement,
        token: &str,
        lines: usize,
    ) -> Result<String, BackendError> {
        let shown = self.run_for_placement(&CONTENTS, Mark { placement, token }, &[])?;
        Ok(text::last_lines(&shown, lines))
    }

    fn how_to_watch(&self, _placement: &Placement) -> String {
        match self.home.layout {
            Layout::Panes | Layout::Split => "its split beside yours, in iTerm2".to_owned(),
            Layout::Windows => "its tab of your window, in iTerm2".to_owned(),
        }
    }

    fn focus(&self, placement: &Placement, token: &str) -> Result<(), BackendError> {
        self.run_for_placement(&FOCUS, Mark { placement, token }, &[]).map(drop)
    }

    /// iTerm2 does not report a terminal's modes to scripts, so keys are sent in their default
    /// encoding.
    fn write_input(
        &self,
        placement: &Placement,
        token: &str,
        input: &Input,
    ) -> Result<(), BackendError> {
        let bytes = input.bytes(Modes::default());
        let text = String::from_utf8_lossy(&bytes);
        self.run_for_placement(&WRITE, Mark { placement, token }, &[&text]).map(drop)
    }

    fn label(&self, labels: &[(Mark<'_>, Label)]) {
        for (mark, label) in labels {
            let _ = self.run_for_placement(&NAME, *mark, &[&session_name(label)]);
        }
    }
}

fn iterm_session(placement: &Placement) -> Result<&ItermSession, Verdict> {
    match placement {
        Placement::Iterm2(session) => Ok(session),
        Placement::Tmux(_) | Placement::Pty(_) | Placement::Exec(_) => {
            Err(judge(Observation::different("it is no session of iTerm2")))
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
