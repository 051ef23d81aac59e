//! Words on stderr about a wait, once it has lasted two seconds, and again when they change.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::out::Out;
use crate::sys::lock::{Holder, LongWait};

/// A wait that is over sooner is not mentioned.
const SILENCE: Duration = Duration::from_secs(2);
/// Pause between two computations of the words.
const AGAIN: Duration = Duration::from_secs(3);

/// A wait that is being watched, until it is dropped.
pub(super) struct Notice {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Notice {
    /// Begins to watch a wait; `words` says what for and how long at most, or nothing.
    pub(super) fn begin(
        out: &Out,
        mut words: impl FnMut() -> Option<String> + Send + 'static,
    ) -> Notice {
        let (stop, stopped) = channel::<()>();
        let out = out.clone();
        let watch = move || {
            let (mut pause, mut said) = (SILENCE, None);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = AGAIN;
                let now = words();
                if now.is_some() && now != said {
                    out.say(now.as_deref().unwrap_or_default());
                    said = now;
                }
            }
        };
        // Without the thread the wait is only silent.
        let thread = thread::Builder::new().name("notice".to_owned()).spawn(watch).ok();
        Notice { stop: Some(stop), thread }
    }

    /// Begins to watch a wait with words that do not change.
    pub(super) fn of(out: &Out, words: String) -> Notice {
        Notice::begin(out, move || Some(words.clone()))
    }
}

impl Drop for Notice {
    /// Joins the thread: no words appear behind the output that follows.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The words about a wait for a lock.
pub(super) fn lock_words(wait: &LongWait) -> String {
    let (seconds, path) = (wait.at_most.as_secs(), wait.resource.display());
    let what = match &wait.holder {
        Holder::Process(Some(process)) => format!("a lock held by {process}"),
        Holder::Process(None) => "a lock of another process".to_owned(),
        Holder::OtherProgram => "a lock of another program".to_owned(),
        Holder::Gone => "a lock that no live process holds".to_owned(),
    };
    format!("waiting for {what}, at most {seconds} s ({path})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_for_a_lock_names_its_holder_and_its_limit() {
        let words = |holder, seconds| {
            let at_most = Duration::from_secs(seconds);
            lock_words(&LongWait { resource: "/t/a.lock".into(), holder, at_most })
        };
        assert_eq!(
            words(Holder::Gone, 10),
            "waiting for a lock that no live process holds, at most 10 s (/t/a.lock)"
        );
        assert_eq!(
            words(Holder::Process(Some("process 7 (phalanx)".to_owned())), 25),
            "waiting for a lock held by process 7 (phalanx), at most 25 s (/t/a.lock)"
        );
    }
}
