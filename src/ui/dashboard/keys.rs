//! The table of keys, which both binds them and is the text of the help.

use std::str::FromStr;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::layout::Panel;
use model::members::input::Key;

/// The command of a key. The settings name it in kebab case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum KeyCommand {
    Quit,
    Help,
    Palette,
    Filter,
    Leave,
    NextPanel,
    PreviousPanel,
    Show(Panel),
    Zoom,
    Reviews,
    Teams,
    NextAttention,
    Snooze,
    Sort,
    Back,
    Redraw,
    Suspend,
    Up,
    Down,
    Left,
    Right,
    First,
    Last,
    PageUp,
    PageDown,
    Open,
    Type,
    Message,
    Broadcast,
    Spawn,
    StartTeam,
    EndTeam,
    Shutdown,
    Restart,
    Focus,
    HideOrShow,
    Attach,
    Shell,
    Review,
    DiffInPager,
    Commit,
    Merge,
    Log,
    Explain,
    NewTask,
    TaskPage,
    Assign,
    Retry,
    Cancel,
    Block,
    Unblock,
    Comment,
    Graph,
    AllMessages,
    Approve,
    Reject,
    Edit,
    AlwaysAllow,
}

/// A section of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray, strum::IntoStaticStr)]
pub(super) enum KeyGroup {
    Dashboard,
    Moving,
    #[strum(serialize = "Selected member")]
    Member,
    #[strum(serialize = "Board")]
    Task,
    #[strum(serialize = "Requests")]
    Request,
}

/// Keys and what they do.
#[derive(Debug)]
pub(super) struct Binding {
    pub(super) group: KeyGroup,
    /// Names as tmux spells them.
    pub(super) keys: &'static [&'static str],
    pub(super) command: KeyCommand,
    pub(super) help: &'static str,
    /// The line at the bottom shows the key where it has an object.
    pub(super) is_important: bool,
}

const fn binding(
    group: KeyGroup,
    keys: &'static [&'static str],
    command: KeyCommand,
    help: &'static str,
) -> Binding {
    Binding { group, keys, command, help, is_important: false }
}

const fn important(
    group: KeyGroup,
    keys: &'static [&'static str],
    command: KeyCommand,
    help: &'static str,
) -> Binding {
    Binding { group, keys, command, help, is_important: true }
}

use KeyGroup::{Dashboard, Member, Moving, Request, Task};

