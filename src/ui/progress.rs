//! A team's progress as its journal tells it: what is known of members and tasks, and the lines that show it. Pure;
//! the time is given.

use std::collections::{BTreeMap, BTreeSet};

use super::life::{member_tint, member_word, span, task_mark};
use super::paint::{Paint, Tint};
use crate::model::event::{Event, EventKind};
use crate::model::id::{MemberName, TaskId};
use crate::model::lifecycle::MemberState;
use crate::model::task::TaskState;
use crate::model::text;
use crate::model::time::Timestamp;
use crate::model::wire;

/// Subjects are cut to this many characters.
const SUBJECT: usize = 60;

struct MemberView {
    state: MemberState,
    since: Timestamp,
    color: Option<String>,
    /// It has ended; its line stops counting.
    left: bool,
}

struct TaskView {
    subject: String,
    state: TaskState,
    by: Option<MemberName>,
    since: Timestamp,
    elapsed_ms: Option<u64>,
}

/// What is known so far.
#[derive(Default)]
pub(crate) struct Progress {
    members: BTreeMap<MemberName, MemberView>,
    /// In the order in which they were first heard of.
    order: Vec<MemberName>,
    tasks: BTreeMap<TaskId, TaskView>,
    /// The requests that wait for a person, by id.
    waiting: BTreeSet<String>,
}

impl Progress {
    /// Takes in one event.
    pub(crate) fn take(&mut self, event: &Event) {
        if let Some(name) = &event.member {
            self.take_member(name, event);
        }
        if let Some(id) = event.task {
            self.take_task(id, event);
        }
        self.take_request(event);
    }

    /// Says in which colour a member is shown.
    pub(crate) fn color(&mut self, name: &MemberName, color: Option<&str>) {
        if let Some(member) = self.members.get_mut(name) {
            member.color = color.map(str::to_owned);
        }
    }

    /// The look of a name.
    pub(super) fn tint(&self, name: &MemberName) -> Tint {
        Tint::member(self.members.get(name).and_then(|m| m.color.as_deref()))
    }

    /// The width of the widest name.
    pub(super) fn name_width(&self) -> usize {
        self.order.iter().map(|name| text::line(name.as_str()).chars().count()).max().unwrap_or(0)
    }

    /// How long a task took.
    pub(super) fn elapsed(&self, id: TaskId) -> Option<u64> {
        self.tasks.get(&id).and_then(|t| t.elapsed_ms)
    }

    fn take_member(&mut self, name: &MemberName, event: &Event) {
        if let (EventKind::MemberLeft, Some(member)) = (event.event, self.members.get_mut(name)) {
            member.left = true;
        }
        let Says::Member(state) = says(event) else { return };
        if !self.members.contains_key(name) {
            self.order.push(name.clone());
        }
        let color = self.members.get(name).and_then(|m| m.color.clone());
        self.members
            .insert(name.clone(), MemberView { state, since: event.at, color, left: state.is_over() });
    }

    fn take_request(&mut self, event: &Event) {
        let Some(id) = wire::text(&event.detail, "request_id") else { return };
        let is_open = wire::text(&event.detail, "state").as_deref() == Some("pending");
        if event.event == EventKind::RequestFiled && is_open {
            self.waiting.insert(id);
        } else if event.event == EventKind::RequestDecided {
            self.waiting.remove(&id);
        }
    }

    fn take_task(&mut self, id: TaskId, event: &Event) {
        let Says::Task(state) = says(event) else { return };
        let before = self.tasks.get(&id);
        let subject = wire::text(&event.detail, "subject");
        let begun = before.filter(|t| t.state == TaskState::InProgress).map(|t| event.at.since(t.since));
        let elapsed_ms =
            if state.is_over() { wire::number(&event.detail, "elapsed_ms").or(begun) } else { None };
        let by = event.member.clone().filter(|_| state != TaskState::Pending);
        let subject = subject.or_else(|| before.map(|t| t.subject.clone())).unwrap_or_default();
        self.tasks.insert(id, TaskView { subject, state, by, since: event.at, elapsed_ms });
    }

