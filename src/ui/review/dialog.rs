//! Dialogs over the list and the changes. A dialog keeps its object, whatever is selected below it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::data::DiffRange;
use super::effect::ReviewAction;
use super::text_area::TextArea;
use model::id::MemberName;
use model::review::{CommentId, CommentKind, CommentPlace, ReviewComment};

/// A dialog, which receives all keys while it is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReviewDialog {
    Page(ScrolledText),
    Question(ReviewQuestion),
    Message(MessagePreview),
    Comment(OpenComment),
    Editor(CommentEditor),
    Ranges { at: usize },
}

/// A text that can be scrolled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScrolledText {
    pub(super) title: String,
    pub(super) text: String,
    pub(super) scroll: usize,
    /// Number of the request that makes the rest of the text.
    pub(super) number: Option<u64>,
    /// A key with an effect.
    pub(super) answer: Option<QuestionAnswer>,
    /// As in [`ReviewQuestion`], for the key.
    pub(super) is_drawn: bool,
}

/// A question that a key answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReviewQuestion {
    pub(super) words: String,
    /// Lines below the question.
    pub(super) details: Vec<String>,
    pub(super) answers: Vec<QuestionAnswer>,
    /// Set when it has been on the screen. Keys that were typed before do not answer it.
    pub(super) is_drawn: bool,
}

/// A key with its meaning and its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QuestionAnswer {
    pub(super) key: char,
    pub(super) words: &'static str,
    pub(super) action: ReviewAction,
}

/// The message that would be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MessagePreview {
    pub(super) member: MemberName,
    pub(super) commit: String,
    /// Number of the request that makes the message.
    pub(super) number: u64,
    /// `None` while it is made.
    pub(super) text: Option<String>,
    pub(super) scroll: usize,
    /// As in [`ReviewQuestion`], for the text.
    pub(super) is_drawn: bool,
}

/// A comment with its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenComment {
    pub(super) comment: ReviewComment,
    /// The place and the relation of its lines to those on display, in words.
    pub(super) place: String,
    pub(super) shows_code: bool,
    pub(super) scroll: usize,
}

/// A comment that is being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommentEditor {
    pub(super) member: MemberName,
    pub(super) purpose: EditorPurpose,
    pub(super) kind: CommentKind,
    pub(super) area: TextArea,
    /// The text at the start, which needs no question when it is left.
    pub(super) before: String,
    /// Esc was pressed once.
    pub(super) is_leaving: bool,
    pub(super) problem: Option<String>,
    /// Unset while a text that could not be kept has come back and was not on the screen yet: keys
    /// that were typed before were for what it covers.
    pub(super) is_drawn: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EditorPurpose {
    New { place: Option<CommentPlace>, base: String, commit: String },
    Revise(CommentId),
    Reopen(CommentId),
}

/// The effect of a key on a dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DialogEffect {
    Stay,
    Close,
    /// Close the dialog and carry this out.
    Act(ReviewAction),
    /// Close the dialog and open the editor.
    Edit(CommentEditor),
    Ask(ReviewQuestion),
    Choose(DiffRange),
}

pub(super) const RANGES: [DiffRange; 3] =
    [DiffRange::All, DiffRange::SinceLook, DiffRange::Uncommitted];

const KINDS: [CommentKind; 3] = [CommentKind::Must, CommentKind::Question, CommentKind::Note];

impl ReviewDialog {
    /// Handles a key. `page` is the number of rows that scrolling by a page moves.
    pub(super) fn handle(&mut self, key: KeyEvent, page: usize) -> DialogEffect {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        if let ReviewDialog::Editor(editor) = self {
            return editor.handle(key);
        }
        if ctrl && key.code == KeyCode::Char('c') {
            return DialogEffect::Close;
        }
        if key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) {
            return DialogEffect::Stay;
        }
        match self {
            ReviewDialog::Page(open) => open.handle(key.code, page),
            ReviewDialog::Question(question) => question.handle(key.code),
            ReviewDialog::Message(message) => message.handle(key.code, page),
            ReviewDialog::Comment(open) => open.handle(key.code, page),
            ReviewDialog::Ranges { at } => match key.code {
                KeyCode::Char('j' | 'b') | KeyCode::Down => {
                    *at = (*at + 1) % RANGES.len();
                    DialogEffect::Stay
                }
                KeyCode::Char('k') | KeyCode::Up => {
                    *at = (*at + RANGES.len() - 1) % RANGES.len();
                    DialogEffect::Stay
                }
                KeyCode::Enter => DialogEffect::Choose(RANGES[*at]),
                KeyCode::Char('q') | KeyCode::Esc => DialogEffect::Close,
                _ => DialogEffect::Stay,
            },
            ReviewDialog::Editor(_) => DialogEffect::Stay,
        }
    }

    /// Returns the keys of the dialog in words.
    pub(super) fn hint(&self) -> String {
        match self {
            ReviewDialog::Page(page) => page.hint(),
            ReviewDialog::Question(question) => {
                let answers = question.answers.iter();
                let mut words: Vec<String> =
                    answers.map(|answer| format!("{} {}", answer.key, answer.words)).collect();
                words.push("n no".to_owned());
                words.join(" · ")
            }
            ReviewDialog::Message(MessagePreview { text: None, .. }) => "Esc close".to_owned(),
            ReviewDialog::Message(_) => "Enter send · j/k scroll · Esc close".to_owned(),
            ReviewDialog::Comment(open) => open.hint(),
            ReviewDialog::Editor(editor) => editor.hint(),
            ReviewDialog::Ranges { .. } => "Enter show · j/k choose · Esc close".to_owned(),
        }
    }
}

