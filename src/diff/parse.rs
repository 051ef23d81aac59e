//! Parser of the patches that `git diff --patch` prints without colours, with the prefixes `a/` and
//! `b/` and with `--submodule=short`. The lines of a hunk are counted by its header, because a
//! removed line such as `-- a/x` looks like the header of a file.

use crate::name;
use crate::patch::{ChangeKind, FilePatch, Hunk, LineKind, Patch, PatchLine};

const FILE: &[u8] = b"diff --git ";
const UNMERGED: &[u8] = b"* Unmerged path ";

/// A patch that does not have the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {fault}")]
pub struct PatchError {
    /// Number of the line, from 1.
    pub line: usize,
    fault: PatchFault,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatchFault {
    #[error("expected the header of a file")]
    NoFile,
    #[error("the header of the file names no file")]
    NoName,
    #[error("unknown line in the header of a file")]
    Header,
    #[error("the file name is not valid")]
    Name,
    #[error("the header of the hunk is not valid")]
    HunkHeader,
    #[error("the hunk has other lines than its header counts")]
    HunkLine,
    #[error("the hunk ends before all lines that its header counts")]
    HunkCut,
    #[error("the patch ends within the line")]
    LineCut,
}

impl Patch {
    /// Parses the output of `git diff --patch`. Empty output is an empty patch.
    pub fn parse(bytes: &[u8]) -> Result<Patch, PatchError> {
        let mut parser = PatchParser { rest: bytes, line: 0 };
        let mut files = Vec::new();
        while let Some(line) = parser.peek() {
            if let Some(names) = line.strip_prefix(FILE) {
                parser.advance()?;
                files.push(parser.file(names)?);
            } else if let Some(name) = line.strip_prefix(UNMERGED) {
                parser.advance()?;
                let name = name::whole_line(name).ok_or(parser.fault(PatchFault::Name))?;
                files.push(FileHeader::default().finish(
                    Some(name.clone()),
                    Some(name),
                    ChangeKind::Unmerged,
                ));
            } else {
                parser.line += 1;
                return Err(parser.fault(PatchFault::NoFile));
            }
        }
        Ok(Patch { files })
    }
}

/// The lines that follow `diff --git`.
#[derive(Default)]
struct FileHeader {
    is_added: bool,
    is_deleted: bool,
    is_copy: bool,
    is_binary: bool,
    /// Names of a rename or a copy.
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    /// Names of the lines `---` and `+++`; the inner `None` stands for `/dev/null`.
    before: Option<Option<Vec<u8>>>,
    after: Option<Option<Vec<u8>>>,
    old_mode: Option<u32>,
    new_mode: Option<u32>,
    old_blob: Option<String>,
    new_blob: Option<String>,
    similarity: Option<u8>,
}

struct PatchParser<'a> {
    rest: &'a [u8],
    /// Number of the last line that was read.
    line: usize,
}

impl<'a> PatchParser<'a> {
    fn fault(&self, fault: PatchFault) -> PatchError {
        PatchError { line: self.line, fault }
    }

