//! Tracks a team's progress from its journal, and draws the frame with members, bar and hints.

use std::collections::{BTreeMap, BTreeSet};

use crate::paint::{Paint, Tint};
use crate::views::life::{span, state_tint};
use model::board::task::TaskState;
use model::id::{MemberName, TaskId};
use model::members::assessment::Doing;
use model::team::event::{Event, EventKind};
use model::time::Timestamp;
use model::{text, wire};
use ops::members::status::{ShownState, Status};

const STATE_COLUMN_FROM: usize = 60; // columns; a narrower terminal has no state column
const CLOCK_FROM: usize = 30; // columns; a narrower terminal shows no times
const CLOCK: usize = 6; // the widest time: `10h02m`
const BAR: (usize, usize) = (10, 30); // minimum and maximum width

/// The size of a frame and its contents besides the team's progress.
pub(crate) struct ProgressFrame<'a> {
    pub now: Timestamp,
    pub started_at: Timestamp,
    pub columns: usize,
    /// Maximum number of lines.
    pub rows: usize,
    /// Commands and keys, most important first; as many as fit are shown.
    pub hints: &'a [String],
    pub paint: Paint,
}

/// A member as its events and the last status show it.
#[derive(Default)]
struct MemberProgress {
    color: Option<String>,
    /// Its last run has left the team.
    left: bool,
    /// `None` until a status names it.
    state: Option<ShownState>,
}

