//! `team create`, `team list`, `team show`, `team delete`.

pub(crate) mod broken;
pub(in crate::ops) mod claude_settings;
pub(in crate::ops) mod foreign_lead;
pub(crate) mod foreign_members;
pub(crate) mod hooks;
pub(crate) mod lease;
pub(in crate::ops) mod own_files;
pub(crate) mod project;
pub(crate) mod settings;
pub(crate) mod transfer;

use crate::model::event::{EventKind, Note};
use crate::model::id::{LEAD, MemberName, TeamName};
use crate::model::record::MemberRecord;
use crate::model::settings::Settings;
use crate::model::team::Team;
use crate::model::time::Timestamp;
use crate::ops::authority::Action;
use crate::ops::authority::{self, speaker};
use crate::ops::doctor;
use crate::ops::ending::by_process;
use crate::ops::members::{depth, status};
use crate::ops::starting::backends;
use crate::ops::starting::worktree::{self, Removal};
use crate::ops::team::lease::{LeadSeen, Life};
use crate::ops::{Context, OpsError, now};
use crate::store::{StoreError, TeamStore};
use crate::sys::{failpoint, proc, rand};

/// Creates a team whose lead is the caller. With `unique`, a taken name gets the next free suffix
/// (`-2`, `-3` …).
pub(crate) fn create(
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
        let led = team.current_lead()?.is_some() || lease::stranger(&team)?.is_some();
        let lead = lease::find_lead(&team)?.filter(|lead| !led && lead.alive == Life::Dead);
        Ok((led || !status::live_members(&team)?.is_empty(), lead.map(|lead| lead.pid)))
    };
    // A team that cannot be read may be running.
    let (alive, dead_lead) = look().unwrap_or((true, None));
    OpsError::TeamTaken { team: name, alive, dead_lead }
}

/// A team as `team list` shows it.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct ListedTeam {
    pub(crate) name: TeamName,
    pub(crate) description: Option<String>,
    pub(crate) members: Vec<String>,
    /// Process id of the phalanx that leads it.
    pub(crate) lead_pid: Option<i32>,
}

/// Returns the teams under the config root that the caller may look at. A team whose file cannot be
/// read is listed by its name.
pub(crate) fn list(ctx: &Context) -> Result<Vec<ListedTeam>, OpsError> {
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

/// A team as the start page of `phalanx` shows it.
#[derive(Debug, Clone, serde::Serialize)]
pub(crate) struct TeamGlance {
    pub(crate) name: TeamName,
    /// Another program made it, and phalanx has not adopted it.
    pub(crate) is_foreign: bool,
    pub(crate) members: usize,
    pub(crate) lead: Option<LeadSeen>,
    /// The reason why the other fields are empty: files that cannot be read.
    pub(crate) problem: Option<String>,
}

/// The teams under the config root that were read, and the number of those that were not. Without
/// those that the caller may not look at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overview {
    pub(crate) teams: Vec<TeamGlance>,
    pub(crate) more: usize,
}

/// Reads the first `most` teams, those of phalanx before those of other programs: each session of
/// Claude Code leaves one. Never fails: a team that cannot be read carries its problem.
pub(crate) fn overview(ctx: &Context, most: usize) -> Overview {
    let (ours, foreign) = by_maker(ctx, authority::visible_teams(ctx).unwrap_or_default());
    let all = ours.into_iter().map(|name| (name, false));
    let mut all: Vec<_> = all.chain(foreign.into_iter().map(|name| (name, true))).collect();
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    let teams = all.into_iter().map(|(name, is_foreign)| glance(ctx, name, is_foreign)).collect();
    Overview { teams, more }
}

/// Parts teams into those that phalanx has made or adopted, and those of other programs.
pub(crate) fn by_maker(ctx: &Context, names: Vec<TeamName>) -> (Vec<TeamName>, Vec<TeamName>) {
    names.into_iter().partition(|name| !lease::is_foreign(&ctx.store.open(name)))
}

