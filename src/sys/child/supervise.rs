//! The loop of a launcher: waits for signals, forwards them and reaps children until its one child
//! has ended.

#![expect(unsafe_code, reason = "waitpid with statuses that nix cannot express")]

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{self, Pid};

use super::super::clock::Deadline;
use super::super::exec::{ExecError, start_fresh};
use super::super::proc::{self, Process};
use super::super::signal::SignalQueue;
use super::program::Program;
use super::terminal::ControllingTerminal;

/// Maximum delay by a lost SIGCHLD, which should not occur.
const SWEEP: Duration = Duration::from_secs(60);
/// Minimum interval between two continuations of a child that is stopped repeatedly.
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

/// Response to a signal that the launcher received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// Send it to the child's process group. HUP and TERM also start the timeout `kill_after`.
    Pass,
    /// Ignore it.
    Swallow,
}

/// Exit status or terminating signal of a child. Both are `None` if it is unknown, because another
/// thread has reaped the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildExit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

/// Work for the thread of [`Supervisor::supervise`].
pub(crate) type LoopJob = Box<dyn FnOnce() + Send>;

/// The threads that wait for children of the loop, by pid.
type AwaitedExits = Arc<Mutex<BTreeMap<i32, Sender<ExitStatus>>>>;

/// Passes work of other threads to the thread of [`Supervisor::supervise`], which reaps every child
/// and is therefore the only one that may start some.
#[derive(Debug, Clone)]
pub struct LoopHandle {
    jobs: Sender<LoopJob>,
    waiting: AwaitedExits,
}

/// The work that handles have passed on.
#[derive(Debug)]
pub struct LoopQueue {
    jobs: Receiver<LoopJob>,
    waiting: AwaitedExits,
}

impl LoopQueue {
    fn run_jobs(&self) {
        self.jobs.try_iter().for_each(|job| job());
    }

    /// Passes on the end of a child other than the main one.
    fn tell(&self, pid: i32, status: ExitStatus) {
        if let Some(waiting) = locked(&self.waiting).remove(&pid) {
            // The receiver may have been dropped.
            let _ = waiting.send(status);
        }
    }
}

impl Drop for LoopQueue {
    /// Ends the waits: from here on no child is reaped.
    fn drop(&mut self) {
        locked(&self.waiting).clear();
    }
}

fn locked(waiting: &AwaitedExits) -> MutexGuard<'_, BTreeMap<i32, Sender<ExitStatus>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The end of a program that a thread had run in the loop.
#[derive(Debug)]
pub enum LoopExit {
    Ended(ChildExit),
    /// It did not end in time, and it and what it started was killed.
    TimedOut,
    NotStarted(ExecError),
    /// The main child has ended.
    LoopEnded,
}

impl LoopHandle {
    /// Creates a handle and the queue for [`Supervisor::supervise`].
    pub fn new() -> (LoopHandle, LoopQueue) {
        let (jobs, queue) = channel();
        let waiting = AwaitedExits::default();
        let handle = LoopHandle { jobs, waiting: waiting.clone() };
        (handle, LoopQueue { jobs: queue, waiting })
    }

    /// Runs a program without input and output in a process group of its own. The loop goes on
    /// meanwhile.
    pub fn run_program(&self, program: Program, limit: Duration) -> LoopExit {
        let (sender, end) = channel();
        let waiting = self.waiting.clone();
        let started = self.run(move || {
            let mut command = program.command();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            start_fresh(&mut command, || Ok(unistd::setpgid(Pid::from_raw(0), Pid::from_raw(0))?));
            let child = command.spawn().map_err(|source| program.failure(source))?;
            let process = program.started(&child)?;
            // Before the loop, which runs this job, can reap it.
            locked(&waiting).insert(process.pid, sender);
            Ok(process)
        });
        let process = match started {
            Some(Ok(process)) => process,
            Some(Err(error)) => return LoopExit::NotStarted(error),
            None => return LoopExit::LoopEnded,
        };
        match end.recv_timeout(limit) {
            Ok(status) => {
                LoopExit::Ended(ChildExit { code: status.code(), signal: status.signal() })
            }
            Err(RecvTimeoutError::Timeout) => {
                locked(&self.waiting).remove(&process.pid);
                proc::end_tree(process, true, Duration::ZERO);
                LoopExit::TimedOut
            }
            Err(RecvTimeoutError::Disconnected) => LoopExit::LoopEnded,
        }
    }

    /// Runs `work` in the loop and returns its result; `None` if the queue was dropped.
    pub fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let (sender, result) = channel();
        // Fails only if the receiver below was dropped by a panic.
        let job = move || drop(sender.send(work()));
        self.jobs.send(Box::new(job)).ok()?;
        // Wakes the loop, which takes it for the end of a child.
        kill(Pid::this(), Signal::SIGCHLD).ok()?;
        result.recv().ok()
    }
}

/// Receives the signals of a launcher, and supervises its child.
#[derive(Debug)]
pub struct Supervisor {
    signals: SignalQueue,
}

