//! The input of a full screen: keys, and the signals that concern the terminal or this process.

use std::future::poll_fn;
use std::io;
use std::time::Duration;

use crossterm::event::{Event, EventStream};
use futures_core::Stream;

use sys::signal::{Signals, TerminalSignal, TerminalSignals};

/// An input of a full screen.
#[derive(Debug)]
pub(crate) enum TerminalWake {
    Event(Event),
    /// The terminal is gone.
    Gone,
    /// This process was asked to end.
    End,
    Suspend,
    /// The terminal was resized, or the job was continued.
    Redraw,
}

/// The source of inputs.
pub(crate) struct ScreenInput {
    signals: Signals,
    terminal_signals: TerminalSignals,
    /// `None` while another program has the terminal.
    events: Option<EventStream>,
}

impl ScreenInput {
    /// Installs handlers of signals. Must be called inside a tokio runtime with I/O enabled.
    pub(crate) fn new() -> io::Result<ScreenInput> {
        Ok(ScreenInput {
            signals: Signals::new()?,
            terminal_signals: TerminalSignals::new()?,
            events: Some(EventStream::new()),
        })
    }

    /// Waits for the next input. Cancel safe.
    pub(crate) async fn next(&mut self) -> TerminalWake {
        let stream = self.events.get_or_insert_with(EventStream::new);
        tokio::select! {
            biased;
            _ = self.signals.recv() => TerminalWake::End,
            event = poll_fn(|cx| std::pin::Pin::new(&mut *stream).poll_next(cx)) => match event {
                Some(Ok(event)) => TerminalWake::Event(event),
                Some(Err(_)) | None => TerminalWake::Gone,
            },
            signal = self.terminal_signals.recv() => match signal {
                TerminalSignal::Quit => TerminalWake::End,
                TerminalSignal::Suspend => TerminalWake::Suspend,
                TerminalSignal::Continue | TerminalSignal::Resize => TerminalWake::Redraw,
            },
        }
    }

    /// Stops to read keys until the next wait. The stream wakes its reader when it is dropped; a
    /// wake-up that is still pending when the next stream starts would hide a key that arrived
    /// before (PT-09).
    pub(crate) fn release(&mut self) {
        drop(self.events.take());
        // Takes the wake-up if no thread of the stream was there to take it.
        let _ = crossterm::event::poll(Duration::ZERO);
    }
}
