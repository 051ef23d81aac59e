//! The places of the lines of a file in a later commit, so that what was said about them can be
//! shown there.

use super::error::WorktreeError;
use super::patch::{compare, diff_tree};
use super::repository::Repository;

/// The changes of one file between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineMoves {
    path: Option<String>,
    /// In order, without lines in common.
    replacements: Vec<Replacement>,
}

/// The place of lines in the later commit, whose numbers begin with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// The lines are the same.
    Same { first: u32, last: u32 },
    /// At least one of the lines was changed, or others were put between them. The range is what
    /// replaced them; for lines that were removed, the line before them.
    Changed { first: u32, last: u32 },
    /// The file is gone.
    Gone,
}

/// Lines that were replaced by others, as the `@@` line of a hunk without context names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Replacement {
    old: LineSpan,
    new: LineSpan,
}

/// Consecutive lines. Without any, `start` is the line before their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LineSpan {
    start: u32,
    count: u32,
}

impl LineSpan {
    /// Returns the number of lines before the span.
    fn before(self) -> u32 {
        if self.count == 0 { self.start } else { self.start.saturating_sub(1) }
    }

    /// Returns the last line of the span; without lines, the line before it.
    fn end(self) -> u32 {
        self.before().saturating_add(self.count)
    }

    /// Reads `LINE,COUNT` or `LINE`.
    fn parse(text: &str) -> Option<LineSpan> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some(LineSpan { start: start.parse().ok()?, count: count.parse().ok()? })
    }
}

impl Replacement {
    /// Reads `@@ -LINE,COUNT +LINE,COUNT @@`.
    fn parse(line: &[u8]) -> Option<Replacement> {
        let line = String::from_utf8_lossy(line.strip_prefix(b"@@ -")?).into_owned();
        let (old, rest) = line.split_once(" +")?;
        let (new, _) = rest.split_once(" @@")?;
        Some(Replacement { old: LineSpan::parse(old)?, new: LineSpan::parse(new)? })
    }

    /// Returns true if it changes one of the lines, or puts others between them.
    fn touches(self, first: u32, last: u32) -> bool {
        match self.old.count {
            0 => first <= self.old.start && self.old.start < last,
            _ => first <= self.old.end() && self.old.start <= last,
        }
    }

    /// Returns the lines that replaced one of its old lines.
    fn replaced(self, line: u32) -> (u32, u32) {
        if self.old.count == self.new.count {
            let same = self.new.start + (line - self.old.start);
            return (same, same);
        }
        // The line before the place of removed lines may be none.
        let first = self.new.start.max(1);
        (first, self.new.end().max(first))
    }
}

impl LineMoves {
    /// Returns the path of the file in the later commit; `None` if it is gone.
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// Returns the place of the lines `first..=last` in the later commit. A file that was emptied
    /// has line 1.
    pub fn follow(&self, first: u32, last: u32) -> Followed {
        if self.path.is_none() {
            return Followed::Gone;
        }
        let last = last.max(first);
        let is_touched = self.replacements.iter().any(|one| one.touches(first, last));
        let (first, last) = (self.place(first).0, self.place(last).1);
        if is_touched {
            Followed::Changed { first, last: last.max(first) }
        } else {
            Followed::Same { first, last }
        }
    }

    /// Counts the old lines that were changed or removed.
    #[cfg(test)]
    pub(crate) fn replaced_lines(&self) -> usize {
        self.replacements.iter().map(|one| one.old.count as usize).sum()
    }

    /// Returns the lines that one line has become.
    fn place(&self, line: u32) -> (u32, u32) {
        let earlier = self.replacements.iter().take_while(|one| one.old.before() < line).last();
        match earlier {
            Some(one) if one.old.count > 0 && line <= one.old.end() => one.replaced(line),
            Some(one) => {
                let moved = line - one.old.end() + one.new.end();
                (moved, moved)
            }
            None => (line, line),
        }
    }
}

impl Repository {
    /// Finds the places of the lines of a file in a later commit. Follows a renamed file.
    ///
    /// # Errors
    /// As [`Repository::patch`].
    pub fn line_moves(&self, from: &str, to: &str, path: &str) -> Result<LineMoves, WorktreeError> {
        let list = |form: &[&str], paths: &[&str]| {
            let form = [&["--raw", "-z", "--full-index"], form].concat();
            Ok::<_, WorktreeError>(entries(&diff_tree(&self.git, &form, from, to, paths)?))
        };
        let is_it = |entry: &RawEntry| entry.paths.first().is_some_and(|old| old == path);
        let mut entry = list(&["--no-renames"], &[path])?.into_iter().find(is_it);
        if entry.as_ref().is_some_and(|entry| entry.status.starts_with('D')) {
            let renames = list(&["--find-renames", "--diff-filter=R"], &[])?;
            let Some(renamed) = renames.into_iter().find(is_it) else {
                return Ok(LineMoves { path: None, replacements: Vec::new() });
            };
            entry = Some(renamed);
        }
        let Some(RawEntry { old, new, paths, .. }) = entry.filter(RawEntry::has_blobs) else {
            return Ok(LineMoves { path: Some(path.to_owned()), replacements: Vec::new() });
        };
        let replacements = if old == new {
            Vec::new()
        } else {
            // Without --text, git shows no lines of a file that it takes for binary.
            let form = ["diff", "--unified=0", "--text"];
            let patch = compare(&self.git, &form, &old, &new, &[])?;
            // A line of the file itself begins with `+` or `-`.
            patch.split(|byte| *byte == b'\n').filter_map(Replacement::parse).collect()
        };
        Ok(LineMoves { path: paths.last().cloned(), replacements })
    }
}

/// A file that differs between two commits.
struct RawEntry {
    is_submodule: bool,
    old: String,
    new: String,
    status: String,
    /// The path before and, for a renamed file, the one after.
    paths: Vec<String>,
}

impl RawEntry {
    /// Returns true if both commits have the file.
    fn has_blobs(&self) -> bool {
        !self.is_submodule && self.status.starts_with(['M', 'T', 'R'])
    }
}

/// Reads `--raw -z`: `:MODE MODE BLOB BLOB STATUS`, then one or two paths.
fn entries(output: &[u8]) -> Vec<RawEntry> {
    let text = String::from_utf8_lossy(output);
    let mut fields = text.split('\0');
    let mut all = Vec::new();
    while let Some(field) = fields.next() {
        let words: Vec<&str> = field.trim_start_matches(':').split(' ').collect();
        let [old_mode, new_mode, old, new, status] = words[..] else { continue };
        let count = if status.starts_with(['R', 'C']) { 2 } else { 1 };
        all.push(RawEntry {
            is_submodule: [old_mode, new_mode].contains(&"160000"),
            old: old.to_owned(),
            new: new.to_owned(),
            status: status.to_owned(),
            paths: fields.by_ref().take(count).map(str::to_owned).collect(),
        });
    }
    all
}
