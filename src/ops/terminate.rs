//! Ends runs of members for good: their processes, then their placements, each only if proven ours.
//! Runs are ended together: all launchers are signalled before one is waited for, and a backend
//! verifies all of its placements at once.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use super::backends;
use super::context::Context;
use super::error::OpsError;
use crate::backend::{Backend, Mark};
use crate::model::event::{EventKind, Note};
use crate::model::placement::{Placement, ProcessId, Verdict};
use crate::model::record::MemberRecord;
use crate::store::TeamStore;
use crate::sys::clock::{self, Deadline};
use crate::sys::proc::{self, Liveness, Process};
use crate::sys::signal::TERM;

/// Time limit for a program that has agreed to exit by itself.
const OWN_END: Duration = Duration::from_millis(700);
/// Time limit for a launcher to end the process tree after its signal.
const LAUNCHER_END: Duration = Duration::from_secs(4);
/// Time between TERM and KILL for processes that the launcher does not end.
const TREE_GRACE: Duration = Duration::from_secs(1);

/// Time limit for a backend that cannot tell whose a placement is.
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
pub(crate) struct Ending {
    pub(crate) record: MemberRecord,
    pub(crate) manner: TerminationMode,
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
    endings: &[Ending],
) -> Vec<Result<(), OpsError>> {
    let mut results: Vec<Option<Result<(), OpsError>>> = endings.iter().map(|_| None).collect();
    for group in groups(endings) {
        let Some(mark) = group[0].mark() else { continue };
        match backends::of_placement(ctx, team, mark.placement) {
            Ok(backend) => end_group(team, backend.as_ref(), &group, &mut results),
            Err(e) => settle(&mut results, group.iter().map(|one| one.nth), Err(e)),
        }
    }
    let unplaced: Vec<One<'_>> = endings.iter().enumerate().filter_map(One::unplaced).collect();
    // A backend can fail after it has started a launcher, which only the start record names then.
    end_processes(&unplaced);
    for one in &unplaced {
        results[one.nth] = Some(one.ended());
    }
    results.into_iter().map(|result| result.unwrap_or(Ok(()))).collect()
}

/// Ends one run, as [`terminate_all`] does.
pub(crate) fn terminate(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
    manner: TerminationMode,
) -> Result<(), OpsError> {
    let ending = Ending { record: record.clone(), manner };
    terminate_all(ctx, team, &[ending]).pop().unwrap_or(Ok(()))
}

/// A run in a group that shares a backend.
#[derive(Debug, Clone, Copy)]
struct One<'a> {
    /// Index of its result.
    nth: usize,
    record: &'a MemberRecord,
    manner: TerminationMode,
}

impl<'a> One<'a> {
    fn unplaced((nth, Ending { record, manner }): (usize, &'a Ending)) -> Option<One<'a>> {
        record.placement.is_none().then_some(One { nth, record, manner: *manner })
    }

    /// Returns `None` without a placement.
    fn mark(&self) -> Option<Mark<'a>> {
        let placement = self.record.placement.as_ref()?;
        Some(Mark { placement, token: self.record.mark() })
    }

    /// Checks that its processes are gone.
    fn ended(&self) -> Result<(), OpsError> {
        let processes = [self.launcher(), self.program()].into_iter().flatten();
        match processes.into_iter().find(|process| !is_dead(*process)) {
            Some(left) => Err(OpsError::NotEnded {
                what: format!("process {} of `{}` is still running", left.pid, self.record.name),
            }),
            None => Ok(()),
        }
    }

    fn launcher(&self) -> Option<ProcessId> {
        self.record.launcher()
    }

    fn program(&self) -> Option<ProcessId> {
        self.record.start.as_ref().map(|start| start.program)
    }
}

type Results = [Option<Result<(), OpsError>>];

/// Groups the runs whose placements one backend can verify together.
fn groups(endings: &[Ending]) -> Vec<Vec<One<'_>>> {
    let mut groups: BTreeMap<(&str, &str), Vec<One<'_>>> = BTreeMap::new();
    for (nth, Ending { record, manner }) in endings.iter().enumerate() {
        let Some(placement) = &record.placement else { continue };
        let server = match placement {
            Placement::Tmux(pane) => pane.socket.as_str(),
            Placement::Exec(place) => place.program.as_str(),
            Placement::Iterm2(_) | Placement::Pty(_) => "",
        };
        let one = One { nth, record, manner: *manner };
        groups.entry((placement.backend().as_str(), server)).or_default().push(one);
    }
    groups.into_values().collect()
}

fn end_group(team: &TeamStore, backend: &dyn Backend, group: &[One<'_>], results: &mut Results) {
    let own_end = Deadline::after(OWN_END);
    for launcher in
        group.iter().filter(|one| one.manner == TerminationMode::Agreed).filter_map(One::launcher)
    {
        proc::wait_exit(process(launcher), own_end.remaining());
    }
    // The placement of a launcher that has exited by itself is verified only once, when it is
    // closed.
    let (ended, alive): (Vec<One<'_>>, Vec<One<'_>>) =
        group.iter().partition(|one| one.launcher().is_some_and(is_dead));
    if let Err(e) = look(team, backend, &alive) {
        // Aborts if the verdicts could not be journaled, so that nothing is closed without a
        // record.
        return settle(results, group.iter().map(|one| one.nth), Err(e));
    }
    // Pid and start time prove the launchers ours. A verdict is needed only to close the placement.
    end_processes(group);
    let closed = close_all(team, backend, group, &ended);
    for (one, closed) in group.iter().zip(closed) {
        results[one.nth] = Some(closed.and(one.ended()));
    }
}

/// Verifies the placements and journals the verdicts.
fn look(team: &TeamStore, backend: &dyn Backend, group: &[One<'_>]) -> Result<(), OpsError> {
    if group.is_empty() {
        return Ok(());
    }
    let verdicts = backend.verify_all(&marks(group));
    journal(team, group.iter().zip(&verdicts))
}

fn marks<'a>(group: &[One<'a>]) -> Vec<Mark<'a>> {
    group.iter().filter_map(One::mark).collect()
}

