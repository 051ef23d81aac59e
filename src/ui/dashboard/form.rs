//! Forms with several fields: a new member, a new team, the texts of a task.

use crossterm::event::{KeyCode, KeyEvent};

use super::completion::{CycleStep, cycled};
use super::editor::LineEditor;
use super::effect::FormChoices;
use super::team_action::{NewMember, NewTeam, TeamAction};
use model::id::{MemberName, TaskId};

/// Stands for a line break in a field, which has one line.
const BREAK: char = '↵';

/// The effect of a key on a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DialogStep {
    Stay,
    Close,
    /// A prompt or a form was submitted, or a team was chosen.
    Submit,
    /// A question was answered with yes, by this key.
    Yes(char),
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormField {
    pub(super) label: &'static str,
    pub(super) editor: LineEditor,
    /// Values that the arrow keys offer.
    pub(super) choices: Vec<String>,
}

/// The purpose of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FormKind {
    Spawn,
    StartTeam,
    EditTask {
        task: TaskId,
        /// Subject and description as they were read; `None` while they are read.
        before: Option<(String, String)>,
    },
}

/// A form, which becomes an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ActionForm {
    pub(super) kind: FormKind,
    pub(super) fields: Vec<FormField>,
    pub(super) at: usize,
    /// The reason why the form could not be submitted.
    pub(super) problem: Option<String>,
}

fn field(label: &'static str, text: &str) -> FormField {
    FormField { label, editor: LineEditor::with(text), choices: Vec::new() }
}

impl ActionForm {
    fn new(kind: FormKind, fields: Vec<FormField>) -> ActionForm {
        ActionForm { kind, fields, at: 0, problem: None }
    }

    pub(super) fn spawn() -> ActionForm {
        let choices = vec!["no".to_owned(), "yes".to_owned()];
        let worktree = FormField { choices, ..field("worktree", "no") };
        let fields = ["name", "profile", "role", "model", "prompt"].map(|label| field(label, ""));
        ActionForm::new(FormKind::Spawn, fields.into_iter().chain([worktree]).collect())
    }

    pub(super) fn start_team() -> ActionForm {
        let fields = ["template", "task", "agent"].map(|label| field(label, "")).to_vec();
        ActionForm::new(FormKind::StartTeam, fields)
    }

    /// Creates the form for the texts of a task, which are read meanwhile.
    pub(super) fn edit_task(task: TaskId) -> ActionForm {
        let fields = vec![field("subject", ""), field("description", "")];
        ActionForm::new(FormKind::EditTask { task, before: None }, fields)
    }

    pub(super) fn title(&self) -> String {
        match &self.kind {
            FormKind::Spawn => "Spawn a member".to_owned(),
            FormKind::StartTeam => "Start a team from a template or a manifest".to_owned(),
            FormKind::EditTask { task, before: None } => format!("Reading task #{task}"),
            FormKind::EditTask { task, .. } => format!("Edit task #{task}; {BREAK} breaks a line"),
        }
    }

