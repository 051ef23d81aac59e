//! The requests of a lead to the servers of other hosts.

use std::collections::BTreeMap;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use super::link::{HostLink, QUICK};
use super::wire::{HostRequest, LogRequest, RunToEnd};
use crate::error::RemoteFailure;
use crate::hosts::log_part::{LogPart, LogRange};
use crate::{Context, OpsError};
use model::id::{HostName, Incarnation, MemberName};
use model::members::record::MemberRecord;
use store::TeamStore;
use sys::clock::Deadline;
use sys::proc::Liveness;

/// Time for the answers of other hosts that a view or a command waits for.
pub(crate) const HOSTS_ANSWER: Duration = Duration::from_secs(5);
/// Time limit for the end of members.
const ENDING: Duration = Duration::from_secs(40);

/// Ends runs on a host. Returns one result for each, in order; nothing is ended if the host cannot
/// be reached.
pub fn stop(
    ctx: &Context,
    team: &TeamStore,
    host: &HostName,
    runs: Vec<RunToEnd>,
) -> Vec<Result<(), OpsError>> {
    let count = runs.len();
    let grace = runs.iter().map(|run| run.mode.grace()).max().unwrap_or_default();
    let request = HostRequest::StopRuns(runs);
    let ended: Result<Vec<Result<(), RemoteFailure>>, OpsError> = HostLink::to(ctx, team, host)
        .and_then(|link| link.call(request, ENDING.saturating_add(grace)));
    let failed = |failure| OpsError::OnHost { host: host.clone(), failure };
    match ended {
        Ok(results) if results.len() == count => {
            results.into_iter().map(|result| result.map_err(failed)).collect()
        }
        Ok(_) => (0..count).map(|_| Err(no_answer(host))).collect(),
        Err(e) => {
            let text = e.to_string();
            let mut first = Some(e);
            let again = || OpsError::Failed { problem: text.clone() };
            (0..count).map(|_| Err(first.take().unwrap_or_else(again))).collect()
        }
    }
}

/// Returns the runs among `records` that their hosts, which are not this one, report as dead and
/// that have not ended on record. A run on a host that does not answer within `limit` is not among
/// them.
pub fn dead_runs(
    ctx: &Context,
    team: &TeamStore,
    records: &[MemberRecord],
    limit: Duration,
) -> Vec<RunSeen> {
    let answers = ask_hosts(ctx, team, records, limit);
    let runs = answers.into_iter().flat_map(|answer| answer.runs);
    runs.filter(|run| run.liveness == Liveness::Dead).collect()
}

/// The answer of a host about its runs that have not ended on record.
#[derive(Debug)]
pub(crate) struct HostAnswer {
    pub host: HostName,
    /// Why it could not be asked. Its runs are then unknown.
    pub problem: Option<OpsError>,
    pub runs: Vec<RunSeen>,
}

/// A run and its liveness, as its host sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSeen {
    pub name: MemberName,
    pub incarnation: Incarnation,
    pub liveness: Liveness,
}

/// Asks all other hosts that have runs among `records`, at the same time, and returns their answers
/// by host. A host that has not answered within `limit` is left behind.
pub(crate) fn ask_hosts(
    ctx: &Context,
    team: &TeamStore,
    records: &[MemberRecord],
    limit: Duration,
) -> Vec<HostAnswer> {
    let mut hosts: BTreeMap<HostName, Vec<RunSeen>> = BTreeMap::new();
    for record in records.iter().filter(|record| !record.state.is_over()) {
        if let Some(host) = record.other_host().cloned() {
            let (name, incarnation) = (record.name.clone(), record.incarnation.clone());
            let run = RunSeen { name, incarnation, liveness: Liveness::Unknown };
            hosts.entry(host).or_default().push(run);
        }
    }
    let (sender, answers) = channel();
    for (host, runs) in &hosts {
        let (ctx, team, sender) = (ctx.clone(), team.clone(), sender.clone());
        let (host, runs) = (host.clone(), runs.clone());
        // Not joined: it can take longer than the caller waits.
        thread::spawn(move || {
            let states = ask_host(&ctx, &team, &host, &runs);
            // Fails once the caller has gone on.
            let _ = sender.send((host, states));
        });
    }
    drop(sender);
    let deadline = Deadline::after(limit);
    let mut found = BTreeMap::new();
    while let Ok((host, states)) = answers.recv_timeout(deadline.remaining()) {
        found.insert(host, states);
    }
    let answer = |(host, runs): (HostName, Vec<RunSeen>)| {
        let late = || {
            let what = format!("host `{host}` did not answer");
            Err(OpsError::Deadline { what, limit })
        };
        match found.remove(&host).unwrap_or_else(late) {
            Ok(states) => {
                let seen = |(run, liveness)| RunSeen { liveness, ..run };
                let runs = runs.into_iter().zip(states).map(seen).collect();
                HostAnswer { host, problem: None, runs }
            }
            Err(e) => HostAnswer { host, problem: Some(e), runs },
        }
    };
    hosts.into_iter().map(answer).collect()
}

/// Returns the liveness of runs on one host, in order.
fn ask_host(
    ctx: &Context,
    team: &TeamStore,
    host: &HostName,
    runs: &[RunSeen],
) -> Result<Vec<Liveness>, OpsError> {
    let asked = runs.iter().map(|run| (run.name.clone(), run.incarnation.clone())).collect();
    let link = HostLink::to(ctx, team, host)?;
    let states: Vec<Liveness> = link.call(HostRequest::Runs(asked), QUICK)?;
    if states.len() != runs.len() {
        return Err(no_answer(host));
    }
    Ok(states)
}

/// Reads a part of the log of a run on another host.
///
/// # Errors
/// The host cannot be reached, or has no such log.
pub(crate) fn read_log(
    ctx: &Context,
    team: &TeamStore,
    host: &HostName,
    (name, incarnation): (&MemberName, &Incarnation),
    range: &LogRange,
) -> Result<LogPart, OpsError> {
    let (name, incarnation, range) = (name.clone(), incarnation.clone(), range.clone());
    let request = HostRequest::Log(LogRequest { name, incarnation, range });
    HostLink::to(ctx, team, host)?.call(request, QUICK)
}

fn no_answer(host: &HostName) -> OpsError {
    OpsError::Failed { problem: format!("host `{host}` gave an incomplete answer") }
}
