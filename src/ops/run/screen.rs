//! What a worker shows in its pane: its commands' output as it comes, and lines of its own that never run into it.
//! Knows nothing of tasks.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::text;

/// Colours off, cursor visible: what a command that was interrupted may have left otherwise.
const RESET: &[u8] = b"\x1b[0m\x1b[?25h";
const ESCAPE: u8 = 0x1b;

/// The pane, shared between whoever relays output and whoever has something to say.
#[derive(Clone)]
pub(crate) struct Screen {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    out: Box<dyn Write + Send>,
    /// Whether the last byte ended a line.
    at_line_start: bool,
    /// Whether a command has sent escapes since the last line of our own.
    styled: bool,
}

impl Screen {
    /// Our standard output.
    pub(crate) fn stdout() -> Screen {
        Screen::on(Box::new(io::stdout()))
    }

    /// Anything that bytes can be written to.
    pub(crate) fn on(out: Box<dyn Write + Send>) -> Screen {
        Screen { inner: Arc::new(Mutex::new(Inner { out, at_line_start: true, styled: false })) }
    }

    /// Shows output of a command, byte for byte.
    pub(super) fn relay(&self, bytes: &[u8]) {
        let mut inner = self.lock();
        let Some(last) = bytes.last() else { return };
        inner.at_line_start = *last == b'\n';
        inner.styled |= bytes.contains(&ESCAPE);
        inner.write(bytes);
    }

    /// Shows a text of our own on lines of its own; what is not fit to print in it becomes visible marks.
    pub(crate) fn line(&self, said: &str) {
        let mut inner = self.lock();
        let mut bytes = Vec::new();
        if std::mem::take(&mut inner.styled) {
            bytes.extend_from_slice(RESET);
        }
        if !inner.at_line_start {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(text::block(said).as_bytes());
        bytes.push(b'\n');
        inner.at_line_start = true;
        inner.write(&bytes);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A writer that panicked has at worst left a line unfinished.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn write(&mut self, bytes: &[u8]) {
        // A terminal that is gone cannot be told so; the work goes on, and a hang-up says it in its own way.
        let _ = self.out.write_all(bytes).and_then(|()| self.out.flush());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A screen whose bytes can be looked at.
    #[derive(Clone, Default)]
    pub(crate) struct Film(Arc<Mutex<Vec<u8>>>);

    impl Film {
        pub(crate) fn screen(&self) -> Screen {
            Screen::on(Box::new(self.clone()))
        }

        pub(crate) fn bytes(&self) -> Vec<u8> {
            self.0.lock().expect("film").clone()
        }

        pub(crate) fn text(&self) -> String {
            String::from_utf8_lossy(&self.bytes()).into_owned()
        }
    }

    impl Write for Film {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("film").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn our_lines_stand_alone_and_undo_colours() {
        let film = Film::default();
        let screen = film.screen();
        screen.line("one");
        screen.relay(b"\x1b[31mred");
        screen.line("two\x1b[2J\nthree");
        screen.relay(b"plain\n");
        screen.line("four");
        let shown = "one\n\x1b[31mred\x1b[0m\x1b[?25h\ntwo\u{241b}[2J\nthree\nplain\nfour\n";
        assert_eq!(film.text(), shown);
    }
}
