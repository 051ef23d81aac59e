//! `attach`: shows a member's screen on the caller's terminal, by a tmux command line, a launcher's
//! socket, or phalanx on the member's host. The command line of tmux holds ids only, and only those
//! of a placement that is proven ours.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::authority::names::started_record;
use crate::members::backends;
use crate::{Context, Kind, OpsError, hosts};
use backend::Mark;
use model::id::{HostName, MemberName};
use model::members::placement::{Placement, TmuxPane, Verdict};
use model::members::record::MemberRecord;
use model::team::settings::BackendChoice;
use store::TeamStore;

pub use backend::pty::{LauncherMessage, Viewer};

/// The way to a member's screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachTarget {
    /// tmux and its arguments, to run on the caller's terminal.
    Program { program: PathBuf, args: Vec<OsString> },
    /// ssh to the member's host and its arguments, to run on the caller's terminal.
    OnHost { name: MemberName, host: HostName, program: PathBuf, args: Vec<OsString> },
    /// A PTY that the member's launcher holds; a [`Viewer`] connects to its socket.
    Own { name: MemberName, socket: PathBuf },
}

/// Returns the way to the screen of `name`. Without a name, it is the first member in tmux on this
/// host, or if there is none the first on a PTY of phalanx, or else the first on another host.
/// Inside the same tmux server the command switches the client; elsewhere it attaches.
///
/// # Errors
/// A refusal if no member has a terminal that is proven ours;
/// [`OpsError::NotAttachable`] if the named member has none.
pub fn attach(
    ctx: &Context,
    team: &TeamStore,
    name: Option<&MemberName>,
) -> Result<AttachTarget, OpsError> {
    if let Some(name) = name {
        return target_of(ctx, team, &started_record(team, name)?);
    }
    let (mut members, mut own) = (Vec::new(), None);
    let running = team.member_records()?.into_iter().filter(|record| !record.state.is_over());
    let (elsewhere, here): (Vec<_>, Vec<_>) = running.partition(|record| record.is_elsewhere);
    for record in here.into_iter().chain(elsewhere) {
        if let Some(own) = own.take_if(|_| record.is_elsewhere) {
            return Ok(own);
        }
        match target_of(ctx, team, &record) {
            Ok(way @ (AttachTarget::Program { .. } | AttachTarget::OnHost { .. })) => {
                return Ok(way);
            }
            Ok(way @ AttachTarget::Own { .. }) => own = own.or(Some(way)),
            Err(OpsError::NotAttachable { .. }) => (),
            Err(e) => return Err(e),
        }
        members.push(record.name);
    }
    own.ok_or_else(|| {
        let team = team.name();
        let follow = |name: &MemberName| {
            format!("follow its output with `phalanx logs {name} -f -t {team}`")
        };
        OpsError::Described {
            kind: Kind::Refused,
            problem: format!("no member of team `{team}` has a terminal to show"),
            hint: members.first().map(follow),
        }
    })
}

fn target_of(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
) -> Result<AttachTarget, OpsError> {
    let not = |reason: String| OpsError::NotAttachable {
        name: record.name.clone(),
        team: team.name().clone(),
        reason,
    };
    let Some(placement) = &record.placement else {
        return Err(not("it was never placed".to_owned()));
    };
    if let Some(host) = record.other_host() {
        let verb = ["attach", record.name.as_str(), "-t", team.name().as_str()];
        let mut words = hosts::interactive(ctx, team, host, &verb)?.into_iter();
        let program = words.next().map(PathBuf::from).unwrap_or_default();
        let (name, host, args) = (record.name.clone(), host.clone(), words.collect());
        return Ok(AttachTarget::OnHost { name, host, program, args });
    }
    let mark = Mark::new(placement, record.mark());
    let verdict = backends::open_for(ctx, team, record, placement)?.verify(mark);
    if verdict != Verdict::Owned {
        return Err(not(match &record.exit {
            Some(exit) => format!("it has ended: {}", exit.describe()),
            None => format!("{placement} is {verdict}"),
        }));
    }
    let caller = ctx.caller.var("PHALANX_INCARNATION").and_then(OsStr::to_str);
    match placement {
        // The viewer's output would feed back into the terminal that it shows.
        Placement::Pty(_) if caller == Some(record.incarnation.as_str()) => {
            Err(not("this is its own terminal".to_owned()))
        }
        Placement::Tmux(pane) => {
            let program = backends::tmux_program(ctx).map_err(|problem| {
                OpsError::BackendUnavailable { backend: BackendChoice::Tmux, problem }
            })?;
            let inside = backends::caller_pane(ctx)
                .is_some_and(|here| here.socket == Path::new(&pane.socket));
            Ok(AttachTarget::Program { program, args: tmux_args(pane, inside) })
        }
        Placement::Pty(_) => match record.socket() {
            Some(socket) => {
                Ok(AttachTarget::Own { name: record.name.clone(), socket: PathBuf::from(socket) })
            }
            None => Err(not("its launcher has no socket".to_owned())),
        },
        Placement::Iterm2(_) => {
            Err(not(format!("{placement} is not a terminal that can be attached here")))
        }
    }
}

fn tmux_args(pane: &TmuxPane, inside: bool) -> Vec<OsString> {
    let (session, window) = (pane.session_id.as_str(), pane.window_id.as_str());
    let words = if inside {
        ["select-window", "-t", window, ";", "switch-client", "-t", session]
    } else {
        ["attach-session", "-t", session, ";", "select-window", "-t", window]
    };
    ["-u", "-S", pane.socket.as_str()].into_iter().chain(words).map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::members::placement::ProcessId;

    #[test]
    fn command_contains_only_the_socket_and_ids() {
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
        let line =
            |inside| tmux_args(&pane, inside).join(" ".as_ref()).into_string().expect("text");
        assert_eq!(line(false), "-u -S /tmp/s attach-session -t $3 ; select-window -t @4");
        assert_eq!(line(true), "-u -S /tmp/s select-window -t @4 ; switch-client -t $3");
    }
}
