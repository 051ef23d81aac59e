//! Starts the program on its terminal; where the terminal is ours, keeps what it prints and lets viewers in. Refuses to
//! interpret it.

use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::program::{Problem, refused};
use super::run::{Run, SharedLog};
use crate::backend::pty::{Door, End, Hub, places};
use crate::model::spec::Terminal;
use crate::sys::child::{Exit, Program, PtyMaster, open_pty, spawn_foreground, spawn_on};
use crate::sys::env;
use crate::sys::proc::{self, Process};

/// How much is taken from the terminal at once.
const CHUNK: usize = 64 * 1024;
/// How long viewers may take to be told of the end.
const FAREWELL: Duration = Duration::from_millis(500);

/// The program's terminal while it runs.
pub(super) enum Output {
    /// The one that we stand in, if any.
    Pane,
    /// Ours.
    Own(Own),
}

/// A terminal of ours. Dropping it would hang up on the program.
pub(super) struct Own {
    hub: Arc<Hub>,
    /// None where no socket could be made: the log says why, and the program does without viewers.
    door: Option<Door>,
    ended: Receiver<()>,
}

/// Starts the program.
pub(super) fn start(program: &Program, run: &Run) -> Result<(Process, Output), Problem> {
    match (&run.order.terminal, &run.log) {
        (Terminal::Own { rows, cols, .. }, Some(log)) => {
            let pty = open_pty(*rows, *cols).map_err(|e| Problem::no_terminal(e.to_string()))?;
            let (child, master) = spawn_on(program, pty).map_err(|e| refused(program, &e))?;
            match Own::of(master, (*rows, *cols), log.clone(), run) {
                Ok(own) => Ok((child, Output::Own(own))),
                Err(e) => {
                    proc::end_tree(Process::current(), false, Duration::ZERO);
                    Err(Problem::not_runnable(format!("what it prints cannot be kept: {e}")))
                }
            }
        }
        // Without a terminal our own outputs are the log.
        (Terminal::Own { .. } | Terminal::Pane | Terminal::Once { .. }, _) => {
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
            Output::Own(own) => own.hub.tty_name(),
        }
    }

    /// Where viewers are let in.
    pub(super) fn socket(&self) -> Option<&Path> {
        match self {
            Output::Pane => None,
            Output::Own(own) => own.door.as_ref().map(Door::path),
        }
    }

    /// Waits until all that was printed is kept; not for ever, since anybody may hold the terminal open.
    pub(super) fn wait_end(&self, limit: Duration) {
        match self {
            Output::Pane => (),
            Output::Own(own) => match own.ended.recv_timeout(limit) {
                Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => (),
            },
        }
    }

    /// Tells the viewers how the program ended, and lets no more of them in.
    pub(super) fn farewell(&mut self, exit: Exit) {
        match self {
            Output::Pane => (),
            Output::Own(own) => {
                own.door = None;
                own.hub.end(End { code: exit.code, signal: exit.signal }, FAREWELL);
            }
        }
    }
}

impl Own {
    /// Copies the terminal's output into the log and to the viewers from a thread of its own, whose end is told on the
    /// channel.
    fn of(master: PtyMaster, size: (u16, u16), log: SharedLog, run: &Run) -> io::Result<Own> {
        let mut reader = master.reader()?;
        let hub = Arc::new(Hub::new(master, size));
        let (sender, ended) = channel();
        let shown = hub.clone();
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            copy(&mut reader, |bytes| {
                // What cannot be written is lost: a full disk must not stop the program.
                let _ = log.lock().unwrap_or_else(PoisonError::into_inner).append(bytes);
                shown.feed(bytes);
            });
            // Nobody may be waiting any more.
            let _ = sender.send(());
        })?;
        let runtime_dir = env::var("XDG_RUNTIME_DIR");
        let wish = run.team.socket(&run.incarnation);
        let places = places(wish, runtime_dir.as_deref().map(Path::new), env::effective_uid());
        let door = Door::open(&places, &hub);
        if let Err(problem) = &door {
            run.say(&format!("nobody can attach: {problem}"));
        }
        Ok(Own { hub, door: door.ok(), ended })
    }
}

/// Until the end of the terminal.
fn copy(reader: &mut dyn Read, mut take: impl FnMut(&[u8])) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => take(&buffer[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => (),
            // EIO: nobody has the terminal open any more.
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let interrupted = Err(io::Error::from(ErrorKind::Interrupted));
        let script = vec![
            Ok(&b"one "[..]),
            interrupted,
            Ok(b"\xfftwo"),
            Err(io::Error::from_raw_os_error(5)),
        ];
        let mut kept = Vec::new();
        copy(&mut Script(script), |bytes| kept.extend_from_slice(bytes));
        assert_eq!(kept, b"one \xfftwo");
    }
}
