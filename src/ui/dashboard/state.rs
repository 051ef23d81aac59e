//! The state of the dashboard: the team as last read, what is selected, and what is shown.

use std::collections::{BTreeMap, BTreeSet};

use strum::VariantArray;

use super::completion::Completion;
use super::dialog::{OpenDialog, PromptKind, TeamPicker, TextPrompt};
use super::effect::ChosenCommand;
use super::keymap::Keymap;
use super::keys::KeyCommand;
use super::layout::{LayoutView, Panel, Places, Split};
use super::screen::ScreenView;
use super::theme::{Theme, Tone};
use crate::mail::in_one_line;
use model::board::task::TaskState;
use model::id::{MemberName, TaskId};
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::members::assessment::Doing;
use model::time::Timestamp;
use ops::decisions::requests::Shown;
use ops::members::status::{LeftStatus, MemberStatus};
use ops::views::snapshot::{AttentionCause, AttentionItem, MemberDetails, TaskCard, TeamSnapshot};

pub(super) const MINUTE_MS: u64 = 60_000;
const SECOND_MS: u64 = 1_000;
/// Time for which an item is not mentioned after it was snoozed.
const SNOOZE_MS: u64 = 15 * 60 * 1000;
/// Time for which a line about a finished command is shown.
const NOTICE_MS: u64 = 8_000;
/// Time for which an answer to a request is shown.
const ANSWER_MS: u64 = 60_000;
/// Time for which keys do not answer a request that was not selected by the person.
const MOVED_MS: u64 = 700;

/// The order of the members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, strum::VariantArray, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(super) enum MemberOrder {
    /// Those who need a person first, then those at work.
    #[default]
    Attention,
    Name,
    /// The latest change of state first.
    Age,
}

/// A column of the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::VariantArray, strum::IntoStaticStr)]
pub(super) enum BoardColumn {
    #[strum(serialize = "To do")]
    ToDo,
    #[strum(serialize = "In progress")]
    Doing,
    #[strum(serialize = "In review")]
    Review,
    Done,
}

impl BoardColumn {
    pub(super) fn of(state: TaskState) -> BoardColumn {
        match state {
            // No member works on a failed task, and a retry makes it pending.
            TaskState::Pending | TaskState::Blocked | TaskState::Failed => BoardColumn::ToDo,
            TaskState::InProgress | TaskState::Stopping | TaskState::Stale => BoardColumn::Doing,
            TaskState::InReview => BoardColumn::Review,
            TaskState::Completed | TaskState::Cancelled => BoardColumn::Done,
        }
    }

    pub(super) fn index(self) -> usize {
        BoardColumn::VARIANTS.iter().position(|column| *column == self).unwrap_or(0)
    }
}

/// A line at the bottom about something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Notice {
    pub(super) words: String,
    pub(super) tone: Tone,
    until: Timestamp,
}

/// The dashboard. It draws and decides; its driver carries out the effects.
#[derive(Default)]
pub struct Dashboard {
    pub(super) theme: Theme,
    pub(super) keymap: Keymap,
    /// The label of the key of the last command.
    pub(super) pressed: String,
    /// `None` until a person has chosen one.
    pub(super) team: Option<String>,
    pub(super) snapshot: Option<TeamSnapshot>,
    /// The reason why the team could not be read.
    pub(super) problem: Option<String>,
    /// The team was deleted; the snapshot is the last one that was read.
    pub(super) is_deleted: bool,
    /// The items that wait for a person, without the snoozed ones.
    pub(super) attention: Vec<AttentionItem>,
    snoozed: BTreeMap<AttentionCause, Timestamp>,
    pub(super) focus: Panel,
    pub(super) lower: Panel,
    pub(super) zoomed: bool,
    pub(super) split: Split,
    pub(super) order: MemberOrder,
    pub(super) filter: String,
    /// The members on display, in order.
    pub(super) members: Vec<MemberName>,
    /// Members that have left the roster without a request.
    ended: Vec<MemberStatus>,
    pub(super) member: Option<MemberName>,
    pub(super) previous: Option<MemberName>,
    /// The last thing that each member has said.
    pub(super) last_words: BTreeMap<String, String>,
    /// The tasks on display by column: indexes into the snapshot's tasks.
    pub(super) columns: [Vec<usize>; 4],
    pub(super) task: Option<TaskId>,
    /// The board is shown as a graph of dependencies.
    pub(super) as_graph: bool,
    pub(super) request: Option<String>,
    /// Messages of all members are shown, not only those of the selected one.
    pub(super) all_messages: bool,
    /// The ids of the lead's messages that the focused panel has shown, and those of them that the
    /// driver has not marked yet.
    pub(super) shown_mail: BTreeSet<String>,
    pub(super) unmarked_mail: Vec<Envelope>,
    /// Number of lines below the visible part of messages and of events, and above that of the
    /// graph. A key may scroll too far; each frame corrects that.
    pub(super) scrolled: BTreeMap<Panel, usize>,
    pub(super) screen: ScreenView,
    /// Keys go to the selected member.
    pub(super) typing: bool,
    pub(super) dialog: Option<OpenDialog>,
    pub(super) completion: Completion,
    pub(super) notice: Option<Notice>,
    /// The last answer to a request.
    pub(super) answered: Option<Notice>,
    /// The time at which another request became the one to answer without a key of the person.
    pub(super) moved_at: Option<Timestamp>,
    /// Commands that run in the background.
    pub(super) running: Vec<ChosenCommand>,
    /// The places of the last frame.
    pub(super) places: Places,
    pub(super) dragged: Option<DraggedEdge>,
}

