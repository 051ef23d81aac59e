//! The keys of a view.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Size;

use crate::action::{CommentTarget, DiffAction};
use crate::annotation::DiffSide;
use crate::help::KEYS;
use crate::index::{DiffPlace, DiffRow};
use crate::view::{DiffView, SPLIT_FROM};

/// Columns by which a key scrolls long lines.
const SCROLL: usize = 8;

impl DiffView {
    /// Handles a key on a terminal of this size. Returns what the owner has to carry out.
    pub fn handle(&mut self, key: KeyEvent, size: Size) -> Option<DiffAction> {
        self.set_size(size);
        let chord = KeyModifiers::CONTROL | KeyModifiers::ALT;
        if key.kind == KeyEventKind::Release || key.modifiers.intersects(chord) {
            return None;
        }
        self.message.clear();
        let action = if self.help.is_some() {
            self.help_key(key.code);
            None
        } else if self.typed.is_some() {
            self.search_key(key.code);
            None
        } else if let Some(file) = self.list {
            self.list_key(key.code, file)
        } else {
            self.diff_key(key.code)
        };
        self.keep_visible();
        action
    }

    fn help_key(&mut self, code: KeyCode) {
        let most = (KEYS.len() + self.owner_keys.len()).saturating_sub(self.body_height());
        let at = self.help.unwrap_or(0);
        self.help = match code {
            KeyCode::Char('j') | KeyCode::Down => Some((at + 1).min(most)),
            KeyCode::Char('k') | KeyCode::Up => Some(at.saturating_sub(1)),
            KeyCode::Char('?' | 'q') | KeyCode::Esc | KeyCode::Enter => None,
            _ => Some(at),
        };
    }

    fn search_key(&mut self, code: KeyCode) {
        let Some(typed) = &mut self.typed else { return };
        match code {
            KeyCode::Char(c) => typed.push(c),
            KeyCode::Backspace if typed.is_empty() => self.typed = None,
            KeyCode::Backspace => drop(typed.pop()),
            KeyCode::Esc => self.typed = None,
            KeyCode::Enter => {
                self.query = self.typed.take().unwrap_or_default();
                self.find_matches();
                self.next_match(true);
            }
            _ => {}
        }
    }

    fn list_key(&mut self, code: KeyCode, file: usize) -> Option<DiffAction> {
        let last = self.patch.files.len().saturating_sub(1);
        let page = self.body_height().saturating_sub(1).max(1);
        match code {
            KeyCode::Char('j') | KeyCode::Down => self.list = Some((file + 1).min(last)),
            KeyCode::Char('k') | KeyCode::Up => self.list = Some(file.saturating_sub(1)),
            KeyCode::Char(' ') | KeyCode::PageDown => self.list = Some((file + page).min(last)),
            KeyCode::PageUp => self.list = Some(file.saturating_sub(page)),
            KeyCode::Char('g') | KeyCode::Home => self.list = Some(0),
            KeyCode::Char('G') | KeyCode::End => self.list = Some(last),
            KeyCode::Char('V') => return self.toggle_viewed(file),
            KeyCode::Char('?') => self.help = Some(0),
            KeyCode::Enter => {
                self.list = None;
                self.jump(DiffPlace::file(file));
            }
            KeyCode::Char('q') | KeyCode::Esc => self.list = None,
            KeyCode::Char('f') => {
                self.list = None;
                if self.list_width() > 0 {
                    self.with_place(|view| view.is_listed = false);
                    self.rewrap();
                }
            }
            _ => {}
        }
        None
    }

