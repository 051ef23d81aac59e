//! The team's journal: one JSON line per event. It is only appended to, and readable while it is
//! written. A full journal is renamed to replace its one predecessor.

use std::ops::ControlFlow;

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::error::StoreError;
use crate::files::dirs;
use crate::files::layout::TeamLayout;
use crate::shared::SharedTeam;
use database::{LogEntry, LogKind, LogScope, StoredClaim};
use model::board::task::Task;
use model::id::TeamName;
use model::team::event::{Event, EventKind, Note};
use model::time::Timestamp;
use sys::fs::{self, FileId, LineFile};
use sys::lock::Gate;
use sys::{clock, failpoint, rand};

/// Size in bytes at which the journal is renamed and a new one begins.
pub(crate) const FULL: u64 = 16 * 1024 * 1024;
/// Bytes at the end of the journal to read first when looking for recent events.
const TAIL: u64 = 64 * 1024;
/// Lines of the shared store to read at once.
const LINES: u32 = 5000;
/// Lines may be this far out of order, in milliseconds, since writers take the time before they
/// append.
const DISORDER_MS: u64 = 1000;

/// Where a team's journal is stored.
#[derive(Debug, Clone)]
pub(crate) struct LogPlace {
    pub(crate) layout: TeamLayout,
    pub(crate) shared: Option<SharedTeam>,
}

/// A reader of the journal that keeps its position. It reads on after the journal was renamed,
/// replaced or truncated.
#[derive(Debug, Clone)]
pub struct JournalReader {
    place: LogPlace,
    position: Position,
}

/// What a reader has read.
#[derive(Debug, Clone)]
enum Position {
    /// The files of the last read, and the number of bytes read of each. They are not kept open,
    /// since a network file system cannot remove the directory of an open file.
    Files(Vec<(FileId, u64)>),
    /// The position of the last line in the shared store.
    Line(i64),
}

impl JournalReader {
    /// Returns a reader of all events.
    pub(crate) fn at_start(place: LogPlace) -> JournalReader {
        let position =
            if place.shared.is_some() { Position::Line(0) } else { Position::Files(Vec::new()) };
        JournalReader { place, position }
    }

    /// Returns a reader of the events after this call.
    pub(crate) fn at_end(place: LogPlace) -> Result<JournalReader, StoreError> {
        let position = match &place.shared {
            Some(team) => Position::Line(team.database.log_end(team.name(), LogKind::Journal)?),
            None => Position::Files(tail(&place.layout, 0)?),
        };
        Ok(JournalReader { place, position })
    }

    /// Returns the events since the last call. Skips lines that do not parse: events of a newer
    /// phalanx, remains of interrupted writes, and the end of a line if the reader began inside it.
    pub fn read(&mut self) -> Result<Vec<Event>, StoreError> {
        match (&mut self.position, &self.place.shared) {
            (Position::Line(last), Some(team)) => read_lines_after(team, last),
            (Position::Files(positions), _) => read_files(&self.place.layout, positions),
            (Position::Line(_), None) => Ok(Vec::new()),
        }
    }
}

/// Reads the lines after `last`, and advances it.
fn read_lines_after(team: &SharedTeam, last: &mut i64) -> Result<Vec<Event>, StoreError> {
    let mut events = Vec::new();
    loop {
        let scope = LogScope::After { seq: *last, limit: LINES };
        let lines = team.database.log(team.name(), LogKind::Journal, &scope)?;
        events.extend(lines.iter().filter_map(|line| serde_json::from_str(&line.body).ok()));
        *last = lines.last().map_or(*last, |line| line.seq);
        if lines.len() < LINES as usize {
            return Ok(events);
        }
    }
}

