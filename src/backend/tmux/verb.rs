//! The tmux commands that phalanx uses, all of them: each typed, each with an explicit target. Refuses to know when
//! they are used. What the user's configuration says about new panes is answered here, and only for our own.

use std::ffi::OsString;

use tmux_interface::{
    BreakPane, CapturePane, CopyMode, DeleteBuffer, DisplayMessage, IfShell, JoinPane, KillPane,
    ListClients, ListPanes, ListSessions, ListWindows, LoadBuffer, NewSession, NewWindow, PaneSize,
    PasteBuffer, RenameWindow, ResizePane, SelectLayout, SelectPane, SelectWindow, SendKeys,
    SetOption, SplitWindow, SwitchClient, TmuxCommand,
};

use super::arrange::Size;
use super::command::{PaneId, Plain, SessionId, Unit, WindowId};
use super::row;
use crate::model::input::Key;

/// The pane option that proves a pane ours.
const TOKEN: &str = "@phalanx_token";
/// Pane options for the border: what a person is to know of the member.
const NAME: &str = "@phalanx_name";
const ROLE: &str = "@phalanx_role";
const STATE: &str = "@phalanx_state";
const COLOR: &str = "@phalanx_color";
/// The pane option with the team's tag, of panes beside the lead. Not [`TEAM`]: a window without an option is asked
/// for its active pane's, and the lead's window would pass for the team's.
const BESIDE: &str = "@phalanx_beside";
/// The window option of a window that holds a hidden pane, with the team's tag.
const HIDDEN: &str = "@phalanx_hidden";
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
/// The same for panes of ours in a window that is not: what a pane can have of its own.
const PANE_OPTIONS: [(&str, &str); 3] =
    [("allow-rename", "off"), ("synchronize-panes", "off"), ("remain-on-exit", "off")];
/// An option in a format is not expanded again (SEC-02).
const BORDER: &str = "#[fg=#{?@phalanx_color,#{@phalanx_color},default}] #{@phalanx_name}\
                      #{?@phalanx_role, (#{@phalanx_role}),}#{?@phalanx_state, #{@phalanx_state},} #[default]";
/// How long a message stays. The panes of that terminal stand still meanwhile (seen in 3.3a): not for long, therefore.
const SHOWN_MS: usize = 2_000;
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

