//! The part of a batch that other hosts start: chooses the host of each member, and starts the
//! members of all hosts at the same time.

use std::collections::BTreeMap;
use std::thread;

use super::batch::{BatchContext, SpawnOptions, SpawnReport, Spawned};
use crate::hosts;
use crate::starting::spawn::starts;
use crate::{Context, OpsError};
use backend::choose::Chosen;
use model::id::{HostName, MemberName};
use model::members::launch::LaunchSpec;
use model::members::record::MemberRecord;
use model::team::host::{HostChoice, HostConfig, choose_host};
use store::TeamStore;

/// Returns the host of each member; `None` for this one.
///
/// # Errors
/// A refusal for a team of files; [`OpsError::NoSuchHost`] if no configured
/// host satisfies a choice; a refusal if each that does has its maximum of members.
pub(super) fn hosts_of(
    batch: &BatchContext,
    specs: &[LaunchSpec],
) -> Result<Vec<Option<HostName>>, OpsError> {
    let Some(first) = specs.iter().find(|spec| spec.host.is_some()) else {
        return Ok(specs.iter().map(|_| None).collect());
    };
    let known = hosts::configured(batch.ctx, &batch.settings.hosts)?;
    let is_unknown = |choice: &&HostChoice| !known.iter().any(|host| choice.accepts(&host.config));
    if let Some(choice) = specs.iter().filter_map(|spec| spec.host.as_ref()).find(is_unknown) {
        return Err(hosts::no_such_host(choice, &known));
    }
    if !batch.team.is_shared() {
        return Err(OpsError::refused(
            format!(
                "`{}` is for another host, and the files of this team are on this machine only",
                first.name
            ),
            "keep the team in PostgreSQL: `store = \"postgres://…\"` in the manifest; see `phalanx docs hosts`",
        ));
    }
    let mut used: BTreeMap<HostName, usize> = BTreeMap::new();
    let is_there = |record: &MemberRecord| !record.state.is_over();
    for record in batch.team.member_records()?.into_iter().filter(is_there) {
        if let Some(host) = record.host {
            *used.entry(host).or_default() += 1;
        }
    }
    let mut chosen = Vec::new();
    for spec in specs {
        let Some(choice) = &spec.host else {
            chosen.push(None);
            continue;
        };
        let kept = host_of_worktree(batch, spec);
        let has_kept = |host: &&HostConfig| kept.is_some_and(|kept| host.name.clashes_with(kept));
        let hosts = known.iter().map(|host| &host.config);
        // A member goes on in its worktree, if that is on a host that it asks for.
        let is_bound = hosts.clone().any(|host| has_kept(&host) && choice.accepts(host));
        let hosts = hosts.filter(|host| !is_bound || has_kept(host));
        let members = |host: &HostName| used.get(host).copied().unwrap_or_default();
        let Some(best) = choose_host(hosts.clone(), choice, members) else {
            let full = hosts.filter(|host| choice.accepts(host)).map(|host| host.name.to_string());
            let (name, full) = (&spec.name, full.collect::<Vec<_>>().join(", "));
            return Err(OpsError::refused(
                format!("no host for `{name}` has room for one more member: {full}"),
                "shut a member down there first, or raise `capacity` of the host",
            ));
        };
        *used.entry(best.name.clone()).or_default() += 1;
        let is_here = batch.team.host().is_some_and(|here| here.clashes_with(&best.name));
        chosen.push((!is_here).then(|| best.name.clone()));
    }
    Ok(chosen)
}

/// Returns the host that has the worktree of a member.
fn host_of_worktree<'b>(batch: &'b BatchContext, spec: &LaunchSpec) -> Option<&'b HostName> {
    spec.worktree.as_ref().filter(|_| !batch.options.unique)?;
    let name = MemberName::new(&spec.name).ok()?;
    batch.settings.checkouts.get(&name)?.host()
}

/// Starts a batch of which some members are for other hosts. `start_here` starts the others.
///
/// # Errors
/// Failures of the whole batch on this host; those of other hosts are in the results.
pub(super) fn start_everywhere(
    ctx: &Context,
    team: &TeamStore,
    specs: &[LaunchSpec],
    options: &SpawnOptions,
    chosen: &[Option<HostName>],
    start_here: impl FnOnce(&[LaunchSpec]) -> Result<SpawnReport, OpsError>,
) -> Result<SpawnReport, OpsError> {
    let mut groups: BTreeMap<Option<&HostName>, Vec<usize>> = BTreeMap::new();
    for (nth, host) in chosen.iter().enumerate() {
        groups.entry(host.as_ref()).or_default().push(nth);
    }
    let here = groups.remove(&None).unwrap_or_default();
    let pick = |nths: &[usize]| -> Vec<LaunchSpec> {
        nths.iter().map(|nth| LaunchSpec { host: None, ..specs[*nth].clone() }).collect()
    };
    let (mine, others) = thread::scope(|scope| {
        let others: Vec<_> = groups
            .iter()
            .filter_map(|(host, nths)| Some(((*host)?, nths)))
            .map(|(host, nths)| {
                let specs = pick(nths);
                (host, nths, scope.spawn(move || starts::spawn(ctx, team, host, &specs, options)))
            })
            .collect();
        let mine = if here.is_empty() { None } else { Some(start_here(&pick(&here))) };
        let others: Vec<_> = others
            .into_iter()
            .map(|(host, nths, worker)| {
                let panicked = || OpsError::Failed { problem: "a thread has panicked".to_owned() };
                (host, nths, worker.join().unwrap_or_else(|_| Err(panicked())))
            })
            .collect();
        (mine.transpose(), others)
    });
    let mut results: BTreeMap<usize, Result<Spawned, OpsError>> = BTreeMap::new();
    let mut report = mine?;
    for (host, nths, started) in others {
        match started {
            Ok(started) => {
                let chosen = Chosen { backend: started.backend, why: started.why, auto: false };
                let report = report.get_or_insert_with(|| SpawnReport::empty(chosen));
                report.warnings.extend(started.warnings);
                results.extend(nths.iter().copied().zip(started.results));
            }
            Err(e) if report.is_none() && groups.len() == 1 => return Err(e),
            Err(e) => {
                let problem = format!("host {host}: {e}");
                let failed =
                    |nth: &usize| (*nth, Err(OpsError::Failed { problem: problem.clone() }));
                results.extend(nths.iter().map(failed));
            }
        }
    }
    let Some(mut report) = report else {
        let problems = results.into_values().filter_map(|result| result.err());
        let problems: Vec<String> = problems.map(|e| e.to_string()).collect();
        return Err(OpsError::Failed { problem: problems.join("; ") });
    };
    results.extend(here.into_iter().zip(report.results));
    report.results = results.into_values().collect();
    Ok(report)
}
