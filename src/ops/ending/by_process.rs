//! Ends what runs for a team on this machine by what the kernel and the terminals show, without the
//! team's files: they may be missing, unreadable, or on a full disk. A process is taken for one of
//! the team only if it is a launcher of phalanx for it, or has the marks of one of its runs in its
//! environment; a pane only if one of these launchers is its process.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::members::launchers::{Launcher, launchers};
use crate::members::{backends, lead};
use crate::{Context, OpsError};
use backend::tmux::{self, Census, Resident, Tmux};
use backend::{Backend, Mark, TmuxHome};
use model::id::{Incarnation, MemberName, TeamName};
use model::members::placement::{Layout, Placement, ProcessId};
use store::TeamStore;
use sys::parallel::parallel_map;
use sys::proc::{self, Process, RunningProcess};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Runs that are ended at the same time.
const AT_ONCE: usize = 64;
/// Number of times that the runs are listed: a lead that was starting members may have started
/// another one before it was ended.
const ROUNDS: usize = 10;

/// Something that was ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndedRun {
    /// The member; `None` for the lead and where the environment does not tell.
    pub member: Option<MemberName>,
    /// The pane, or the process.
    pub place: String,
    /// The reason why it was not ended.
    pub failure: Option<String>,
}

/// Returns the teams under the config root that have a running launcher, whatever their files say.
pub fn running_teams(ctx: &Context) -> BTreeSet<TeamName> {
    let running = launchers(&ctx.caller.exe).into_iter();
    running.filter(|run| run.root == ctx.store.root()).map(|run| run.team).collect()
}

/// Ends the team's lead, so that it starts no other run, and then all runs of the team.
pub fn end_team(ctx: &Context, team: &TeamStore) -> Vec<EndedRun> {
    let lead = end_lead(team);
    lead.into_iter().chain(end_members(ctx, team, None)).collect()
}

/// Ends all runs of the team, or only those of some members.
pub fn end_members(ctx: &Context, team: &TeamStore, only: Option<&[MemberName]>) -> Vec<EndedRun> {
    let mut ended = BTreeMap::new();
    for _ in 0..ROUNDS {
        let marked = marked_processes();
        let name = |run: &Incarnation| {
            marked.iter().find(|one| one.run == *run).map(|one| one.member.clone())
        };
        let is_wanted = |member: Option<&MemberName>| {
            only.is_none_or(|only| member.is_some_and(|m| only.contains(m)))
        };
        let mut runs = launchers_of(ctx, team);
        runs.retain(|run| is_wanted(name(&run.incarnation).as_ref()));
        let is_of_team = |one: &&MarkedProcess| {
            one.team == team.name().as_str() && one.root == team.root().as_os_str()
        };
        // Of these runs there may be processes without a launcher, which was killed.
        let left = marked.iter().filter(is_of_team).filter(|one| is_wanted(Some(&one.member)));
        let left: BTreeSet<String> = left.map(|one| mark(&one.run)).collect();
        if runs.is_empty() && left.is_empty() {
            break;
        }
        for (run, one) in end_runs(ctx, &runs) {
            let one = EndedRun { member: name(&run.incarnation), ..one };
            ended.insert(one.place.clone(), one);
        }
        let marks: Vec<String> = left.into_iter().collect();
        proc::end_marked(&marks, GRACE);
    }
    ended.into_values().collect()
}

/// Ends a lead that does not hold the lease, because the directory of its file was removed. Another
/// process could lead beside it.
pub fn end_unleased_lead(team: &TeamStore) -> Result<Option<EndedRun>, OpsError> {
    if lead::is_led(team)? { Ok(None) } else { Ok(end_lead(team)) }
}

fn end_lead(team: &TeamStore) -> Option<EndedRun> {
    lead::proven_lead(team).map(end_lead_process)
}

/// Ends a lead without its members, which it would ask to end.
fn end_lead_process(lead: Process) -> EndedRun {
    proc::kill(lead);
    let failure = (!proc::wait_exit(lead, GRACE)).then(|| "it still runs".to_owned());
    EndedRun { member: None, place: format!("the lead, process {}", lead.pid), failure }
}

/// Returns the launchers of the team.
pub(crate) fn launchers_of(ctx: &Context, team: &TeamStore) -> Vec<Launcher> {
    let mut running = launchers(&ctx.caller.exe);
    running.retain(|launcher| is_of(launcher, team));
    running
}

pub fn is_of(launcher: &Launcher, team: &TeamStore) -> bool {
    launcher.root == team.root() && launcher.team == *team.name()
}

