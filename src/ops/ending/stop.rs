//! Ends runs of members for good: their processes, then their placements. Runs are ended together:
//! all launchers are signalled before one is waited for, and a backend closes all of its placements
//! at once.
//!
//! `sys::proc` proves a process by pid and start time when it signals it, and `Backend::close_all`
//! proves a placement. Between its proof and the close, the verdict is journaled and the processes
//! are ended.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::hosts::client;
use crate::hosts::stop_mode::StopMode;
use crate::hosts::wire::RunToEnd;
use crate::members::backends;
use crate::{Context, OpsError};
use backend::{Backend, CloseOutcome, Mark};
use model::id::HostName;
use model::members::placement::{Placement, ProcessId, Verdict};
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;
use sys::clock::{self, Deadline};
use sys::proc::{self, Liveness, Process};

/// Time limit for a program that has agreed to exit by itself.
const OWN_END: Duration = Duration::from_millis(700);
/// Time between TERM and KILL for processes that left the tree of their launcher.
const STRAY_GRACE: Duration = Duration::from_secs(1);

/// Time limit for a backend that cannot verify a placement.
const UNKNOWN_FOR: Duration = Duration::from_secs(3);
/// The pause between two queries meanwhile.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(20);

/// A run that is to end.
#[derive(Debug, Clone)]
pub struct MemberStop {
    pub record: MemberRecord,
    pub mode: StopMode,
}

impl MemberStop {
    pub(crate) fn at_once(record: MemberRecord) -> MemberStop {
        MemberStop { record, mode: StopMode::Immediate }
    }
}

/// Ends the processes and closes the placements of these runs. Returns one result for each, in
/// order. Idempotent.
///
/// # Errors
/// [`OpsError::NotEnded`] for a process that still runs. The backend's error for a placement that
/// is not proven ours, which is left alone. A foreign placement counts as closed if its launcher is
/// dead.
pub fn stop_all(
    ctx: &Context,
    team: &TeamStore,
    stops: &[MemberStop],
) -> Vec<Result<(), OpsError>> {
    let mut results: Vec<Result<(), OpsError>> = stops.iter().map(|_| Ok(())).collect();
    end_elsewhere(ctx, team, stops, &mut results);
    for group in groups(stops) {
        let Some(mark) = group[0].mark() else { continue };
        match backends::open_here(ctx, team, mark.placement) {
            Ok(backend) => end_group(team, backend.as_ref(), &group, &mut results),
            Err(e) => fail_all(&mut results, &group, e),
        }
    }
    // A backend can fail after it has started a launcher, which only the start record names then.
    let unplaced: Vec<EndingRun<'_>> = runs(stops).filter(|run| run.mark().is_none()).collect();
    end_processes(&unplaced);
    for run in &unplaced {
        results[run.nth] = run.check_processes();
    }
    results
}

/// Ends one run, as [`stop_all`] does.
pub fn stop(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
    mode: StopMode,
) -> Result<(), OpsError> {
    let stop = MemberStop { record: record.clone(), mode };
    stop_all(ctx, team, &[stop]).pop().unwrap_or(Ok(()))
}

/// A run of a batch.
#[derive(Debug, Clone, Copy)]
struct EndingRun<'a> {
    /// Index of its result.
    nth: usize,
    record: &'a MemberRecord,
    mode: StopMode,
}

impl<'a> EndingRun<'a> {
    /// Returns `None` without a placement.
    fn mark(&self) -> Option<Mark<'a>> {
        Some(Mark::new(self.record.placement.as_ref()?, self.record.mark()))
    }

    fn launcher(&self) -> Option<Process> {
        self.record.launcher().map(process)
    }

    fn program(&self) -> Option<Process> {
        self.record.start.as_ref().map(|start| process(start.program))
    }

    fn has_dead_launcher(&self) -> bool {
        self.launcher().is_some_and(is_dead)
    }

    /// Checks that its placement is closed, and its processes are gone.
    fn check_closed(&self, outcome: CloseOutcome) -> Result<(), OpsError> {
        match (outcome, &self.record.placement) {
            (CloseOutcome::Foreign { .. }, _) if self.has_dead_launcher() => {}
            (outcome, Some(placement)) => drop(outcome.into_verdict(placement)?),
            (_, None) => {}
        }
        self.check_processes()
    }

    /// Checks that its processes are gone.
    fn check_processes(&self) -> Result<(), OpsError> {
        let processes = [self.launcher(), self.program()].into_iter().flatten();
        match processes.into_iter().find(|process| !is_dead(*process)) {
            Some(left) => Err(OpsError::NotEnded {
                what: format!("process {} of `{}` is still running", left.pid, self.record.name),
            }),
            None => Ok(()),
        }
    }
}

