//! Runs long work that a person can interrupt with a signal.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::fail::Failure;
use ops::{Kind, OpsError};
use sys::exec::CancelToken;
use sys::signal::Signals;

/// Time limit for cancelled work to end.
const CANCELLED_WITHIN: Duration = Duration::from_secs(5);

/// Creates a single-threaded runtime for one verb.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Runs `work` on a thread of its own until it ends or a signal arrives. On a signal it returns
/// `interrupted` and abandons the work, so `work` must be safe to stop at any point. A stream also
/// ends with the process that reads it, and not only at its next line.
///
/// # Errors
/// Returns the error of `work`, `interrupted` after a signal, [`Failure::OutputClosed`] of a
/// stream, or the failure to start a thread.
pub(super) fn run_interruptible<T: Send + 'static>(
    interrupted: Failure,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let is_stream = matches!(interrupted, Failure::StreamEnded);
    let closed = || Ok(sys::tty::await_output_closed()?);
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let mut signals = Signals::new()?;
        tokio::select! {
            done = run_on_thread(work) => done,
            _signal = signals.recv() => Err(interrupted),
            Ok(()) = run_on_thread(closed), if is_stream => Err(Failure::OutputClosed),
        }
    });
    // Not waited for: the thread may be blocked for long, and the process is about to exit.
    runtime.shutdown_background();
    result
}

/// Runs work that may run checks of the team, until it ends or a signal arrives. A signal cancels
/// it: it is waited for, for a few seconds, so that the checks end with this process.
///
/// # Errors
/// As [`run_interruptible`].
pub(super) fn with_checks<T: Send + 'static>(
    work: impl FnOnce(&CancelToken) -> Result<T, OpsError> + Send + 'static,
) -> Result<T, Failure> {
    let cancel = CancelToken::default();
    let token = cancel.clone();
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let mut signals = Signals::new()?;
        let mut work = pin!(run_on_thread(move || Ok(work(&token)?)));
        tokio::select! {
            done = &mut work => done,
            _signal = signals.recv() => {
                cancel.cancel();
                let _ = timeout(CANCELLED_WITHIN, work).await;
                Err(Failure::interrupted("interrupted; the checks were ended", None))
            }
        }
    });
    runtime.shutdown_background();
    result
}

/// Runs blocking work on a new thread; a panic in it resumes here. `spawn_blocking` is not used
/// because it panics if the system refuses a thread.
///
/// # Errors
/// Returns the error of `work`, or the failure to start the thread.
pub(super) async fn run_on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (sender, result) = oneshot::channel();
    let work = move || drop(sender.send(catch_unwind(AssertUnwindSafe(work))));
    thread::Builder::new().name("work".to_owned()).spawn(work)?;
    match result.await {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(e) => Err(Failure::new(Kind::Internal, e.to_string(), None)),
    }
}
