//! The object of a key: what is highlighted in the panel with the focus. The line at the bottom
//! and the keys themselves use the same functions, so a key does what is written beside it.

use unicode_width::UnicodeWidthStr;

use super::dialog::{AskedUse, OpenDialog, PageKind, TextPage};
use super::effect::ChosenCommand;
use super::keys::{BINDINGS, Binding, KeyCommand, KeyGroup};
use super::layout::Panel;
use super::lists;
use super::state::Dashboard;
use super::team_action::TeamAction;
use model::board::task::{TaskAction, TaskState};
use model::decisions::question::{Ask, QuestionKind};
use model::id::{MemberName, RequestId, TaskId};
use model::mail::protocol::Message;
use model::text;
use ops::decisions::requests::Shown;
use ops::views::snapshot::TaskCard;

/// The object of the keys that answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerTarget {
    Request(AskedUse),
    /// A task in review.
    Task(TaskId),
}

/// A request in one line.
struct RequestWords {
    words: String,
    /// Nothing of the request is missing from the words.
    is_whole: bool,
}

impl Dashboard {
    /// Returns the member that the panel with the focus is about.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(super) fn target_member(&self) -> Result<MemberName, String> {
        let none = |what: &str| {
            let words = format!("no member is selected in the {what}");
            Err(self.keymap.hint(&words, &[(KeyCommand::Show(Panel::Members), "shows them")]))
        };
        match self.focus {
            Panel::Requests => match self.selected_request() {
                Some(request) => Ok(request.from.clone()),
                None => Err("there is no open request".to_owned()),
            },
            Panel::Board => {
                let task = self.target_task()?;
                let owner = self.task_card(task).and_then(|card| card.owner.clone());
                let owner = owner.and_then(|owner| MemberName::existing(&owner).ok());
                let owner = owner.filter(|owner| self.member_status(owner).is_some());
                owner.ok_or(format!("#{task} has no owner on the team"))
            }
            Panel::Events => none("events"),
            Panel::Messages if self.all_messages => none("messages of all"),
            Panel::Members | Panel::Screen | Panel::Messages => {
                self.member.clone().ok_or("there is no member".to_owned())
            }
        }
    }

    /// Returns the task that is highlighted on the board.
    ///
    /// # Errors
    /// The reason why there is none.
    pub(super) fn target_task(&self) -> Result<TaskId, String> {
        match (self.focus, self.task) {
            (Panel::Board, _) if self.as_graph => {
                let words = "no task is selected in the graph";
                Err(self.keymap.hint(words, &[(KeyCommand::Graph, "shows the columns")]))
            }
            (Panel::Board, Some(task)) => Ok(task),
            (Panel::Board, None) => Err("there is no task".to_owned()),
            (_, _) => {
                let board = (KeyCommand::Show(Panel::Board), "shows the board");
                Err(self.keymap.hint("no task is selected here", &[board]))
            }
        }
    }

    /// Returns what the keys that answer act on: the request of the open page, the task in review,
    /// the highlighted request, or the oldest open request of the member.
    ///
    /// # Errors
    /// The reason why there is nothing to answer.
    pub(super) fn target_answer(&self) -> Result<AnswerTarget, String> {
        let request = self.request_in_focus()?;
        let Some(request) = request else {
            return self.task_for(TaskAction::Approve).map(AnswerTarget::Task);
        };
        let from = &request.from;
        if request.kind == "shutdown" {
            return Err(format!("{from} was asked to shut down and answers itself"));
        }
        if request.answered_by == Some("pane") {
            let words = format!("{from} can be answered only on its screen");
            return Err(self.keymap.hint(&words, &[(KeyCommand::Type, "types there")]));
        }
        let asked = AskedUse {
            id: request.request_id.clone(),
            from: from.clone(),
            words: request_words(request).words,
            key: self.pressed.clone(),
        };
        if self.is_being_answered(&asked.id) {
            return Err(format!("the request of {from} is being answered"));
        }
        Ok(AnswerTarget::Request(asked))
    }

    /// Returns the request that is shown or highlighted; `None` if the focus is on the board.
    fn request_in_focus(&self) -> Result<Option<&Shown>, String> {
        if let Some(OpenDialog::Page(TextPage { kind: PageKind::Request(id), .. })) = &self.dialog {
            let open = self.open_requests().find(|request| request.request_id == *id);
            return open.map(Some).ok_or("the request is no longer open".to_owned());
        }
        match self.focus {
            Panel::Board => Ok(None),
            Panel::Requests => {
                self.selected_request().map(Some).ok_or("there is no open request".to_owned())
            }
            Panel::Members | Panel::Screen | Panel::Messages | Panel::Events => {
                let member = self.target_member()?;
                let first = self.request_of(&member);
                first.map(Some).ok_or_else(|| {
                    let words = format!("{member} has no open request");
                    match self.attention.is_empty() {
                        true => words,
                        false => self
                            .keymap
                            .hint(&words, &[(KeyCommand::NextAttention, "shows who waits")]),
                    }
                })
            }
        }
    }

    /// Returns the id of the request in the focus, to notice that it has changed.
    pub(super) fn request_id_in_focus(&self) -> Option<RequestId> {
        let request = self.request_in_focus().ok()??;
        Some(request.request_id.clone())
    }

    /// Returns the open requests of a member, oldest first.
    fn requests_of(&self, member: &MemberName) -> impl Iterator<Item = &Shown> {
        let all = self.open_requests();
        all.filter(move |request| request.from == *member && request.kind != "shutdown")
    }

    /// Returns the request of a member that the keys answer: the oldest open one. A request for its
    /// shutdown, which it answers itself, comes last.
    pub(super) fn request_of(&self, member: &MemberName) -> Option<&Shown> {
        let own = self.open_requests().filter(|request| request.from == *member);
        own.min_by_key(|request| request.kind == "shutdown")
    }

    /// Returns true while an answer to the request is on its way.
    pub(super) fn is_being_answered(&self, id: &RequestId) -> bool {
        self.running.iter().any(|command| {
            matches!(command, ChosenCommand::Action(TeamAction::Answer { request, .. })
                if request == id)
        })
    }

    /// Returns a request that is still open.
    pub(super) fn request_called(&self, asked: &AskedUse) -> Option<&Shown> {
        self.open_requests().find(|request| request.request_id == asked.id)
    }

    /// Returns true if the person sees the whole request: on its page, in its panel, or in the line
    /// at the bottom.
    pub(super) fn is_shown_in_full(&self, asked: &AskedUse) -> bool {
        if let Some(OpenDialog::Page(TextPage { kind: PageKind::Request(_), .. })) = &self.dialog {
            return true;
        }
        let Some(request) = self.request_called(asked) else { return false };
        let panel = self.places.place_of(Panel::Requests);
        let in_panel = self.focus == Panel::Requests
            && panel.is_some_and(|place| lists::shows_all_of(self, request, place));
        let fits_in_footer = |key: String| {
            let offer = self.offer(KeyCommand::Approve).unwrap_or_default();
            let label = text::line(&format!("{key} {offer}"));
            UnicodeWidthStr::width(label.as_str()) <= usize::from(self.places.footer.width)
        };
        let in_footer = request_words(request).is_whole
            && self.keymap.key_of(KeyCommand::Approve).is_some_and(fits_in_footer);
        in_panel || in_footer
    }

    /// Says that the team was deleted, with the keys that lead on.
    pub(super) fn deleted_words(&self) -> String {
        let words = format!("team {} was deleted", self.team.as_deref().unwrap_or_default());
        let keys = [(KeyCommand::Teams, "lists other teams"), (KeyCommand::Quit, "quits")];
        self.keymap.hint(&words, &keys)
    }

    /// Returns the text beside a key: its verb, and the name of its object.
    ///
    /// # Errors
    /// The reason why the key has no object here.
    pub(super) fn offer(&self, command: KeyCommand) -> Result<String, String> {
        if self.is_deleted && acts_on_team(command) {
            return Err(self.deleted_words());
        }
        if self.is_foreign() && changes_team(command) {
            return Err(
                "another program leads this team: only messages and tasks can be sent".to_owned()
            );
        }
        let task = |verb: &str| self.target_task().map(|task| format!("{verb} #{task}"));
        match command {
            KeyCommand::Approve => match self.target_answer()? {
                AnswerTarget::Task(task) => Ok(format!("approve #{task}")),
                AnswerTarget::Request(asked) => {
                    let count = match self.focus {
                        Panel::Requests => 1,
                        _ => self.requests_of(&asked.from).count(),
                    };
                    let nth = if count > 1 { format!(" (1 of {count})") } else { String::new() };
                    let asks = self
                        .request_called(&asked)
                        .is_some_and(|request| !request.user_questions().is_empty());
                    let verb = if asks { "answer" } else { "approve" };
                    Ok(format!("{verb} {}{nth}: {}", asked.from, asked.words))
                }
            },
            KeyCommand::Reject => self.target_answer().map(|target| match target {
                AnswerTarget::Task(task) => format!("send back #{task}"),
                AnswerTarget::Request(_) => "reject".to_owned(),
            }),
            KeyCommand::AlwaysAllow => {
                let AnswerTarget::Request(asked) = self.target_answer()? else {
                    return Err("a task is approved or sent back".to_owned());
                };
                let preview = self.request_called(&asked).and_then(|one| one.preview.as_ref());
                match preview.map(|preview| &preview.always) {
                    Some(Ok(_)) => Ok("always".to_owned()),
                    Some(Err(problem)) => Err(problem.clone()),
                    None => Err("only the use of a tool can be allowed for good".to_owned()),
                }
            }
            KeyCommand::Edit if self.focus == Panel::Board && self.dialog.is_none() => task("edit"),
            KeyCommand::Edit => {
                let request = match &self.target_answer()? {
                    AnswerTarget::Request(asked) => self.request_called(asked),
                    AnswerTarget::Task(_) => None,
                };
                match request.map(|request| (request.kind, request.answered_by)) {
                    Some((kind, None)) if kind == QuestionKind::Permission.as_str() => {
                        Ok("edit".to_owned())
                    }
                    _ => Err("only the input of a tool can be edited".to_owned()),
                }
            }
            KeyCommand::TaskPage => task("show"),
            KeyCommand::Assign => task("assign"),
            KeyCommand::Cancel => {
                self.task_for(TaskAction::Cancel).map(|id| format!("cancel #{id}"))
            }
            KeyCommand::Block => self.open_task().map(|task| format!("block #{}", task.id)),
            KeyCommand::Comment => task("comment on"),
            KeyCommand::Unblock => {
                let task = self.open_task()?;
                if task.blockers.is_empty() {
                    Err(format!("#{} waits for no task", task.id))
                } else {
                    Ok(format!("unblock #{}", task.id))
                }
            }
            KeyCommand::Retry => self.task_for(TaskAction::Retry).map(|id| format!("retry #{id}")),
            KeyCommand::Type
            | KeyCommand::Message
            | KeyCommand::Shutdown
            | KeyCommand::Restart
            | KeyCommand::Focus
            | KeyCommand::HideOrShow
            | KeyCommand::Attach
            | KeyCommand::Shell
            | KeyCommand::Review
            | KeyCommand::DiffInPager
            | KeyCommand::Commit
            | KeyCommand::Merge
            | KeyCommand::Log
            | KeyCommand::Explain => self.member_offer(command),
            KeyCommand::Spawn => Ok("spawn".to_owned()),
            KeyCommand::NewTask => Ok("new task".to_owned()),
            KeyCommand::EndTeam => match &self.team {
                Some(team) => Ok(format!("end {team}")),
                None => Err("no team is open".to_owned()),
            },
            KeyCommand::Reviews => match &self.team {
                Some(_) => Ok("reviews".to_owned()),
                None => Err("no team is open".to_owned()),
            },
            KeyCommand::StartTeam => Ok("start a team".to_owned()),
            KeyCommand::Broadcast => Ok("message to all".to_owned()),
            KeyCommand::Help => Ok("help".to_owned()),
            KeyCommand::Quit => Ok("quit".to_owned()),
            KeyCommand::NextAttention => Ok("next".to_owned()),
            KeyCommand::Palette => Ok("command".to_owned()),
            KeyCommand::NextPanel => Ok("panel".to_owned()),
            KeyCommand::Filter
            | KeyCommand::Leave
            | KeyCommand::PreviousPanel
            | KeyCommand::Show(_)
            | KeyCommand::Zoom
            | KeyCommand::Teams
            | KeyCommand::Snooze
            | KeyCommand::Sort
            | KeyCommand::Back
            | KeyCommand::Redraw
            | KeyCommand::Suspend
            | KeyCommand::Up
            | KeyCommand::Down
            | KeyCommand::Left
            | KeyCommand::Right
            | KeyCommand::First
            | KeyCommand::Last
            | KeyCommand::PageUp
            | KeyCommand::PageDown
            | KeyCommand::Open
            | KeyCommand::Graph
            | KeyCommand::AllMessages => Ok(String::new()),
        }
    }

    /// Returns the highlighted task, if its state allows the action.
    fn task_for(&self, action: TaskAction) -> Result<TaskId, String> {
        let card = self.task_card_if(|state| match state {
            // A blocked task is pending.
            TaskState::Blocked => action.from().contains(&TaskState::Pending),
            state => action.from().contains(&state),
        })?;
        Ok(card.id)
    }

    /// Returns the highlighted task, which must not have ended.
    fn open_task(&self) -> Result<&TaskCard, String> {
        self.task_card_if(|state| !state.is_over())
    }

    /// Returns the highlighted task, if its state is one of those that are allowed.
    fn task_card_if(&self, is_allowed: impl Fn(TaskState) -> bool) -> Result<&TaskCard, String> {
        let id = self.target_task()?;
        let card = self.task_card(id).ok_or(format!("#{id} is gone"))?;
        if is_allowed(card.state) {
            Ok(card)
        } else {
            Err(format!("#{id} is {}", card.state.as_str().replace('_', " ")))
        }
    }

    fn member_offer(&self, command: KeyCommand) -> Result<String, String> {
        let name = self.target_member()?;
        let has_ended = self.has_ended(&name);
        let details = self.member_details(&name);
        let tree = details.and_then(|details| details.worktree.as_ref());
        let without = |what: &str| Err(format!("{name} has no {what}"));
        let verb = match command {
            KeyCommand::Restart if has_ended => "resume",
            KeyCommand::Shutdown if has_ended => "remove",
            KeyCommand::Type
            | KeyCommand::Message
            | KeyCommand::Focus
            | KeyCommand::HideOrShow
            | KeyCommand::Attach
                if has_ended =>
            {
                let words = format!("{name} has ended");
                return Err(self.keymap.hint(&words, &[(KeyCommand::Restart, "resumes it")]));
            }
            KeyCommand::Shell | KeyCommand::Commit
                if tree.is_some_and(|tree| tree.copy.is_some()) =>
            {
                return without("worktree on this machine");
            }
            KeyCommand::Commit
            | KeyCommand::Merge
            | KeyCommand::Review
            | KeyCommand::DiffInPager
                if tree.is_none() =>
            {
                return without("worktree");
            }
            KeyCommand::Review => "review",
            KeyCommand::Shell
                if tree.is_none() && details.is_none_or(|details| details.cwd.is_none()) =>
            {
                return without("directory on record");
            }
            KeyCommand::Restart => "restart",
            KeyCommand::Shutdown => "shut down",
            KeyCommand::Type => "type into",
            KeyCommand::Message => "message",
            _ => "",
        };
        Ok(format!("{verb} {name}"))
    }
}

