//! Feeds and drains a child's pipes from one thread until the child ends.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags};

use super::super::clock::Deadline;
use super::super::{proc, ready};
use super::cancel::CancelToken;
use super::command::{ExecLimits, ExecOutput};

/// Bytes kept of each stream without a limit. The rest is read and discarded, so that the child does
/// not block.
const MAX_STREAM_BYTES: usize = 16 << 20;
/// Bytes read from one stream before the other stream and the clock are checked again. A pipe
/// cannot hold more, so one turn after the child's end reads everything that it wrote.
const TURN: u64 = 1 << 20;
/// Polling interval for the child's end on systems that give no notice of it.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Polling interval for the cancellation by another thread.
const CANCEL_INTERVAL: Duration = Duration::from_millis(50);

/// Outcome of [`Pump::run`].
pub(super) enum PumpResult {
    /// The child ended before the deadline.
    Exited(ExitStatus),
    /// The deadline passed first.
    TimedOut,
    /// Another thread cancelled the run.
    Cancelled,
    /// A stream has more bytes than the limit.
    TooMuchOutput { limit: usize },
}

/// The parent's ends of a child's pipes, and the output read so far.
pub(super) struct Pump<'a> {
    stdin: Option<ChildStdin>,
    input: &'a [u8],
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out: Vec<u8>,
    err: Vec<u8>,
    deadline: Deadline,
    largest: Option<usize>,
    cancel: Option<&'a CancelToken>,
}

impl<'a> Pump<'a> {
    pub(super) fn new(child: &mut Child, input: &'a [u8], limits: &'a ExecLimits) -> Pump<'a> {
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Pump {
            stdin,
            input,
            stdout,
            stderr,
            out: Vec::new(),
            err: Vec::new(),
            deadline: Deadline::after(limits.deadline),
            largest: limits.output,
            cancel: limits.cancel.as_ref(),
        }
    }

    /// Returns once the child has ended and everything that it wrote has been read, or at a limit.
    pub(super) fn run(&mut self, child: &mut Child) -> io::Result<PumpResult> {
        self.never_block()?;
        let exit = i32::try_from(child.id()).ok().and_then(proc::exit_notice);
        loop {
            let ended = self.turn(child, exit.as_ref())?;
            if let Some(limit) = self.largest
                && self.out.len().max(self.err.len()) > limit
            {
                return Ok(PumpResult::TooMuchOutput { limit });
            }
            if let Some(status) = ended {
                return Ok(PumpResult::Exited(status));
            }
            if self.cancel.is_some_and(CancelToken::is_cancelled) {
                return Ok(PumpResult::Cancelled);
            }
            if self.deadline.expired() {
                return Ok(PumpResult::TimedOut);
            }
        }
    }

    pub(super) fn output(self, status: ExitStatus) -> ExecOutput {
        ExecOutput::new(status, self.out, self.err)
    }

    fn turn(
        &mut self,
        child: &mut Child,
        exit: Option<&OwnedFd>,
    ) -> io::Result<Option<ExitStatus>> {
        let mut limit = self.deadline.remaining();
        if self.cancel.is_some() {
            limit = limit.min(CANCEL_INTERVAL);
        }
        if exit.is_none() {
            limit = limit.min(POLL_INTERVAL);
        }
        let ended = self.wait(exit, limit)?;
        // Without a notice, every turn polls the status. It is taken before the pipes are read, so
        // that they hold everything that the child wrote before its end.
        let status = if ended || exit.is_none() { child.try_wait()? } else { None };
        self.feed()?;
        // One byte beyond the limit shows that it is exceeded.
        let kept = self.largest.map_or(MAX_STREAM_BYTES, |largest| largest.saturating_add(1));
        drain(&mut self.stdout, &mut self.out, kept)?;
        drain(&mut self.stderr, &mut self.err, kept)?;
        Ok(status)
    }

    /// Waits until a pipe is ready or the child has ended. Returns true if the child has ended.
    fn wait(&self, exit: Option<&OwnedFd>, limit: Duration) -> io::Result<bool> {
        let mut fds = Vec::with_capacity(4);
        fds.extend(exit.map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        fds.extend(self.stdin.as_ref().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLOUT)));
        fds.extend(self.stdout.as_ref().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        fds.extend(self.stderr.as_ref().map(|fd| PollFd::new(fd.as_fd(), PollFlags::POLLIN)));
        ready::any(&mut fds, limit)?;
        let first = fds.first().and_then(PollFd::any).unwrap_or(false);
        Ok(exit.is_some() && first)
    }

    fn feed(&mut self) -> io::Result<()> {
        let Some(pipe) = self.stdin.as_mut() else { return Ok(()) };
        while !self.input.is_empty() {
            match pipe.write(self.input) {
                Ok(count) => self.input = &self.input[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                // The child closed its input without reading all of it, which is not an error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        self.stdin = None;
        Ok(())
    }

    fn never_block(&self) -> io::Result<()> {
        // The child's ends keep blocking: each end of a pipe has its own flags.
        let ends = [
            self.stdin.as_ref().map(AsFd::as_fd),
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
        ];
        ends.into_iter().flatten().try_for_each(|end| {
            fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            Ok(())
        })
    }
}

fn drain<R: Read>(pipe: &mut Option<R>, kept: &mut Vec<u8>, most: usize) -> io::Result<()> {
    let Some(reader) = pipe.as_mut() else { return Ok(()) };
    // read_to_end keeps the bytes that precede an error, so nothing is lost on `WouldBlock`.
    match reader.take(TURN).read_to_end(kept) {
        Ok(count) if (count as u64) < TURN => *pipe = None,
        Ok(_) => (),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
        Err(error) => return Err(error),
    }
    kept.truncate(most);
    Ok(())
}