impl ScrolledText {
    pub(super) fn new(title: &str, text: String) -> ScrolledText {
        ScrolledText {
            title: title.to_owned(),
            text,
            scroll: 0,
            number: None,
            answer: None,
            is_drawn: false,
        }
    }

    fn handle(&mut self, code: KeyCode, page: usize) -> DialogEffect {
        let answer = self.answer.as_ref().filter(|answer| code == KeyCode::Char(answer.key));
        match answer {
            Some(answer) if self.is_drawn => DialogEffect::Act(answer.action.clone()),
            Some(_) => DialogEffect::Stay,
            None => scroll_by(&mut self.scroll, code, page),
        }
    }

    fn hint(&self) -> String {
        let answer = self.answer.as_ref();
        let answer = answer.map(|answer| format!("{} {} · ", answer.key, answer.words));
        format!("{}j/k scroll · Esc close", answer.unwrap_or_default())
    }
}

impl ReviewQuestion {
    pub(super) fn new(
        words: String,
        details: Vec<String>,
        answers: Vec<QuestionAnswer>,
    ) -> ReviewQuestion {
        ReviewQuestion { words, details, answers, is_drawn: false }
    }

    fn handle(&self, code: KeyCode) -> DialogEffect {
        match code {
            KeyCode::Char('n' | 'q') | KeyCode::Esc => DialogEffect::Close,
            KeyCode::Char(key) if self.is_drawn => {
                let found = self.answers.iter().find(|answer| answer.key == key);
                found.map_or(DialogEffect::Stay, |answer| DialogEffect::Act(answer.action.clone()))
            }
            _ => DialogEffect::Stay,
        }
    }
}

impl MessagePreview {
    fn handle(&mut self, code: KeyCode, page: usize) -> DialogEffect {
        match (code, &self.text) {
            (KeyCode::Enter, Some(text)) if self.is_drawn => {
                let (member, commit) = (self.member.clone(), self.commit.clone());
                DialogEffect::Act(ReviewAction::Send { member, commit, message: text.clone() })
            }
            (KeyCode::Enter, _) => DialogEffect::Stay,
            _ => scroll_by(&mut self.scroll, code, page),
        }
    }
}

impl OpenComment {
    fn is_draft(&self) -> bool {
        self.comment.sent.is_none()
    }

    fn handle(&mut self, code: KeyCode, page: usize) -> DialogEffect {
        let (member, id) = (self.comment.member.clone(), self.comment.id);
        match code {
            KeyCode::Enter | KeyCode::Char('e') if self.is_draft() => {
                let text = self.comment.text.clone();
                let purpose = EditorPurpose::Revise(id);
                DialogEffect::Edit(CommentEditor::new(member, purpose, self.comment.kind, &text))
            }
            KeyCode::Char('x') if self.is_draft() => {
                let action = ReviewAction::Discard { member, id };
                let answers = vec![QuestionAnswer { key: 'y', words: "discard", action }];
                let details = vec![self.comment.text.clone()];
                DialogEffect::Ask(ReviewQuestion::new(format!("Discard {id}?"), details, answers))
            }
            KeyCode::Char('=') if !self.is_draft() && self.comment.resolved.is_none() => {
                DialogEffect::Act(ReviewAction::Resolve { member, id })
            }
            KeyCode::Char('-') if !self.is_draft() => {
                let purpose = EditorPurpose::Reopen(id);
                DialogEffect::Edit(CommentEditor::new(member, purpose, self.comment.kind, ""))
            }
            KeyCode::Char('o') => {
                self.shows_code = !self.shows_code;
                DialogEffect::Stay
            }
            KeyCode::Enter => DialogEffect::Close,
            _ => scroll_by(&mut self.scroll, code, page),
        }
    }

    fn hint(&self) -> String {
        let keys = match (self.is_draft(), self.comment.resolved.is_some()) {
            (true, _) => "Enter edit · x discard",
            (false, false) => "= resolve · - reopen",
            (false, true) => "- reopen",
        };
        let code = if self.shows_code { "o hide code" } else { "o code" };
        format!("{keys} · {code} · Esc close")
    }
}

