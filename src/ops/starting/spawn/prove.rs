//! Confirms that a teammate runs: requires its launcher's start record and the readiness that its
//! profile defines.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::checkouts;
use super::prepare::MemberStart;
use crate::{OpsError, now};
use model::members::placement::Placement;
use model::members::record::{ExitRecord, MemberRecord, StartRecord};
use model::text;
use model::topic::Topic;
use profile::Ready;
use store::{TeamStore, TeamWatch};
use sys::clock::Deadline;
use sys::proc::{self, Liveness};

/// Poll interval: a launcher can die without writing its record.
const POLL: Duration = Duration::from_millis(100);

/// The result of waiting for a start.
pub(super) enum StartProof {
    Runs { pid: i32, cwd: String },
    Fails { reason: String, cause: FailureCause },
}

/// The cause of a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureCause {
    /// The program or the spec: it would fail on any backend.
    Program,
    /// The launcher died without an exit record, or had no terminal.
    Backend,
    /// The deadline passed. `silent`: not even a start record was written.
    Late { silent: bool },
}

/// The result of one check. `Continue` has the time after which a member is to be checked again if
/// its record does not change before.
type ProofCheck = ControlFlow<StartProof, Duration>;

/// Reports the members whose records change, so that one change does not cause all records to be
/// read.
pub(super) struct RecordWatcher {
    changed: Receiver<Topic>,
    _watch: TeamWatch,
}

impl RecordWatcher {
    /// Subscribes to the team's records. Call it before anything is started, so that no change is
    /// missed.
    ///
    /// # Errors
    ///
    /// The records cannot be watched.
    pub(super) fn subscribe(team: &TeamStore) -> Result<RecordWatcher, OpsError> {
        let (sender, changed) = channel();
        // Fails only after the receiver has been dropped.
        let watch = team.watch_records(move |topic| drop(sender.send(topic)))?;
        Ok(RecordWatcher { changed, _watch: watch })
    }

    /// Waits up to `limit` for changes. Returns the file stems of the changed records, or none if
    /// all are to be checked.
    fn wait(&self, limit: Duration) -> Option<BTreeSet<String>> {
        let first = self.changed.recv_timeout(limit).ok()?;
        let topics = std::iter::once(first).chain(self.changed.try_iter());
        let stem = |topic| if let Topic::Member(stem) = topic { Some(stem) } else { None };
        topics.map(stem).collect()
    }
}

/// Waits for the whole batch until `limit`. Returns one proof per member. A program that runs, and
/// whose screen no rule has recognised until then, counts as started (SP-21).
pub(super) fn prove(
    team: &TeamStore,
    starts: &[MemberStart],
    watcher: &RecordWatcher,
    limit: Duration,
) -> Vec<StartProof> {
    let deadline = Deadline::after(limit);
    let mut proofs: Vec<Option<StartProof>> = starts.iter().map(|_| None).collect();
    let mut changed: Option<BTreeSet<String>> = None;
    let mut sweep = Deadline::after(POLL);
    loop {
        let stems = changed.filter(|_| !sweep.expired());
        if stems.is_none() {
            sweep = Deadline::after(POLL);
        }
        for (start, proof) in starts.iter().zip(&mut proofs).filter(|(_, proof)| proof.is_none()) {
            if stems.as_ref().is_some_and(|stems| !stems.contains(&start.record.name.file_stem())) {
                continue;
            }
            match check(team, start, false) {
                ControlFlow::Break(found) => *proof = Some(found),
                ControlFlow::Continue(at_most) if at_most < sweep.remaining() => {
                    sweep = Deadline::after(at_most)
                }
                ControlFlow::Continue(_) => {}
            }
        }
        if proofs.iter().all(Option::is_some) || deadline.expired() {
            break;
        }
        changed = watcher.wait(sweep.remaining().min(deadline.remaining()));
    }
    let late = |start: &MemberStart| match check(team, start, true) {
        ControlFlow::Break(proof) => proof,
        ControlFlow::Continue(_) => StartProof::Fails {
            reason: String::new(),
            cause: FailureCause::Late { silent: !has_begun(team, start) },
        },
    };
    proofs.into_iter().zip(starts).map(|(p, start)| p.unwrap_or_else(|| late(start))).collect()
}

/// Returns whether the launcher may have started: false only if a readable record has no start.
fn has_begun(team: &TeamStore, start: &MemberStart) -> bool {
    team.member_record(&start.record.name).is_ok_and(|r| r.is_none_or(|r| r.start.is_some()))
}

