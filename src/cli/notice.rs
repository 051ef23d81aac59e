//! Notices on stderr about a wait, after two seconds and whenever the text changes.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::out::Out;
use sys::lock::{Holder, LongWait};

/// Minimum duration of a wait that is reported.
const DELAY: Duration = Duration::from_secs(2);
/// Interval at which the text is computed again.
const REPEAT: Duration = Duration::from_secs(3);

/// Watches a wait until it is dropped.
pub(super) struct WaitNotice {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl WaitNotice {
    /// Starts to watch a wait. `text` returns the notice, as `waiting for …, at most 10 s`, or
    /// `None` while there is nothing to report.
    pub(super) fn start(
        out: &Out,
        mut text: impl FnMut() -> Option<String> + Send + 'static,
    ) -> WaitNotice {
        let (stop, stopped) = channel::<()>();
        let out = out.clone();
        // Without the thread the wait only goes unreported.
        let thread = thread::Builder::new().name("notice".to_owned()).spawn(move || {
            let (mut pause, mut printed) = (DELAY, None);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = REPEAT;
                let now = text();
                if now.is_some() && now != printed {
                    out.print_notice(now.as_deref().unwrap_or_default());
                    printed = now;
                }
            }
        });
        WaitNotice { stop: Some(stop), thread: thread.ok() }
    }

    /// As [`WaitNotice::start`], for a text that does not change.
    pub(super) fn fixed(out: &Out, text: String) -> WaitNotice {
        WaitNotice::start(out, move || Some(text.clone()))
    }
}

impl Drop for WaitNotice {
    /// Joins the thread, so that no notice appears after the following output.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

pub(super) fn lock_wait_text(wait: &LongWait) -> String {
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
    fn lock_notice_names_the_holder_and_the_limit() {
        let words = |holder, seconds| {
            let at_most = Duration::from_secs(seconds);
            lock_wait_text(&LongWait { resource: "/t/a.lock".into(), holder, at_most })
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
