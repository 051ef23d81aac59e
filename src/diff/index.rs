//! The rows of a view by their numbers: sums over the lengths of files and hunks, so that only
//! visible rows are built.

use crate::annotation::DiffSide;
use crate::patch::{Hunk, LineKind, Patch, PatchLine};

/// A place in a patch, in the order of display. A missing part stands for what is above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct DiffPlace {
    pub(crate) file: Option<usize>,
    pub(crate) hunk: Option<usize>,
    pub(crate) line: Option<usize>,
}

impl DiffPlace {
    pub(crate) fn file(file: usize) -> DiffPlace {
        DiffPlace { file: Some(file), hunk: None, line: None }
    }

    pub(crate) fn hunk(file: usize, hunk: usize) -> DiffPlace {
        DiffPlace { hunk: Some(hunk), ..DiffPlace::file(file) }
    }

    pub(crate) fn line(file: usize, hunk: usize, line: usize) -> DiffPlace {
        DiffPlace { line: Some(line), ..DiffPlace::hunk(file, hunk) }
    }
}

/// The object of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiffRow {
    /// A row of an annotation.
    Note {
        note: usize,
        part: usize,
    },
    File(usize),
    Hunk(usize, usize),
    /// The lines before and after the change; both are the same line of the hunk in context.
    Lines {
        file: usize,
        hunk: usize,
        old: Option<usize>,
        new: Option<usize>,
    },
}

/// Consecutive lines of a hunk: context, or removed lines and the added ones that follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeBlock {
    first: usize,
    context: usize,
    removed: usize,
    added: usize,
    /// First row in the side-by-side view; in the unified one a row is a line.
    row: usize,
}

impl ChangeBlock {
    fn height(self) -> usize {
        self.context + self.removed.max(self.added)
    }

    /// Returns the line behind the block.
    fn end(self) -> usize {
        self.first + self.context + self.removed + self.added
    }
}

/// Splits a hunk into blocks.
pub(crate) fn blocks(hunk: &Hunk) -> Vec<ChangeBlock> {
    let mut found: Vec<ChangeBlock> = Vec::new();
    for (at, line) in hunk.lines.iter().enumerate() {
        let row = match found.last_mut() {
            Some(last) => {
                let joins = match line.kind {
                    LineKind::Context => last.context > 0,
                    LineKind::Removed => last.context == 0 && last.added == 0,
                    LineKind::Added => last.context == 0,
                };
                if joins {
                    last.push(line.kind);
                    continue;
                }
                last.row + last.height()
            }
            None => 0,
        };
        let mut block = ChangeBlock { first: at, context: 0, removed: 0, added: 0, row };
        block.push(line.kind);
        found.push(block);
    }
    found
}

impl ChangeBlock {
    fn push(&mut self, kind: LineKind) {
        match kind {
            LineKind::Context => self.context += 1,
            LineKind::Removed => self.removed += 1,
            LineKind::Added => self.added += 1,
        }
    }
}

/// Returns the line that replaces this one, or that this one replaces.
pub(crate) fn partner(blocks: &[ChangeBlock], line: usize) -> Option<usize> {
    let block = blocks[..blocks.partition_point(|block| block.first <= line)].last()?;
    let at = line - block.first;
    if at < block.removed {
        (at < block.added).then_some(line + block.removed)
    } else {
        let at = at.checked_sub(block.removed)?;
        (at < block.removed && at < block.added).then_some(block.first + at)
    }
}

