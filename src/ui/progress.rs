//! Tracks a team's progress from its journal, and draws the frame with members, bar and hints.

use std::collections::{BTreeMap, BTreeSet};

use super::life::{member_tint, member_word, span};
use super::paint::{Paint, Tint};
use crate::model::event::{Event, EventKind};
use crate::model::id::{MemberName, TaskId};
use crate::model::lifecycle::MemberState;
use crate::model::task::TaskState;
use crate::model::text;
use crate::model::time::Timestamp;
use crate::model::wire;

const STATE_COLUMN_FROM: usize = 60; // columns; a narrower terminal has no state column
const CLOCK_FROM: usize = 30; // columns; a narrower terminal shows no times
const CLOCK: usize = 6; // the widest time: `10h02m`
const BAR: (usize, usize) = (10, 30); // minimum and maximum width

/// The size of a frame and its contents besides the team's progress.
pub(crate) struct ProgressFrame<'a> {
    pub(crate) now: Timestamp,
    pub(crate) started_at: Timestamp,
    pub(crate) columns: usize,
    /// Maximum number of lines.
    pub(crate) rows: usize,
    /// Commands and keys, most important first; as many as fit are shown.
    pub(crate) hints: &'a [String],
    pub(crate) paint: Paint,
}

struct MemberProgress {
    state: MemberState,
    since: Timestamp,
    color: Option<String>,
    left: bool,
    is_command: bool, // profile `shell`
    prompt: Option<String>,
}

impl MemberProgress {
    /// Returns the label of the state. A plain command claims no tasks, so it is never idle.
    fn word(&self) -> &'static str {
        match self.state {
            _ if self.prompt.is_some() => "waits for you",
            MemberState::Idle if self.is_command => "running",
            state => member_word(state),
        }
    }

    fn tint(&self) -> Tint {
        if self.prompt.is_some() { Tint::Warn } else { member_tint(self.state) }
    }
}

struct TaskProgress {
    subject: String,
    active_form: Option<String>,
    state: TaskState,
    by: Option<MemberName>,
    since: Timestamp,
    elapsed_ms: Option<u64>,
}

#[derive(Default)]
pub(crate) struct TeamProgress {
    members: BTreeMap<MemberName, MemberProgress>,
    order: Vec<MemberName>, // order of first appearance
    tasks: BTreeMap<TaskId, TaskProgress>,
    waiting: BTreeSet<String>, // ids of requests that wait for a person
}

impl TeamProgress {
    pub(crate) fn apply(&mut self, event: &Event) {
        if let Some(name) = &event.member {
            self.apply_to_member(name, event);
        }
        if let Some(id) = event.task {
            self.apply_to_task(id, event);
        }
        self.apply_to_request(event);
    }

    pub(crate) fn set_color(&mut self, name: &MemberName, color: Option<&str>) {
        if let Some(member) = self.members.get_mut(name) {
            member.color = color.map(str::to_owned);
        }
    }

    pub(super) fn tint(&self, name: &MemberName) -> Tint {
        Tint::member(self.members.get(name).and_then(|m| m.color.as_deref()))
    }

    pub(super) fn name_width(&self) -> usize {
        self.order.iter().map(|name| text::line(name.as_str()).chars().count()).max().unwrap_or(0)
    }

    pub(super) fn elapsed(&self, id: TaskId) -> Option<u64> {
        self.tasks.get(&id).and_then(|t| t.elapsed_ms)
    }