/// Returns a request in one line: its command, or else its summary.
fn request_words(request: &Shown) -> RequestWords {
    let summary = || RequestWords { words: request.summary.clone(), is_whole: false };
    match Ask::of(Message::parse(&request.body.to_string())) {
        Some(Ask::Permission(tool)) if tool.tool_name == "Bash" && tool.answered_by.is_none() => {
            let Some(command) = tool.input.get("command").and_then(|command| command.as_str())
            else {
                return summary();
            };
            let known = ["command", "description", "timeout"];
            let has_only = |input: &serde_json::Map<String, serde_json::Value>| {
                input.keys().all(|key| known.contains(&key.as_str()))
            };
            let is_whole = tool.input.as_object().is_some_and(has_only)
                && !command.contains(|c: char| c.is_control());
            RequestWords { words: command.to_owned(), is_whole }
        }
        Some(Ask::Sandbox(_)) => RequestWords { is_whole: true, ..summary() },
        Some(Ask::Permission(_) | Ask::Plan(_)) | None => summary(),
    }
}

/// Returns true for a command that needs more of the team than its last state.
fn acts_on_team(command: KeyCommand) -> bool {
    let acts = |binding: &Binding| {
        binding.command == command
            && matches!(binding.group, KeyGroup::Member | KeyGroup::Task | KeyGroup::Request)
    };
    let is_view = matches!(command, KeyCommand::Graph | KeyCommand::AllMessages);
    command == KeyCommand::EndTeam || (!is_view && BINDINGS.iter().any(acts))
}

/// Returns true for a command that a team of another program does not allow.
fn changes_team(command: KeyCommand) -> bool {
    matches!(
        command,
        KeyCommand::Type
            | KeyCommand::Spawn
            | KeyCommand::Shutdown
            | KeyCommand::Restart
            | KeyCommand::HideOrShow
            | KeyCommand::Commit
            | KeyCommand::Merge
            | KeyCommand::Approve
            | KeyCommand::Reject
            | KeyCommand::AlwaysAllow
            | KeyCommand::EndTeam
    )
}