    fn diff_key(&mut self, code: KeyCode) -> Option<DiffAction> {
        let page = self.body_height().saturating_sub(2).max(1);
        let last = self.index.total().saturating_sub(1);
        match code {
            KeyCode::Char('j') | KeyCode::Down => self.cursor = (self.cursor + 1).min(last),
            KeyCode::Char('k') | KeyCode::Up => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Char(' ') | KeyCode::PageDown => {
                self.cursor = (self.cursor + page).min(last);
                self.top += page;
            }
            KeyCode::PageUp => {
                self.cursor = self.cursor.saturating_sub(page);
                self.top = self.top.saturating_sub(page);
            }
            KeyCode::Char('g') | KeyCode::Home => self.cursor = 0,
            KeyCode::Char('G') | KeyCode::End => self.cursor = last,
            KeyCode::Char('h') | KeyCode::Left => self.left = self.left.saturating_sub(SCROLL),
            KeyCode::Char('l') | KeyCode::Right if self.is_cut => self.left += SCROLL,
            KeyCode::Char(']') => self.jump_to_hunk(true),
            KeyCode::Char('[') => self.jump_to_hunk(false),
            KeyCode::Char('}') => self.jump_to_file(true),
            KeyCode::Char('{') => self.jump_to_file(false),
            KeyCode::Char('m') => self.jump_to_note(true),
            KeyCode::Char('P') => self.jump_to_note(false),
            KeyCode::Enter => return self.open(),
            KeyCode::Char('f') if !self.patch.files.is_empty() => {
                self.list = Some(self.place().file.unwrap_or(0));
                self.with_place(|view| view.is_listed = true);
                self.rewrap();
            }
            KeyCode::Char('t') if self.size.width < SPLIT_FROM && !self.is_split => {
                self.message = format!("side by side needs {SPLIT_FROM} columns");
            }
            KeyCode::Char('t') => {
                self.with_place(|view| {
                    view.is_split = !view.is_split;
                    view.reindex();
                });
                self.rewrap();
            }
            KeyCode::Tab if self.splits() => {
                self.side = match self.side {
                    DiffSide::Old => DiffSide::New,
                    DiffSide::New => DiffSide::Old,
                };
            }
            KeyCode::Char('w') => {
                self.shows_words = !self.shows_words;
                self.compared.clear();
            }
            KeyCode::Char('W') => {
                return Some(DiffAction::IgnoreWhitespace(!self.ignores_whitespace));
            }
            KeyCode::Char('/') => self.typed = Some(String::new()),
            KeyCode::Char('n') => self.next_match(true),
            KeyCode::Char('N') => self.next_match(false),
            KeyCode::Char('V') => {
                let file = self.place().file?;
                return self.toggle_viewed(file);
            }
            KeyCode::Char('v') => {
                let place = self.place();
                self.range = place.line.filter(|_| self.range.is_none()).map(|_| place);
            }
            KeyCode::Char('c') => return self.comment_on_lines(),
            KeyCode::Char('C') => {
                let path = self.file(self.place().file?).path().to_vec();
                return Some(DiffAction::Comment(CommentTarget::File { path }));
            }
            KeyCode::Char('A') => return Some(DiffAction::Comment(CommentTarget::Whole)),
            KeyCode::Char('b') => return Some(DiffAction::ChooseBase),
            KeyCode::Char('?') => self.help = Some(0),
            KeyCode::Esc if self.range.is_some() => self.range = None,
            KeyCode::Char('q') | KeyCode::Esc => return Some(DiffAction::Close),
            _ => {}
        }
        None
    }

    /// Wraps the annotations again after the width of the diff has changed.
    fn rewrap(&mut self) {
        self.with_place(DiffView::place_notes);
    }

    /// Moves the cursor to a place, which is near the top if it was not visible.
    fn jump(&mut self, place: DiffPlace) {
        if let Some(file) = place.file.filter(|file| place.hunk.is_some() && self.folded[*file]) {
            self.folded[file] = false;
            self.reindex();
        }
        self.jump_to_row(self.index.row_of(&self.blocks, place));
    }

    fn jump_to_row(&mut self, row: usize) {
        self.cursor = row;
        if !(self.top..self.top + self.body_height()).contains(&row) {
            self.top = row;
        }
    }

