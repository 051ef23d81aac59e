//! Starts the program on its terminal. On a pty of our own it logs the output, serves it to
//! viewers, and types the answers to the queries in it.

use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel, sync_channel};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use super::last_output::LastOutput;
use super::program::{LaunchProblem, exec_problem};
use super::run::{LauncherRun, SharedLog};
use backend::pty::{AttachServer, Broadcaster, places};
use model::causes::error_chain;
use model::members::spec::Terminal;
use sys::child::{ChildExit, Program, PtyMaster, open_pty, spawn_foreground, spawn_on};
use sys::env;
use sys::proc::{self, Process};

/// Maximum number of bytes per read from the terminal.
const CHUNK: usize = 64 * 1024;
/// Maximum number of reads whose answers wait until the program reads its input.
const WAITING_ANSWERS: usize = 16;
/// Time allowed for sending the exit status to viewers.
const EXIT_SEND: Duration = Duration::from_millis(500);

/// The terminal of the running program.
pub(super) enum ProgramOutput {
    /// The terminal the launcher itself runs in, if any.
    Pane,
    /// A pty of our own.
    Own(OwnPty),
}

/// A pty of our own. Dropping it hangs up on the program.
pub(super) struct OwnPty {
    broadcaster: Arc<Broadcaster>,
    /// None if no socket could be created: the log holds the reason, and the program runs without
    /// viewers.
    server: Option<AttachServer>,
    /// Receives one message after the last output was copied.
    ended: Receiver<()>,
}

/// Starts the program.
///
/// # Errors
///
/// No pty could be opened, the program could not be executed, or its output cannot be logged.
pub(super) fn start(
    program: &Program,
    run: &LauncherRun,
) -> Result<(Process, ProgramOutput), LaunchProblem> {
    match (&run.command.terminal, &run.log) {
        (Terminal::Own { rows, cols, .. }, Some(log)) => {
            let pty =
                open_pty(*rows, *cols).map_err(|e| LaunchProblem::no_terminal(e.to_string()))?;
            let (child, master) = spawn_on(program, pty).map_err(|e| exec_problem(program, &e))?;
            match OwnPty::open(master, (*rows, *cols), log.clone(), run) {
                Ok(own) => Ok((child, ProgramOutput::Own(own))),
                Err(e) => {
                    proc::end_tree(Process::current(), false, Duration::ZERO);
                    Err(LaunchProblem::not_runnable(format!("what it prints cannot be kept: {e}")))
                }
            }
        }
        // Without a pty the launcher's own stdout and stderr already go to the log.
        (Terminal::Own { .. } | Terminal::Pane | Terminal::Once { .. }, _) => {
            let child = spawn_foreground(program).map_err(|e| exec_problem(program, &e))?;
            Ok((child, ProgramOutput::Pane))
        }
    }
}

impl ProgramOutput {
    /// The name of the program's terminal.
    pub(super) fn tty_name(&self) -> Option<String> {
        match self {
            ProgramOutput::Pane => env::tty_name(),
            ProgramOutput::Own(own) => own.broadcaster.tty_name(),
        }
    }

    /// The socket on which viewers attach.
    pub(super) fn socket(&self) -> Option<&Path> {
        match self {
            ProgramOutput::Pane => None,
            ProgramOutput::Own(own) => own.server.as_ref().map(AttachServer::path),
        }
    }

    /// Waits until all output has been copied, at most `limit`: any process may hold the terminal
    /// open.
    pub(super) fn wait_end(&self, limit: Duration) {
        match self {
            ProgramOutput::Pane => (),
            ProgramOutput::Own(own) => match own.ended.recv_timeout(limit) {
                Ok(()) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => (),
            },
        }
    }

    /// Keeps the last output of the program, which has ended.
    pub(super) fn keep_last(&self, run: &LauncherRun) -> LastOutput {
        match (self, &run.command.terminal) {
            (ProgramOutput::Own(own), _) => LastOutput::logged(&own.broadcaster.lines(1)),
            (ProgramOutput::Pane, Terminal::Pane) => LastOutput::of_pane(run),
            // Its launcher reports its end, with its output.
            (ProgramOutput::Pane, Terminal::Own { .. } | Terminal::Once { .. }) => {
                LastOutput::default()
            }
        }
    }

    /// Sends the exit status to all viewers and stops accepting new ones.
    pub(super) fn send_exit(&mut self, exit: ChildExit) {
        match self {
            ProgramOutput::Pane => (),
            ProgramOutput::Own(own) => {
                own.server = None;
                own.broadcaster.end(exit, EXIT_SEND);
            }
        }
    }
}

impl OwnPty {
    pub(super) fn broadcaster(&self) -> Arc<Broadcaster> {
        Arc::clone(&self.broadcaster)
    }

    /// Copies the output into the log and to the viewers on a thread, which signals its end on
    /// `ended`. Types the answers to queries on another one.
    fn open(
        master: PtyMaster,
        size: (u16, u16),
        log: SharedLog,
        run: &LauncherRun,
    ) -> io::Result<OwnPty> {
        let mut reader = master.reader()?;
        let broadcaster = Arc::new(Broadcaster::new(master, size));
        let (typist, answers) = sync_channel::<Vec<u8>>(WAITING_ANSWERS);
        let typed = broadcaster.clone();
        // A thread of its own, because a program that does not read its input blocks the writer.
        thread::Builder::new()
            .name("answers".to_owned())
            .spawn(move || answers.iter().try_for_each(|answer| typed.type_in(&answer)))?;
        let (sender, ended) = channel();
        let shown = broadcaster.clone();
        let team = run.team.clone();
        let mut warning = Some(run.warning());
        thread::Builder::new().name("output".to_owned()).spawn(move || {
            copy(&mut reader, |bytes| {
                // A failed write, for example on a full disk or at the limit of file sizes, must
                // not stop the program.
                let kept = log.lock().unwrap_or_else(PoisonError::into_inner).append(bytes);
                if let Err(e) = kept
                    && let Some(warning) = warning.take_if(|_| team.exists())
                {
                    let text = format!("what it prints is no longer kept: {}", error_chain(&e));
                    // The journal may be unwritable as well.
                    let _ = team.record(warning.with("text", text));
                }
                let answers = shown.feed(bytes);
                if !answers.is_empty() {
                    // Fails if the program does not read its input: then these answers are lost.
                    let _ = typist.try_send(answers);
                }
            });
            // Fails if `OwnPty` has been dropped.
            let _ = sender.send(());
        })?;
        let runtime_dir = env::var("XDG_RUNTIME_DIR");
        let preferred = run.team.socket(&run.incarnation);
        let places = places(preferred, runtime_dir.as_deref().map(Path::new), env::effective_uid());
        let server = AttachServer::open(&places, &broadcaster);
        if let Err(problem) = &server {
            run.print(&format!("nobody can attach: {problem}"));
        }
        Ok(OwnPty { broadcaster, server: server.ok(), ended })
    }
}

/// Reads until the terminal is closed.
fn copy(reader: &mut dyn Read, mut take: impl FnMut(&[u8])) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => take(&buffer[..count]),
            Err(e) if e.kind() == ErrorKind::Interrupted => (),
            // EIO: the last process that had the terminal open has closed it.
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns the scripted results in order.
    struct Script(Vec<io::Result<&'static [u8]>>);

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let bytes = self.0.remove(0)?;
            buffer[..bytes.len()].copy_from_slice(bytes);
            Ok(bytes.len())
        }
    }

    #[test]
    fn output_is_kept_up_to_eio_of_a_closed_terminal() {
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