    /// The whole picture: a line for each member, one for the tasks as a whole, and as many single tasks as fit into
    /// `rows` lines, those that run and those that failed before the others.
    pub(crate) fn lines(&self, now: Timestamp, rows: usize, paint: Paint) -> Vec<String> {
        let mut lines: Vec<String> =
            self.order.iter().map(|name| self.member_line(name, now, paint)).collect();
        lines.push(paint.put(Tint::Dim, &self.count_line()) + &self.waiting_words(paint));
        let room = rows.saturating_sub(lines.len());
        lines.extend(self.shown_tasks(room).into_iter().map(|id| self.task_line(id, now, paint)));
        lines.truncate(rows.max(1));
        lines
    }

    fn member_line(&self, name: &MemberName, now: Timestamp, paint: Paint) -> String {
        let Some(member) = self.members.get(name) else { return String::new() };
        let shown = text::line(name.as_str());
        let pad = " ".repeat(self.name_width().saturating_sub(shown.chars().count()));
        let word = paint.put(member_tint(member.state), &format!("{:<12}", member_word(member.state)));
        let named = paint.put(self.tint(name), &shown);
        let (work, since) = match self.work_of(name) {
            Some((id, task)) => (format!("#{id} {}", text::short(&task.subject, SUBJECT)), Some(task.since)),
            // Between two tasks: its state is older than what it does.
            None if member.left || member.state == MemberState::Working => (String::new(), None),
            None => (String::new(), Some(member.since)),
        };
        let clock = since.map(|since| span(now.since(since))).unwrap_or_default();
        format!("{named}{pad}  {word}  {clock:>7}  {work}").trim_end().to_owned()
    }

    fn work_of(&self, name: &MemberName) -> Option<(TaskId, &TaskView)> {
        let works = |t: &TaskView| t.state == TaskState::InProgress && t.by.as_ref() == Some(name);
        self.tasks.iter().find(|(_, t)| works(t)).map(|(id, t)| (*id, t))
    }

    fn count_line(&self) -> String {
        let count = |state| self.tasks.values().filter(|t| t.state == state).count();
        let failed = match count(TaskState::Failed) {
            0 => String::new(),
            some => format!(", {some} failed"),
        };
        format!("tasks: {} of {} completed{failed}", count(TaskState::Completed), self.tasks.len())
    }

    /// What somebody should see to, as long as it is so.
    fn waiting_words(&self, paint: Paint) -> String {
        match self.waiting.len() {
            0 => String::new(),
            1 => paint.put(Tint::Warn, "; 1 request waits: `phalanx requests`"),
            some => paint.put(Tint::Warn, &format!("; {some} requests wait: `phalanx requests`")),
        }
    }

    fn shown_tasks(&self, room: usize) -> Vec<TaskId> {
        let rank = |t: &TaskView| match t.state {
            TaskState::InProgress => 0,
            TaskState::Failed => 1,
            TaskState::Pending => 2,
            TaskState::Completed | TaskState::Cancelled => 3,
        };
        let mut ids: Vec<TaskId> = self.tasks.keys().copied().collect();
        ids.sort_by_key(|id| self.tasks.get(id).map_or(4, rank));
        ids.truncate(room);
        ids.sort_unstable();
        ids
    }

    fn task_line(&self, id: TaskId, now: Timestamp, paint: Paint) -> String {
        let Some(task) = self.tasks.get(&id) else { return String::new() };
        let (mark, tint) = task_mark(task.state);
        let by =
            task.by.as_ref().map(|n| paint.put(self.tint(n), &text::line(n.as_str()))).unwrap_or_default();
        let running = (task.state == TaskState::InProgress).then(|| now.since(task.since));
        let clock = task.elapsed_ms.or(running).map(span).unwrap_or_default();
        let subject = text::short(&task.subject, SUBJECT);
        format!("{} #{id} {subject}  {by}  {clock}", paint.put(tint, mark)).trim_end().to_owned()
    }
}

