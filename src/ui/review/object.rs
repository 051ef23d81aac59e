//! The work that keys act on, with the commits that are on the screen.

use super::data::{WorkList, WorkObject};
use super::dialog::{QuestionAnswer, ReviewQuestion};
use super::effect::ReviewAction;
use model::id::MemberName;
use model::team::worktree::LandingKind;

/// Characters of a commit id on the screen.
const ID: usize = 7;

impl WorkObject {
    /// Returns the work of a member in the list. The error is why it cannot be read.
    pub(super) fn listed(list: &WorkList, member: &MemberName) -> Option<Result<Self, String>> {
        let work = list.works.iter().find(|work| work.member == *member)?;
        let changes = match &work.changes {
            Ok(changes) => changes,
            Err(problem) => return Some(Err(problem.clone())),
        };
        Some(Ok(WorkObject {
            member: work.member.clone(),
            from: work.from.clone(),
            into: list.into.clone(),
            base: changes.base.clone(),
            head: changes.head.clone(),
            snapshot: changes.snapshot.clone(),
            uncommitted: changes.uncommitted,
            task: work.task.clone(),
        }))
    }

    /// Returns the question whether to approve the task of the work, or why there is none.
    pub(super) fn approval(&self, mut details: Vec<String>) -> Result<ReviewQuestion, String> {
        let Some(task) = self.task.as_ref().filter(|task| task.is_in_review) else {
            return Err(format!("{} has no task in review", self.member));
        };
        if self.uncommitted > 0 {
            details.push(format!("not committed, would not land: {}", files(self.uncommitted)));
        }
        let answer = |key, words, landing| {
            let (member, commit) = (self.member.clone(), self.snapshot.clone());
            let action = ReviewAction::Approve { member, task: task.id, commit, landing };
            QuestionAnswer { key, words, action }
        };
        let mut answers = vec![answer('y', "approve", None)];
        if self.head != self.base {
            answers.extend([
                answer('m', "and merge", Some(LandingKind::Merge)),
                answer('s', "and squash", Some(LandingKind::Squash)),
                answer('r', "and rebase", Some(LandingKind::Rebase)),
            ]);
        }
        let commit = short(&self.snapshot);
        let words =
            format!("Approve #{} {} of {} at {commit}?", task.id, task.subject, self.member);
        Ok(ReviewQuestion::new(words, details, answers))
    }

    /// Returns the question whether to drop the work.
    pub(super) fn dropping(&self) -> ReviewQuestion {
        let mut details = Vec::new();
        if let Some(task) = self.task.as_ref().filter(|task| task.is_in_review) {
            details.push(format!("#{} {} is cancelled.", task.id, task.subject));
        }
        details.push(format!("The commits stay on {}; new changes bring it back.", self.from));
        let words = format!("Drop the work of {} at {}?", self.member, short(&self.snapshot));
        let (member, commit) = (self.member.clone(), self.snapshot.clone());
        let action = ReviewAction::Drop { member, commit };
        let answers = vec![QuestionAnswer { key: 'y', words: "drop", action }];
        ReviewQuestion::new(words, details, answers)
    }

    /// Returns the question how to land the commits of the work, or why there are none.
    pub(super) fn landing(&self, mut details: Vec<String>) -> Result<ReviewQuestion, String> {
        if self.head == self.base {
            return Err(format!("{} has no commits that could land", self.member));
        }
        if self.uncommitted > 0 {
            let files = files(self.uncommitted);
            details.push(format!("not committed, stays in the worktree: {files}"));
        }
        let answer = |key, words, kind, completes| {
            let (member, head) = (self.member.clone(), self.head.clone());
            let action = ReviewAction::Land { member, head, kind, completes };
            QuestionAnswer { key, words, action }
        };
        let mut answers = vec![
            answer('y', "merge", LandingKind::Merge, None),
            answer('s', "squash", LandingKind::Squash, None),
            answer('r', "rebase", LandingKind::Rebase, None),
        ];
        if let Some(task) = &self.task {
            details.push(format!("#{} {} is open.", task.id, task.subject));
            let done = answer('c', "merge, task done", LandingKind::Merge, Some(task.id));
            answers.insert(1, done);
        }
        let WorkObject { member, from, into, .. } = self;
        let head = short(&self.head);
        let words = format!("Land the commits of {member} ({from}) up to {head} on {into}?");
        Ok(ReviewQuestion::new(words, details, answers))
    }
}

pub(super) fn files(count: usize) -> String {
    if count == 1 { "1 file".to_owned() } else { format!("{count} files") }
}

/// Returns a commit id as it is shown.
pub(super) fn short(commit: &str) -> String {
    commit.chars().take(ID).collect()
}
