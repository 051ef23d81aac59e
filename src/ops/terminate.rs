//! Ends runs of members for good: their processes, then their placements. Runs are ended together:
//! all launchers are signalled before one is waited for, and a backend closes all of its placements
//! at once.
//!
//! `sys::proc` proves a process by pid and start time when it signals it, and `Backend::close_all`
//! proves a placement when it closes it. The verdicts taken here are for the journal only.

use std::collections::BTreeMap;
use std::time::Duration;

use super::backends;
use super::context::Context;
use super::error::OpsError;
use crate::backend::{Backend, CloseOutcome, Mark};
use crate::model::event::{EventKind, Note};
use crate::model::placement::{Placement, ProcessId, Verdict};
use crate::model::record::MemberRecord;
use crate::store::TeamStore;
use crate::sys::clock::{self, Deadline};
use crate::sys::proc::{self, Liveness, Process};

/// Time limit for a program that has agreed to exit by itself.
const OWN_END: Duration = Duration::from_millis(700);
/// Time between TERM and KILL for processes that left the tree of their launcher.
const STRAY_GRACE: Duration = Duration::from_secs(1);

/// Time limit for a backend that cannot verify a placement.
const UNKNOWN_FOR: Duration = Duration::from_secs(3);
/// The pause between two queries meanwhile.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(20);

/// The way in which a run is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminationMode {
    /// The member has agreed: its program may exit by itself first.
    Agreed,
    /// The launcher is signalled at once.
    Told,
}

/// A run that is to end.
#[derive(Debug, Clone)]
pub(crate) struct Termination {
    pub(crate) record: MemberRecord,
    pub(crate) mode: TerminationMode,
}

/// Ends the processes and closes the placements of these runs. Returns one result for each, in
/// order. Idempotent.
///
/// # Errors
/// [`OpsError::NotEnded`] for a process that still runs. The backend's error for a placement that
/// is not proven ours, which is left alone. A foreign placement counts as closed if its launcher is
/// dead.
pub(crate) fn terminate_all(
    ctx: &Context,
    team: &TeamStore,
    terminations: &[Termination],
) -> Vec<Result<(), OpsError>> {
    let mut results: Vec<Result<(), OpsError>> = terminations.iter().map(|_| Ok(())).collect();
    for group in groups(terminations) {
        let Some(mark) = group[0].mark() else { continue };
        match backends::open_for(ctx, team, mark.placement) {
            Ok(backend) => end_group(team, backend.as_ref(), &group, &mut results),
            Err(e) => fail_all(&mut results, &group, e),
        }
    }
    // A backend can fail after it has started a launcher, which only the start record names then.
    let unplaced: Vec<Run<'_>> = runs(terminations).filter(|run| run.mark().is_none()).collect();
    end_processes(&unplaced);
    for run in &unplaced {
        results[run.nth] = run.check_processes();
    }
    results
}

/// Ends one run, as [`terminate_all`] does.
pub(crate) fn terminate(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
    mode: TerminationMode,
) -> Result<(), OpsError> {
    let termination = Termination { record: record.clone(), mode };
    terminate_all(ctx, team, &[termination]).pop().unwrap_or(Ok(()))
}

/// A run of a batch.
#[derive(Debug, Clone, Copy)]
struct Run<'a> {
    /// Index of its result.
    nth: usize,
    record: &'a MemberRecord,
    mode: TerminationMode,
}

impl<'a> Run<'a> {
    /// Returns `None` without a placement.
    fn mark(&self) -> Option<Mark<'a>> {
        let placement = self.record.placement.as_ref()?;
        Some(Mark { placement, token: self.record.mark() })
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

fn runs(terminations: &[Termination]) -> impl Iterator<Item = Run<'_>> {
    let numbered = terminations.iter().enumerate();
    numbered.map(|(nth, Termination { record, mode })| Run { nth, record, mode: *mode })
}

/// Groups the runs whose placements one backend can close together.
fn groups(terminations: &[Termination]) -> Vec<Vec<Run<'_>>> {
    let mut groups: BTreeMap<(&str, &str), Vec<Run<'_>>> = BTreeMap::new();
    for run in runs(terminations) {
        let Some(placement) = &run.record.placement else { continue };
        let server = match placement {
            Placement::Tmux(pane) => pane.socket.as_str(),
            Placement::Exec(place) => place.program.as_str(),
            Placement::Iterm2(_) | Placement::Pty(_) => "",
        };
        groups.entry((placement.backend().as_str(), server)).or_default().push(run);
    }
    groups.into_values().collect()
}

