//! The view that a person has of the conversation with an agent, and of that person's inputs.

use std::future::Future;
use std::time::Duration;

use acp::{QuestionId, SessionReport};
use conversation::{ConversationAction, ConversationStatus, Sender};
use model::time::Timestamp;

/// Something that has happened in a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationUpdate {
    /// A prompt that is sent to the agent now.
    Prompt {
        from: Sender,
        text: String,
    },
    Report(Box<SessionReport>),
    /// The answer to a question, in words.
    Decided {
        id: QuestionId,
        words: String,
    },
    Notice(String),
    Status(ConversationStatus),
}

/// A view of a conversation: a pane, or an editor.
pub trait Face {
    /// Waits for the next actions of the person; `None` if the view is gone. Cancel safe.
    fn next(&mut self) -> impl Future<Output = Option<Vec<ConversationAction>>>;

    fn show(&mut self, update: ConversationUpdate, now: Timestamp);

    /// Writes what is due now.
    fn draw(&mut self, now: Timestamp);

    /// Returns the time until the next [`Face::draw`]; `None` if nothing is due without an input.
    fn next_draw(&self, now: Timestamp) -> Option<Duration>;

    /// Writes the rest: the agent has ended.
    fn finish(&mut self);
}