    fn apply_to_member(&mut self, name: &MemberName, event: &Event) {
        if let (EventKind::MemberLeft, Some(member)) = (event.event, self.members.get_mut(name)) {
            member.left = true;
        }
        if let (EventKind::MemberPrompt, Some(member)) = (event.event, self.members.get_mut(name)) {
            member.prompt = wire::text(&event.detail, "text");
            return;
        }
        let Some(StateChange::Member(state)) = state_change(event) else { return };
        if !self.members.contains_key(name) {
            self.order.push(name.clone());
        }
        let before = self.members.get(name);
        // A member may report its work before its spawner journals that it is ready.
        let is_up = |m: &MemberProgress| {
            !m.left && !matches!(m.state, MemberState::Pending | MemberState::Starting)
        };
        if event.event == EventKind::MemberReady && before.is_some_and(is_up) {
            return;
        }
        let color = before.and_then(|m| m.color.clone());
        let profile =
            wire::text(&event.detail, "profile").filter(|_| event.event == EventKind::MemberAsked);
        let is_command =
            profile.map_or_else(|| before.is_some_and(|m| m.is_command), |name| name == "shell");
        let prompt = before.and_then(|m| m.prompt.clone()).filter(|_| state == MemberState::Idle);
        let progress = MemberProgress {
            state,
            since: event.at,
            color,
            left: state.is_over(),
            is_command,
            prompt,
        };
        self.members.insert(name.clone(), progress);
    }

    fn apply_to_request(&mut self, event: &Event) {
        let Some(id) = wire::text(&event.detail, "request_id") else { return };
        let is_open = wire::text(&event.detail, "state").as_deref() == Some("pending");
        if event.event == EventKind::RequestFiled && is_open {
            self.waiting.insert(id);
        } else if event.event == EventKind::RequestDecided {
            self.waiting.remove(&id);
        }
    }

    fn apply_to_task(&mut self, id: TaskId, event: &Event) {
        let Some(StateChange::Task(state)) = state_change(event) else { return };
        let before = self.tasks.get(&id);
        let began = before.filter(|t| t.state.is_running()).map(|t| t.since);
        let measured_ms = began.map(|since| event.at.since(since));
        let since = began.filter(|_| state.is_running()).unwrap_or(event.at);
        let elapsed_ms = if state.is_over() {
            wire::number(&event.detail, "elapsed_ms").or(measured_ms)
        } else {
            None
        };
        let by = event.member.clone().filter(|_| state != TaskState::Pending);
        let subject = wire::text(&event.detail, "subject");
        let subject = subject.or_else(|| before.map(|t| t.subject.clone())).unwrap_or_default();
        let active_form = wire::text(&event.detail, "active_form");
        let active_form = active_form.or_else(|| before.and_then(|t| t.active_form.clone()));
        self.tasks.insert(id, TaskProgress { subject, active_form, state, by, since, elapsed_ms });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty() && self.tasks.is_empty()
    }

    /// Returns the lines of the frame. With few rows, members that work or wait come first.
    pub(crate) fn frame(&self, frame: &ProgressFrame) -> Vec<String> {
        let mut lines = self.member_lines(frame, frame.rows.saturating_sub(2));
        lines.push(self.bar_line(frame));
        lines.push(self.hint_line(frame));
        lines.retain(|line| !line.is_empty());
        lines.truncate(frame.rows.max(1));
        lines
    }

    fn member_lines(&self, frame: &ProgressFrame, room: usize) -> Vec<String> {
        let mut shown: Vec<&MemberName> = self.order.iter().collect();
        let mut last = None;
        if shown.len() > room {
            shown.sort_by_key(|name| self.rank(name));
            let hidden = shown.split_off(room.saturating_sub(1)).len();
            shown.sort_by_key(|name| self.order.iter().position(|other| other == *name));
            last =
                (room > 0).then(|| frame.paint.put(Tint::Dim, &format!("… {hidden} more members")));
        }
        let names = shown.iter().map(|name| text::line(name.as_str()).chars().count());
        let name_width = names.max().unwrap_or(0).min(frame.columns / 3).max(1);
        let states =
            shown.iter().filter_map(|name| self.members.get(*name)).map(|m| m.word().len());
        let state_width = states.max().unwrap_or(0);
        let line = |name: &&MemberName| self.member_line(name, name_width, state_width, frame);
        shown.iter().filter_map(line).chain(last).collect()
    }

