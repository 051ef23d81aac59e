//! Lists the sessions of iTerm2, acts on a session of ours, and closes it.

use std::path::PathBuf;
use std::time::Duration;

use super::super::proof::{Observation, Proven, judge};
use super::super::{Backend, BackendError, CloseOutcome, Mark};
use super::osa::{self, Osa};
use super::script::{self, CLOSE, DONE, NOT_FOUND, NOT_OURS, NOT_RUNNING, Script};
use super::survey::{self, ItermRow};
use model::members::placement::{ItermSession, Layout, Placement, Verdict};
use sys::clock::{self, Deadline};

/// Time that a session may take to get its terminal, or to disappear after it was closed.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(3);
/// Pause between two checks.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The location of a team's sessions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItermHome {
    /// The path of `osascript`, from the caller's `PATH`.
    pub program: PathBuf,
    /// The caller's terminal device, if it has one.
    pub tty: Option<String>,
    /// `$ITERM_SESSION_ID` (`w0t1p2:UUID`); may be inherited and belong to another session.
    pub hint: Option<String>,
    /// Marks sessions as this team's (`user.phalanx_team`).
    pub tag: String,
    pub layout: Layout,
}

#[derive(Debug, Clone)]
pub struct Iterm2 {
    pub(super) home: ItermHome,
    pub(super) osa: Osa,
}

impl Iterm2 {
    pub fn new(home: ItermHome) -> Iterm2 {
        let osa = Osa::new(home.program.clone());
        Iterm2 { home, osa }
    }

    pub(super) fn survey(&self) -> Result<Option<Vec<ItermRow>>, BackendError> {
        list_sessions(&self.osa)
    }

    /// Runs a script for a placement, which must be an iTerm2 session. The script itself compares
    /// id, terminal and token before it acts. Returns the lines of its answer after the first,
    /// which is `done`.
    pub(super) fn run_for_placement(
        &self,
        script: &Script,
        mark: Mark<'_>,
        more: &[&str],
    ) -> Result<String, BackendError> {
        let session = iterm_session(mark.placement).map_err(|verdict| mark.not_ours(verdict))?;
        let proof = [session.session_id.as_str(), session.tty.as_str(), mark.token];
        let answer = self.osa.run(script, &[&proof, more].concat())?;
        let (first, rest) = answer.split_once('\n').unwrap_or((&answer, ""));
        let observation = match first {
            DONE => return Ok(rest.to_owned()),
            NOT_RUNNING | NOT_FOUND => Observation::Absent,
            NOT_OURS => Observation::different("terminal or token"),
            _ => return Err(osa::unreadable(script, &answer)),
        };
        Err(mark.not_ours(judge(observation)))
    }

    /// Closes a session and waits until it is gone; one that stays is an error (LY-10).
    pub(super) fn close_one(&self, proven: &Proven<'_>) -> CloseOutcome {
        let mark = proven.mark();
        let problem = match self.run_for_placement(&CLOSE, mark, &[]) {
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
            if self.verify(mark) == Verdict::Gone {
                return CloseOutcome::Closed;
            }
            if deadline.expired() {
                let place = mark.placement.to_string();
                let waited_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
                let still_there = BackendError::StillThere { place, waited_ms };
                return CloseOutcome::Failed(problem.unwrap_or(still_there));
            }
            clock::sleep(POLL_INTERVAL.min(deadline.remaining()));
        }
    }
}

pub(super) fn list_sessions(osa: &Osa) -> Result<Option<Vec<ItermRow>>, BackendError> {
    survey::read(&osa.run(&script::SURVEY, &[])?)
}

pub(super) fn iterm_session(placement: &Placement) -> Result<&ItermSession, Verdict> {
    match placement {
        Placement::Iterm2(session) => Ok(session),
        Placement::Tmux(_) | Placement::Pty(_) => {
            Err(judge(Observation::different("it is no session of iTerm2")))
        }
    }
}
