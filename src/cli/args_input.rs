//! The command lines of `type` and `keys`.

use clap::Args;

use crate::model::input::Key;

/// Type a text into a member's terminal, whatever runs there.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx type server \"reload all\" --enter\n  phalanx type ada -- --help\n\n\
    The text arrives byte for byte. A line break is Enter; a program that asked for bracketed paste gets a text of \
    several lines as one paste. To write to an agent that reads mail, use `phalanx send`."
)]
pub(super) struct Type {
    /// The member's name.
    pub(super) name: String,
    /// The text, without control characters: `phalanx keys` has those.
    pub(super) text: String,
    /// Press Enter afterwards.
    #[arg(long)]
    pub(super) enter: bool,
}

/// Press keys in a member's terminal.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx keys server C-c\n  phalanx keys ada Escape Up Up Enter\n\n\
    Keys are named as in tmux: a character, Enter, Escape, Space, Tab, BTab, BSpace, Up, Down, Left, Right, Home, End, \
    PageUp, PageDown, Insert, Delete, F1 to F12; C- is Control, M- is Alt, S- is Shift."
)]
pub(super) struct Keys {
    /// The member's name.
    pub(super) name: String,
    /// The keys, in order.
    #[arg(required = true, value_name = "KEY")]
    pub(super) keys: Vec<Key>,
}
