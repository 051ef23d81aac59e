//! The state of a view over one patch.

use std::collections::{HashMap, HashSet};

use model::code::TokenKind;
use ratatui::layout::Size;
use ratatui::style::Style;

use crate::annotation::{Annotation, AnnotationPlace, AnnotationState, DiffSide};
use crate::colors::FileColors;
use crate::glyph;
use crate::help::ViewKey;
use crate::index::{DiffPlace, DiffRow, PatchBlocks, PlacedNote, RowIndex, blocks, numbered};
use crate::patch::{FilePatch, Patch, PatchLine};
use crate::words::WordChanges;

/// From this width on, the list of files is a column at the left.
pub(crate) const LIST_FROM: u16 = 100;
/// From this width on, both sides can be shown beside each other.
pub(crate) const SPLIT_FROM: u16 = 120;
/// From this width on, both sides have room beside the list.
const LIST_AND_SPLIT_FROM: u16 = 160;
/// Compared pairs of lines that are kept.
const COMPARED: usize = 4096;

/// The state of a review view: the patch, the cursor, and what is folded, viewed and searched.
/// [`DiffView::new`] makes one; that of `Default` has no size.
#[derive(Default)]
pub struct DiffView {
    pub(crate) title: String,
    pub(crate) has_color: bool,
    /// Keys that the owner handles, for the help.
    pub(crate) owner_keys: &'static [ViewKey],
    /// Keys for the last row instead of those of the view.
    pub(crate) owner_hints: &'static [&'static str],
    pub(crate) patch: Patch,
    pub(crate) blocks: PatchBlocks,
    pub(crate) folded: Vec<bool>,
    pub(crate) viewed: Vec<bool>,
    pub(crate) notes: Vec<Annotation>,
    pub(crate) note_rows: Vec<Vec<String>>,
    pub(crate) placed: Vec<PlacedNote>,
    pub(crate) index: RowIndex,
    pub(crate) cursor: usize,
    pub(crate) top: usize,
    /// Columns by which the lines are scrolled.
    pub(crate) left: usize,
    /// Set by the last frame: a visible line continues at the right.
    pub(crate) is_cut: bool,
    /// The first line of a range of lines.
    pub(crate) range: Option<DiffPlace>,
    /// The side on which a comment is made where a row has both.
    pub(crate) side: DiffSide,
    pub(crate) is_split: bool,
    pub(crate) shows_words: bool,
    pub(crate) ignores_whitespace: bool,
    pub(crate) is_listed: bool,
    /// The selected file while the list has the keys.
    pub(crate) list: Option<usize>,
    /// The text behind `/` while it is typed.
    pub(crate) typed: Option<String>,
    pub(crate) query: String,
    pub(crate) matches: Vec<DiffPlace>,
    pub(crate) message: String,
    /// Rows by which the help is scrolled, while it is open.
    pub(crate) help: Option<usize>,
    pub(crate) size: Size,
    pub(crate) digits: usize,
    pub(crate) compared: HashMap<DiffPlace, Option<WordChanges>>,
    /// The words of the code of each file.
    pub(crate) colors: Vec<FileColors>,
    /// `None` for words without colours.
    pub(crate) token_style: Option<fn(TokenKind) -> Style>,
}

impl DiffView {
    /// `title` names the member, its branch, the base and the head.
    pub fn new(title: &str, patch: Patch, has_color: bool) -> DiffView {
        let mut view = DiffView {
            has_color,
            shows_words: true,
            is_listed: true,
            size: Size::new(80, 24),
            ..DiffView::default()
        };
        view.set_patch(title, patch);
        view
    }

