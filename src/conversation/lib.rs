//! Draws a conversation with an agent on a terminal, above a line to type in. Without I/O: reports
//! and keys come in, bytes for the terminal go out. The owner puts the terminal into raw mode and
//! turns bracketed paste on.

mod commands;
mod conversation;
mod diff;
mod editor;
mod grid;
mod input;
mod line;
mod live;
mod markdown;
mod plan;
mod question;
mod screen;
mod status;
mod stream;
#[cfg(test)]
mod tests;
mod tool;
mod transcript;
mod words;

pub use conversation::{Conversation, ConversationStatus, Options, Sender};
pub use input::ConversationAction;
pub use screen::TerminalSize;
