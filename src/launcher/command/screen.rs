//! The pane of a worker: command output as it arrives, and phalanx's own messages on separate
//! lines.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::text;

/// Resets colours and shows the cursor, in case an interrupted command left them changed.
const RESET: &[u8] = b"\x1b[0m\x1b[?25h";
const ESCAPE: u8 = 0x1b;

/// A handle to the pane, shared by the output relay and the sources of messages.
#[derive(Clone)]
pub struct WorkerScreen {
    inner: Arc<Mutex<PaneWriter>>,
}

struct PaneWriter {
    out: Box<dyn Write + Send>,
    /// Set if the last byte written was a newline.
    at_line_start: bool,
    /// Set if the command has sent escapes since the last message.
    styled: bool,
}

impl WorkerScreen {
    /// A screen on standard output.
    pub fn stdout() -> WorkerScreen {
        WorkerScreen::on(Box::new(io::stdout()))
    }

    /// A screen on any writer.
    pub fn on(out: Box<dyn Write + Send>) -> WorkerScreen {
        let inner = PaneWriter { out, at_line_start: true, styled: false };
        WorkerScreen { inner: Arc::new(Mutex::new(inner)) }
    }

    /// Writes command output unchanged.
    pub(super) fn relay(&self, bytes: &[u8]) {
        let mut inner = self.lock();
        let Some(last) = bytes.last() else { return };
        inner.at_line_start = *last == b'\n';
        inner.styled |= bytes.contains(&ESCAPE);
        inner.write(bytes);
    }

    /// Writes a message on lines of its own; control characters are replaced with visible symbols.
    pub fn line(&self, message: &str) {
        let mut inner = self.lock();
        let mut bytes = Vec::new();
        if std::mem::take(&mut inner.styled) {
            bytes.extend_from_slice(RESET);
        }
        if !inner.at_line_start {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(text::block(message).as_bytes());
        bytes.push(b'\n');
        inner.at_line_start = true;
        inner.write(&bytes);
    }

    fn lock(&self) -> MutexGuard<'_, PaneWriter> {
        // A writer that panicked leaves at most an unfinished line.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PaneWriter {
    fn write(&mut self, bytes: &[u8]) {
        // Ignored: the work continues without a terminal, and SIGHUP reports its loss.
        let _ = self.out.write_all(bytes).and_then(|()| self.out.flush());
    }
}

/// A screen that records its bytes.
#[cfg(test)]
#[derive(Clone, Default)]
pub(super) struct RecordedScreen(Arc<Mutex<Vec<u8>>>);

#[cfg(test)]
impl RecordedScreen {
    pub(super) fn screen(&self) -> WorkerScreen {
        WorkerScreen::on(Box::new(self.clone()))
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("recorded bytes").clone()
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

#[cfg(test)]
impl Write for RecordedScreen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("recorded bytes").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_start_on_a_new_line_and_reset_colours() {
        let recorded = RecordedScreen::default();
        let screen = recorded.screen();
        screen.line("one");
        screen.relay(b"\x1b[31mred");
        screen.line("two\x1b[2J\nthree");
        screen.relay(b"plain\n");
        screen.line("four");
        let shown = "one\n\x1b[31mred\x1b[0m\x1b[?25h\ntwo\u{241b}[2J\nthree\nplain\nfour\n";
        assert_eq!(recorded.text(), shown);
    }
}
