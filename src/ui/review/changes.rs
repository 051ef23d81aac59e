//! The changes of one member on display, with the comments at their places.

use std::collections::{BTreeMap, HashMap, HashSet};

use diff::glyph::{cut_start, safe};
use diff::{
    Annotation, AnnotationPlace, AnnotationState, CodeBlob, CommentTarget, DiffSide, DiffView,
    Patch,
};
use unicode_width::UnicodeWidthStr;

use super::data::{ChangesRequest, DiffRange, OpenedWork};
use super::dialog::{CommentEditor, EditorPurpose, OpenComment};
use super::keys::{CHANGES_HELP, CHANGES_HINTS};
use super::object::short;
use super::paint::token_styles;
use crate::dashboard::Theme;
use model::id::MemberName;
use model::review::{
    CommentKind, CommentLines, CommentPlace, CommentState, LineSide, PlaceNow, PlacedComment,
    ReviewComment,
};

/// From this width on, the title has its long form.
const LONG_TITLE_FROM: usize = 110;
/// From this width on, the title has a hint.
const HINT_FROM: usize = 150;
/// Columns of the title that the view uses for counts: with words, and without.
const COUNTS: (usize, usize) = (40, 18);

/// The page with the changes of a member.
pub(super) struct ChangesPage {
    pub(super) member: MemberName,
    /// All but the patch, which the view has.
    pub(super) work: OpenedWork,
    pub(super) range: DiffRange,
    pub(super) ignores_whitespace: bool,
    /// The snapshot that counts as seen last. It stays the same while the page is open.
    pub(super) look: Option<String>,
    /// The reviewer has seen everything that was new.
    pub(super) is_seen: bool,
    /// The page has been on the screen. Keys that were pressed before are not meant for it.
    pub(super) is_drawn: bool,
    pub(super) view: DiffView,
    viewed: BTreeMap<String, String>,
    /// The names of the patch as comments have them: bytes that are not UTF-8 are replaced.
    names: HashMap<String, Vec<u8>>,
    /// Contents that the driver is to color, or has colored.
    asked: HashSet<CodeBlob>,
}

impl ChangesPage {
    /// Shows changes that were read. `before` is the page that they replace.
    pub(super) fn new(
        request: ChangesRequest,
        mut work: OpenedWork,
        before: Option<ChangesPage>,
        theme: Theme,
    ) -> ChangesPage {
        let patch = std::mem::take(&mut work.patch);
        let names = names(&patch);
        let before = before.filter(|page| page.member == request.member);
        let mut page = match before {
            Some(page) => {
                let mut view = page.view;
                view.set_patch("", patch);
                ChangesPage { view, work, names, asked: HashSet::new(), ..page }
            }
            None => ChangesPage {
                member: request.member,
                range: request.range,
                ignores_whitespace: request.ignores_whitespace,
                look: work.look.clone(),
                is_seen: false,
                is_drawn: false,
                view: DiffView::new("", patch, theme.color)
                    .with_token_styles(token_styles(theme))
                    .with_owner_keys(&CHANGES_HELP, &CHANGES_HINTS),
                viewed: work.viewed.clone(),
                work,
                names,
                asked: HashSet::new(),
            },
        };
        (page.range, page.ignores_whitespace) = (request.range, request.ignores_whitespace);
        page.is_drawn = false;
        page.view.set_ignores_whitespace(request.ignores_whitespace);
        let viewed = page.view.patch().files.iter().filter(|file| {
            let mark = page.viewed.get(&*String::from_utf8_lossy(file.path()));
            mark.is_some_and(|blob| *blob == file.new_blob.clone().unwrap_or_default())
        });
        let viewed: Vec<Vec<u8>> = viewed.map(|file| file.path().to_vec()).collect();
        page.view.set_viewed(&viewed);
        page.place_comments();
        page
    }

