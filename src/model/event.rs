//! Events in the life of a team, each stored as one line of the journal.

use serde::{Deserialize, Serialize};

use super::id::{MemberName, TaskId, TeamName};
use super::task::Task;
use super::time::Timestamp;
use super::wire::Object;

/// Kinds of events. `docs/events.md` lists them with their details.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventKind {
    TeamCreated,
    TeamDeleted,
    SettingsChanged,
    LeadStarted,
    LeadAdopted,
    LeadEnded,
    MemberAsked,
    MemberPlaced,
    MemberReady,
    MemberState,
    MemberStartFailed,
    MemberFallback,
    MemberHealth,
    RestartDelayed,
    MemberExited,
    MemberLeft,
    MemberHidden,
    MemberShown,
    MessageSent,
    MessageHandled,
    TaskCreated,
    TaskClaimed,
    TaskCompleted,
    TaskFailed,
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
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            EventKind::TeamCreated => "team_created",
            EventKind::TeamDeleted => "team_deleted",
            EventKind::SettingsChanged => "settings_changed",
            EventKind::LeadStarted => "lead_started",
            EventKind::LeadAdopted => "lead_adopted",
            EventKind::LeadEnded => "lead_ended",
            EventKind::MemberAsked => "member_asked",
            EventKind::MemberPlaced => "member_placed",
            EventKind::MemberReady => "member_ready",
            EventKind::MemberState => "member_state",
            EventKind::MemberStartFailed => "member_start_failed",
            EventKind::MemberFallback => "member_fallback",
            EventKind::MemberHealth => "member_health",
            EventKind::RestartDelayed => "restart_delayed",
            EventKind::MemberExited => "member_exited",
            EventKind::MemberLeft => "member_left",
            EventKind::MemberHidden => "member_hidden",
            EventKind::MemberShown => "member_shown",
            EventKind::MessageSent => "message_sent",
            EventKind::MessageHandled => "message_handled",
            EventKind::TaskCreated => "task_created",
            EventKind::TaskClaimed => "task_claimed",
            EventKind::TaskCompleted => "task_completed",
            EventKind::TaskFailed => "task_failed",
            EventKind::TaskReleased => "task_released",
            EventKind::TaskRetried => "task_retried",
            EventKind::TaskUpdated => "task_updated",
            EventKind::TaskDeleted => "task_deleted",
            EventKind::TaskVanished => "task_vanished",
            EventKind::TaskChanged => "task_changed",
            EventKind::TaskRewritten => "task_rewritten",
            EventKind::ShutdownRequested => "shutdown_requested",
            EventKind::ShutdownEnded => "shutdown_ended",
            EventKind::ShutdownVerified => "shutdown_verified",
            EventKind::RequestFiled => "request_filed",
            EventKind::RequestAnnounced => "request_announced",
            EventKind::RequestDecided => "request_decided",
            EventKind::AnswerTyped => "answer_typed",
            EventKind::Typed => "typed",
            EventKind::PlacementVerdict => "placement_verdict",
            EventKind::WorktreeMade => "worktree_made",
            EventKind::WorktreeRemoved => "worktree_removed",
            EventKind::FileQuarantined => "file_quarantined",
            EventKind::Repaired => "repaired",
            EventKind::Recovered => "recovered",
            EventKind::Warning => "warning",
            EventKind::Reminded => "reminded",
            EventKind::Escalated => "escalated",
            EventKind::MessageStaged => "message_staged",
            EventKind::MessageSubmitted => "message_submitted",
            EventKind::MessageUndelivered => "message_undelivered",
            EventKind::TurnInterrupted => "turn_interrupted",
            EventKind::TurnEnded => "turn_ended",
            EventKind::HookRan => "hook_ran",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// Random id; other events refer to it as their cause.
    pub(crate) id: String,
    /// Id of the event that led to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) cause: Option<String>,
    pub(crate) at: Timestamp,
    pub(crate) team: TeamName,
    pub(crate) event: EventKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) member: Option<MemberName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) task: Option<TaskId>,
    /// Further details, depending on the kind.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub(crate) detail: Object,
}

/// An event to be recorded. The journal adds time and team, and the id if there is none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Note {
    /// Set if the id had to be known beforehand; otherwise the journal generates one.
    pub(crate) id: Option<String>,
    pub(crate) event: EventKind,
    pub(crate) cause: Option<String>,
    pub(crate) member: Option<MemberName>,
    pub(crate) task: Option<TaskId>,
    pub(crate) detail: Object,
}

impl Note {
    /// Returns a note of this kind without details.
    pub(crate) fn of(event: EventKind) -> Note {
        Note { id: None, event, cause: None, member: None, task: None, detail: Object::new() }
    }

    pub(crate) fn member(self, name: &MemberName) -> Note {
        Note { member: Some(name.clone()), ..self }
    }

    pub(crate) fn task(self, id: TaskId) -> Note {
        Note { task: Some(id), ..self }
    }

    /// Returns a note about a change to `task`, with the event id and cause stored in the task.
    pub(crate) fn of_task(event: EventKind, task: &Task) -> Note {
        let (id, cause) = (task.extra.event.clone(), task.extra.cause.clone());
        let note = Note { id, cause, task: Some(task.id), ..Note::of(event) };
        let note = note.with("subject", task.subject.as_str());
        match &task.active_form {
            Some(words) => note.with("active_form", words.as_str()),
            None => note,
        }
    }

    /// Sets the id of the event that caused this one.
    pub(crate) fn because(self, cause: &str) -> Note {
        Note { cause: Some(cause.to_owned()), ..self }
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Note {
        self.detail.insert(key.to_owned(), value.into());
        self
    }
}
