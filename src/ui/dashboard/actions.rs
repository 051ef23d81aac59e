//! The keys that act on the highlighted member, task and request.

use super::dialog::{
    AskedUse, Confirmation, OpenDialog, OtherAnswer, PageKind, PromptKind, TextPage,
};
use super::effect::{AfterRun, ChosenCommand, Effect};
use super::form::ActionForm;
use super::keys::KeyCommand;
use super::layout::Panel;
use super::state::Dashboard;
use super::targets::AnswerTarget;
use super::team_action::{RequestAnswer, TeamAction};
use super::theme::Tone;
use crate::Paint;
use crate::decisions::request_page::request_text;
use model::id::MemberName;
use model::team::worktree::LandingKind;
use model::time::Timestamp;
use ops::decisions::decide::ApprovalPreview;
use ops::decisions::requests::Shown;

impl Dashboard {
    /// Shows a request with its plan, command or diff in full.
    pub(super) fn show_request(&mut self, asked: &AskedUse) {
        let Some(request) = self.request_called(asked) else { return };
        let text = request_text(request, Paint { on: self.theme.color });
        let lines = text.lines().map(str::to_owned).collect();
        let keys = [(KeyCommand::Approve, "approve"), (KeyCommand::Reject, "reject")];
        let keys = keys.iter().filter_map(|(command, does)| {
            self.keymap.key_of(*command).map(|key| format!("  {key}: {does}"))
        });
        let (from, kind) = (&request.from, request.kind);
        let title = format!("{from} asks: {kind}{}", keys.collect::<String>());
        let kind = PageKind::Request(asked.id.clone());
        self.dialog = Some(OpenDialog::Page(TextPage { title, lines, kind, scroll: 0 }));
    }

    /// Runs an action in the background and reports its output.
    pub(super) fn run(&mut self, action: TeamAction) -> Vec<Effect> {
        self.perform(Effect::of_action(action, AfterRun::Report))
    }

    /// Asks whether an action is to be run.
    fn confirm(&mut self, words: String, details: String, action: TeamAction) {
        self.confirm_effect(words, details, Effect::of_action(action, AfterRun::Report));
    }

    fn confirm_effect(&mut self, words: String, details: String, effect: Effect) {
        let others = Vec::new();
        self.dialog =
            Some(OpenDialog::Confirmation(Confirmation { words, details, effect, others }));
    }

    /// Asks how to land the commits that a dry run has named in its last line. Later ones stay.
    pub(super) fn ask_to_merge(&mut self, member: MemberName, details: String) {
        let head = details.rsplit_once("--head ").map(|(_, head)| head.trim());
        let Some(head) = head.map(str::to_owned) else {
            // It has no commits.
            return self.show_page(&format!("merge of {member}"), &details, PageKind::Text);
        };
        let effect = |kind| {
            let (member, head) = (member.clone(), head.clone());
            Effect::of_action(TeamAction::Merge { member, head, kind }, AfterRun::Report)
        };
        let other = |key, word, kind| OtherAnswer { key, word, effect: effect(kind) };
        let others = vec![
            other('s', "squash", LandingKind::Squash),
            other('r', "rebase", LandingKind::Rebase),
        ];
        let words = format!("land the work of {member} now?");
        let effect = effect(LandingKind::Merge);
        self.dialog =
            Some(OpenDialog::Confirmation(Confirmation { words, details, effect, others }));
    }

    /// Runs an action and shows its output as a page.
    fn show_output(&mut self, action: TeamAction) -> Vec<Effect> {
        let after = AfterRun::Page { title: action.describe() };
        self.perform(Effect::of_action(action, after))
    }

    pub(super) fn task_command(&mut self, command: KeyCommand) -> Vec<Effect> {
        let Ok(task) = self.target_task() else { return Vec::new() };
        match command {
            KeyCommand::Assign => {
                let member = self.member.as_ref().map(MemberName::to_string).unwrap_or_default();
                self.open_prompt(PromptKind::Assign(task), &member);
            }
            KeyCommand::Cancel => self.open_prompt(PromptKind::Cancel(task), ""),
            KeyCommand::Block => self.open_prompt(PromptKind::Block(task), ""),
            KeyCommand::Unblock => {
                let blockers = self.task_card(task).map(|card| card.blockers.clone());
                let ids: Vec<String> =
                    blockers.unwrap_or_default().iter().map(|id| format!("#{id}")).collect();
                self.open_prompt(PromptKind::Unblock(task), &ids.join(" "));
            }
            KeyCommand::Comment => self.open_prompt(PromptKind::Comment(task), ""),
            KeyCommand::Edit => {
                self.dialog = Some(OpenDialog::Form(ActionForm::edit_task(task)));
                return vec![Effect::ReadTask(task)];
            }
            KeyCommand::Retry => return self.run(TeamAction::RetryTask(task)),
            _ => return self.show_output(TeamAction::ShowTask(task)),
        }
        Vec::new()
    }