/// All keys outside of dialogs.
pub(super) const BINDINGS: &[Binding] = &[
    important(Dashboard, &["?", "F1"], KeyCommand::Help, "this help"),
    important(Dashboard, &["q", "C-c"], KeyCommand::Quit, "quit; the team goes on"),
    important(Dashboard, &["n"], KeyCommand::NextAttention, "what needs you next, oldest first"),
    binding(Dashboard, &["S"], KeyCommand::Snooze, "snooze what needs you for 15 minutes"),
    important(Dashboard, &[":"], KeyCommand::Palette, "any phalanx command"),
    binding(Dashboard, &["/"], KeyCommand::Filter, "show only matches; on a screen, search it"),
    binding(Dashboard, &["Escape"], KeyCommand::Leave, "live screen again; end filter and search"),
    binding(Dashboard, &["V"], KeyCommand::Reviews, "all work that waits for a review"),
    binding(Dashboard, &["t"], KeyCommand::Teams, "another team of this machine"),
    binding(Dashboard, &["T"], KeyCommand::StartTeam, "start a team from a template or a file"),
    binding(Dashboard, &["Q"], KeyCommand::EndTeam, "end this team and delete it"),
    binding(Dashboard, &["s"], KeyCommand::Sort, "sort members by attention, name or age"),
    binding(Dashboard, &["z"], KeyCommand::Zoom, "only this panel, or all of them"),
    binding(Dashboard, &["C-l"], KeyCommand::Redraw, "draw everything again"),
    binding(Dashboard, &["C-z"], KeyCommand::Suspend, "suspend phalanx"),
    important(Moving, &["Tab"], KeyCommand::NextPanel, "next panel"),
    binding(Moving, &["BTab"], KeyCommand::PreviousPanel, "previous panel"),
    binding(Moving, &["1"], KeyCommand::Show(Panel::Members), "members"),
    binding(Moving, &["2"], KeyCommand::Show(Panel::Screen), "screen of the selected member"),
    binding(Moving, &["3"], KeyCommand::Show(Panel::Board), "board"),
    binding(Moving, &["4"], KeyCommand::Show(Panel::Requests), "requests"),
    binding(Moving, &["5"], KeyCommand::Show(Panel::Messages), "messages"),
    binding(Moving, &["6"], KeyCommand::Show(Panel::Events), "events"),
    binding(Moving, &["Up", "k"], KeyCommand::Up, "up"),
    binding(Moving, &["Down", "j"], KeyCommand::Down, "down"),
    binding(Moving, &["Left"], KeyCommand::Left, "column to the left"),
    binding(Moving, &["Right"], KeyCommand::Right, "column to the right"),
    binding(Moving, &["Home", "g"], KeyCommand::First, "first"),
    binding(Moving, &["End", "G"], KeyCommand::Last, "last"),
    binding(Moving, &["PPage", "C-u"], KeyCommand::PageUp, "page up; on a screen, scroll back"),
    binding(Moving, &["NPage", "C-d"], KeyCommand::PageDown, "page down"),
    binding(Moving, &["Enter"], KeyCommand::Open, "its screen, its owner's screen, or its text"),
    binding(Moving, &["BSpace"], KeyCommand::Back, "the member that was selected before"),
    important(Member, &["i"], KeyCommand::Type, "type into its terminal; Escape leaves"),
    important(Member, &["m"], KeyCommand::Message, "send a message"),
    binding(Member, &["b"], KeyCommand::Broadcast, "send a message to all"),
    binding(Member, &["a"], KeyCommand::Attach, "attach this terminal to it"),
    binding(Member, &["f"], KeyCommand::Focus, "bring its pane to the front"),
    binding(Member, &["h"], KeyCommand::HideOrShow, "hide its pane, or show it again"),
    binding(Member, &["e"], KeyCommand::Explain, "explain its state"),
    binding(Member, &["l"], KeyCommand::Log, "its output, in the pager"),
    binding(Member, &["d"], KeyCommand::Review, "review its changes, and decide"),
    binding(Member, &["D"], KeyCommand::DiffInPager, "diff of its worktree, in the pager"),
    binding(Member, &["c"], KeyCommand::Commit, "commit its worktree"),
    binding(Member, &["M"], KeyCommand::Merge, "merge its branch, after a dry run"),
    binding(Member, &["o"], KeyCommand::Shell, "open a shell in its directory"),
    important(Member, &["+"], KeyCommand::Spawn, "spawn another member"),
    important(Member, &["R"], KeyCommand::Restart, "restart it; resume one that has ended"),
    important(Member, &["K"], KeyCommand::Shutdown, "shut it down; remove one that has ended"),
    important(Task, &["N"], KeyCommand::NewTask, "new task"),
    binding(Task, &["p"], KeyCommand::TaskPage, "everything about the task"),
    binding(Task, &["A"], KeyCommand::Assign, "assign it to a member"),
    important(Task, &["u"], KeyCommand::Retry, "retry a failed or stale task"),
    important(Task, &["C"], KeyCommand::Comment, "comment on it"),
    important(Task, &["x"], KeyCommand::Cancel, "cancel it"),
    binding(Task, &["B"], KeyCommand::Block, "let it wait for other tasks"),
    binding(Task, &["U"], KeyCommand::Unblock, "let it no longer wait for them"),
    binding(Task, &["v"], KeyCommand::Graph, "columns, or the graph of dependencies"),
    important(Request, &["y"], KeyCommand::Approve, "approve; on the board, a task in review"),
    important(Request, &["r"], KeyCommand::Reject, "reject with a reason"),
    important(Request, &["Y"], KeyCommand::AlwaysAllow, "approve, and allow the same for good"),
    important(Request, &["E"], KeyCommand::Edit, "edit the tool's input and approve; a task"),
    binding(
        Request,
        &["w"],
        KeyCommand::AllMessages,
        "messages of all members, or of the selected",
    ),
];

