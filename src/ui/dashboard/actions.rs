//! The commands on the selected member, task and request.

use super::dialog::{Confirmation, OpenDialog, PageKind, PromptKind, TextPage};
use super::effect::{AfterRun, ChosenCommand, Effect};
use super::keys::KeyCommand;
use super::layout::Panel;
use super::state::Dashboard;
use super::theme::Tone;
use crate::model::id::MemberName;
use crate::model::question::QuestionKind;
use crate::model::task::TaskState;
use crate::model::time::Timestamp;
use crate::ui::Paint;
use crate::ui::request_page::request_text;

impl Dashboard {
    /// Shows the selected request with its plan, command or diff in full.
    pub(super) fn request_page(&mut self) -> Vec<Effect> {
        let Some(request) = self.selected_request() else { return Vec::new() };
        let text = request_text(request, Paint { on: self.theme.color });
        let lines = text.lines().map(str::to_owned).collect();
        let title = format!("{} asks: {}  y: approve  r: reject", request.from, request.kind);
        let kind = PageKind::Request;
        self.dialog = Some(OpenDialog::Page(TextPage { title, lines, kind, scroll: 0 }));
        Vec::new()
    }

    pub(super) fn task_command(&mut self, command: KeyCommand, now: Timestamp) -> Vec<Effect> {
        let Some(task) = self.task else {
            self.notify("there is no task", Tone::Plain, now);
            return Vec::new();
        };
        match command {
            KeyCommand::Assign => {
                let member = self.member.as_ref().map(MemberName::to_string).unwrap_or_default();
                self.ask(PromptKind::Assign { task }, &member);
                Vec::new()
            }
            KeyCommand::Retry => match self.task_card(task).map(|task| task.state) {
                Some(TaskState::Failed | TaskState::Stale) => {
                    self.run(["retry".to_owned(), task.to_string()])
                }
                _ => {
                    self.notify(format!("#{task} has not failed"), Tone::Plain, now);
                    Vec::new()
                }
            },
            _ => {
                let command =
                    ChosenCommand::verb(["task".to_owned(), "get".to_owned(), task.to_string()]);
                let title = format!("#{task}");
                let after = AfterRun::Page { title, is_diff: false };
                self.perform(Effect::Run { command, after })
            }
        }
    }

    /// Answers the selected request; on the board, decides about the selected task in review.
    pub(super) fn request_command(&mut self, command: KeyCommand, now: Timestamp) -> Vec<Effect> {
        let reviewed =
            self.task.and_then(|id| self.task_card(id)).map(|task| (task.id, task.state));
        if let (Panel::Board, Some((task, TaskState::InReview))) = (self.focus, reviewed) {
            match command {
                KeyCommand::Approve => {
                    return self.run(["task".to_owned(), "approve".to_owned(), task.to_string()]);
                }
                KeyCommand::Reject => self.ask(PromptKind::RejectTask { task }, ""),
                _ => self.notify("a task is approved or rejected", Tone::Plain, now),
            }
            return Vec::new();
        }
        let Some(request) = self.selected_request() else {
            self.notify("there is no open request", Tone::Plain, now);
            return Vec::new();
        };
        let id = request.request_id.to_string();
        if request.kind == "shutdown" {
            let words = format!("{} was asked to shut down and answers itself", request.from);
            self.notify(words, Tone::Plain, now);
            return Vec::new();
        }
        if request.answered_by == Some("pane") {
            let words = format!("{} can be answered only on its screen: `i` types there", id);
            self.notify(words, Tone::Waiting, now);
            return Vec::new();
        }
        let is_tool = request.kind == QuestionKind::Permission.as_str();
        let input = request.body.get("input").map(ToString::to_string).unwrap_or_default();
        match command {
            KeyCommand::Reject => self.ask(PromptKind::Reject { id }, ""),
            KeyCommand::EditAndApprove if is_tool => {
                self.ask(PromptKind::EditInput { id }, &input);
            }
            KeyCommand::EditAndApprove => {
                self.notify("only the input of a tool can be edited", Tone::Plain, now);
            }
            KeyCommand::AlwaysAllow => {
                return self.run(["answer", &id, "--approve", "--always"]);
            }
            _ => return self.run(["answer", &id, "--approve"]),
        }
        Vec::new()
    }

