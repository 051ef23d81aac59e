//! A frame at the bottom of the terminal at stderr, with lines that scroll away above it.

use std::io;

use super::redraw::{self, Redraw};
use crate::sys::tty::{self, EchoOff};

/// The frame, on a terminal that does not echo keys while it is drawn.
pub(super) struct Live {
    redraw: Redraw,
    frame: String,
    echo: Option<EchoOff>,
}

impl Live {
    pub(super) fn new() -> Live {
        Live { redraw: Redraw::new(), frame: String::new(), echo: None }
    }

    /// Turns the echo of keys off until the frame is removed.
    pub(super) fn take_terminal(&mut self) {
        if self.echo.is_none() {
            self.echo = EchoOff::enter();
        }
    }

    /// Draws this frame in the place of the last one, unless another job has the terminal.
    pub(super) fn draw(&mut self, frame: String) {
        if tty::is_background() {
            self.frame.clear();
            return;
        }
        self.frame = frame;
        self.put("");
    }

    /// Prints lines above the frame; they stay.
    pub(super) fn say(&mut self, lines: &str) {
        if lines.is_empty() { self.put("\n") } else { self.put(lines) }
    }

    /// Removes the frame.
    pub(super) fn clear(&mut self) {
        self.frame.clear();
        self.put("");
    }

    /// Gives the terminal back before the process is stopped.
    pub(super) fn suspend(&mut self) {
        self.clear();
        self.echo = None;
    }

    /// Takes the terminal again after the process was stopped; a shell may have written to it.
    pub(super) fn resume(&mut self) {
        self.redraw.forget();
        // Dropped first: the modes to put back at the end are those without the silence.
        self.echo = None;
        self.take_terminal();
    }

    fn put(&mut self, above: &str) {
        // The team works on when the terminal is gone.
        let _ = self.redraw.draw_on(&mut io::stderr().lock(), above, &self.frame, redraw::size());
    }
}
