//! `store export` and `store import`: copies a team between files and the shared store.

use serde::Serialize;

use crate::OpsError;
use crate::team::lease;
use model::id::{MemberName, TeamName};
use store::{Store, TeamStore};

/// A team that was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransferredTeam {
    pub team: TeamName,
    pub tasks: usize,
    pub messages: usize,
}

/// Copies a team into another store. The team stays where it is.
///
/// # Errors
/// [`OpsError::Usage`] while members run, and [`OpsError::LedByAnother`] while a lead runs, since
/// the copy would be out of date at once; the other store has a team of this name.
pub fn copy(team: &TeamStore, to: &Store) -> Result<TransferredTeam, OpsError> {
    let _lease = lease::hold(team)?;
    let running = team.member_records()?.into_iter().filter(|record| !record.state.is_over());
    let running: Vec<MemberName> = running.map(|record| record.name).collect();
    if !running.is_empty() {
        let names = running.iter().map(MemberName::as_str).collect::<Vec<_>>().join(", ");
        return Err(OpsError::usage(
            format!("members of team `{}` run: {names}", team.name()),
            format!("end them first: `phalanx shutdown --all -t {}`", team.name()),
        ));
    }
    let contents = team.contents()?;
    to.create_with(team.name(), &contents)?;
    let (tasks, messages) = contents.counts();
    Ok(TransferredTeam { team: team.name().clone(), tasks, messages })
}
