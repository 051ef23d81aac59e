//! Reading tasks, and what decides about them.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::OpsError;
use model::board::task::Task;
use model::board::task_ref::TaskRef;
use model::board::{Board, Refusal};
use model::id::{MemberName, TaskId};
use model::mail::scope::Scope;
use model::team::settings::Settings;
use store::{StoreError, TeamStore};

/// Returns the board, with completed and cancelled tasks only if `all` is set.
pub fn board_of(team: &TeamStore, all: bool) -> Result<Board, OpsError> {
    Ok(if all { team.board()? } else { team.open_board()? })
}

/// An origin of tasks, and the number of its tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScopeCount {
    pub scope: Scope,
    pub tasks: usize,
    /// Tasks that are not over.
    pub open: usize,
}

/// Returns the distinct origins of the tasks on the board, without that of the team itself.
pub fn scopes(team: &TeamStore) -> Result<Vec<ScopeCount>, OpsError> {
    let mut counts: BTreeMap<Scope, (usize, usize)> = BTreeMap::new();
    for task in team.board()?.work().filter(|task| !task.extra.scope.is_empty()) {
        let (tasks, open) = counts.entry(task.extra.scope.clone()).or_default();
        *tasks += 1;
        *open += usize::from(!task.state.is_over());
    }
    Ok(counts.into_iter().map(|(scope, (tasks, open))| ScopeCount { scope, tasks, open }).collect())
}

pub fn get(team: &TeamStore, id: TaskId) -> Result<Task, OpsError> {
    Ok(team.task(id)?.ok_or(StoreError::Refused(Refusal::TaskNotFound(id)))?)
}

/// Returns the id of the task that `named` names.
///
/// # Errors
/// As [`Board::find`], for a key.
pub fn find(team: &TeamStore, named: &TaskRef) -> Result<TaskId, OpsError> {
    match named {
        TaskRef::Id(id) => Ok(*id),
        TaskRef::Key(key) => Ok(team.board()?.find(key).map_err(StoreError::from)?),
    }
}

/// Returns the ids of the tasks that `named` names.
///
/// # Errors
/// As [`find`].
pub fn find_all(team: &TeamStore, named: &[TaskRef]) -> Result<Vec<TaskId>, OpsError> {
    named.iter().map(|named| find(team, named)).collect()
}

/// Returns the role of a member, as the roster has it.
pub fn role_of(team: &TeamStore, who: &MemberName) -> Result<Option<String>, OpsError> {
    Ok(team.team()?.member(who).and_then(|member| member.agent_type.clone()))
}

/// Returns the task if `who` owns it and it is in progress.
pub fn claimed(team: &TeamStore, id: TaskId, who: &MemberName) -> Result<Option<Task>, OpsError> {
    let task = team.task(id)?;
    Ok(task.filter(|task| task.state.is_running() && task.is_owned_by(who)))
}

/// Checks that a member of this name is on the team, or is started when there is work for it.
pub(crate) fn must_be_member(team: &TeamStore, name: &MemberName) -> Result<(), OpsError> {
    let roster = team.team()?;
    let comes = |settings: Settings| settings.templates.iter().any(|template| template.makes(name));
    if roster.member(name).is_some() || team.settings()?.is_some_and(comes) {
        return Ok(());
    }
    Err(OpsError::no_such_member(team, name, &roster.members))
}