    /// Sort key of a member if there are too few rows; lower keys are shown first.
    fn rank(&self, name: &MemberName) -> u8 {
        match self.members.get(name) {
            Some(member) if member.left => 3,
            Some(member) if member.tint() == Tint::Warn => 0,
            Some(_) if self.work_of(name).is_some() => 1,
            Some(_) | None => 2,
        }
    }

    fn member_line(
        &self,
        name: &MemberName,
        width: usize,
        state_width: usize,
        frame: &ProgressFrame,
    ) -> Option<String> {
        let member = self.members.get(name)?;
        let paint = frame.paint;
        let shown = text::short(name.as_str(), width);
        let mut line =
            paint.put(self.tint(name), &shown) + &" ".repeat(width - shown.chars().count());
        let mut used = width;
        let word = member.word();
        let has_state_column = frame.columns >= STATE_COLUMN_FROM;
        if has_state_column {
            line += &format!("  {}", paint.put(member.tint(), &format!("{word:<state_width$}")));
            used += 2 + state_width;
        }
        let work = self.work_of(name);
        if frame.columns >= CLOCK_FROM {
            let since = match work {
                Some((_, task)) => Some(task.since),
                // Between two tasks the state is older than the pause.
                None if member.left || member.state == MemberState::Working => None,
                None => Some(member.since),
            };
            let clock = since.map(|since| span(frame.now.since(since))).unwrap_or_default();
            line += &format!("  {clock:>CLOCK$}");
            used += 2 + CLOCK;
        }
        let room = frame.columns.saturating_sub(used + 2);
        let what = match work {
            Some((id, task)) => {
                let words = task.active_form.as_ref().unwrap_or(&task.subject);
                text::short(&format!("#{id} {words}"), room)
            }
            None if has_state_column => {
                let prompt = member.prompt.as_deref().unwrap_or_default();
                paint.put(Tint::Warn, &text::short(prompt, room))
            }
            None => paint.put(member.tint(), &text::short(word, room)),
        };
        Some(format!("{line}  {what}").trim_end().to_owned())
    }

    fn work_of(&self, name: &MemberName) -> Option<(TaskId, &TaskProgress)> {
        let works = |t: &TaskProgress| t.state.is_running() && t.by.as_ref() == Some(name);
        self.tasks.iter().find(|(_, t)| works(t)).map(|(id, t)| (*id, t))
    }

    fn bar_line(&self, frame: &ProgressFrame) -> String {
        let paint = frame.paint;
        let count = |state| self.tasks.values().filter(|t| t.state == state).count();
        let failed = count(TaskState::Failed);
        let done = count(TaskState::Completed) + count(TaskState::Cancelled);
        let total = self.tasks.len();
        let clock = span(frame.now.since(frame.started_at));
        if total == 0 {
            return paint.put(Tint::Dim, &format!("no tasks  {clock}"));
        }
        let failure = if failed == 0 { String::new() } else { format!(", {failed} failed") };
        let counted = format!("{done} of {total} tasks");
        let used = counted.len() + failure.len() + clock.len() + 4;
        let width = frame.columns.saturating_sub(used).min(BAR.1);
        let bar = if width < BAR.0 {
            String::new()
        } else {
            bar(width, done, failed, total, paint) + "  "
        };
        format!(
            "{bar}{counted}{}  {}",
            paint.put(Tint::Bad, &failure),
            paint.put(Tint::Dim, &clock)
        )
    }

    fn hint_line(&self, frame: &ProgressFrame) -> String {
        let waiting = match self.waiting.len() {
            0 => None,
            1 => Some("1 request waits: `phalanx requests`".to_owned()),
            some => Some(format!("{some} requests wait: `phalanx requests`")),
        };
        let tint = if waiting.is_some() { Tint::Warn } else { Tint::Dim };
        let (mut line, mut used) = (String::new(), 0);
        for hint in waiting.iter().chain(frame.hints) {
            let gap = if used == 0 { 0 } else { 3 };
            let width = hint.chars().count();
            if used > 0 && used + gap + width > frame.columns {
                continue; // the first hint is cut below instead
            }
            line += if gap == 0 { "" } else { " · " };
            line += hint;
            used += gap + width;
        }
        frame.paint.put(tint, &text::short(&line, frame.columns))
    }
}

