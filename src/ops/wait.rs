//! `wait`: blocks a script until members or a task reach a state.

use std::time::Duration;

use super::context::Context;
use super::error::OpsError;
use super::ps::HOSTS_ANSWER;
use super::{profiles, remote, spawn, status};
use crate::model::id::{Incarnation, MemberName, TaskId};
use crate::model::lifecycle::MemberState;
use crate::model::record::MemberRecord;
use crate::model::task::TaskState;
use crate::store::{StoreError, TeamChanges, TeamStore};
use crate::sys::clock::Deadline;
use crate::sys::proc::Liveness;

/// The state that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Until {
    /// The member is ready as its profile defines it.
    Ready,
    /// It is idle and has no task.
    Idle,
    /// It has ended.
    Gone,
    /// The task has ended.
    Task(TaskId),
}

/// A member, or the task, that has reached the state.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Came {
    /// Name of the member, or id of the task.
    pub(crate) name: String,
    pub(crate) state: String,
}

/// The poll interval: a process can end without writing anything.
const SWEEP: Duration = Duration::from_millis(500);
/// Interval of questions to other hosts: a launcher that was killed there writes nothing.
const HOSTS: Duration = Duration::from_secs(10);

/// A wait until members or a task reach a state. It keeps what other hosts have answered.
pub(crate) struct StateWait {
    ctx: Context,
    team: TeamStore,
    names: Vec<MemberName>,
    any: bool,
    until: Until,
    limit: Option<Duration>,
    deadline: Option<Deadline>,
    changes: TeamChanges,
    /// The runs on other hosts that their hosts report as dead.
    dead: Vec<Incarnation>,
    ask_hosts: Deadline,
}

impl StateWait {
    /// Begins a wait until all of `names`, or with `any` one of them, have reached the state. The
    /// limit counts from here.
    ///
    /// # Errors
    /// The team cannot be watched.
    pub(crate) fn begin(
        ctx: &Context,
        team: &TeamStore,
        names: &[MemberName],
        any: bool,
        until: &Until,
        limit: Option<Duration>,
    ) -> Result<StateWait, OpsError> {
        // A shorter wait asks once.
        let first = limit.map_or(HOSTS, |limit| HOSTS.min(limit / 2));
        Ok(StateWait {
            ctx: ctx.clone(),
            team: team.clone(),
            names: names.to_vec(),
            any,
            until: until.clone(),
            limit,
            deadline: limit.map(Deadline::after),
            changes: team.changes()?,
            dead: Vec::new(),
            ask_hosts: Deadline::after(first),
        })
    }

    /// Describes the wait and its limit for a person.
    pub(crate) fn words(&self) -> String {
        words(&self.names, self.any, &self.until, self.limit)
    }

    /// Waits until the state is reached.
    ///
    /// # Errors
    /// [`OpsError::Deadline`] if that takes longer than the limit; those of [`StateWait::step`].
    pub(crate) fn finish(mut self) -> Result<Vec<Came>, OpsError> {
        let left = self.deadline.map(|deadline| deadline.remaining());
        self.step(left)?.ok_or_else(|| OpsError::Deadline {
            what: describe(&self.names, &self.until),
            limit: self.limit.unwrap_or_default(),
        })
    }

    /// Waits for at most `limit`; `None` if the state is not reached by then.
    ///
    /// # Errors
    /// [`OpsError::Failed`] for a member that has ended and so can no longer become ready or idle,
    /// or that phalanx did not start; [`StoreError::NoSuchMember`] for an unknown name.
    pub(crate) fn step(&mut self, limit: Option<Duration>) -> Result<Option<Vec<Came>>, OpsError> {
        match self.advance(limit) {
            // A team is only deleted after its members have ended.
            Err(_) if self.until == Until::Gone && !self.team.exists() => {
                let gone =
                    |name: &MemberName| Came { name: name.to_string(), state: "gone".to_owned() };
                Ok(Some(self.names.iter().map(gone).collect()))
            }
            other => other,
        }
    }

    fn advance(&mut self, limit: Option<Duration>) -> Result<Option<Vec<Came>>, OpsError> {
        let slice = limit.map(Deadline::after);
        loop {
            if self.ask_hosts.expired() && !matches!(self.until, Until::Task(_)) {
                self.dead = self.dead_elsewhere()?;
                self.ask_hosts = Deadline::after(HOSTS);
            }
            let (came, open) = look(&self.ctx, &self.team, &self.names, &self.until, &self.dead)?;
            if open == 0 || (self.any && !came.is_empty()) {
                return Ok(Some(came));
            }
            let left = slice.map_or(SWEEP, |slice| slice.remaining().min(SWEEP));
            if left.is_zero() {
                return Ok(None);
            }
            self.changes.wait(left);
        }
    }

