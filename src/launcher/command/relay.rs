//! The thread that copies a command's output to the pane. It stops in bounded time even if another
//! process keeps the terminal open.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::screen::WorkerScreen;
use super::tail::Tail;
use sys::clock::Deadline;

/// After the command's processes have ended, silence of this length means that no more output will
/// come.
const QUIET: Duration = Duration::from_millis(300);
/// Time limit for output of escaped processes that keep writing to the terminal.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// The relay of one command's output.
pub(super) struct OutputRelay {
    shared: Arc<RelayState>,
    /// Disconnects when the thread has reached the end of the output.
    ended: Receiver<()>,
}

#[derive(Default)]
struct RelayState {
    tail: Mutex<Tail>,
    /// Incremented after each read and after each write to the pane.
    moves: AtomicU64,
    /// Set while a write to the pane is in progress; it blocks if the pane is paused.
    showing: AtomicBool,
    /// Set when further output is to be discarded.
    discards: AtomicBool,
}

impl OutputRelay {
    /// Starts the thread.
    pub(super) fn start(
        reader: Box<dyn Read + Send>,
        screen: WorkerScreen,
    ) -> std::io::Result<OutputRelay> {
        let shared = Arc::new(RelayState::default());
        let (held, ended) = channel();
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || theirs.run(reader, &screen, held))
            .map(|_| OutputRelay { shared, ended })
    }

    /// Waits for the rest of the output and returns its last lines. Call it after the command's
    /// processes have ended: then the terminal is hung up, unless an escaped process still holds
    /// it; such a process is waited for at most `LAST_OUTPUT`. A paused pane is waited for without
    /// a limit, unless `hurry` is set.
    pub(super) fn finish(self, hurry: &AtomicBool) -> String {
        let limit = Deadline::after(LAST_OUTPUT);
        let mut moves = self.shared.moves.load(Ordering::SeqCst);
        while self.ended.recv_timeout(QUIET) == Err(RecvTimeoutError::Timeout) {
            let now = self.shared.moves.load(Ordering::SeqCst);
            let quiet = std::mem::replace(&mut moves, now) == now;
            let paused = self.shared.showing.load(Ordering::SeqCst)
                && quiet
                && !hurry.load(Ordering::SeqCst);
            if !paused && (quiet || limit.expired()) {
                break;
            }
        }
        self.shared.discards.store(true, Ordering::SeqCst);
        std::mem::take(&mut *self.shared.tail.lock().unwrap_or_else(PoisonError::into_inner)).text()
    }
}

impl RelayState {
    /// Copies output until EOF. `_held` disconnects `ended` on every exit, even a panic.
    fn run(&self, mut reader: Box<dyn Read + Send>, screen: &WorkerScreen, _held: Sender<()>) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => read,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                // EIO: no process has the terminal open any longer.
                Err(_) => return,
            };
            self.moves.fetch_add(1, Ordering::SeqCst);
            if self.discards.load(Ordering::SeqCst) {
                return;
            }
            self.showing.store(true, Ordering::SeqCst);
            self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(&buffer[..read]);
            screen.relay(&buffer[..read]);
            self.showing.store(false, Ordering::SeqCst);
            self.moves.fetch_add(1, Ordering::SeqCst);
        }
    }
}