    fn jump_to_hunk(&mut self, forward: bool) {
        let place = self.place();
        let files = self.patch.files.len();
        let hunks = |file: usize| {
            let count = if self.folded[file] { 0 } else { self.file(file).hunks.len() };
            (0..count).map(move |hunk| DiffPlace::hunk(file, hunk))
        };
        let found = if forward {
            (place.file.unwrap_or(0)..files).flat_map(hunks).find(|hunk| *hunk > place)
        } else {
            let before = place.file.map_or(0, |file| file + 1);
            (0..before).rev().flat_map(|file| hunks(file).rev()).find(|hunk| *hunk < place)
        };
        if let Some(hunk) = found {
            self.jump(hunk);
        }
    }

    fn jump_to_file(&mut self, forward: bool) {
        let place = self.place();
        let is_on_header = matches!(self.row(self.cursor), Some(DiffRow::File(_)));
        let found = match (place.file, forward) {
            (None, true) => Some(0),
            (None, false) => None,
            (Some(file), true) => Some(file + 1),
            // From within a file, its header is the previous one.
            (Some(file), false) if is_on_header => file.checked_sub(1),
            (Some(file), false) => Some(file),
        };
        if let Some(file) = found.filter(|file| *file < self.patch.files.len()) {
            self.jump(DiffPlace::file(file));
        }
    }

    fn jump_to_note(&mut self, forward: bool) {
        let place = self.place();
        let here = match self.row(self.cursor) {
            Some(DiffRow::Note { note, .. }) => {
                self.placed.iter().position(|placed| placed.note == note)
            }
            _ => None,
        };
        let found = match (here, forward) {
            (Some(at), true) => Some(at + 1),
            (Some(at), false) => at.checked_sub(1),
            (None, true) => Some(self.placed.partition_point(|note| note.place < place)),
            (None, false) => self.placed.partition_point(|note| note.place < place).checked_sub(1),
        };
        let Some(note) = found.and_then(|at| self.placed.get(at)).copied() else {
            self.message = format!("no {} comment", if forward { "further" } else { "earlier" });
            return;
        };
        if let Some(file) = note.place.file.filter(|file| self.folded[*file]) {
            self.folded[file] = false;
            self.reindex();
        }
        if let Some(row) = self.index.row_of_note(note.note) {
            self.jump_to_row(row);
        }
    }

    /// Opens the annotation at the cursor, or folds or unfolds the file.
    fn open(&mut self) -> Option<DiffAction> {
        if let Some(DiffRow::Note { note, .. }) = self.row(self.cursor) {
            return Some(DiffAction::OpenAnnotation(self.notes[note].id));
        }
        let file = self.place().file?;
        self.fold(file, !self.folded[file]);
        None
    }

    /// Folds or unfolds a file. The cursor goes to its header if it was in it.
    fn fold(&mut self, file: usize, is_folded: bool) {
        self.range = None;
        self.with_place(|view| {
            view.folded[file] = is_folded;
            view.reindex();
        });
    }

    fn toggle_viewed(&mut self, file: usize) -> Option<DiffAction> {
        let viewed = !self.viewed[file];
        self.viewed[file] = viewed;
        self.fold(file, viewed);
        let patch = self.file(file);
        let (path, blob) = (patch.path().to_vec(), patch.new_blob.clone());
        Some(DiffAction::Viewed { path, blob, viewed })
    }

    /// Returns the lines of the range that are in the hunk where it began.
    pub(crate) fn selected_lines(&self) -> Option<(DiffPlace, DiffPlace)> {
        let start = self.range?;
        let (file, hunk) = (start.file?, start.hunk?);
        let lines = self.file(file).hunks.get(hunk)?.lines.len();
        let place = self.place();
        let end = if (place.file, place.hunk) == (start.file, start.hunk) {
            place.line.unwrap_or(0)
        } else if place < start {
            0
        } else {
            lines.saturating_sub(1)
        };
        let end = DiffPlace::line(file, hunk, end);
        Some((start.min(end), start.max(end)))
    }

