//! Signals as streams for async loops: those that ask this process to end, and those of the
//! terminal and of job control. For threads, a queue of blocked signals.

#![expect(unsafe_code, reason = "setting the action of a signal")]

use std::io::{self, PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::thread::JoinHandleExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::pthread::pthread_kill;
use nix::sys::signal::{self, SaFlags, SigAction, SigHandler, SigSet, raise, sigaction};
use nix::unistd::Pid;
use tokio::signal::unix::{self, SignalKind};

use super::ready;

/// Numbers of the signals that phalanx sends or distinguishes.
pub const HUP: i32 = libc::SIGHUP;
pub const INT: i32 = libc::SIGINT;
pub const QUIT: i32 = libc::SIGQUIT;
pub const TERM: i32 = libc::SIGTERM;
pub const WINCH: i32 = libc::SIGWINCH;

/// Makes a write beyond the limit of file sizes (`ulimit -f`) fail with `EFBIG` instead of ending
/// this process. Installs a handler, because programs would inherit an ignored signal.
pub fn survive_file_size_limit() {
    extern "C" fn ignore(_: libc::c_int) {}
    let action = SigAction::new(SigHandler::Handler(ignore), SaFlags::SA_RESTART, SigSet::empty());
    // SAFETY: the handler calls no function and touches no memory.
    let set = unsafe { sigaction(signal::Signal::SIGXFSZ, &action) };
    debug_assert!(set.is_ok(), "SIGXFSZ can be handled: {set:?}");
}

/// A signal that asks this process to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
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
    pub fn exit_code(self) -> i32 {
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
pub struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
}

impl Signals {
    /// Installs the handlers. Must be called inside a tokio runtime with I/O enabled.
    pub fn new() -> io::Result<Signals> {
        Ok(Signals {
            interrupt: unix::signal(SignalKind::interrupt())?,
            terminate: unix::signal(SignalKind::terminate())?,
            hangup: unix::signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal. Cancel safe: dropping the future loses no signal.
    pub async fn recv(&mut self) -> Signal {
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
pub enum TerminalSignal {
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
pub struct TerminalSignals {
    suspend: unix::Signal,
    resume: unix::Signal,
    quit: unix::Signal,
    resize: unix::Signal,
}

impl TerminalSignals {
    /// Installs the handlers. Must be called inside a tokio runtime with I/O enabled.
    pub fn new() -> io::Result<TerminalSignals> {
        let stream = |signal| unix::signal(SignalKind::from_raw(signal));
        Ok(TerminalSignals {
            suspend: stream(libc::SIGTSTP)?,
            resume: stream(libc::SIGCONT)?,
            quit: stream(libc::SIGQUIT)?,
            resize: stream(libc::SIGWINCH)?,
        })
    }

    /// Waits for the next signal. Cancel safe.
    pub async fn recv(&mut self) -> TerminalSignal {
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
pub fn act_by_default(signal: TerminalSignal) -> io::Result<()> {
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

/// Ends the collector of a [`SignalQueue`].
const WAKE: signal::Signal = signal::Signal::SIGURG;

/// Blocked signals that wait in a pipe, in the order of their arrival. A thread collects them,
/// because `signalfd` and `sigtimedwait` do not exist on every system.
#[derive(Debug)]
pub(super) struct SignalQueue {
    arrived: PipeReader,
    closed: Arc<AtomicBool>,
    collector: Option<JoinHandle<()>>,
}

impl SignalQueue {
    /// Blocks the signals of `set` in the calling thread, and in the threads that it starts. Must
    /// be called in the first thread before others exist: a thread that does not block them would
    /// receive them.
    pub(super) fn new(set: &SigSet) -> io::Result<SignalQueue> {
        let mut set = *set;
        set.add(WAKE);
        set.thread_block()?;
        let by_default_ignored = [WAKE, signal::Signal::SIGCHLD, signal::Signal::SIGWINCH];
        for signal in by_default_ignored.into_iter().filter(|signal| set.contains(*signal)) {
            // Systems derived from BSD discard a signal that has no effect, even if it is blocked.
            let handler =
                SigAction::new(SigHandler::Handler(ignore), SaFlags::SA_RESTART, SigSet::empty());
            // SAFETY: the handler calls no function and touches no memory. It also replaces an
            // inherited SIG_IGN, with which the kernel would reap children without notifying this
            // process.
            unsafe { sigaction(signal, &handler) }?;
        }
        let (arrived, writer) = pipe()?;
        let closed = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&closed);
        let collector = thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || collect(&set, &ended, writer))?;
        Ok(SignalQueue { arrived, closed, collector: Some(collector) })
    }

    /// Returns the number of the next signal; `None` if none arrives within `limit`.
    pub(super) fn next(&self, limit: Duration) -> io::Result<Option<i32>> {
        if !ready::readable(self.arrived.as_fd(), limit)? {
            return Ok(None);
        }
        let mut number = [0];
        (&self.arrived).read_exact(&mut number)?;
        Ok(Some(number[0].into()))
    }
}

impl AsFd for SignalQueue {
    /// Readable while a signal waits.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.arrived.as_fd()
    }
}

impl Drop for SignalQueue {
    /// Leaves the signals blocked. Those that nobody has taken become pending again.
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        let Some(collector) = self.collector.take() else { return };
        // A number in std, but a pointer in the C library musl.
        let thread = collector.as_pthread_t() as libc::pthread_t;
        if pthread_kill(thread, WAKE).is_ok() {
            let _ = collector.join();
        }
        while let Ok(Some(number)) = self.next(Duration::ZERO) {
            if let Ok(signal) = signal::Signal::try_from(number) {
                let _ = signal::kill(Pid::this(), signal);
            }
        }
    }
}

extern "C" fn ignore(_: libc::c_int) {}

fn collect(set: &SigSet, closed: &AtomicBool, mut arrived: PipeWriter) {
    loop {
        match set.wait() {
            Ok(WAKE) if closed.load(Ordering::Acquire) => return,
            Ok(WAKE) | Err(Errno::EINTR) => (),
            Ok(signal) => {
                let number = u8::try_from(signal as i32).expect("signal numbers are below 128");
                // Fails only once the queue is dropped.
                if arrived.write_all(&[number]).is_err() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{PATIENCE, helper, run_helper};
    use super::*;

    #[test]
    fn signals_arrive_instead_of_killing() {
        // Runs in a process of its own, because the handlers stay installed.
        run_helper(helper("signal::tests::helper_signals_itself"));
    }

    #[test]
    fn signals_in_the_queue_keep_their_order_and_are_pending_after_it() {
        run_helper(helper("signal::tests::helper_queues_signals"));
    }

    /// Forks, because the signals must be blocked in all threads.
    #[test]
    #[ignore = "helper process of signals_in_the_queue_keep_their_order_and_are_pending_after_it"]
    fn helper_queues_signals() {
        // SAFETY: the harness's only other thread waits for this test and holds no lock.
        match unsafe { libc::fork() } {
            -1 => panic!("no fork: {}", io::Error::last_os_error()),
            0 => {
                let passed = std::panic::catch_unwind(queue_signals).is_ok();
                // SAFETY: ends the copy without running the harness's handlers twice.
                unsafe { libc::_exit(i32::from(!passed)) }
            }
            pid => {
                let status = nix::sys::wait::waitpid(Pid::from_raw(pid), None).expect("our child");
                assert_eq!(status, nix::sys::wait::WaitStatus::Exited(Pid::from_raw(pid), 0));
            }
        }
    }

    fn queue_signals() {
        use nix::sys::signal::Signal::{SIGCHLD, SIGTERM, SIGUSR1, SIGWINCH};
        let set: SigSet = [SIGTERM, SIGUSR1, SIGWINCH, SIGCHLD].into_iter().collect();
        let queue = SignalQueue::new(&set).expect("a queue");
        assert_eq!(queue.next(Duration::ZERO).expect("readable"), None);
        for sent in [SIGWINCH, SIGTERM, SIGCHLD, SIGUSR1] {
            signal::kill(Pid::this(), sent).expect("to ourselves");
            let arrived = queue.next(PATIENCE).expect("readable");
            assert_eq!(arrived, Some(sent as i32));
        }
        signal::kill(Pid::this(), SIGUSR1).expect("to ourselves");
        drop(queue);
        // Not SigSet::wait: a lost signal must fail the test instead of blocking it.
        let again = SignalQueue::new(&set).expect("a queue");
        let arrived = again.next(PATIENCE).expect("readable");
        assert_eq!(arrived, Some(SIGUSR1 as i32));
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
