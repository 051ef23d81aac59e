//! The types of a patch. Names and lines are raw bytes, because git does not require UTF-8.

/// The changes that `git diff --patch` printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    pub files: Vec<FilePatch>,
}

/// The change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePatch {
    /// Name before the change; `None` for an added file.
    pub old: Option<Vec<u8>>,
    /// Name after the change; `None` for a deleted file.
    pub new: Option<Vec<u8>>,
    pub change: ChangeKind,
    /// Blob ids, as long as git printed them. A file without changed content has none.
    pub old_blob: Option<String>,
    pub new_blob: Option<String>,
    pub old_mode: Option<u32>,
    pub new_mode: Option<u32>,
    /// Percentage of the content that a renamed, copied or rewritten file kept.
    pub similarity: Option<u8>,
    pub is_binary: bool,
    pub hunks: Vec<Hunk>,
    pub added: usize,
    pub removed: usize,
}

/// The kind of a file's change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Added,
    Deleted,
    /// The content, the mode or both are different.
    Modified,
    Renamed,
    Copied,
    /// The file has an unresolved conflict; git prints its name only.
    Unmerged,
}

/// Consecutive lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub old_start: u32,
    pub old_len: u32,
    pub new_start: u32,
    pub new_len: u32,
    /// The line that git chose as the section's name, for example the head of a function.
    pub section: Vec<u8>,
    pub lines: Vec<PatchLine>,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchLine {
    pub kind: LineKind,
    /// Line number before the change; `None` for an added line.
    pub old: Option<u32>,
    /// Line number after the change; `None` for a removed line.
    pub new: Option<u32>,
    /// The line without its line feed.
    pub text: Vec<u8>,
    /// False for a last line that does not end in a line feed.
    pub has_newline: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Added,
    Removed,
}

/// The mode of a submodule.
const SUBMODULE: u32 = 0o160_000;

impl FilePatch {
    /// Returns the name after the change, or the last name of a deleted file.
    pub fn path(&self) -> &[u8] {
        self.new.as_deref().or(self.old.as_deref()).unwrap_or_default()
    }

    /// Returns true if either side is the commit of a submodule.
    pub(crate) fn is_submodule(&self) -> bool {
        [self.old_mode, self.new_mode].contains(&Some(SUBMODULE))
    }

    /// Returns both modes if they are known and differ.
    pub(crate) fn mode_change(&self) -> Option<(u32, u32)> {
        self.old_mode.zip(self.new_mode).filter(|(old, new)| old != new)
    }
}
