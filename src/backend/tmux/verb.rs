//! All tmux commands that phalanx uses, each typed and with an explicit target. Options that
//! override the user's configuration are set here, and only on our own sessions, windows and panes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use tmux_interface::{
    BreakPane, CapturePane, CopyMode, DeleteBuffer, DisplayMessage, DisplayPopup, IfShell,
    JoinPane, KillPane, KillServer, ListClients, ListPanes, ListSessions, ListWindows, LoadBuffer,
    NewSession, NewWindow, PaneSize, PasteBuffer, RenameWindow, ResizePane, ResizeWindow, RunShell,
    SelectLayout, SelectPane, SelectWindow, SendKeys, SetHook, SetOption, ShowOptions, SplitWindow,
    StartServer, SwitchClient, TmuxCommand,
};

use super::arrange::Size;
use super::command::{PaneId, PlainWord, SessionId, Unit, WindowId};
use super::row::{
    ClientRow, InputRow, MadeRow, PaneRow, ScreenRow, ServerRow, SessionRow, TmuxRow, WindowRow,
};
use model::members::input::Key;

/// The pane option that proves a pane ours.
const TOKEN: &str = "@phalanx_token";
/// Pane options that the border shows.
const NAME: &str = "@phalanx_name";
const ROLE: &str = "@phalanx_role";
const STATE: &str = "@phalanx_state";
const COLOR: &str = "@phalanx_color";
/// The pane option with the team's tag, for panes beside the lead. It is not [`TEAM`]: tmux looks
/// up an option that a window lacks in its active pane, so the lead's window would pass for the
/// team's.
const BESIDE: &str = "@phalanx_beside";
/// The window option with the team's tag, for a window that holds a hidden pane.
const HIDDEN: &str = "@phalanx_hidden";
/// The window option with the tag of the team that owns the window.
const TEAM: &str = "@phalanx_team";
/// The session option with the tag of the team that owns the session. It has a name of its own,
/// because formats look up an option in the active pane and its window before the session.
const SESSION: &str = "@phalanx_session";
/// Options of our windows that override the user's configuration (PT-06): window names do not
/// change, keys are not sent to all panes, and a pane closes when its launcher exits.
const WINDOW_OPTIONS: [(&str, &str); 4] = [
    ("automatic-rename", "off"),
    ("allow-rename", "off"),
    ("synchronize-panes", "off"),
    ("remain-on-exit", "off"),
];
/// [`WINDOW_OPTIONS`] for our panes in a window that is not ours, as far as they are pane options.
const PANE_OPTIONS: [(&str, &str); 3] =
    [("allow-rename", "off"), ("synchronize-panes", "off"), ("remain-on-exit", "off")];
/// The option that decides which clients resize a window. `resize-window` sets it to `manual`.
const WINDOW_SIZE: &str = "window-size";
/// The format of a pane's border. tmux does not expand the value of an option again (SEC-02).
const BORDER: &str = "#[fg=#{?@phalanx_color,#{@phalanx_color},default}] #{@phalanx_name}\
                      #{?@phalanx_role, (#{@phalanx_role}),}#{?@phalanx_state, #{@phalanx_state},} #[default]";
/// Display time of a notice, in milliseconds. Short, because tmux 3.3a does not update the panes of
/// that terminal meanwhile.
const SHOWN_MS: usize = 2_000;
/// Width and height of a popup, in percent of the terminal.
const POPUP: &str = "90%";
/// The start directory of new panes; never a user's, because tmux format-expands `-c` (SEC-02). The
/// launcher changes directory itself.
const DIRECTORY: &str = "/";

/// The session that gets a new window.
#[derive(Debug, Clone)]
pub(super) enum WindowTarget {
    Session(SessionId),
    /// The session that the same call creates under this name; its id is not known yet. The target
    /// begins with `=`, which requires an exact match.
    JustMade(PlainWord),
}

impl WindowTarget {
    fn target(&self) -> String {
        match self {
            WindowTarget::Session(id) => format!("{id}:"),
            WindowTarget::JustMade(name) => format!("={}:", name.as_str()),
        }
    }
}

/// The edge of a pane from which a new one is cut, and the size of the new one.
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

/// A command that starts `argv` in a new pane and prints a row about it. tmux executes two or more
/// words directly, without a shell (SP-06).
fn spawning(command: &TmuxCommand<'_>, argv: &[OsString]) -> Unit {
    let mut all = words(command);
    all.push(OsString::from("--"));
    all.extend(argv.iter().cloned());
    Unit::new(all)
}