    pub(super) fn set_comments(&mut self, comments: Vec<PlacedComment>) {
        self.work.comments = comments;
        self.place_comments();
    }

    /// Returns the contents in the last frame whose words were not asked for before.
    pub(super) fn new_code(&mut self) -> Vec<CodeBlob> {
        let mut code = self.view.visible_code();
        code.retain(|code| self.asked.insert(code.clone()));
        code
    }

    pub(super) fn drafts(&self) -> usize {
        let is_draft = |placed: &&PlacedComment| placed.comment.state() == CommentState::Draft;
        self.work.comments.iter().filter(is_draft).count()
    }

    /// Returns the number of comments that demand a change and are not resolved.
    pub(super) fn open_demands(&self) -> usize {
        let is_open = |placed: &&PlacedComment| {
            let comment = &placed.comment;
            comment.kind == CommentKind::Must && comment.state() != CommentState::Resolved
        };
        self.work.comments.iter().filter(is_open).count()
    }

    /// Records that a file was viewed. Returns its path and the id of its content as they are kept.
    pub(super) fn mark_viewed(
        &mut self,
        path: &[u8],
        blob: Option<String>,
        viewed: bool,
    ) -> (String, String) {
        let path = String::from_utf8_lossy(path).into_owned();
        let blob = blob.unwrap_or_default();
        if viewed {
            self.viewed.insert(path.clone(), blob.clone());
        } else {
            self.viewed.remove(&path);
        }
        (path, blob)
    }

    /// Returns an editor for a new comment.
    pub(super) fn new_comment(&self, target: CommentTarget) -> CommentEditor {
        let path = |path: Vec<u8>| String::from_utf8_lossy(&path).into_owned();
        let place = match target {
            CommentTarget::Whole => None,
            CommentTarget::File { path: name } => {
                Some(CommentPlace { path: path(name), lines: None })
            }
            CommentTarget::Lines { path: name, side, first, last, quote } => {
                let side = match side {
                    DiffSide::Old => LineSide::Old,
                    DiffSide::New => LineSide::New,
                };
                let quote = quote.iter().map(Vec::as_slice);
                let lines = CommentLines::quoting(side, first, last, quote);
                Some(CommentPlace { path: path(name), lines: Some(lines) })
            }
        };
        let (base, commit) = (self.work.since.clone(), self.work.object.snapshot.clone());
        let purpose = EditorPurpose::New { place, base, commit };
        CommentEditor::new(self.member.clone(), purpose, CommentKind::Must, "")
    }

    /// Returns the comment of an annotation.
    pub(super) fn open_comment(&self, id: u64) -> Option<OpenComment> {
        let found =
            self.work.comments.iter().find(|placed| u64::from(placed.comment.id.0) == id)?;
        let place = found.comment.place_words() + place_change(found);
        let comment = found.comment.clone();
        // Code that is not below the comment any longer is shown at once.
        let shows_code = matches!(found.now, PlaceNow::Gone | PlaceNow::Changed { .. });
        Some(OpenComment { comment, place, shows_code, scroll: 0 })
    }

    fn place_comments(&mut self) {
        let notes = self.work.comments.iter().map(|placed| Annotation {
            id: placed.comment.id.0.into(),
            place: self.place_of(placed),
            state: match placed.comment.state() {
                CommentState::Draft => AnnotationState::Draft,
                CommentState::Sent => AnnotationState::Sent,
                CommentState::Answered => AnnotationState::Answered,
                CommentState::Resolved => AnnotationState::Resolved,
            },
            label: label(placed),
            rows: rows(&placed.comment),
        });
        let notes = notes.collect();
        self.view.set_annotations(notes);
    }