fn end_group(
    team: &TeamStore,
    backend: &dyn Backend,
    group: &[Run<'_>],
    results: &mut [Result<(), OpsError>],
) {
    let own_end = Deadline::after(OWN_END);
    let agreed = group.iter().filter(|run| run.mode == TerminationMode::Agreed);
    for launcher in agreed.filter_map(Run::launcher) {
        proc::wait_exit(launcher, own_end.remaining());
    }
    // The verdict on a run whose launcher has exited by itself is journaled when its placement is
    // closed.
    let alive: Vec<Run<'_>> =
        group.iter().filter(|run| !run.has_dead_launcher()).copied().collect();
    if let Err(e) = journal_verdicts(team, backend, &alive) {
        // Aborts if the verdicts could not be journaled, so that nothing is closed without a
        // record.
        return fail_all(results, group, e);
    }
    end_processes(group);
    close_placements(team, backend, group, &alive, results);
    for run in group {
        if results[run.nth].is_ok() {
            results[run.nth] = run.check_processes();
        }
    }
}

/// Verifies the placements for the journal, before their processes end.
fn journal_verdicts(
    team: &TeamStore,
    backend: &dyn Backend,
    group: &[Run<'_>],
) -> Result<(), OpsError> {
    if group.is_empty() {
        return Ok(());
    }
    let verdicts = backend.verify_all(&marks(group));
    journal(team, group.iter().copied().zip(verdicts))
}

fn marks<'a>(group: &[Run<'a>]) -> Vec<Mark<'a>> {
    group.iter().filter_map(Run::mark).collect()
}

/// Ends the launchers, which end the trees of their programs.
fn end_processes(group: &[Run<'_>]) {
    // A launcher that was dead already and left no exit record may have been killed from outside.
    let killed = group.iter().filter(|run| run.record.exit.is_none() && run.has_dead_launcher());
    let killed: Vec<String> =
        killed.map(|run| format!("PHALANX_INCARNATION={}", run.record.incarnation)).collect();
    let launchers: Vec<Process> = group.iter().filter_map(Run::launcher).collect();
    let programs: Vec<Process> = group.iter().filter_map(Run::program).collect();
    proc::end_supervised(&launchers, &programs);
    // Processes that had left the program's tree still have the run in their environment (SD-09).
    proc::end_marked(&killed, STRAY_GRACE);
}

/// Closes the placements that are proven ours. A server that exits with its last pane cannot be
/// queried for a moment (SD-13), so unknown verdicts are retried until [`UNKNOWN_FOR`] has passed.
/// The verdicts on `journaled` runs are in the journal.
fn close_placements(
    team: &TeamStore,
    backend: &dyn Backend,
    group: &[Run<'_>],
    journaled: &[Run<'_>],
    results: &mut [Result<(), OpsError>],
) {
    let deadline = Deadline::after(UNKNOWN_FOR);
    let mut open = group.to_vec();
    while !open.is_empty() {
        let marks = marks(&open);
        let (mut retry, mut closed) = (Vec::new(), Vec::new());
        for ((run, mark), outcome) in open.iter().zip(&marks).zip(backend.close_all(&marks)) {
            let verdict = match outcome {
                CloseOutcome::Unknown { .. } if !deadline.expired() => {
                    retry.push(*run);
                    continue;
                }
                CloseOutcome::Foreign { difference } if run.has_dead_launcher() => {
                    Ok(Verdict::Foreign { difference })
                }
                outcome => outcome.into_verdict(mark.placement),
            };
            match verdict {
                Ok(verdict) => closed.push((*run, verdict)),
                Err(e) => results[run.nth] = Err(e.into()),
            }
        }
        let is_new = |(run, verdict): &(Run<'_>, Verdict)| {
            *verdict == Verdict::Owned || !journaled.iter().any(|other| other.nth == run.nth)
        };
        closed.retain(is_new);
        let concerned: Vec<Run<'_>> = closed.iter().map(|(run, _)| *run).collect();
        if let Err(e) = journal(team, closed) {
            fail_all(results, &concerned, e);
        }
        open = retry;
        if !open.is_empty() {
            clock::sleep(UNKNOWN_PAUSE);
        }
    }
}

/// Sets the error for the first run, and its text for the others.
fn fail_all(results: &mut [Result<(), OpsError>], group: &[Run<'_>], error: OpsError) {
    let text = error.to_string();
    let mut first = Some(error);
    for run in group {
        let again = || OpsError::NotEnded { what: text.clone() };
        results[run.nth] = Err(first.take().unwrap_or_else(again));
    }
}

fn process(ProcessId { pid, start }: ProcessId) -> Process {
    Process { pid, start }
}

fn is_dead(process: Process) -> bool {
    proc::liveness(process.pid, process.start) == Liveness::Dead
}

fn journal<'a>(
    team: &TeamStore,
    verdicts: impl IntoIterator<Item = (Run<'a>, Verdict)>,
) -> Result<(), OpsError> {
    let event = |(run, verdict): (Run<'_>, Verdict)| {
        Note::of(EventKind::PlacementVerdict)
            .member(&run.record.name)
            .with("incarnation", run.record.incarnation.as_str())
            .with("verdict", verdict.to_string())
    };
    team.record_all(verdicts.into_iter().map(event).collect())?;
    Ok(())
}

#[cfg(test)]
mod tests;
