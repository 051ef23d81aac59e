//! The team's journal: one line per event, appended, never rewritten, readable while it is written.

use super::error::StoreError;
use super::layout::Layout;
use super::teams::TeamStore;
use crate::model::event::{Event, Note};
use crate::model::time::Timestamp;
use crate::sys::{clock, failpoint, fs, rand};

/// How much of the journal is read in one go.
const CHUNK: u64 = 1024 * 1024;

impl TeamStore {
    /// Writes an event; gives it back with its id and time.
    pub(crate) fn record(&self, note: Note) -> Result<Event, StoreError> {
        append(&self.layout, note)
    }

    /// The events from byte `offset` on, and where to go on next time. Lines of a newer phalanx that cannot be read
    /// are passed over; a line that is still being written is left for the next time.
    pub(crate) fn events_from(&self, offset: u64) -> Result<(Vec<Event>, u64), StoreError> {
        let (mut events, mut at) = (Vec::new(), offset);
        loop {
            let bytes = fs::read_range(&self.layout.journal(), at, CHUNK)?;
            let Some(end) = bytes.iter().rposition(|b| *b == b'\n') else { return Ok((events, at)) };
            let whole = &bytes[..=end];
            events.extend(whole.split(|b| *b == b'\n').filter_map(|line| serde_json::from_slice(line).ok()));
            at += whole.len() as u64;
        }
    }
}

/// Writes an event to the journal of the team that lies there.
pub(super) fn append(layout: &Layout, note: Note) -> Result<Event, StoreError> {
    let event = Event {
        id: note.id.unwrap_or_else(rand::uuid),
        cause: note.cause,
        at: Timestamp(clock::now_ms()),
        team: layout.team().clone(),
        event: note.event,
        member: note.member,
        task: note.task,
        detail: note.detail,
    };
    let line = serde_json::to_vec(&event).expect("an event has string keys and can be written");
    fs::append_line(&layout.journal(), &line)?;
    failpoint::hit("journal.appended");
    Ok(event)
}
