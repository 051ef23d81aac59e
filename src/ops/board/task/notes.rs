//! Comments on a task, reports of its progress, and attached files.

use std::path::Path;

use super::guards::must_have_verb;
use super::read::get;
use super::steps::end;
use crate::board::owners::SUBJECT;
use crate::board::workspace::workspace_rules;
use crate::mail::post::Post;
use crate::mail::send::can_be_told;
use crate::{Context, OpsError};
use model::board::task::{Progress, Task, TaskAction, TaskState};
use model::id::{HostName, MemberName, TaskId};
use model::mail::protocol::Message;
use model::team::event::{EventKind, Note};
use model::text;
use store::{StoreError, TaskStep, TeamStore};
use sys::fs::{self, FileKind};
use sys::rand;

/// Maximum length of a comment in bytes.
pub(crate) const MAX_COMMENT: usize = 64 * 1024;

/// Adds a comment to a task, and sends it to the owner.
///
/// # Errors
/// [`OpsError::Usage`] for an empty comment or one longer than [`MAX_COMMENT`].
pub fn comment(ctx: &Context, team: &TeamStore, id: TaskId, words: &str) -> Result<Task, OpsError> {
    must_have_verb(team, "comment")?;
    if words.trim().is_empty() || words.len() > MAX_COMMENT {
        let problem = format!("a comment has 1 to {MAX_COMMENT} bytes, not {}", words.len());
        let hint =
            Some("put a longer text in a file and attach it: `phalanx task attach`".to_owned());
        return Err(OpsError::Usage { problem, hint });
    }
    let (task, who) = (resume(team, get(team, id)?, &ctx.speaker)?, &ctx.speaker);
    let event = rand::uuid();
    let note = Note { id: Some(event.clone()), ..Note::of(EventKind::TaskCommented).task(id) };
    let note = note.member(who).with("subject", task.subject.as_str()).with("text", words);
    team.record(note)?;
    let owner = task.owner_member();
    if let Some(owner) = owner.filter(|owner| owner != who && !task.state.is_over())
        && can_be_told(team, &owner)?
    {
        let called = format!("task #{id} \"{}\"", text::short(&task.subject, SUBJECT));
        let said = Message::Text(format!("Comment on {called}: {words}"));
        Post::new(who, &owner, said).because(Some(event)).send(team)?;
    }
    Ok(task)
}

/// Records the progress of a task that the speaker owns.
///
/// # Errors
/// [`StoreError::NotYours`] unless the speaker is the owner or the lead; [`StoreError::NotRunning`]
/// unless the task is in progress.
pub fn report_progress(
    ctx: &Context,
    team: &TeamStore,
    id: TaskId,
    progress: &Progress,
) -> Result<Task, OpsError> {
    must_have_verb(team, "progress")?;
    resume(team, get(team, id)?, &ctx.speaker)?;
    let task = team.set_progress(id, &ctx.speaker, progress)?;
    let note = Note::of(EventKind::TaskProgress).task(id).member(&ctx.speaker);
    let note = note.with("subject", task.subject.as_str()).with("percent", progress.percent);
    let step = Some(progress.step.as_str()).filter(|step| !step.is_empty());
    team.record(note.with_some("step", step))?;
    Ok(task)
}

/// Attaches a file to a task. The file stays where it is.
///
/// # Errors
/// [`OpsError::Usage`] if `path` is not a regular file, or is larger than a file of the workspace
/// may be.
pub fn attach(ctx: &Context, team: &TeamStore, id: TaskId, path: &Path) -> Result<Task, OpsError> {
    must_have_verb(team, "attach")?;
    if fs::about(path)?.is_none_or(|about| about.kind != FileKind::File) {
        let problem = format!("{} is not a regular file", path.display());
        let hint = Some("attach a file that exists, not a directory or a link".to_owned());
        return Err(OpsError::Usage { problem, hint });
    }
    let (bytes, rules) = (fs::len(path)?.unwrap_or_default(), workspace_rules(team)?);
    if bytes > rules.max_file() {
        let (path, max) = (path.display(), rules.max_file_mb);
        let problem = format!("{path} has {bytes} bytes; a file of a task has at most {max} MB");
        let hint =
            "name it in a comment, or raise the limit: `phalanx team set workspace.max_file_mb N`";
        return Err(OpsError::Usage { problem, hint: Some(hint.to_owned()) });
    }
    // Two paths of one file are one attachment.
    let path = fs::canonical(path)?;
    let task = resume(team, get(team, id)?, &ctx.speaker)?;
    let note = Note::of(EventKind::TaskAttached).task(id).member(&ctx.speaker);
    let note = note.with("subject", task.subject.as_str());
    let note = note.with("path", path.to_string_lossy()).with("bytes", bytes);
    team.record(note.with_some("host", team.host().map(HostName::as_str)))?;
    Ok(task)
}

/// Resumes a stale task if `who` owns it: its owner is not silent any more. Returns the task.
pub fn resume(team: &TeamStore, task: Task, who: &MemberName) -> Result<Task, OpsError> {
    if task.state != TaskState::Stale || !task.is_owned_by(who) {
        return Ok(task);
    }
    match end(team, task.id, who, &TaskStep::of(TaskAction::Recover)) {
        // Another process has changed the task meanwhile.
        Err(OpsError::Store(StoreError::Transition { .. } | StoreError::NotYours { .. })) => {
            get(team, task.id)
        }
        resumed => Ok(resumed?.0),
    }
}
