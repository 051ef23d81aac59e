//! `ps`: every team on this machine, whichever program leads it: those under the config root, and
//! those of other roots for which a launcher of this user runs. A team of another root without a
//! running launcher is not found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::authority::{self, speaker};
use crate::decisions::decide;
use crate::hosts::{self, HostAnswer};
use crate::members::launchers::{Launcher, launchers};
use crate::members::lead::{self, LeadSeen};
use crate::members::presence;
use crate::members::status::{self, MemberStatus, Status, TaskCounts};
use crate::{Context, OpsError};
use model::id::{HostName, MemberName, TeamName};
use model::mail::protocol::news::is_news;
use model::members::placement::Placement;
use model::members::record::MemberRecord;
use store::{StoreError, TeamStore};
use sys::parallel::parallel_map;
use sys::proc::Liveness;

/// A member and the liveness of its processes.
#[derive(Debug, Clone, Serialize)]
pub struct MemberSeen {
    #[serde(flatten)]
    pub status: MemberStatus,
    /// `None` for a member that phalanx did not start, whose process is not on record. That of a
    /// member on another host is what the host reports.
    pub alive: Option<Liveness>,
    /// Socket of the tmux server that its pane is in.
    pub socket: Option<String>,
}

/// A team on this machine.
#[derive(Debug, Clone, Serialize)]
pub struct TeamOnMachine {
    /// The config root of the team.
    pub root: PathBuf,
    pub team: TeamName,
    pub lead: Option<LeadSeen>,
    pub members: Vec<MemberSeen>,
    pub tasks: TaskCounts,
    pub requests: usize,
    /// The tmux sockets that its members are or were on, and the one for its next members.
    pub sockets: BTreeSet<String>,
    /// Other hosts that have members and could not be asked about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub silent_hosts: Vec<SilentHost>,
    /// The reason why the other fields are empty: files that cannot be read.
    pub problem: Option<String>,
}

/// A host that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SilentHost {
    pub host: HostName,
    pub problem: String,
}

/// Teams that are read at the same time; most of the time is that of other hosts.
const AT_ONCE: usize = 16;

/// Returns all teams that the caller may look at; those under its config root come first. Waits for
/// the answers of other hosts for [`hosts::HOSTS_ANSWER`].
pub fn ps(ctx: &Context) -> Result<Vec<TeamOnMachine>, OpsError> {
    let ask = |team: &TeamStore, records: &[MemberRecord]| {
        hosts::ask_hosts(ctx, team, records, hosts::HOSTS_ANSWER)
    };
    let running = launchers(&ctx.caller.exe);
    let read = |team: &TeamStore| team_on_machine(ctx, team, &ask);
    let mut found = parallel_map(&all_teams(ctx, &running)?, AT_ONCE, read);
    found.extend(deleted_teams(ctx, &running));
    Ok(found)
}

/// As [`ps`], without asking other hosts: their members are unknown.
pub(crate) fn ps_of_this_machine(ctx: &Context) -> Result<Vec<TeamOnMachine>, OpsError> {
    let ask = |_: &TeamStore, _: &[MemberRecord]| Vec::new();
    let teams = all_teams(ctx, &launchers(&ctx.caller.exe))?;
    Ok(teams.iter().map(|team| team_on_machine(ctx, team, &ask)).collect())
}

fn all_teams(ctx: &Context, running: &[Launcher]) -> Result<Vec<TeamStore>, OpsError> {
    let own = authority::visible_teams(ctx)?;
    let mut teams: Vec<TeamStore> =
        own.iter().filter_map(|name| ctx.store.team(name).ok()).collect();
    let others = teams_of_other_roots(ctx, running);
    teams.extend(others.into_iter().filter(|team| authority::may_look(ctx, team)));
    Ok(teams)
}

/// Returns the teams of other config roots for which a launcher runs.
fn teams_of_other_roots(ctx: &Context, running: &[Launcher]) -> Vec<TeamStore> {
    let mut found: BTreeMap<(&Path, &TeamName), TeamStore> = BTreeMap::new();
    for launcher in running.iter().filter(|launcher| launcher.root != ctx.store.root()) {
        if let Ok(team) = ctx.store.under(&launcher.root).team(&launcher.team) {
            found.insert((&launcher.root, &launcher.team), team);
        }
    }
    found.into_values().collect()
}

