//! Confirms that a teammate runs: requires its launcher's start record and the readiness that its
//! profile defines.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::super::context::now;
use super::super::error::OpsError;
use super::worktree_setup;
use super::{Placed, Prepared};
use crate::model::placement::Placement;
use crate::model::record::{ExitRecord, MemberRecord, StartRecord};
use crate::model::text;
use crate::model::topic::Topic;
use crate::profile::Ready;
use crate::store::TeamStore;
use crate::sys::clock::Deadline;
use crate::sys::proc::{self, Liveness};
use crate::sys::watch::Watch;

/// Poll interval: a launcher can die without writing its record.
const GLANCE: Duration = Duration::from_millis(100);

/// The result of waiting for a start.
pub(super) enum Proof {
    Runs { pid: i32, cwd: String },
    Fails { reason: String, why: Why },
}

/// The cause of a failed start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The program or the order: it would fail on any backend.
    Program,
    /// The backend: the launcher died without an exit record, or had no terminal.
    Place,
    /// The deadline passed. `silent`: not even a start record was written.
    Late { silent: bool },
}

/// Reports the members whose records change, so that one change does not cause all records to be
/// read.
pub(super) struct RecordWatcher {
    changed: Receiver<Topic>,
    _watch: Watch,
}

impl RecordWatcher {
    /// Subscribes to the team's records. Call it before anything is started, so that no change is
    /// missed.
    ///
    /// # Errors
    ///
    /// The records cannot be watched.
    pub(super) fn of(team: &TeamStore) -> Result<RecordWatcher, OpsError> {
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

/// Waits for the whole batch until `limit`. Returns one proof per member.
pub(super) fn prove(
    team: &TeamStore,
    underway: &[Placed],
    news: &RecordWatcher,
    limit: Duration,
) -> Vec<Proof> {
    let deadline = Deadline::after(limit);
    let mut proofs: Vec<Option<Proof>> = underway.iter().map(|_| None).collect();
    let mut changed = None;
    let mut sweep = Deadline::after(GLANCE);
    loop {
        let whom = changed.filter(|_| !sweep.expired());
        if whom.is_none() {
            sweep = Deadline::after(GLANCE);
        }
        for (one, proof) in underway.iter().zip(&mut proofs).filter(|(_, proof)| proof.is_none()) {
            if !is_due(whom.as_ref(), &one.prepared) {
                continue;
            }
            match look(team, one) {
                Look::Settled(found) => *proof = Some(found),
                Look::Wait(at_most) if at_most < sweep.remaining() => {
                    sweep = Deadline::after(at_most)
                }
                Look::Wait(_) => {}
            }
        }
        if proofs.iter().all(Option::is_some) || deadline.expired() {
            break;
        }
        changed = news.wait(sweep.remaining().min(deadline.remaining()));
    }
    let late = |one: &Placed| Proof::Fails {
        reason: String::new(),
        why: Why::Late { silent: !has_begun(team, one) },
    };
    proofs.into_iter().zip(underway).map(|(p, one)| p.unwrap_or_else(|| late(one))).collect()
}

/// Returns whether the launcher may have started: false only if a readable record has no start.
fn has_begun(team: &TeamStore, one: &Placed) -> bool {
    team.member_record(&one.prepared.record.name).is_ok_and(|r| r.is_none_or(|r| r.start.is_some()))
}

fn is_due(changed: Option<&BTreeSet<String>>, one: &Prepared) -> bool {
    changed.is_none_or(|stems| stems.contains(&one.record.name.file_stem()))
}

enum Look {
    Settled(Proof),
    /// Check again after a change, and at the latest after this time.
    Wait(Duration),
}

fn look(team: &TeamStore, underway: &Placed) -> Look {
    let Ok(placement) = &underway.place else { return Look::Settled(fails("it was not placed")) };
    let one = &underway.prepared;
    let record = match team.member_record(&one.record.name) {
        Ok(Some(record)) if record.is(&one.record.incarnation) => record,
        Ok(_) => return Look::Settled(fails("its record was taken by another run")),
        Err(e) => return Look::Settled(fails(&e.to_string())),
    };
    let may_be_over = may_be_over(&record, one.ready);
    if let Some(exit) = record.exit.as_ref().filter(|_| !may_be_over) {
        return Look::Settled(ended(exit));
    }
    let launcher = record.launcher().or_else(|| placement.launcher());
    if !may_be_over && launcher.is_some_and(|it| proc::liveness(it.pid, it.start) == Liveness::Dead)
    {
        // The exit record may have been written between the read above and the liveness check.
        let last = team.member_record(&one.record.name).ok().flatten().and_then(|r| r.exit);
        let silent = || no_launcher("its launcher was gone before it said anything");
        return Look::Settled(last.as_ref().map_or_else(silent, ended));
    }
    let wrong = |start: &StartRecord| {
        elsewhere(start, placement).or_else(|| worktree_setup::astray(&start.cwd, &one.member))
    };
    if let Some(problem) = record.start.as_ref().and_then(wrong) {
        return Look::Settled(fails(&problem));
    }
    ready(&record, one.ready)
}

/// Returns true for a run that counts as started even if it has ended.
fn may_be_over(record: &MemberRecord, rule: Ready) -> bool {
    let ended_well = || record.exit.as_ref().is_some_and(|exit| exit.code == Some(0));
    record.start.is_some()
        && match rule {
            Ready::Begun => true,
            Ready::Running => ended_well(),
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
        Placement::Iterm2(_) | Placement::Tmux(_) | Placement::Pty(_) | Placement::Exec(_) => None,
    }
}

fn ready(record: &MemberRecord, rule: Ready) -> Look {
    match (&record.start, left_until_ready(record, rule)) {
        (Some(start), None) => {
            Look::Settled(Proof::Runs { pid: start.program.pid, cwd: start.cwd.clone() })
        }
        (_, left) => Look::Wait(left.unwrap_or(GLANCE)),
    }
}

/// Returns the time after which a run that is not ready has to be checked again; none once it is
/// ready.
pub(in crate::ops) fn left_until_ready(record: &MemberRecord, rule: Ready) -> Option<Duration> {
    let Some(start) = &record.start else { return Some(GLANCE) };
    match rule {
        Ready::Hello | Ready::Screen => record.ready_at.is_none().then_some(GLANCE),
        Ready::Running | Ready::Begun => None,
        Ready::Settled { ms } => match ms.saturating_sub(now().since(start.at)) {
            0 => None,
            left => Some(Duration::from_millis(left)),
        },
    }
}

fn ended(exit: &ExitRecord) -> Proof {
    match exit.no_terminal {
        true => no_launcher(&exit.describe()),
        false => fails(&exit.describe()),
    }
}

fn fails(reason: &str) -> Proof {
    Proof::Fails { reason: reason.to_owned(), why: Why::Program }
}

fn no_launcher(reason: &str) -> Proof {
    Proof::Fails { reason: reason.to_owned(), why: Why::Place }
}

/// Builds the error for a failed start, with the last 20 lines of its screen in printable form.
pub(super) fn failure(record: &MemberRecord, reason: &str, why: Why, screen: &str) -> OpsError {
    let screen = text::block(&text::last_lines(screen, 20));
    let (name, reason) = (record.name.clone(), text::line(reason));
    match why {
        Why::Program => OpsError::StartFailed { name, reason, screen },
        Why::Place => OpsError::NoLauncher { name, reason, screen },
        Why::Late { silent } => {
            let seconds = now().since(record.asked_at).div_ceil(1000);
            OpsError::StartDeadline { name, seconds, screen, silent }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time::Timestamp;

    /// PF-03: a host without free ptys is the backend's fault; an executable that cannot run is the
    /// program's.
    #[test]
    fn pf_03_only_a_missing_terminal_is_blamed_on_the_backend() {
        for (no_terminal, expected) in [(true, Why::Place), (false, Why::Program)] {
            let problem = Some("no terminal left".to_owned());
            let exit = ExitRecord {
                code: Some(126),
                signal: None,
                problem,
                no_terminal,
                at: Timestamp(0),
            };
            match ended(&exit) {
                Proof::Fails { reason, why } => {
                    assert_eq!((reason.as_str(), why), ("no terminal left", expected))
                }
                Proof::Runs { .. } => panic!("it has ended"),
            }
        }
    }
}
