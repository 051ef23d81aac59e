//! The lock directory of proper-lockfile 4.1.2 beside a file, behind a gate of our own. Refuses to know the file.
//!
//! Order: gate, then directory; released in reverse. Under the gate at most one of our processes looks at the lock
//! directory, so stale locks are reclaimed by one at a time and only foreign programs are polled for.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::clock::Deadline;
use super::claim::{Afterwards, Claim, Patience, REFRESH, STALE, with_suffix};
use super::disk::{Disk, Real};
use super::observer::{Holder, Report};
use super::{Backoff, Gate, LockError};

/// A stamp may come so late on a busy machine.
const LATE: Duration = Duration::from_secs(1);

/// The lock directory `FILE.lock`, made by us and given back on drop.
#[derive(Debug)]
pub(crate) struct DirLock {
    claim: Claim<Real>,
    // Last, for fields are dropped in order: the gate opens only after the claim has given the directory back.
    _gate: Gate,
}

impl DirLock {
    /// Locks `target` (which need not exist for us; proper-lockfile insists), waiting up to `deadline` in total.
    /// `gate` is the flock file that all our processes use for this target; it must not be named `*.lock`.
    pub(crate) fn acquire(
        target: &Path,
        gate: &Path,
        afterwards: Afterwards,
        deadline: Duration,
    ) -> Result<DirLock, LockError> {
        let deadline = Deadline::after(deadline);
        let gate = Gate::open(gate, deadline.remaining())?;
        Ok(DirLock { claim: claim(target, afterwards, deadline)?, _gate: gate })
    }

    /// True when the lock directory is the one that we made and nobody has touched it; stamps it anew when
    /// it is older than 5 s, so that others do not take it for abandoned; there is no thread that does. To be asked immediately before publishing what was done under the lock.
    pub(crate) fn still_ours(&self) -> bool {
        self.claim.still_ours()
    }

    /// Lets a test be a holder that has not stamped its lock for a while.
    #[cfg(test)]
    pub(super) fn pretend_stamped(&self, time: std::time::SystemTime) {
        self.claim.pretend_stamped(time);
    }
}

/// The lock directory alone, for whoever is behind the gate already and needs it for a moment only.
#[derive(Debug)]
pub(crate) struct PeerLock<'g> {
    claim: Claim<Real>,
    _gate: &'g Gate,
}

impl PeerLock<'_> {
    /// Locks `target` for those who know no gate, waiting up to `deadline`. `gate` is the one of [`DirLock::acquire`].
    pub(crate) fn acquire<'g>(
        gate: &'g Gate,
        target: &Path,
        afterwards: Afterwards,
        deadline: Duration,
    ) -> Result<PeerLock<'g>, LockError> {
        Ok(PeerLock { claim: claim(target, afterwards, Deadline::after(deadline))?, _gate: gate })
    }

    /// See [`DirLock::still_ours`].
    pub(crate) fn still_ours(&self) -> bool {
        self.claim.still_ours()
    }
}

/// Behind the gate.
fn claim(
    target: &Path,
    afterwards: Afterwards,
    deadline: Deadline,
) -> Result<Claim<Real>, LockError> {
    let path = lock_path(target)?;
    let backoff = Backoff::new(Duration::from_millis(1), Duration::from_millis(20));
    let report = Report::default();
    match Claim::take(
        Real,
        &path,
        afterwards,
        &mut Until { path: &path, deadline, backoff, report },
    )? {
        Some(claim) => Ok(claim),
        None => Err(LockError::timeout(&path, &deadline, describe(&path))),
    }
}

/// Polls with growing pauses until a deadline.
struct Until<'p> {
    path: &'p Path,
    deadline: Deadline,
    backoff: Backoff,
    report: Report,
}

impl Until<'_> {
    /// The holder of the lock directory, and how long it can be waited for. Behind the gate a directory that we have made
    /// was left by a process that was killed, and a living program stamps its own every 5 s.
    fn holder(&self) -> (Holder, Duration) {
        let seen = Real.look(self.path).ok();
        let age = seen.map(|seen| Real.now().duration_since(seen.stamp).unwrap_or_default());
        let is_gone =
            seen.is_some_and(|seen| seen.is_marked) || age.is_some_and(|age| age > REFRESH + LATE);
        if is_gone { (Holder::Gone, STALE) } else { (Holder::OtherProgram, self.deadline.length()) }
    }
}

impl Patience for Until<'_> {
    fn is_over(&self) -> bool {
        self.deadline.expired()
    }

    fn pause(&mut self) {
        let mut report = std::mem::take(&mut self.report);
        report.update(self.path, &self.deadline, || self.holder());
        self.report = report;
        self.backoff.pause(&self.deadline);
    }
}

/// `realpath(target).lock`, the key that Node uses; for a missing target, its directory's real path.
fn lock_path(target: &Path) -> Result<PathBuf, LockError> {
    let fail = |source| LockError::io(target, source);
    let real = match fs::canonicalize(target) {
        Ok(real) => real,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let name =
                target.file_name().ok_or_else(|| fail(io::ErrorKind::InvalidInput.into()))?;
            let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
            fs::canonicalize(parent.unwrap_or(Path::new("."))).map_err(fail)?.join(name)
        }
        Err(source) => return Err(fail(source)),
    };
    Ok(with_suffix(&real, ".lock"))
}

/// The directory itself does not say who made it; its age is all there is.
fn describe(lock: &Path) -> Option<String> {
    let stamp = Real.look(lock).ok()?.stamp;
    let age = Real.now().duration_since(stamp).unwrap_or_default();
    Some(format!("another program (lock refreshed {} ms ago)", age.as_millis()))
}