/// Ends the runs on other hosts, on each host those that are there.
fn end_elsewhere(
    ctx: &Context,
    team: &TeamStore,
    stops: &[MemberStop],
    results: &mut [Result<(), OpsError>],
) {
    let mut hosts: BTreeMap<&HostName, Vec<usize>> = BTreeMap::new();
    for (nth, one) in stops.iter().enumerate() {
        if let Some(host) = one.record.other_host() {
            hosts.entry(host).or_default().push(nth);
        }
    }
    for (host, runs) in hosts {
        let there = runs.iter().map(|nth| run_to_end(&stops[*nth])).collect();
        for (nth, result) in runs.into_iter().zip(client::stop(ctx, team, host, there)) {
            let is_unreachable =
                matches!(result, Err(OpsError::NoSuchHost { .. } | OpsError::Host(_)));
            let has_exited = is_unreachable && has_exited(team, &stops[nth]);
            results[nth] = if has_exited { Ok(()) } else { result };
        }
    }
}

/// Returns true if the launcher of a run on another host has recorded the exit of its program. A
/// member that has agreed has a moment for that.
fn has_exited(team: &TeamStore, one: &MemberStop) -> bool {
    let limit = if one.mode == StopMode::Immediate { Duration::ZERO } else { OWN_END };
    let deadline = Deadline::after(limit);
    loop {
        let record = team.member_record(&one.record.name).ok().flatten();
        if record.is_some_and(|now| now.is(&one.record.incarnation) && now.exit.is_some()) {
            return true;
        }
        if deadline.expired() {
            return false;
        }
        clock::sleep(UNKNOWN_PAUSE);
    }
}

fn run_to_end(one: &MemberStop) -> RunToEnd {
    RunToEnd {
        name: one.record.name.clone(),
        incarnation: one.record.incarnation.clone(),
        mode: one.mode,
    }
}

/// Returns the runs on this host.
fn runs(stops: &[MemberStop]) -> impl Iterator<Item = EndingRun<'_>> {
    let numbered = stops.iter().enumerate();
    let here = numbered.filter(|(_, one)| one.record.other_host().is_none());
    here.map(|(nth, MemberStop { record, mode })| EndingRun { nth, record, mode: *mode })
}

/// Lets the programs exit that have time for it. The launchers record that and end by themselves.
fn end_programs<'a>(runs: impl Iterator<Item = &'a EndingRun<'a>>) {
    let (mut launchers, mut programs, mut grace) = (Vec::new(), Vec::new(), Duration::ZERO);
    for run in runs.filter(|run| run.mode != StopMode::Immediate) {
        launchers.extend(run.launcher());
        if let StopMode::Graceful(time) = run.mode {
            programs.extend(run.program());
            grace = grace.max(time);
        }
    }
    proc::end_trees(&programs, grace);
    let own_end = Deadline::after(OWN_END);
    for launcher in launchers {
        proc::wait_exit(launcher, own_end.remaining());
    }
}

/// Groups the runs whose placements one backend can close together.
fn groups(stops: &[MemberStop]) -> Vec<Vec<EndingRun<'_>>> {
    let mut groups: BTreeMap<(&str, &str), Vec<EndingRun<'_>>> = BTreeMap::new();
    for run in runs(stops) {
        let Some(placement) = &run.record.placement else { continue };
        let server = match placement {
            Placement::Tmux(pane) => pane.socket.as_str(),
            Placement::Iterm2(_) | Placement::Pty(_) => "",
        };
        groups.entry((placement.backend().as_str(), server)).or_default().push(run);
    }
    groups.into_values().collect()
}