    /// Returns the next line without its line feed.
    fn peek(&self) -> Option<&'a [u8]> {
        let end = memchr::memchr(b'\n', self.rest).unwrap_or(self.rest.len());
        (!self.rest.is_empty()).then(|| &self.rest[..end])
    }

    /// Reads a line; `None` at the end of the patch.
    fn advance(&mut self) -> Result<Option<&'a [u8]>, PatchError> {
        let Some(line) = self.peek() else { return Ok(None) };
        self.line += 1;
        self.rest =
            self.rest.get(line.len() + 1..).ok_or_else(|| self.fault(PatchFault::LineCut))?;
        Ok(Some(line))
    }

    /// Reads the file whose first line ended in `names`.
    fn file(&mut self, names: &[u8]) -> Result<FilePatch, PatchError> {
        let start = self.line;
        let mut header = FileHeader::default();
        while let Some(line) = self.peek() {
            if line.starts_with(b"@@ ") || line.starts_with(FILE) || line.starts_with(UNMERGED) {
                break;
            }
            self.advance()?;
            header.read(line).map_err(|fault| self.fault(fault))?;
        }
        let mut file =
            header.named(names).ok_or(PatchError { line: start, fault: PatchFault::NoName })?;
        while self.peek().is_some_and(|line| line.starts_with(b"@@ ")) {
            let hunk = self.hunk()?;
            let count = |kind| hunk.lines.iter().filter(|line| line.kind == kind).count();
            file.added += count(LineKind::Added);
            file.removed += count(LineKind::Removed);
            file.hunks.push(hunk);
        }
        Ok(file)
    }

    fn hunk(&mut self) -> Result<Hunk, PatchError> {
        let header = self.advance()?.unwrap_or_default();
        let mut hunk = hunk_header(header).ok_or(self.fault(PatchFault::HunkHeader))?;
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        let (old_end, new_end) = (old + hunk.old_len, new + hunk.new_len);
        while old < old_end || new < new_end {
            let Some(line) = self.advance()? else {
                return Err(self.fault(PatchFault::HunkCut));
            };
            let (kind, text) = match line.split_first() {
                Some((b' ', text)) => (LineKind::Context, text),
                // With `diff.suppressBlankEmpty`, an empty line has no space before it.
                None => (LineKind::Context, line),
                Some((b'+', text)) => (LineKind::Added, text),
                Some((b'-', text)) => (LineKind::Removed, text),
                Some((b'\\', _)) => {
                    self.end_without_newline(&mut hunk)?;
                    continue;
                }
                Some(_) => return Err(self.fault(PatchFault::HunkLine)),
            };
            let (has_old, has_new) = (kind != LineKind::Added, kind != LineKind::Removed);
            if has_old && old == old_end || has_new && new == new_end {
                return Err(self.fault(PatchFault::HunkLine));
            }
            hunk.lines.push(PatchLine {
                kind,
                old: has_old.then_some(old),
                new: has_new.then_some(new),
                text: text.to_vec(),
                has_newline: true,
            });
            old += u32::from(has_old);
            new += u32::from(has_new);
        }
        if self.peek().is_some_and(|line| line.starts_with(b"\\")) {
            self.advance()?;
            self.end_without_newline(&mut hunk)?;
        }
        Ok(hunk)
    }

    /// Applies `\ No newline at end of file` to the line before it.
    fn end_without_newline(&self, hunk: &mut Hunk) -> Result<(), PatchError> {
        let line = hunk.lines.last_mut().ok_or(self.fault(PatchFault::HunkLine))?;
        line.has_newline = false;
        Ok(())
    }
}

impl FileHeader {
    /// Reads one line of the header.
    fn read(&mut self, line: &[u8]) -> Result<(), PatchFault> {
        let after = |prefix: &str| line.strip_prefix(prefix.as_bytes());
        let whole = |text| name::whole_line(text).map(Some).ok_or(PatchFault::Name);
        if let Some(text) = after("old mode ") {
            self.old_mode = Some(mode(text)?);
        } else if let Some(text) = after("new mode ") {
            self.new_mode = Some(mode(text)?);
        } else if let Some(text) = after("deleted file mode ") {
            self.old_mode = Some(mode(text)?);
            self.is_deleted = true;
        } else if let Some(text) = after("new file mode ") {
            self.new_mode = Some(mode(text)?);
            self.is_added = true;
        } else if let Some(text) = after("rename from ") {
            self.from = whole(text)?;
        } else if let Some(text) = after("rename to ") {
            self.to = whole(text)?;
        } else if let Some(text) = after("copy from ") {
            self.from = whole(text)?;
            self.is_copy = true;
        } else if let Some(text) = after("copy to ") {
            self.to = whole(text)?;
        } else if let Some(text) = after("similarity index ") {
            self.similarity = Some(percentage(text)?);
        } else if let Some(text) = after("dissimilarity index ") {
            self.similarity = Some(100 - percentage(text)?);
        } else if let Some(text) = after("index ") {
            self.index(text).ok_or(PatchFault::Header)?;
        } else if let Some(text) = after("--- ") {
            self.before = Some(side(text, b"a/")?);
        } else if let Some(text) = after("+++ ") {
            self.after = Some(side(text, b"b/")?);
        } else if line.starts_with(b"Binary files ") && line.ends_with(b" differ") {
            self.is_binary = true;
        } else {
            return Err(PatchFault::Header);
        }
        Ok(())
    }