/// Where a pane is cut from another one, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    Right { columns: usize },
    Below { rows: usize },
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
pub(super) fn new_session(
    name: &Plain,
    window: &Plain,
    tag: &Plain,
    size: Size,
    argv: &[OsString],
) -> Unit {
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
    maker(&command, argv)
        .then(option("destroy-unattached", "off"))
        .then(option(SESSION, tag.as_str()))
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

/// A pane more, cut from the lower or right edge of another one; no third pane changes its size (LY-04).
pub(super) fn cut(from: PaneId, edge: Edge, argv: &[OsString]) -> Unit {
    let split = SplitWindow::new().detached().print().start_directory(DIRECTORY).format(row::MADE);
    let split = split.target_pane(from.to_string());
    let (split, size) = match edge {
        Edge::Right { columns } => (split.horizontal(), PaneSize::Size(columns)),
        Edge::Below { rows } => (split.vertical(), PaneSize::Size(rows)),
    };
    maker(&split.size(&size).build(), argv)
}

/// Gives the panes of a window of ours equal shares: a person may have left none to the one that is split.
pub(super) fn tile(window: WindowId) -> Unit {
    unit(&SelectLayout::new().target_pane(window.to_string()).layout_name("tiled").build())
}

/// Sets an option of a pane. One that has gone in the meantime is passed over (`-q`).
fn pane_option(pane: PaneId, option: &'static str, value: &str) -> Unit {
    let set = SetOption::new().quiet().pane().target_pane(pane.to_string());
    unit(&set.option(option).value(value.to_owned()).build())
}

/// Sets an option of a window, in the same way.
fn window_option(window: WindowId, option: &'static str, value: &str) -> Unit {
    let set = SetOption::new().quiet().window().target_pane(window.to_string());
    unit(&set.option(option).value(value.to_owned()).build())
}

fn all(units: impl IntoIterator<Item = Unit>, first: Unit) -> Unit {
    units.into_iter().fold(first, Unit::then)
}

/// Marks a window as the team's and settles what the user's configuration may have said.
pub(super) fn own_window(window: WindowId, tag: &Plain, border: bool) -> Unit {
    let settled = WINDOW_OPTIONS.map(|(name, value)| window_option(window, name, value));
    let marked = all(settled, window_option(window, TEAM, tag.as_str()));
    if !border {
        return marked;
    }
    let status = window_option(window, "pane-border-status", "top");
    marked.then(status).then(window_option(window, "pane-border-format", BORDER))
}

/// Marks a pane.
pub(super) fn own_pane(pane: PaneId, token: &Plain) -> Unit {
    pane_option(pane, TOKEN, token.as_str())
}

/// Marks a pane that stands beside the lead, in a window that is not ours: only its own options are set. Its border
/// shows the label if the window has borders with text (LY-07).
pub(super) fn own_beside(pane: PaneId, tag: &Plain) -> Unit {
    let settled = PANE_OPTIONS.map(|(name, value)| pane_option(pane, name, value));
    let marked = pane_option(pane, BESIDE, tag.as_str()).then(pane_option(
        pane,
        "pane-border-format",
        BORDER,
    ));
    all(settled, marked)
}

/// Sets what the border of a pane says.
pub(super) fn label(pane: PaneId, name: &Plain, role: &str, state: &str, color: &str) -> Unit {
    let rest = [(ROLE, role), (STATE, state), (COLOR, color)]
        .map(|(name, value)| pane_option(pane, name, value));
    all(rest, pane_option(pane, NAME, name.as_str()))
}

/// Puts a pane into a window of its own, which is marked as hidden: nobody looks at it unless they go there. One that
/// was alone keeps its window, and that keeps the team's mark.
pub(super) fn hide(pane: PaneId, session: SessionId, window: &Plain, tag: &Plain) -> Unit {
    let away =
        BreakPane::new().detached().src_pane(pane.to_string()).dst_window(format!("{session}:"));
    let away = unit(&away.window_name(window.as_str()).build());
    // A pane is a window's target too: the one that it is in now.
    let option = |option, value| {
        let set = SetOption::new().quiet().window().target_pane(pane.to_string());
        unit(&set.option(option).value(value).build())
    };
    let settled = WINDOW_OPTIONS.map(|(name, value)| option(name, value));
    away.then(all(settled, option(HIDDEN, tag.as_str())))
}

/// Puts a hidden pane beside others.
pub(super) fn join(pane: PaneId, target: &str, edge: Option<Edge>) -> Unit {
    let join = JoinPane::new().detached().src_pane(pane.to_string()).dst_pane(target.to_owned());
    match edge {
        Some(Edge::Right { columns }) => {
            unit(&join.horizontal().size(&PaneSize::Size(columns)).build())
        }
        Some(Edge::Below { rows }) => unit(&join.vertical().size(&PaneSize::Size(rows)).build()),
        None => unit(&join.horizontal().build()),
    }
}

/// Makes the window of a hidden pane one to be seen.
pub(super) fn unhide(window: WindowId, name: &Plain) -> Unit {
    let unset =
        SetOption::new().quiet().window().unset().target_pane(window.to_string()).option(HIDDEN);
    let rename = RenameWindow::new().target_window(window.to_string()).new_name(name.as_str());
    unit(&unset.build()).then(unit(&rename.build()))
}

/// Makes a pane the active one of its session; a window that shows one pane alone shows this one alone.
pub(super) fn select(pane: PaneId) -> Unit {
    let window = SelectWindow::new().target_window(pane.to_string());
    unit(&window.build())
        .then(unit(&SelectPane::new().keep_zoomed().target_pane(pane.to_string()).build()))
}

/// Turns a terminal to the session of a pane.
pub(super) fn switch(client: &str, pane: PaneId) -> Unit {
    let switch =
        SwitchClient::new().target_client(client.to_owned()).target_session(pane.to_string());
    unit(&switch.build())
}

/// What must be true of a pane, in the eyes of the server that is told to close it.
#[derive(Debug, Clone)]
pub(super) enum Proof<'a> {
    Token(&'a Plain),
    /// For a pane that has no token yet.
    Process(i32),
}

/// Does it if the pane is the right one of the right server. The server checks and acts in one step: no other server
/// can have taken the socket, and no other pane the id, in between (SD-06). A pane that has gone fails the proof
/// without an error.
pub(super) fn guarded(pane: PaneId, server: i32, proof: &Proof<'_>, unit: &Unit) -> Unit {
    let proven = match proof {
        Proof::Token(token) => format!("#{{==:#{{{TOKEN}}},{}}}", token.as_str()),
        Proof::Process(pid) => format!("#{{==:#{{pane_pid}},{pid}}}"),
    };
    let condition = format!("#{{&&:#{{==:#{{pid}},{server}}},{proven}}}");
    let command =
        IfShell::new().not_execute().target_pane(pane.to_string()).shell_command(condition);
    let mut all = words(&command.build());
    all.push(unit.text());
    Unit::new(all)
}

/// Closes a pane if it is the right one.
pub(super) fn close(pane: PaneId, server: i32, proof: &Proof<'_>) -> Unit {
    let kill = KillPane::new().target_pane(pane.to_string());
    guarded(pane, server, proof, &unit(&kill.build()))
}

/// Shows a pane alone in its window again, as a person had it before another pane of it went.
pub(super) fn alone_again(pane: PaneId, server: i32) -> Unit {
    let condition = format!("#{{&&:#{{==:#{{pid}},{server}}},#{{?window_zoomed_flag,0,1}}}}");
    let zoom = unit(&ResizePane::new().zoom().target_pane(pane.to_string()).build());
    let command =
        IfShell::new().not_execute().target_pane(pane.to_string()).shell_command(condition);
    let mut all = words(&command.build());
    all.push(zoom.text());
    Unit::new(all)
}

/// The text of a pane: what is seen and `lines` lines above it.
pub(super) fn capture(pane: PaneId, lines: usize) -> Unit {
    let command =
        CapturePane::new().stdout().start_line(format!("-{lines}")).target_pane(pane.to_string());
    unit(&command.build())
}

/// Stores stdin in a paste buffer.
pub(super) fn load(buffer: &Plain) -> Unit {
    unit(&LoadBuffer::new().buffer_name(buffer.as_str()).path("-").build())
}

/// Removes a paste buffer.
pub(super) fn unload(buffer: &Plain) -> Unit {
    unit(&DeleteBuffer::new().buffer_name(buffer.as_str()).build())
}

/// Writes a paste buffer to the program in a pane, a line break as Enter; `bracketed` if the
/// program asked for that.
pub(super) fn paste(pane: PaneId, buffer: &Plain, bracketed: bool) -> Unit {
    let paste = PasteBuffer::new().buffer_name(buffer.as_str()).target_pane(pane.to_string());
    unit(&if bracketed { paste.bracket_codes() } else { paste }.build())
}

/// Presses keys in a pane, by their names.
pub(super) fn press(pane: PaneId, keys: &[Key]) -> Unit {
    let mut all = words(&SendKeys::new().target_pane(pane.to_string()).build());
    all.push(OsString::from("--"));
    all.extend(keys.iter().map(|key| OsString::from(key.to_string())));
    Unit::new(all)
}

/// Prints a row about the input of a pane and does `unit` if that can reach this pane's program and
/// no other: the pane is not dead, takes input, and is not synchronized with its neighbours. A pane
/// in copy mode leaves it, since that would swallow keys (MSG-10).
pub(super) fn if_open(pane: PaneId, unit: &Unit) -> Unit {
    let row =
        DisplayMessage::new().print().target_pane(pane.to_string()).message(row::INPUT).build();
    let condition = "#{?#{||:#{pane_dead},#{||:#{pane_input_off},#{pane_synchronized}}},0,1}";
    let check = IfShell::new().not_execute().target_pane(pane.to_string()).shell_command(condition);
    let mut all = words(&check.build());
    all.push(
        self::unit(&CopyMode::new().cancel().target_pane(pane.to_string()).build())
            .then(unit.clone())
            .text(),
    );
    self::unit(&row).then(Unit::new(all))
}

/// Shows `words` in the status line of a terminal, or until a key is pressed: longer than the usual 0.75 s, since nobody looks
/// there all the time. Nothing in them may mean anything to a format.
pub(super) fn tell(client: &str, words: &str) -> Unit {
    let tell = DisplayMessage::new().target_client(client.to_owned()).delay(SHOWN_MS);
    unit(&tell.message(words.to_owned()).build())
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

/// A row for each terminal that looks at a session.
pub(super) fn clients() -> Unit {
    unit(&ListClients::new().format(row::CLIENT).build())
}

/// A row for each pane, for each session that it can be seen in. A target would not say whether it is there (crates
/// 1.5).
pub(super) fn panes() -> Unit {
    unit(&ListPanes::new().all().format(row::PANE).build())
}
