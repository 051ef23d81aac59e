//! The signals that ask this process to end, as a stream for async loops, and signal names for people. Refuses to
//! decide what to do about them.

use std::io;

use tokio::signal::unix::{self, SignalKind};

/// Numbers of the signals that are sent, or told apart when they come.
pub(crate) const HUP: i32 = libc::SIGHUP;
pub(crate) const INT: i32 = libc::SIGINT;
pub(crate) const QUIT: i32 = libc::SIGQUIT;
pub(crate) const TERM: i32 = libc::SIGTERM;
pub(crate) const WINCH: i32 = libc::SIGWINCH;

/// What somebody wants of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// An orderly end.
    Terminate,
    /// The terminal is gone.
    Hangup,
}

impl Signal {
    /// What shells give for a process that this signal ended.
    pub(crate) fn exit_code(self) -> i32 {
        match self {
            Signal::Hangup => 129,
            Signal::Interrupt => 130,
            Signal::Terminate => 143,
        }
    }
}

/// From its creation on these signals no longer end the process; they come out of [`Signals::recv`].
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
}

impl Signals {
    /// Installs the handlers. Must be called inside a tokio runtime with I/O enabled.
    pub(crate) fn new() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: unix::signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next one. Cancel safe: nothing is lost when the future is dropped.
    pub(crate) async fn recv(&mut self) -> Signal {
        // A stream ends only with its runtime, which would take this future along.
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hangup.recv() => Signal::Hangup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PATIENCE, helper, run_helper};
    use super::*;

    #[test]
    fn signals_arrive_instead_of_killing() {
        // In a process of its own: the handlers stay installed for good.
        run_helper(helper("sys::signal::tests::helper_signals_itself"));
    }

    #[test]
    #[ignore = "helper process of signals_arrive_instead_of_killing"]
    fn helper_signals_itself() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let arrived = runtime.block_on(async {
            let mut signals = Signals::new().expect("handlers can be installed");
            let mut arrived = Vec::new();
            for sig in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                let sent = nix::sys::signal::Signal::try_from(sig).and_then(nix::sys::signal::raise);
                sent.expect("to ourselves");
                let next = tokio::time::timeout(PATIENCE, signals.recv());
                arrived.push(next.await.expect("it arrives"));
            }
            arrived
        });
        assert_eq!(arrived, [Signal::Interrupt, Signal::Terminate, Signal::Hangup]);
    }
}