/// Returns the line of a hunk that has this number on one side.
pub(crate) fn numbered(
    hunk: &Hunk,
    blocks: &[ChangeBlock],
    side: DiffSide,
    number: u32,
) -> Option<usize> {
    let number_of = |line: &PatchLine| match side {
        DiffSide::Old => line.old,
        DiffSide::New => line.new,
    };
    // The first number in a block or behind it; a block without this side is followed by context.
    let starts_after = |block: &ChangeBlock| {
        let skipped = if side == DiffSide::New { block.removed } else { 0 };
        let first = hunk.lines.get(block.first + skipped)?;
        let first = number_of(first).or_else(|| number_of(hunk.lines.get(block.end())?));
        first.filter(|first| *first <= number)
    };
    let after = blocks.partition_point(|block| starts_after(block).is_some());
    // The last of them has the line, unless it lacks this side.
    blocks[..after].iter().rev().take(2).find_map(|block| {
        let lines = hunk.lines.get(block.first..block.end())?;
        let skipped = if side == DiffSide::New { block.removed } else { 0 };
        let first = number_of(lines.get(skipped)?)?;
        let at = skipped + usize::try_from(number.checked_sub(first)?).ok()?;
        (number_of(lines.get(at)?) == Some(number)).then_some(block.first + at)
    })
}

/// Returns the lines of a row in the side-by-side view.
fn pair(blocks: &[ChangeBlock], row: usize) -> (Option<usize>, Option<usize>) {
    let Some(block) = blocks[..blocks.partition_point(|block| block.row <= row)].last() else {
        return (None, None);
    };
    let at = row - block.row;
    if block.context > 0 {
        return (Some(block.first + at), Some(block.first + at));
    }
    let old = (at < block.removed).then_some(block.first + at);
    (old, (at < block.added).then_some(block.first + block.removed + at))
}

/// Returns the row of a line in the side-by-side view.
fn split_row(blocks: &[ChangeBlock], line: usize) -> usize {
    let Some(block) = blocks[..blocks.partition_point(|block| block.first <= line)].last() else {
        return 0;
    };
    let at = line - block.first;
    block.row + if at >= block.removed { at - block.removed } else { at }
}

/// An annotation at its place, with its number of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedNote {
    pub(crate) note: usize,
    pub(crate) place: DiffPlace,
    pub(crate) height: usize,
}

struct HunkRows {
    /// The row of the header.
    start: usize,
    /// Annotations, each with the row of its line within the hunk.
    notes: Vec<(usize, PlacedNote)>,
}

struct FileRows {
    start: usize,
    is_folded: bool,
    notes: Vec<PlacedNote>,
    hunks: Vec<HunkRows>,
}

/// Numbers all rows of a view.
#[derive(Default)]
pub(crate) struct RowIndex {
    head: Vec<PlacedNote>,
    files: Vec<FileRows>,
    total: usize,
    is_split: bool,
}

/// The blocks of each hunk of each file.
pub(crate) type PatchBlocks = Vec<Vec<Vec<ChangeBlock>>>;

