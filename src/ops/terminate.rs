//! Ending one run of a member for good: its processes, then its placement, each only with proof that it is ours.

use std::time::Duration;

use super::backends;
use super::context::Context;
use super::error::OpsError;
use crate::backend::Backend;
use crate::model::event::{EventKind, Note};

use crate::model::placement::{Placement, ProcessId, Verdict};
use crate::model::record::MemberRecord;
use crate::store::TeamStore;
use crate::sys::clock::{self, Deadline};
use crate::sys::proc::{self, Liveness, Process};
use crate::sys::signal::TERM;

/// How long a program that has agreed may take to end by itself.
const OWN_END: Duration = Duration::from_millis(700);
/// How long the launcher may take to end the tree once it was told.
const LAUNCHER_END: Duration = Duration::from_secs(4);
/// How long processes get between TERM and KILL if the launcher does not do it.
const TREE_GRACE: Duration = Duration::from_secs(1);

/// How long a backend may be unable to say whose a placement is.
const UNKNOWN_FOR: Duration = Duration::from_secs(3);
/// The pause between two looks meanwhile.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(20);

/// How gently to go about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It has agreed: let it end by itself first.
    Agreed,
    /// It is told at once.
    Told,
}

/// Ends the processes and closes the placement of this run. Gives the verdict that was acted upon. Done twice, the
/// second time finds it gone.
///
/// # Errors
/// A placement that cannot be proven ours is not touched, unless its processes are proven dead already.
pub(crate) fn terminate(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
    manner: Manner,
) -> Result<Verdict, OpsError> {
    let Some(placement) = &record.placement else {
        // A backend can fail after it has started a launcher, which is then known by its start record alone.
        end_processes(record);
        return ended(record).map(|()| Verdict::Gone);
    };
    let backend = backends::of_placement(ctx, team, placement)?;
    let launcher = record.launcher();
    if let Some(launcher) = launcher.filter(|_| manner == Manner::Agreed) {
        proc::wait_exit(process(launcher), OWN_END);
    }
    let before = backend.verify(placement, &record.token);
    journal(team, record, &before)?;
    // Pid and start time prove the launcher on their own; the placement's proof is needed only to close it.
    end_processes(record);
    close(team, record, placement, backend.as_ref())?;
    ended(record).map(|()| before)
}

fn program(record: &MemberRecord) -> Option<ProcessId> {
    record.start.as_ref().map(|start| start.program)
}

fn ended(record: &MemberRecord) -> Result<(), OpsError> {
    match [record.launcher(), program(record)].into_iter().flatten().find(|process| !is_dead(*process)) {
        Some(left) => Err(OpsError::NotEnded {
            what: format!("process {} of `{}` is still there", left.pid, record.name),
        }),
        None => Ok(()),
    }
}

/// Closes the placement if it is proven ours. A server that ends with its last pane cannot be asked for a moment
/// (SD-13): that is waited out before it counts as unknown.
fn close(
    team: &TeamStore,
    record: &MemberRecord,
    placement: &Placement,
    backend: &dyn Backend,
) -> Result<(), OpsError> {
    let deadline = Deadline::after(UNKNOWN_FOR);
    loop {
        match backend.verify(placement, &record.token) {
            Verdict::Gone => return Ok(()),
            Verdict::Foreign { .. } if record.launcher().is_some_and(is_dead) => return Ok(()),
            Verdict::Unknown { .. } if !deadline.expired() => clock::sleep(UNKNOWN_PAUSE),
            Verdict::Owned | Verdict::Foreign { .. } | Verdict::Unknown { .. } => {
                let acted = backend.close(placement, &record.token)?;
                return journal(team, record, &acted);
            }
        }
    }
}

fn process(id: ProcessId) -> Process {
    Process { pid: id.pid, start: id.start }
}

fn is_dead(id: ProcessId) -> bool {
    proc::liveness(id.pid, id.start) == Liveness::Dead
}

/// Tells the launcher, which ends its program's tree; if it does not, ends the tree from here.
fn end_processes(record: &MemberRecord) {
    let was_dead = record.launcher().is_some_and(is_dead);
    if let Some(launcher) = record.launcher().filter(|launcher| !is_dead(*launcher)) {
        proc::signal(process(launcher), TERM);
        if !proc::wait_exit(process(launcher), LAUNCHER_END) {
            proc::end_tree(process(launcher), true, TREE_GRACE);
        }
    }
    if let Some(program) = program(record).filter(|program| !is_dead(*program)) {
        // The launcher was killed from outside and could not take its program along.
        proc::end_tree(process(program), true, TREE_GRACE);
    }
    if was_dead && record.exit.is_none() {
        // Nor what had left the program's own tree; that still has its run in its environment (SD-09).
        proc::end_marked(&format!("PHALANX_INCARNATION={}", record.incarnation), TREE_GRACE);
    }
}

fn journal(team: &TeamStore, record: &MemberRecord, verdict: &Verdict) -> Result<(), OpsError> {
    let note = Note::of(EventKind::PlacementVerdict)
        .member(&record.name)
        .with("incarnation", record.incarnation.as_str())
        .with("verdict", verdict.to_string());
    team.record(note)?;
    Ok(())
}