/// Ends the runs of a group: verifies the placements, journals the verdicts, ends the processes,
/// and closes the placements that were proven ours. Unknown verdicts are retried until
/// [`UNKNOWN_FOR`] has passed.
fn end_group(
    team: &TeamStore,
    backend: &dyn Backend,
    group: &[EndingRun<'_>],
    results: &mut [Result<(), OpsError>],
) {
    end_programs(group.iter());
    let mut open = group.to_vec();
    let mut journaled = BTreeSet::new();
    // Set once the processes have ended.
    let mut deadline: Option<Deadline> = None;
    while !open.is_empty() {
        let is_first = deadline.is_none();
        let mut recorded = Ok(());
        let outcomes = backend.close_all(&marks(&open), &mut |verdicts| {
            recorded = journal(team, open.iter().zip(verdicts), is_first, &mut journaled);
            if recorded.is_ok() && is_first {
                end_processes(group);
                deadline = Some(Deadline::after(UNKNOWN_FOR));
            }
            recorded.is_ok()
        });
        if let Err(e) = recorded {
            // Nothing is ended or closed without a record.
            return fail_all(results, &open, e);
        }
        let is_over = deadline.is_none_or(|deadline| deadline.expired());
        let mut retry = Vec::new();
        for (run, outcome) in open.iter().zip(outcomes) {
            match outcome {
                // A server that exits with its last pane cannot be queried for a moment (SD-13).
                CloseOutcome::Unknown { .. } if !is_over => retry.push(*run),
                outcome => results[run.nth] = run.check_closed(outcome),
            }
        }
        open = retry;
        if !open.is_empty() {
            clock::sleep(UNKNOWN_PAUSE);
        }
    }
}

fn marks<'a>(group: &[EndingRun<'a>]) -> Vec<Mark<'a>> {
    group.iter().filter_map(EndingRun::mark).collect()
}

/// Ends the launchers, which end the trees of their programs.
fn end_processes(group: &[EndingRun<'_>]) {
    let launchers: Vec<Process> = group.iter().filter_map(EndingRun::launcher).collect();
    let programs: Vec<Process> = group.iter().filter_map(EndingRun::program).collect();
    proc::end_supervised(&launchers, &programs);
    // A launcher can be killed at any time until it has ended the tree. Processes that had left the
    // tree still have the run in their environment (SD-09).
    let mark = |run: &EndingRun<'_>| format!("PHALANX_INCARNATION={}", run.record.incarnation);
    let marks: Vec<String> = group.iter().map(mark).collect();
    proc::end_marked(&marks, STRAY_GRACE);
}

/// Sets the error for the first run, and its text for the others.
fn fail_all(results: &mut [Result<(), OpsError>], group: &[EndingRun<'_>], error: OpsError) {
    let text = error.to_string();
    let mut first = Some(error);
    for run in group {
        let again = || OpsError::Failed { problem: text.clone() };
        results[run.nth] = Err(first.take().unwrap_or_else(again));
    }
}

fn process(ProcessId { pid, start }: ProcessId) -> Process {
    Process { pid, start }
}

fn is_dead(process: Process) -> bool {
    proc::liveness(process.pid, process.start) == Liveness::Dead
}

/// Journals one verdict for each run, and another one if an unknown placement turns out to be ours.
/// The verdict on a run whose launcher has exited by itself is journaled once it is known.
fn journal<'a>(
    team: &TeamStore,
    verdicts: impl Iterator<Item = (&'a EndingRun<'a>, &'a Verdict)>,
    is_first: bool,
    journaled: &mut BTreeSet<usize>,
) -> Result<(), OpsError> {
    let mut events = Vec::new();
    for (run, verdict) in verdicts {
        let is_due = match verdict {
            Verdict::Owned => true,
            Verdict::Gone | Verdict::Foreign { .. } => !journaled.contains(&run.nth),
            Verdict::Unknown { .. } => is_first && !run.has_dead_launcher(),
        };
        if is_due {
            journaled.insert(run.nth);
            let event = Note::of(EventKind::PlacementVerdict)
                .member(&run.record.name)
                .with("incarnation", run.record.incarnation.as_str())
                .with("verdict", verdict.to_string());
            events.push(event);
        }
    }
    team.record_all(events)?;
    Ok(())
}

#[cfg(test)]
mod tests;
