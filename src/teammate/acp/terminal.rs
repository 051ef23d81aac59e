//! The terminal of the pane: its keys come as events, and frames are written without blocking.

use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::Pin;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste, Event, EventStream};
use crossterm::queue;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use futures_core::Stream as _;

use conversation::TerminalSize;
use sys::child::own_size;
use sys::clock::Deadline;
use sys::tty::Display;

/// Rows and columns if the terminal reports no size.
const SIZE: (u16, u16) = (24, 80);
/// Time without accepted output after which the rest of a frame is dropped.
const STUCK: std::time::Duration = std::time::Duration::from_secs(1);

/// The terminal in raw mode, restored on drop.
pub(super) struct PaneTerminal {
    display: Display,
    events: Option<EventStream>,
}

impl PaneTerminal {
    /// Takes the terminal. Must be called inside a tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// There is no terminal.
    pub(super) fn enter() -> io::Result<PaneTerminal> {
        let display = Display::open()?;
        enable_raw_mode()?;
        let mut terminal = PaneTerminal { display, events: Some(EventStream::new()) };
        let mut bytes = Vec::new();
        queue!(bytes, EnableBracketedPaste)?;
        terminal.write(&bytes);
        Ok(terminal)
    }

    pub(super) fn size() -> TerminalSize {
        let (rows, cols) = own_size().unwrap_or(SIZE);
        TerminalSize { rows, cols }
    }

    /// Waits for the next event; `None` if the terminal is gone. Cancel safe.
    pub(super) async fn next(&mut self) -> Option<Event> {
        let events = self.events.as_mut()?;
        let next = poll_fn(|cx| Pin::new(&mut *events).poll_next(cx)).await;
        next.and_then(Result::ok)
    }

    /// Writes a frame. One that a stuck terminal does not take is lost: the conversation is also in
    /// the agent's own transcript.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        let limit = Deadline::after(STUCK);
        let _ = self.display.show(bytes, &|| limit.expired());
    }
}

impl Drop for PaneTerminal {
    fn drop(&mut self) {
        let mut bytes = Vec::new();
        let _ = queue!(bytes, DisableBracketedPaste);
        let _ = bytes.flush();
        self.write(&bytes);
        self.events = None;
        let _ = disable_raw_mode();
    }
}