/// Creates a detached session with one window and one pane. The same call sets what the user's
/// configuration may have otherwise: the session stays without a client (`destroy-unattached`), and
/// its end ends its clients instead of moving them into another session (`detach-on-destroy`,
/// SD-19).
///
/// The window gets its size afterwards: while a client is attached to any session of the server,
/// tmux gives a new window the size of that client, despite `-x` and `-y` (LY-16).
pub(super) fn new_session(
    name: &PlainWord,
    window: &PlainWord,
    tag: &PlainWord,
    size: Size,
    argv: &[OsString],
) -> Unit {
    let command = NewSession::new()
        .detached()
        .print()
        .start_directory(DIRECTORY)
        .format(MadeRow::FORMAT)
        .window_name(window.as_str())
        .session_name(name.as_str())
        .width(size.width)
        .height(size.height)
        .build();
    let made = WindowTarget::JustMade(name.clone());
    let option = |option, value| {
        unit(&SetOption::new().target_pane(made.target()).option(option).value(value).build())
    };
    let resize = ResizeWindow::new().target_window(made.target());
    let set = SetOption::new().quiet().window().unset().target_pane(made.target());
    let hook = SetHook::new().target_session(made.target()).hook_name("client-detached");
    spawning(&command, argv)
        .then(unit(&resize.width(size.width).height(size.height).build()))
        .then(unit(&set.option(WINDOW_SIZE).build()))
        .then(option("destroy-unattached", "off"))
        .then(option("detach-on-destroy", "on"))
        .then(option(SESSION, tag.as_str()))
        .then(unit(&hook.command(restore_text(made.target(), size)).build()))
}

/// Gives the team's windows of a session the size that they have without a client, unless a client
/// is attached to it. A window whose size a person has fixed (`window-size manual`) keeps it.
pub(super) fn restore_size(session: SessionId, size: Size) -> Unit {
    let run = RunShell::new().tmux_command().target_pane(format!("{session}:"));
    unit(&run.shell_command(own_size(size)).build())
}

/// Restores the size of the team's windows when the last client leaves this one. tmux 3.3a runs
/// `client-detached` in whatever session is the most recent, unless the client was killed;
/// `pane-focus-out` runs in the window that the client showed.
pub(super) fn keep_size(window: WindowId, size: Size) -> Unit {
    let hook = SetHook::new().window().target_session(window.to_string());
    let command = restore_text(window.to_string(), size);
    unit(&hook.hook_name("pane-focus-out").command(command).build())
}

/// The text of a command that restores the size of the windows beside `target`, for a hook. If the
/// target no longer exists, it does nothing.
fn restore_text(target: String, size: Size) -> String {
    let commands = own_size(size);
    let run = RunShell::new().tmux_command().target_pane(target).shell_command(commands).build();
    unit(&run).text().to_string_lossy().into_owned()
}

/// The format of the commands that give the team's windows of a session their size, one after the
/// other; of none while a client is attached to the session or to its group.
fn own_size(size: Size) -> String {
    let attached = "#{?session_grouped,#{session_group_attached},#{session_attached}}";
    let is_ours = format!("#{{||:#{{{TEAM}}},#{{{HIDDEN}}}}}");
    let is_free = format!("#{{!=:#{{{WINDOW_SIZE}}},manual}}");
    let resize = format!("resize-window -t #{{window_id}} -x {} -y {}", size.width, size.height);
    let unset = format!("set-option -wu -t #{{window_id}} {WINDOW_SIZE}");
    let window = format!("#{{?#{{&&:{is_ours},{is_free}}},{resize} ; {unset} ; ,}}");
    format!("#{{?#{{==:{attached},0}},#{{W:{window}}},}}")
}

/// Creates a window at the next free index, without moving the focus (LY-05).
pub(super) fn new_window(inside: &WindowTarget, window: &PlainWord, argv: &[OsString]) -> Unit {
    let command = NewWindow::new()
        .detached()
        .print()
        .start_directory(DIRECTORY)
        .format(MadeRow::FORMAT)
        .window_name(window.as_str())
        .target_window(inside.target())
        .build();
    spawning(&command, argv)
}

/// Adds a pane to a window of ours, then tiles the window to make room for the next. All commands
/// of a call run in one turn of the server, so that programs in the window see one change of size,
/// not many (LY-06).
pub(super) fn split(window: WindowId, argv: &[OsString]) -> Unit {
    let command = SplitWindow::new()
        .detached()
        .horizontal()
        .print()
        .start_directory(DIRECTORY)
        .format(MadeRow::FORMAT)
        .target_pane(window.to_string())
        .build();
    spawning(&command, argv).then(tile(window))
}

