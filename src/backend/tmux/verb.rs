//! The tmux commands that phalanx uses, all of them: each typed, each with an explicit target. Refuses to know when
//! they are used. What the user's configuration says about new panes is answered here, and only for our own.

use std::ffi::OsString;

use tmux_interface::{
    CapturePane, DisplayMessage, IfShell, ListPanes, ListSessions, ListWindows, NewSession, NewWindow,
    SelectLayout, SetOption, SplitWindow, TmuxCommand,
};

use super::arrange::Size;
use super::command::{PaneId, Plain, SessionId, Unit, WindowId};
use super::row;

/// The pane option that proves a pane ours.
const TOKEN: &str = "@phalanx_token";
/// The pane option with the member's name, for the border.
const NAME: &str = "@phalanx_name";
/// The window option that tells whose window it is.
const TEAM: &str = "@phalanx_team";
/// The session option that tells whose session it is. A name of its own: formats look for an option in the active
/// pane and its window before the session.
const SESSION: &str = "@phalanx_session";
/// Windows of ours, against what the user's configuration may say (PT-06): their names stay, nobody's keys go to all
/// of them, and a pane goes when its launcher ends.
const WINDOW_OPTIONS: [(&str, &str); 4] = [
    ("automatic-rename", "off"),
    ("allow-rename", "off"),
    ("synchronize-panes", "off"),
    ("remain-on-exit", "off"),
];
/// An option in a format is not expanded again (SEC-02).
const BORDER: &str = " #{@phalanx_name} ";
/// Never a user's directory: `-c` is format-expanded (SEC-02). The launcher changes directory itself.
const DIRECTORY: &str = "/";

/// Where a new window goes.
#[derive(Debug, Clone)]
pub(super) enum Inside {
    Session(SessionId),
    /// The session that the same call has made under this name: its id is not known yet. `=` matches no prefix.
    JustMade(Plain),
}

impl Inside {
    fn target(&self) -> String {
        match self {
            Inside::Session(id) => format!("{id}:"),
            Inside::JustMade(name) => format!("={}:", name.as_str()),
        }
    }
}

fn unit(command: &TmuxCommand<'_>) -> Unit {
    Unit::new(words(command))
}

fn words(command: &TmuxCommand<'_>) -> Vec<OsString> {
    command.to_vec().iter().map(|word| OsString::from(word.as_ref())).collect()
}

/// A command that starts `argv` in a pane of its own and prints a row about it. Two words or more are executed as
/// they are, without a shell (SP-06).
fn maker(command: &TmuxCommand<'_>, argv: &[OsString]) -> Unit {
    let mut all = words(command);
    all.push(OsString::from("--"));
    all.extend(argv.iter().cloned());
    Unit::new(all)
}

/// A detached session with one window and one pane. It survives being looked at by nobody, whatever the user's
/// configuration says: that has to be settled before our client goes.
pub(super) fn new_session(name: &Plain, window: &Plain, tag: &Plain, size: Size, argv: &[OsString]) -> Unit {
    let command = NewSession::new()
        .detached()
        .print()
        .start_directory(DIRECTORY)
        .format(row::MADE)
        .window_name(window.as_str())
        .session_name(name.as_str())
        .width(size.width)
        .height(size.height)
        .build();
    let made = Inside::JustMade(name.clone());
    let option = |option, value| {
        unit(&SetOption::new().target_pane(made.target()).option(option).value(value).build())
    };
    maker(&command, argv).then(option("destroy-unattached", "off")).then(option(SESSION, tag.as_str()))
}

/// A window that takes no focus (LY-05), at the next free index.
pub(super) fn new_window(inside: &Inside, window: &Plain, argv: &[OsString]) -> Unit {
    let command = NewWindow::new()
        .detached()
        .print()
        .start_directory(DIRECTORY)
        .format(row::MADE)
        .window_name(window.as_str())
        .target_window(inside.target())
        .build();
    maker(&command, argv)
}

