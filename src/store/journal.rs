//! The team's journal: one JSON line per event. It is only appended to, and readable while it is
//! written.

use serde::de::IgnoredAny;

use super::error::StoreError;
use super::layout::Layout;
use super::teams::TeamStore;
use crate::model::event::{Event, Note};
use crate::model::time::Timestamp;
use crate::sys::{clock, failpoint, fs, rand};

/// Bytes of the journal to read at a time.
const CHUNK: u64 = 1024 * 1024;
/// Bytes at the end of the journal to read first when looking for recent events.
const TAIL: u64 = 64 * 1024;
/// Lines may be this far out of order, in milliseconds, since writers take the time before they
/// append.
const DISORDER_MS: u64 = 1000;

impl TeamStore {
    /// Appends an event and returns it with its id and time.
    pub(crate) fn record(&self, note: Note) -> Result<Event, StoreError> {
        append(&self.layout, note)
    }

    /// Appends several events at once and returns them in order.
    pub(crate) fn record_all(&self, notes: Vec<Note>) -> Result<Vec<Event>, StoreError> {
        append_all(&self.layout, notes)
    }

    /// Returns the events from byte `offset` on, and the offset for the next call. Skips lines of a
    /// newer phalanx that do not parse, and leaves a line that is still being written for the next
    /// call.
    pub(crate) fn events_from(&self, offset: u64) -> Result<(Vec<Event>, u64), StoreError> {
        let (mut events, mut at) = (Vec::new(), offset);
        loop {
            let bytes = fs::read_range(&self.layout.journal(), at, CHUNK)?;
            let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else {
                return Ok((events, at));
            };
            let whole = &bytes[..=end];
            events.extend(
                whole.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()),
            );
            at += whole.len() as u64;
        }
    }

    /// Returns the number of lines that are not JSON: the remains of interrupted writes.
    pub(crate) fn torn_lines(&self) -> Result<usize, StoreError> {
        let (mut torn, mut at) = (0, 0);
        loop {
            let bytes = fs::read_range(&self.layout.journal(), at, CHUNK)?;
            let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else {
                return Ok(torn + usize::from(!bytes.is_empty()));
            };
            let is_torn = |line: &&[u8]| serde_json::from_slice::<IgnoredAny>(line).is_err();
            torn += bytes[..end].split(|b| *b == b'\n').filter(is_torn).count();
            at += end as u64 + 1;
        }
    }

    /// Returns the events since `then` and possibly some earlier ones. Reads only as much of the
    /// journal's end as it needs.
    pub(crate) fn events_since(&self, then: Timestamp) -> Result<Vec<Event>, StoreError> {
        let end = fs::len(&self.layout.journal())?.unwrap_or_default();
        let mut tail = TAIL;
        loop {
            let from = end.saturating_sub(tail);
            // If `from` is inside a line, the rest of that line does not parse and is skipped.
            let (events, _) = self.events_from(from)?;
            let reaches = events.first().is_some_and(|first| first.at.plus_ms(DISORDER_MS) < then);
            if from == 0 || reaches {
                return Ok(events);
            }
            tail = tail.saturating_mul(4);
        }
    }
}

/// Appends an event to the journal of this layout's team.
pub(super) fn append(layout: &Layout, note: Note) -> Result<Event, StoreError> {
    let mut events = append_all(layout, vec![note])?;
    Ok(events.swap_remove(0))
}

fn append_all(layout: &Layout, notes: Vec<Note>) -> Result<Vec<Event>, StoreError> {
    let events: Vec<Event> = notes.into_iter().map(|note| event(layout, note)).collect();
    let line =
        |event| serde_json::to_vec(event).expect("an event has string keys and can be written");
    let lines: Vec<Vec<u8>> = events.iter().map(line).collect();
    if !lines.is_empty() {
        fs::append_lines(&layout.journal(), &lines)?;
        failpoint::hit("journal.appended");
    }
    Ok(events)
}

fn event(layout: &Layout, note: Note) -> Event {
    Event {
        id: note.id.unwrap_or_else(rand::uuid),
        cause: note.cause,
        at: Timestamp(clock::now_ms()),
        team: layout.team().clone(),
        event: note.event,
        member: note.member,
        task: note.task,
        detail: note.detail,
    }
}
