//! Lists the sessions of iTerm2, acts on a session of ours, and closes it.

use std::path::PathBuf;
use std::time::Duration;

use super::super::proof::{Observation, Proven, judge};
use super::super::{BackendError, CloseOutcome, Mark};
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
    pub(super) fn run_for_placement(
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
    pub(super) fn close_one(&self, proven: &Proven<'_>) -> CloseOutcome {
        let Mark { placement, token } = proven.mark();
        let session = match iterm_session(placement) {
            Ok(session) => session,
            Err(verdict) => return CloseOutcome::refused(verdict),
        };
        let answer = self.run_for_session(&CLOSE, session, token, &[]);
        let problem = match answer {
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
            clock::sleep(POLL_INTERVAL.min(deadline.remaining()));
        }
    }

    fn verify_one(&self, session: &ItermSession, token: &str) -> Verdict {
        match self.survey() {
            Ok(rows) => survey::verdict(rows.as_deref(), session, token),
            Err(error) => judge(Observation::Unclear(error.to_string())),
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