impl MemberProgress {
    /// Returns the label of its activity. A member that no status names yet is being started.
    fn word(&self) -> &'static str {
        self.state.as_ref().map_or(Doing::Starting.words(), |state| state.doing.words())
    }

    fn tint(&self) -> Tint {
        self.state.as_ref().map_or(Tint::Plain, |state| state_tint(&state.doing))
    }

    /// Returns true for a member that has left as it should, which needs no line of its own.
    fn is_done(&self) -> bool {
        let is_trouble = self.state.as_ref().is_some_and(|state| {
            matches!(state.doing, Doing::Restarting(_)) || state.doing.needs_attention()
        });
        self.left && !is_trouble
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
    unread: BTreeSet<String>,  // ids of messages to the lead
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
        self.apply_to_mail(event);
    }

    pub(crate) fn set_color(&mut self, name: &MemberName, color: Option<&str>) {
        if let Some(member) = self.members.get_mut(name) {
            member.color = color.map(str::to_owned);
        }
    }

    pub(crate) fn tint(&self, name: &MemberName) -> Tint {
        Tint::member(self.members.get(name).and_then(|m| m.color.as_deref()))
    }

    pub(crate) fn name_width(&self) -> usize {
        self.order.iter().map(|name| text::line(name.as_str()).chars().count()).max().unwrap_or(0)
    }

    pub(crate) fn elapsed(&self, id: TaskId) -> Option<u64> {
        self.tasks.get(&id).and_then(|t| t.elapsed_ms)
    }

    /// Takes over the activities of all members, and of those that left without a request.
    pub(crate) fn set_states(&mut self, status: &Status) {
        let left = status.left.iter().map(|left| (&left.name, &left.state, true));
        let here = status.members.iter().map(|member| (&member.name, &member.state, false));
        for (name, state, left) in left.chain(here) {
            let member = self.member(name);
            (member.state, member.left) = (Some(state.clone()), left);
        }
    }

    /// Returns a member, which is added in the order of first appearance.
    fn member(&mut self, name: &MemberName) -> &mut MemberProgress {
        if !self.members.contains_key(name) {
            self.order.push(name.clone());
        }
        self.members.entry(name.clone()).or_default()
    }

    fn apply_to_member(&mut self, name: &MemberName, event: &Event) {
        match event.event {
            EventKind::MemberAsked => {
                let color = self.member(name).color.take();
                self.members.insert(name.clone(), MemberProgress { color, ..Default::default() });
            }
            EventKind::MemberLeft => {
                let member = self.member(name);
                (member.left, member.state) = (true, None);
            }
            _ => {}
        }
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

    fn apply_to_mail(&mut self, event: &Event) {
        if !event.member.as_ref().is_some_and(MemberName::is_lead) {
            return;
        }
        let is_text = wire::text(&event.detail, "kind").as_deref() == Some("message");
        if event.event == EventKind::MessageSent && is_text {
            self.unread.extend(wire::text(&event.detail, "msg_id"));
        } else if event.event == EventKind::MessageHandled {
            let read = wire::texts(&event.detail, "msg_ids");
            self.unread.retain(|id| !read.contains(id));
        }
    }

    fn apply_to_task(&mut self, id: TaskId, event: &Event) {
        let Some(state) = task_state(event) else { return };
        let before = self.tasks.get(&id);
        let began = before.filter(|t| t.state.is_running()).map(|t| t.since);
        let measured_ms = began.map(|since| event.at.since(since));
        let since = began.filter(|_| state.is_running()).unwrap_or(event.at);
        let elapsed_ms = wire::number(&event.detail, "elapsed_ms").or(measured_ms);
        let elapsed_ms = elapsed_ms.filter(|_| state.is_over());
        let by = event.member.clone().filter(|_| state != TaskState::Pending);
        let subject = wire::text(&event.detail, "subject");
        let subject = subject.or_else(|| before.map(|t| t.subject.clone())).unwrap_or_default();
        let active_form = wire::text(&event.detail, "active_form");
        let active_form = active_form.or_else(|| before.and_then(|t| t.active_form.clone()));
        self.tasks.insert(id, TaskProgress { subject, active_form, state, by, since, elapsed_ms });
    }

    pub(crate) fn is_empty(&self) -> bool {
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
        let (done, mut shown): (Vec<&MemberName>, Vec<&MemberName>) =
            self.order.iter().partition(|name| self.members[*name].is_done());
        let mut last = (!done.is_empty()).then(|| {
            let names = done.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
            frame.paint.put(Tint::Dim, &text::short(&format!("left: {names}"), frame.columns))
        });
        let room = room.saturating_sub(usize::from(last.is_some()));
        if shown.len() > room {
            shown.sort_by_key(|name| self.rank(name));
            let hidden = shown.split_off(room.saturating_sub(1)).len();
            shown.sort_by_key(|name| self.order.iter().position(|other| other == *name));
            let hidden = frame.paint.put(Tint::Dim, &format!("… {hidden} more members"));
            last = (room > 0).then_some(hidden);
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
            Some(member) if matches!(member.tint(), Tint::Warn | Tint::Bad) => 0,
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
        // A member that waits or has failed names the reason, not its task.
        let is_free = !matches!(member.tint(), Tint::Warn | Tint::Bad);
        let work = self.work_of(name).filter(|_| is_free);
        if frame.columns >= CLOCK_FROM {
            let for_ms = match work {
                Some((_, task)) => Some(frame.now.since(task.since)),
                None => member.state.as_ref().and_then(|state| state.state_ms),
            };
            let clock = for_ms.map(span).unwrap_or_default();
            line += &format!("  {clock:>CLOCK$}");
            used += 2 + CLOCK;
        }
        let room = frame.columns.saturating_sub(used + 2);
        let what = match work {
            Some((id, task)) => {
                let words = task.active_form.as_ref().unwrap_or(&task.subject);
                text::short(&format!("#{id} {words}"), room)
            }
            None => {
                let reason = member.state.as_ref().and_then(ShownState::about).unwrap_or_default();
                let words = match (has_state_column, reason.is_empty()) {
                    (true, _) => reason,
                    (false, true) => word.to_owned(),
                    (false, false) => format!("{word}: {reason}"),
                };
                paint.put(member.tint(), &text::short(&words, room))
            }
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
        let (failure, clock) = (paint.put(Tint::Bad, &failure), paint.put(Tint::Dim, &clock));
        format!("{bar}{counted}{failure}  {clock}")
    }

    fn hint_line(&self, frame: &ProgressFrame) -> String {
        let waiting = match self.waiting.len() {
            0 => None,
            1 => Some("1 request waits: `phalanx requests`".to_owned()),
            some => Some(format!("{some} requests wait: `phalanx requests`")),
        };
        let unread = match self.unread.len() {
            0 => None,
            1 => Some("1 unread message: `phalanx inbox`".to_owned()),
            some => Some(format!("{some} unread messages: `phalanx inbox`")),
        };
        let tint = if waiting.is_some() { Tint::Warn } else { Tint::Dim };
        let (mut line, mut used) = (String::new(), 0);
        for hint in waiting.iter().chain(&unread).chain(frame.hints) {
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

/// Returns the state of its task that an event reports; `None` also for a state of a newer phalanx.
fn task_state(event: &Event) -> Option<TaskState> {
    use EventKind as Kind;
    let word = |key: &str| event.detail.get(key).cloned().unwrap_or_default();
    match event.event {
        Kind::TaskCreated | Kind::TaskReleased | Kind::TaskRetried => Some(TaskState::Pending),
        Kind::TaskClaimed => Some(TaskState::InProgress),
        Kind::TaskCompleted => Some(TaskState::Completed),
        Kind::TaskFailed => Some(TaskState::Failed),
        Kind::TaskSubmitted => Some(TaskState::InReview),
        Kind::TaskStale => Some(TaskState::Stale),
        Kind::TaskRecovered => Some(TaskState::InProgress),
        Kind::TaskDeleted | Kind::TaskVanished | Kind::TaskCancelled => Some(TaskState::Cancelled),
        Kind::TaskChanged | Kind::TaskUpdated => serde_json::from_value(word("status")).ok(),
        Kind::TaskAssigned | Kind::TaskApproved | Kind::TaskRejected => None,
        Kind::TaskCommented | Kind::TaskProgress | Kind::TaskAttached => None,
        Kind::TaskRewritten | Kind::SettingsChanged | Kind::TeamCreated | Kind::TeamDeleted => None,
        Kind::LeadStarted | Kind::LeadAdopted | Kind::LeadEnded | Kind::HostLost => None,
        Kind::MemberFallback | Kind::MemberHealth | Kind::MemberPrompt => None,
        Kind::RestartDelayed | Kind::BudgetReached => None,
        Kind::MemberAsked | Kind::MemberPlaced | Kind::MemberReady | Kind::MemberServes => None,
        Kind::MemberRenamed => None,
        Kind::MemberStartFailed | Kind::MemberState => None,
        Kind::MemberExited | Kind::MemberLeft => None,
        Kind::MemberHidden | Kind::MemberShown => None,
        Kind::MessageSent | Kind::MessageStaged | Kind::MessageSubmitted => None,
        Kind::MessageHandled | Kind::MessageUndelivered => None,
        Kind::HandoffSent | Kind::HandoffReceived => None,
        Kind::HookRan | Kind::TurnInterrupted | Kind::TurnEnded => None,
        Kind::ShutdownRequested | Kind::ShutdownEnded | Kind::ShutdownVerified => None,
        Kind::PlacementVerdict | Kind::FileQuarantined | Kind::Repaired | Kind::Warning => None,
        Kind::WorktreeMade
        | Kind::WorktreeRemoved
        | Kind::WorkLanded
        | Kind::WorkTakenBack
        | Kind::WorkDropped
        | Kind::ReviewSent
        | Kind::ReviewPassed
        | Kind::CommentAnswered
        | Kind::CommentResolved
        | Kind::PullRequestOpened
        | Kind::Typed
        | Kind::Recovered => None,
        Kind::RequestFiled | Kind::RequestDecided | Kind::AnswerTyped => None,
        Kind::RequestAnnounced | Kind::Reminded | Kind::Escalated => None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
