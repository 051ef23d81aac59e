//! Finds the caller's own terminal, and makes the command that shows a popup there.

use std::ffi::OsString;
use std::path::Path;

use super::command::{PaneId, Server, SessionId};
use super::row::{ClientRow, PaneRow, rows};
use super::verb;

/// The place of the calling process, as its environment describes it.
#[derive(Debug, Clone, Copy)]
pub struct PopupCaller<'a> {
    /// The socket of its tmux server.
    pub socket: &'a Path,
    /// Its own pane. The command of a key binding has none.
    pub pane: Option<&'a str>,
    /// The number of its session, which is up to date only for the command of a key binding.
    pub session: &'a str,
    pub directory: &'a Path,
}

/// Returns the arguments of `tmux` that run `argv` in a popup over the caller's terminal: the one
/// that was used last among those that show the caller's session. `argv` has two or more words.
///
/// # Errors
/// Returns the reason why no terminal can show it, for people.
pub fn popup_args(
    program: &Path,
    caller: &PopupCaller<'_>,
    argv: &[OsString],
) -> Result<Vec<OsString>, String> {
    let server = Server { program, socket: Some(caller.socket) };
    let reply = server.ask(&verb::panes().then(verb::clients()));
    let lines = reply.into_lines().map_err(|problem| problem.to_string())?;
    let (target, client) = find_client(&rows(&lines), &rows(&lines), caller.pane, caller.session)?;
    let directory = verb::unexpanded(caller.directory.as_os_str());
    Ok(server.args(&verb::popup(&client, &target, directory, argv.iter().cloned())))
}

/// Returns the target and the client of the popup.
fn find_client(
    panes: &[PaneRow],
    clients: &[ClientRow],
    pane: Option<&str>,
    session: &str,
) -> Result<(String, String), String> {
    let (target, sessions) = match pane {
        Some(pane) => {
            let id = PaneId::parse(pane).ok_or_else(|| format!("{pane:?} is not a tmux pane"))?;
            let here = panes.iter().filter(|row| row.id == id).map(|row| row.session);
            (id.to_string(), here.collect::<Vec<_>>())
        }
        None => {
            let id = SessionId::parse(&format!("${session}"))
                .ok_or_else(|| format!("{session:?} is not a tmux session"))?;
            (id.to_string(), vec![id])
        }
    };
    // A client in control mode has no popups.
    let shows = |row: &&ClientRow| sessions.contains(&row.session) && !row.control;
    let client = clients.iter().filter(shows).max_by_key(|row| row.activity);
    let client = client.ok_or_else(|| format!("no terminal shows {target}"))?;
    Ok((target, client.name.clone()))
}

#[cfg(test)]
mod tests {
    use super::super::arrange::Size;
    use super::super::command::WindowId;
    use super::*;

    fn panes() -> Vec<PaneRow> {
        let row = |pane: &str, session: &str| PaneRow {
            id: PaneId::parse(pane).expect("an id"),
            pid: Some(1),
            dead: false,
            session: SessionId::parse(session).expect("an id"),
            window: WindowId::parse("@1").expect("an id"),
            window_size: Size { width: 80, height: 24 },
            size: Size { width: 80, height: 24 },
            zoomed: false,
            active: true,
            beside: String::new(),
            token: String::new(),
        };
        vec![row("%1", "$1"), row("%2", "$2"), row("%2", "$3"), row("%4", "$4")]
    }

    fn clients() -> Vec<ClientRow> {
        let row = |session: &str, control, activity, name: &str| ClientRow {
            session: SessionId::parse(session).expect("an id"),
            control,
            activity,
            name: name.to_owned(),
        };
        vec![
            row("$1", false, 5, "/dev/pts/1"),
            row("$2", false, 7, "/dev/pts/2"),
            row("$3", false, 9, "/dev/pts/3"),
            row("$3", false, 8, "/dev/pts/4"),
            row("$4", true, 99, "control"),
        ]
    }

    #[test]
    fn popup_is_shown_on_the_last_used_terminal_of_the_callers_session() {
        let found = |pane, session| find_client(&panes(), &clients(), pane, session);
        let names = |target: &str, client: &str| Ok((target.to_owned(), client.to_owned()));
        assert_eq!(found(Some("%1"), "2"), names("%1", "/dev/pts/1"), "the pane decides");
        assert_eq!(found(Some("%2"), "2"), names("%2", "/dev/pts/3"), "in both of its sessions");
        assert_eq!(found(None, "2"), names("$2", "/dev/pts/2"), "a key binding");
        for (pane, session, reason) in [
            (Some("%4"), "4", "no terminal shows %4"),
            (Some("%9"), "1", "no terminal shows %9"),
            (Some("=x"), "1", "\"=x\" is not a tmux pane"),
            (None, "", "\"\" is not a tmux session"),
        ] {
            assert_eq!(found(pane, session), Err(reason.to_owned()), "{pane:?} {session}");
        }
    }

    #[test]
    fn sec_02_directory_of_popup_is_not_expanded() {
        let table = [
            ("/a b", "/a b"),
            ("/a#b", "/a##b"),
            ("/#(touch x)", "/##(touch x)"),
            ("/#{pane_id}##", "/##{pane_id}####"),
            ("/#[x##[#(y)", "/#[x##[##(y)"),
        ];
        for (given, sent) in table {
            assert_eq!(verb::unexpanded(given.as_ref()), OsString::from(sent));
        }
    }

    #[test]
    fn popup_names_server_target_and_client_and_needs_no_shell() {
        let server = Server { program: Path::new("tmux"), socket: Some(Path::new("/s")) };
        let argv = ["/phalanx", "watch", "a;"].map(OsString::from);
        let unit = verb::popup("/dev/pts/1", "%1", "/d;".into(), argv);
        let args: Vec<_> = server.args(&unit).into_iter().map(|w| w.into_string().ok()).collect();
        let args: Vec<String> = args.into_iter().flatten().collect();
        assert_eq!(
            args.join(" "),
            "-u -S /s display-popup -E -c /dev/pts/1 -t %1 -w 90% -h 90% -d /d\\; -- /phalanx watch a\\;"
        );
    }
}
