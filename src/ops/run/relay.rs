//! The thread between a command's terminal and the pane. Knows how to stop listening when somebody else holds the
//! terminal open.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::screen::Screen;
use super::tail::Tail;
use crate::sys::clock::Deadline;

/// With the command's processes gone, this long without a byte means that no more will come.
const QUIET: Duration = Duration::from_millis(300);
/// No stranger who keeps writing to the terminal is listened to for longer than this.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// The relay of one command's output.
pub(super) struct Relay {
    shared: Arc<Shared>,
    /// Hangs up when the thread has come to the end of the output.
    ended: Receiver<()>,
}

#[derive(Default)]
struct Shared {
    tail: Mutex<Tail>,
    /// Counts what was read, and what was shown.
    moves: AtomicU64,
    showing: AtomicBool,
    /// Nobody wants to hear any more.
    deaf: AtomicBool,
}

impl Relay {
    /// Starts the thread.
    pub(super) fn start(reader: Box<dyn Read + Send>, screen: Screen) -> std::io::Result<Relay> {
        let shared = Arc::new(Shared::default());
        let (held, ended) = channel();
        let theirs = Arc::clone(&shared);
        thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || theirs.run(reader, &screen, held))
            .map(|_| Relay { shared, ended })
    }

    /// Waits for the rest of the output and gives its last lines. Call it when the command's processes are gone: then
    /// the terminal is hung up, unless somebody got away with it, and that one is left alone after a moment. A pane
    /// that a person has paused is waited for, unless `hurry`.
    pub(super) fn finish(self, hurry: &AtomicBool) -> String {
        let limit = Deadline::after(LAST_WORDS);
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
        self.shared.deaf.store(true, Ordering::SeqCst);
        std::mem::take(&mut *self.shared.tail.lock().unwrap_or_else(PoisonError::into_inner)).text()
    }
}

impl Shared {
    /// `_held` is dropped with the thread's end, whatever ends it.
    fn run(&self, mut reader: Box<dyn Read + Send>, screen: &Screen, _held: Sender<()>) {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match reader.read(&mut buffer) {
                Ok(0) => return,
                Ok(read) => read,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                // A terminal that nobody has open any more says EIO.
                Err(_) => return,
            };
            self.moves.fetch_add(1, Ordering::SeqCst);
            if self.deaf.load(Ordering::SeqCst) {
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
