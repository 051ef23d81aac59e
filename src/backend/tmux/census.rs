//! Lists the panes of one server that carry a token, to find those left behind.

use std::collections::BTreeMap;
use std::path::Path;

use super::command::Server;
use super::row::{PaneRow, rows};
use super::verb;
use crate::BackendError;
use model::members::placement::{ProcessId, TmuxPane};
use sys::proc::Process;

/// Format of the row about the server. Formats can refer to server options by name.
const FORMAT: &str = "phx-census #{pid} #{version} #{?exit-empty,on,off}";
/// Read with `show-options -g`, because a format would yield the value of one session, and phalanx
/// turns the option off in its own sessions.
const UNATTACHED: &str = "destroy-unattached";

/// The state of one server.
#[derive(Debug, Clone)]
pub struct Census {
    pub server: ProcessId,
    /// As the server reports it, such as `3.3a`.
    pub version: String,
    /// The server exits with its last session.
    pub exit_empty: bool,
    /// Sessions are destroyed when no client is attached.
    pub destroy_unattached: bool,
    /// Panes that carry a token, each once.
    pub residents: Vec<Resident>,
}

/// A pane that carries a token. Any process can set one, so it proves nothing.
#[derive(Debug, Clone)]
pub struct Resident {
    /// Without window and names, because a pane keeps its identity wherever it is moved. The start
    /// time of its process is 0 if that no longer runs, and with tmux 3.8 its pid, too.
    pub pane: TmuxPane,
    pub token: String,
}

/// Lists the panes of the server at `socket`; `None` if it has no sessions or does not exist.
///
/// # Errors
/// [`BackendError::Exec`] if tmux cannot be run or times out.
pub fn census(program: &Path, socket: &Path) -> Result<Option<Census>, BackendError> {
    let about = verb::print(FORMAT).then(verb::global_option(UNATTACHED));
    let answer = Server { program, socket: Some(socket) }.ask(&about.then(verb::panes()));
    let Some(found) = answer.lines.iter().find_map(|line| head(line, socket, &answer.lines)) else {
        return match answer.problem {
            Some(BackendError::Exec(error)) => Err(error.into()),
            // tmux fails without a server or sessions, and while the server exits.
            Some(_) | None => Ok(None),
        };
    };
    Ok(Some(found))
}

/// Checks whether the server at `socket` (`None`: the default one) has a pane of this id with a
/// running program. A server that does not exist has no panes.
///
/// # Errors
/// [`BackendError::Exec`] if tmux cannot be run or times out.
pub fn has_pane(program: &Path, socket: Option<&Path>, id: &str) -> Result<bool, BackendError> {
    let answer = Server { program, socket }.ask(&verb::panes());
    if let Some(BackendError::Exec(error)) = answer.problem {
        return Err(error.into());
    }
    Ok(rows::<PaneRow>(&answer.lines).iter().any(|row| row.id.to_string() == id && !row.dead))
}

fn head(line: &str, socket: &Path, lines: &[String]) -> Option<Census> {
    let mut field = line.strip_prefix("phx-census ")?.split(' ');
    let mut next = || field.next();
    let pid: i32 = next()?.parse().ok()?;
    let server = ProcessId { pid, start: Process::of(pid)?.start };
    let (version, exit_empty) = (next()?.to_owned(), next()? == "on");
    let option = lines.iter().find_map(|line| line.strip_prefix(UNATTACHED));
    let destroy_unattached = option.is_some_and(|value| !matches!(value.trim(), "off" | "0" | ""));
    // Keyed by id, because a pane is listed once for each session that shows it.
    let mut residents = BTreeMap::new();
    for row in rows::<PaneRow>(lines).into_iter().filter(|row| !row.token.is_empty()) {
        let pid = row.pid.unwrap_or_default();
        let start = Process::of(pid).map_or(0, |process| process.start);
        let pane = row.pane(socket, server, ProcessId { pid, start });
        residents.insert(row.id, Resident { pane, token: row.token });
    }
    let residents = residents.into_values().collect();
    Some(Census { server, version, exit_empty, destroy_unattached, residents })
}