    /// Reads `OLD..NEW`, with the mode behind it if that is the same on both sides.
    fn index(&mut self, text: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(text).ok()?;
        let (ids, both) = match text.split_once(' ') {
            Some((ids, both)) => (ids, Some(mode(both.as_bytes()).ok()?)),
            None => (text, None),
        };
        let (old, new) = ids.split_once("..")?;
        let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if both.is_some() {
            (self.old_mode, self.new_mode) = (both, both);
        }
        if !is_id(old) || !is_id(new) {
            return None;
        }
        (self.old_blob, self.new_blob) = (Some(old.to_owned()), Some(new.to_owned()));
        Some(())
    }

    /// Returns the file without hunks; `None` if it has no name.
    fn named(mut self, names: &[u8]) -> Option<FilePatch> {
        if let Some((old, new)) = self.from.take().zip(self.to.take()) {
            let change = if self.is_copy { ChangeKind::Copied } else { ChangeKind::Renamed };
            return Some(self.finish(Some(old), Some(new), change));
        }
        let (mut old, mut new) = match (self.before.take(), self.after.take()) {
            (Some(old), Some(new)) => (old, new),
            _ => {
                let name = name::same_pair(names)?;
                (Some(name.clone()), Some(name))
            }
        };
        let change = if self.is_added || old.is_none() {
            old = None;
            ChangeKind::Added
        } else if self.is_deleted || new.is_none() {
            new = None;
            ChangeKind::Deleted
        } else {
            ChangeKind::Modified
        };
        (old.is_some() || new.is_some()).then(|| self.finish(old, new, change))
    }

    fn finish(self, old: Option<Vec<u8>>, new: Option<Vec<u8>>, change: ChangeKind) -> FilePatch {
        FilePatch {
            old,
            new,
            change,
            old_blob: self.old_blob,
            new_blob: self.new_blob,
            old_mode: self.old_mode,
            new_mode: self.new_mode,
            similarity: self.similarity,
            is_binary: self.is_binary,
            hunks: Vec::new(),
            added: 0,
            removed: 0,
        }
    }
}

/// Returns the name of a line `---` or `+++`; `None` for `/dev/null`.
fn side(text: &[u8], prefix: &[u8]) -> Result<Option<Vec<u8>>, PatchFault> {
    if text == b"/dev/null" {
        return Ok(None);
    }
    let name = name::whole_line(text).ok_or(PatchFault::Name)?;
    let name = name.strip_prefix(prefix).filter(|name| !name.is_empty());
    Ok(Some(name.ok_or(PatchFault::Name)?.to_vec()))
}

fn mode(text: &[u8]) -> Result<u32, PatchFault> {
    let digits = std::str::from_utf8(text).ok().filter(|text| text.len() == 6);
    digits.and_then(|text| u32::from_str_radix(text, 8).ok()).ok_or(PatchFault::Header)
}

fn percentage(text: &[u8]) -> Result<u8, PatchFault> {
    let text = text.strip_suffix(b"%").and_then(|digits| std::str::from_utf8(digits).ok());
    text.and_then(|digits| digits.parse().ok())
        .filter(|value| *value <= 100)
        .ok_or(PatchFault::Header)
}

/// Reads `@@ -START,LEN +START,LEN @@ SECTION`. Returns `None` also if a line number is too large.
fn hunk_header(line: &[u8]) -> Option<Hunk> {
    let rest = line.strip_prefix(b"@@ -")?;
    let (old_start, old_len, rest) = range(rest)?;
    let (new_start, new_len, rest) = range(rest.strip_prefix(b" +")?)?;
    let section = rest.strip_prefix(b" @@")?;
    let section = match section.split_first() {
        Some((b' ', name)) => name,
        Some(_) => return None,
        None => section,
    };
    Some(Hunk {
        old_start,
        old_len,
        new_start,
        new_len,
        section: section.to_vec(),
        lines: Vec::new(),
    })
}

/// Reads `START` or `START,LEN`. The length is 1 by default.
fn range(text: &[u8]) -> Option<(u32, u32, &[u8])> {
    let (start, rest) = number(text)?;
    let (len, rest) = match rest.strip_prefix(b",") {
        Some(rest) => number(rest)?,
        None => (1, rest),
    };
    start.checked_add(len)?;
    Some((start, len, rest))
}

fn number(text: &[u8]) -> Option<(u32, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at(digits);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}