    fn comment_on_lines(&mut self) -> Option<DiffAction> {
        let here = self.place();
        let (first, last) = self.selected_lines().unwrap_or((here, here));
        let (Some(file), Some(hunk), Some(from), Some(to)) =
            (first.file, first.hunk, first.line, last.line)
        else {
            self.message = "no line here: C comments on the file, A on the whole".to_owned();
            return None;
        };
        let lines = &self.patch.files[file].hunks[hunk].lines[from..=to];
        let on_side = |side| match side {
            DiffSide::Old => lines.iter().filter(|line| line.old.is_some()).count(),
            DiffSide::New => lines.iter().filter(|line| line.new.is_some()).count(),
        };
        let wanted = if self.splits() { self.side } else { DiffSide::New };
        let side = match wanted {
            DiffSide::New if on_side(DiffSide::New) == 0 => DiffSide::Old,
            DiffSide::Old if on_side(DiffSide::Old) == 0 => DiffSide::New,
            side => side,
        };
        let of_side: Vec<_> = lines
            .iter()
            .filter_map(|line| {
                let number = if side == DiffSide::Old { line.old } else { line.new };
                number.map(|number| (number, line.text.clone()))
            })
            .collect();
        let (first, last) = (of_side.first()?.0, of_side.last()?.0);
        let patch = self.file(file);
        let name = if side == DiffSide::Old { patch.old.as_deref() } else { None };
        let path = name.unwrap_or(patch.path()).to_vec();
        self.range = None;
        let quote = of_side.into_iter().map(|(_, text)| text).collect();
        Some(DiffAction::Comment(CommentTarget::Lines { path, side, first, last, quote }))
    }

    /// Finds all names and lines that contain the query. Upper case counts if the query has it.
    fn find_matches(&mut self) {
        self.matches.clear();
        if self.query.is_empty() {
            return;
        }
        for (at, file) in self.patch.files.iter().enumerate() {
            if contains(file.path(), &self.query) {
                self.matches.push(DiffPlace::file(at));
            }
            for (number, hunk) in file.hunks.iter().enumerate() {
                for (line, text) in hunk.lines.iter().enumerate() {
                    if contains(&text.text, &self.query) {
                        self.matches.push(DiffPlace::line(at, number, line));
                    }
                }
            }
        }
    }

    fn next_match(&mut self, forward: bool) {
        if self.query.is_empty() {
            self.message = "no search: / begins one".to_owned();
            return;
        }
        let Some(last) = self.matches.len().checked_sub(1) else {
            self.message = format!("no match: {}", crate::glyph::safe(self.query.as_bytes()));
            return;
        };
        let place = self.place();
        let at = if forward {
            let at = self.matches.partition_point(|found| *found <= place);
            if at > last { 0 } else { at }
        } else {
            let at = self.matches.partition_point(|found| *found < place);
            at.checked_sub(1).unwrap_or(last)
        };
        let found = self.matches[at];
        if let Some(line) = found.line
            && let (Some(file), Some(hunk)) = (found.file, found.hunk)
        {
            // The cursor takes the side of the match, so that the next search goes on from there.
            let line = self.line(file, hunk, line);
            self.side = if line.new.is_some() { DiffSide::New } else { DiffSide::Old };
        }
        self.jump(found);
        self.message = format!(
            "match {} of {}: {}",
            at + 1,
            last + 1,
            crate::glyph::safe(self.query.as_bytes())
        );
    }
}

fn contains(text: &[u8], query: &str) -> bool {
    matches(text, query).next().is_some()
}

/// Returns the bytes of each match of a query that is not empty.
pub(crate) fn matches<'t>(
    text: &'t [u8],
    query: &'t str,
) -> impl Iterator<Item = std::ops::Range<usize>> + 't {
    let query = query.as_bytes();
    let is_exact = query.iter().any(u8::is_ascii_uppercase);
    let first = query.first().copied().unwrap_or(0);
    let other = if is_exact { first } else { first.to_ascii_uppercase() };
    let mut next = 0;
    memchr::memchr2_iter(first, other, text).filter_map(move |at| {
        let window = text.get(at..at + query.len()).filter(|_| at >= next)?;
        let is_same = if is_exact { window == query } else { window.eq_ignore_ascii_case(query) };
        is_same.then(|| {
            next = at + query.len();
            at..next
        })
    })
}