    /// Returns the place of a comment in the patch on display.
    fn place_of(&self, placed: &PlacedComment) -> AnnotationPlace {
        let Some(place) = &placed.comment.place else { return AnnotationPlace::Whole };
        let path = self.names.get(&place.path).cloned();
        let path = path.unwrap_or_else(|| place.path.clone().into_bytes());
        match (&place.lines, placed.now) {
            (Some(_), PlaceNow::Same { last, .. } | PlaceNow::Changed { last, .. }) => {
                AnnotationPlace::Line { path, side: DiffSide::New, line: last }
            }
            // Line numbers before the change depend on the commit since which it is shown.
            (Some(CommentLines { side: LineSide::Old, last, .. }), PlaceNow::Fixed)
                if placed.comment.base == self.work.since =>
            {
                AnnotationPlace::Line { path, side: DiffSide::Old, line: *last }
            }
            _ => AnnotationPlace::File { path },
        }
    }

    /// Returns the title for a screen of this width: the member, the branch, both commits, the
    /// uncommitted files and the mode. The branch is cut first.
    pub(super) fn title(&self, width: usize, is_outdated: bool) -> String {
        let is_long = width >= LONG_TITLE_FROM;
        let (since, shown) = (short(&self.work.since), short(&self.work.object.snapshot));
        let range = match (self.range, is_long) {
            (DiffRange::All, true) if self.look.is_some() && width >= HINT_FROM => {
                "all changes (s: since you looked)"
            }
            (range, true) => range.words(),
            (range, false) => range.word(),
        };
        let (arrow, uncommitted) = match (self.work.object.uncommitted > 0, is_long) {
            (true, true) => (" → ", " + not committed"),
            (true, false) => ("→", "+wt"),
            (false, true) => (" → ", ""),
            (false, false) => ("→", ""),
        };
        let white_space = match (self.ignores_whitespace, is_long) {
            (true, true) => " · no white space",
            (true, false) => " -W",
            (false, _) => "",
        };
        let newer = if is_outdated { " · R: newer" } else { "" };
        let dot = if is_long { " · " } else { " " };
        let end =
            format!("{dot}{since}{arrow}{shown}{uncommitted}{dot}{range}{white_space}{newer}");
        let counts = if is_long { COUNTS.0 } else { COUNTS.1 };
        let member = self.member.as_str();
        let room = width.saturating_sub(counts + end.width() + member.width() + dot.width());
        let from = cut_start(&safe(self.work.object.from.as_bytes()), room.max(6));
        format!("{member}{dot}{from}{end}")
    }
}

/// Returns the names of a patch as comments have them, where they differ.
fn names(patch: &Patch) -> HashMap<String, Vec<u8>> {
    let paths = patch.files.iter().flat_map(|file| [&file.old, &file.new]).flatten();
    let replaced = paths.filter(|path| std::str::from_utf8(path).is_err());
    replaced.map(|path| (String::from_utf8_lossy(path).into_owned(), path.clone())).collect()
}

/// Returns the relation of the lines of a comment to those on display, which follows other words;
/// empty if they are the same.
fn place_change(placed: &PlacedComment) -> &'static str {
    match placed.now {
        PlaceNow::Changed { .. } => " · the lines have changed",
        PlaceNow::Gone => " · the lines are gone",
        PlaceNow::Same { .. } | PlaceNow::Fixed => "",
    }
}

fn label(placed: &PlacedComment) -> String {
    let kind: &str = placed.comment.kind.into();
    format!("{} {kind}{}", placed.comment.id, place_change(placed))
}

/// Returns the text of a comment and of its answer.
fn rows(comment: &ReviewComment) -> Vec<String> {
    let mut rows = vec![comment.text.clone()];
    rows.extend(answer_words(comment));
    rows
}

/// Returns the answer in words: `ada: done: Returns the error`.
pub(super) fn answer_words(comment: &ReviewComment) -> Option<String> {
    let answer = comment.answer.as_ref()?;
    let kind: &str = answer.kind.into();
    let text = if answer.text.is_empty() { String::new() } else { format!(": {}", answer.text) };
    Some(format!("{}: {kind}{text}", comment.member))
}