/// Cuts a new pane from the right or lower edge of another one. No third pane changes its size
/// (LY-04).
pub(super) fn cut(from: PaneId, edge: Edge, argv: &[OsString]) -> Unit {
    let split = SplitWindow::new().detached().print().start_directory(DIRECTORY);
    let split = split.format(MadeRow::FORMAT).target_pane(from.to_string());
    let (split, size) = match edge {
        Edge::Right { columns } => (split.horizontal(), PaneSize::Size(columns)),
        Edge::Below { rows } => (split.vertical(), PaneSize::Size(rows)),
    };
    spawning(&split.size(&size).build(), argv)
}

/// Tiles a window of ours. Before a split, this gives space to the pane to be split, which a person
/// may have made too small.
pub(super) fn tile(window: WindowId) -> Unit {
    unit(&SelectLayout::new().target_pane(window.to_string()).layout_name("tiled").build())
}

/// Sets an option of a pane. `-q` suppresses the error if the pane no longer exists.
fn pane_option(pane: PaneId, option: &'static str, value: &str) -> Unit {
    let set = SetOption::new().quiet().pane().target_pane(pane.to_string());
    unit(&set.option(option).value(value.to_owned()).build())
}

fn window_option(window: WindowId, option: &'static str, value: &str) -> Unit {
    let set = SetOption::new().quiet().window().target_pane(window.to_string());
    unit(&set.option(option).value(value.to_owned()).build())
}

fn chain(units: impl IntoIterator<Item = Unit>, first: Unit) -> Unit {
    units.into_iter().fold(first, Unit::then)
}

/// Marks a window as the team's and overrides the user's configuration there.
pub(super) fn mark_window(window: WindowId, tag: &PlainWord, border: bool) -> Unit {
    let options = WINDOW_OPTIONS.map(|(name, value)| window_option(window, name, value));
    let marked = chain(options, window_option(window, TEAM, tag.as_str()));
    if !border {
        return marked;
    }
    let status = window_option(window, "pane-border-status", "top");
    marked.then(status).then(window_option(window, "pane-border-format", BORDER))
}

pub(super) fn mark_pane(pane: PaneId, token: &PlainWord) -> Unit {
    pane_option(pane, TOKEN, token.as_str())
}

/// Marks a pane beside the lead, in a window that is not ours: sets pane options only. Its border
/// shows the label if the window's borders show text (LY-07).
pub(super) fn mark_pane_beside(pane: PaneId, tag: &PlainWord) -> Unit {
    let options = PANE_OPTIONS.map(|(name, value)| pane_option(pane, name, value));
    let marked = pane_option(pane, BESIDE, tag.as_str()).then(pane_option(
        pane,
        "pane-border-format",
        BORDER,
    ));
    chain(options, marked)
}

pub(super) fn label(pane: PaneId, name: &PlainWord, role: &str, state: &str, color: &str) -> Unit {
    let rest = [(ROLE, role), (STATE, state), (COLOR, color)]
        .map(|(name, value)| pane_option(pane, name, value));
    chain(rest, pane_option(pane, NAME, name.as_str()))
}

/// Moves a pane into a window of its own that is marked as hidden. A pane that was alone in its
/// window keeps that window, with the team's mark.
pub(super) fn hide(pane: PaneId, session: SessionId, window: &PlainWord, tag: &PlainWord) -> Unit {
    let break_pane =
        BreakPane::new().detached().src_pane(pane.to_string()).dst_window(format!("{session}:"));
    let break_pane = unit(&break_pane.window_name(window.as_str()).build());
    // A pane as target of a window option selects its current window.
    let option = |option, value| {
        let set = SetOption::new().quiet().window().target_pane(pane.to_string());
        unit(&set.option(option).value(value).build())
    };
    let options = WINDOW_OPTIONS.map(|(name, value)| option(name, value));
    break_pane.then(chain(options, option(HIDDEN, tag.as_str())))
}

/// Moves a hidden pane beside another one.
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

/// Removes the hidden mark from a window and renames it.
pub(super) fn unhide(window: WindowId, name: &PlainWord) -> Unit {
    let unset =
        SetOption::new().quiet().window().unset().target_pane(window.to_string()).option(HIDDEN);
    let rename = RenameWindow::new().target_window(window.to_string()).new_name(name.as_str());
    unit(&unset.build()).then(unit(&rename.build()))
}

