//! The launcher's loop: wait for signals, pass them on, reap, until the one child has ended. Refuses to know what
//! the signals mean to the child.

#![expect(unsafe_code, reason = "sigtimedwait, and waitpid with statuses that nix cannot express")]

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, Signal, killpg, signal};
use nix::unistd::{self, Pid};

use super::super::clock::Deadline;
use super::super::proc::{self, Process};
use super::terminal::Terminal;

/// A lost SIGCHLD, which should not happen, costs at most this much.
const SWEEP: Duration = Duration::from_secs(60);
/// A child that is stopped again and again is continued no more often than this.
const RESUME_EVERY: Duration = Duration::from_secs(1);

const WAITED_FOR: [Signal; 12] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGCHLD,
    Signal::SIGWINCH,
    Signal::SIGCONT,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
];

/// What to do about a signal that reached the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forward {
    /// Send it on to the child's process group; HUP and TERM also start the child's last `kill_after`.
    Pass,
    /// Do nothing.
    Swallow,
}

/// How the child ended. Neither is there only when another thread took its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
}

/// The process-wide preparation for [`supervise()`].
#[derive(Debug)]
pub(crate) struct Supervisor;

impl Supervisor {
    /// Blocks the signals that [`supervise()`] waits for. Call it in the first thread before there are others: a thread
    /// that has them unblocked would take them, and mostly die of it.
    pub(crate) fn block_signals() {
        waited_for().thread_block().expect("pthread_sigmask fails only for an invalid operation");
        // An inherited "ignore" would make the kernel reap our children without telling us.
        // SAFETY: no handler function is involved.
        let reset = unsafe { signal(Signal::SIGCHLD, SigHandler::SigDfl) };
        reset.expect("sigaction fails only for an invalid signal");
    }

    /// The next signal that has come for this process, for when there is no child to [`supervise()`]; `None`: none came
    /// within `limit`.
    pub(crate) fn next_signal(limit: Duration) -> Option<i32> {
        next_signal(&waited_for(), limit)
    }
}

/// Stays with `child` (ours, not waited for yet) until it has ended. Reaps whatever else becomes our child meanwhile,
/// so no other thread may run children of its own. `on_signal` gets every signal but the job-control ones.
/// `kill_after` past a HUP or TERM that was passed on, the child's tree is killed.
pub(crate) fn supervise(
    child: Process,
    on_signal: &mut dyn FnMut(i32) -> Forward,
    kill_after: Duration,
) -> Exit {
    let mut watch = Watch { child, kill_after, kill_at: None, resume_at: None, resumed: None };
    let set = waited_for();
    loop {
        if let Some(exit) = watch.reap() {
            take_terminal_back(child);
            return exit;
        }
        let waits = [watch.kill_at, watch.resume_at].into_iter().flatten();
        let limit = waits.map(|deadline| deadline.remaining()).fold(SWEEP, Duration::min);
        match next_signal(&set, limit) {
            // The loop reaps. A stop is not for us: with no shell around nobody would continue us.
            Some(libc::SIGCHLD | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => (),
            Some(sig) => match on_signal(sig) {
                Forward::Pass => watch.pass(sig),
                Forward::Swallow => (),
            },
            None => (),
        }
        watch.keep_deadlines();
    }
}

struct Watch {
    child: Process,
    kill_after: Duration,
    kill_at: Option<Deadline>,
    resume_at: Option<Deadline>,
    /// Runs from the last time that we continued the child.
    resumed: Option<Deadline>,
}

impl Watch {
    fn pass(&mut self, sig: i32) {
        let Ok(signal) = Signal::try_from(sig) else { return };
        // Not waited for yet, so its number and its group's cannot be another's. It may have left its group.
        if killpg(Pid::from_raw(self.child.pid), signal).is_err() {
            proc::signal(self.child, sig);
        }
        // Interactive shells ignore TERM and would only die of the KILL that follows.
        if signal == Signal::SIGTERM && proc::ignores(self.child.pid, sig) {
            self.pass(Signal::SIGHUP as i32);
        }
        if matches!(signal, Signal::SIGHUP | Signal::SIGTERM) && self.kill_at.is_none() {
            self.kill_at = Some(Deadline::after(self.kill_after));
        }
    }

    fn keep_deadlines(&mut self) {
        if self.kill_at.is_some_and(|deadline| deadline.expired()) {
            self.kill_at = None;
            proc::end_tree(self.child, true, Duration::ZERO);
        }
        if self.resume_at.is_some_and(|deadline| deadline.expired()) {
            self.resume_at = None;
            self.resumed = Some(Deadline::after(RESUME_EVERY));
            resume(self.child);
        }
    }

    /// Takes the status of every child that has one; the main child's is the result.
    fn reap(&mut self) -> Option<Exit> {
        let mut exit = None;
        loop {
            match next_status() {
                Ok(Some((pid, status))) if pid == self.child.pid => match status.stopped_signal() {
                    Some(_) => self.resume_at = Some(self.next_resume()),
                    None => exit = Some(Exit { code: status.code(), signal: status.signal() }),
                },
                // An orphan that we adopted.
                Ok(Some(_)) => (),
                Ok(None) => return exit,
                Err(Errno::EINTR) => (),
                // No children at all: somebody else has waited for ours.
                Err(_) => return exit.or(Some(Exit { code: None, signal: None })),
            }
        }
    }

    fn next_resume(&self) -> Deadline {
        Deadline::after(self.resumed.map_or(Duration::ZERO, |resumed| resumed.remaining()))
    }
}

fn waited_for() -> SigSet {
    WAITED_FOR.into_iter().collect()
}

/// The next pending signal of the set; `None` when there was none within `limit`.
fn next_signal(set: &SigSet, limit: Duration) -> Option<i32> {
    let seconds = libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX);
    let timeout = libc::timespec { tv_sec: seconds, tv_nsec: limit.subsec_nanos().into() };
    // SAFETY: set and timeout outlive the call, and a null info is allowed.
    let sig = unsafe { libc::sigtimedwait(set.as_ref(), std::ptr::null_mut(), &raw const timeout) };
    (sig > 0).then_some(sig)
}

/// One child that has ended or stopped; `None` when none has.
fn next_status() -> Result<Option<(i32, ExitStatus)>, Errno> {
    let mut status = 0;
    // SAFETY: status is a valid place for the result.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
    let pid = Errno::result(pid)?;
    Ok((pid > 0).then(|| (pid, ExitStatus::from_raw(status))))
}

/// Continues a child that was stopped (Ctrl-Z, or reading a terminal that it had lost).
fn resume(child: Process) {
    let group = Pid::from_raw(child.pid);
    if let Some(terminal) =
        Terminal::open().filter(|terminal| terminal.is_ours() || terminal.is_abandoned())
    {
        let _: io::Result<()> = terminal.give_to(group);
    }
    let _ = killpg(group, Signal::SIGCONT);
}

/// Lets the launcher read its terminal again after the child, as a shell does.
fn take_terminal_back(child: Process) {
    let lent = |terminal: &Terminal| terminal.foreground() == Some(Pid::from_raw(child.pid));
    if let Some(terminal) = Terminal::open().filter(lent) {
        let _: io::Result<()> = terminal.give_to(unistd::getpgrp());
    }
}