impl RowIndex {
    /// `notes` are in the order of their places.
    pub(crate) fn new(
        patch: &Patch,
        blocks: &PatchBlocks,
        folded: &[bool],
        notes: &[PlacedNote],
        is_split: bool,
    ) -> RowIndex {
        let mut left = notes.iter().copied().peekable();
        let mut index = RowIndex { is_split, ..RowIndex::default() };
        while let Some(note) = left.next_if(|note| note.place.file.is_none()) {
            index.total += note.height;
            index.head.push(note);
        }
        for (at, file) in patch.files.iter().enumerate() {
            let is_folded = folded[at];
            let mut rows =
                FileRows { start: index.total, is_folded, notes: Vec::new(), hunks: Vec::new() };
            index.total += 1;
            while let Some(note) = left.next_if(|note| note.place == DiffPlace::file(at)) {
                if !is_folded {
                    index.total += note.height;
                    rows.notes.push(note);
                }
            }
            for (number, hunk) in file.hunks.iter().enumerate() {
                let blocks = &blocks[at][number];
                let mut part = HunkRows { start: index.total, notes: Vec::new() };
                let is_here = |note: &PlacedNote| {
                    note.place.file == Some(at) && note.place.hunk == Some(number)
                };
                while let Some(note) = left.next_if(is_here) {
                    let line = note.place.line.unwrap_or(0);
                    part.notes.push((if is_split { split_row(blocks, line) } else { line }, note));
                }
                // In the side-by-side view, an added line may be above a removed one.
                part.notes.sort_by_key(|(row, _)| *row);
                if !is_folded {
                    let lines = if is_split {
                        blocks.last().map_or(0, |block| block.row + block.height())
                    } else {
                        hunk.lines.len()
                    };
                    let notes: usize = part.notes.iter().map(|(_, note)| note.height).sum();
                    index.total += 1 + lines + notes;
                    rows.hunks.push(part);
                }
            }
            index.files.push(rows);
        }
        index
    }

    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Returns the object of a row; `None` behind the last one.
    pub(crate) fn locate(
        &self,
        patch: &Patch,
        blocks: &PatchBlocks,
        row: usize,
    ) -> Option<DiffRow> {
        if row >= self.total {
            return None;
        }
        let in_notes = |notes: &[PlacedNote], mut at: usize| {
            for note in notes {
                if at < note.height {
                    return Ok(DiffRow::Note { note: note.note, part: at });
                }
                at -= note.height;
            }
            Err(at)
        };
        let after = self.files.partition_point(|file| file.start <= row);
        let Some(file) = after.checked_sub(1) else { return in_notes(&self.head, row).ok() };
        let rows = &self.files[file];
        let hunk = rows.hunks.partition_point(|hunk| hunk.start <= row);
        let Some(hunk) = hunk.checked_sub(1) else {
            return match (row - rows.start).checked_sub(1) {
                None => Some(DiffRow::File(file)),
                Some(at) => in_notes(&rows.notes, at).ok(),
            };
        };
        let Some(at) = (row - rows.hunks[hunk].start).checked_sub(1) else {
            return Some(DiffRow::Hunk(file, hunk));
        };
        let mut before = 0;
        for (line, note) in &rows.hunks[hunk].notes {
            let start = line + 1 + before;
            if at < start {
                break;
            }
            if at < start + note.height {
                return Some(DiffRow::Note { note: note.note, part: at - start });
            }
            before += note.height;
        }
        let at = at - before;
        let (old, new) = if self.is_split {
            pair(&blocks[file][hunk], at)
        } else {
            let kind = patch.files[file].hunks[hunk].lines.get(at)?.kind;
            let here = Some(at);
            (here.filter(|_| kind != LineKind::Added), here.filter(|_| kind != LineKind::Removed))
        };
        Some(DiffRow::Lines { file, hunk, old, new })
    }

    /// Returns the row of a place; in a folded file that of its header.
    pub(crate) fn row_of(&self, blocks: &PatchBlocks, place: DiffPlace) -> usize {
        let Some((file, rows)) = place.file.and_then(|at| Some((at, self.files.get(at)?))) else {
            return 0;
        };
        let hunk = place.hunk.and_then(|at| Some((at, rows.hunks.get(at)?)));
        let Some((number, hunk)) = hunk.filter(|_| !rows.is_folded) else { return rows.start };
        let Some(line) = place.line else { return hunk.start };
        let line = if self.is_split { split_row(&blocks[file][number], line) } else { line };
        let notes = hunk.notes.iter().filter(|(at, _)| *at < line);
        hunk.start + 1 + line + notes.map(|(_, note)| note.height).sum::<usize>()
    }

    /// Returns the first row of an annotation; `None` in a folded file.
    pub(crate) fn row_of_note(&self, note: usize) -> Option<usize> {
        let within = |start: usize, notes: &[PlacedNote]| {
            let at = notes.iter().position(|placed| placed.note == note)?;
            Some(start + notes[..at].iter().map(|placed| placed.height).sum::<usize>())
        };
        let of_hunk = |hunk: &HunkRows| {
            let at = hunk.notes.iter().position(|(_, placed)| placed.note == note)?;
            let before: usize = hunk.notes[..at].iter().map(|(_, placed)| placed.height).sum();
            Some(hunk.start + 1 + hunk.notes[at].0 + 1 + before)
        };
        within(0, &self.head).or_else(|| {
            self.files.iter().find_map(|file| {
                within(file.start + 1, &file.notes).or_else(|| file.hunks.iter().find_map(of_hunk))
            })
        })
    }
}
