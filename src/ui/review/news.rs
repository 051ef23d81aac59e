//! Reactions of a review screen to the news of the driver.

use super::changes::ChangesPage;
use super::data::{ListedWork, WorkList};
use super::dialog::{CommentEditor, ReviewDialog};
use super::effect::{ReviewAction, ReviewEffect, ReviewNews};
use super::state::ReviewScreen;

impl ReviewScreen {
    /// Takes what has arrived.
    pub fn apply(&mut self, news: ReviewNews) -> Vec<ReviewEffect> {
        match news {
            ReviewNews::List(Ok(list)) => return self.set_list(list),
            ReviewNews::List(Err(problem)) => self.list_problem = Some(problem),
            ReviewNews::Opened { number, work } => {
                let Some(request) = self.loading.take_if(|request| request.number == number) else {
                    return Vec::new();
                };
                match work {
                    Ok(work) => {
                        let before = self.changes.take();
                        let nested = work.nested.join(", ");
                        let page = ChangesPage::new(request, *work, before, self.theme);
                        self.selected = Some(page.member.clone());
                        self.changes = Some(page);
                        if !nested.is_empty() {
                            let words =
                                format!("not shown, as repositories of their own: {nested}");
                            self.report(words, false);
                        }
                    }
                    Err(problem) => self.report(problem, true),
                }
                self.show_unsaved();
            }
            ReviewNews::Comments { member, snapshot, comments } => {
                let page = self
                    .changes
                    .as_mut()
                    .filter(|page| page.member == member && page.work.object.snapshot == snapshot);
                match (page, comments) {
                    (Some(page), Ok(comments)) => {
                        page.set_comments(comments);
                        self.refresh_open_comment();
                    }
                    (Some(_), Err(problem)) => self.report(problem, true),
                    (None, _) => {}
                }
            }
            ReviewNews::Message { number, text } => {
                let Some(ReviewDialog::Message(message)) = &mut self.dialog else {
                    return Vec::new();
                };
                if message.number != number {
                    return Vec::new();
                }
                match text {
                    Ok(text) => message.text = Some(text),
                    Err(problem) => {
                        self.dialog = None;
                        self.report(problem, true);
                        self.show_unsaved();
                    }
                }
            }
            ReviewNews::Conflicts { number, text } => {
                let Some(ReviewDialog::Page(page)) = &mut self.dialog else { return Vec::new() };
                if page.number == Some(number) {
                    let words = text.unwrap_or_else(|problem| problem);
                    page.text = format!("{}\n\n{words}", page.text);
                    page.number = None;
                }
            }
            ReviewNews::Code { code, tokens } => {
                // An id is always that of the same content, so it does not matter who has asked.
                if let Some(page) = &mut self.changes {
                    page.view.set_colors(&code, &tokens);
                }
            }
            ReviewNews::Done { action, words } => return self.finish(&action, words),
        }
        Vec::new()
    }

    /// Returns the effects after a frame: asks for the words of the code in it.
    pub fn drawn_effects(&mut self) -> Vec<ReviewEffect> {
        let page = self.changes.as_mut().filter(|_| self.loading.is_none() && self.theme.color);
        let Some(page) = page else { return Vec::new() };
        let code = page.new_code();
        if code.is_empty() {
            return Vec::new();
        }
        vec![ReviewEffect::ReadCode { member: page.member.clone(), code }]
    }

    /// Takes a list. The selection stays at its member, or else at its position. Reads the comments
    /// on display again if there are other ones.
    fn set_list(&mut self, list: WorkList) -> Vec<ReviewEffect> {
        let at = self.position().unwrap_or(0);
        let page = self.changes.as_ref();
        let counts = |works: &[ListedWork]| {
            let work =
                works.iter().find(|work| Some(&work.member) == page.map(|page| &page.member));
            work.map(|work| work.comments)
        };
        let has_news = self.list.is_some() && counts(self.works()) != counts(&list.works);
        let effects = page.filter(|_| has_news).map(|page| ReviewEffect::ReadComments {
            member: page.member.clone(),
            snapshot: page.work.object.snapshot.clone(),
        });
        let effects = effects.into_iter().collect();
        self.list_problem = None;
        self.list = Some(list);
        self.keep_selection(at);
        effects
    }

    /// Replaces a comment on display by its newest state.
    fn refresh_open_comment(&mut self) {
        let Some(ReviewDialog::Comment(open)) = &mut self.dialog else { return };
        let id = open.comment.id;
        let newest = self.changes.as_ref().and_then(|page| page.open_comment(id.0.into()));
        match newest {
            Some(newest) => {
                (open.comment, open.place) = (newest.comment, newest.place);
            }
            None => self.dialog = None,
        }
    }

    fn finish(
        &mut self,
        action: &ReviewAction,
        words: Result<String, String>,
    ) -> Vec<ReviewEffect> {
        self.running = self.running.saturating_sub(1);
        match words {
            Ok(words) if !action.is_silent() => self.report(words, false),
            Ok(_) => {}
            Err(problem) => {
                self.is_quitting = false;
                if let Some(editor) = CommentEditor::of(action, problem.clone()) {
                    self.unsaved.push_back(editor);
                    self.show_unsaved();
                }
                self.report(problem, true);
            }
        }
        if self.is_quitting && self.running == 0 {
            return vec![ReviewEffect::Quit];
        }
        if matches!(action, ReviewAction::MarkViewed { .. }) {
            return Vec::new();
        }
        let mut effects = vec![ReviewEffect::ReadList];
        let page = self.changes.as_ref().filter(|page| Some(&page.member) == action.member());
        if let Some(page) = page {
            let (member, snapshot) = (page.member.clone(), page.work.object.snapshot.clone());
            effects.push(ReviewEffect::ReadComments { member, snapshot });
        }
        effects
    }
}
