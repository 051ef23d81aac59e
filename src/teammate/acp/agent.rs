//! The process of an agent on pipes: its output is read as it comes, and what is written to it waits
//! in a queue, so that an agent that does not read delays nothing.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use super::event::Event;
use event_loop::Inputs;
use launcher::command::Tail;
use model::causes::error_chain;
use model::text;
use sys::clock::Deadline;
use sys::exec::{ExecCommand, ExecError, PipedChild, start_piped};
use sys::proc::{self, Process};

/// Maximum number of bytes per read.
const CHUNK: usize = 64 * 1024;
/// Chunks that wait for the loop; then the agent waits.
pub(super) const QUEUED: usize = 16;
/// Time for the agent to exit after its input was closed: codex takes up to 7 s.
const CLOSE_GRACE: Duration = Duration::from_secs(8);
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(2);
/// Time to wait for remaining output after exit.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Maximum length of the last line of standard error.
const LAST_LINE: usize = 300;
/// The exit code of an agent that a signal has ended.
const KILLED: i32 = 137;

/// A running agent.
pub(super) struct AgentProcess {
    process: Process,
    /// `None` once its input is closed.
    writer: Option<Sender<Vec<u8>>>,
    /// A token for each chunk that was handled.
    handled: Receiver<()>,
}

impl AgentProcess {
    /// Starts the agent. Reports its output and its end to `inputs`.
    ///
    /// # Errors
    /// The program is not found or cannot be started.
    pub(super) fn start(
        argv: &[String],
        cwd: &Path,
        env: Vec<(OsString, OsString)>,
        inputs: &Inputs<Event>,
        install_hint: &str,
    ) -> Result<AgentProcess, String> {
        let (program, args) = argv.split_first().ok_or("it has no command line")?;
        let command = ExecCommand {
            program: program.into(),
            args: args.iter().map(OsString::from).collect(),
            env: Some(env),
            cwd: Some(cwd.to_owned()),
            stdin: Vec::new(),
        };
        let (child, (stdin, stdout, stderr)) = start_piped(&command).map_err(|e| match e {
            ExecError::NotFound { .. } => format!("{e}{install_hint}"),
            e => error_chain(&e),
        })?;
        let process = child.process().ok_or("it exited at once")?;
        let (writer, written) = channel();
        let (tokens, handled) = sync_channel(QUEUED);
        let threads = || -> io::Result<()> {
            let name = |name: &str| thread::Builder::new().name(name.to_owned());
            name("agent-input").spawn(move || write_all(stdin, &written))?;
            let output = inputs.clone();
            let (over, was_read) = channel();
            name("agent-output").spawn(move || {
                read_all(stdout, &output, &tokens);
                // Fails if `wait` no longer waits.
                let _ = over.send(());
            })?;
            let (last, was_said) = channel();
            name("agent-errors").spawn(move || last.send(read_last(stderr)))?;
            let end = inputs.clone();
            name("agent").spawn(move || wait(child, &was_read, &was_said, &end))?;
            Ok(())
        };
        threads().map_err(|e| format!("its pipes cannot be served: {e}"))?;
        Ok(AgentProcess { process, writer: Some(writer), handled })
    }

    /// Queues bytes for the agent.
    pub(super) fn write(&self, bytes: Vec<u8>) {
        // Fails only if the agent has closed its input or is gone, which is reported elsewhere.
        let _ = self.writer.as_ref().map(|writer| writer.send(bytes));
    }

    /// Lets the agent go on after a chunk of its output was handled.
    pub(super) fn chunk_handled(&self) {
        let _ = self.handled.try_recv();
    }

    /// Closes the agent's input; if it does not exit in time, ends it and all its descendants.
    pub(super) fn end(&mut self) {
        self.writer = None;
        let process = self.process;
        let end = move || {
            if !proc::wait_exit(process, CLOSE_GRACE) {
                proc::end_tree(process, true, GRACE);
            }
        };
        // If no thread can be started, the launcher ends what is left.
        let _ = thread::Builder::new().name("end".to_owned()).spawn(end);
    }
}

fn write_all(mut stdin: impl Write, written: &Receiver<Vec<u8>>) {
    while let Ok(bytes) = written.recv() {
        if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

pub(super) fn read_all(mut stdout: impl Read, inputs: &Inputs<Event>, tokens: &SyncSender<()>) {
    let mut buffer = vec![0; CHUNK];
    loop {
        match stdout.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                // Waits while the loop has not handled the chunks before. Comes before the chunk:
                // the loop takes one for each chunk that it handles.
                if tokens.send(()).is_err() {
                    return;
                }
                inputs.send(Event::Output(buffer[..count].to_vec()));
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

fn read_last(mut stderr: impl Read) -> Option<String> {
    let mut tail = Tail::default();
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = stderr.read(&mut buffer) {
        tail.push(&buffer[..count]);
    }
    let said = tail.text();
    let last = said.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(text::short(last, LAST_LINE))
}

/// Reports the end of the agent once its output was read. A child that the agent left behind may
/// keep the output open; the launcher ends it.
fn wait(
    mut child: PipedChild,
    was_read: &Receiver<()>,
    was_said: &Receiver<Option<String>>,
    inputs: &Inputs<Event>,
) {
    let code = child.wait().ok().flatten();
    let limit = Deadline::after(LAST_WORDS);
    let _ = was_read.recv_timeout(limit.remaining());
    let said = was_said.recv_timeout(limit.remaining()).ok().flatten();
    inputs.send(Event::Ended { code: code.unwrap_or(KILLED), said });
}
