//! Brings the comments of a pull request as drafts of the caller. A person edits or discards them
//! before they are sent, because anyone may have written them.

use std::path::Path;

use serde::Serialize;

use super::program::{Forge, ForgeComment, ForgePlace};
use super::words::cut;
use crate::review::changes::{Reviewed, reviewed};
use crate::review::comments::{self, MAX_TEXT, NewComment};
use crate::review::place::{self, GivenPlace};
use crate::team::worktree::{checkout_of, repository};
use crate::{Context, OpsError};
use model::id::MemberName;
use model::review::{CommentId, CommentKind, CommentPlace, PullRequest, PullRequestState};
use model::team::worktree::Checkout;
use model::text;
use store::TeamStore;
use sys::exec::CancelToken;
use worktree::Repository;

/// Largest number of comments that become drafts at once.
const LARGEST: usize = 500;
/// Characters of the name of an account, and of a path in a text.
const NAME: usize = 100;

/// A pull request that was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SyncReport {
    pub name: MemberName,
    #[serde(flatten)]
    pub request: PullRequest,
    /// The new drafts.
    pub drafts: Vec<CommentId>,
    /// Number of comments that are left for the next time.
    pub more: usize,
}

/// Reads the pull request of a member's work. Its comments become drafts of the speaker, each once.
///
/// # Errors
/// A refusal if no pull request is known; as [`reviewed`]; failures of the program.
pub fn sync(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<SyncReport, OpsError> {
    let known = team.review()?.pull_requests.remove(name).ok_or_else(|| {
        OpsError::refused(
            format!("no pull request of the work of `{name}` is known"),
            format!("open one: `phalanx review {name} --pr`"),
        )
    })?;
    let checkout = checkout_of(ctx, team, name)?;
    let reviewed = reviewed(ctx, team, name, &CancelToken::default())?;
    let forge = Forge::new(ctx, known.tool, Path::new(&checkout.repository))?;
    let found = forge.request(known.number)?;
    let state = found.state;
    let mut new = forge.comments(known.number)?;
    new.retain(|comment| !known.imported.contains(&comment.id));
    let more = new.len().saturating_sub(LARGEST);
    new.truncate(LARGEST);
    let places =
        CommentPlacer { ctx, team, repository: repository(ctx, &checkout), checkout, reviewed };
    let new = new.into_iter().map(|comment| (comment.id.clone(), places.draft(comment)));
    let drafts = comments::import(ctx, team, &known, new.collect())?;
    team.change_review(|review| {
        let found = review.pull_requests.get_mut(name).filter(|found| found.is_same(&known));
        if let Some(found) = found {
            found.state = state;
        }
        Ok(())
    })?;
    if state == PullRequestState::Merged {
        team.change_settings(|settings| {
            if let Some(checkout) = settings.checkouts.get_mut(name) {
                checkout.merged.clone_from(&found.head);
            }
        })?;
    }
    let request = PullRequest { state, ..known.without_comments() };
    Ok(SyncReport { name: name.clone(), request, drafts, more })
}

/// The work to which comments belong.
struct CommentPlacer<'a> {
    ctx: &'a Context,
    team: &'a TeamStore,
    repository: Repository,
    checkout: Checkout,
    /// The work as it is now.
    reviewed: Reviewed,
}

impl CommentPlacer<'_> {
    fn draft(&self, comment: ForgeComment) -> NewComment {
        let login = text::short(&comment.login, NAME);
        let lines = comment.place.as_ref().and_then(|given| self.lines(given));
        let (at, place, about) = match (lines, &comment.place) {
            (Some((at, place)), _) => (at, Some(place), None),
            (None, Some(given)) => {
                let file = self.find(&self.reviewed, given, None);
                let is_named = given.lines.is_some() || file.is_none();
                (self.reviewed.clone(), file, is_named.then(|| words(given)))
            }
            (None, None) => (self.reviewed.clone(), None, None),
        };
        let head = match about {
            Some(about) => format!("@{login}, on {about}: "),
            None => format!("@{login}: "),
        };
        let body = text::block(&text::line_breaks(&comment.text));
        NewComment {
            member: at.name,
            kind: CommentKind::Must,
            place,
            base: at.base,
            commit: at.snapshot,
            text: cut(&(head + body.trim()), MAX_TEXT),
        }
    }

    /// Finds the lines of a comment in the commit for which it was written. From there they are
    /// followed into later snapshots like those of each other comment.
    fn lines(&self, given: &ForgePlace) -> Option<(Reviewed, CommentPlace)> {
        let commit = given.commit.clone()?;
        let missing = self.repository.missing(std::slice::from_ref(&commit)).ok()?;
        if !missing.is_empty() {
            return None;
        }
        let base = self.repository.review_base(&self.checkout, &commit).ok()?;
        let at = Reviewed { base, snapshot: commit, ..self.reviewed.clone() };
        let lines = given.lines.filter(|(first, last)| 0 < *first && first <= last)?;
        let place = self.find(&at, given, Some(lines))?;
        Some((at, place))
    }

    /// Finds a place in the work; `None` for a file or a line that does not exist.
    fn find(
        &self,
        at: &Reviewed,
        given: &ForgePlace,
        lines: Option<(u32, u32)>,
    ) -> Option<CommentPlace> {
        let given_place = GivenPlace { path: given.path.clone(), lines };
        place::find(self.ctx, self.team, at, &given_place, given.side).ok()
    }
}

/// Describes a place that was not found.
fn words(given: &ForgePlace) -> String {
    let path = text::short(&given.path, NAME);
    match given.lines {
        Some((first, last)) if first == last => format!("{path}:{first}"),
        Some((first, last)) => format!("{path}:{first}-{last}"),
        None => path,
    }
}
