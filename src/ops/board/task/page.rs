//! A task with everything that its page shows.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::read::get;
use crate::OpsError;
use model::board::task::{Task, TaskState};
use model::board::workspace::WorkspaceFile;
use model::id::{HostName, MemberName, TaskId};
use model::team::event::{Event, EventKind};
use model::time::Timestamp;
use model::wire;
use store::TeamStore;
use sys::fs::{self, FileKind};

/// A comment on a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Comment {
    pub id: String,
    pub at: Timestamp,
    pub by: Option<MemberName>,
    pub text: String,
}

/// A file that was attached to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attachment {
    pub at: Timestamp,
    pub by: Option<MemberName>,
    /// The host that has the file; `None` in a team of files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Absolute path.
    pub path: String,
    /// Size when it was attached.
    pub bytes: u64,
    /// The file is no longer there. False for a file on another host, which cannot be seen from
    /// here.
    pub gone: bool,
}

/// A task with its history.
#[derive(Debug, Clone)]
pub struct TaskHistory {
    pub task: Task,
    /// The state, which is `blocked` while a blocker is open, and `stopping` while its command is
    /// being ended.
    pub state: TaskState,
    pub comments: Vec<Comment>,
    pub attachments: Vec<Attachment>,
    /// Files in the workspace that were written during the task.
    pub files: Vec<WorkspaceFile>,
    /// All events about the task, oldest first, with those of comments and attachments.
    pub events: Vec<Event>,
}

/// Reads a task and its history.
pub fn history(team: &TeamStore, id: TaskId) -> Result<TaskHistory, OpsError> {
    let task = get(team, id)?;
    let state = team.with_blockers(id)?.state(&task);
    let events = team.task_events(id)?;
    let comments = events.iter().filter_map(comment).collect();
    let attachments = attachments(team, &events);
    let files = team.workspace_files_of(id)?;
    Ok(TaskHistory { task, state, comments, attachments, files, events })
}

fn comment(event: &Event) -> Option<Comment> {
    let text =
        wire::text(&event.detail, "text").filter(|_| event.event == EventKind::TaskCommented)?;
    Some(Comment { id: event.id.clone(), at: event.at, by: event.member.clone(), text })
}

/// Returns the attachments, oldest first. A file that was attached again is one attachment.
fn attachments(team: &TeamStore, events: &[Event]) -> Vec<Attachment> {
    let mut latest = BTreeMap::new();
    for mut file in events.iter().filter_map(attachment) {
        let is_here = file.host.as_deref() == team.host().map(HostName::as_str);
        let found = fs::about(Path::new(&file.path));
        let is_missing =
            found.is_ok_and(|found| found.is_none_or(|found| found.kind != FileKind::File));
        file.gone = is_here && is_missing;
        latest.insert((file.host.clone(), file.path.clone()), file);
    }
    let mut files: Vec<Attachment> = latest.into_values().collect();
    files.sort_by_key(|file| file.at);
    files
}

fn attachment(event: &Event) -> Option<Attachment> {
    let path =
        wire::text(&event.detail, "path").filter(|_| event.event == EventKind::TaskAttached)?;
    let bytes = wire::number(&event.detail, "bytes").unwrap_or_default();
    let host = wire::text(&event.detail, "host");
    Some(Attachment { at: event.at, by: event.member.clone(), host, path, bytes, gone: false })
}
