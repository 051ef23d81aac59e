//! `doctor`: reports problems of the teams in this config root and of their environment. `--fix`
//! repairs only what is proven to belong to phalanx and is safe to remove.

mod finding;
mod orphans;
mod self_test;
mod surroundings;
mod teams;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

pub use finding::{Finding, Severity};
pub use self_test::{CheckReport, CheckVerdict, self_test};

use crate::authority::{self, speaker};
use crate::ending::by_process;
use crate::starting::agents::{self, AgentProgram};
use crate::{Context, OpsError};
use model::id::TeamName;
use store::TeamStore;

/// The result of `doctor`.
#[derive(Debug, Clone, Serialize)]
pub struct Checked {
    /// Number of teams checked.
    pub teams: usize,
    /// Number of tmux servers checked.
    pub servers: usize,
    /// The agents on the caller's PATH.
    pub agents: Vec<AgentProgram>,
    /// Repaired findings last; within each group the most severe first.
    pub findings: Vec<Finding>,
}

/// Checks all teams, servers and shared directories; with `fix`, repairs what phalanx owns. For a
/// member or an agent lead, only the teams that it may look at, and no shared directories.
///
/// # Errors
///
/// The shared directories of the config root cannot be listed. A team that cannot be read becomes a
/// finding instead.
pub fn doctor(ctx: &Context, fix: bool) -> Result<Checked, OpsError> {
    // Read servers before records: a spawner writes its record before it creates the pane, so every
    // pane seen here has its record in the later read.
    let servers = surroundings::servers(ctx);
    // If the directory of teams cannot be listed, `common` reports it.
    let names = authority::visible_teams(ctx).unwrap_or_default();
    let teams: Vec<TeamStore> = names.iter().filter_map(|name| ctx.store.team(name).ok()).collect();
    let mut findings = servers.findings.clone();
    findings.extend(surroundings::machine(ctx));
    let is_person = !speaker::has_token(ctx);
    if is_person {
        findings.extend(surroundings::common(ctx, fix)?);
        // A team that has just lost its file is known by what runs for it.
        let running = by_process::running_teams(ctx).into_iter().map(|name| ctx.store.open(&name));
        let running = running.filter(TeamStore::has_lost_team_file);
        let settled = ctx.store.without_team_file().unwrap_or_default();
        let without_file: BTreeMap<TeamName, TeamStore> =
            settled.into_iter().chain(running).map(|team| (team.name().clone(), team)).collect();
        findings.extend(without_file.values().map(teams::without_file));
    }
    for team in &teams {
        // An unreadable team must not hide the findings of other teams.
        findings.extend(
            teams::team(ctx, team, fix).unwrap_or_else(|e| vec![teams::unreadable(team, &e)]),
        );
    }
    findings.extend(orphans::orphans(ctx, &servers, &teams, is_person, fix));
    findings.sort_by_key(|finding| (finding.fixed, Reverse(finding.severity)));
    let mut agents = agents::on_path(ctx)?;
    agents::find_versions(ctx, &mut agents);
    Ok(Checked { teams: teams.len(), servers: servers.census.len(), agents, findings })
}