    /// Answers the request, or decides about the task, that is highlighted or shown. A request that
    /// is not visible in full is shown first.
    pub(super) fn answer_command(&mut self, command: KeyCommand, now: Timestamp) -> Vec<Effect> {
        let asked = match self.target_answer() {
            Ok(AnswerTarget::Request(asked)) => asked,
            Ok(AnswerTarget::Task(task)) => {
                if command == KeyCommand::Approve {
                    return self.run(TeamAction::ApproveTask(task));
                }
                self.open_prompt(PromptKind::SendBackTask(task), "");
                return Vec::new();
            }
            Err(_) => return Vec::new(),
        };
        if self.has_just_moved(now) {
            let words = format!("the selection has moved by itself, to {}", asked.from);
            self.notify(words, Tone::Waiting, now);
            return Vec::new();
        }
        let Some(request) = self.request_called(&asked).cloned() else { return Vec::new() };
        match command {
            KeyCommand::Reject => self.open_prompt(PromptKind::Reject(asked), ""),
            KeyCommand::Edit => {
                let input = request.body.get("input").map(ToString::to_string);
                self.open_prompt(PromptKind::EditInput(asked), &input.unwrap_or_default());
            }
            // The line to fill in shows the question.
            _ if !request.user_questions().is_empty() => self.ask_next(&asked, Vec::new()),
            _ if !self.is_shown_in_full(&asked) => {
                self.show_request(&asked);
                let words = format!("this is the whole request of {}: answer it here", asked.from);
                self.notify(words, Tone::Waiting, now);
            }
            KeyCommand::AlwaysAllow => self.confirm_always(&asked, &request),
            _ => return self.approve(&asked, &request),
        }
        Vec::new()
    }

    /// Approves a request; one that a rule has asked about, or that may write outside of the
    /// member's directory, after a question.
    fn approve(&mut self, asked: &AskedUse, request: &Shown) -> Vec<Effect> {
        let reasons = request.preview.as_ref().map(ApprovalPreview::reasons).unwrap_or_default();
        self.dialog = None;
        let effect = answer(asked, RequestAnswer::Approve);
        if reasons.is_empty() {
            return self.perform(effect);
        }
        let words = format!("approve {}: {}?", asked.from, asked.words);
        self.confirm_effect(words, reasons.join("\n"), effect);
        Vec::new()
    }

    /// Asks the person the next question of a program, after those that were answered.
    fn ask_next(&mut self, asked: &AskedUse, answers: Vec<String>) {
        let questions = self.request_called(asked).map(Shown::user_questions).unwrap_or_default();
        let Some(question) = questions.into_iter().nth(answers.len()) else { return };
        self.open_prompt(PromptKind::UserAnswer { asked: asked.clone(), question, answers }, "");
    }

    /// Sends the answers of a person once each question has one.
    pub(super) fn answered(&mut self, asked: &AskedUse, answers: Vec<String>) -> Vec<Effect> {
        let count = self.request_called(asked).map_or(0, |request| request.user_questions().len());
        if answers.len() < count {
            self.ask_next(asked, answers);
            return Vec::new();
        }
        self.perform(answer(asked, RequestAnswer::Answers(answers)))
    }

    fn confirm_always(&mut self, asked: &AskedUse, request: &Shown) {
        let rules = request.preview.as_ref().and_then(|preview| preview.always.as_ref().ok());
        let rules = rules.into_iter().flatten();
        let rules: Vec<String> =
            rules.map(|rule| format!("allow {}", String::from(rule.clone()))).collect();
        let words =
            format!("approve {}, and for all members from now on: {}?", asked.from, asked.words);
        let details = format!("It adds to the rules of the team:\n{}", rules.join("\n"));
        self.confirm_effect(words, details, answer(asked, RequestAnswer::ApproveAlways));
    }