    /// Adds keys of the owner to the help, and sets the keys in the last row. The owner handles its
    /// keys while the view does not have [all keys](DiffView::has_all_keys).
    pub fn with_owner_keys(
        mut self,
        keys: &'static [ViewKey],
        hints: &'static [&'static str],
    ) -> DiffView {
        (self.owner_keys, self.owner_hints) = (keys, hints);
        self
    }

    /// Returns true while the help, the list of files or a search takes all keys.
    pub fn has_all_keys(&self) -> bool {
        self.help.is_some() || self.list.is_some() || self.typed.is_some()
    }

    pub fn patch(&self) -> &Patch {
        &self.patch
    }

    /// Sets the title, which names the member, its branch, the base and the head.
    pub fn set_title(&mut self, title: &str) {
        self.title = glyph::safe(title.as_bytes());
    }

    /// Sets whether the patch was made without changes of white space.
    pub fn set_ignores_whitespace(&mut self, ignores_whitespace: bool) {
        self.ignores_whitespace = ignores_whitespace;
    }

    /// Replaces the patch. Files keep whether they are folded or viewed, by their paths; the cursor
    /// stays in its file.
    pub fn set_patch(&mut self, title: &str, patch: Patch) {
        let place = self.place();
        let path = place.file.map(|file| self.patch.files[file].path().to_vec());
        let before: HashMap<Vec<u8>, (bool, bool)> = (self.patch.files.iter())
            .zip(self.folded.iter().copied().zip(self.viewed.iter().copied()))
            .map(|(file, state)| (file.path().to_vec(), state))
            .collect();
        let states = patch.files.iter().map(|file| before.get(file.path()).copied());
        (self.folded, self.viewed) = states.map(Option::unwrap_or_default).unzip();
        self.set_title(title);
        self.blocks =
            (patch.files.iter()).map(|file| file.hunks.iter().map(blocks).collect()).collect();
        let ends = patch.files.iter().flat_map(|file| &file.hunks).map(|hunk| {
            hunk.old_start
                .saturating_add(hunk.old_len)
                .max(hunk.new_start.saturating_add(hunk.new_len))
        });
        self.digits = ends.max().unwrap_or(0).to_string().len().max(3);
        self.colors = vec![FileColors::default(); patch.files.len()];
        self.patch = patch;
        self.compared.clear();
        self.matches.clear();
        self.query.clear();
        (self.range, self.list) = (None, None);
        self.place_notes();
        let file = path.and_then(|path| self.patch.files.iter().position(|f| f.path() == path));
        let place = match file {
            Some(file) => DiffPlace { file: Some(file), ..place },
            None => DiffPlace::default(),
        };
        self.cursor = self.index.row_of(&self.blocks, place);
        self.keep_visible();
    }

    /// Replaces all annotations.
    pub fn set_annotations(&mut self, annotations: Vec<Annotation>) {
        self.with_place(|view| {
            view.notes = annotations;
            view.place_notes();
        });
    }

    /// Marks the files that were viewed before, and folds them.
    pub fn set_viewed(&mut self, paths: &[Vec<u8>]) {
        let paths: HashSet<&[u8]> = paths.iter().map(Vec::as_slice).collect();
        self.with_place(|view| {
            for (at, file) in view.patch.files.iter().enumerate() {
                view.viewed[at] = paths.contains(file.path());
                view.folded[at] |= view.viewed[at];
            }
            view.reindex();
        });
    }

    /// Applies a change after which the cursor is at the same place, or at the same annotation. It
    /// stays in the same row of the screen, unless the beginning is visible: that stays visible.
    pub(crate) fn with_place(&mut self, change: impl FnOnce(&mut DiffView)) {
        let place = self.place();
        let above = if self.top == 0 { usize::MAX } else { self.cursor.saturating_sub(self.top) };
        let note = match self.row(self.cursor) {
            Some(DiffRow::Note { note, part }) => Some((self.notes[note].id, part)),
            _ => None,
        };
        change(self);
        let note_row = note.and_then(|(id, part)| {
            let note = self.notes.iter().position(|note| note.id == id)?;
            let last = self.note_rows.get(note)?.len().checked_sub(1)?;
            Some(self.index.row_of_note(note)? + part.min(last))
        });
        self.cursor = note_row.unwrap_or_else(|| self.index.row_of(&self.blocks, place));
        self.top = self.cursor.saturating_sub(above);
        self.keep_visible();
    }

    /// Places and wraps the annotations. One whose line is not in the patch is shown below its file,
    /// and one whose file is not in the patch above all files.
    pub(crate) fn place_notes(&mut self) {
        let room = usize::from(self.diff_width()).saturating_sub(NOTE_INDENT + 2);
        let (mut placed, mut rows) = (Vec::new(), Vec::new());
        for (at, note) in self.notes.iter().enumerate() {
            let place = place_of(&self.patch, &self.blocks, &note.place);
            let missing = missing_words(&note.place, place);
            let text = note.rows.join("\n");
            let label = format!("{} · {}{missing}  ", note.label, note.state.word());
            let wrapped: Vec<String> = (label + &text)
                .split('\n')
                .flat_map(|row| glyph::wrap(&glyph::safe(row.as_bytes()), room))
                .collect();
            placed.push(PlacedNote { note: at, place, height: wrapped.len() });
            rows.push(wrapped);
        }
        placed.sort_by_key(|note| note.place);
        (self.placed, self.note_rows) = (placed, rows);
        self.reindex();
    }

    pub(crate) fn reindex(&mut self) {
        let is_split = self.splits();
        self.index = RowIndex::new(&self.patch, &self.blocks, &self.folded, &self.placed, is_split);
        self.cursor = self.cursor.min(self.index.total().saturating_sub(1));
    }

    pub(crate) fn set_size(&mut self, size: Size) {
        if size != self.size {
            self.with_place(|view| {
                view.size = size;
                view.place_notes();
            });
        }
    }

    /// Returns true if both sides are shown beside each other.
    pub(crate) fn splits(&self) -> bool {
        self.is_split && self.size.width >= SPLIT_FROM
    }

    /// Returns the width of the list as a column; 0 if it is not one.
    pub(crate) fn list_width(&self) -> u16 {
        let from = if self.splits() { LIST_AND_SPLIT_FROM } else { LIST_FROM };
        if self.is_listed && self.size.width >= from { (self.size.width / 4).min(44) } else { 0 }
    }

    pub(crate) fn diff_width(&self) -> u16 {
        self.size.width - self.list_width()
    }

    /// Returns the number of rows between the title and the keys.
    pub(crate) fn body_height(&self) -> usize {
        let height = usize::from(self.size.height);
        if height > 2 { height - 2 } else { height.min(1) }
    }

    pub(crate) fn row(&self, row: usize) -> Option<DiffRow> {
        self.index.locate(&self.patch, &self.blocks, row)
    }

    /// Returns the place of the cursor; on an annotation, the place of that.
    pub(crate) fn place(&self) -> DiffPlace {
        match self.row(self.cursor) {
            None => DiffPlace::default(),
            Some(DiffRow::Note { note, .. }) => self.place_of_note(note),
            Some(DiffRow::File(file)) => DiffPlace::file(file),
            Some(DiffRow::Hunk(file, hunk)) => DiffPlace::hunk(file, hunk),
            Some(DiffRow::Lines { file, hunk, old, new }) => {
                let line = match self.side {
                    DiffSide::Old => old.or(new),
                    DiffSide::New => new.or(old),
                };
                DiffPlace { line, ..DiffPlace::hunk(file, hunk) }
            }
        }
    }

    pub(crate) fn place_of_note(&self, note: usize) -> DiffPlace {
        let placed = self.placed.iter().find(|placed| placed.note == note);
        placed.map_or(DiffPlace::default(), |placed| placed.place)
    }

    pub(crate) fn line(&self, file: usize, hunk: usize, line: usize) -> &PatchLine {
        &self.patch.files[file].hunks[hunk].lines[line]
    }

    /// Returns true while the first row of the body names the file whose header is above it.
    pub(crate) fn is_pinned(&self) -> bool {
        let file = match self.row(self.top) {
            None | Some(DiffRow::File(_)) => None,
            Some(DiffRow::Note { note, .. }) => self.place_of_note(note).file,
            Some(DiffRow::Hunk(file, _) | DiffRow::Lines { file, .. }) => Some(file),
        };
        self.body_height() > 3 && file.is_some()
    }

    /// Scrolls so that the cursor is in the body, below the pinned row.
    pub(crate) fn keep_visible(&mut self) {
        let height = self.body_height().max(1);
        self.top = self.top.min(self.index.total().saturating_sub(1));
        if self.cursor < self.top {
            self.top = self.cursor;
        }
        self.top = self.top.max((self.cursor + 1).saturating_sub(height));
        if self.cursor == self.top && self.is_pinned() {
            self.top -= 1;
        }
    }

    pub(crate) fn forget_comparisons(&mut self) {
        if self.compared.len() > COMPARED {
            self.compared.clear();
        }
    }

    pub(crate) fn drafts(&self) -> usize {
        self.notes.iter().filter(|note| note.state == AnnotationState::Draft).count()
    }

    pub(crate) fn file(&self, file: usize) -> &FilePatch {
        &self.patch.files[file]
    }
}