/// An edge between panels that the mouse drags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DraggedEdge {
    Divider,
    Fold,
}

impl Dashboard {
    /// Creates the dashboard of a team of which nothing is known yet.
    pub fn new(team: &str, theme: Theme) -> Dashboard {
        let team = Some(team.to_owned());
        Dashboard { team, dialog: None, ..Dashboard::choosing_a_team(theme) }
    }

    /// Returns the lead's unread messages that the focused panel has shown since the last call.
    pub fn take_shown_mail(&mut self) -> Vec<Envelope> {
        std::mem::take(&mut self.unmarked_mail)
    }

    /// Creates the dashboard with a list of teams to choose from.
    pub fn choosing_a_team(theme: Theme) -> Dashboard {
        let dialog = Some(OpenDialog::Teams(TeamPicker { choices: None, at: 0 }));
        Dashboard { theme, lower: Panel::Board, dialog, ..Dashboard::default() }
    }

    /// Replaces the keys.
    pub fn with_keymap(self, keymap: Keymap) -> Dashboard {
        Dashboard { keymap, ..self }
    }

    pub(super) fn view(&self) -> LayoutView {
        LayoutView { focus: self.focus, lower: self.lower, zoomed: self.zoomed, split: self.split }
    }

    /// Takes a newer state of the team.
    pub(super) fn take_snapshot(&mut self, snapshot: TeamSnapshot) {
        (self.problem, self.is_deleted) = (None, false);
        // Later messages replace earlier ones.
        self.last_words = snapshot
            .messages
            .iter()
            .filter(|message| is_told(&message.envelope.text))
            .map(|message| (message.envelope.from.clone(), in_one_line(&message.envelope)))
            .collect();
        self.ended = snapshot.status.left.iter().map(ended_member).collect();
        self.snapshot = Some(snapshot);
        self.arrange();
    }

    /// Recomputes what is on display: attention, order, filter and columns.
    pub(super) fn arrange(&mut self) {
        let Some(snapshot) = &self.snapshot else { return };
        let now = snapshot.read_at;
        self.snoozed.retain(|_, until| *until > now);
        self.attention = snapshot.attention();
        self.attention.retain(|item| !self.snoozed.contains_key(&item.cause));
        self.members = self.ordered_members(snapshot);
        self.columns = self.sorted_tasks(snapshot);
        if self.member.as_ref().is_none_or(|member| !self.members.contains(member)) {
            self.member = self.members.first().cloned();
        }
        let requests = self.requests();
        let is_open = |id: &String| requests.iter().any(|one| one.request_id.as_str() == id);
        if !self.request.as_ref().is_some_and(is_open) {
            let next = requests.first().map(|one| one.request_id.to_string());
            let had_one = std::mem::replace(&mut self.request, next).is_some();
            // After the last one is answered, its panel is of no use.
            if had_one && self.request.is_none() && self.focus == Panel::Requests {
                self.focus = Panel::Members;
            }
        }
        if self.task.as_ref().is_none_or(|id| self.column_of(*id).is_none()) {
            self.task = self.columns.iter().flatten().next().map(|at| snapshot.tasks[*at].id);
        }
    }

