//! The keys of the list and those that the changes have besides their own. The help is made of the
//! same table.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use diff::ViewKey;

/// A command of the list of works, or of the changes of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewCommand {
    Next,
    Previous,
    First,
    Last,
    Open,
    ToggleSince,
    Approve,
    Merge,
    Check,
    Drop,
    Send,
    ShowOverlaps,
    Undo,
    ReadAgain,
    ShowNotice,
    Help,
    Close,
}

/// Keys with their command and its description.
pub(super) struct ReviewKey {
    codes: &'static [KeyCode],
    command: ReviewCommand,
    /// Keys and effect as the help shows them.
    pub(super) shown: ViewKey,
}

const fn key(
    codes: &'static [KeyCode],
    command: ReviewCommand,
    keys: &'static str,
    words: &'static str,
) -> ReviewKey {
    ReviewKey { codes, command, shown: (keys, words) }
}

use KeyCode::{Char, Down, End, Enter, Esc, Home, Up};

/// A key of the list and of the changes.
const SEND: ReviewKey = key(
    &[Char('r')],
    ReviewCommand::Send,
    "r",
    "show the message with your drafts; Enter sends it",
);

/// The keys of the list.
pub(super) const LIST_KEYS: [ReviewKey; 17] = [
    key(&[Char('j'), Down], ReviewCommand::Next, "j ↓", "next member"),
    key(&[Char('k'), Up], ReviewCommand::Previous, "k ↑", "previous member"),
    key(&[Char('g'), Home], ReviewCommand::First, "g Home", "first member"),
    key(&[Char('G'), End], ReviewCommand::Last, "G End", "last member"),
    key(&[Enter], ReviewCommand::Open, "Enter", "all changes of the member"),
    key(&[Char('s')], ReviewCommand::ToggleSince, "s", "changes since you looked last"),
    key(&[Char('y')], ReviewCommand::Approve, "y", "approve the task in review; asks"),
    key(&[Char('M')], ReviewCommand::Merge, "M", "merge, squash or rebase; asks"),
    key(&[Char('T')], ReviewCommand::Check, "T", "checks: their output; y runs them"),
    key(&[Char('D')], ReviewCommand::Drop, "D", "drop the work; asks"),
    SEND,
    key(&[Char('x')], ReviewCommand::ShowOverlaps, "x", "overlaps and conflicts with their lines"),
    key(&[Char('u')], ReviewCommand::Undo, "u", "take back what has landed last; asks"),
    key(&[Char('R')], ReviewCommand::ReadAgain, "R", "read again"),
    key(&[Char('!')], ReviewCommand::ShowNotice, "!", "the last message in full"),
    key(&[Char('?')], ReviewCommand::Help, "?", "keys"),
    key(&[Char('q'), Esc], ReviewCommand::Close, "q Esc", "quit"),
];

/// The keys that the changes have besides those of the view.
const CHANGES_KEYS: [ReviewKey; 8] = [
    key(&[Char('s')], ReviewCommand::ToggleSince, "s", "all changes, or those since you looked"),
    key(&[Char('y')], ReviewCommand::Approve, "y", "approve the task in review; asks"),
    key(&[Char('M')], ReviewCommand::Merge, "M", "merge, squash or rebase; asks"),
    key(&[Char('T')], ReviewCommand::Check, "T", "checks: their output; y runs them"),
    key(&[Char('D')], ReviewCommand::Drop, "D", "drop the work; asks"),
    SEND,
    key(&[Char('R')], ReviewCommand::ReadAgain, "R", "read the newest changes"),
    key(&[Char('!')], ReviewCommand::ShowNotice, "!", "the last message in full"),
];

/// The same for the help of the view.
pub(super) const CHANGES_HELP: [ViewKey; 8] = [
    CHANGES_KEYS[0].shown,
    CHANGES_KEYS[1].shown,
    CHANGES_KEYS[2].shown,
    CHANGES_KEYS[3].shown,
    CHANGES_KEYS[4].shown,
    CHANGES_KEYS[5].shown,
    CHANGES_KEYS[6].shown,
    CHANGES_KEYS[7].shown,
];

/// Keys of the last row of the changes, in the order in which they are left out.
pub(super) const CHANGES_HINTS: [&str; 14] = [
    "? keys",
    "q back",
    "c comment",
    "r send",
    "s since",
    "y approve",
    "M merge…",
    "] hunk",
    "} file",
    "f files",
    "V viewed",
    "m next comment",
    "/ search",
    "t split",
];

/// The same of the list.
pub(super) const LIST_HINTS: [&str; 10] = [
    "Enter changes",
    "? keys",
    "q quit",
    "y approve",
    "M merge…",
    "r send",
    "s since you looked",
    "x overlaps",
    "T checks",
    "u undo",
];

pub(super) fn list_command(key: KeyEvent) -> Option<ReviewCommand> {
    command(&LIST_KEYS, key)
}

pub(super) fn changes_command(key: KeyEvent) -> Option<ReviewCommand> {
    command(&CHANGES_KEYS, key)
}

fn command(table: &[ReviewKey], key: KeyEvent) -> Option<ReviewCommand> {
    let chord = KeyModifiers::CONTROL | KeyModifiers::ALT;
    let found = table.iter().find(|binding| binding.codes.contains(&key.code));
    found.filter(|_| !key.modifiers.intersects(chord)).map(|binding| binding.command)
}
