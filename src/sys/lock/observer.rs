//! Reports long waits for locks, so that a person can see what a process waits for.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::super::clock::Deadline;

/// Duration from which a wait is reported.
const REPORT_AFTER: Duration = Duration::from_secs(2);

/// Holder of a lock, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Another phalanx process, with a description if it is known.
    Process(Option<String>),
    /// A program other than phalanx, which may be alive.
    OtherProgram,
    /// A process that was killed. The lock is free once it is stale.
    Gone,
}

/// A long wait for a lock, or new knowledge about its holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LongWait {
    /// Path of the lock.
    pub resource: PathBuf,
    pub holder: Holder,
    /// Upper bound of the whole wait.
    pub at_most: Duration,
}

type Observer = Arc<dyn Fn(&LongWait) + Send + Sync>;

static OBSERVER: Mutex<Option<Observer>> = Mutex::new(None);

/// Registers `observer` for the long waits of this process, in place of an earlier one. It is
/// called on the waiting thread.
pub fn observe_waits(observer: impl Fn(&LongWait) + Send + Sync + 'static) {
    *OBSERVER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(observer));
}

/// State of one wait, which is reported once for each holder.
#[derive(Debug, Default)]
pub(super) struct WaitReport(Option<Holder>);

impl WaitReport {
    /// Reports the wait if it has lasted for [`REPORT_AFTER`] and `find_holder` returns a holder
    /// that was not reported yet.
    pub(super) fn update(
        &mut self,
        resource: &Path,
        deadline: &Deadline,
        find_holder: impl FnOnce() -> (Holder, Duration),
    ) {
        if deadline.elapsed() < REPORT_AFTER {
            return;
        }
        let (holder, at_most) = find_holder();
        if self.0.as_ref() == Some(&holder) {
            return;
        }
        self.0 = Some(holder.clone());
        let observer = OBSERVER.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(observer) = observer {
            observer(&LongWait { resource: resource.to_owned(), holder, at_most });
        }
    }
}