/// Reads the files from these positions on, and advances them.
fn read_files(
    layout: &TeamLayout,
    positions: &mut Vec<(FileId, u64)>,
) -> Result<Vec<Event>, StoreError> {
    let (mut events, mut now_at) = (Vec::new(), Vec::new());
    for file in files(layout)? {
        let read = positions.iter().find(|(known, _)| *known == file.id());
        // A file that is shorter than what was read of it was truncated.
        let from = read.map(|(_, at)| *at).filter(|at| *at <= file.size()).unwrap_or_default();
        // Most calls find nothing new in one of the two files.
        let at = if from == file.size() {
            from
        } else {
            file.read_lines(from, |line| {
                events.extend(serde_json::from_slice::<Event>(line));
                ControlFlow::Continue(())
            })?
        };
        now_at.push((file.id(), at));
    }
    *positions = now_at;
    Ok(events)
}

/// Returns the positions before the last `tail` bytes of the files.
fn tail(layout: &TeamLayout, tail: u64) -> Result<Vec<(FileId, u64)>, StoreError> {
    let (mut positions, mut left) = (Vec::new(), tail);
    for file in files(layout)?.into_iter().rev() {
        positions.push((file.id(), file.size().saturating_sub(left)));
        left = left.saturating_sub(file.size());
    }
    Ok(positions)
}

/// Returns the events since `then` and possibly some earlier ones. Reads only as much of the
/// journal's end as it needs.
pub(crate) fn events_since(place: &LogPlace, then: Timestamp) -> Result<Vec<Event>, StoreError> {
    if let Some(team) = &place.shared {
        let scope = LogScope::Since(then.0);
        let lines = team.database.log(team.name(), LogKind::Journal, &scope)?;
        return Ok(lines.iter().filter_map(|l| serde_json::from_str(&l.body).ok()).collect());
    }
    let is_before = |e: &Event| e.at.plus_ms(DISORDER_MS) < then;
    last_of_files(&place.layout, |events| events.first().is_some_and(is_before))
}

/// Returns the last events: as many that `is_enough` accepts them, or all.
pub(crate) fn last_events(
    place: &LogPlace,
    is_enough: impl Fn(&[Event]) -> bool,
) -> Result<Vec<Event>, StoreError> {
    match &place.shared {
        Some(team) => read_lines_after(team, &mut 0),
        None => last_of_files(&place.layout, is_enough),
    }
}

fn last_of_files(
    layout: &TeamLayout,
    is_enough: impl Fn(&[Event]) -> bool,
) -> Result<Vec<Event>, StoreError> {
    let mut bytes = TAIL;
    loop {
        let mut positions = tail(layout, bytes)?;
        let is_all = positions.iter().all(|(_, at)| *at == 0);
        let events = read_files(layout, &mut positions)?;
        if is_all || is_enough(&events) {
            return Ok(events);
        }
        bytes = bytes.saturating_mul(4);
    }
}

/// Returns the number of lines that are not JSON: the remains of interrupted writes.
pub(crate) fn torn_lines(layout: &TeamLayout) -> Result<usize, StoreError> {
    let mut torn = 0;
    for file in files(layout)? {
        let end = file.read_lines(0, |line| {
            torn += usize::from(serde_json::from_slice::<IgnoredAny>(line).is_err());
            ControlFlow::Continue(())
        })?;
        torn += usize::from(end < file.size());
    }
    Ok(torn)
}

/// Returns the journal's files, oldest first.
fn files(layout: &TeamLayout) -> Result<Vec<LineFile>, StoreError> {
    // The current file is opened first. If it is renamed in between, it is also the older one, and
    // the next read finds its successor.
    let current = LineFile::open(&layout.journal())?;
    let older = LineFile::open(&layout.older_journal())?;
    let older = older.filter(|older| current.as_ref().map(LineFile::id) != Some(older.id()));
    Ok(older.into_iter().chain(current).collect())
}

/// Appends events at once and returns them, in order, with their ids and times.
pub(crate) fn append(place: &LogPlace, notes: Vec<Note>) -> Result<Vec<Event>, StoreError> {
    match &place.shared {
        Some(team) => {
            let events = events_of(&place.layout, notes);
            let lines: Vec<LogEntry> = events.iter().map(log_entry).collect();
            if !lines.is_empty() {
                team.database.append_log(team.name(), LogKind::Journal, &lines)?;
            }
            Ok(events)
        }
        None => append_to_file(&place.layout, notes),
    }
}

