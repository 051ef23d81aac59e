//! Events in the life of a team, each stored as one line of the journal.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::board::task::Task;
use crate::id::{MemberName, TaskId, TeamName};
use crate::time::Timestamp;
use crate::wire::{self, Object};

#[cfg(debug_assertions)]
pub(crate) mod documented;

/// Kinds of events. `docs/events.md` lists them with their details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum EventKind {
    TeamCreated,
    TeamDeleted,
    SettingsChanged,
    LeadStarted,
    LeadAdopted,
    HostLost,
    LeadEnded,
    MemberAsked,
    MemberPlaced,
    MemberReady,
    MemberServes,
    MemberRenamed,
    MemberState,
    MemberStartFailed,
    MemberFallback,
    MemberHealth,
    MemberPrompt,
    RestartDelayed,
    BudgetReached,
    MemberExited,
    MemberLeft,
    MemberHidden,
    MemberShown,
    MessageSent,
    MessageHandled,
    HandoffSent,
    HandoffReceived,
    TaskCreated,
    TaskClaimed,
    TaskAssigned,
    TaskCompleted,
    TaskFailed,
    TaskCancelled,
    TaskSubmitted,
    TaskApproved,
    TaskRejected,
    TaskStale,
    TaskRecovered,
    TaskCommented,
    TaskProgress,
    TaskAttached,
    TaskReleased,
    TaskRetried,
    TaskUpdated,
    TaskDeleted,
    TaskVanished,
    TaskChanged,
    TaskRewritten,
    ShutdownRequested,
    ShutdownEnded,
    ShutdownVerified,
    RequestFiled,
    RequestAnnounced,
    RequestDecided,
    AnswerTyped,
    Typed,
    PlacementVerdict,
    WorktreeMade,
    WorktreeRemoved,
    WorkLanded,
    WorkTakenBack,
    WorkDropped,
    ReviewSent,
    ReviewPassed,
    CommentAnswered,
    CommentResolved,
    PullRequestOpened,
    FileQuarantined,
    Repaired,
    Recovered,
    Warning,
    Reminded,
    Escalated,
    MessageStaged,
    MessageSubmitted,
    MessageUndelivered,
    TurnInterrupted,
    TurnEnded,
    HookRan,
}

impl EventKind {
    /// The name in the journal.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Random id; other events refer to it as their cause.
    pub id: String,
    /// Id of the event that led to this one.
    pub cause: Option<String>,
    pub at: Timestamp,
    pub team: TeamName,
    pub event: EventKind,
    pub member: Option<MemberName>,
    pub task: Option<TaskId>,
    /// Further details, depending on the kind.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub detail: Object,
}

impl Event {
    /// Returns true for the events that a task's page shows.
    pub fn is_about_task(&self) -> bool {
        self.task.is_some() && self.event.as_str().starts_with("task_")
    }

    /// Returns the member whose sign of life the event is, if any: it has sent a message, filed a
    /// request, or said something about a task. Idle notifications do not count: a program sends
    /// them without being asked.
    pub fn sign_of_life(&self) -> Option<MemberName> {
        use EventKind::{MessageSent, RequestFiled, TaskAttached, TaskCommented, TaskProgress};
        if matches!(self.event, RequestFiled | TaskCommented | TaskProgress | TaskAttached) {
            return self.member.clone();
        }
        let is_message =
            self.event == MessageSent && wire::text(&self.detail, "kind")? != "idle_notification";
        let from = wire::text(&self.detail, "from").filter(|_| is_message)?;
        MemberName::existing(&from).ok()
    }
}

/// An event to be recorded. The journal adds time and team, and the id if there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// Set if the id had to be known beforehand; otherwise the journal generates one.
    pub id: Option<String>,
    pub event: EventKind,
    pub cause: Option<String>,
    pub member: Option<MemberName>,
    pub task: Option<TaskId>,
    pub detail: Object,
}

impl Note {
    /// Returns a note of this kind without details.
    pub fn of(event: EventKind) -> Note {
        Note { id: None, event, cause: None, member: None, task: None, detail: Object::new() }
    }

    pub fn member(self, name: &MemberName) -> Note {
        Note { member: Some(name.clone()), ..self }
    }

    pub fn task(self, id: TaskId) -> Note {
        Note { task: Some(id), ..self }
    }

    /// Returns a note about a change to `task`, with the event id and cause stored in the task.
    pub fn of_task(event: EventKind, task: &Task) -> Note {
        let (id, cause) = (task.extra.event.clone(), task.extra.cause.clone());
        let note = Note { id, cause, task: Some(task.id), ..Note::of(event) };
        let scope = &task.extra.scope;
        note.with("subject", task.subject.as_str())
            .with_some("active_form", task.active_form.as_deref())
            .with_some("scope", (!scope.is_empty()).then(|| scope.to_string()))
    }

    /// Sets the id of the event that caused this one.
    pub fn because(self, cause: &str) -> Note {
        Note { cause: Some(cause.to_owned()), ..self }
    }

    /// Adds a detail. Panics in debug builds if docs/events.md has no such detail of the event, so
    /// that each test finds a key without documentation.
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Note {
        #[cfg(debug_assertions)]
        assert!(
            documented::has(self.event.as_str(), key),
            "add `{key}` to the details of {} in docs/events.md",
            self.event.as_str()
        );
        self.detail.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a detail as [`Note::with`] does, if there is one.
    pub fn with_some(self, key: &str, value: Option<impl Into<serde_json::Value>>) -> Note {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
}