/// What an event says of the state in which somebody or something is after it.
enum Says {
    Member(MemberState),
    Task(TaskState),
    /// It says nothing of it, or a word of a newer phalanx.
    Nothing,
}

fn says(event: &Event) -> Says {
    use EventKind as Kind;
    let word = |key: &str| event.detail.get(key).cloned().unwrap_or_default();
    let member = |state: Option<MemberState>| state.map_or(Says::Nothing, Says::Member);
    let task = |state: Option<TaskState>| state.map_or(Says::Nothing, Says::Task);
    match event.event {
        Kind::MemberAsked => Says::Member(MemberState::Pending),
        Kind::MemberPlaced => Says::Member(MemberState::Starting),
        Kind::MemberReady => Says::Member(MemberState::Idle),
        Kind::MemberStartFailed => Says::Member(MemberState::Failed),
        Kind::MemberState => member(serde_json::from_value(word("state")).ok()),
        Kind::TaskCreated | Kind::TaskReleased => Says::Task(TaskState::Pending),
        Kind::TaskClaimed => Says::Task(TaskState::InProgress),
        Kind::TaskCompleted => Says::Task(TaskState::Completed),
        Kind::TaskFailed => Says::Task(TaskState::Failed),
        Kind::TaskDeleted | Kind::TaskVanished => Says::Task(TaskState::Cancelled),
        Kind::TaskChanged | Kind::TaskUpdated => task(serde_json::from_value(word("status")).ok()),
        Kind::TaskRewritten => Says::Nothing,
        Kind::TeamCreated | Kind::TeamDeleted | Kind::LeadStarted | Kind::LeadEnded => Says::Nothing,
        Kind::MemberFallback | Kind::MemberHealth => Says::Nothing,
        Kind::MemberExited | Kind::MemberLeft => Says::Nothing,
        Kind::MemberHidden | Kind::MemberShown => Says::Nothing,
        Kind::MessageSent | Kind::MessageStaged | Kind::MessageSubmitted => Says::Nothing,
        Kind::MessageHandled | Kind::MessageUndelivered => Says::Nothing,
        Kind::HookRan | Kind::TurnInterrupted | Kind::TurnEnded => Says::Nothing,
        Kind::ShutdownRequested | Kind::ShutdownEnded | Kind::ShutdownVerified => Says::Nothing,
        Kind::PlacementVerdict | Kind::FileQuarantined | Kind::Repaired | Kind::Warning => Says::Nothing,
        Kind::WorktreeMade | Kind::WorktreeRemoved => Says::Nothing,
        Kind::RequestFiled | Kind::RequestDecided | Kind::AnswerTyped | Kind::Typed | Kind::Recovered => {
            Says::Nothing
        }
        Kind::RequestAnnounced | Kind::Reminded | Kind::Escalated => Says::Nothing,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::model::event::Note;
    use crate::model::id::TeamName;

    /// An event as the journal gives it, so many milliseconds after the start.
    pub(in crate::ui) fn event(ms: u64, note: Note) -> Event {
        Event {
            id: "e".to_owned(),
            cause: note.cause,
            at: Timestamp(1_000_000 + ms),
            team: TeamName::new("checks").expect("name"),
            event: note.event,
            member: note.member,
            task: note.task,
            detail: note.detail,
        }
    }

    pub(in crate::ui) fn name(name: &str) -> MemberName {
        MemberName::new(name).expect("name")
    }

    /// A short run: ada completes one task and fails the next, a third is never begun.
    pub(in crate::ui) fn run() -> Vec<Event> {
        let task = |kind, id, subject: &str| Note::of(kind).task(TaskId(id)).with("subject", subject);
        let ada = name("ada");
        let state = |word: &str| Note::of(EventKind::MemberState).member(&name("ada")).with("state", word);
        vec![
            event(0, task(EventKind::TaskCreated, 1, "Check the format")),
            event(0, task(EventKind::TaskCreated, 2, "Run the \u{1b}[31mtests")),
            event(0, task(EventKind::TaskCreated, 3, "Publish")),
            event(10, Note::of(EventKind::MemberAsked).member(&ada).with("profile", "worker")),
            event(20, state("starting")),
            event(300, state("idle")),
            event(
                400,
                Note { member: Some(ada.clone()), ..task(EventKind::TaskClaimed, 1, "Check the format") },
            ),
            event(400, state("working")),
            event(
                2_500,
                Note { member: Some(ada.clone()), ..task(EventKind::TaskCompleted, 1, "Check the format") }
                    .with("exit_code", 0)
                    .with("elapsed_ms", 2_100),
            ),
            event(
                2_600,
                Note {
                    member: Some(ada.clone()),
                    ..task(EventKind::TaskClaimed, 2, "Run the \u{1b}[31mtests")
                },
            ),
            event(
                4_000,
                Note { member: Some(ada), ..task(EventKind::TaskFailed, 2, "Run the \u{1b}[31mtests") }
                    .with("exit_code", 7)
                    .with("elapsed_ms", 1_400),
            ),
        ]
    }

    /// PM-03: what waits for a person is counted for as long as it does.
    #[test]
    fn pm_03_the_picture_counts_what_waits() {
        let mut progress = Progress::default();
        let filed = |id: &str, state: &str| {
            Note::of(EventKind::RequestFiled).with("request_id", id).with("state", state)
        };
        let decided = |id: &str| Note::of(EventKind::RequestDecided).with("request_id", id);
        let steps = [
            (filed("a", "pending"), "; 1 request waits: `phalanx requests`"),
            (filed("b", "allowed"), "; 1 request waits: `phalanx requests`"),
            (filed("c", "pending"), "; 2 requests wait: `phalanx requests`"),
            (decided("a"), "; 1 request waits: `phalanx requests`"),
            (decided("c"), ""),
        ];
        for (note, expected) in steps {
            progress.take(&event(0, note));
            let lines = progress.lines(Timestamp(1_000_000), 24, Paint { on: false });
            assert_eq!(lines, [format!("tasks: 0 of 0 completed{expected}")]);
        }
    }

    #[test]
    fn the_picture_follows_the_journal() {
        let (mut progress, plain) = (Progress::default(), Paint { on: false });
        let events = run();
        events[..8].iter().for_each(|e| progress.take(e));
        assert_eq!(
            progress.lines(Timestamp(1_001_400), 10, plain),
            [
                "ada  working          1.0s  #1 Check the format",
                "tasks: 0 of 3 completed",
                "▸ #1 Check the format  ada  1.0s",
                "· #2 Run the \u{241b}[31mtests",
                "· #3 Publish",
            ]
        );
        events[8..].iter().for_each(|e| progress.take(e));
        let lines = progress.lines(Timestamp(1_004_000), 10, plain);
        assert_eq!(lines[1..3], ["tasks: 1 of 3 completed, 1 failed", "✓ #1 Check the format  ada  2.1s"]);
        assert_eq!(lines[3], "✗ #2 Run the \u{241b}[31mtests  ada  1.4s");
    }

    #[test]
    fn on_a_small_screen_what_runs_and_what_failed_comes_first() {
        let mut progress = Progress::default();
        run().iter().for_each(|e| progress.take(e));
        let lines = progress.lines(Timestamp(1_004_000), 3, Paint { on: false });
        assert_eq!(lines.len(), 3);
        assert!(lines[2].starts_with("✗ #2"), "{lines:?}");
        assert_eq!(progress.lines(Timestamp(1_004_000), 1, Paint { on: false }).len(), 1);
    }

    #[test]
    fn names_have_their_colour() {
        let mut progress = Progress::default();
        run().iter().for_each(|e| progress.take(e));
        progress.color(&name("ada"), Some("blue"));
        let lines = progress.lines(Timestamp(1_004_000), 9, Paint { on: true });
        assert!(lines[0].starts_with("\u{1b}[34mada\u{1b}[0m"), "{:?}", lines[0]);
    }
}