/// Appends an event that is history only, and ignores a failure. Does not wait for the shared
/// store.
pub(crate) fn append_unconfirmed(place: &LogPlace, note: Note) {
    match &place.shared {
        Some(team) => {
            let lines = [log_entry(&event(&place.layout, note))];
            team.database.post_log(team.name(), LogKind::Journal, &lines);
        }
        None => drop(append_to_file(&place.layout, vec![note])),
    }
}

/// Returns the events of these notes, with ids and the present time.
pub(crate) fn events_of(layout: &TeamLayout, notes: Vec<Note>) -> Vec<Event> {
    notes.into_iter().map(|note| event(layout, note)).collect()
}

/// Returns the line of an event in the shared store.
pub(crate) fn log_entry(event: &Event) -> LogEntry {
    let task = event.task.filter(|_| event.is_about_task()).map(|id| id.0);
    let body = serde_json::to_string(event).expect("an event has string keys and can be written");
    LogEntry { id: event.id.clone(), at: event.at.0, task, body }
}

/// Returns the fields of a claim's event that depend on the task, as a part of a JSON object.
pub(crate) fn claim_line_of_task(task: &Task) -> String {
    let mut begun = task.clone();
    begun.goes_on(String::new());
    let Note { cause, task, detail, .. } = Note::of_task(EventKind::TaskClaimed, &begun);
    fields_of(&json!({ "cause": cause, "task": task, "detail": detail }))
}

/// Returns the other fields of a claim's event.
pub(crate) fn claim_line_of_member(team: &TeamName, claim: &StoredClaim) -> String {
    let StoredClaim { by, at, event: id } = claim;
    let event = EventKind::TaskClaimed;
    fields_of(&json!({ "id": id, "at": at, "team": team, "event": event, "member": by }))
}

/// Returns the fields of an object as JSON text, without the braces.
fn fields_of(object: &Value) -> String {
    let text = object.to_string();
    text[1..text.len() - 1].to_owned()
}

/// Appends events to the journal's file.
pub(crate) fn append_to_file(
    layout: &TeamLayout,
    notes: Vec<Note>,
) -> Result<Vec<Event>, StoreError> {
    let events = events_of(layout, notes);
    let line =
        |event| serde_json::to_vec(event).expect("an event has string keys and can be written");
    let lines: Vec<Vec<u8>> = events.iter().map(line).collect();
    if !lines.is_empty() {
        fs::append_lines(&layout.journal(), &lines)?;
        failpoint::hit("journal.appended");
        let about_tasks = events.iter().zip(&lines).filter(|(event, _)| event.is_about_task());
        let about_tasks: Vec<Vec<u8>> = about_tasks.map(|(_, line)| line.clone()).collect();
        if !about_tasks.is_empty() {
            dirs::make_dirs_of(&layout.task_log())?;
            fs::append_lines(&layout.task_log(), &about_tasks)?;
        }
        // Best effort: the events are recorded, and the next append tries again.
        let _ = rotate(layout);
    }
    Ok(events)
}

/// Renames a full journal. A process that has it open may still append a line to it; readers read
/// both files.
fn rotate(layout: &TeamLayout) -> Result<(), StoreError> {
    let is_full = || fs::len(&layout.journal()).map(|len| len.unwrap_or_default() >= FULL);
    if !is_full()? {
        return Ok(());
    }
    let gate = layout.gate("journal");
    dirs::make_dirs_of(&gate)?;
    // Checked again under the gate: another process may have renamed it meanwhile, and a second
    // rename would replace the full journal with an almost empty one.
    if let Some(_gate) = Gate::try_open(&gate)?
        && is_full()?
    {
        fs::rename(&layout.journal(), &layout.older_journal())?;
    }
    Ok(())
}

/// Returns the present time, as records and events have it.
pub fn now() -> Timestamp {
    Timestamp(clock::now_ms())
}

fn event(layout: &TeamLayout, note: Note) -> Event {
    Event {
        id: note.id.unwrap_or_else(rand::uuid),
        cause: note.cause,
        at: now(),
        team: layout.team().clone(),
        event: note.event,
        member: note.member,
        task: note.task,
        detail: note.detail,
    }
}
