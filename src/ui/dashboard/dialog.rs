//! Dialogs over the panels: a line to fill in, a question, a page of text, a list of teams, and the
//! form for a new member.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::editor::LineEditor;
use super::effect::{Effect, SpawnChoices};
use crate::model::id::{MemberName, TaskId};
use crate::ops::snapshot::TeamChoice;

/// A dialog, which receives all keys while it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OpenDialog {
    Help { scroll: usize },
    TextPrompt(TextPrompt),
    Confirmation(Confirmation),
    Page(TextPage),
    Teams(TeamPicker),
    Spawn(SpawnForm),
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
    Assign {
        task: TaskId,
    },
    /// Names the request.
    Reject {
        id: String,
    },
    EditInput {
        id: String,
    },
    RejectTask {
        task: TaskId,
    },
    /// The directory of the worktree.
    Commit {
        member: MemberName,
        dir: String,
    },
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
            PromptKind::Assign { task } => format!("assign #{task} to"),
            PromptKind::Reject { .. } => "reason for the rejection".to_owned(),
            PromptKind::RejectTask { task } => format!("reason to reject #{task}"),
            PromptKind::EditInput { .. } => "input of the tool, as JSON".to_owned(),
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
    pub(super) effect: Effect,
}

/// A page of text that can be scrolled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextPage {
    pub(super) title: String,
    /// Lines with the colours of other pages.
    pub(super) lines: Vec<String>,
    pub(super) kind: PageKind,
    pub(super) scroll: usize,
}

/// The kind of a [`TextPage`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    Text,
    /// Coloured by the signs of its lines.
    Diff,
    /// The keys that answer requests work on it.
    Request,
}

/// The list of teams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TeamPicker {
    /// `None` while it is read.
    pub(super) choices: Option<Vec<TeamChoice>>,
    pub(super) at: usize,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormField {
    pub(super) label: &'static str,
    pub(super) editor: LineEditor,
    /// Values that the arrow keys offer.
    pub(super) choices: Vec<String>,
}

/// The form for a new member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SpawnForm {
    pub(super) fields: Vec<FormField>,
    pub(super) at: usize,
}

/// The effect of a key on a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DialogStep {
    Stay,
    Close,
    /// A prompt or a form was submitted, or a team was chosen.
    Submit,
    /// A question was answered with yes.
    Yes,
}

impl SpawnForm {
    pub(super) fn new() -> SpawnForm {
        let field = |label, text: &str| FormField {
            label,
            editor: LineEditor::with(text),
            choices: Vec::new(),
        };
        let worktree = FormField {
            choices: vec!["no".to_owned(), "yes".to_owned()],
            ..field("worktree", "no")
        };
        let fields = ["name", "profile", "role", "model", "prompt"].map(|label| field(label, ""));
        SpawnForm { fields: fields.into_iter().chain([worktree]).collect(), at: 0 }
    }

    pub(super) fn offer(&mut self, choices: SpawnChoices) {
        for field in &mut self.fields {
            match field.label {
                "profile" => field.choices.clone_from(&choices.profiles),
                "role" => field.choices.clone_from(&choices.roles),
                _ => {}
            }
        }
    }

    fn value(&self, label: &str) -> String {
        let field = self.fields.iter().find(|field| field.label == label);
        field.map(|field| field.editor.text().trim().to_owned()).unwrap_or_default()
    }

    /// Returns the command that starts the member.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = vec!["spawn".to_owned(), self.value("name")];
        for (label, option) in [
            ("profile", "--profile"),
            ("role", "--role"),
            ("model", "--model"),
            ("prompt", "--prompt"),
        ] {
            let value = self.value(label);
            if !value.is_empty() {
                words.push(format!("{option}={value}"));
            }
        }
        if self.value("worktree") == "yes" {
            words.push("--worktree".to_owned());
        }
        words
    }

    fn handle(&mut self, key: KeyEvent) -> DialogStep {
        let count = self.fields.len();
        match key.code {
            KeyCode::Esc => return DialogStep::Close,
            KeyCode::Tab | KeyCode::Down => self.at = (self.at + 1) % count,
            KeyCode::BackTab | KeyCode::Up => self.at = (self.at + count - 1) % count,
            KeyCode::Enter if self.value("name").is_empty() => self.at = 0,
            KeyCode::Enter => return DialogStep::Submit,
            KeyCode::Left | KeyCode::Right if !self.fields[self.at].choices.is_empty() => {
                self.fields[self.at].choose(key.code == KeyCode::Right);
            }
            _ => drop(self.fields[self.at].editor.handle(key)),
        }
        DialogStep::Stay
    }
}

