//! The search, and submitted prompts and forms, which become actions.

use super::actions::answer;
use super::dialog::{OpenDialog, PromptKind, TextPrompt};
use super::effect::{AfterRun, ChosenCommand, Effect};
use super::form::ActionForm;
use super::layout::Panel;
use super::state::Dashboard;
use super::team_action::{RequestAnswer, TeamAction};
use super::theme::Tone;
use model::board::task_ref::TaskRef;
use model::id::MemberName;
use model::time::Timestamp;

impl Dashboard {
    /// Opens the search in the screen of the selected member.
    pub(super) fn open_search(&mut self) -> Vec<Effect> {
        let Some(member) = self.member.clone() else { return Vec::new() };
        let query = self.screen.query().unwrap_or_default().to_owned();
        let has_lines = self.screen.is_scrolled();
        self.screen.search(&query, self.page(Panel::Screen));
        self.open_prompt(PromptKind::Search, &query);
        if has_lines { Vec::new() } else { vec![Effect::ReadHistory(member)] }
    }

    /// Returns the effects of a form that was submitted.
    pub(super) fn submit_form(&mut self, form: &ActionForm) -> Vec<Effect> {
        match form.action() {
            // Nothing was edited.
            Ok(TeamAction::EditTask { subject: None, description: None, .. }) | Err(_) => {
                Vec::new()
            }
            Ok(action) => self.run(action),
        }
    }

    /// Returns the effects of a prompt that was submitted.
    pub(super) fn submit(&mut self, prompt: TextPrompt, now: Timestamp) -> Vec<Effect> {
        let text = prompt.editor.text().trim().to_owned();
        if text.is_empty() {
            self.end_prompt(&prompt.kind);
            return match prompt.kind {
                PromptKind::Cancel(task) => self.run(TeamAction::CancelTask { task, reason: None }),
                _ => Vec::new(),
            };
        }
        match self.prompted(&prompt.kind, text) {
            Ok(effects) => effects,
            Err(problem) => {
                self.notify(problem, Tone::Bad, now);
                // What was typed is kept.
                self.dialog = Some(OpenDialog::TextPrompt(prompt));
                Vec::new()
            }
        }
    }

    /// Ends the filter or the search of a prompt that is closed, or submitted without a text.
    pub(super) fn end_prompt(&mut self, kind: &PromptKind) {
        match kind {
            PromptKind::Filter => {
                self.filter.clear();
                self.arrange();
            }
            PromptKind::Search => self.screen.leave_history(),
            _ => {}
        }
    }

    /// Returns the effects of a prompt that was submitted with this text.
    ///
    /// # Errors
    /// The reason why the text is not valid.
    fn prompted(&mut self, kind: &PromptKind, text: String) -> Result<Vec<Effect>, String> {
        let action = match kind.clone() {
            PromptKind::Filter | PromptKind::Search => return Ok(Vec::new()),
            PromptKind::Palette => {
                let words = shlex::split(&text).ok_or("a quotation mark is missing")?;
                return Ok(self.palette(words));
            }
            PromptKind::Message { to } => TeamAction::Send { to, text },
            PromptKind::Broadcast => TeamAction::Broadcast { text },
            PromptKind::NewTask => TeamAction::CreateTask { subject: text },
            PromptKind::Assign(task) => {
                let to = MemberName::existing(&text).map_err(|e| e.to_string())?;
                TeamAction::AssignTask { task, to }
            }
            PromptKind::SendBackTask(task) => TeamAction::SendBackTask { task, reason: text },
            PromptKind::Cancel(task) => TeamAction::CancelTask { task, reason: Some(text) },
            PromptKind::Block(task) => TeamAction::BlockTask { task, by: task_refs(&text)? },
            PromptKind::Unblock(task) => TeamAction::UnblockTask { task, by: task_refs(&text)? },
            PromptKind::Comment(task) => TeamAction::CommentTask { task, text },
            PromptKind::Reject(asked) => {
                let reject = RequestAnswer::Reject { reason: text };
                return Ok(self.perform(answer(&asked, reject)));
            }
            PromptKind::UserAnswer { asked, mut answers, .. } => {
                answers.push(format!("{}={text}", answers.len() + 1));
                return Ok(self.answered(&asked, answers));
            }
            PromptKind::EditInput(asked) => {
                let input =
                    serde_json::from_str(&text).map_err(|e| format!("not a JSON object: {e}"))?;
                let approve = RequestAnswer::ApproveWith(input);
                return Ok(self.perform(answer(&asked, approve)));
            }
            PromptKind::Commit { dir, .. } => {
                let git = |words: &[&str]| ChosenCommand::Program {
                    argv: words.iter().map(|word| (*word).to_owned()).collect(),
                    dir: dir.clone(),
                };
                let command = git(&["git", "commit", &format!("--message={text}")]);
                let commit = Effect::Run { command, after: AfterRun::Report };
                let after = AfterRun::Then(Box::new(commit));
                let command = git(&["git", "add", "--all"]);
                return Ok(self.perform(Effect::Run { command, after }));
            }
        };
        Ok(self.run(action))
    }

    /// Runs what was typed into the palette.
    fn palette(&mut self, words: Vec<String>) -> Vec<Effect> {
        let command = ChosenCommand::Typed(words);
        if needs_terminal(&command) {
            vec![Effect::RunHere(command)]
        } else {
            self.perform(Effect::Run { command, after: AfterRun::Report })
        }
    }
}

/// Parses ids and keys of tasks, separated by spaces or commas.
fn task_refs(text: &str) -> Result<Vec<TaskRef>, String> {
    let words = text.split([' ', ',']).filter(|word| !word.is_empty());
    words.map(TaskRef::parse).collect()
}

/// Returns true for a verb that reads keys, or that runs until it is interrupted.
fn needs_terminal(command: &ChosenCommand) -> bool {
    let ChosenCommand::Typed(words) = command else { return true };
    let verb = words.iter().find(|word| !word.starts_with('-')).map_or("", String::as_str);
    let follows = ["-f", "--follow", "-w", "--watch"];
    matches!(
        verb,
        "attach" | "up" | "run" | "lead" | "adopt" | "resume" | "watch" | "popup" | "mcp" | "wait"
    ) || words.iter().any(|word| follows.contains(&word.as_str()))
}
