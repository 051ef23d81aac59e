//! `wait`: for scripts that go on when something has come about.

use std::time::Duration;

use super::error::OpsError;
use super::status;
use crate::model::id::{MemberName, TaskId};
use crate::model::lifecycle::MemberState;
use crate::model::task::TaskState;
use crate::store::{StoreError, TeamStore};
use crate::sys::clock::Deadline;
use crate::sys::proc::Liveness;

/// What is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Until {
    /// The member has proven that it runs.
    Ready,
    /// It has nothing to do.
    Idle,
    /// It has ended.
    Gone,
    /// The task has come to its end.
    Task(TaskId),
}

/// What ended the wait: the members, or the task, with their state.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Came {
    pub(crate) name: String,
    pub(crate) state: String,
}

/// Looks again whenever files change, and at least this often, since a process can end without writing anything.
const SWEEP: Duration = Duration::from_millis(500);

/// Waits until all of `names` (with `any`: one of them) are there.
///
/// # Errors
/// [`OpsError::Deadline`] names what was waited for.
pub(crate) fn wait(
    team: &TeamStore,
    names: &[MemberName],
    any: bool,
    until: &Until,
    limit: Option<Duration>,
) -> Result<Vec<Came>, OpsError> {
    let deadline = limit.map(Deadline::after);
    let changes = team.changes()?;
    loop {
        let (came, open) = look(team, names, until)?;
        if open == 0 || (any && !came.is_empty()) {
            return Ok(came);
        }
        let left = deadline.map_or(SWEEP, |d| d.remaining().min(SWEEP));
        if left.is_zero() {
            let seconds = limit.unwrap_or_default().as_secs_f64().ceil() as u64;
            return Err(OpsError::Deadline { what: describe(names, until), seconds });
        }
        changes.wait(left);
    }
}

fn describe(names: &[MemberName], until: &Until) -> String {
    let who = super::error::names(names);
    match until {
        Until::Ready => format!("{who} did not become ready"),
        Until::Idle => format!("{who} did not become idle"),
        Until::Gone => format!("{who} did not end"),
        Until::Task(id) => format!("task {id} did not come to its end"),
    }
}

fn look(team: &TeamStore, names: &[MemberName], until: &Until) -> Result<(Vec<Came>, usize), OpsError> {
    if let Until::Task(id) = until {
        let task = super::task::get(team, *id)?;
        let over = task.state.is_over();
        let came = Came { name: id.to_string(), state: task.state.as_str().to_owned() };
        return Ok(if over { (vec![came], 0) } else { (Vec::new(), 1) });
    }
    let mut came = Vec::new();
    for name in names {
        if let Some(state) = member_came(team, name, until)? {
            came.push(Came { name: name.to_string(), state: state.to_owned() });
        }
    }
    let open = names.len() - came.len();
    Ok((came, open))
}

fn member_came(team: &TeamStore, name: &MemberName, until: &Until) -> Result<Option<&'static str>, OpsError> {
    let Some(record) = team.member_record(name)? else {
        let roster = team.team()?;
        if *until == Until::Gone && roster.member(name).is_none() {
            return Ok(Some("gone"));
        }
        let known = roster.members.into_iter().map(|m| m.name).collect();
        return Err(StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into());
    };
    let gone = record.state.is_over() || status::liveness(&record) == Liveness::Dead;
    let idle = record.state == MemberState::Idle && team.board()?.work_of(name).is_none();
    let reached = match until {
        Until::Ready => record.state.is_up(),
        Until::Idle => idle,
        Until::Gone => gone,
        Until::Task(_) => false,
    };
    match (reached, gone) {
        // Nobody has noticed its end yet; what its record says is no longer so.
        (true, true) if !record.state.is_over() => Ok(Some("gone")),
        (true, _) => Ok(Some(record.state.as_str())),
        // It will never be ready or idle any more: say so instead of waiting for nothing.
        (false, true) => {
            Err(OpsError::NotEnded { what: format!("`{name}` has ended: {}", record.state.as_str()) })
        }
        (false, false) => Ok(None),
    }
}

/// Gives the state word of a task's end as success or not, for exit codes.
pub(crate) fn is_good(came: &Came, until: &Until) -> bool {
    !matches!(until, Until::Task(_)) || came.state == TaskState::Completed.as_str()
}
