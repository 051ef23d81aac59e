//! Signals as streams for async loops: those that ask this process to end, and those of the
//! terminal and of job control.

#![expect(unsafe_code, reason = "putting back the default action of a signal")]

use std::io;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, raise, sigaction};
use tokio::signal::unix::{self, SignalKind};

/// Numbers of the signals that phalanx sends or distinguishes.
pub(crate) const HUP: i32 = libc::SIGHUP;
pub(crate) const INT: i32 = libc::SIGINT;
pub(crate) const QUIT: i32 = libc::SIGQUIT;
pub(crate) const TERM: i32 = libc::SIGTERM;
pub(crate) const WINCH: i32 = libc::SIGWINCH;

/// A signal that asks this process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// `SIGINT`, as by Ctrl-C.
    Interrupt,
    /// `SIGTERM`: an orderly shutdown is requested.
    Terminate,
    /// `SIGHUP`: the terminal was closed.
    Hangup,
    /// `SIGQUIT`, as by Ctrl-\. A raw terminal receives it; [`Signals`] does not.
    Quit,
}

impl Signal {
    /// Returns the exit status that shells report for a process ended by this signal.
    pub(crate) fn exit_code(self) -> i32 {
        match self {
            Signal::Hangup => 129,
            Signal::Interrupt => 130,
            Signal::Quit => 131,
            Signal::Terminate => 143,
        }
    }
}

/// Receiver of `SIGINT`, `SIGTERM` and `SIGHUP`. From its creation on, they no longer end the
/// process; [`Signals::recv`] returns them instead.
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

    /// Waits for the next signal. Cancel safe: dropping the future loses no signal.
    pub(crate) async fn recv(&mut self) -> Signal {
        // A stream ends only with its runtime, and this future ends with it too.
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hangup.recv() => Signal::Hangup,
        }
    }
}

/// A signal of the terminal or of job control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalSignal {
    /// Ctrl-Z.
    Suspend,
    /// `SIGCONT`: the job was continued.
    Continue,
    /// Ctrl-\.
    Quit,
    /// The terminal was resized.
    Resize,
}

/// Receiver of the signals in [`TerminalSignal`]. From its creation on, Ctrl-Z and Ctrl-\ have no
/// effect until [`act_by_default`] applies their default action.
#[derive(Debug)]
pub(crate) struct TerminalSignals {
    suspend: unix::Signal,
    resume: unix::Signal,
    quit: unix::Signal,
    resize: unix::Signal,
}

impl TerminalSignals {
    /// Installs the handlers. Must be called inside a tokio runtime with I/O enabled.
    pub(crate) fn new() -> io::Result<TerminalSignals> {
        let stream = |signal| unix::signal(SignalKind::from_raw(signal));
        Ok(TerminalSignals {
            suspend: stream(libc::SIGTSTP)?,
            resume: stream(libc::SIGCONT)?,
            quit: stream(libc::SIGQUIT)?,
            resize: stream(libc::SIGWINCH)?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub(crate) async fn recv(&mut self) -> TerminalSignal {
        tokio::select! {
            _ = self.suspend.recv() => TerminalSignal::Suspend,
            _ = self.resume.recv() => TerminalSignal::Continue,
            _ = self.quit.recv() => TerminalSignal::Quit,
            _ = self.resize.recv() => TerminalSignal::Resize,
        }
    }
}

/// Applies a signal's default action, which stops or ends this process. Returns once the process is
/// continued; at once for `Continue` and `Resize`, which have no such action.
pub(crate) fn act_by_default(signal: TerminalSignal) -> io::Result<()> {
    let signal = match signal {
        TerminalSignal::Suspend => nix::sys::signal::Signal::SIGTSTP,
        TerminalSignal::Quit => nix::sys::signal::Signal::SIGQUIT,
        TerminalSignal::Continue | TerminalSignal::Resize => return Ok(()),
    };
    let default = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler function is involved.
    let handler = unsafe { sigaction(signal, &default) }?;
    raise(signal)?;
    // SAFETY: restores the handler that was installed before.
    unsafe { sigaction(signal, &handler) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PATIENCE, helper, run_helper};
    use super::*;

    #[test]
    fn signals_arrive_instead_of_killing() {
        // Runs in a process of its own, because the handlers stay installed.
        run_helper(helper("sys::signal::tests::helper_signals_itself"));
    }

    #[test]
    #[ignore = "helper process of signals_arrive_instead_of_killing"]
    fn helper_signals_itself() {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let arrived = runtime.block_on(async {
            let mut signals = Signals::new().expect("handlers can be installed");
            let mut arrived = Vec::new();
            for sig in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
                let sent =
                    nix::sys::signal::Signal::try_from(sig).and_then(nix::sys::signal::raise);
                sent.expect("to ourselves");
                let next = tokio::time::timeout(PATIENCE, signals.recv());
                arrived.push(next.await.expect("it arrives"));
            }
            arrived
        });
        assert_eq!(arrived, [Signal::Interrupt, Signal::Terminate, Signal::Hangup]);
    }
}