/// One pane more in a window of ours; the arrangement afterwards makes room for the next. All happens in one turn of
/// the server, so that programs in the window see one change of size, not many (LY-06).
pub(super) fn split(window: WindowId, argv: &[OsString]) -> Unit {
    let command = SplitWindow::new()
        .detached()
        .horizontal()
        .print()
        .start_directory(DIRECTORY)
        .format(row::MADE)
        .target_pane(window.to_string())
        .build();
    maker(&command, argv).then(tile(window))
}

/// Gives the panes of a window of ours equal shares: a person may have left none to the one that is split.
pub(super) fn tile(window: WindowId) -> Unit {
    unit(&SelectLayout::new().target_pane(window.to_string()).layout_name("tiled").build())
}

/// Marks a window as the team's and settles what the user's configuration may have said. A window that has gone in
/// the meantime is passed over (`-q`).
pub(super) fn own_window(window: WindowId, tag: &Plain, border: bool) -> Unit {
    let option = |option: &'static str, value: &str| {
        let set = SetOption::new().quiet().window().target_pane(window.to_string());
        unit(&set.option(option).value(value.to_owned()).build())
    };
    let mut all = option(TEAM, tag.as_str());
    for (name, value) in WINDOW_OPTIONS {
        all = all.then(option(name, value));
    }
    if border {
        all = all.then(option("pane-border-status", "top")).then(option("pane-border-format", BORDER));
    }
    all
}

/// Marks a pane. One that has gone in the meantime is passed over (`-q`).
pub(super) fn own_pane(pane: PaneId, token: &Plain, name: &Plain) -> Unit {
    let option = |option: &'static str, value: &str| {
        let set = SetOption::new().quiet().pane().target_pane(pane.to_string());
        unit(&set.option(option).value(value.to_owned()).build())
    };
    option(TOKEN, token.as_str()).then(option(NAME, name.as_str()))
}

/// What must be true of a pane, in the eyes of the server that is told to close it.
#[derive(Debug, Clone)]
pub(super) enum Proof<'a> {
    Token(&'a Plain),
    /// For a pane that has no token yet.
    Process(i32),
}

/// Closes a pane if it is the right one of the right server. The server checks and closes in one step: no other
/// server can have taken the socket, and no other pane the id, in between (SD-06).
pub(super) fn close(pane: PaneId, server: i32, proof: &Proof<'_>) -> Unit {
    let proven = match proof {
        Proof::Token(token) => format!("#{{==:#{{{TOKEN}}},{}}}", token.as_str()),
        Proof::Process(pid) => format!("#{{==:#{{pane_pid}},{pid}}}"),
    };
    let condition = format!("#{{&&:#{{==:#{{pid}},{server}}},{proven}}}");
    let close = format!("kill-pane -t {pane}");
    let command =
        IfShell::new().not_execute().target_pane(pane.to_string()).shell_command(condition).command(close);
    unit(&command.build())
}

/// The text of a pane: what is seen and `lines` lines above it.
pub(super) fn capture(pane: PaneId, lines: usize) -> Unit {
    let command = CapturePane::new().stdout().start_line(format!("-{lines}")).target_pane(pane.to_string());
    unit(&command.build())
}

/// A row about the server.
pub(super) fn server() -> Unit {
    unit(&DisplayMessage::new().print().message(row::SERVER).build())
}

/// A row for each session.
pub(super) fn sessions() -> Unit {
    unit(&ListSessions::new().format(row::SESSION).build())
}

/// A row for each window of each session.
pub(super) fn windows() -> Unit {
    unit(&ListWindows::new().all().format(row::WINDOW).build())
}

/// A row for the pane, for each session that it can be seen in. `-t` would not say whether it is there (crates 1.5).
pub(super) fn pane(id: PaneId) -> Unit {
    let filter = format!("#{{==:#{{pane_id}},{id}}}");
    unit(&ListPanes::new().all().format(row::PANE).filter(filter).build())
}

/// A row for each pane of each session.
pub(super) fn panes() -> Unit {
    unit(&ListPanes::new().all().format(row::PANE).build())
}
