//! A command on a host that is used over its streams while it runs.

use std::io::{BufReader, Read};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::error::{HostError, last_lines};
use crate::model::id::HostName;
use crate::sys::exec::PipedChild;

/// Bytes of the command's messages that are kept: the last ones.
const MESSAGE_BYTES: usize = 1 << 16;

/// A running command. The local ssh is killed on drop; the command then gets the end of its input.
#[derive(Debug)]
pub(crate) struct HostChild {
    host: HostName,
    child: PipedChild,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    messages: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl HostChild {
    /// Collects the messages of a started command; those before the mark are start-up files'.
    pub(super) fn new(
        host: HostName,
        child: PipedChild,
        stdin: ChildStdin,
        stdout: BufReader<ChildStdout>,
        stderr: ChildStderr,
        mark: String,
    ) -> HostChild {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&messages);
        let reader = thread::spawn(move || keep_last(stderr, &mark, &kept));
        HostChild {
            host,
            child,
            stdin: Some(stdin),
            stdout: Some(stdout),
            messages,
            reader: Some(reader),
        }
    }

    /// Returns the standard input; `None` once it was taken. Dropping it is the end of the input.
    pub(crate) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.stdin.take()
    }

    /// Returns the standard output; `None` once it was taken.
    pub(crate) fn take_stdout(&mut self) -> Option<BufReader<ChildStdout>> {
        self.stdout.take()
    }

    /// Returns the last lines of the command's messages so far.
    pub(crate) fn messages(&self) -> String {
        last_lines(&self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Closes the input, waits for the end of the command, and returns its status.
    ///
    /// # Errors
    /// [`HostError::Lost`] for ssh's own status, 255, and if a signal ended ssh.
    #[cfg_attr(not(feature = "testing"), expect(dead_code, reason = "only tests wait for its end"))]
    pub(crate) fn wait(mut self) -> Result<i32, HostError> {
        drop(self.stdin.take());
        let code = self.child.wait().unwrap_or(None).filter(|code| *code != 255);
        if let Some(reader) = self.reader.take() {
            // A panic of the reader only loses messages.
            let _ = reader.join();
        }
        code.ok_or_else(|| HostError::Lost { host: self.host.clone(), said: self.messages() })
    }
}

fn keep_last(mut stderr: ChildStderr, mark: &str, kept: &Mutex<Vec<u8>>) {
    let line = format!("{mark}\n");
    let mut block = [0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut block) {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend_from_slice(&block[..count]);
        if let Some(at) = memchr::memmem::find(&kept, line.as_bytes()) {
            kept.drain(..at + line.len());
        }
        let surplus = kept.len().saturating_sub(MESSAGE_BYTES);
        kept.drain(..surplus);
    }
}
