//! The requests of a lead to the servers of other hosts.

use std::collections::BTreeMap;
use std::time::Duration;

use super::link::{HostLink, QUICK};
use super::wire::{HostRequest, RunState, RunToEnd};
use crate::model::id::{HostName, Incarnation, MemberName};
use crate::model::record::MemberRecord;
use crate::ops::context::Context;
use crate::ops::error::{OpsError, RemoteFailure};
use crate::store::TeamStore;
use crate::sys::proc::Liveness;

/// Time limit for the end of members.
const ENDING: Duration = Duration::from_secs(40);

/// Ends runs on a host. Returns one result for each, in order; nothing is ended if the host cannot
/// be reached.
pub(crate) fn terminate(
    ctx: &Context,
    team: &TeamStore,
    host: &HostName,
    runs: Vec<RunToEnd>,
) -> Vec<Result<(), OpsError>> {
    let count = runs.len();
    let request = HostRequest::Terminate(runs);
    let ended: Result<Vec<Result<(), RemoteFailure>>, OpsError> =
        HostLink::to(ctx, team, host).and_then(|link| link.call(request, ENDING));
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

/// Returns the runs on other hosts that their hosts report as dead and that have not ended on
/// record. A run on a host that cannot be reached is not among them.
pub(crate) fn dead_runs(
    ctx: &Context,
    team: &TeamStore,
) -> Result<Vec<(MemberName, Incarnation)>, OpsError> {
    let mut hosts: BTreeMap<HostName, Vec<MemberRecord>> = BTreeMap::new();
    for record in team.member_records()?.into_iter().filter(|record| !record.state.is_over()) {
        if let Some(host) = record.other_host().cloned() {
            hosts.entry(host).or_default().push(record);
        }
    }
    let mut dead = Vec::new();
    for (host, runs) in hosts {
        let runs: Vec<&MemberRecord> = runs.iter().collect();
        for (run, liveness) in runs.iter().zip(liveness(ctx, team, &host, &runs)) {
            if liveness == Liveness::Dead {
                dead.push((run.name.clone(), run.incarnation.clone()));
            }
        }
    }
    Ok(dead)
}

/// Returns the liveness of runs on one host, in order; all are unknown if it cannot be reached.
fn liveness(
    ctx: &Context,
    team: &TeamStore,
    host: &HostName,
    runs: &[&MemberRecord],
) -> Vec<Liveness> {
    let asked = runs.iter().map(|run| (run.name.clone(), run.incarnation.clone())).collect();
    let states: Vec<RunState> = HostLink::to(ctx, team, host)
        .and_then(|link| link.call(HostRequest::Runs(asked), QUICK))
        .unwrap_or_default();
    let state = |nth: usize| match states.get(nth) {
        Some(RunState::Alive) => Liveness::Alive,
        Some(RunState::Dead) => Liveness::Dead,
        Some(RunState::Unknown) | None => Liveness::Unknown,
    };
    (0..runs.len()).map(state).collect()
}

fn no_answer(host: &HostName) -> OpsError {
    OpsError::Failed { problem: format!("host `{host}` gave an incomplete answer") }
}