    fn ordered_members(&self, snapshot: &TeamSnapshot) -> Vec<MemberName> {
        let shown = |member: &&MemberStatus| {
            let task = member.activity.as_deref().unwrap_or_default();
            let role = member.role.as_deref().unwrap_or_default();
            self.passes([member.name.as_str(), role, task, member.state.as_str()])
        };
        let all = snapshot.status.members.iter().chain(&self.ended);
        let mut members: Vec<&MemberStatus> = all.filter(shown).collect();
        members.sort_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
        match self.order {
            MemberOrder::Name => {}
            MemberOrder::Attention => members.sort_by_key(|member| {
                let waiting = self
                    .attention
                    .iter()
                    .position(|item| item.member.as_ref() == Some(&member.name));
                let is_idle = !matches!(member.state.doing, Doing::Working | Doing::Retrying);
                (waiting.unwrap_or(usize::MAX), is_over(&member.state.doing), is_idle)
            }),
            MemberOrder::Age => members.sort_by_key(|member| {
                let details = snapshot.details.get(&member.name);
                let since = details.and_then(|details| details.state_since);
                std::cmp::Reverse(since.map_or(0, |since| since.0))
            }),
        }
        members.into_iter().map(|member| member.name.clone()).collect()
    }

    fn sorted_tasks(&self, snapshot: &TeamSnapshot) -> [Vec<usize>; 4] {
        let mut columns: [Vec<usize>; 4] = Default::default();
        for (at, task) in snapshot.tasks.iter().enumerate() {
            let owner = task.owner.as_deref().unwrap_or_default();
            let key = task.key.as_deref().unwrap_or_default();
            if self.passes([task.subject.as_str(), owner, key, &format!("#{}", task.id)]) {
                columns[BoardColumn::of(task.state).index()].push(at);
            }
        }
        let tasks = &snapshot.tasks;
        columns[BoardColumn::ToDo.index()].sort_by_key(|at| {
            let task = &tasks[*at];
            // First the tasks that can be begun, then those that can be retried.
            let rank = match task.state {
                TaskState::Failed => 1,
                TaskState::Blocked => 2,
                _ => 0,
            };
            (rank, std::cmp::Reverse(task.priority), task.id)
        });
        columns[BoardColumn::Done.index()].reverse();
        columns
    }

    /// Returns true if a text contains the filter, ignoring case.
    pub(super) fn passes<const N: usize>(&self, texts: [&str; N]) -> bool {
        let wanted = self.filter.to_lowercase();
        wanted.is_empty() || texts.iter().any(|text| text.to_lowercase().contains(&wanted))
    }

    pub(super) fn member_status(&self, name: &MemberName) -> Option<&MemberStatus> {
        let members = &self.snapshot.as_ref()?.status.members;
        members.iter().chain(&self.ended).find(|member| member.name == *name)
    }

    /// Returns true for a member whose run is over, on the roster or not.
    pub(super) fn has_ended(&self, name: &MemberName) -> bool {
        self.member_status(name).is_some_and(|member| is_over(&member.state.doing))
    }

    pub(super) fn member_details(&self, name: &MemberName) -> Option<&MemberDetails> {
        self.snapshot.as_ref()?.details.get(name)
    }

    pub(super) fn task_card(&self, id: TaskId) -> Option<&TaskCard> {
        let tasks = &self.snapshot.as_ref()?.tasks;
        tasks.binary_search_by_key(&id, |task| task.id).ok().map(|at| &tasks[at])
    }

    /// Returns the column of a task on display and its place in it.
    pub(super) fn column_of(&self, id: TaskId) -> Option<(usize, usize)> {
        let tasks = &self.snapshot.as_ref()?.tasks;
        let column = BoardColumn::of(self.task_card(id)?.state).index();
        let place = self.columns[column].iter().position(|at| tasks[*at].id == id)?;
        Some((column, place))
    }

    /// Returns all open requests, oldest first.
    pub(super) fn open_requests(&self) -> impl Iterator<Item = &Shown> {
        self.snapshot.iter().flat_map(|snapshot| &snapshot.requests)
    }

    /// Returns the open requests on display, oldest first.
    pub(super) fn requests(&self) -> Vec<&Shown> {
        let shown = |one: &&Shown| self.passes([one.from.as_str(), one.kind, one.summary.as_str()]);
        self.open_requests().filter(shown).collect()
    }

    pub(super) fn selected_request(&self) -> Option<&Shown> {
        let id = self.request.as_ref()?;
        self.open_requests().find(|one| one.request_id.as_str() == id)
    }

    /// Returns the request that the panel of requests highlights: the selected one while the panel
    /// has the focus, else the one of the selected member that the keys answer.
    pub(super) fn shown_request(&self) -> Option<&Shown> {
        match self.member.as_ref().filter(|_| self.focus != Panel::Requests) {
            Some(member) => self.request_of(member),
            None => self.selected_request(),
        }
    }

