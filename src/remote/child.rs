//! A command on a host that is used over its streams while it runs.

use std::io::Read;
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::error::{HostError, last_lines};
use model::id::HostName;
use sys::exec::PipedChild;

/// Bytes of the command's messages that are kept: the last ones.
const MESSAGE_BYTES: usize = 1 << 16;

/// A running command. The local ssh is killed on drop.
#[derive(Debug)]
pub struct HostChild {
    host: HostName,
    child: PipedChild,
    messages: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl HostChild {
    /// Collects the messages of a started command; those before the mark are start-up files'.
    pub(super) fn new(
        host: HostName,
        child: PipedChild,
        stderr: ChildStderr,
        mark: String,
    ) -> HostChild {
        let messages = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&messages);
        let reader = thread::spawn(move || keep_last(stderr, &mark, &kept));
        HostChild { host, child, messages, reader }
    }

    /// Returns the last lines of the command's messages so far.
    pub fn messages(&self) -> String {
        last_lines(&self.messages.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for the end of the command, whose input must be dropped, and returns its status.
    ///
    /// # Errors
    /// [`HostError::Lost`] for ssh's own status, 255, and if a signal ended ssh.
    pub fn wait(mut self) -> Result<i32, HostError> {
        let code = self.child.wait().unwrap_or(None).filter(|code| *code != 255);
        // A panic of the reader only loses messages.
        let _ = self.reader.join();
        let said = last_lines(&self.messages.lock().unwrap_or_else(PoisonError::into_inner));
        code.ok_or(HostError::Lost { host: self.host, said })
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