/// Returns the teams that were deleted while members of theirs run, for a person: Claude Code
/// deletes its team when it exits, and does not end what it has not started.
fn deleted_teams(ctx: &Context, running: &[Launcher]) -> Vec<TeamOnMachine> {
    let mut runs: BTreeMap<(&Path, &TeamName), usize> = BTreeMap::new();
    for launcher in running.iter().filter(|_| !speaker::has_token(ctx)) {
        *runs.entry((&launcher.root, &launcher.team)).or_default() += 1;
    }
    runs.retain(|(root, team), _| {
        matches!(ctx.store.under(root).team(team), Err(StoreError::NoSuchTeam { .. }))
    });
    let to_team = |((root, team), runs): ((&Path, &TeamName), usize)| {
        let root_text = root.to_string_lossy();
        let root_word = shlex::try_quote(&root_text).unwrap_or_else(|_| root_text.clone());
        let end = format!("`phalanx --config-dir {root_word} doctor --fix`");
        let problem = format!("was deleted, members that still run: {runs}; end them with {end}");
        without_files(root, team, problem)
    };
    runs.into_iter().map(to_team).collect()
}

/// Returns the other config root under which a team of this name has running members.
pub fn root_of(ctx: &Context, name: &TeamName) -> Option<PathBuf> {
    teams_of_other_roots(ctx, &launchers(&ctx.caller.exe))
        .into_iter()
        .find(|team| team.name() == name)
        .map(|team| team.root().to_owned())
}

/// Reads one team. An unreadable team is returned with its problem and does not hide the others.
fn team_on_machine(
    ctx: &Context,
    team: &TeamStore,
    ask: &impl Fn(&TeamStore, &[MemberRecord]) -> Vec<HostAnswer>,
) -> TeamOnMachine {
    read_team(ctx, team, ask)
        .unwrap_or_else(|e| without_files(team.root(), team.name(), e.to_string()))
}

/// Returns a team whose files cannot be read, for this reason.
fn without_files(root: &Path, team: &TeamName, problem: String) -> TeamOnMachine {
    TeamOnMachine {
        root: root.to_owned(),
        team: team.clone(),
        lead: None,
        members: Vec::new(),
        tasks: TaskCounts::default(),
        requests: 0,
        sockets: BTreeSet::new(),
        silent_hosts: Vec::new(),
        problem: Some(problem),
    }
}

fn read_team(
    ctx: &Context,
    team: &TeamStore,
    ask: &impl Fn(&TeamStore, &[MemberRecord]) -> Vec<HostAnswer>,
) -> Result<TeamOnMachine, OpsError> {
    decide::process_if_not_led(ctx, team)?;
    let status = status::status(team)?;
    let all = team.member_records()?;
    let answers = ask(team, &all);
    let records: BTreeMap<MemberName, MemberRecord> =
        all.into_iter().map(|record| (record.name.clone(), record)).collect();
    let sockets = sockets(team, records.values())?;
    let elsewhere = |record: &MemberRecord| {
        let seen = answers.iter().flat_map(|answer| &answer.runs);
        let seen = seen.filter(|run| record.is(&run.incarnation)).map(|run| run.liveness).next();
        seen.unwrap_or(Liveness::Unknown)
    };
    let member = |status: MemberStatus| {
        let record = records.get(&status.name);
        let alive = record.map(|record| match record.other_host() {
            Some(_) => elsewhere(record),
            None => presence::liveness(record),
        });
        MemberSeen { alive, socket: record.and_then(socket), status }
    };
    let silent = |answer: &HostAnswer| {
        let problem = answer.problem.as_ref()?.to_string();
        Some(SilentHost { host: answer.host.clone(), problem })
    };
    Ok(TeamOnMachine {
        root: team.root().to_owned(),
        team: team.name().clone(),
        lead: lead::find_lead(team)?,
        members: status.members.into_iter().map(member).collect(),
        tasks: status.tasks,
        requests: status.requests,
        sockets,
        silent_hosts: answers.iter().filter_map(silent).collect(),
        problem: None,
    })
}

fn socket(record: &MemberRecord) -> Option<String> {
    match record.placement.as_ref().filter(|_| !record.is_elsewhere)? {
        Placement::Tmux(pane) => Some(pane.socket.clone()),
        Placement::Iterm2(_) | Placement::Pty(_) => None,
    }
}

/// Returns the tmux sockets that a team's members are or were on, and the one for its next members.
pub fn sockets<'r>(
    team: &TeamStore,
    records: impl IntoIterator<Item = &'r MemberRecord>,
) -> Result<BTreeSet<String>, OpsError> {
    let configured = team.settings()?.and_then(|s| s.home.tmux_socket);
    Ok(records.into_iter().filter_map(socket).chain(configured).collect())
}

/// Like [`status::status`], with the number of unread news of the lead. A mailbox can be large.
/// What members ask is filed first, if no lead does that.
pub fn status_with_unread(ctx: &Context, team: &TeamStore) -> Result<Status, OpsError> {
    decide::process_if_not_led(ctx, team)?;
    let unread = team.mailbox(&MemberName::lead()).unread_where(is_news)?.len();
    Ok(Status { unread: Some(unread), ..status::status(team)? })
}