    /// Returns the index of the highlighted request in the list on display.
    pub(super) fn shown_request_index(&self) -> Option<usize> {
        let shown = &self.shown_request()?.request_id;
        self.requests().iter().position(|one| one.request_id == *shown)
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.snapshot.as_ref().is_some_and(|snapshot| snapshot.is_foreign)
    }

    /// Leaves an item out for a while. Returns its reason.
    pub(super) fn snooze(&mut self, cause: &AttentionCause) -> Option<String> {
        let item = self.attention.iter().find(|item| item.cause == *cause)?;
        let words = item.why.clone();
        let now = self.snapshot.as_ref()?.read_at;
        self.snoozed.insert(cause.clone(), now.plus_ms(SNOOZE_MS));
        self.arrange();
        Some(words)
    }

    pub(super) fn notify(&mut self, words: impl Into<String>, tone: Tone, now: Timestamp) {
        self.notice = Some(Notice { words: words.into(), tone, until: now.plus_ms(NOTICE_MS) });
    }

    /// Returns the words with the key that ends a filter and the search. In their prompts the key
    /// is fixed.
    pub(super) fn leave_hint(&self, words: &str, does: &str) -> String {
        match &self.dialog {
            Some(OpenDialog::TextPrompt(TextPrompt {
                kind: PromptKind::Filter | PromptKind::Search,
                ..
            })) => format!("{words}: Esc {does}"),
            _ => self.keymap.hint(words, &[(KeyCommand::Leave, does)]),
        }
    }

    /// Returns the words for a list without entries: `empty`, or `no_match` with the key that ends
    /// the filter.
    pub(super) fn words_of_empty(&self, empty: String, no_match: &str) -> String {
        if self.filter.is_empty() { empty } else { self.leave_hint(no_match, "ends the filter") }
    }

    /// Shows what was answered.
    pub(super) fn show_answered(&mut self, words: String, now: Timestamp) {
        self.answered = Some(Notice { words, tone: Tone::Good, until: now.plus_ms(ANSWER_MS) });
    }

    /// Returns true if the request to answer has changed just now without a key of the person, who
    /// may not have seen it.
    pub(super) fn has_just_moved(&self, now: Timestamp) -> bool {
        self.moved_at.is_some_and(|at| now.since(at) < MOVED_MS)
    }

    /// Removes the lines that were shown for long enough.
    pub(super) fn expire_notices(&mut self, now: Timestamp) {
        for notice in [&mut self.notice, &mut self.answered] {
            notice.take_if(|notice| notice.until <= now);
        }
    }

    /// Returns the milliseconds after which the display changes without any input, because ages
    /// grow: each second while one is below a minute, else each minute. `None` if nothing on
    /// display has an age.
    pub fn redraw_after_ms(&self, now: Timestamp) -> Option<u64> {
        let snapshot = self.snapshot.as_ref()?;
        let members = snapshot.details.values().filter_map(|details| details.state_since);
        let tasks = snapshot.tasks.iter().filter_map(|task| task.running_since);
        let items = self.attention.iter().map(|item| item.since);
        let latest = members.chain(tasks).chain(items).max_by_key(|since| since.0);
        match latest {
            _ if self.notice.is_some() || self.answered.is_some() => Some(SECOND_MS),
            Some(since) if now.since(since) < MINUTE_MS => Some(SECOND_MS),
            Some(_) => Some(MINUTE_MS),
            None => None,
        }
    }

    /// Returns what waits for a person, to notify about what is new.
    pub fn waiting(&self) -> &[AttentionItem] {
        &self.attention
    }
}

/// Returns false for a message whose words do not last: that a program is idle, and what it asks,
/// which is shown while it is open.
fn is_told(text: &str) -> bool {
    !matches!(
        Message::parse(text),
        Message::IdleNotification(_)
            | Message::PermissionRequest(_)
            | Message::SandboxPermissionRequest(_)
            | Message::PlanApprovalRequest(_)
    )
}

/// Returns true for an activity in which no run goes on.
fn is_over(doing: &Doing) -> bool {
    matches!(doing, Doing::Ended(_) | Doing::Restarting(_))
}

/// Returns the row of a member that has left the roster.
fn ended_member(left: &LeftStatus) -> MemberStatus {
    MemberStatus {
        name: left.name.clone(),
        state: left.state.clone(),
        role: None,
        profile: None,
        backend: None,
        host: None,
        is_elsewhere: false,
        pane: None,
        pid: None,
        color: None,
        task: None,
        activity: None,
        idle_ms: None,
        limited_until: None,
        usage: None,
    }
}
