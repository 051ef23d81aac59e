//! The state of a review screen, and its reactions to keys and news.

use std::collections::VecDeque;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use diff::DiffAction;
use ratatui::layout::Size;

use super::changes::ChangesPage;
use super::data::{ChangesRequest, DiffRange, ListedWork, SeenWork, WorkList, WorkObject};
use super::dialog::{
    CommentEditor, DialogEffect, MessagePreview, QuestionAnswer, RANGES, ReviewDialog,
    ReviewQuestion, ScrolledText,
};
use super::effect::{ReviewAction, ReviewEffect};
use super::keys::{LIST_KEYS, ReviewCommand, changes_command, list_command};
use super::object::short;
use crate::dashboard::Theme;
use model::id::MemberName;
use ops::review::checks::WorkCheck;

/// A review on a terminal: the list of works, and the changes of one member. Without I/O: keys and
/// news come in, effects and frames go out.
#[derive(Default)]
pub struct ReviewScreen {
    pub(super) team: String,
    pub(super) theme: Theme,
    /// `None` until it was read.
    pub(super) list: Option<WorkList>,
    /// Why the list could not be read last.
    pub(super) list_problem: Option<String>,
    pub(super) selected: Option<MemberName>,
    /// Number of works above the visible ones.
    pub(super) first: usize,
    pub(super) changes: Option<ChangesPage>,
    /// The changes that are being read, instead of which nothing else is shown.
    pub(super) loading: Option<ChangesRequest>,
    pub(super) dialog: Option<ReviewDialog>,
    /// The last message.
    pub(super) notice: Option<ReviewNotice>,
    /// The message is in the last row, until the next key.
    pub(super) shows_notice: bool,
    /// The object of the keys in the last frame. Keys that were pressed before the person could see
    /// another object do not act on that.
    pub(super) drawn: Option<WorkObject>,
    last_number: u64,
    /// Number of actions without a result.
    pub(super) running: usize,
    /// Texts that could not be saved.
    pub(super) unsaved: VecDeque<CommentEditor>,
    /// Quit when no action runs.
    pub(super) is_quitting: bool,
}

/// A message for the last row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReviewNotice {
    pub(super) text: String,
    pub(super) is_problem: bool,
}

impl ReviewScreen {
    pub fn new(team: &str, theme: Theme) -> ReviewScreen {
        ReviewScreen { team: team.to_owned(), theme, ..ReviewScreen::default() }
    }

    /// Returns the first effects: reads the list, and the changes of `member` if one is given.
    pub fn start(&mut self, member: Option<MemberName>) -> Vec<ReviewEffect> {
        let mut effects = vec![ReviewEffect::ReadList];
        if let Some(member) = member {
            self.selected = Some(member.clone());
            effects.extend(self.open(member, DiffRange::All, false));
        }
        effects
    }

