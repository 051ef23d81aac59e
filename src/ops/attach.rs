//! `attach`: the command line that brings a team's window to the caller's terminal. Only ids stand in it, and only
//! those of a placement that is proven ours.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::backends;
use super::context::Context;
use super::error::OpsError;
use crate::model::placement::{Placement, TmuxPane, Verdict};
use crate::model::settings::BackendChoice;
use crate::store::TeamStore;

/// A program and its arguments, to be run on the caller's terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attach {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
}

/// How to get to the team's window: from inside the same tmux server by switching, else by attaching.
///
/// # Errors
/// [`OpsError::NothingToAttach`] if no member has a tmux pane that is there and ours.
pub(crate) fn attach(ctx: &Context, team: &TeamStore) -> Result<Attach, OpsError> {
    let mut members = Vec::new();
    for record in team.member_records()? {
        let Some(Placement::Tmux(pane)) = &record.placement else {
            members.extend(Some(record.name).filter(|_| !record.state.is_over()));
            continue;
        };
        let placement = Placement::Tmux(pane.clone());
        let backend = backends::of_placement(ctx, team, &placement)?;
        if backend.verify(&placement, &record.token) == Verdict::Owned {
            let program = backends::tmux_program(ctx)
                .map_err(|problem| OpsError::BackendUnavailable { backend: BackendChoice::Tmux, problem })?;
            let inside = backends::inside(ctx).is_some_and(|here| here.socket == Path::new(&pane.socket));
            return Ok(Attach { program, args: args(pane, inside) });
        }
    }
    Err(OpsError::NothingToAttach { team: team.name().clone(), members })
}

fn args(pane: &TmuxPane, inside: bool) -> Vec<OsString> {
    let (session, window) = (pane.session_id.as_str(), pane.window_id.as_str());
    let words = match inside {
        true => ["select-window", "-t", window, ";", "switch-client", "-t", session],
        false => ["attach-session", "-t", session, ";", "select-window", "-t", window],
    };
    ["-u", "-S", pane.socket.as_str()].into_iter().chain(words).map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::placement::ProcessId;

    #[test]
    fn only_the_socket_and_ids_stand_in_the_command() {
        let process = ProcessId { pid: 1, start: 1 };
        let pane = TmuxPane {
            socket: "/tmp/s".to_owned(),
            server: process,
            session_id: "$3".to_owned(),
            session_name: "-x;kill-server".to_owned(),
            window_id: "@4".to_owned(),
            window_name: "#{bad}".to_owned(),
            pane_id: "%5".to_owned(),
            pane: process,
        };
        let line = |inside| args(&pane, inside).join(" ".as_ref()).into_string().expect("text");
        assert_eq!(line(false), "-u -S /tmp/s attach-session -t $3 ; select-window -t @4");
        assert_eq!(line(true), "-u -S /tmp/s select-window -t @4 ; switch-client -t $3");
    }
}