    pub(super) fn member_command(&mut self, command: KeyCommand, now: Timestamp) -> Vec<Effect> {
        let Some(member) = self.member.clone() else {
            self.notify("there is no member", Tone::Plain, now);
            return Vec::new();
        };
        let name = member.to_string();
        let details = self.member_details(&member).cloned().unwrap_or_default();
        let ask = |dashboard: &mut Dashboard, words: String, verb: &str| {
            let effect = Effect::Run {
                command: ChosenCommand::verb([verb, name.as_str()]),
                after: AfterRun::Report,
            };
            let details = String::new();
            dashboard.dialog =
                Some(OpenDialog::Confirmation(Confirmation { words, details, effect }));
            Vec::new()
        };
        match command {
            KeyCommand::Type => {
                self.typing = true;
                self.screen.leave_history();
                self.show(Panel::Screen);
                Vec::new()
            }
            KeyCommand::Message => {
                self.ask(PromptKind::Message { to: member }, "");
                Vec::new()
            }
            KeyCommand::Shutdown => ask(self, format!("ask {name} to shut down?"), "shutdown"),
            KeyCommand::Restart => ask(self, format!("restart {name}?"), "restart"),
            KeyCommand::Focus => self.run(["focus", &name]),
            KeyCommand::HideOrShow => {
                let is_hidden = self.is_hidden(&member);
                self.run([if is_hidden { "show" } else { "hide" }, &name])
            }
            KeyCommand::Attach => vec![Effect::RunHere(ChosenCommand::verb(["attach", &name]))],
            KeyCommand::Log => vec![Effect::Page(ChosenCommand::verb(["logs", &name]))],
            KeyCommand::Explain => {
                let after = AfterRun::Page { title: name.clone(), is_diff: false };
                let command = ChosenCommand::verb(["explain", &name]);
                self.perform(Effect::Run { command, after })
            }
            KeyCommand::Diff => {
                let after = AfterRun::Page { title: format!("diff of {name}"), is_diff: true };
                let command = ChosenCommand::verb(["worktree", "diff", &name]);
                self.perform(Effect::Run { command, after })
            }
            KeyCommand::DiffInPager => {
                vec![Effect::Page(ChosenCommand::verb(["worktree", "diff", &name]))]
            }
            KeyCommand::Shell | KeyCommand::Commit
                if details.worktree.as_ref().is_some_and(|tree| tree.copy.is_some()) =>
            {
                self.without(&name, "worktree on this machine", now)
            }
            KeyCommand::Shell => match details.worktree.map(|tree| tree.path).or(details.cwd) {
                Some(dir) => vec![Effect::RunHere(ChosenCommand::Shell { dir })],
                None => self.without(&name, "directory on record", now),
            },
            KeyCommand::Commit => match details.worktree {
                Some(tree) => {
                    self.ask(PromptKind::Commit { member, dir: tree.path }, "");
                    Vec::new()
                }
                None => self.without(&name, "worktree", now),
            },
            KeyCommand::Merge => match details.worktree {
                Some(tree) => {
                    let branch = tree.branch_here();
                    let merge = ChosenCommand::Program {
                        argv: ["git", "merge", "--no-edit", &branch].map(str::to_owned).to_vec(),
                        dir: tree.repository,
                    };
                    let effect = Effect::Run { command: merge, after: AfterRun::Report };
                    let question = format!("merge {branch} now?");
                    let after = AfterRun::Ask { question, effect: Box::new(effect) };
                    let command = ChosenCommand::verb(["worktree", "merge", &name, "--dry-run"]);
                    self.perform(Effect::Run { command, after })
                }
                None => self.without(&name, "worktree", now),
            },
            _ => Vec::new(),
        }
    }

    fn without(&mut self, name: &str, what: &str, now: Timestamp) -> Vec<Effect> {
        self.notify(format!("{name} has no {what}"), Tone::Plain, now);
        Vec::new()
    }

    /// Returns true if the last event about the visibility of the member hid it.
    fn is_hidden(&self, member: &MemberName) -> bool {
        use crate::model::event::EventKind::{MemberHidden, MemberPlaced, MemberShown};
        let events = self.snapshot.as_ref().map(|snapshot| snapshot.events.iter().rev());
        let last = events.into_iter().flatten().find(|event| {
            event.member.as_ref() == Some(member)
                && matches!(event.event, MemberHidden | MemberShown | MemberPlaced)
        });
        last.is_some_and(|event| event.event == MemberHidden)
    }
}
