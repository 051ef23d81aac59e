//! `popup`: shows the dashboard in a popup of tmux, over the caller's terminal.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::members::backends;
use crate::{Context, OpsError};
use backend::tmux::{self, PopupCaller};
use store::TeamStore;

/// A program to run in place of the caller, until the popup is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PopupCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

/// Returns the command that shows the dashboard of `team`; without one it lists the teams.
///
/// # Errors
/// A refusal outside tmux, with a tmux that has no popups, and if no terminal shows the
/// caller's session.
pub fn popup(ctx: &Context, team: Option<&TeamStore>) -> Result<PopupCommand, OpsError> {
    let team = team.map(TeamStore::name);
    let refused = |why: String| {
        let team = team.map(|team| format!(" {team}")).unwrap_or_default();
        OpsError::refused(
            format!("the dashboard cannot be shown in a popup: {why}"),
            format!("show it on the whole terminal: `phalanx watch{team}`"),
        )
    };
    let server = ctx.caller.var("TMUX").and_then(|tmux| tmux.to_str());
    let Some((socket, session)) = server.and_then(socket_and_session) else {
        return Err(refused("this is not a pane of tmux".to_owned()));
    };
    let program = backends::tmux_program(ctx).map_err(refused)?;
    tmux::probe(&program).map_err(refused)?;
    let mut argv = vec![
        ctx.caller.exe.clone().into_os_string(),
        OsString::from("--config-dir"),
        ctx.store.root().as_os_str().to_owned(),
        OsString::from("watch"),
    ];
    argv.extend(team.map(|team| OsString::from(team.as_str())));
    let pane = ctx.caller.var("TMUX_PANE").and_then(|pane| pane.to_str());
    let directory = &ctx.caller.cwd;
    let caller = PopupCaller { socket: Path::new(socket), pane, session, directory };
    let args = tmux::popup_args(&program, &caller, &argv).map_err(refused)?;
    Ok(PopupCommand { program, args })
}

/// Splits the value of `$TMUX`: `socket,pid,session`. The socket's path may contain commas.
fn socket_and_session(tmux: &str) -> Option<(&str, &str)> {
    let mut parts = tmux.rsplitn(3, ',');
    let session = parts.next()?;
    parts.nth(1).map(|socket| (socket, session))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_session_are_read_from_the_variable() {
        assert_eq!(socket_and_session("/tmp/a,b,77,0"), Some(("/tmp/a,b", "0")));
        assert_eq!(socket_and_session("/tmp/s"), None);
        assert_eq!(socket_and_session(""), None);
    }
}
