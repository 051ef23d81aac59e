//! The conversation in the pane of a member.

use std::io;
use std::time::Duration;

use super::face::{ConversationUpdate, Face};
use super::terminal::PaneTerminal;
use conversation::{Conversation, ConversationAction, Options};
use model::time::Timestamp;
use sys::clock::Deadline;

/// Shortest time between two frames.
const FRAME: Duration = Duration::from_millis(16);

/// A conversation on a terminal.
pub(in super::super) struct Pane {
    view: Conversation,
    terminal: PaneTerminal,
    /// The earliest time of the next frame.
    drawn: Deadline,
    /// Something may have changed since the last frame.
    is_changed: bool,
    /// The time when the last frame changes by itself.
    changes_at: Option<u64>,
}

impl Pane {
    /// Takes the terminal. Must be called inside a tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// The terminal cannot be opened.
    pub(in super::super) fn enter(options: Options) -> io::Result<Pane> {
        let view = Conversation::new(options, PaneTerminal::size());
        let drawn = Deadline::after(Duration::ZERO);
        let terminal = PaneTerminal::enter()?;
        Ok(Pane { view, terminal, drawn, is_changed: true, changes_at: None })
    }
}

impl Face for Pane {
    async fn next(&mut self) -> Option<Vec<ConversationAction>> {
        let event = self.terminal.next().await?;
        self.is_changed = true;
        Some(self.view.input(&event, ops::now().0))
    }

    fn show(&mut self, update: ConversationUpdate, now: Timestamp) {
        self.is_changed = true;
        match update {
            ConversationUpdate::Prompt { from, text } => self.view.prompt(from, &text, now.0),
            ConversationUpdate::Report(report) => self.view.report(&report, now.0),
            ConversationUpdate::Decided { id, words } => self.view.decided(id, &words),
            ConversationUpdate::Notice(text) => self.view.notice(&text),
            ConversationUpdate::Status(status) => self.view.set_status(status),
        }
    }

    fn draw(&mut self, now: Timestamp) {
        let is_due = self.is_changed || self.changes_at.is_some_and(|at| at <= now.0);
        if !is_due || !self.drawn.expired() {
            return;
        }
        self.is_changed = false;
        let frame = self.view.frame(now.0);
        self.changes_at = self.view.next_frame(now.0);
        if !frame.is_empty() {
            self.terminal.write(&frame);
            self.drawn = Deadline::after(FRAME);
        }
    }

    fn next_draw(&self, now: Timestamp) -> Option<Duration> {
        if self.is_changed {
            return Some(self.drawn.remaining());
        }
        let at = self.changes_at?;
        Some(Duration::from_millis(at.saturating_sub(now.0)).max(self.drawn.remaining()))
    }

    fn finish(&mut self) {
        self.terminal.write(&self.view.finish());
    }
}
