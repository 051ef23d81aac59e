//! `ps`: every team on this machine, whichever program leads it: those under the config root, and
//! those of other roots for which a launcher of this user runs. A team of another root without a
//! running launcher is not found.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use crate::model::id::{HostName, MemberName, TeamName};
use crate::model::placement::Placement;
use crate::model::protocol::news::is_news;
use crate::model::record::MemberRecord;
use crate::ops::authority;
use crate::ops::decisions::decide;
use crate::ops::hosts::{self, HostAnswer};
use crate::ops::members::launchers::launchers;
use crate::ops::members::lead::{self, LeadSeen, Life};
use crate::ops::members::presence;
use crate::ops::members::status::{self, MemberStatus, Status, TaskCounts};
use crate::ops::{Context, OpsError};
use crate::store::TeamStore;
use crate::sys::parallel::parallel_map;
use crate::sys::proc::Liveness;

/// A member and the liveness of its processes.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MemberSeen {
    #[serde(flatten)]
    pub(crate) status: MemberStatus,
    /// `None` for a member that phalanx did not start, whose process is not on record. That of a
    /// member on another host is what the host reports.
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
    /// Other hosts that have members and could not be asked about them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) silent_hosts: Vec<SilentHost>,
    /// The reason why the other fields are empty: files that cannot be read.
    pub(crate) problem: Option<String>,
}

/// A host that could not be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SilentHost {
    pub(crate) host: HostName,
    pub(crate) problem: String,
}

/// Teams that are read at the same time; most of the time is that of other hosts.
const AT_ONCE: usize = 16;

/// Returns all teams that the caller may look at; those under its config root come first. Waits for
/// the answers of other hosts for [`hosts::HOSTS_ANSWER`].
pub(crate) fn ps(ctx: &Context) -> Result<Vec<TeamOnMachine>, OpsError> {
    let ask = |team: &TeamStore, records: &[MemberRecord]| {
        hosts::ask_hosts(ctx, team, records, hosts::HOSTS_ANSWER)
    };
    Ok(parallel_map(&all_teams(ctx)?, AT_ONCE, |team| team_on_machine(ctx, team, &ask)))
}

/// As [`ps`], without asking other hosts: their members are unknown.
pub(crate) fn ps_of_this_machine(ctx: &Context) -> Result<Vec<TeamOnMachine>, OpsError> {
    let ask = |_: &TeamStore, _: &[MemberRecord]| Vec::new();
    Ok(all_teams(ctx)?.iter().map(|team| team_on_machine(ctx, team, &ask)).collect())
}

fn all_teams(ctx: &Context) -> Result<Vec<TeamStore>, OpsError> {
    let own = authority::visible_teams(ctx)?;
    let mut teams: Vec<TeamStore> =
        own.iter().filter_map(|name| ctx.store.team(name).ok()).collect();
    let others = teams_of_other_roots(ctx);
    teams.extend(others.into_iter().filter(|team| authority::may_look(ctx, team)));
    Ok(teams)
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
fn team_on_machine(
    ctx: &Context,
    team: &TeamStore,
    ask: &impl Fn(&TeamStore, &[MemberRecord]) -> Vec<HostAnswer>,
) -> TeamOnMachine {
    read_team(ctx, team, ask).unwrap_or_else(|e| TeamOnMachine {
        root: team.root().to_owned(),
        team: team.name().clone(),
        lead: None,
        members: Vec::new(),
        tasks: TaskCounts::default(),
        requests: 0,
        sockets: BTreeSet::new(),
        silent_hosts: Vec::new(),
        problem: Some(e.to_string()),
    })
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
        let alive = record.map(|record| {
            Life::from(match record.other_host() {
                Some(_) => elsewhere(record),
                None => presence::liveness(record),
            })
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
pub(in crate::ops) fn sockets<'r>(
    team: &TeamStore,
    records: impl IntoIterator<Item = &'r MemberRecord>,
) -> Result<BTreeSet<String>, OpsError> {
    let configured = team.settings()?.and_then(|s| s.home.tmux_socket);
    Ok(records.into_iter().filter_map(socket).chain(configured).collect())
}

/// Like [`status::status`], with the number of unread news of the lead. A mailbox can be large.
/// What members ask is filed first, if no lead does that.
pub(crate) fn status_with_unread(ctx: &Context, team: &TeamStore) -> Result<Status, OpsError> {
    decide::process_if_not_led(ctx, team)?;
    let unread = team.mailbox(&MemberName::lead()).unread_where(is_news)?.len();
    Ok(Status { unread: Some(unread), ..status::status(team)? })
}
