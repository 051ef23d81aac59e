//! The files that members produce: list, read, write and delete them.

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;

use crate::authority::{self, Action};
use crate::{Context, OpsError, now};
use model::board::task::Task;
use model::board::workspace::{WorkspaceFile, WorkspaceMode, WorkspacePath, WorkspaceRules};
use model::id::MemberName;
use model::mail::scope::ChatName;
use store::{TeamStore, WorkspaceListing};

/// The output of `workspace list`.
#[derive(Debug, Serialize)]
pub struct WorkspaceView {
    pub dir: PathBuf,
    /// The conversation; `None` in a shared workspace.
    pub chat: Option<String>,
    pub files: Vec<WorkspaceFile>,
    /// Entries that cannot be used, and limits that files exceed which programs wrote directly.
    pub problems: Vec<String>,
}

/// Lists the files of a conversation.
pub fn list(team: &TeamStore, chat: &ChatName) -> Result<WorkspaceView, OpsError> {
    let rules = workspace_rules(team)?;
    let WorkspaceListing { files, used, unusable, complete } =
        team.workspace_files(&rules, chat)?;
    let mut problems = rules.exceeded(used, &files);
    problems.extend(unusable.into_iter().map(|entry| {
        format!("{entry} cannot be used: it is not a regular file with a plain name")
    }));
    if !complete {
        problems.push("the workspace has too many entries; not all are listed".to_owned());
    }
    let dir = team.workspace_dir(&rules, chat);
    let chat = (rules.scope == WorkspaceMode::Isolated).then(|| chat.as_str().to_owned());
    Ok(WorkspaceView { dir, chat, files, problems })
}

/// Returns the bytes of a file.
pub fn read(team: &TeamStore, chat: &ChatName, name: &WorkspacePath) -> Result<Vec<u8>, OpsError> {
    Ok(team.read_workspace_file(&workspace_rules(team)?, chat, name)?)
}

/// Writes a file for the speaker, linked to the task that it has in progress.
pub fn write(
    ctx: &Context,
    team: &TeamStore,
    chat: &ChatName,
    name: &WorkspacePath,
    bytes: &[u8],
) -> Result<WorkspaceFile, OpsError> {
    let rules = workspace_rules(team)?;
    Ok(team.write_workspace_file(&rules, chat, name, bytes, &ctx.speaker, now)?)
}

/// Deletes a file: one that the speaker wrote last, or for the lead any.
pub fn delete(
    ctx: &Context,
    team: &TeamStore,
    chat: &ChatName,
    name: &WorkspacePath,
) -> Result<(), OpsError> {
    let rules = workspace_rules(team)?;
    let files = team.workspace_files(&rules, chat)?.files;
    let writer = files.into_iter().find(|file| file.name == *name).and_then(|file| file.by);
    let owner = writer.as_deref().and_then(|writer| MemberName::existing(writer).ok());
    authority::enter(ctx, team, Action::DeleteFile, owner.as_slice())?;
    let by = &ctx.speaker;
    Ok(team.delete_workspace_file(&rules, chat, name, writer.as_deref(), by, now())?)
}

/// Returns the directory of a conversation, which is created if it is missing.
pub fn dir(team: &TeamStore, chat: &ChatName) -> Result<PathBuf, OpsError> {
    Ok(team.make_workspace(&workspace_rules(team)?, chat)?)
}

/// Adds to `env` the variables for work on a task that has a conversation of its own, whose
/// directory is created if it is missing.
pub fn enter_chat(
    team: &TeamStore,
    task: &Task,
    env: &mut Vec<(OsString, OsString)>,
) -> Result<(), OpsError> {
    let chat = task.extra.scope.chat.as_deref().and_then(|chat| ChatName::parse(chat).ok());
    let Some(chat) = chat else { return Ok(()) };
    let dir = dir(team, &chat)?;
    let own = [("PHALANX_CHAT", chat.as_str().into()), ("PHALANX_WORKSPACE", dir.into_os_string())];
    for (name, value) in own {
        env.retain(|(known, _)| known != name);
        env.push((name.into(), value));
    }
    Ok(())
}

/// Returns the largest file that may be written, in bytes.
pub fn max_file(team: &TeamStore) -> Result<u64, OpsError> {
    Ok(workspace_rules(team)?.max_file())
}

/// Returns the limits on the files of a team.
pub(crate) fn workspace_rules(team: &TeamStore) -> Result<WorkspaceRules, OpsError> {
    Ok(team.settings()?.map(|settings| settings.workspace).unwrap_or_default())
}