impl FormField {
    /// Replaces the value by the next or the previous choice.
    fn choose(&mut self, forward: bool) {
        let current = self.editor.text();
        let at = self.choices.iter().position(|choice| *choice == current);
        let count = self.choices.len();
        let next = match (at, forward) {
            (None, true) => 0,
            (None, false) => count - 1,
            (Some(at), true) => (at + 1) % count,
            (Some(at), false) => (at + count - 1) % count,
        };
        self.editor = LineEditor::with(&self.choices[next]);
    }
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
            OpenDialog::Confirmation(_) => match key.code {
                KeyCode::Char('y') => DialogStep::Yes,
                KeyCode::Char('n' | 'q') | KeyCode::Esc => DialogStep::Close,
                _ => DialogStep::Stay,
            },
            OpenDialog::Help { scroll } => scroll_by(scroll, usize::MAX, key, page),
            OpenDialog::Page(text) => {
                let most = text.lines.len().saturating_sub(1);
                scroll_by(&mut text.scroll, most, key, page)
            }
            OpenDialog::Teams(picker) => {
                let most = picker.choices.as_ref().map_or(0, Vec::len).saturating_sub(1);
                match key.code {
                    KeyCode::Enter => DialogStep::Submit,
                    _ => scroll_by(&mut picker.at, most, key, page),
                }
            }
            OpenDialog::Spawn(form) => form.handle(key),
        }
    }

    /// Inserts pasted text.
    pub(super) fn paste(&mut self, text: &str) {
        match self {
            OpenDialog::TextPrompt(prompt) => prompt.editor.insert(text),
            OpenDialog::Spawn(form) => form.fields[form.at].editor.insert(text),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn press(form: &mut SpawnForm, keys: &[KeyCode]) -> DialogStep {
        let mut last = DialogStep::Stay;
        for code in keys {
            last = form.handle(KeyEvent::new(*code, KeyModifiers::NONE));
        }
        last
    }

    #[test]
    fn spawn_form_becomes_a_command() {
        use KeyCode::{Char, Down, Enter, Right, Tab, Up};
        let mut form = SpawnForm::new();
        form.offer(SpawnChoices {
            profiles: vec!["claude".to_owned(), "codex".to_owned()],
            roles: Vec::new(),
        });
        assert_eq!(press(&mut form, &[Enter]), DialogStep::Stay, "a name is required");
        press(&mut form, &[Char('a'), Char('d'), Char('a'), Tab, Right, Right]);
        press(&mut form, &[Down, Down, Down, Char('-'), Char('x'), Up, Up, Up, Up, Up, Right]);
        assert_eq!(press(&mut form, &[Enter]), DialogStep::Submit);
        assert_eq!(form.words(), ["spawn", "ada", "--profile=codex", "--prompt=-x", "--worktree"]);
    }

    #[test]
    fn page_scrolls_within_its_lines() {
        let lines = vec![String::new(); 30];
        let page = TextPage { title: String::new(), lines, kind: PageKind::Text, scroll: 0 };
        let mut dialog = OpenDialog::Page(page);
        let mut press = |code| dialog.handle(KeyEvent::new(code, KeyModifiers::NONE), 10);
        for code in [KeyCode::PageDown, KeyCode::PageDown, KeyCode::PageDown, KeyCode::Up] {
            assert_eq!(press(code), DialogStep::Stay);
        }
        assert_eq!(press(KeyCode::Esc), DialogStep::Close);
        assert!(matches!(dialog, OpenDialog::Page(TextPage { scroll: 28, .. })), "{dialog:?}");
    }
}
