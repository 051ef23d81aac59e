//! One program's terminal and its viewers. The program's output never waits for a viewer: a viewer
//! that falls behind gets the current screen instead of the output that it missed. A viewer is
//! attached, and then the terminal has the size of its own one, or it follows the terminal without
//! any influence on it.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::screen::LiveScreen;
use super::wire::LauncherMessage;
use model::members::input::Input;
use model::members::query::QueryFilter;
use sys::child::{ChildExit, PtyMaster};
use sys::clock::Deadline;

/// Limit of a viewer's unsent output, in bytes.
const PENDING: usize = 256 * 1024;

/// The id of a viewer; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ViewerId(u64);

#[derive(Debug)]
struct ViewerState {
    /// The size of an attached viewer's terminal. A follower has none, and gets that of the
    /// program's terminal before each whole screen.
    size: Option<(u16, u16)>,
    outbox: Outbox,
}

/// The output that a viewer has not received yet.
#[derive(Debug)]
enum Outbox {
    Bytes(Vec<u8>),
    /// The whole screen: the viewer is new or fell too far behind.
    Screen,
    /// The whole screen, of which a follower has received the size.
    ScreenOfKnownSize,
}

struct BroadcastState {
    screen: LiveScreen,
    queries: QueryFilter,
    viewers: BTreeMap<ViewerId, ViewerState>,
    next: u64,
    end: Option<ChildExit>,
}

impl BroadcastState {
    fn add(&mut self, size: Option<(u16, u16)>) -> ViewerId {
        let id = ViewerId(self.next);
        self.next += 1;
        self.viewers.insert(id, ViewerState { size, outbox: Outbox::Screen });
        id
    }
}

/// The terminal, shared by the thread that reads it and the viewers' threads.
pub struct Broadcaster {
    master: PtyMaster,
    /// Rows and columns while no viewer is attached. Followers do not count.
    home: (u16, u16),
    state: Mutex<BroadcastState>,
    changed: Condvar,
}

impl Broadcaster {
    pub fn new(master: PtyMaster, home: (u16, u16)) -> Broadcaster {
        let state = BroadcastState {
            screen: LiveScreen::new(home),
            queries: QueryFilter::default(),
            viewers: BTreeMap::new(),
            next: 0,
            end: None,
        };
        Broadcaster { master, home, state: Mutex::new(state), changed: Condvar::new() }
    }

    pub fn tty_name(&self) -> Option<String> {
        self.master.tty_name()
    }

    /// Draws the program's output and queues it for all viewers, without the queries in it (PT-10).
    /// Returns the answers to these, which the caller types.
    pub fn feed(&self, bytes: &[u8]) -> Vec<u8> {
        let mut state = self.state();
        let BroadcastState { screen, queries, viewers, .. } = &mut *state;
        let mut shown = Vec::new();
        let mut afresh = false;
        let answers = queries.pass(bytes, |part| {
            afresh |= screen.process(part);
            shown.extend_from_slice(part);
            screen.cursor()
        });
        for ViewerState { outbox, .. } in viewers.values_mut() {
            match outbox {
                Outbox::Bytes(pending) if !afresh && pending.len() + shown.len() <= PENDING => {
                    pending.extend_from_slice(&shown);
                }
                Outbox::Bytes(_) => *outbox = Outbox::Screen,
                Outbox::Screen | Outbox::ScreenOfKnownSize => (),
            }
        }
        self.changed.notify_all();
        answers
    }