/// Checks a start once. `is_late`: its time is over, so its screen is no longer waited for.
fn check(team: &TeamStore, started: &MemberStart, is_late: bool) -> ProofCheck {
    let Some(placement) = &started.record.placement else { return fails("it was not placed") };
    let record = match team.member_record(&started.record.name) {
        Ok(Some(record)) if record.is(&started.record.incarnation) => record,
        Ok(_) => return fails("its record was taken by another run"),
        Err(e) => return fails(&e.to_string()),
    };
    let may_be_over = may_be_over(&record, started.ready);
    if let Some(exit) = record.exit.as_ref().filter(|_| !may_be_over) {
        return exited(exit);
    }
    let launcher = record.launcher().or_else(|| placement.launcher());
    if !may_be_over && launcher.is_some_and(|it| proc::liveness(it.pid, it.start) == Liveness::Dead)
    {
        // The exit record may have been written between the read above and the liveness check.
        let last = team.member_record(&started.record.name).ok().flatten().and_then(|r| r.exit);
        let silent = || no_launcher("its launcher was gone before it said anything");
        return last.as_ref().map_or_else(silent, exited);
    }
    let Some(start) = &record.start else { return ControlFlow::Continue(POLL) };
    if let Some(problem) = elsewhere(start, placement)
        .or_else(|| checkouts::outside_worktree(&start.cwd, &started.member))
    {
        return fails(&problem);
    }
    match left_until_ready(&record, started.ready) {
        Some(left) if !is_late || started.ready != Ready::Screen => ControlFlow::Continue(left),
        Some(_) | None => {
            ControlFlow::Break(StartProof::Runs { pid: start.program.pid, cwd: start.cwd.clone() })
        }
    }
}

/// Returns true for a run that counts as started even if it has ended.
fn may_be_over(record: &MemberRecord, rule: Ready) -> bool {
    record.start.is_some()
        && match rule {
            Ready::Begun | Ready::Running => true,
            Ready::Hello | Ready::Screen | Ready::Settled { .. } => false,
        }
}

/// Compares the tty for iTerm2: it does not report a session's process, so only the tty proves that
/// ours runs there.
fn elsewhere(start: &StartRecord, placement: &Placement) -> Option<String> {
    match placement {
        Placement::Iterm2(session) if start.tty.as_ref() != Some(&session.tty) => {
            let tty = start.tty.as_deref().unwrap_or("no terminal");
            Some(format!("it runs on {tty}, and its session of iTerm2 is on {}", session.tty))
        }
        Placement::Iterm2(_) | Placement::Tmux(_) | Placement::Pty(_) => None,
    }
}

/// Returns the time after which a run that is not ready has to be checked again; none once it is
/// ready.
pub(crate) fn left_until_ready(record: &MemberRecord, rule: Ready) -> Option<Duration> {
    let Some(start) = &record.start else { return Some(POLL) };
    match rule {
        Ready::Hello | Ready::Screen => record.ready_at.is_none().then_some(POLL),
        Ready::Running | Ready::Begun => None,
        Ready::Settled { ms } => match ms.saturating_sub(now().since(start.at)) {
            0 => None,
            left => Some(Duration::from_millis(left)),
        },
    }
}

fn exited(exit: &ExitRecord) -> ProofCheck {
    if exit.no_terminal { no_launcher(&exit.describe()) } else { fails(&exit.describe()) }
}

fn fails(reason: &str) -> ProofCheck {
    let cause = FailureCause::Program;
    ControlFlow::Break(StartProof::Fails { reason: reason.to_owned(), cause })
}

fn no_launcher(reason: &str) -> ProofCheck {
    let cause = FailureCause::Backend;
    ControlFlow::Break(StartProof::Fails { reason: reason.to_owned(), cause })
}

/// Builds the error for a failed start, with the last 20 lines of its screen in printable form.
pub(super) fn failure(
    record: &MemberRecord,
    reason: &str,
    cause: FailureCause,
    screen: &str,
) -> OpsError {
    let screen = text::block(&text::last_lines(screen, 20));
    let (name, reason) = (record.name.clone(), text::line(reason));
    match cause {
        FailureCause::Program => OpsError::StartFailed { name, reason, screen },
        FailureCause::Backend => OpsError::NoLauncher { name, reason, screen },
        FailureCause::Late { silent } => {
            let seconds = now().since(record.asked_at).div_ceil(1000);
            OpsError::StartDeadline { name, seconds, screen, silent }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PF-03: a host without free ptys is the backend's fault; an executable that cannot run is the
    /// program's.
    #[test]
    fn pf_03_only_a_missing_terminal_is_blamed_on_the_backend() {
        for (no_terminal, expected) in
            [(true, FailureCause::Backend), (false, FailureCause::Program)]
        {
            let problem = Some("no terminal left".to_owned());
            let exit =
                ExitRecord { code: Some(126), problem, no_terminal, ..ExitRecord::default() };
            match exited(&exit) {
                ControlFlow::Break(StartProof::Fails { reason, cause }) => {
                    assert_eq!((reason.as_str(), cause), ("no terminal left", expected))
                }
                _ => panic!("it has ended"),
            }
        }
    }
}
