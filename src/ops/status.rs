//! `status`: how a team stands, from its files and from the processes themselves.

use std::time::Duration;

use serde::Serialize;

use super::context::now;
use super::error::OpsError;
use super::lease;
use crate::model::id::{MemberName, TaskId, TeamName};
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::record::MemberRecord;
use crate::model::task::TaskState;
use crate::store::TeamStore;
use crate::sys::proc::{self, Liveness, Process};

/// How long a launcher that has done its work may take to be gone.
const LEAVING: Duration = Duration::from_secs(2);

/// Who leads.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LeadStatus {
    pub(crate) pid: i32,
    pub(crate) host: String,
    pub(crate) since: String,
}

/// One member.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MemberStatus {
    pub(crate) name: MemberName,
    pub(crate) state: String,
    pub(crate) reason: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) profile: Option<String>,
    pub(crate) backend: Option<String>,
    pub(crate) pane: Option<String>,
    pub(crate) pid: Option<i32>,
    pub(crate) color: Option<String>,
    /// The task in progress that it owns.
    pub(crate) task: Option<TaskId>,
    /// The title of that task: its active form, else its subject.
    pub(crate) activity: Option<String>,
    /// For how long it has been idle.
    pub(crate) idle_ms: Option<u64>,
}

/// How many tasks are in each state.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TaskCounts {
    pub(crate) pending: usize,
    pub(crate) in_progress: usize,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    pub(crate) cancelled: usize,
}

/// A team.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Status {
    pub(crate) team: TeamName,
    pub(crate) lead: Option<LeadStatus>,
    pub(crate) members: Vec<MemberStatus>,
    pub(crate) tasks: TaskCounts,
    /// Requests that wait for an answer.
    pub(crate) requests: usize,
}

/// Whether the processes of this run are there; unknown while it was never placed.
pub(crate) fn liveness(record: &MemberRecord) -> Liveness {
    match record.launcher() {
        Some(launcher) => proc::liveness(launcher.pid, launcher.start),
        None => Liveness::Unknown,
    }
}

/// Returns true for a run whose program has ended and whose record does not say so yet.
fn has_ended(record: &MemberRecord) -> bool {
    !record.state.is_over() && (record.exit.is_some() || liveness(record) == Liveness::Dead)
}

/// The records of all runs that the team remembers.
pub(crate) fn records(team: &TeamStore) -> Result<Vec<MemberRecord>, OpsError> {
    Ok(team.member_records()?)
}

/// The record of one member's latest run.
pub(crate) fn record(team: &TeamStore, name: &MemberName) -> Result<Option<MemberRecord>, OpsError> {
    Ok(team.member_record(name)?)
}

/// The members whose processes live, or may live.
pub(crate) fn live_members(team: &TeamStore) -> Result<Vec<MemberName>, OpsError> {
    let alive = |r: &MemberRecord| match liveness(r) {
        Liveness::Alive => true,
        Liveness::Dead => false,
        Liveness::Unknown => !r.state.is_over() && r.placement.is_some(),
    };
    Ok(team.member_records()?.into_iter().filter(alive).map(|r| r.name).collect())
}

/// Waits for launchers that have taken their member off the team by themselves, and have only to end.
pub(crate) fn see_off(team: &TeamStore) -> Result<(), OpsError> {
    for record in team.member_records()?.iter().filter(|record| record.state.is_over()) {
        if let Some(launcher) = record.launcher() {
            proc::wait_exit(Process { pid: launcher.pid, start: launcher.start }, LEAVING);
        }
    }
    Ok(())
}

/// How the team stands. Members that have left are not shown (LY-12).
pub(crate) fn status(team: &TeamStore) -> Result<Status, OpsError> {
    let roster = team.team()?;
    let board = team.board()?;
    let mut members = Vec::new();
    for member in roster.teammates() {
        let record = team.member_record(&member.name)?;
        let task = board.work_of(&member.name).and_then(|id| board.tasks.get(&id));
        members.push(MemberStatus {
            name: member.name.clone(),
            state: state_word(record.as_ref(), member.is_active),
            reason: record.as_ref().and_then(reason),
            role: member.agent_type.clone(),
            profile: record.as_ref().map(|r| r.wish.profile.clone()),
            backend: record.as_ref().map(|r| r.backend.as_str().to_owned()).or(member.backend_type.clone()),
            pane: Some(member.pane_id.clone()).filter(|p| !p.is_empty()),
            pid: record.as_ref().and_then(|r| r.start.as_ref()).map(|s| s.program.pid),
            color: member.color.clone(),
            task: task.map(|task| task.id),
            activity: task.map(|task| task.title().to_owned()),
            idle_ms: record.filter(|r| r.state == MemberState::Idle).map(|r| now().since(r.state_since)),
        });
    }
    let mut tasks = TaskCounts::default();
    for task in board.work() {
        *match task.state {
            TaskState::Pending => &mut tasks.pending,
            TaskState::InProgress => &mut tasks.in_progress,
            TaskState::Completed => &mut tasks.completed,
            TaskState::Failed => &mut tasks.failed,
            TaskState::Cancelled => &mut tasks.cancelled,
        } += 1;
    }
    let lead = lead(team)?;
    let asked = team.questions()?.iter().filter(|q| q.is_open()).count();
    let requests = asked + team.requests()?.iter().filter(|r| r.is_open()).count();
    Ok(Status { team: team.name().clone(), lead, members, tasks, requests })
}

/// Why a run is in its state.
fn reason(record: &MemberRecord) -> Option<String> {
    let ending = record.ending().filter(|_| has_ended(record));
    ending.or_else(|| record.unresponsive.clone()).or_else(|| record.reason.clone())
}

/// Whoever leads: a phalanx, else the program that says so in the team file and is not proven gone.
fn lead(team: &TeamStore) -> Result<Option<LeadStatus>, OpsError> {
    if let Some(lead) = team.current_lead()? {
        return Ok(Some(LeadStatus { pid: lead.process.pid, host: lead.host, since: lead.since.iso() }));
    }
    let stranger = lease::stranger(team)?.map(|stranger| stranger.lead);
    Ok(stranger.map(|lead| LeadStatus {
        pid: lead.pid,
        host: lead.pid_space.split('#').next().unwrap_or_default().to_owned(),
        since: lead.claimed_at.iso(),
    }))
}

/// A run whose process is gone is shown as such at once, even if no lead has noticed yet (CR-01).
fn state_word(record: Option<&MemberRecord>, is_active: Option<bool>) -> String {
    match record {
        Some(record) if has_ended(record) => {
            let ended = record.exit.as_ref().map(|exit| Cause::Ended { code: exit.code });
            let next = record.state.after(ended.unwrap_or(Cause::Vanished));
            next.unwrap_or(MemberState::Disappeared).as_str().to_owned()
        }
        // It lives; what it does not do is answer.
        Some(record) if !record.state.is_over() && record.unresponsive.is_some() => "unresponsive".to_owned(),
        Some(record) => record.state.as_str().to_owned(),
        // Not started by phalanx: the team file is all there is.
        None => if is_active == Some(false) { "idle" } else { "active" }.to_owned(),
    }
}
