//! Pushes the commits of a member and opens a pull request for them, unless one is open.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::program::{Forge, NewRequest};
use super::words;
use crate::review::changes::snapshot_of;
use crate::team::worktree::locate;
use crate::{Context, Kind, OpsError};
use model::id::MemberName;
use model::review::{PullRequest, PullRequestState};
use model::team::event::{EventKind, Note};
use model::team::worktree::check_branch;
use store::TeamStore;
use worktree::{Repository, WorktreeError};

/// Commits that were pushed, and their pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PullRequestReport {
    pub name: MemberName,
    #[serde(flatten)]
    pub request: PullRequest,
    /// The branch into which it would be merged.
    pub into: String,
    pub remote: String,
    /// Number of commits that are not in `into`.
    pub commits: usize,
    /// True if it was opened, and false if it was open.
    pub is_new: bool,
}

/// Pushes the commits of a member to the branch of its worktree at the remote, and opens a pull
/// request for it. The name of the branch is the recorded one, because a member can check out
/// another.
///
/// # Errors
/// As [`reviewed`](crate::review::changes::reviewed); a refusal for uncommitted work and if no
/// program can open one; [`OpsError::Worktree`] for nothing to push and for a push that fails.
/// After a failure of the program itself, the commits may have been pushed.
pub fn open(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<PullRequestReport, OpsError> {
    let (repository, checkout) = locate(ctx, team, name)?;
    let (snapshot, _) = snapshot_of(ctx, team, &repository, &checkout)?;
    if snapshot.uncommitted > 0 {
        return Err(OpsError::refused(
            format!("{} file(s) of `{name}` are not committed", snapshot.uncommitted),
            format!("let it commit or remove them: `phalanx send {name} \"commit your work\"`"),
        ));
    }
    let (head, branch) = (snapshot.head, checkout.branch.as_str());
    let into = target(&repository, branch)?;
    let base = repository.review_base(&checkout, &head)?;
    let subjects = repository.subjects(&base, &head)?;
    if subjects.is_empty() {
        return Err(WorktreeError::NothingToLand { into }.into());
    }
    let remote = push_remote(&repository, &into)?;
    let dir = Path::new(&checkout.repository);
    let (forge, found) = Forge::find(ctx, dir, branch)?;
    repository.push_branch(&remote, &head, branch)?;
    let is_new = found.is_none();
    let found = match found {
        Some(found) => found,
        None => {
            let task = words::task_of(team, name)?;
            let private = [checkout.path.as_str(), checkout.repository.as_str()];
            forge.create(&NewRequest {
                branch,
                into: &into,
                title: &words::title(task.as_ref(), name, &subjects),
                body: &words::body(task.as_ref(), &subjects, &private),
            })?
        }
    };
    let request = PullRequest {
        tool: forge.tool,
        number: found.number,
        url: found.url,
        branch: branch.to_owned(),
        head,
        state: PullRequestState::Open,
        imported: BTreeSet::new(),
    };
    record(team, name, &request)?;
    if is_new {
        let note = Note::of(EventKind::PullRequestOpened).member(name);
        let note = note.with("url", request.url.as_str()).with("head", request.head.as_str());
        let note = note.with("branch", branch).with("into", into.as_str());
        team.record(note.with("by", ctx.speaker.as_str()))?;
    }
    let (name, commits) = (name.clone(), subjects.len());
    Ok(PullRequestReport { name, request, into, remote, commits, is_new })
}

/// Returns the branch into which the work would be merged.
fn target(repository: &Repository, branch: &str) -> Result<String, OpsError> {
    let Some(into) = repository.main_branch()? else {
        return Err(OpsError::refused(
            "the main working directory has no branch into which the work would be merged",
            "check one out there: `git switch main`",
        ));
    };
    if into == branch || check_branch(branch).is_err() {
        return Err(OpsError::refused(
            format!("the branch `{branch}` cannot be proposed to {into}"),
            "give the member a worktree with a branch of its own",
        ));
    }
    Ok(into)
}

fn push_remote(repository: &Repository, main: &str) -> Result<String, OpsError> {
    repository.push_remote(main).map_err(|e| match e {
        WorktreeError::NoRemote { .. } => OpsError::described(
            Kind::Usage,
            e.to_string(),
            "add it with `git remote add origin URL`, or name another in `remote.pushDefault`",
        ),
        e => e.into(),
    })
}

/// Records a pull request. What is known of the comments of the same one stays.
fn record(team: &TeamStore, name: &MemberName, request: &PullRequest) -> Result<(), OpsError> {
    Ok(team.change_review(|review| {
        let known = review.pull_requests.remove(name).filter(|known| known.is_same(request));
        let imported = known.map(|known| known.imported).unwrap_or_default();
        review.pull_requests.insert(name.clone(), PullRequest { imported, ..request.clone() });
        Ok(())
    })?)
}