fn glance(ctx: &Context, name: TeamName, is_foreign: bool) -> TeamGlance {
    let read = || -> Result<(usize, Option<LeadSeen>), OpsError> {
        let team = ctx.store.team(&name)?;
        Ok((team.team()?.teammates().count(), lease::find_lead(&team)?))
    };
    match read() {
        Ok((members, lead)) => TeamGlance { name, is_foreign, members, lead, problem: None },
        Err(e) => {
            let problem = Some(e.to_string());
            TeamGlance { name, is_foreign, members: 0, lead: None, problem }
        }
    }
}

pub(crate) fn created_at(team: &TeamStore) -> Result<Timestamp, OpsError> {
    Ok(team.team()?.created_at)
}

/// Completes an interrupted deletion of this team, for a person only: nothing is left of the team
/// that says who may do so. Returns true if there was one.
pub(crate) fn finish_deletion(ctx: &Context, name: &TeamName) -> Result<bool, OpsError> {
    Ok(!speaker::has_token(ctx) && ctx.store.finish_deletion(name)?)
}

/// Returns the members that phalanx did not start and whose tmux panes are open, as far as visible
/// from here. Such panes are never closed, because nothing proves whose they are (SD-05).
pub(crate) fn living_strangers(
    ctx: &Context,
    team: &TeamStore,
) -> Result<Vec<MemberName>, OpsError> {
    let mut living = Vec::new();
    for member in team.team()?.teammates().filter(|member| member.pane_id.starts_with('%')) {
        let ours = team.member_record(&member.name)?.is_some();
        if !ours && backends::tmux_pane_lives(ctx, team, &member.pane_id)? {
            living.push(member.name.clone());
        }
    }
    Ok(living)
}

/// Deletes a team whose members have all ended, by the state of the processes and not by the roster
/// (SD-04). Returns the worktrees that stay because work would be lost with them.
pub(crate) fn delete(ctx: &Context, team: &TeamStore) -> Result<Vec<Removal>, OpsError> {
    lease::must_be_free(team)?;
    lease::must_be_left(ctx, team)?;
    status::see_off(team)?;
    let mut live = status::live_members(team)?;
    let starting = starting_members(ctx, team)?;
    live.extend(starting.into_iter().filter(|name| !live.contains(name)).collect::<Vec<_>>());
    if !live.is_empty() {
        return Err(OpsError::LiveMembers { team: team.name().clone(), members: live });
    }
    must_have_no_lost_run(ctx, team)?;
    failpoint::hit("delete.checked");
    let kept = worktree::clear(ctx, team)?;
    // The last line of a journal that is deleted with the team, for processes that follow it. On a
    // full disk it cannot be written, and the deletion frees space.
    let _ = team.record(Note::of(EventKind::TeamDeleted));
    team.delete()?;
    Ok(kept)
}

/// Returns the members of launchers that run for a record which is not over. The record of a start
/// whose spawner was killed may name no process yet, and the launcher would outlive the team.
fn starting_members(ctx: &Context, team: &TeamStore) -> Result<Vec<MemberName>, OpsError> {
    let running = by_process::launchers_of(ctx, team);
    let records = if running.is_empty() { Vec::new() } else { team.member_records()? };
    let runs = |record: &MemberRecord| running.iter().any(|run| record.is(&run.incarnation));
    let starting = records.into_iter().filter(|record| !record.state.is_over() && runs(record));
    Ok(starting.map(|record| record.name).collect())
}

/// Rejects a team with a process that no record names: it would outlive the team. A process that
/// has just finished may need a moment to exit.
fn must_have_no_lost_run(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    for process in doctor::lost_runs(ctx, team) {
        if !proc::wait_exit(process, status::LEAVING) {
            let (pid, name) = (process.pid, team.name());
            let what = format!(
                "process {pid} belongs to team `{name}`, but no member record names it; end it with `phalanx down --force -t {name}`"
            );
            return Err(OpsError::NotEnded { what });
        }
    }
    Ok(())
}
