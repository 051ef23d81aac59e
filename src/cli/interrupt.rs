//! Work that may take long, and a person who may not want to wait for its end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

use super::fail::{Class, Failure};
use crate::sys::signal::Signals;

/// A runtime for one verb. Its time is this thread's time.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Runs `work` on a thread of its own until it ends or a signal asks us to; then `interrupted` is told, and the work is
/// left where it stands: only what may be broken off at any moment is to be run like this.
pub(super) fn breakable<T: Send + 'static>(
    interrupted: Failure,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let mut signals = Signals::new()?;
        tokio::select! {
            done = aside(work) => done,
            _signal = signals.recv() => Err(interrupted),
        }
    });
    // Not waited for: the thread may be in the middle of a long wait, and the process is about to end.
    runtime.shutdown_background();
    result
}

/// Runs blocking work on a thread beside the loop; a panic in it goes on here. The runtime cannot be
/// asked for the thread: it panics if the system refuses one.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (sender, result) = oneshot::channel();
    let work = move || drop(sender.send(catch_unwind(AssertUnwindSafe(work))));
    thread::Builder::new().name("work".to_owned()).spawn(work)?;
    match result.await {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(e) => Err(Failure::new(Class::Internal, e.to_string(), None)),
    }
}
