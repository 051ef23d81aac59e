//! Makes, lists and describes teams.

pub mod broken;
pub mod claude_settings;
pub(crate) mod foreign_lead;
pub mod foreign_members;
pub mod hooks;
pub mod lease;
pub mod project;
pub mod transfer;
pub mod worktree;

use crate::authority::{self, Action, speaker};
use crate::members::{depth, lead, status};
use crate::{Context, OpsError, now};
use model::id::{LEAD, TeamName};
use model::team::Team;
use model::team::event::{EventKind, Note};
use model::team::settings::Settings;
use model::time::Timestamp;
use store::{StoreError, TeamStore};
use sys::proc::Liveness;
use sys::rand;

/// Creates a team whose lead is the caller. With `unique`, a taken name gets the next free suffix
/// (`-2`, `-3` …).
pub fn create(
    ctx: &Context,
    name: &str,
    description: &str,
    agent_type: Option<&str>,
    settings: &Settings,
    unique: bool,
) -> Result<TeamStore, OpsError> {
    authority::enter_without_team(ctx, Action::CreateTeam)?;
    depth::must_allow(ctx)?;
    depth::must_keep_within(ctx, settings.max_depth)?;
    let settings = Settings { creator: speaker::creator(ctx)?, ..settings.clone() };
    let mut wanted = TeamName::new(name)?;
    let cwd = ctx.caller.cwd.to_string_lossy();
    for ending in 2.. {
        let file = Team::found(
            &wanted,
            description,
            agent_type.unwrap_or(LEAD),
            &rand::uuid(),
            &cwd,
            now(),
        );
        match ctx.store.create(&wanted, &file, &settings) {
            Ok(team) => {
                team.record(Note::of(EventKind::TeamCreated).with("description", description))?;
                return Ok(team);
            }
            Err(StoreError::TeamTaken { .. }) if unique => {
                wanted = TeamName::new(&format!("{name}-{ending}"))?;
            }
            Err(StoreError::TeamTaken { name }) => return Err(taken(ctx, name)),
            Err(e) => return Err(e.into()),
        }
    }
    unreachable!("the endings are not exhausted before the names are too long");
}

/// Returns the error for a taken name. It tells whether the team still runs, so that a dead team
/// does not block its name without an explanation (SD-04).
fn taken(ctx: &Context, name: TeamName) -> OpsError {
    let look = || -> Result<(bool, Option<i32>), OpsError> {
        let team = ctx.store.team(&name)?;
        let led = team.current_lead()?.is_some() || lead::stranger(&team)?.is_some();
        let lead = lead::find_lead(&team)?.filter(|lead| !led && lead.alive == Liveness::Dead);
        Ok((led || !status::live_members(&team)?.is_empty(), lead.map(|lead| lead.pid)))
    };
    // A team that cannot be read may be running.
    let (alive, dead_lead) = look().unwrap_or((true, None));
    OpsError::TeamTaken { team: name, alive, dead_lead }
}

/// A team as `team list` shows it.
#[derive(Debug, Clone, serde::Serialize)]
pub struct ListedTeam {
    pub name: TeamName,
    pub description: Option<String>,
    pub members: Vec<String>,
    /// Process id of the phalanx that leads it.
    pub lead_pid: Option<i32>,
}

/// Returns the teams under the config root that the caller may look at. A team whose file cannot be
/// read is listed by its name.
pub fn list(ctx: &Context) -> Result<Vec<ListedTeam>, OpsError> {
    let mut found = Vec::new();
    for name in authority::visible_teams(ctx)? {
        let team = ctx.store.team(&name)?;
        let file = team.team().ok();
        found.push(ListedTeam {
            description: file.as_ref().and_then(|f| f.description.clone()),
            members: file
                .map(|f| f.teammates().map(|m| m.name.to_string()).collect())
                .unwrap_or_default(),
            lead_pid: team.current_lead()?.map(|lead| lead.process.pid),
            name,
        });
    }
    Ok(found)
}

/// Parts teams into those that phalanx has made or adopted, and those of other programs.
pub fn by_maker(ctx: &Context, names: Vec<TeamName>) -> (Vec<TeamName>, Vec<TeamName>) {
    names.into_iter().partition(|name| !lease::is_foreign(&ctx.store.open(name)))
}

pub fn created_at(team: &TeamStore) -> Result<Timestamp, OpsError> {
    Ok(team.team()?.created_at)
}
