//! Starts the program on its terminal, and keeps what it prints where the terminal is ours. Refuses to interpret it.

use std::io::{self, ErrorKind, Read};
use std::sync::PoisonError;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use super::program::{Problem, refused};
use super::run::{Run, SharedLog};
use crate::model::spec::Terminal;
use crate::sys::child::{Program, PtyMaster, spawn_foreground, spawn_on_pty};
use crate::sys::env;
use crate::sys::proc::{self, Process};

/// How much is taken from the terminal at once.
const CHUNK: usize = 64 * 1024;

/// The program's terminal while it runs.
pub(super) enum Output {
    /// The one that we stand in.
    Pane,
    /// Ours. Dropping `master` would hang up on the program.
    Own { master: PtyMaster, ended: Receiver<()> },
}

/// Starts the program.
pub(super) fn start(program: &Program, run: &Run) -> Result<(Process, Output), Problem> {
    match (&run.order.terminal, &run.log) {
        (Terminal::Own { rows, cols, .. }, Some(log)) => {
            let (child, master) = spawn_on_pty(program, *rows, *cols).map_err(|e| refused(program, &e))?;
            match keep(&master, log.clone()) {
                Ok(ended) => Ok((child, Output::Own { master, ended })),
                Err(e) => {
                    proc::end_tree(Process::current(), false, Duration::ZERO);
                    Err(Problem::not_runnable(format!("what it prints cannot be kept: {e}")))
                }
            }
        }
        (Terminal::Own { .. } | Terminal::Pane, _) => {
            let child = spawn_foreground(program).map_err(|e| refused(program, &e))?;
            Ok((child, Output::Pane))
        }
    }
}

impl Output {
    /// The name of the program's terminal.
    pub(super) fn tty_name(&self) -> Option<String> {
        match self {
            Output::Pane => env::tty_name(),
            Output::Own { master, .. } => master.tty_name(),
        }
    }

    /// Waits until all that was printed is kept; not for ever, since anybody may hold the terminal open.
    pub(super) fn wait_end(&self, limit: Duration) {
        match self {
            Output::Pane => (),
            Output::Own { ended, .. } => match ended.recv_timeout(limit) {
                Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => (),
            },
        }
    }
}

/// Copies the terminal's output into the log from a thread of its own, whose end is told on the channel.
fn keep(master: &PtyMaster, log: SharedLog) -> io::Result<Receiver<()>> {
    let mut reader = master.reader()?;
    let (sender, ended) = channel();
    thread::Builder::new().name("output".to_owned()).spawn(move || {
        copy(&mut reader, &log);
        // Nobody may be waiting any more.
        let _ = sender.send(());
    })?;
    Ok(ended)
}

/// Until the end of the terminal. What cannot be written is lost: a full disk must not stop the program.
fn copy(reader: &mut dyn Read, log: &SharedLog) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = log.append(&buffer[..count]);
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => (),
            // EIO: nobody has the terminal open any more.
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::fs::{Log, read};
    use std::sync::{Arc, Mutex};

    /// Gives a word, an interruption, a word, and then the error of a closed terminal.
    struct Script(Vec<io::Result<&'static [u8]>>);

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.remove(0)?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    #[test]
    fn everything_up_to_a_closed_terminal_is_kept() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("a.log");
        let log = Arc::new(Mutex::new(Log::fresh(&path, 100).expect("writable")));
        let interrupted = Err(io::Error::from(ErrorKind::Interrupted));
        let script = vec![Ok(&b"one "[..]), interrupted, Ok(b"\xfftwo"), Err(io::Error::other("EIO"))];
        copy(&mut Script(script), &log);
        assert_eq!(read(&path, 100).expect("readable").as_deref(), Some(&b"one \xfftwo"[..]));
    }
}
