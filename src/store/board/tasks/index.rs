//! The board index: a copy of the task files of a large board, so that a file that has not changed
//! needs one `stat` instead of a read. It is a cache, which may be deleted at any time; a failure
//! to use it is not reported.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::error::StoreError;
use crate::team::TeamStore;
use model::board::Board;
use model::board::task::Task;
use model::id::TaskId;
use sys::fs::{self, FileStamp, StampDir, Sync};
use sys::{env, parallel};

/// Number of tasks from which the index, and a second thread, is worth its cost.
const LARGE_BOARD: usize = 512;
/// Time since its last change after which a file may be in the index, in milliseconds. A stamp may
/// hide a second change within the resolution of the file system's clock, which is at most 2 s
/// (FAT).
const SETTLED_MS: u64 = 3000;
/// Largest index that is read, in bytes.
const MAX_INDEX: u64 = 1 << 30;

/// A copy of a task file.
#[derive(Debug, Clone)]
struct IndexEntry<'i> {
    id: TaskId,
    /// The stamp of the file before it was read.
    stamp: FileStamp,
    /// The task is completed or cancelled.
    is_closed: bool,
    bytes: Cow<'i, [u8]>,
}

/// The tasks to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BoardScope {
    All,
    /// Tasks that are neither completed nor cancelled.
    Open,
}

/// The index as it was read, and what decides which of its entries count.
struct BoardIndex<'i> {
    dir: StampDir,
    /// In ascending order of ids.
    entries: Vec<IndexEntry<'i>>,
    now_ms: u64,
}

/// A part of the board, and the entries of a new index.
#[derive(Default)]
struct BoardPart<'i> {
    tasks: Vec<(TaskId, Task)>,
    unreadable: BTreeSet<TaskId>,
    entries: Vec<IndexEntry<'i>>,
}

impl TeamStore {
    /// Reads the tasks with these ids, which are in ascending order; those of a large board through
    /// the index. Writes the index again if many files had to be read.
    pub(super) fn read_tasks(
        &self,
        ids: &[TaskId],
        scope: BoardScope,
        now_ms: u64,
    ) -> Result<Board, StoreError> {
        let (path, header) = (self.layout.board_index(), header());
        let dir = if ids.len() < LARGE_BOARD || header.is_empty() {
            None
        } else {
            StampDir::open(&self.layout.tasks())
        };
        let Some(dir) = dir else { return Ok(self.read_part(ids, scope, None)?.into_board()) };
        let file = fs::refuse_link(&self.layout.board()).and_then(|()| fs::read(&path, MAX_INDEX));
        let file = file.ok().flatten().unwrap_or_default();
        let index = BoardIndex { dir, entries: parse(&file, &header), now_ms };
        let threads = parallel::cores();
        let chunks: Vec<&[TaskId]> = ids.chunks(ids.len().div_ceil(threads)).collect();
        let read = parallel::parallel_map(&chunks, threads, |part| {
            self.read_part(part, scope, Some(&index))
        });
        let mut whole = BoardPart::default();
        for part in read {
            whole.append(part?);
        }
        let is_new = |entry: &&IndexEntry| matches!(entry.bytes, Cow::Owned(_));
        if whole.entries.iter().filter(is_new).count() > ids.len() / 32 {
            self.write_index(&header, &whole.entries);
        }
        Ok(whole.into_board())
    }

