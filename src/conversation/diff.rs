//! Draws the change of a file: its changed lines, each group between one line of context.

use acp::Diff;
use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::line::{Look, StyledLine};

/// Changed lines to show.
const SHOWN: usize = 12;
/// Lines of one side that are compared. Longer texts are one change after their common beginning
/// and end are removed.
const COMPARED: usize = 2000;

/// A change by lines.
pub(crate) struct LineChange {
    pub(crate) added: usize,
    pub(crate) removed: usize,
    rows: Vec<(DiffMark, String)>,
    hidden: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum DiffMark {
    Added,
    Removed,
    Same,
    Skipped,
}

/// Compares both texts. Keeps only the lines that [`LineChange::rows`] shows.
pub(crate) fn compare(diff: &Diff) -> LineChange {
    let old: Vec<&str> = diff.old.as_deref().unwrap_or("").lines().collect();
    let new: Vec<&str> = diff.new.lines().collect();
    let mut change = LineChange { added: 0, removed: 0, rows: Vec::new(), hidden: 0 };
    // The end of the last change in the old text.
    let mut last_end = None;
    for (before, after) in changes(&old, &new) {
        change.removed += before.len();
        change.added += after.len();
        if last_end.is_none_or(|end| end + 1 < before.start) {
            if let Some(end) = last_end {
                change.push(DiffMark::Same, old.get(end).copied());
                if end + 2 < before.start {
                    change.push(DiffMark::Skipped, Some(""));
                }
            }
            change.push(
                DiffMark::Same,
                before.start.checked_sub(1).and_then(|at| old.get(at)).copied(),
            );
        } else if last_end.is_some_and(|end| end < before.start) {
            change.push(DiffMark::Same, old.get(before.start - 1).copied());
        }
        last_end = Some(before.end);
        for line in &old[before] {
            change.push(DiffMark::Removed, Some(line));
        }
        for line in &new[after] {
            change.push(DiffMark::Added, Some(line));
        }
    }
    if let Some(end) = last_end {
        change.push(DiffMark::Same, old.get(end).copied());
    }
    change
}

type Lines = std::ops::Range<usize>;

/// Returns the changed lines of the old and of the new text.
fn changes(old: &[&str], new: &[&str]) -> Vec<(Lines, Lines)> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let ends = old[start..].iter().rev().zip(new[start..].iter().rev());
    let end = ends.take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let (old, new) = (&old[start..old_end], &new[start..new_end]);
    if old.is_empty() && new.is_empty() {
        return Vec::new();
    }
    if old.is_empty() || new.is_empty() || old.len().max(new.len()) > COMPARED {
        return vec![(start..old_end, start..new_end)];
    }
    capture_diff_slices(Algorithm::Myers, old, new)
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }))
        .map(|op| {
            let (before, after) = (op.old_range(), op.new_range());
            (before.start + start..before.end + start, after.start + start..after.end + start)
        })
        .collect()
}

impl LineChange {
    fn push(&mut self, mark: DiffMark, line: Option<&str>) {
        // An empty line of context says nothing.
        let line = line.filter(|line| mark != DiffMark::Same || !line.trim().is_empty());
        let Some(line) = line else { return };
        let is_change = matches!(mark, DiffMark::Added | DiffMark::Removed);
        let shown = self
            .rows
            .iter()
            .filter(|(mark, _)| matches!(mark, DiffMark::Added | DiffMark::Removed));
        if self.hidden > 0 || is_change && shown.count() == SHOWN {
            self.hidden += usize::from(is_change);
        } else {
            self.rows.push((mark, line.to_owned()));
        }
    }

    /// The numbers of added and removed lines.
    pub(crate) fn counts(&self) -> StyledLine {
        StyledLine::new(Look::GREEN, &format!("+{}", self.added))
            .with(Look::PLAIN, " ")
            .with(Look::RED, &format!("−{}", self.removed))
    }

    /// Draws the lines, cut to `room` columns.
    pub(crate) fn rows(&self, room: usize) -> Vec<StyledLine> {
        let rows = self.rows.iter().map(|(mark, line)| match mark {
            DiffMark::Added => StyledLine::new(Look::GREEN, "+ ").with(Look::GREEN, line),
            DiffMark::Removed => StyledLine::new(Look::RED, "- ").with(Look::RED, line),
            DiffMark::Same => StyledLine::new(Look::DIM, "  ").with(Look::DIM, line),
            DiffMark::Skipped => StyledLine::new(Look::DIM, "  ⋯"),
        });
        let more = (self.hidden > 0).then(|| {
            StyledLine::new(Look::DIM, &format!("  … {} more changed lines", self.hidden))
        });
        rows.chain(more).map(|row| row.cut(room)).collect()
    }
}
