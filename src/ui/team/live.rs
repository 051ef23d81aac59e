//! A frame at the bottom of the terminal at stderr, with lines that scroll away above it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::redraw::{self, Redraw};
use sys::tty::{self, EchoOff};

/// The frame, on a terminal that does not echo keys while it is drawn.
pub(crate) struct LiveFrame {
    shared: Arc<Mutex<SharedFrame>>,
    echo: Option<EchoOff>,
}

/// The part of [`LiveFrame`] that other threads print through.
struct SharedFrame {
    redraw: Redraw,
    frame: String,
}

impl LiveFrame {
    pub(crate) fn new() -> LiveFrame {
        let shared = SharedFrame { redraw: Redraw::new(), frame: String::new() };
        LiveFrame { shared: Arc::new(Mutex::new(shared)), echo: None }
    }

    /// Turns off the echo of keys until the frame is removed.
    pub(crate) fn take_terminal(&mut self) {
        if self.echo.is_none() {
            self.echo = EchoOff::enter();
        }
    }

    /// Replaces the last frame by this one, unless another job has the terminal.
    pub(crate) fn draw(&mut self, frame: String) {
        let mut shared = lock(&self.shared);
        if tty::is_background() {
            shared.frame.clear();
            return;
        }
        shared.frame = frame;
        shared.put("");
    }

    /// Prints permanent lines above the frame.
    pub(crate) fn print_above(&mut self, lines: &str) {
        lock(&self.shared).print_above(lines);
    }

    /// Returns a function that prints lines above the frame from any thread.
    pub(crate) fn line_printer(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let shared = Arc::clone(&self.shared);
        move |lines| lock(&shared).print_above(lines)
    }

    pub(crate) fn clear(&mut self) {
        let mut shared = lock(&self.shared);
        shared.frame.clear();
        shared.put("");
    }

    /// Restores the terminal before the process is suspended.
    pub(crate) fn suspend(&mut self) {
        self.clear();
        self.echo = None;
    }

    /// Takes the terminal again after a suspension; a shell may have written to it.
    pub(crate) fn resume(&mut self) {
        lock(&self.shared).redraw.forget();
        // Dropped first, so that the modes saved for the end are those with the echo on.
        self.echo = None;
        self.take_terminal();
    }
}

impl SharedFrame {
    fn print_above(&mut self, lines: &str) {
        if lines.is_empty() { self.put("\n") } else { self.put(lines) }
    }

    fn put(&mut self, above: &str) {
        // A lost terminal must not stop the team.
        let _ = self.redraw.draw_on(&mut io::stderr().lock(), above, &self.frame, redraw::size());
    }
}

fn lock(shared: &Mutex<SharedFrame>) -> MutexGuard<'_, SharedFrame> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
