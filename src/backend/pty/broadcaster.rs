//! One program's terminal and its viewers. The program's output never waits for a viewer: a viewer
//! that falls behind gets the current screen instead of the output that it missed.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::screen::LiveScreen;
use super::wire::LauncherMessage;
use crate::model::input::Input;
use crate::sys::child::{ChildExit, PtyMaster};
use crate::sys::clock::Deadline;

/// Limit of a viewer's unsent output, in bytes.
const PENDING: usize = 256 * 1024;

/// The id of a viewer; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ViewerId(u64);

/// The output that a viewer has not received yet.
#[derive(Debug)]
enum Outbox {
    Bytes(Vec<u8>),
    /// The whole screen: the viewer is new or fell too far behind.
    Screen,
}

struct BroadcastState {
    screen: LiveScreen,
    viewers: BTreeMap<ViewerId, Outbox>,
    next: u64,
    end: Option<ChildExit>,
}

/// The terminal, shared by the thread that reads it and the viewers' threads.
pub(crate) struct Broadcaster {
    master: PtyMaster,
    /// Rows and columns while no viewer is attached.
    home: (u16, u16),
    state: Mutex<BroadcastState>,
    changed: Condvar,
}

impl Broadcaster {
    pub(crate) fn new(master: PtyMaster, home: (u16, u16)) -> Broadcaster {
        let state = BroadcastState {
            screen: LiveScreen::new(home),
            viewers: BTreeMap::new(),
            next: 0,
            end: None,
        };
        Broadcaster { master, home, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn tty_name(&self) -> Option<String> {
        self.master.tty_name()
    }

    /// Draws the program's output and queues it for all viewers.
    pub(crate) fn feed(&self, bytes: &[u8]) {
        let mut state = self.state();
        let afresh = state.screen.process(bytes);
        for outbox in state.viewers.values_mut() {
            match outbox {
                Outbox::Bytes(pending) if !afresh && pending.len() + bytes.len() <= PENDING => {
                    pending.extend_from_slice(bytes);
                }
                Outbox::Bytes(_) => *outbox = Outbox::Screen,
                Outbox::Screen => (),
            }
        }
        self.changed.notify_all();
    }

    /// Notifies the viewers that the program has exited. Waits until all of them have left, at most
    /// `limit`.
    pub(crate) fn end(&self, end: ChildExit, limit: Duration) {
        let deadline = Deadline::after(limit);
        let mut state = self.state();
        state.end = Some(end);
        self.changed.notify_all();
        while !state.viewers.is_empty() && !deadline.expired() {
            let waited = self.changed.wait_timeout(state, deadline.remaining());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(super) fn lines(&self, lines: usize) -> String {
        self.state().screen.lines(lines)
    }

    /// Writes keys to the terminal. Blocks while the program does not read its input.
    pub(super) fn type_in(&self, keys: &[u8]) -> io::Result<()> {
        self.master.write_all(keys)
    }

    /// Writes input in the encoding of the terminal's current modes. Blocks as
    /// [`Broadcaster::type_in`] does.
    pub(super) fn input(&self, input: &Input) -> io::Result<()> {
        let bytes = input.bytes(self.state().screen.modes());
        self.type_in(&bytes)
    }

    /// Adds a viewer. The program's terminal takes the size of the viewer's, in rows and columns.
    pub(super) fn join(&self, size: (u16, u16)) -> ViewerId {
        let mut state = self.state();
        let id = ViewerId(state.next);
        state.next += 1;
        state.viewers.insert(id, Outbox::Screen);
        self.resize_to(&mut state, size);
        id
    }

    /// Handles a new size of a viewer's terminal. The latest size wins; other viewers see the part
    /// that fits.
    pub(super) fn resize(&self, size: (u16, u16)) {
        self.resize_to(&mut self.state(), size);
    }

    fn resize_to(&self, state: &mut BroadcastState, size: (u16, u16)) {
        let Some((rows, cols)) = state.screen.resize(size) else { return };
        // If this fails, the program only draws for a wrong size.
        let _ = self.master.resize(rows, cols);
        state.viewers.values_mut().for_each(|outbox| *outbox = Outbox::Screen);
        self.changed.notify_all();
    }

    /// Waits for the next message to a viewer; `None` once the viewer has left.
    pub(super) fn next(&self, id: ViewerId) -> Option<LauncherMessage> {
        let mut state = self.state();
        loop {
            let BroadcastState { screen, viewers, end, .. } = &mut *state;
            match viewers.get_mut(&id)? {
                outbox @ Outbox::Screen => {
                    *outbox = Outbox::Bytes(Vec::new());
                    return Some(LauncherMessage::Output(screen.repaint()));
                }
                Outbox::Bytes(pending) if !pending.is_empty() => {
                    return Some(LauncherMessage::Output(std::mem::take(pending)));
                }
                Outbox::Bytes(_) => {
                    if let Some(end) = end {
                        return Some(LauncherMessage::Ended(*end));
                    }
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Removes a viewer; idempotent. After the last one, the terminal returns to its own size, for
    /// which its log is drawn.
    pub(super) fn leave(&self, id: ViewerId) {
        let mut state = self.state();
        if state.viewers.remove(&id).is_some() && state.viewers.is_empty() && state.end.is_none() {
            self.resize_to(&mut state, self.home);
        }
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, BroadcastState> {
        // The code under this lock that may panic is the terminal emulator, and `LiveScreen`
        // catches its panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