impl CommentEditor {
    pub(super) fn new(
        member: MemberName,
        purpose: EditorPurpose,
        kind: CommentKind,
        text: &str,
    ) -> CommentEditor {
        CommentEditor {
            member,
            purpose,
            kind,
            area: TextArea::with(text),
            before: text.to_owned(),
            is_leaving: false,
            problem: None,
            is_drawn: true,
        }
    }

    /// Returns an editor with the text of an action that has failed; `None` for an action without a
    /// text.
    pub(super) fn of(action: &ReviewAction, problem: String) -> Option<CommentEditor> {
        let (member, purpose, kind, text) = match action {
            ReviewAction::Draft { member, kind, place, base, commit, text } => {
                let (place, base) = (place.clone(), base.clone());
                (member, EditorPurpose::New { place, base, commit: commit.clone() }, *kind, text)
            }
            ReviewAction::Revise { member, id, kind, text } => {
                (member, EditorPurpose::Revise(*id), *kind, text)
            }
            ReviewAction::Reopen { member, id, text } => {
                (member, EditorPurpose::Reopen(*id), CommentKind::Must, text)
            }
            _ => return None,
        };
        let editor = CommentEditor::new(member.clone(), purpose, kind, text);
        let (before, problem) = (String::new(), Some(problem));
        Some(CommentEditor { before, problem, is_drawn: false, ..editor })
    }

    /// Returns the action that keeps the text.
    pub(super) fn action(&self) -> ReviewAction {
        let (member, kind, text) = (self.member.clone(), self.kind, self.area.text().to_owned());
        match &self.purpose {
            EditorPurpose::New { place, base, commit } => ReviewAction::Draft {
                member,
                kind,
                place: place.clone(),
                base: base.clone(),
                commit: commit.clone(),
                text,
            },
            EditorPurpose::Revise(id) => ReviewAction::Revise { member, id: *id, kind, text },
            EditorPurpose::Reopen(id) => ReviewAction::Reopen { member, id: *id, text },
        }
    }

    /// Returns true if leaving would lose something that was typed.
    pub(super) fn is_changed(&self) -> bool {
        self.area.text() != self.before && !self.area.is_blank()
    }

    fn handle(&mut self, key: KeyEvent) -> DialogEffect {
        if !self.is_drawn {
            return DialogEffect::Stay;
        }
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let was_leaving = std::mem::take(&mut self.is_leaving);
        let leaves = key.code == KeyCode::Esc || ctrl && key.code == KeyCode::Char('c');
        match key.code {
            KeyCode::Enter if alt => self.area.insert("\n"),
            KeyCode::Char('j') if ctrl => self.area.insert("\n"),
            KeyCode::Enter => return self.save(),
            KeyCode::Char('s') if ctrl => return self.save(),
            KeyCode::Tab if !self.is_reopening() => {
                let at = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or(0);
                self.kind = KINDS[(at + 1) % KINDS.len()];
            }
            _ if leaves && (was_leaving || !self.is_changed()) => return DialogEffect::Close,
            _ if leaves => self.is_leaving = true,
            _ => drop(self.area.handle(key)),
        }
        DialogEffect::Stay
    }

    fn save(&mut self) -> DialogEffect {
        if self.area.is_blank() {
            self.problem = Some("the comment is empty; Esc closes it".to_owned());
            return DialogEffect::Stay;
        }
        DialogEffect::Act(self.action())
    }

    pub(super) fn is_reopening(&self) -> bool {
        matches!(self.purpose, EditorPurpose::Reopen(_))
    }

    fn hint(&self) -> String {
        if self.is_leaving {
            return "Esc again drops the text · any other key goes on".to_owned();
        }
        let kind = if self.is_reopening() { "" } else { "Tab must/question/note · " };
        format!("Enter save · Alt-Enter/Ctrl-J new line · {kind}Esc close")
    }
}

/// Scrolls a text. Other keys than those for moving close it or do nothing. The next frame corrects
/// what is scrolled too far.
fn scroll_by(scroll: &mut usize, code: KeyCode, page: usize) -> DialogEffect {
    *scroll = match code {
        KeyCode::Char('q' | '?') | KeyCode::Esc => return DialogEffect::Close,
        KeyCode::Char('j') | KeyCode::Down | KeyCode::Enter => scroll.saturating_add(1),
        KeyCode::Char('k') | KeyCode::Up => scroll.saturating_sub(1),
        KeyCode::PageDown | KeyCode::Char(' ') => scroll.saturating_add(page),
        KeyCode::PageUp => scroll.saturating_sub(page),
        KeyCode::Home | KeyCode::Char('g') => 0,
        KeyCode::End | KeyCode::Char('G') => usize::MAX,
        _ => *scroll,
    };
    DialogEffect::Stay
}
