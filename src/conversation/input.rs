//! Keys and pastes: answers to a question, commands to complete, and the composer.

use acp::QuestionId;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::conversation::Conversation;
use crate::question;
use crate::screen::TerminalSize;

/// Milliseconds in which a second Ctrl-C leaves.
const LEAVE: u64 = 2000;

/// A request of the user, which the owner of the session carries out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationAction {
    /// Send this prompt. The owner calls [`Conversation::prompt`] when it does.
    Send(String),
    /// Cancel the running turn.
    Cancel,
    /// Drop the prompts that wait for the end of the turn.
    DropQueued,
    /// Answer a question. The owner calls [`Conversation::decided`] when it has.
    Answer {
        id: QuestionId,
        /// The id of the option.
        option: String,
    },
    /// Leave the terminal.
    Leave,
}

impl Conversation {
    /// Takes an event of the terminal and returns what the owner is to do.
    pub fn input(&mut self, event: &Event, now: u64) -> Vec<ConversationAction> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                self.key(*key, now).into_iter().collect()
            }
            Event::Paste(text) => {
                self.leave_until = None;
                self.editor.paste(text);
                self.commands.text_changed(self.editor.text());
                Vec::new()
            }
            Event::Resize(cols, rows) => {
                self.resize(TerminalSize { rows: *rows, cols: *cols }, now);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn key(&mut self, key: KeyEvent, now: u64) -> Option<ConversationAction> {
        let is_ctrl_c = key.code == KeyCode::Char('c') && key.modifiers == KeyModifiers::CONTROL;
        if is_ctrl_c {
            return self.interrupt(now);
        }
        self.leave_until = None;
        if let Some(action) = self.answer(key) {
            return Some(action);
        }
        let text = self.editor.text();
        let is_list = self.commands.is_open(text);
        let is_plain = key.modifiers.is_empty();
        match key.code {
            KeyCode::Esc if is_list => self.commands.close(),
            KeyCode::Esc => return self.cancel(),
            KeyCode::Up | KeyCode::Down if is_list && is_plain => {
                self.commands.step(text, key.code == KeyCode::Down);
            }
            KeyCode::Tab => {
                if let Some(text) = self.commands.completed(text) {
                    self.editor.set_text(text);
                }
            }
            KeyCode::Enter if is_plain => {
                if let Some(text) = self.commands.completed(text) {
                    self.editor.set_text(text);
                } else if !text.trim().is_empty() {
                    let text = self.editor.take();
                    self.commands.text_changed("");
                    return Some(ConversationAction::Send(text));
                }
            }
            _ => {
                let before = text.to_owned();
                self.editor.edit(key, self.room());
                if self.editor.text() != before {
                    self.commands.text_changed(self.editor.text());
                }
            }
        }
        None
    }

    /// Clears the composer, or leaves if it is empty and the user confirms it.
    fn interrupt(&mut self, now: u64) -> Option<ConversationAction> {
        if !self.editor.text().is_empty() {
            // The history keeps what was cleared.
            self.editor.take();
            self.commands.text_changed("");
            self.leave_until = None;
            return None;
        }
        if self.leave_until.take().is_some_and(|until| now < until) {
            return Some(ConversationAction::Leave);
        }
        self.leave_until = Some(now.saturating_add(LEAVE));
        None
    }

    /// Cancels the running turn.
    fn cancel(&mut self) -> Option<ConversationAction> {
        let turn = self.turn.as_mut()?;
        turn.is_cancelled = true;
        Some(ConversationAction::Cancel)
    }

    /// Answers the open question if the key chooses an option and no text is being written.
    fn answer(&mut self, key: KeyEvent) -> Option<ConversationAction> {
        let KeyCode::Char(c) = key.code else { return None };
        if !self.editor.text().is_empty() || !key.modifiers.is_empty() {
            return None;
        }
        let pending = self.questions.front_mut().filter(|pending| !pending.is_answered)?;
        let option = question::option_for(&pending.question, c)?.to_owned();
        pending.is_answered = true;
        Some(ConversationAction::Answer { id: pending.question.id, option })
    }
}