impl Supervisor {
    /// Blocks the signals that [`Supervisor::supervise`] waits for. Must be called in the first
    /// thread before others exist: a thread that does not block them would receive them, and most
    /// of them would end the process.
    ///
    /// # Errors
    /// The error of the system, if it has no more threads or descriptors.
    pub fn new() -> io::Result<Supervisor> {
        Ok(Supervisor { signals: SignalQueue::new(&WAITED_FOR.into_iter().collect())? })
    }

    /// Returns the next signal sent to this process; `None` if none arrives within `limit`.
    pub fn next_signal(&self, limit: Duration) -> Option<i32> {
        self.signals.next(limit).ok().flatten()
    }

    /// Waits until `child`, an unreaped child of this process, has ended. Reaps every other child
    /// of this process as well, such as adopted orphans, so no other thread may start children.
    /// Calls `on_signal` for every signal except SIGCHLD and the signals that stop a job, and runs
    /// the jobs of `queue`. If the child is still running `kill_after` after a forwarded HUP or
    /// TERM, its tree is killed.
    pub fn supervise(
        &self,
        child: Process,
        on_signal: &mut dyn FnMut(i32) -> Forward,
        queue: &LoopQueue,
        kill_after: Duration,
    ) -> ChildExit {
        let mut watch =
            ChildWatch { child, kill_after, kill_at: None, resume_at: None, resumed: None };
        loop {
            if let Some(exit) = watch.reap(queue) {
                take_terminal_back(child);
                return exit;
            }
            let waits = [watch.kill_at, watch.resume_at].into_iter().flatten();
            let limit = waits.map(|deadline| deadline.remaining()).fold(SWEEP, Duration::min);
            match self.next_signal(limit) {
                // The loop reaps. Stop signals have no effect: without a shell, nothing would
                // continue this process.
                Some(libc::SIGCHLD | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => (),
                Some(sig) => match on_signal(sig) {
                    Forward::Pass => watch.pass(sig),
                    Forward::Swallow => (),
                },
                None => (),
            }
            watch.keep_deadlines();
            queue.run_jobs();
        }
    }
}

struct ChildWatch {
    child: Process,
    kill_after: Duration,
    kill_at: Option<Deadline>,
    resume_at: Option<Deadline>,
    /// Set at the last continuation; expires when the next one is allowed.
    resumed: Option<Deadline>,
}

impl ChildWatch {
    fn pass(&mut self, sig: i32) {
        let Ok(signal) = Signal::try_from(sig) else { return };
        // The child has not been reaped, so its pid and group id cannot have been reused. It may
        // have left its group.
        if killpg(Pid::from_raw(self.child.pid), signal).is_err() {
            proc::signal(self.child, sig);
        }
        // Interactive shells ignore TERM, and without HUP only the later KILL would end them.
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

    /// Reaps all children that have ended, and returns the exit of the main child.
    fn reap(&mut self, queue: &LoopQueue) -> Option<ChildExit> {
        let mut exit = None;
        loop {
            match next_status() {
                Ok(Some((pid, status))) if pid == self.child.pid => match status.stopped_signal() {
                    Some(_) => self.resume_at = Some(self.next_resume()),
                    None => exit = Some(ChildExit { code: status.code(), signal: status.signal() }),
                },
                // A program of another thread, or an adopted orphan.
                Ok(Some((pid, status))) => {
                    if status.stopped_signal().is_none() {
                        queue.tell(pid, status);
                    }
                }
                Ok(None) => return exit,
                Err(Errno::EINTR) => (),
                // No children are left: another thread has reaped the main child.
                Err(_) => return exit.or(Some(ChildExit { code: None, signal: None })),
            }
        }
    }

    fn next_resume(&self) -> Deadline {
        Deadline::after(self.resumed.map_or(Duration::ZERO, |resumed| resumed.remaining()))
    }
}

/// Returns the status of one child that has ended or stopped; `None` if there is none.
fn next_status() -> Result<Option<(i32, ExitStatus)>, Errno> {
    let mut status = 0;
    // SAFETY: status is a valid place for the result.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
    let pid = Errno::result(pid)?;
    Ok((pid > 0).then(|| (pid, ExitStatus::from_raw(status))))
}

/// Continues a child that was stopped by Ctrl-Z, or because it read a terminal that it had lost.
fn resume(child: Process) {
    let group = Pid::from_raw(child.pid);
    if let Some(terminal) =
        ControllingTerminal::open().filter(|terminal| terminal.is_ours() || terminal.is_abandoned())
    {
        let _: io::Result<()> = terminal.give_to(group);
    }
    let _ = killpg(group, Signal::SIGCONT);
}

/// Takes the foreground back from the ended child, as a shell does, so that the launcher can read
/// its terminal.
fn take_terminal_back(child: Process) {
    let lent =
        |terminal: &ControllingTerminal| terminal.foreground() == Some(Pid::from_raw(child.pid));
    if let Some(terminal) = ControllingTerminal::open().filter(lent) {
        let _: io::Result<()> = terminal.give_to(unistd::getpgrp());
    }
}
