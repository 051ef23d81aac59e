//! The finished lines of a conversation on their way to the scrollback.

use std::collections::VecDeque;

use crate::line::{Look, StyledLine};

/// Lines of a replayed conversation that are printed.
const REPLAYED: usize = 200;

/// The kind of finished lines. An empty line separates different kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Prompt,
    Text,
    /// Thoughts, tool calls and answers to questions.
    Work,
    Plan,
    EndedTurn,
    Notice,
}

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    /// Lines that are not printed yet.
    lines: VecDeque<StyledLine>,
    /// Notices during a replay, which do not wait for its end.
    notices: VecDeque<StyledLine>,
    last: Option<EntryKind>,
    /// The last lines ended a message: an empty line follows also before the same kind.
    is_closed: bool,
    /// The replay has ended; until then, lines are held back.
    is_live: bool,
    has_dropped: bool,
}

impl Transcript {
    /// Adds finished lines.
    pub(crate) fn commit(&mut self, kind: EntryKind, lines: impl IntoIterator<Item = StyledLine>) {
        if !self.is_live && kind == EntryKind::Notice {
            self.notices.extend(lines);
            return;
        }
        let mut lines = lines.into_iter().peekable();
        let Some(first) = lines.peek() else { return };
        if self.needs_gap(kind) && !first.is_empty() {
            self.lines.push_back(StyledLine::default());
        }
        self.last = Some(kind);
        self.is_closed = false;
        self.lines.extend(lines);
        while !self.is_live && self.lines.len() > REPLAYED {
            self.lines.pop_front();
            self.has_dropped = true;
        }
    }

    /// An empty line comes before lines of this kind.
    pub(crate) fn needs_gap(&self, kind: EntryKind) -> bool {
        self.last.is_some_and(|last| last != kind || self.is_closed)
    }

    /// Lines were added, now or earlier.
    pub(crate) fn has_entries(&self) -> bool {
        self.last.is_some()
    }

    /// Ends a message.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
    }

    pub(crate) fn is_replay(&self) -> bool {
        !self.is_live
    }

    /// The replay is over: its last lines can be printed.
    pub(crate) fn end_replay(&mut self) {
        self.is_live = true;
        if std::mem::take(&mut self.has_dropped) {
            self.lines.push_front(StyledLine::new(Look::DIM, "… earlier conversation not shown"));
        }
    }

    /// Returns the lines to print now.
    pub(crate) fn take(&mut self) -> VecDeque<StyledLine> {
        let mut lines = std::mem::take(&mut self.notices);
        if self.is_live {
            lines.append(&mut self.lines);
        }
        lines
    }
}