    /// Handles an event of a terminal of this size.
    pub fn handle(&mut self, event: &Event, size: Size) -> Vec<ReviewEffect> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => self.key(*key, size),
            Event::Paste(text) => {
                if let Some(ReviewDialog::Editor(editor)) = &mut self.dialog {
                    editor.is_leaving = false;
                    editor.area.insert(text);
                }
                Vec::new()
            }
            Event::Key(_)
            | Event::Mouse(_)
            | Event::Resize(..)
            | Event::FocusGained
            | Event::FocusLost => Vec::new(),
        }
    }

    /// Returns the effects before the screen is ended from outside: saves what is being written.
    pub fn hang_up(&mut self) -> Vec<ReviewEffect> {
        let unsaved = std::mem::take(&mut self.unsaved).into_iter();
        let open = match self.dialog.take() {
            Some(ReviewDialog::Editor(editor)) if editor.is_changed() => Some(editor),
            _ => None,
        };
        let actions: Vec<_> = unsaved.chain(open).map(|editor| editor.action()).collect();
        actions.into_iter().map(|action| self.perform(action)).collect()
    }

    fn key(&mut self, key: KeyEvent, size: Size) -> Vec<ReviewEffect> {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('l') if ctrl => return vec![ReviewEffect::Redraw],
            KeyCode::Char('z') if ctrl => return vec![ReviewEffect::Suspend],
            _ => {}
        }
        self.shows_notice = false;
        self.is_quitting &= matches!(key.code, KeyCode::Char('q') | KeyCode::Esc);
        if self.dialog.is_some() {
            return self.dialog_key(key, size);
        }
        let is_interrupt = ctrl && key.code == KeyCode::Char('c');
        if self.loading.is_some() {
            let is_end = is_interrupt || matches!(key.code, KeyCode::Esc | KeyCode::Char('q'));
            return if is_end { self.cancel() } else { Vec::new() };
        }
        if is_interrupt {
            return self.command(ReviewCommand::Close);
        }
        let Some(page) = &mut self.changes else {
            return list_command(key).map(|command| self.command(command)).unwrap_or_default();
        };
        if !page.is_drawn {
            return Vec::new();
        }
        if let Some(command) = changes_command(key).filter(|_| !page.view.has_all_keys()) {
            return self.command(command);
        }
        let action = page.view.handle(key, size);
        action.map(|action| self.view_action(action)).unwrap_or_default()
    }

    fn command(&mut self, command: ReviewCommand) -> Vec<ReviewEffect> {
        match command {
            ReviewCommand::Next => self.select(|at, _| at.saturating_add(1)),
            ReviewCommand::Previous => self.select(|at, _| at.saturating_sub(1)),
            ReviewCommand::First => self.select(|_, _| 0),
            ReviewCommand::Last => self.select(|_, last| last),
            ReviewCommand::Open => return self.open_selected(DiffRange::All),
            ReviewCommand::ToggleSince => return self.toggle_since(),
            ReviewCommand::Approve => {
                self.ask(|screen, object| object.approval(screen.approval_details(&object.member)))
            }
            ReviewCommand::Merge => {
                self.ask(|screen, object| object.landing(screen.landing_details(&object.member)));
            }
            ReviewCommand::Check => self.show_checks(),
            ReviewCommand::Drop => self.ask(|_, object| Ok(object.dropping())),
            ReviewCommand::Send => return self.preview_message(),
            ReviewCommand::ShowOverlaps => return self.show_overlaps(),
            ReviewCommand::Undo => self.ask_undo(),
            ReviewCommand::ReadAgain => {
                let Some(page) = &self.changes else { return vec![ReviewEffect::ReadList] };
                return self.open(page.member.clone(), page.range, page.ignores_whitespace);
            }
            ReviewCommand::ShowNotice => {
                let text = self.notice.as_ref().map(|notice| notice.text.clone());
                self.show_page("Last message", text.unwrap_or_else(|| "no message yet".to_owned()));
            }
            ReviewCommand::Help => {
                let row = |(keys, words): (&str, &str)| format!("{keys:<8} {words}");
                let rows: Vec<String> = LIST_KEYS.iter().map(|key| row(key.shown)).collect();
                self.show_page("Keys", rows.join("\n"));
            }
            ReviewCommand::Close if self.changes.is_some() => return self.close_changes(),
            ReviewCommand::Close => return self.quit(),
        }
        Vec::new()
    }

    fn show_page(&mut self, title: &str, text: String) {
        self.dialog = Some(ReviewDialog::Page(ScrolledText::new(title, text)));
    }

    /// Shows the results of checks, and offers to run them.
    fn show_checks(&mut self) {
        let Some(object) = self.seen_or_report() else { return };
        let work = self.work_of(&object.member);
        let checks = work.map(|work| work.checks.as_slice()).unwrap_or_default();
        if checks.is_empty() {
            let problem =
                "the team has no checks; `phalanx docs review checks` says how to name them";
            return self.report(problem.to_owned(), true);
        }
        let mut lines = Vec::new();
        for check in checks {
            lines.push(check.words());
            let output = check.last.as_ref().map(|run| run.output.as_str()).unwrap_or_default();
            lines.extend(output.lines().map(|line| format!("  {line}")));
        }
        let (member, commit) = (object.member, object.snapshot);
        let title = format!("Checks of {member} at {}", short(&commit));
        let mut page = ScrolledText::new(&title, lines.join("\n"));
        let action = ReviewAction::Check { member, commit };
        page.answer = Some(QuestionAnswer { key: 'y', words: "run", action });
        self.dialog = Some(ReviewDialog::Page(page));
    }

    /// Shows overlaps and conflicts, and reads the lines of those of the selected work.
    fn show_overlaps(&mut self) -> Vec<ReviewEffect> {
        let text = self.list.as_ref().map(WorkList::overlap_text).unwrap_or_default();
        let mut page = ScrolledText::new("Overlaps and conflicts", text);
        let number = self.next_number();
        let work = self.selected.as_ref().and_then(|member| self.work_of(member));
        let changes = work.and_then(|work| work.changes.as_ref().ok());
        let mut effects = Vec::new();
        if let (Some(work), Some(changes)) = (work, changes)
            && !changes.conflicts.is_empty()
        {
            let member = work.member.clone();
            page.number = Some(number);
            let commit = changes.snapshot.clone();
            let action = ReviewAction::GiveConflicts { member: member.clone(), commit };
            page.answer =
                Some(QuestionAnswer { key: 't', words: "let the author resolve", action });
            effects.push(ReviewEffect::ReadConflicts { number, member });
        }
        self.dialog = Some(ReviewDialog::Page(page));
        effects
    }

    fn work_of(&self, member: &MemberName) -> Option<&ListedWork> {
        self.works().iter().find(|work| work.member == *member)
    }

    pub(super) fn works(&self) -> &[ListedWork] {
        self.list.as_ref().map_or(&[], |list| &list.works)
    }

    /// Returns the position of the selected work.
    pub(super) fn position(&self) -> Option<usize> {
        let selected = self.selected.as_ref()?;
        self.works().iter().position(|work| work.member == *selected)
    }

    /// Moves the selection to the position that `target` returns for the current and the last one.
    pub(super) fn select(&mut self, target: impl FnOnce(usize, usize) -> usize) {
        let last = self.works().len().saturating_sub(1);
        let at = target(self.position().unwrap_or(0), last).min(last);
        self.selected = self.works().get(at).map(|work| work.member.clone());
    }

    /// Selects the work at this position if the selected one is not in the list.
    pub(super) fn keep_selection(&mut self, at: usize) {
        if self.position().is_none() {
            self.select(|_, last| at.min(last));
        }
    }

    /// Returns the object of the keys. The error is why there is none.
    pub(super) fn object(&self) -> Result<WorkObject, String> {
        if let Some(page) = &self.changes {
            return Ok(page.work.object.clone());
        }
        let list = self.list.as_ref();
        let found = list.zip(self.selected.as_ref());
        match found.and_then(|(list, member)| WorkObject::listed(list, member)) {
            Some(Ok(object)) => Ok(object),
            Some(Err(problem)) => Err(problem),
            None => Err("no work is selected".to_owned()),
        }
    }

    /// Returns the object of the keys if it is the one that the person has seen.
    fn seen_object(&self) -> Result<WorkObject, String> {
        let object = self.object()?;
        if self.drawn.as_ref() == Some(&object) {
            return Ok(object);
        }
        Err(format!("the work of {} has just changed: press the key again", object.member))
    }

    /// Returns the object of the keys, or reports why there is none or it was not seen.
    fn seen_or_report(&mut self) -> Option<WorkObject> {
        self.seen_object().map_err(|problem| self.report(problem, true)).ok()
    }

    /// Asks a question about the object of the keys.
    fn ask(
        &mut self,
        question: impl FnOnce(&ReviewScreen, &WorkObject) -> Result<ReviewQuestion, String>,
    ) {
        match self.seen_object().and_then(|object| question(self, &object)) {
            Ok(question) => self.dialog = Some(ReviewDialog::Question(question)),
            Err(problem) => self.report(problem, true),
        }
    }

    fn approval_details(&self, member: &MemberName) -> Vec<String> {
        let mut details = Vec::new();
        let page = self.changes.as_ref().filter(|page| page.member == *member);
        if let Some(count @ 1..) = page.map(ChangesPage::open_demands) {
            details.push(format!("comments that demand a change and are not resolved: {count}"));
        }
        details.extend(self.landing_details(member));
        details
    }

    fn landing_details(&self, member: &MemberName) -> Vec<String> {
        let mut details = Vec::new();
        if let Some(work) = self.work_of(member) {
            details.extend(check_details(work));
            details.extend(conflict_details(work));
        }
        if self.is_outdated() {
            details.push("there are newer changes, which are not shown".to_owned());
        }
        details
    }

    /// Returns true if the changes on display are not the newest ones.
    pub(super) fn is_outdated(&self) -> bool {
        let Some((page, list)) = self.changes.as_ref().zip(self.list.as_ref()) else {
            return false;
        };
        let newest = WorkObject::listed(list, &page.member);
        matches!(newest, Some(Ok(newest)) if newest.snapshot != page.work.object.snapshot)
    }

    fn ask_undo(&mut self) {
        let Some(WorkList { into, main, .. }) = &self.list else { return };
        let words = format!("Take what has landed last off {into}, which is at {}?", short(main));
        let details = vec!["The commits stay on the branch of the member.".to_owned()];
        let action = ReviewAction::Undo { into: into.clone(), main: main.clone() };
        let answers = vec![QuestionAnswer { key: 'y', words: "take back", action }];
        self.dialog = Some(ReviewDialog::Question(ReviewQuestion::new(words, details, answers)));
    }

    fn open_selected(&mut self, range: DiffRange) -> Vec<ReviewEffect> {
        let Some(at) = self.position() else { return Vec::new() };
        let work = &self.works()[at];
        if range == DiffRange::SinceLook && work.seen == SeenWork::Never {
            let problem = format!("you have not looked at the work of {} before", work.member);
            self.report(problem, true);
            return Vec::new();
        }
        let member = work.member.clone();
        self.open(member, range, false)
    }

    fn toggle_since(&mut self) -> Vec<ReviewEffect> {
        let Some(page) = &self.changes else { return self.open_selected(DiffRange::SinceLook) };
        let range = match page.range {
            DiffRange::All | DiffRange::Uncommitted => DiffRange::SinceLook,
            DiffRange::SinceLook => DiffRange::All,
        };
        self.show_range(range)
    }

    /// Shows another range of the changes on display.
    fn show_range(&mut self, range: DiffRange) -> Vec<ReviewEffect> {
        let Some(page) = &self.changes else { return Vec::new() };
        let (member, white) = (page.member.clone(), page.ignores_whitespace);
        if range == DiffRange::SinceLook && page.look.is_none() {
            self.report(format!("you have not looked at the work of {member} before"), true);
            return Vec::new();
        }
        self.open(member, range, white)
    }

    fn open(
        &mut self,
        member: MemberName,
        range: DiffRange,
        ignores_whitespace: bool,
    ) -> Vec<ReviewEffect> {
        let page = self.changes.as_ref().filter(|page| page.member == member);
        let look = page.and_then(|page| page.look.clone());
        let number = self.next_number();
        let request = ChangesRequest { number, member, range, look, ignores_whitespace };
        self.loading = Some(request.clone());
        self.is_quitting = false;
        vec![ReviewEffect::Open(request)]
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn cancel(&mut self) -> Vec<ReviewEffect> {
        self.loading = None;
        self.show_unsaved();
        vec![ReviewEffect::Cancel]
    }

    fn preview_message(&mut self) -> Vec<ReviewEffect> {
        let Some(object) = self.seen_or_report() else { return Vec::new() };
        let drafts = match &self.changes {
            Some(page) => page.drafts(),
            None => self.work_of(&object.member).map_or(0, |work| work.comments.drafts),
        };
        if drafts == 0 {
            self.report(format!("you have no drafts on the work of {}", object.member), true);
            return Vec::new();
        }
        let number = self.next_number();
        let member = object.member.clone();
        self.dialog = Some(ReviewDialog::Message(MessagePreview {
            member: object.member,
            commit: object.snapshot,
            number,
            text: None,
            scroll: 0,
            is_drawn: false,
        }));
        vec![ReviewEffect::ReadMessage { number, member }]
    }

    fn dialog_key(&mut self, key: KeyEvent, size: Size) -> Vec<ReviewEffect> {
        let Some(mut dialog) = self.dialog.take() else { return Vec::new() };
        let page = usize::from(size.height / 2).max(1);
        match dialog.handle(key, page) {
            DialogEffect::Stay => self.dialog = Some(dialog),
            DialogEffect::Close => self.show_unsaved(),
            DialogEffect::Edit(editor) => self.dialog = Some(ReviewDialog::Editor(editor)),
            DialogEffect::Ask(question) => self.dialog = Some(ReviewDialog::Question(question)),
            DialogEffect::Choose(range) => return self.show_range(range),
            DialogEffect::Act(action) => {
                let effect = self.perform(action);
                self.show_unsaved();
                return vec![effect];
            }
        }
        Vec::new()
    }

    fn perform(&mut self, action: ReviewAction) -> ReviewEffect {
        self.running += 1;
        ReviewEffect::Perform(action)
    }

    fn view_action(&mut self, action: DiffAction) -> Vec<ReviewEffect> {
        let Some(page) = &mut self.changes else { return Vec::new() };
        match action {
            DiffAction::Comment(target) => {
                self.dialog = Some(ReviewDialog::Editor(page.new_comment(target)));
            }
            DiffAction::OpenAnnotation(id) => {
                self.dialog = page.open_comment(id).map(ReviewDialog::Comment);
            }
            DiffAction::Viewed { path, blob, viewed } => {
                let member = page.member.clone();
                let (path, blob) = page.mark_viewed(&path, blob, viewed);
                let action = ReviewAction::MarkViewed { member, path, blob, viewed };
                return vec![self.perform(action)];
            }
            DiffAction::IgnoreWhitespace(ignores) => {
                let (member, range) = (page.member.clone(), page.range);
                return self.open(member, range, ignores);
            }
            DiffAction::ChooseBase => {
                let at = RANGES.iter().position(|range| *range == page.range).unwrap_or(0);
                self.dialog = Some(ReviewDialog::Ranges { at });
            }
            DiffAction::Close => return self.close_changes(),
        }
        Vec::new()
    }

    /// Goes back to the list. Drafts stay. What was shown counts as seen from then on.
    fn close_changes(&mut self) -> Vec<ReviewEffect> {
        let Some(page) = self.changes.take() else { return Vec::new() };
        let drafts = page.drafts();
        if drafts > 0 {
            let words = if drafts == 1 { "1 draft stays" } else { "drafts stay" };
            let count = if drafts == 1 { String::new() } else { format!("{drafts} ") };
            let member = &page.member;
            self.report(format!("{count}{words}, not sent: r sends to {member}"), false);
        }
        let at = self.position().unwrap_or(0);
        self.selected = Some(page.member.clone());
        self.keep_selection(at);
        if !page.is_seen {
            return vec![ReviewEffect::ReadList];
        }
        let (member, commit) = (page.member, page.work.object.snapshot);
        vec![self.perform(ReviewAction::NoteLook { member, commit })]
    }

    fn quit(&mut self) -> Vec<ReviewEffect> {
        if !self.unsaved.is_empty() {
            self.show_unsaved();
            return Vec::new();
        }
        if self.running == 0 || self.is_quitting {
            return vec![ReviewEffect::Quit];
        }
        self.is_quitting = true;
        self.report("saving; quits when done, or at once with q".to_owned(), false);
        Vec::new()
    }

    pub(super) fn report(&mut self, text: String, is_problem: bool) {
        self.notice = Some(ReviewNotice { text, is_problem });
        self.shows_notice = true;
    }

    /// Opens the editor with a text that could not be saved, unless something else has the keys.
    pub(super) fn show_unsaved(&mut self) {
        if self.dialog.is_none() && self.loading.is_none() {
            self.dialog = self.unsaved.pop_front().map(ReviewDialog::Editor);
        }
    }
}

fn check_details(work: &ListedWork) -> Option<String> {
    let words: Vec<String> = work.checks.iter().map(WorkCheck::words).collect();
    (!words.is_empty()).then(|| format!("checks: {}", words.join(", ")))
}

fn conflict_details(work: &ListedWork) -> Option<String> {
    let files = &work.changes.as_ref().ok()?.conflicts;
    (!files.is_empty()).then(|| format!("conflicts: {}", files.join(", ")))
}
