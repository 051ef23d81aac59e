//! `ps`: every team on this machine, whichever program leads it: those under the config root, and
//! those of other roots for which a launcher of this user runs. A team of another root without a
//! running launcher is not found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::context::Context;
use super::error::OpsError;
use super::launchers::launchers;
use super::lease::{self, LeadSeen, Life};
use super::status::{self, MemberStatus, TaskCounts};
use crate::model::id::{Incarnation, MemberName, TeamName};
use crate::model::placement::Placement;
use crate::model::record::MemberRecord;
use crate::store::{StoreError, TeamStore};

/// A member and the liveness of its processes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MemberSeen {
    #[serde(flatten)]
    pub(crate) status: MemberStatus,
    /// `None` for a member that phalanx did not start, whose process is not on record.
    pub(crate) alive: Option<Life>,
    /// Socket of the tmux server that its pane is in.
    pub(crate) socket: Option<String>,
}

/// A team on this machine.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TeamOnMachine {
    /// The config root of the team.
    pub(crate) root: PathBuf,
    pub(crate) team: TeamName,
    pub(crate) lead: Option<LeadSeen>,
    pub(crate) members: Vec<MemberSeen>,
    pub(crate) tasks: TaskCounts,
    pub(crate) requests: usize,
    /// The tmux sockets that its members are or were on, and the one for its next members.
    pub(crate) sockets: BTreeSet<String>,
    /// The reason why the other fields are empty: files that cannot be read.
    pub(crate) problem: Option<String>,
}

/// Returns all teams; those under the caller's config root come first.
pub(crate) fn ps(ctx: &Context) -> Result<Vec<TeamOnMachine>, OpsError> {
    let mut teams: Vec<TeamStore> =
        ctx.store.teams()?.iter().filter_map(|name| ctx.store.team(name).ok()).collect();
    teams.extend(teams_of_other_roots(ctx));
    Ok(teams.iter().map(team_on_machine).collect())
}

/// Returns the teams of other config roots for which a launcher runs.
fn teams_of_other_roots(ctx: &Context) -> Vec<TeamStore> {
    let mut found: BTreeMap<(PathBuf, TeamName), TeamStore> = BTreeMap::new();
    for launcher in launchers(&ctx.caller.exe) {
        if launcher.root != ctx.store.root()
            && let Ok(team) = ctx.store.under(&launcher.root).team(&launcher.team)
        {
            found.insert((launcher.root, launcher.team), team);
        }
    }
    found.into_values().collect()
}

/// Returns the other config root under which a team of this name has running members.
pub(crate) fn root_of(ctx: &Context, name: &TeamName) -> Option<PathBuf> {
    teams_of_other_roots(ctx)
        .into_iter()
        .find(|team| team.name() == name)
        .map(|team| team.root().to_owned())
}

/// Reads one team. An unreadable team is returned with its problem and does not hide the others.
fn team_on_machine(team: &TeamStore) -> TeamOnMachine {
    read_team(team).unwrap_or_else(|e| TeamOnMachine {
        root: team.root().to_owned(),
        team: team.name().clone(),
        lead: None,
        members: Vec::new(),
        tasks: TaskCounts::default(),
        requests: 0,
        sockets: BTreeSet::new(),
        problem: Some(e.to_string()),
    })
}

fn read_team(team: &TeamStore) -> Result<TeamOnMachine, OpsError> {
    let status = status::status(team)?;
    let records: BTreeMap<MemberName, MemberRecord> =
        team.member_records()?.into_iter().map(|record| (record.name.clone(), record)).collect();
    let sockets = sockets(team, records.values())?;
    let member = |status: MemberStatus| {
        let record = records.get(&status.name);
        let alive = record.map(|record| Life::from(status::liveness(record)));
        MemberSeen { alive, socket: record.and_then(socket), status }
    };
    Ok(TeamOnMachine {
        root: team.root().to_owned(),
        team: team.name().clone(),
        lead: lease::find_lead(team)?,
        members: status.members.into_iter().map(member).collect(),
        tasks: status.tasks,
        requests: status.requests,
        sockets,
        problem: None,
    })
}

fn socket(record: &MemberRecord) -> Option<String> {
    match record.placement.as_ref().filter(|_| !record.is_elsewhere)? {
        Placement::Tmux(pane) => Some(pane.socket.clone()),
        Placement::Iterm2(_) | Placement::Pty(_) | Placement::Exec(_) => None,
    }
}

/// Returns the tmux sockets that a team's members are or were on, and the one for its next members.
pub(super) fn sockets<'r>(
    team: &TeamStore,
    records: impl IntoIterator<Item = &'r MemberRecord>,
) -> Result<BTreeSet<String>, OpsError> {
    let configured = team.settings()?.and_then(|s| s.home.tmux_socket);
    Ok(records.into_iter().filter_map(socket).chain(configured).collect())
}

/// Returns true if a team of this name under `root` knows the run, whose processes are then not
/// orphans.
pub(super) fn is_known(
    ctx: &Context,
    root: &Path,
    name: &TeamName,
    incarnation: &Incarnation,
) -> bool {
    let records = ctx.store.under(root).team(name).and_then(|team| team.member_records());
    // A team that cannot be read may know it.
    records.map_or_else(
        |e| !matches!(e, StoreError::NoSuchTeam { .. }),
        |records| records.iter().any(|record| record.is(incarnation)),
    )
}