/// A process of a run, by its environment.
struct MarkedProcess {
    run: Incarnation,
    member: MemberName,
    team: OsString,
    root: OsString,
}

/// Returns the processes of all runs of this user, except this one.
fn marked_processes() -> Vec<MarkedProcess> {
    let marked = |running: RunningProcess| {
        let names =
            ["PHALANX_INCARNATION", "PHALANX_AGENT_NAME", "PHALANX_TEAM", "PHALANX_CONFIG_DIR"];
        let [run, member, team, root] = running.vars(names);
        Some(MarkedProcess {
            run: Incarnation::parse(run?.to_str()?).ok()?,
            member: MemberName::existing(member?.to_str()?).ok()?,
            team: team?,
            root: root?,
        })
    };
    let others = proc::of_this_user().into_iter();
    others.filter(|running| running.process != Process::current()).filter_map(marked).collect()
}

fn mark(run: &Incarnation) -> String {
    format!("PHALANX_INCARNATION={run}")
}

/// Ends these runs and closes their panes. Returns each with the launcher that it was found by.
pub(crate) fn end_runs<'l>(ctx: &Context, runs: &'l [Launcher]) -> Vec<(&'l Launcher, EndedRun)> {
    let panes = panes(ctx, runs);
    let left = end_processes(runs);
    let end = |run: &Launcher| {
        let has_left = || left.contains(&run.process).then(|| "it still runs".to_owned());
        let (place, failure) = match panes.get(&run.process.pid) {
            None => (format!("process {}", run.process.pid), has_left()),
            Some(pane) => (
                Placement::Tmux(pane.pane.clone()).to_string(),
                close(ctx, run, pane).err().map(|e| e.to_string()).or_else(has_left),
            ),
        };
        EndedRun { member: None, place, failure }
    };
    runs.iter().zip(parallel_map(runs, AT_ONCE, end)).collect()
}

/// Ends the processes of a run, then closes its pane if it still exists. Returns whether no process
/// is left.
pub(crate) fn end_pane(
    ctx: &Context,
    run: &Launcher,
    resident: &Resident,
) -> Result<bool, OpsError> {
    let left = end_processes(std::slice::from_ref(run));
    close(ctx, run, resident)?;
    Ok(left.is_empty())
}

/// Closes the pane of a run whose processes have ended, if it still exists.
fn close(ctx: &Context, run: &Launcher, resident: &Resident) -> Result<(), OpsError> {
    let program = backends::tmux_program(ctx).map_err(|problem| OpsError::Failed { problem })?;
    let home = TmuxHome {
        program,
        socket: Some(PathBuf::from(&resident.pane.socket)),
        inside: None,
        last: None,
        team: run.team.to_string(),
        tag: String::new(),
        layout: Layout::default(),
    };
    let placement = Placement::Tmux(resident.pane.clone());
    Tmux::new(home).close(Mark::new(&placement, &resident.token)).into_verdict(&placement)?;
    Ok(())
}

/// Ends the process trees of the launchers, and processes that left the trees but still carry an
/// incarnation in their environment. Returns the processes that are left.
pub(crate) fn end_processes(runs: &[Launcher]) -> Vec<Process> {
    let roots: Vec<Process> = runs.iter().map(|run| run.process).collect();
    let marks: Vec<String> = runs.iter().map(|run| mark(&run.incarnation)).collect();
    let mut left = proc::end_trees(&roots, GRACE);
    left.extend(proc::end_marked(&marks, GRACE));
    left
}

/// Returns the panes whose processes are these launchers, by pid. Each launcher names its server in
/// its environment and is a child of it, which no other program can arrange.
fn panes(ctx: &Context, runs: &[Launcher]) -> BTreeMap<i32, Resident> {
    let sockets: BTreeSet<&Path> = runs.iter().filter_map(|run| run.socket.as_deref()).collect();
    let Ok(program) = backends::tmux_program(ctx) else { return BTreeMap::new() };
    let census = sockets.into_iter().filter_map(|socket| tmux::census(&program, socket).ok()?);
    let mut found = BTreeMap::new();
    for Census { server, residents, .. } in census {
        let in_pane = |resident: &Resident| {
            let ProcessId { pid, start } = resident.pane.pane;
            let is_it = |run: &&Launcher| {
                run.process == (Process { pid, start }) && run.parent == server.pid
            };
            runs.iter().any(|run| is_it(&run))
        };
        found.extend(residents.into_iter().filter(in_pane).map(|one| (one.pane.pane.pid, one)));
    }
    found
}