/// Columns before an annotation.
pub(crate) const NOTE_INDENT: usize = 4;

/// Returns the place at which an annotation is shown.
fn place_of(patch: &Patch, blocks: &PatchBlocks, place: &AnnotationPlace) -> DiffPlace {
    let (path, target) = match place {
        AnnotationPlace::Whole => return DiffPlace::default(),
        AnnotationPlace::File { path } => (path, None),
        AnnotationPlace::Line { path, side, line } => (path, Some((*side, *line))),
    };
    let name = |file: &FilePatch| match target {
        Some((DiffSide::Old, _)) => file.old.as_ref() == Some(path),
        _ => file.path() == path,
    };
    let files = || patch.files.iter().enumerate().filter(|(_, file)| name(file));
    let found = target.and_then(|(side, line)| {
        files().find_map(|(at, file)| {
            file.hunks.iter().enumerate().find_map(|(number, hunk)| {
                let (start, len) = match side {
                    DiffSide::Old => (hunk.old_start, hunk.old_len),
                    DiffSide::New => (hunk.new_start, hunk.new_len),
                };
                line.checked_sub(start).filter(|offset| *offset < len)?;
                let found = numbered(hunk, &blocks[at][number], side, line)?;
                Some(DiffPlace::line(at, number, found))
            })
        })
    });
    let file = files().next().map(|(at, _)| DiffPlace::file(at));
    found.or(file).unwrap_or_default()
}

/// Returns the part of an annotation's place that the patch does not have.
fn missing_words(wanted: &AnnotationPlace, found: DiffPlace) -> String {
    let path = |path: &[u8]| glyph::safe(path);
    match wanted {
        AnnotationPlace::File { path: name } if found.file.is_none() => {
            format!(" · {}, not in this diff", path(name))
        }
        AnnotationPlace::Line { path: name, line, .. } if found.file.is_none() => {
            format!(" · {}:{line}, not in this diff", path(name))
        }
        AnnotationPlace::Line { line, side, .. } if found.line.is_none() => {
            let side = if *side == DiffSide::Old { "old " } else { "" };
            format!(" · {side}line {line}, not in this diff")
        }
        _ => String::new(),
    }
}