    /// Returns the verb of the submit key.
    pub(super) fn verb(&self) -> &'static str {
        match self.kind {
            FormKind::Spawn => "spawn",
            FormKind::StartTeam => "start",
            FormKind::EditTask { .. } => "save",
        }
    }

    pub(super) fn offer(&mut self, choices: &FormChoices) {
        for field in &mut self.fields {
            match field.label {
                "profile" => field.choices.clone_from(&choices.profiles),
                "role" => field.choices.clone_from(&choices.roles),
                "template" => field.choices.clone_from(&choices.sources),
                "agent" => field.choices.clone_from(&choices.agents),
                _ => {}
            }
        }
    }

    /// Fills in the texts of the task that the form edits. A description that a field cannot hold
    /// unchanged is left out.
    pub(super) fn fill(&mut self, id: TaskId, subject: &str, description: &str) {
        let FormKind::EditTask { task, before } = &mut self.kind else { return };
        if *task != id || before.is_some() {
            return;
        }
        self.fields = vec![field("subject", subject)];
        let shown = field("description", &description.replace('\n', &BREAK.to_string()));
        let is_whole = shown.editor.text().replace(BREAK, "\n") == description;
        if is_whole {
            self.fields.push(shown)
        } else {
            let hint = format!("its description is too long: phalanx task update {id}");
            self.problem = Some(hint);
        }
        // Compared with the fields, so that what was not edited is not sent.
        let text = |nth: usize| self.fields.get(nth).map(|one| one.editor.text());
        *before = Some((text(0).unwrap_or_default(), text(1).unwrap_or_default()));
    }

    fn value(&self, label: &str) -> Option<String> {
        let field = self.fields.iter().find(|field| field.label == label)?;
        Some(field.editor.text().trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// Returns the action of the submitted form.
    ///
    /// # Errors
    /// The label of the field that is missing or not valid, and why.
    pub(super) fn action(&self) -> Result<TeamAction, (&'static str, String)> {
        match &self.kind {
            FormKind::Spawn => {
                let name = self.value("name").ok_or(("name", "a name is needed".to_owned()))?;
                Ok(TeamAction::Spawn(NewMember {
                    name: MemberName::new(&name).map_err(|e| ("name", e.to_string()))?,
                    profile: self.value("profile"),
                    role: self.value("role"),
                    model: self.value("model"),
                    prompt: self.value("prompt"),
                    worktree: self.value("worktree").as_deref() == Some("yes"),
                }))
            }
            FormKind::StartTeam => {
                let needed = "name a template, or the path of a manifest".to_owned();
                Ok(TeamAction::StartTeam(NewTeam {
                    source: self.value("template").ok_or(("template", needed))?,
                    task: self.value("task"),
                    agent: self.value("agent"),
                }))
            }
            FormKind::EditTask { before: None, .. } => {
                Err(("subject", "the task is still being read".to_owned()))
            }
            FormKind::EditTask { task, before: Some((subject, description)) } => {
                let new_subject =
                    self.value("subject").ok_or(("subject", "the subject is empty".to_owned()))?;
                let new_description = self
                    .fields
                    .iter()
                    .find(|field| field.label == "description")
                    .map(|field| field.editor.text());
                let lines = |text: String| text.replace(BREAK, "\n");
                Ok(TeamAction::EditTask {
                    task: *task,
                    subject: Some(new_subject).filter(|new| new != subject.trim()),
                    description: new_description.filter(|new| new != description).map(lines),
                })
            }
        }
    }

    pub(super) fn handle(&mut self, key: KeyEvent) -> DialogStep {
        let count = self.fields.len();
        let has_choices = !self.fields[self.at].choices.is_empty();
        match key.code {
            KeyCode::Esc => return DialogStep::Close,
            KeyCode::Tab | KeyCode::Down => self.at = (self.at + 1) % count,
            KeyCode::BackTab | KeyCode::Up => self.at = (self.at + count - 1) % count,
            KeyCode::Enter => match self.action() {
                Ok(_) => return DialogStep::Submit,
                Err((label, problem)) => {
                    let at = self.fields.iter().position(|field| field.label == label);
                    self.at = at.unwrap_or(self.at);
                    self.problem = Some(problem);
                }
            },
            KeyCode::Left if has_choices => self.fields[self.at].choose(CycleStep::Previous),
            KeyCode::Right if has_choices => self.fields[self.at].choose(CycleStep::Next),
            _ => drop(self.fields[self.at].editor.handle(key)),
        }
        DialogStep::Stay
    }
}

impl FormField {
    /// Replaces the value by the next or the previous choice.
    fn choose(&mut self, step: CycleStep) {
        let current = self.editor.text();
        let at = self.choices.iter().position(|choice| *choice == current);
        let next = cycled(at, step, self.choices.len());
        self.editor = LineEditor::with(&self.choices[next]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossterm::event::KeyModifiers;

    fn press(form: &mut ActionForm, keys: &[KeyCode]) -> DialogStep {
        let mut last = DialogStep::Stay;
        for code in keys {
            last = form.handle(KeyEvent::new(*code, KeyModifiers::NONE));
        }
        last
    }

    #[test]
    fn spawn_form_becomes_an_action() {
        use KeyCode::{Char, Down, Enter, Right, Tab, Up};
        let mut form = ActionForm::spawn();
        form.offer(&FormChoices {
            profiles: vec!["claude".to_owned(), "codex".to_owned()],
            ..FormChoices::default()
        });
        assert_eq!(press(&mut form, &[Enter]), DialogStep::Stay, "a name is required");
        assert_eq!(press(&mut form, &[Char('-'), Enter]), DialogStep::Stay, "a valid one");
        press(&mut form, &[KeyCode::Backspace]);
        press(&mut form, &[Char('a'), Char('d'), Char('a'), Tab, Right, Right]);
        press(&mut form, &[Down, Down, Down, Char('-'), Char('x'), Up, Up, Up, Up, Up, Right]);
        assert_eq!(press(&mut form, &[Enter]), DialogStep::Submit);
        let expected = TeamAction::Spawn(NewMember {
            name: MemberName::new("ada").expect("a name"),
            profile: Some("codex".to_owned()),
            role: None,
            model: None,
            prompt: Some("-x".to_owned()),
            worktree: true,
        });
        assert_eq!(form.action(), Ok(expected));
    }

    #[test]
    fn edited_task_keeps_its_line_breaks_and_sends_only_changes() {
        use KeyCode::{Char, Down, Enter};
        let mut form = ActionForm::edit_task(TaskId(3));
        assert_eq!(press(&mut form, &[Enter]), DialogStep::Stay, "it is being read");
        form.fill(TaskId(4), "another", "");
        form.fill(TaskId(3), "Parse", "one\ntwo");
        assert_eq!(press(&mut form, &[Down, Char('!'), Enter]), DialogStep::Submit);
        let edited = |subject: Option<&str>, description: Option<&str>| TeamAction::EditTask {
            task: TaskId(3),
            subject: subject.map(str::to_owned),
            description: description.map(str::to_owned),
        };
        assert_eq!(form.action(), Ok(edited(None, Some("one\ntwo!"))));
        let mut long = ActionForm::edit_task(TaskId(3));
        long.fill(TaskId(3), "Parse", &"x".repeat(9_000));
        press(&mut long, &[Char('r')]);
        assert_eq!(long.action(), Ok(edited(Some("Parser"), None)), "nothing is cut");
    }
}
