//! Reports waits for locks that last long, so that a person can be shown what is waited for.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::super::clock::Deadline;

/// A wait that lasts longer is reported.
const LONG: Duration = Duration::from_secs(2);

/// The holder of a lock, as far as the system tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Holder {
    /// Another process; described where it is known.
    Process(Option<String>),
    /// A program that is not phalanx and that may live.
    OtherProgram,
    /// A process that was killed: the lock is free once it is stale.
    Gone,
}

/// A wait that has lasted long, or whose holder is known better by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LongWait {
    pub(crate) resource: PathBuf,
    pub(crate) holder: Holder,
    /// The whole wait lasts no longer.
    pub(crate) at_most: Duration,
}

type Observer = Arc<dyn Fn(&LongWait) + Send + Sync>;

static OBSERVER: Mutex<Option<Observer>> = Mutex::new(None);

/// Has every long wait of this process reported to `observer`, in the place of an earlier one. It is called on the thread
/// that waits.
pub(crate) fn observe_waits(observer: impl Fn(&LongWait) + Send + Sync + 'static) {
    *OBSERVER.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(observer));
}

/// One wait, reported once for each holder.
#[derive(Debug, Default)]
pub(super) struct Report(Option<Holder>);

impl Report {
    /// Reports the wait if it has lasted long and `look` finds a holder that was not reported yet.
    pub(super) fn update(
        &mut self,
        resource: &Path,
        deadline: &Deadline,
        look: impl FnOnce() -> (Holder, Duration),
    ) {
        if deadline.elapsed() < LONG {
            return;
        }
        let (holder, at_most) = look();
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