/// Makes a pane the active one of its session. If its window is zoomed, the pane is zoomed instead
/// of the previous one.
pub(super) fn select(pane: PaneId) -> Unit {
    let window = SelectWindow::new().target_window(pane.to_string());
    unit(&window.build())
        .then(unit(&SelectPane::new().keep_zoomed().target_pane(pane.to_string()).build()))
}

/// Switches a client to the session of a pane.
pub(super) fn switch(client: &str, pane: PaneId) -> Unit {
    let switch =
        SwitchClient::new().target_client(client.to_owned()).target_session(pane.to_string());
    unit(&switch.build())
}

/// The condition under which the server acts on a pane.
#[derive(Debug, Clone)]
pub(super) enum PaneGuard<'a> {
    /// The token, and the pid of the pane's process: another program that was started in the pane
    /// since then has the same token.
    Identity { token: &'a PlainWord, pid: i32 },
    /// The pane runs this pid; for a pane without a token yet.
    Process(i32),
}

/// Runs `unit` if the pane is the right one of the right server. The server checks and acts in one
/// step, so that neither the socket nor the pane id can change hands in between (SD-06). A pane
/// that no longer exists fails the check without an error.
pub(super) fn guarded(pane: PaneId, server: i32, guard: &PaneGuard<'_>, unit: &Unit) -> Unit {
    // tmux 3.8 reports no pid of a pane whose program has exited.
    let pid_is = |pid: &i32| format!("#{{?pane_pid,#{{==:#{{pane_pid}},{pid}}},#{{pane_dead}}}}");
    let proven = match guard {
        PaneGuard::Identity { token, pid } => {
            let token_is = format!("#{{==:#{{{TOKEN}}},{}}}", token.as_str());
            format!("#{{&&:{token_is},{}}}", pid_is(pid))
        }
        PaneGuard::Process(pid) => pid_is(pid),
    };
    conditional(pane, format!("#{{&&:#{{==:#{{pid}},{server}}},{proven}}}"), unit)
}

/// Runs `unit` if the server expands `condition` to something true for the pane.
fn conditional(pane: PaneId, condition: String, unit: &Unit) -> Unit {
    let command =
        IfShell::new().not_execute().target_pane(pane.to_string()).shell_command(condition);
    let mut all = words(&command.build());
    all.push(unit.text());
    Unit::new(all)
}

/// Closes a pane if the guard holds.
pub(super) fn close(pane: PaneId, server: i32, guard: &PaneGuard<'_>) -> Unit {
    let kill = KillPane::new().target_pane(pane.to_string());
    guarded(pane, server, guard, &unit(&kill.build()))
}

/// Zooms a pane again after the close of another pane has ended its zoom.
pub(super) fn rezoom(pane: PaneId, server: i32) -> Unit {
    let condition = format!("#{{&&:#{{==:#{{pid}},{server}}},#{{?window_zoomed_flag,0,1}}}}");
    let zoom = ResizePane::new().zoom().target_pane(pane.to_string());
    conditional(pane, condition, &unit(&zoom.build()))
}

/// Captures the visible text of a pane and `lines` lines above it.
pub(super) fn capture_pane(pane: PaneId, lines: usize) -> Unit {
    let command =
        CapturePane::new().stdout().start_line(format!("-{lines}")).target_pane(pane.to_string());
    unit(&command.build())
}

/// Prints a row about the screen of a pane, then its visible lines with their colours.
pub(super) fn capture_screen(pane: PaneId) -> Unit {
    let capture = CapturePane::new().stdout().escape_sequences().trailing_spaces();
    print_of(pane, ScreenRow::FORMAT).then(unit(&capture.target_pane(pane.to_string()).build()))
}

/// Stores stdin in a paste buffer.
pub(super) fn load_buffer(buffer: &PlainWord) -> Unit {
    unit(&LoadBuffer::new().buffer_name(buffer.as_str()).path("-").build())
}

pub(super) fn delete_buffer(buffer: &PlainWord) -> Unit {
    unit(&DeleteBuffer::new().buffer_name(buffer.as_str()).build())
}

/// Writes a paste buffer to the program in a pane, with a line break as Enter. `bracketed` adds the
/// codes of a bracketed paste if the program has enabled them.
pub(super) fn paste_buffer(pane: PaneId, buffer: &PlainWord, bracketed: bool) -> Unit {
    let paste = PasteBuffer::new().buffer_name(buffer.as_str()).target_pane(pane.to_string());
    unit(&if bracketed { paste.bracket_codes() } else { paste }.build())
}