/// Returns the key as tmux spells it; `None` for a key that terminals cannot be sent.
pub(super) fn name(key: KeyEvent) -> Option<String> {
    let shift = key.modifiers.contains(KeyModifiers::SHIFT);
    let (base, is_char) = match key.code {
        KeyCode::Char(' ') => ("Space".to_owned(), false),
        KeyCode::Char(c) => (c.to_string(), true),
        KeyCode::Enter => ("Enter".to_owned(), false),
        KeyCode::Esc => ("Escape".to_owned(), false),
        KeyCode::BackTab => return Some("BTab".to_owned()),
        KeyCode::Tab if shift => return Some("BTab".to_owned()),
        KeyCode::Tab => ("Tab".to_owned(), false),
        KeyCode::Backspace => ("BSpace".to_owned(), false),
        KeyCode::Insert => ("IC".to_owned(), false),
        KeyCode::Delete => ("DC".to_owned(), false),
        KeyCode::PageUp => ("PPage".to_owned(), false),
        KeyCode::PageDown => ("NPage".to_owned(), false),
        KeyCode::Up => ("Up".to_owned(), false),
        KeyCode::Down => ("Down".to_owned(), false),
        KeyCode::Left => ("Left".to_owned(), false),
        KeyCode::Right => ("Right".to_owned(), false),
        KeyCode::Home => ("Home".to_owned(), false),
        KeyCode::End => ("End".to_owned(), false),
        KeyCode::F(nth) => (format!("F{nth}"), false),
        _ => return None,
    };
    let mut name = String::new();
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        name.push_str("C-");
    }
    if key.modifiers.contains(KeyModifiers::ALT) {
        name.push_str("M-");
    }
    // A character with Shift is another character.
    if shift && !is_char {
        name.push_str("S-");
    }
    Some(name + &base)
}

/// Returns the key for a member's terminal.
pub(super) fn typed(key: KeyEvent) -> Option<Key> {
    Key::from_str(&name(key)?).ok()
}

/// Returns the key as people read it: `Ctrl-L`, `Esc`, `PgUp`.
pub(super) fn label(name: &str) -> String {
    match name {
        "Escape" => "Esc".to_owned(),
        "BTab" => "Shift-Tab".to_owned(),
        "BSpace" => "Backspace".to_owned(),
        "PPage" => "PgUp".to_owned(),
        "NPage" => "PgDn".to_owned(),
        other => match other.strip_prefix("C-") {
            Some(letter) => format!("Ctrl-{}", letter.to_uppercase()),
            None => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_key_is_bound_once_and_can_be_typed() {
        let mut seen: BTreeMap<&str, KeyCommand> = BTreeMap::new();
        for binding in BINDINGS {
            for key in binding.keys {
                assert_eq!(seen.insert(key, binding.command), None, "{key} is bound twice");
                assert_eq!(Key::from_str(key).map(|key| key.to_string()).as_deref(), Ok(*key));
            }
            assert!(!binding.help.is_empty() && binding.help.len() <= 45, "{}", binding.help);
        }
    }

    #[test]
    fn key_events_have_the_names_of_tmux() {
        let event = |code, modifiers| name(KeyEvent::new(code, modifiers));
        let table = [
            (KeyCode::Char('a'), KeyModifiers::NONE, "a"),
            (KeyCode::Char('A'), KeyModifiers::SHIFT, "A"),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, "C-c"),
            (KeyCode::Char('x'), KeyModifiers::ALT, "M-x"),
            (KeyCode::Char(' '), KeyModifiers::NONE, "Space"),
            (KeyCode::Up, KeyModifiers::SHIFT, "S-Up"),
            (KeyCode::BackTab, KeyModifiers::SHIFT, "BTab"),
            (KeyCode::F(5), KeyModifiers::NONE, "F5"),
        ];
        for (code, modifiers, expected) in table {
            let found = event(code, modifiers).expect("a key");
            assert_eq!(found, expected);
            assert!(Key::from_str(&found).is_ok(), "{found}");
        }
        assert_eq!(event(KeyCode::CapsLock, KeyModifiers::NONE), None);
    }
}