    pub(super) fn member_command(&mut self, command: KeyCommand) -> Vec<Effect> {
        let Ok(member) = self.target_member() else { return Vec::new() };
        let details = self.member_details(&member).cloned().unwrap_or_default();
        match command {
            KeyCommand::Type => {
                let effects = self.select_member(member);
                self.typing = true;
                self.screen.leave_history();
                self.show(Panel::Screen);
                return effects;
            }
            KeyCommand::Message => self.open_prompt(PromptKind::Message { to: member }, ""),
            KeyCommand::Shutdown if self.has_ended(&member) => {
                let words = format!("remove {member} from the list? Its files and tasks stay.");
                self.confirm(words, String::new(), TeamAction::ShutDown(member));
            }
            KeyCommand::Shutdown => {
                let words = format!("ask {member} to shut down?");
                self.confirm(words, String::new(), TeamAction::ShutDown(member));
            }
            KeyCommand::Restart if self.has_ended(&member) => {
                return self.run(TeamAction::Resume(member));
            }
            KeyCommand::Restart => {
                let words = format!("restart {member}?");
                self.confirm(words, String::new(), TeamAction::Restart(member));
            }
            KeyCommand::Focus => return self.run(TeamAction::Focus(member)),
            KeyCommand::HideOrShow => {
                let is_hidden = self.is_hidden(&member);
                let action = if is_hidden { TeamAction::Show } else { TeamAction::Hide };
                return self.run(action(member));
            }
            KeyCommand::Attach => {
                return vec![Effect::RunHere(ChosenCommand::Action(TeamAction::Attach(member)))];
            }
            KeyCommand::Log => {
                return vec![Effect::Page(ChosenCommand::Action(TeamAction::ShowLog(member)))];
            }
            KeyCommand::Explain => return self.show_output(TeamAction::Explain(member)),
            KeyCommand::Review | KeyCommand::Merge if details.worktree.is_none() => {}
            KeyCommand::Review => {
                let action = TeamAction::Review(Some(member));
                return vec![Effect::RunHere(ChosenCommand::Action(action))];
            }
            KeyCommand::DiffInPager => {
                return vec![Effect::Page(ChosenCommand::Action(TeamAction::ShowDiff(member)))];
            }
            KeyCommand::Shell => {
                let dir = details.worktree.map(|tree| tree.path).or(details.cwd);
                let shell = dir.map(|dir| Effect::RunHere(ChosenCommand::Shell { dir }));
                return shell.into_iter().collect();
            }
            KeyCommand::Commit => {
                let Some(tree) = details.worktree else { return Vec::new() };
                self.open_prompt(PromptKind::Commit { member, dir: tree.path }, "");
            }
            KeyCommand::Merge => {
                let action = TeamAction::TryMerge(member.clone());
                return self.perform(Effect::of_action(action, AfterRun::AskToMerge(member)));
            }
            _ => {}
        }
        Vec::new()
    }

    /// Asks whether the team on display is to end.
    pub(super) fn end_team(&mut self) {
        let members = self.snapshot.as_ref().map(|snapshot| &snapshot.status.members);
        let names: Vec<&str> =
            members.into_iter().flatten().map(|member| member.name.as_str()).collect();
        let details = if names.is_empty() {
            "All its members have ended.".to_owned()
        } else {
            format!("These members are asked to end: {}", names.join(", "))
        };
        let words = format!("end team {} and delete it?", self.team.as_deref().unwrap_or_default());
        self.confirm(words, details, TeamAction::EndTeam);
    }

    /// Returns true if the last event about the visibility of the member hid it.
    fn is_hidden(&self, member: &MemberName) -> bool {
        use model::team::event::EventKind::{MemberHidden, MemberPlaced, MemberShown};
        let events = self.snapshot.as_ref().map(|snapshot| snapshot.events.iter().rev());
        let last = events.into_iter().flatten().find(|event| {
            event.member.as_ref() == Some(member)
                && matches!(event.event, MemberHidden | MemberShown | MemberPlaced)
        });
        last.is_some_and(|event| event.event == MemberHidden)
    }
}

/// Returns the effect of answering a request. What was answered stays on the screen.
pub(super) fn answer(asked: &AskedUse, answer: RequestAnswer) -> Effect {
    let key = asked.key.clone();
    let verb = match answer {
        RequestAnswer::Approve | RequestAnswer::ApproveWith(_) => "approved",
        RequestAnswer::ApproveAlways => "approved for good",
        RequestAnswer::Answers(_) => "answered",
        RequestAnswer::Reject { .. } => "rejected",
    };
    let words = format!("{key} {verb} {}: {}", asked.from, asked.words);
    let action = TeamAction::Answer { request: asked.id.clone(), answer, key };
    Effect::of_action(action, AfterRun::Answered { words })
}
