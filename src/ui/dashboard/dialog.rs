//! Dialogs over the panels: a line to fill in, a question, a page of text, a list of teams, and
//! forms.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::LineEditor;
use super::effect::Effect;
use super::form::{ActionForm, DialogStep};
use model::decisions::user_question::UserQuestion;
use model::id::{MemberName, RequestId, TaskId};
use ops::views::snapshot::TeamChoice;

/// A dialog, which receives all keys while it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OpenDialog {
    Help {
        /// Number of rows above the visible part.
        scroll: usize,
    },
    TextPrompt(TextPrompt),
    Confirmation(Confirmation),
    Page(TextPage),
    Teams(TeamPicker),
    Form(ActionForm),
}

/// The purpose of a line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PromptKind {
    Palette,
    Filter,
    /// Search in the screen of the selected member.
    Search,
    Message {
        to: MemberName,
    },
    Broadcast,
    NewTask,
    Assign(TaskId),
    Reject(AskedUse),
    EditInput(AskedUse),
    /// An answer to a question of a program to its user.
    UserAnswer {
        asked: AskedUse,
        question: UserQuestion,
        /// The answers to the questions before it, in the form of `answer --answer`.
        answers: Vec<String>,
    },
    SendBackTask(TaskId),
    Cancel(TaskId),
    Block(TaskId),
    Unblock(TaskId),
    Comment(TaskId),
    Commit {
        member: MemberName,
        /// The directory of the worktree.
        dir: String,
    },
}

/// A request that a person is about to answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskedUse {
    pub(super) id: RequestId,
    pub(super) from: MemberName,
    /// The request in one line.
    pub(super) words: String,
    /// The key that the person pressed to answer it.
    pub(super) key: String,
}

impl PromptKind {
    pub(super) fn title(&self) -> String {
        match self {
            PromptKind::Palette => "command: phalanx …".to_owned(),
            PromptKind::Search => "search the screen for".to_owned(),
            PromptKind::Filter => "show only what contains".to_owned(),
            PromptKind::Message { to } => format!("message to {to}"),
            PromptKind::Broadcast => "message to all members".to_owned(),
            PromptKind::NewTask => "subject of the new task".to_owned(),
            PromptKind::Assign(task) => format!("assign #{task} to"),
            PromptKind::Reject(asked) => {
                format!("reason to reject {}: {}", asked.from, asked.words)
            }
            PromptKind::SendBackTask(task) => format!("send #{task} back: what is to be done"),
            PromptKind::EditInput(asked) => {
                format!("input for {}, as JSON; Enter approves", asked.from)
            }
            PromptKind::UserAnswer { asked, .. } => {
                format!("{} asks: a number, or your own words", asked.from)
            }
            PromptKind::Cancel(task) => format!("reason to cancel #{task}"),
            PromptKind::Block(task) => format!("tasks that #{task} waits for"),
            PromptKind::Unblock(task) => format!("tasks that #{task} no longer waits for"),
            PromptKind::Comment(task) => format!("comment on #{task}"),
            PromptKind::Commit { member, .. } => format!("commit message for {member}"),
        }
    }
}

/// A line to fill in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPrompt {
    pub(super) kind: PromptKind,
    pub(super) editor: LineEditor,
}

/// A question that a key answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Confirmation {
    pub(super) words: String,
    /// Text above the question.
    pub(super) details: String,
    /// The effect of `y`.
    pub(super) effect: Effect,
    /// Other ways to say yes.
    pub(super) others: Vec<OtherAnswer>,
}

/// A key that also says yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OtherAnswer {
    pub(super) key: char,
    /// A word for its effect.
    pub(super) word: &'static str,
    pub(super) effect: Effect,
}

impl Confirmation {
    /// Returns the effect of a key that says yes.
    pub(super) fn effect_of(self, key: char) -> Effect {
        let other = self.others.into_iter().find(|other| other.key == key);
        other.map_or(self.effect, |other| other.effect)
    }
}

/// A page of text that can be scrolled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPage {
    pub(super) title: String,
    /// Lines with the colours of other pages.
    pub(super) lines: Vec<String>,
    pub(super) kind: PageKind,
    /// Number of rows above the visible part; a long line has several.
    pub(super) scroll: usize,
}

/// The kind of a [`TextPage`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PageKind {
    Text,
    /// The keys that answer requests answer this one.
    Request(RequestId),
}

/// The list of teams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TeamPicker {
    /// `None` while it is read.
    pub(super) choices: Option<Vec<TeamChoice>>,
    pub(super) at: usize,
}

impl OpenDialog {
    /// Handles a key. `page` is the number of lines that scrolling by a page moves.
    pub(super) fn handle(&mut self, key: KeyEvent, page: usize) -> DialogStep {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return DialogStep::Close;
        }
        match self {
            OpenDialog::TextPrompt(prompt) => match key.code {
                KeyCode::Esc => DialogStep::Close,
                KeyCode::Enter => DialogStep::Submit,
                _ => {
                    prompt.editor.handle(key);
                    DialogStep::Stay
                }
            },
            OpenDialog::Confirmation(question) => match key.code {
                KeyCode::Char('y') => DialogStep::Yes('y'),
                KeyCode::Char(key) if question.others.iter().any(|other| other.key == key) => {
                    DialogStep::Yes(key)
                }
                KeyCode::Char('n' | 'q') | KeyCode::Esc => DialogStep::Close,
                _ => DialogStep::Stay,
            },
            // The next frame corrects what is scrolled too far.
            OpenDialog::Help { scroll } | OpenDialog::Page(TextPage { scroll, .. }) => {
                scroll_by(scroll, usize::MAX, key, page)
            }
            OpenDialog::Teams(picker) => {
                let most = picker.choices.as_ref().map_or(0, Vec::len).saturating_sub(1);
                match key.code {
                    KeyCode::Enter => DialogStep::Submit,
                    _ => scroll_by(&mut picker.at, most, key, page),
                }
            }
            OpenDialog::Form(form) => form.handle(key),
        }
    }

    /// Takes the rows by which a text is scrolled on display, from where the next key continues.
    pub(super) fn set_scrolled(&mut self, rows: usize) {
        if let OpenDialog::Help { scroll } | OpenDialog::Page(TextPage { scroll, .. }) = self {
            *scroll = rows;
        }
    }

    /// Inserts pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        match self {
            OpenDialog::TextPrompt(prompt) => prompt.editor.insert(text),
            OpenDialog::Form(form) => form.fields[form.at].editor.insert(text),
            OpenDialog::Help { .. }
            | OpenDialog::Confirmation(_)
            | OpenDialog::Page(_)
            | OpenDialog::Teams(_) => {}
        }
    }
}

/// Moves a position in a list or text; other keys than those for moving close the dialog or do
/// nothing.
fn scroll_by(at: &mut usize, most: usize, key: KeyEvent, page: usize) -> DialogStep {
    let moved = match key.code {
        KeyCode::Char('q' | '?') | KeyCode::Esc => return DialogStep::Close,
        KeyCode::Char('j') | KeyCode::Down | KeyCode::Enter => at.saturating_add(1),
        KeyCode::Char('k') | KeyCode::Up => at.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') => at.saturating_add(page),
        KeyCode::PageUp => at.saturating_sub(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => most,
        _ => *at,
    };
    *at = moved.min(most);
    DialogStep::Stay
}