    fn read_part<'i>(
        &self,
        ids: &[TaskId],
        scope: BoardScope,
        index: Option<&BoardIndex<'i>>,
    ) -> Result<BoardPart<'i>, StoreError> {
        let expected = if scope == BoardScope::All { ids.len() } else { 0 };
        let mut part = BoardPart { tasks: Vec::with_capacity(expected), ..BoardPart::default() };
        let is_wanted = |is_closed: bool| scope == BoardScope::All || !is_closed;
        let mut known = index.map_or(&[][..], |index| &index.entries);
        for &id in ids {
            while known.first().is_some_and(|entry| entry.id < id) {
                known = &known[1..];
            }
            // The stamp is taken before the file is read: a change in between makes it obsolete.
            let stamp = index.and_then(|index| index.settled_stamp(id));
            let entry = known.first().filter(|entry| entry.id == id && Some(entry.stamp) == stamp);
            if let Some(entry) = entry.filter(|entry| !is_wanted(entry.is_closed)) {
                part.entries.push(entry.clone());
                continue;
            }
            if let Some(entry) = entry
                && let Some(task) = Task::quick(id, &entry.bytes)
            {
                part.tasks.push((id, task));
                part.entries.push(entry.clone());
                continue;
            }
            match self.task_and_bytes(id) {
                Ok(Some((task, bytes))) => {
                    let is_closed = task.state.frees_dependants();
                    if is_wanted(is_closed) {
                        part.tasks.push((id, task));
                    }
                    if let (Some(stamp), Some(mut bytes)) = (stamp, bytes) {
                        bytes.shrink_to_fit();
                        let bytes = Cow::Owned(bytes);
                        part.entries.push(IndexEntry { id, stamp, is_closed, bytes });
                    }
                }
                Ok(None) => {}
                Err(e) if e.is_about_content() => drop(part.unreadable.insert(id)),
                Err(e) => return Err(e),
            }
        }
        Ok(part)
    }

    fn write_index(&self, header: &[u8], entries: &[IndexEntry]) {
        let mut file = header.to_vec();
        for IndexEntry { id, stamp, is_closed, bytes } in entries {
            let FileStamp { ino, len, mtime, ctime } = *stamp;
            let size = bytes.len() as u64;
            for number in [id.0, ino, len, mtime, ctime, u64::from(*is_closed), size] {
                file.extend_from_slice(&number.to_le_bytes());
            }
            file.extend_from_slice(bytes);
        }
        let (dir, path) = (self.layout.board(), self.layout.board_index());
        // Does not create the directory above, which would bring a deleted team back.
        if fs::create_dir_exclusive(&dir).is_ok() && fs::refuse_link(&dir).is_ok() {
            // Without a lock: at worst this removes the temporary file of another writer, whose
            // rename then fails.
            fs::sweep_temporary(&path);
            let _ = fs::replace_if(&path, &file, Sync::Nothing, || true);
        }
    }
}

impl BoardIndex<'_> {
    /// Returns the stamp of a task file; `None` if the file changed too recently to be in the
    /// index.
    fn settled_stamp(&self, id: TaskId) -> Option<FileStamp> {
        let stamp = self.dir.stamp(&format!("{id}.json"))?;
        let changed_ms = stamp.ctime / 1_000_000;
        (changed_ms.saturating_add(SETTLED_MS) <= self.now_ms).then_some(stamp)
    }
}

impl<'i> BoardPart<'i> {
    fn append(&mut self, mut next: BoardPart<'i>) {
        if self.tasks.is_empty() {
            std::mem::swap(&mut self.tasks, &mut next.tasks);
            std::mem::swap(&mut self.entries, &mut next.entries);
        }
        self.tasks.append(&mut next.tasks);
        self.entries.append(&mut next.entries);
        self.unreadable.append(&mut next.unreadable);
    }

    fn into_board(self) -> Board {
        let tasks = self.tasks.into_iter().collect();
        Board { tasks, unreadable: self.unreadable, ..Board::default() }
    }
}

/// Returns the first line of an index that was written since the system started; empty if the
/// system cannot tell. The index is not synced, so a crash of the system may leave it incomplete.
fn header() -> Vec<u8> {
    let boot = env::boot_id();
    if boot.is_empty() { Vec::new() } else { format!("phalanx board 1 {boot}\n").into_bytes() }
}

/// Returns the entries; none if the file is not in the expected form.
fn parse<'i>(file: &'i [u8], header: &[u8]) -> Vec<IndexEntry<'i>> {
    let mut entries: Vec<IndexEntry> = Vec::new();
    let Some(mut rest) = file.strip_prefix(header) else { return entries };
    while !rest.is_empty() {
        let Some((entry, after)) = parse_entry(rest) else { return Vec::new() };
        if entries.last().is_some_and(|last| last.id >= entry.id) {
            return Vec::new();
        }
        entries.push(entry);
        rest = after;
    }
    entries
}

fn parse_entry(mut rest: &[u8]) -> Option<(IndexEntry<'_>, &[u8])> {
    let mut numbers = [0; 7];
    for number in &mut numbers {
        let (bytes, after) = rest.split_first_chunk()?;
        (*number, rest) = (u64::from_le_bytes(*bytes), after);
    }
    let [id, ino, len, mtime, ctime, closed, size] = numbers;
    let (bytes, after) = rest.split_at_checked(usize::try_from(size).ok()?)?;
    let stamp = FileStamp { ino, len, mtime, ctime };
    let (id, is_closed, bytes) = (TaskId(id), closed != 0, Cow::Borrowed(bytes));
    Some((IndexEntry { id, stamp, is_closed, bytes }, after))
}

#[cfg(test)]
mod tests;