pub(super) fn send_keys(pane: PaneId, keys: &[Key]) -> Unit {
    let mut all = words(&SendKeys::new().target_pane(pane.to_string()).build());
    all.push(OsString::from("--"));
    all.extend(keys.iter().map(|key| OsString::from(key.to_string())));
    Unit::new(all)
}

/// Prints a row about the input of a pane, then runs `unit` if it reaches this pane's program and
/// no other: the pane is not dead, its input is enabled, and it is not synchronized with its
/// neighbours. Ends copy mode first, since that would swallow keys (MSG-10).
pub(super) fn if_accepts_input(pane: PaneId, unit: &Unit) -> Unit {
    let condition = "#{?#{||:#{pane_dead},#{||:#{pane_input_off},#{pane_synchronized}}},0,1}";
    let copy_mode = CopyMode::new().cancel().target_pane(pane.to_string());
    let all = self::unit(&copy_mode.build()).then(unit.clone());
    print_of(pane, InputRow::FORMAT).then(conditional(pane, condition.to_owned(), &all))
}

/// Shows `words` in the status line of a client until a key is pressed, at most [`SHOWN_MS`]. That
/// is longer than the default of 0.75 s, so that the notice is seen. tmux format-expands `words`,
/// so they must not contain formats.
pub(super) fn show_message(client: &str, words: &str) -> Unit {
    let message = DisplayMessage::new().target_client(client.to_owned()).delay(SHOWN_MS);
    unit(&message.message(words.to_owned()).build())
}

/// Runs `argv` in a popup over the panes of a client, until it exits or the popup is closed. tmux
/// executes two or more words directly, without a shell. It format-expands `directory`, so that
/// must be quoted by [`unexpanded`].
pub(super) fn popup(
    client: &str,
    target: &str,
    directory: OsString,
    argv: impl IntoIterator<Item = OsString>,
) -> Unit {
    let popup = DisplayPopup::new()
        .close_on_exit()
        .target_client(client.to_owned())
        .target_pane(target.to_owned());
    let mut all = words(&popup.build());
    all.extend(["-w", POPUP, "-h", POPUP, "-d"].map(OsString::from));
    all.extend([directory, OsString::from("--")]);
    all.extend(argv);
    Unit::new(all)
}

/// Quotes text that tmux format-expands, so that it comes out unchanged: doubles each `#`, which
/// alone would begin a format. tmux keeps any number of `#` before a `[`, for the parser of styles.
pub(super) fn unexpanded(text: &OsStr) -> OsString {
    let bytes = text.as_bytes();
    let mut quoted = Vec::with_capacity(bytes.len());
    for (at, byte) in bytes.iter().enumerate() {
        quoted.push(*byte);
        let next = bytes[at..].iter().find(|byte| **byte != b'#');
        if *byte == b'#' && next != Some(&b'[') {
            quoted.push(b'#');
        }
    }
    OsString::from_vec(quoted)
}

/// Prints a row about the server.
pub(super) fn server() -> Unit {
    print(ServerRow::FORMAT)
}

/// Starts the server without a session, and keeps it until it is killed.
pub(super) fn start_server() -> Unit {
    let stay = SetOption::new().server().option("exit-empty").value("off");
    unit(&StartServer::new().build()).then(unit(&stay.build()))
}

/// Ends the server and everything in it.
pub(super) fn kill_server() -> Unit {
    unit(&KillServer::new().build())
}

/// Prints a text after tmux has expanded the formats in it.
pub(super) fn print(format: &'static str) -> Unit {
    unit(&DisplayMessage::new().print().message(format).build())
}

/// As `print`, with the values of a pane.
fn print_of(pane: PaneId, format: &'static str) -> Unit {
    unit(&DisplayMessage::new().print().target_pane(pane.to_string()).message(format).build())
}

/// Prints a global session option, as `NAME VALUE`.
pub(super) fn global_option(name: &'static str) -> Unit {
    unit(&ShowOptions::new().global().option(name).build())
}

/// Prints a row for each session.
pub(super) fn sessions() -> Unit {
    unit(&ListSessions::new().format(SessionRow::FORMAT).build())
}

/// Prints a row for each window of each session.
pub(super) fn windows() -> Unit {
    unit(&ListWindows::new().all().format(WindowRow::FORMAT).build())
}

/// Prints a row for each attached client.
pub(super) fn clients() -> Unit {
    unit(&ListClients::new().format(ClientRow::FORMAT).build())
}

/// Prints a row for each pane, once per session that contains it. Lists all of them, because a
/// target does not show whether the pane exists.
pub(super) fn panes() -> Unit {
    unit(&ListPanes::new().all().format(PaneRow::FORMAT).build())
}