/// Signals the launchers, which end the trees of their programs. Ends the tree of one that does
/// not.
fn end_processes(group: &[One<'_>]) {
    // A launcher that was dead already and left no exit record may have been killed from outside.
    let killed =
        group.iter().filter(|one| one.record.exit.is_none() && one.launcher().is_some_and(is_dead));
    let killed: Vec<String> =
        killed.map(|one| format!("PHALANX_INCARNATION={}", one.record.incarnation)).collect();
    for launcher in group.iter().filter_map(One::launcher) {
        proc::signal(process(launcher), TERM);
    }
    let deadline = Deadline::after(LAUNCHER_END);
    for launcher in group.iter().filter_map(One::launcher) {
        proc::wait_exit(process(launcher), deadline.remaining());
    }
    // A launcher that was killed from outside could not end its program.
    let left = group.iter().flat_map(|one| [one.launcher(), one.program()]).flatten();
    let left: Vec<ProcessId> = left.filter(|process| !is_dead(*process)).collect();
    // Concurrently: each may take its whole grace time.
    thread::scope(|scope| {
        for stubborn in left {
            scope.spawn(move || proc::end_tree(process(stubborn), true, TREE_GRACE));
        }
    });
    // Processes that had left the program's tree still have the run in their environment (SD-09).
    proc::end_marked(&killed, TREE_GRACE);
}

/// Closes the placements that are proven ours. A server that exits with its last pane cannot be
/// queried for a moment (SD-13), so unknown verdicts are retried until [`UNKNOWN_FOR`] has passed.
/// The verdicts of the `unseen` are not journaled yet.
fn close_all(
    team: &TeamStore,
    backend: &dyn Backend,
    group: &[One<'_>],
    unseen: &[One<'_>],
) -> Vec<Result<(), OpsError>> {
    let deadline = Deadline::after(UNKNOWN_FOR);
    let mut results: Vec<Option<Result<(), OpsError>>> = group.iter().map(|_| None).collect();
    let mut open: Vec<usize> = (0..group.len()).collect();
    while !open.is_empty() {
        let asked: Vec<One<'_>> = open.iter().map(|nth| group[*nth]).collect();
        let verdicts = backend.verify_all(&marks(&asked));
        let (mut later, mut ours, mut gone) = (Vec::new(), Vec::new(), Vec::new());
        for (nth, verdict) in open.into_iter().zip(verdicts) {
            let dead = group[nth].launcher().is_some_and(is_dead);
            match verdict {
                Verdict::Gone => gone.push((nth, verdict)),
                Verdict::Foreign { .. } if dead => gone.push((nth, verdict)),
                Verdict::Unknown { .. } if !deadline.expired() => later.push(nth),
                Verdict::Owned | Verdict::Foreign { .. } | Verdict::Unknown { .. } => {
                    ours.push(nth)
                }
            }
        }
        let fresh = |nth: usize| unseen.iter().any(|one| one.nth == group[nth].nth);
        let news = gone.iter().filter(|(nth, _)| fresh(*nth));
        let told = journal(team, news.map(|(nth, verdict)| (&group[*nth], verdict)));
        settle(&mut results, gone.iter().map(|(nth, _)| *nth), told);
        close_ours(team, backend, group, &ours, &mut results);
        open = later;
        if !open.is_empty() {
            clock::sleep(UNKNOWN_PAUSE);
        }
    }
    results.into_iter().map(|result| result.unwrap_or(Ok(()))).collect()
}

fn close_ours(
    team: &TeamStore,
    backend: &dyn Backend,
    group: &[One<'_>],
    ours: &[usize],
    results: &mut Results,
) {
    if ours.is_empty() {
        return;
    }
    let asked: Vec<One<'_>> = ours.iter().map(|nth| group[*nth]).collect();
    for (nth, closed) in ours.iter().zip(backend.close_all(&marks(&asked))) {
        let told = closed
            .map_err(OpsError::from)
            .and_then(|verdict| journal(team, [(&group[*nth], &verdict)]));
        results[*nth] = Some(told);
    }
}

/// Sets the same result for several runs: an error for the first, and its text for the others.
fn settle(results: &mut Results, those: impl Iterator<Item = usize>, told: Result<(), OpsError>) {
    let text = told.as_ref().err().map(OpsError::to_string);
    let mut first = told.err();
    for nth in those {
        results[nth] = Some(match (first.take(), &text) {
            (Some(e), _) => Err(e),
            (None, Some(text)) => Err(OpsError::NotEnded { what: text.clone() }),
            (None, None) => Ok(()),
        });
    }
}

fn process(id: ProcessId) -> Process {
    Process { pid: id.pid, start: id.start }
}

fn is_dead(id: ProcessId) -> bool {
    proc::liveness(id.pid, id.start) == Liveness::Dead
}

fn journal<'a>(
    team: &TeamStore,
    verdicts: impl IntoIterator<Item = (&'a One<'a>, &'a Verdict)>,
) -> Result<(), OpsError> {
    let note = |(one, verdict): (&One<'_>, &Verdict)| {
        Note::of(EventKind::PlacementVerdict)
            .member(&one.record.name)
            .with("incarnation", one.record.incarnation.as_str())
            .with("verdict", verdict.to_string())
    };
    team.record_all(verdicts.into_iter().map(note).collect())?;
    Ok(())
}

#[cfg(test)]
mod tests;
