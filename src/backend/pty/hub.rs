//! One program's terminal and those who look at it. What the program prints never waits for a viewer: who is too slow
//! gets the screen as it then is instead of what he missed. Knows neither sockets nor logs.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::screen::Live;
use super::wire::{End, Tell};
use crate::model::input::Input;
use crate::sys::child::PtyMaster;
use crate::sys::clock::Deadline;

/// How far a viewer may fall behind, in bytes.
const PENDING: usize = 256 * 1024;

/// A viewer's number, never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ViewerId(u64);

/// What a viewer has not been given yet.
#[derive(Debug)]
enum Outbox {
    Bytes(Vec<u8>),
    /// It is new, or it fell too far behind: the whole screen.
    Screen,
}

struct State {
    screen: Live,
    viewers: BTreeMap<ViewerId, Outbox>,
    next: u64,
    end: Option<End>,
}

/// The terminal, shared between the thread that reads it and those of the viewers.
pub(crate) struct Hub {
    master: PtyMaster,
    /// Its size while nobody is attached.
    home: (u16, u16),
    state: Mutex<State>,
    changed: Condvar,
}

impl Hub {
    pub(crate) fn new(master: PtyMaster, home: (u16, u16)) -> Hub {
        let state = State { screen: Live::new(home), viewers: BTreeMap::new(), next: 0, end: None };
        Hub { master, home, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// The name of the program's terminal.
    pub(crate) fn tty_name(&self) -> Option<String> {
        self.master.tty_name()
    }

    /// The program has printed this.
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

    /// The program has ended. Waits until all viewers were told, but no longer than `limit`.
    pub(crate) fn end(&self, end: End, limit: Duration) {
        let deadline = Deadline::after(limit);
        let mut state = self.state();
        state.end = Some(end);
        self.changed.notify_all();
        while !state.viewers.is_empty() && !deadline.expired() {
            let waited = self.changed.wait_timeout(state, deadline.remaining());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The last lines of the screen as it is now.
    pub(super) fn lines(&self, lines: usize) -> String {
        self.state().screen.lines(lines)
    }

    /// Types on the program's keyboard. Blocks while the program does not read it.
    pub(super) fn type_in(&self, keys: &[u8]) -> io::Result<()> {
        self.master.write_all(keys)
    }

    /// Types what this input is in the terminal's present modes. Blocks as [`Hub::type_in`] does.
    pub(super) fn input(&self, input: &Input) -> io::Result<()> {
        let bytes = input.bytes(self.state().screen.modes());
        self.type_in(&bytes)
    }

    /// Somebody looks, on a terminal of this size, which becomes that of the program.
    pub(super) fn join(&self, size: (u16, u16)) -> ViewerId {
        let mut state = self.state();
        let id = ViewerId(state.next);
        state.next += 1;
        state.viewers.insert(id, Outbox::Screen);
        self.resize_to(&mut state, size);
        id
    }

    /// A viewer's terminal has another size. Whoever said a size last is right; the others see what fits.
    pub(super) fn resize(&self, size: (u16, u16)) {
        self.resize_to(&mut self.state(), size);
    }

    fn resize_to(&self, state: &mut State, size: (u16, u16)) {
        let Some((rows, cols)) = state.screen.resize(size) else { return };
        // A terminal that cannot be resized shows too much or too little, and nothing worse.
        let _ = self.master.resize(rows, cols);
        state.viewers.values_mut().for_each(|outbox| *outbox = Outbox::Screen);
        self.changed.notify_all();
    }

    /// The next words for a viewer, waited for; none once it has left.
    pub(super) fn next(&self, id: ViewerId) -> Option<Tell> {
        let mut state = self.state();
        loop {
            let State { screen, viewers, end, .. } = &mut *state;
            match viewers.get_mut(&id)? {
                outbox @ Outbox::Screen => {
                    *outbox = Outbox::Bytes(Vec::new());
                    return Some(Tell::Output(screen.repaint()));
                }
                Outbox::Bytes(pending) if !pending.is_empty() => {
                    return Some(Tell::Output(std::mem::take(pending)));
                }
                Outbox::Bytes(_) => {
                    if let Some(end) = end {
                        return Some(Tell::Ended(*end));
                    }
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A viewer has gone; twice is harmless. When it was the last one, the terminal gets its own size back, by which its
    /// log can be read.
    pub(super) fn leave(&self, id: ViewerId) {
        let mut state = self.state();
        if state.viewers.remove(&id).is_some() && state.viewers.is_empty() && state.end.is_none() {
            self.resize_to(&mut state, self.home);
        }
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The one thing under this lock that may panic is caught within.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
