//! A task with everything that its page shows.

use serde::Serialize;

use super::read::get;
use crate::model::event::{Event, EventKind};
use crate::model::id::{MemberName, TaskId};
use crate::model::task::{Task, TaskState};
use crate::model::time::Timestamp;
use crate::model::wire;
use crate::model::workspace::WorkspaceFile;
use crate::ops::error::OpsError;
use crate::store::TeamStore;

/// A comment on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Comment {
    pub(crate) id: String,
    pub(crate) at: Timestamp,
    pub(crate) by: Option<MemberName>,
    pub(crate) text: String,
}

/// A file that was attached to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Attachment {
    pub(crate) at: Timestamp,
    pub(crate) by: Option<MemberName>,
    /// Absolute path.
    pub(crate) path: String,
    /// Size when it was attached.
    pub(crate) bytes: u64,
}

/// A task with its history.
#[derive(Debug, Clone)]
pub(crate) struct TaskHistory {
    pub(crate) task: Task,
    /// The state, which is `blocked` while a blocker is open, and `stopping` while its command is
    /// being ended.
    pub(crate) state: TaskState,
    pub(crate) comments: Vec<Comment>,
    pub(crate) attachments: Vec<Attachment>,
    /// Files in the workspace that were written during the task.
    pub(crate) files: Vec<WorkspaceFile>,
    /// All events about the task, oldest first, with those of comments and attachments.
    pub(crate) events: Vec<Event>,
}

/// Reads a task and its history.
pub(crate) fn history(team: &TeamStore, id: TaskId) -> Result<TaskHistory, OpsError> {
    let task = get(team, id)?;
    let state = team.with_blockers(id)?.state(&task);
    let events = team.task_events(id)?;
    let comments = events.iter().filter_map(comment).collect();
    let attachments = events.iter().filter_map(attachment).collect();
    let files = team.workspace_files_of(id)?;
    Ok(TaskHistory { task, state, comments, attachments, files, events })
}

fn comment(event: &Event) -> Option<Comment> {
    let text =
        wire::text(&event.detail, "text").filter(|_| event.event == EventKind::TaskCommented)?;
    Some(Comment { id: event.id.clone(), at: event.at, by: event.member.clone(), text })
}

fn attachment(event: &Event) -> Option<Attachment> {
    let path =
        wire::text(&event.detail, "path").filter(|_| event.event == EventKind::TaskAttached)?;
    let bytes = wire::number(&event.detail, "bytes").unwrap_or_default();
    Some(Attachment { at: event.at, by: event.member.clone(), path, bytes })
}