    /// Notifies the viewers that the program has exited. Waits until all of them have left, at most
    /// `limit`.
    pub fn end(&self, end: ChildExit, limit: Duration) {
        let deadline = Deadline::after(limit);
        let mut state = self.state();
        state.end = Some(end);
        self.changed.notify_all();
        while !state.viewers.is_empty() && !deadline.expired() {
            let waited = self.changed.wait_timeout(state, deadline.remaining());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns the last `lines` lines up to the last non-blank one.
    pub fn lines(&self, lines: usize) -> String {
        self.state().screen.lines(lines)
    }

    /// Returns the line of the screen in which the program may ask for input.
    pub fn prompt_line(&self) -> Option<String> {
        self.state().screen.prompt_line()
    }

    /// Writes keys to the terminal. Blocks while the program does not read its input.
    pub fn type_in(&self, keys: &[u8]) -> io::Result<()> {
        self.master.write_all(keys)
    }

    /// Writes input in the encoding of the terminal's current modes. Blocks as
    /// [`Broadcaster::type_in`] does.
    pub(super) fn input(&self, input: &Input) -> io::Result<()> {
        let bytes = input.bytes(self.state().screen.modes());
        self.type_in(&bytes)
    }

    /// Attaches a viewer. The program's terminal takes the size of the viewer's, in rows and
    /// columns.
    pub(super) fn join(&self, size: (u16, u16)) -> ViewerId {
        let mut state = self.state();
        let id = state.add(Some(size));
        self.resize_to(&mut state, size);
        id
    }

    /// Adds a viewer that does not change the terminal.
    pub(super) fn follow(&self) -> ViewerId {
        self.state().add(None)
    }

    /// Handles a new size of a viewer's terminal. The latest size wins; other viewers see the part
    /// that fits.
    pub(super) fn resize(&self, id: ViewerId, size: (u16, u16)) {
        let mut state = self.state();
        if let Some(viewer) = state.viewers.get_mut(&id) {
            viewer.size = Some(size);
            self.resize_to(&mut state, size);
        }
    }

    fn resize_to(&self, state: &mut BroadcastState, size: (u16, u16)) {
        let Some((rows, cols)) = state.screen.resize(size) else { return };
        // If this fails, the program only draws for a wrong size.
        let _ = self.master.resize(rows, cols);
        state.viewers.values_mut().for_each(|viewer| viewer.outbox = Outbox::Screen);
        self.changed.notify_all();
    }

    /// Waits for the next message to a viewer; `None` once the viewer has left.
    pub(super) fn next(&self, id: ViewerId) -> Option<LauncherMessage> {
        let mut state = self.state();
        loop {
            let BroadcastState { screen, viewers, end, .. } = &mut *state;
            let ViewerState { size, outbox } = viewers.get_mut(&id)?;
            match outbox {
                Outbox::Screen if size.is_none() => {
                    *outbox = Outbox::ScreenOfKnownSize;
                    let (rows, cols) = screen.size();
                    return Some(LauncherMessage::Size { rows, cols });
                }
                Outbox::Screen | Outbox::ScreenOfKnownSize => {
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

    /// Removes a viewer; idempotent. The terminal takes the size of the one that was attached last
    /// among those that stay. After the last one it returns to its own size, for which its log is
    /// drawn.
    pub(super) fn leave(&self, id: ViewerId) {
        let mut state = self.state();
        let was_attached = state.viewers.remove(&id).is_some_and(|viewer| viewer.size.is_some());
        if was_attached && state.end.is_none() {
            let size = state.viewers.values().rev().find_map(|viewer| viewer.size);
            self.resize_to(&mut state, size.unwrap_or(self.home));
        }
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, BroadcastState> {
        // The code under this lock that may panic is the terminal emulator, and `LiveScreen`
        // catches its panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::child::open_pty;

    const HOME: (u16, u16) = (6, 30);

    /// A terminal of size [`HOME`] whose program has printed `hello`.
    fn broadcaster() -> Broadcaster {
        let (master, _slave) = open_pty(HOME.0, HOME.1).expect("a pty");
        let made = Broadcaster::new(master, HOME);
        made.feed(b"hello");
        made
    }

    fn output(message: Option<LauncherMessage>) -> String {
        match message {
            Some(LauncherMessage::Output(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
            other => panic!("not output: {other:?}"),
        }
    }

    fn size(rows: u16, cols: u16) -> Option<LauncherMessage> {
        Some(LauncherMessage::Size { rows, cols })
    }

    #[test]
    fn follower_gets_the_size_before_each_whole_screen() {
        let terminal = broadcaster();
        let follower = terminal.follow();
        assert_eq!(terminal.next(follower), size(6, 30));
        assert!(output(terminal.next(follower)).contains("hello"));
        terminal.feed(b" world");
        assert_eq!(output(terminal.next(follower)), " world");
        let viewer = terminal.join((8, 40));
        assert_eq!(terminal.next(follower), size(8, 40), "another size");
        assert!(output(terminal.next(follower)).contains("hello world"));
        terminal.feed(b"\x1b[?1049h");
        assert_eq!(terminal.next(follower), size(8, 40), "another screen");
        assert!(output(terminal.next(follower)).starts_with("\x18\x1b[?1049h"));
        terminal.feed(&vec![b'x'; PENDING + 1]);
        assert_eq!(terminal.next(follower), size(8, 40), "it fell behind");
        terminal.leave(viewer);
        assert_eq!(terminal.next(follower), size(6, 30), "resized between size and screen");
        output(terminal.next(follower));
    }

    #[test]
    fn pt_10_queries_are_answered_once_with_any_number_of_viewers() {
        let terminal = broadcaster();
        let mut viewers = Vec::new();
        for _ in 0..3 {
            assert_eq!(terminal.feed(b"\x1b[2;1Hab\x1b[6n\x1b]11;"), b"\x1b[2;3R");
            assert_eq!(terminal.feed(b"?\x07\x1b[1mc"), b"\x1b]11;rgb:0000/0000/0000\x07");
            for viewer in &viewers {
                assert_eq!(output(terminal.next(*viewer)), "\x1b[2;1Hab\x1b[1mc");
            }
            let viewer = terminal.join(HOME);
            assert!(output(terminal.next(viewer)).contains("hello"));
            viewers.push(viewer);
        }
    }

    #[test]
    fn follower_does_not_change_the_size() {
        let terminal = broadcaster();
        let first = terminal.follow();
        assert_eq!(terminal.state().screen.size(), HOME);
        let viewer = terminal.join((8, 40));
        let second = terminal.follow();
        terminal.leave(first);
        assert_eq!(terminal.state().screen.size(), (8, 40));
        terminal.leave(viewer);
        assert_eq!(terminal.state().screen.size(), HOME, "a follower is no viewer that stays");
        terminal.leave(second);
        assert_eq!(terminal.state().screen.size(), HOME);
    }

    #[test]
    fn pt_12_terminal_takes_the_size_of_a_viewer_that_stays() {
        let terminal = broadcaster();
        let (large, small) = (terminal.join((9, 60)), terminal.join((6, 20)));
        let follower = terminal.follow();
        terminal.resize(large, (8, 50));
        assert_eq!(terminal.state().screen.size(), (8, 50), "the latest size wins");
        terminal.resize(small, (5, 21));
        terminal.leave(small);
        assert_eq!(terminal.state().screen.size(), (8, 50), "that of the one that stays");
        terminal.resize(small, (5, 21));
        terminal.leave(small);
        assert_eq!(terminal.state().screen.size(), (8, 50), "nothing more from one that has left");
        terminal.leave(large);
        assert_eq!(terminal.state().screen.size(), HOME);
        terminal.leave(follower);
    }

    #[test]
    fn attached_viewer_gets_no_sizes() {
        let terminal = broadcaster();
        let viewer = terminal.join((8, 40));
        assert!(output(terminal.next(viewer)).contains("hello"));
        terminal.resize(viewer, (9, 41));
        assert!(output(terminal.next(viewer)).contains("hello"));
        let exit = ChildExit { code: Some(0), signal: None };
        terminal.feed(b"bye");
        terminal.end(exit, Duration::ZERO);
        assert_eq!(output(terminal.next(viewer)), "bye");
        assert_eq!(terminal.next(viewer), Some(LauncherMessage::Ended(exit)));
        terminal.leave(viewer);
        assert_eq!(terminal.next(viewer), None);
    }
}