/// A bar of `width` characters: finished tasks in green, at least one red for failures, the rest
/// thin.
fn bar(width: usize, done: usize, failed: usize, total: usize, paint: Paint) -> String {
    let over = (done + failed) * width / total;
    let red = if failed == 0 { 0 } else { (failed * width / total).max(1).min(over.max(1)) };
    let green = over.saturating_sub(red);
    paint.put(Tint::Good, &"━".repeat(green))
        + &paint.put(Tint::Bad, &"━".repeat(red))
        + &paint.put(Tint::Dim, &"─".repeat(width - green - red))
}

/// The state of a member or task after an event.
enum StateChange {
    Member(MemberState),
    Task(TaskState),
}

/// Returns the state that an event reports; `None` also for a state of a newer phalanx.
fn state_change(event: &Event) -> Option<StateChange> {
    use EventKind as Kind;
    let word = |key: &str| event.detail.get(key).cloned().unwrap_or_default();
    let member = |state| Some(StateChange::Member(state));
    let task = |state| Some(StateChange::Task(state));
    match event.event {
        Kind::MemberAsked => member(MemberState::Pending),
        Kind::MemberPlaced => member(MemberState::Starting),
        Kind::MemberReady => member(MemberState::Idle),
        Kind::MemberStartFailed => member(MemberState::Failed),
        Kind::MemberState => serde_json::from_value(word("state")).ok().and_then(member),
        Kind::TaskCreated | Kind::TaskReleased | Kind::TaskRetried => task(TaskState::Pending),
        Kind::TaskClaimed => task(TaskState::InProgress),
        Kind::TaskCompleted => task(TaskState::Completed),
        Kind::TaskFailed => task(TaskState::Failed),
        Kind::TaskSubmitted => task(TaskState::InReview),
        Kind::TaskStale => task(TaskState::Stale),
        Kind::TaskRecovered => task(TaskState::InProgress),
        Kind::TaskDeleted | Kind::TaskVanished | Kind::TaskCancelled => task(TaskState::Cancelled),
        Kind::TaskChanged | Kind::TaskUpdated => {
            serde_json::from_value(word("status")).ok().and_then(task)
        }
        Kind::TaskAssigned | Kind::TaskApproved | Kind::TaskRejected => None,
        Kind::TaskCommented | Kind::TaskProgress | Kind::TaskAttached => None,
        Kind::TaskRewritten | Kind::SettingsChanged | Kind::TeamCreated | Kind::TeamDeleted => None,
        Kind::LeadStarted | Kind::LeadAdopted | Kind::LeadEnded | Kind::HostLost => None,
        Kind::MemberFallback | Kind::MemberHealth | Kind::MemberPrompt => None,
        Kind::RestartDelayed | Kind::BudgetReached => None,
        Kind::MemberExited | Kind::MemberLeft => None,
        Kind::MemberHidden | Kind::MemberShown => None,
        Kind::MessageSent | Kind::MessageStaged | Kind::MessageSubmitted => None,
        Kind::MessageHandled | Kind::MessageUndelivered => None,
        Kind::HandoffSent | Kind::HandoffReceived => None,
        Kind::HookRan | Kind::TurnInterrupted | Kind::TurnEnded => None,
        Kind::ShutdownRequested | Kind::ShutdownEnded | Kind::ShutdownVerified => None,
        Kind::PlacementVerdict | Kind::FileQuarantined | Kind::Repaired | Kind::Warning => None,
        Kind::WorktreeMade | Kind::WorktreeRemoved | Kind::Typed | Kind::Recovered => None,
        Kind::RequestFiled | Kind::RequestDecided | Kind::AnswerTyped => None,
        Kind::RequestAnnounced | Kind::Reminded | Kind::Escalated => None,
    }
}

#[cfg(test)]
pub(super) mod tests;
