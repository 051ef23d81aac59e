//! Panes of a tmux server. Refuses to know what runs in them, and to touch what it has not made.

mod arrange;
mod census;
mod command;
mod identity;
mod place;
mod probe;
mod row;
mod survey;
mod verb;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use super::{Backend, BackendError, Launch, Mark, TmuxHome};
use crate::model::id::MemberName;
use crate::model::placement::{BackendKind, Placement, TmuxPane, Verdict};
use crate::model::spec::Terminal;
use crate::sys::clock::{self, Deadline};
use command::{PaneId, Plain, Server};
use verb::Proof;

pub(crate) use census::{Census, Resident, census};
pub(crate) use probe::probe;

/// How long a pane that was told to close may stay.
const CLOSED_WITHIN: Duration = Duration::from_secs(3);
/// The first pause between two looks, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// The tmux backend of one team.
#[derive(Debug, Clone)]
pub(crate) struct Tmux {
    home: TmuxHome,
}

impl Tmux {
    /// For a team whose panes shall go to `home`.
    pub(crate) fn new(home: TmuxHome) -> Tmux {
        Tmux { home }
    }

    /// A placement that is ours, as the parts that commands need.
    fn owned<'p>(&self, placement: &'p Placement, token: &str) -> Result<Owned<'p>, Verdict> {
        let pane = tmux_pane(placement)?;
        match identity::verify(&self.home.program, pane, token) {
            Verdict::Owned => match (PaneId::parse(&pane.pane_id), Plain::parse(token)) {
                (Some(id), Some(token)) => Ok(Owned { pane, id, token }),
                (None, _) | (_, None) => {
                    Err(Verdict::Unknown { reason: "its record is not readable".to_owned() })
                }
            },
            other => Err(other),
        }
    }

    fn server<'p>(&'p self, pane: &'p TmuxPane) -> Server<'p> {
        Server { program: &self.home.program, socket: Some(Path::new(&pane.socket)) }
    }

    fn close_one(&self, placement: &Placement, token: &str) -> Result<Verdict, BackendError> {
        let owned = match self.owned(placement, token) {
            Ok(owned) => owned,
            Err(Verdict::Gone) => return Ok(Verdict::Gone),
            Err(verdict) => return Err(BackendError::NotOurs { place: placement.to_string(), verdict }),
        };
        let unit = verb::close(owned.id, owned.pane.server.pid, &Proof::Token(&owned.token));
        // Whatever it answers, only a look tells whether the pane is gone.
        let answer = self.server(owned.pane).ask(&unit);
        match (self.wait_gone(placement, token), answer.problem) {
            (Ok(()), _) => Ok(Verdict::Owned),
            (Err(_), Some(problem)) => Err(problem),
            (Err(still_there), None) => Err(still_there),
        }
    }

    fn wait_gone(&self, placement: &Placement, token: &str) -> Result<(), BackendError> {
        let deadline = Deadline::after(CLOSED_WITHIN);
        let mut pause = FIRST_PAUSE;
        loop {
            match self.verify(placement, token) {
                Verdict::Gone | Verdict::Foreign { .. } => return Ok(()),
                // With its last pane the server ends; until it has, it cannot be asked (SD-13).
                Verdict::Owned | Verdict::Unknown { .. } if deadline.expired() => {
                    let waited_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(BackendError::StillThere { place: placement.to_string(), waited_ms });
                }
                Verdict::Owned | Verdict::Unknown { .. } => (),
            }
            clock::sleep(pause.min(deadline.remaining()));
            pause *= 2;
        }
    }
}

struct Owned<'p> {
    pane: &'p TmuxPane,
    id: PaneId,
    token: Plain,
}

impl Backend for Tmux {
    fn kind(&self) -> BackendKind {
        BackendKind::Tmux
    }

    fn terminal(&self, _member: &MemberName) -> Terminal {
        Terminal::Pane
    }

    fn place(&self, launches: &[Launch]) -> Vec<Result<Placement, BackendError>> {
        place::place(&self.home, launches)
    }

    fn verify_all(&self, marks: &[Mark<'_>]) -> Vec<Verdict> {
        let verify = |mark: &Mark<'_>| match tmux_pane(mark.placement) {
            Ok(pane) => identity::verify(&self.home.program, pane, mark.token),
            Err(verdict) => verdict,
        };
        marks.iter().map(verify).collect()
    }

    fn close_all(&self, marks: &[Mark<'_>]) -> Vec<Result<Verdict, BackendError>> {
        marks.iter().map(|mark| self.close_one(mark.placement, mark.token)).collect()
    }

    fn screen(&self, placement: &Placement, token: &str, lines: usize) -> Result<String, BackendError> {
        let not_ours = |verdict| BackendError::NotOurs { place: placement.to_string(), verdict };
        let owned = self.owned(placement, token).map_err(not_ours)?;
        let answer = self.server(owned.pane).ask(&verb::capture(owned.id, lines));
        match answer.problem {
            Some(problem) => Err(problem),
            None => Ok(last_lines(&answer.lines, lines)),
        }
    }

    fn how_to_watch(&self, placement: &Placement) -> String {
        match tmux_pane(placement) {
            Ok(pane) => watch(&self.home, pane),
            Err(_) => "it has no tmux pane".to_owned(),
        }
    }
}

fn tmux_pane(placement: &Placement) -> Result<&TmuxPane, Verdict> {
    match placement {
        Placement::Tmux(pane) => Ok(pane),
        Placement::Iterm2(_) | Placement::Pty(_) | Placement::Exec(_) => {
            Err(Verdict::Foreign { difference: "it is not a tmux pane".to_owned() })
        }
    }
}

/// The last `count` lines, without the empty rows below the text.
fn last_lines(lines: &[String], count: usize) -> String {
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |last| last + 1);
    lines[end.saturating_sub(count)..end].join("\n")
}

/// In the caller's own session its window has a name in the status line; elsewhere a client has to be attached.
fn watch(home: &TmuxHome, pane: &TmuxPane) -> String {
    let own = survey::team_name(&home.team);
    let detached = pane.session_name.strip_prefix(own.as_str()).is_some_and(|rest| {
        rest.is_empty()
            || rest.strip_prefix('-').is_some_and(|nth| nth.bytes().all(|byte| byte.is_ascii_digit()))
    });
    if home.inside.is_some() && !detached {
        let TmuxPane { window_id, window_name, .. } = pane;
        return format!("window `{window_name}` of this tmux session (`tmux select-window -t {window_id}`)");
    }
    let target = if detached { format!("={}", pane.session_name) } else { pane.session_id.clone() };
    let mut words = vec!["tmux"];
    if home.socket.is_some() {
        words.extend(["-S", &pane.socket]);
    }
    words.extend(["attach", "-t", &target]);
    // NUL cannot stand in what tmux printed.
    shlex::try_join(words).unwrap_or_else(|_| format!("tmux session {target}"))
}
