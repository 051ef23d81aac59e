//! Feeds and drains a child's pipes from one thread until the child ends. Refuses to know what flows.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::time::Duration;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags};

use super::super::clock::Deadline;
use super::super::{proc, ready};
use super::{Output, output_of};

/// What is kept of each stream; the rest is read and thrown away, so that the child can go on.
const KEPT: usize = 16 << 20;
/// Read at most this much of one stream before looking at the other and at the clock. Also the most that a pipe can
/// hold, so that one turn after the child's end gets all that it wrote.
const TURN: u64 = 1 << 20;
/// How often to ask for the child's end where there is no pidfd.
const ASK_EVERY: Duration = Duration::from_millis(5);

pub(super) enum Ended {
    Itself(ExitStatus),
    NotInTime,
}

pub(super) struct Pump<'a> {
    stdin: Option<ChildStdin>,
    input: &'a [u8],
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    out: Vec<u8>,
    err: Vec<u8>,
}

impl<'a> Pump<'a> {
    pub(super) fn new(child: &mut Child, input: &'a [u8]) -> Pump<'a> {
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        Pump { stdin, input, stdout, stderr, out: Vec::new(), err: Vec::new() }
    }

    /// Returns when the child has ended and all that it wrote has been read, or at the deadline.
    pub(super) fn run(&mut self, child: &mut Child, limit: &Deadline) -> io::Result<Ended> {
        self.never_block()?;
        let exit = i32::try_from(child.id()).ok().and_then(|pid| proc::open_pidfd(pid).ok());
        loop {
            let ended = self.turn(child, exit.as_ref(), limit.remaining())?;
            if let Some(status) = ended {
                return Ok(Ended::Itself(status));
            }
            if limit.expired() {
                return Ok(Ended::NotInTime);
            }
        }
    }

    pub(super) fn output(self, status: ExitStatus) -> Output {
        output_of(status, self.out, self.err)
    }

    fn turn(
        &mut self,
        child: &mut Child,
        exit: Option<&OwnedFd>,
        limit: Duration,
    ) -> io::Result<Option<ExitStatus>> {
        let ended = self.wait(exit, if exit.is_some() { limit } else { limit.min(ASK_EVERY) })?;
        // Without a pidfd ask each time. Ask before reading: what it wrote before its end is then in the pipes.
        let status = if ended || exit.is_none() { child.try_wait()? } else { None };
        self.feed()?;
        drain(&mut self.stdout, &mut self.out)?;
        drain(&mut self.stderr, &mut self.err)?;
        Ok(status)
    }

    /// Waits until a pipe or the child's end needs us; true for the end.
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
                // A child that does not read to the end has what it wants.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break,
                Err(error) => return Err(error),
            }
        }
        self.stdin = None;
        Ok(())
    }

    fn never_block(&self) -> io::Result<()> {
        // Only our ends: each end of a pipe has its own flags.
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

fn drain<R: Read>(pipe: &mut Option<R>, kept: &mut Vec<u8>) -> io::Result<()> {
    let Some(reader) = pipe.as_mut() else { return Ok(()) };
    // read_to_end keeps what it got before an error, so that "would block" loses nothing.
    match reader.take(TURN).read_to_end(kept) {
        Ok(count) if (count as u64) < TURN => *pipe = None,
        Ok(_) => (),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
        Err(error) => return Err(error),
    }
    kept.truncate(KEPT);
    Ok(())
}