    /// Returns the runs of the members on other hosts that their hosts report as dead. The hosts
    /// have until the end of the whole wait, which can be longer than one step.
    fn dead_elsewhere(&self) -> Result<Vec<Incarnation>, OpsError> {
        let is_named = |record: &MemberRecord| self.names.contains(&record.name);
        let records = self.team.member_records()?;
        let records: Vec<MemberRecord> = records.into_iter().filter(is_named).collect();
        let left = self.deadline.map_or(HOSTS_ANSWER, |deadline| deadline.remaining());
        let limit = left.min(HOSTS_ANSWER);
        let dead = remote::dead_runs(&self.ctx, &self.team, &records, limit);
        Ok(dead.into_iter().map(|run| run.incarnation).collect())
    }
}

/// See [`StateWait::words`].
fn words(names: &[MemberName], any: bool, until: &Until, limit: Option<Duration>) -> String {
    let who = match (names, any) {
        (several @ [_, _, ..], true) => format!("one of {}", super::error::names(several)),
        (names, _) => super::error::names(names),
    };
    let what = match until {
        Until::Ready => format!("{who} to be ready"),
        Until::Idle => format!("{who} to be idle"),
        Until::Gone => format!("{who} to end"),
        Until::Task(id) => format!("task #{id} to end"),
    };
    match limit {
        Some(limit) => format!("waiting for {what}, at most {} s", limit.as_secs_f64()),
        None => format!("waiting for {what}, without a limit (`--timeout S` sets one)"),
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

fn look(
    ctx: &Context,
    team: &TeamStore,
    names: &[MemberName],
    until: &Until,
    dead: &[Incarnation],
) -> Result<(Vec<Came>, usize), OpsError> {
    if let Until::Task(id) = until {
        let task = super::task::get(team, *id)?;
        let over = task.state.is_over();
        let came = Came { name: id.to_string(), state: task.state.as_str().to_owned() };
        return Ok(if over { (vec![came], 0) } else { (Vec::new(), 1) });
    }
    let mut came = Vec::new();
    for name in names {
        if let Some(state) = member_came(ctx, team, name, until, dead)? {
            came.push(Came { name: name.to_string(), state: state.to_owned() });
        }
    }
    let open = names.len() - came.len();
    Ok((came, open))
}

fn member_came(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    until: &Until,
    dead: &[Incarnation],
) -> Result<Option<&'static str>, OpsError> {
    let Some(record) = team.member_record(name)? else {
        let roster = team.team()?;
        if *until == Until::Gone && roster.member(name).is_none() {
            return Ok(Some("gone"));
        }
        if roster.member(name).is_some() {
            let problem =
                format!("`{name}` was not started by phalanx, which cannot tell its state");
            return Err(OpsError::Failed { problem });
        }
        let known = roster.members.into_iter().map(|m| m.name).collect();
        return Err(StoreError::NoSuchMember {
            team: team.name().clone(),
            name: name.clone(),
            known,
        }
        .into());
    };
    let gone = record.state.is_over()
        || status::liveness(&record) == Liveness::Dead
        || dead.contains(&record.incarnation);
    let idle = record.state == MemberState::Idle && team.board()?.work_of(name).is_none();
    let reached = match until {
        Until::Ready => record.state.is_up() && is_ready(ctx, &record),
        Until::Idle => idle,
        Until::Gone => gone,
        Until::Task(_) => false,
    };
    let has_ended = gone || record.exit.is_some();
    match (until, reached) {
        // No process has recorded its end yet, so the recorded state is stale.
        (Until::Gone, true) if !record.state.is_over() => Ok(Some("gone")),
        (Until::Gone, true) => Ok(Some(record.state.as_str())),
        // It can no longer become ready or idle.
        (Until::Ready | Until::Idle, _) if has_ended => {
            let how = record
                .ending()
                .or(record.reason.clone())
                .unwrap_or_else(|| "its process is gone".to_owned());
            Err(OpsError::Failed { problem: format!("`{name}` has ended: {how}") })
        }
        (_, true) => Ok(Some(record.state.as_str())),
        (_, false) => Ok(None),
    }
}

/// Returns true for a run that is ready as its profile defines it. `spawn --until running` accepts
/// a member before that.
fn is_ready(ctx: &Context, record: &MemberRecord) -> bool {
    let Ok(profile) = profiles::find(ctx, &record.request.profile) else { return true };
    // A one-shot run reports nothing until it ends.
    let once = profile.reads_mail && !record.reads_mail();
    once || spawn::left_until_ready(record, profile.ready).is_none()
}

/// Returns false for a task that ended without success; for exit codes.
pub(crate) fn is_good(came: &Came, until: &Until) -> bool {
    !matches!(until, Until::Task(_)) || came.state == TaskState::Completed.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_message_names_the_goal_and_the_limit() {
        let names: Vec<MemberName> =
            ["ann", "bob"].iter().map(|name| MemberName::new(name).expect("name")).collect();
        let half = Some(Duration::from_millis(2500));
        assert_eq!(
            words(&names, false, &Until::Idle, half),
            "waiting for ann, bob to be idle, at most 2.5 s"
        );
        assert_eq!(
            words(&names, true, &Until::Gone, None),
            "waiting for one of ann, bob to end, without a limit (`--timeout S` sets one)"
        );
        let task = Until::Task(TaskId(3));
        assert_eq!(words(&[], false, &task, half), "waiting for task #3 to end, at most 2.5 s");
    }
}
