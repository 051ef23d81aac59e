//! A terminal that shows full screens: raw, on its alternate screen, and restored on every exit path.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{
    DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use crossterm::queue;
use crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::{Rect, Size};
use ratatui::{Frame, Terminal};

use crate::crash;
use sys::clock::Deadline;
use sys::tty::Display;

/// A full screen has the terminal.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Time limit for writing a frame to a terminal that accepts no output.
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// Collects the bytes of a frame, which are then written at once.
#[derive(Debug, Clone, Default)]
struct FrameBytes(Rc<RefCell<Vec<u8>>>);

impl Write for FrameBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Use of the mouse on a full screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MouseUse {
    /// The screen receives its events.
    Screen,
    /// The terminal selects text with it.
    Terminal,
}

/// The terminal while a full screen has it; restored on drop.
pub(crate) struct FullScreen {
    mouse: MouseUse,
    terminal: Terminal<CrosstermBackend<FrameBytes>>,
    frame: FrameBytes,
    display: Display,
}

impl FullScreen {
    /// Takes the terminal.
    pub(crate) fn enter(mouse: MouseUse) -> io::Result<FullScreen> {
        let frame = FrameBytes::default();
        let terminal = Terminal::new(CrosstermBackend::new(frame.clone()))?;
        let display = Display::open()?;
        let mut entered = FullScreen { mouse, terminal, frame, display };
        entered.take()?;
        Ok(entered)
    }

    /// Takes the terminal again after [`FullScreen::leave`].
    pub(crate) fn take(&mut self) -> io::Result<()> {
        enable_raw_mode()?;
        IS_TAKEN.store(true, Ordering::Relaxed);
        crash::restore_before_message(Some(restore));
        let mut bytes = Vec::new();
        queue!(bytes, EnterAlternateScreen, EnableBracketedPaste, Hide)?;
        if self.mouse == MouseUse::Screen {
            queue!(bytes, EnableMouseCapture)?;
        }
        self.write(&bytes)?;
        self.redraw()
    }

    /// Restores the terminal for other programs.
    pub(crate) fn leave(&mut self) {
        if IS_TAKEN.swap(false, Ordering::Relaxed) {
            crash::restore_before_message(None);
            // A terminal that is gone needs no reset.
            let _ = leave_bytes().and_then(|bytes| self.write(&bytes));
            let _ = disable_raw_mode();
        }
    }

    pub(crate) fn size(&self) -> io::Result<Size> {
        self.terminal.size()
    }

    /// Makes the next frame draw every cell.
    pub(crate) fn redraw(&mut self) -> io::Result<()> {
        // Not `clear`, which asks the terminal for the position of the cursor.
        let size = self.terminal.size()?;
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))
    }

    /// Draws a frame with one write. A terminal that accepts no output gets the next frame as a
    /// whole.
    ///
    /// # Errors
    /// The error of writing to the terminal, except that it is stuck.
    pub(crate) fn draw(&mut self, render: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.terminal.draw(render)?;
        let frame = self.frame.0.take();
        let mut bytes = Vec::with_capacity(frame.len() + 16);
        queue!(bytes, BeginSynchronizedUpdate)?;
        bytes.extend(frame);
        queue!(bytes, EndSynchronizedUpdate)?;
        match self.write(&bytes) {
            Err(e) if e.kind() == io::ErrorKind::TimedOut => self.redraw(),
            done => done,
        }
    }

    /// Writes bytes that do not move the cursor, such as a notification.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let limit = Deadline::after(WRITE_LIMIT);
        self.display.show(bytes, &|| limit.expired())
    }
}

impl Drop for FullScreen {
    fn drop(&mut self) {
        self.leave();
    }
}

fn leave_bytes() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    queue!(
        bytes,
        EndSynchronizedUpdate,
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        Show
    )?;
    Ok(bytes)
}

/// Restores the terminal before the message of a panic, after which the drop must not do it again.
fn restore() {
    if !IS_TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    if let (Ok(bytes), Ok(display)) = (leave_bytes(), Display::open()) {
        let limit = Deadline::after(WRITE_LIMIT);
        let _ = display.show(&bytes, &|| limit.expired());
    }
    let _ = disable_raw_mode();
}
