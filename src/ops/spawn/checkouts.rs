//! Working directories of teammates: creates their git worktrees and warns when two agents share a
//! checkout (TK-09).

use std::path::{Path, PathBuf};

use super::super::context::Context;
use super::super::error::OpsError;
use super::super::worktree;
use super::prepare::Draft;
use crate::model::event::{EventKind, Note};
use crate::model::id::MemberName;
use crate::model::record::MemberRecord;
use crate::model::team::Member;
use crate::model::worktree::{Checkout, Rules, WorktreeRequest};
use crate::profile::{SHELL, WORKER};
use crate::store::TeamStore;
use crate::worktree::{Repository, checkout_of};

/// The requested worktree of a draft, and the repository it is made from.
pub(super) struct Site {
    repository: Repository,
    wish: WorktreeRequest,
}

impl Site {
    /// Finds the repository for a requested worktree. Returns none if none is requested.
    ///
    /// # Errors
    ///
    /// `cwd` is not in a git repository, or git cannot be run.
    pub(super) fn find(
        ctx: &Context,
        wish: Option<&WorktreeRequest>,
        cwd: &str,
    ) -> Result<Option<Site>, OpsError> {
        let Some(wish) = wish else { return Ok(None) };
        let repository = Repository::find(Path::new(cwd), &ctx.caller.env)?;
        Ok(Some(Site { repository, wish: wish.clone() }))
    }

    /// Sets the member's working directory to its worktree.
    pub(super) fn house(&self, team: &TeamStore, rules: &Rules, member: &mut Member) {
        let place =
            self.repository.place(rules.dir.as_deref(), &worktree::title(team, &member.name));
        member.cwd = place.to_string_lossy().into_owned();
        member.worktree_path = Some(member.cwd.clone());
    }
}

/// Creates the worktrees of a batch. Returns, per draft, the checkout if it is new. If one fails,
/// those already created are removed.
///
/// # Errors
///
/// The first worktree that could not be created.
pub(super) fn furnish(
    ctx: &Context,
    team: &TeamStore,
    drafts: &[Draft],
    members: &[Member],
    rules: &Rules,
) -> Result<Vec<Option<Checkout>>, OpsError> {
    let mut made: Vec<Option<Checkout>> = Vec::new();
    for (draft, member) in drafts.iter().zip(members) {
        let one = draft.site.as_ref().map(|site| {
            let (whom, path) = ((&member.name, &site.wish), Path::new(&member.cwd));
            worktree::furnish(team, &site.repository, whom, rules, path)
        });
        match one.transpose() {
            Ok(one) => made.push(one.and_then(|(checkout, new)| new.then_some(checkout))),
            Err(e) => {
                abandon(ctx, team, members, &made);
                return Err(e);
            }
        }
    }
    Ok(made)
}

/// Removes the new worktrees of a batch that could not be prepared.
pub(super) fn abandon(
    ctx: &Context,
    team: &TeamStore,
    members: &[Member],
    made: &[Option<Checkout>],
) {
    for (member, made) in members.iter().zip(made) {
        // Ignored: a remaining worktree is on record with the team, and the caller returns the
        // first failure.
        let _ = made.as_ref().map(|made| worktree::abandon(ctx, team, &member.name, made));
    }
}

/// Reports a start record whose directory differs from the member's worktree (EN-06, EN-07).
pub(super) fn astray(cwd: &str, member: &Member) -> Option<String> {
    let worktree = member.worktree_path.as_deref().filter(|worktree| *worktree != cwd)?;
    Some(format!("it runs in {cwd}, not in its worktree {worktree}"))
}

/// Returns and journals a warning for each new member that shares a checkout with another. Members
/// that only run given commands do not count, because they do not edit files on their own.
///
/// # Errors
///
/// The store cannot be read, or the journal cannot be written.
pub(super) fn warnings(team: &TeamStore, new: &[&MemberName]) -> Result<Vec<String>, OpsError> {
    let mut housed: Vec<(MemberName, PathBuf)> = Vec::new();
    let mut warnings = Vec::new();
    for member in team.team()?.teammates() {
        if !team.member_record(&member.name)?.is_none_or(|record| is_agent(&record)) {
            continue;
        }
        let Some(checkout) = checkout_of(Path::new(&member.cwd)) else { continue };
        // Members are visited in the order of joining, so `other` is the one that was there first.
        if let Some((other, _)) = housed.iter().find(|(_, known)| *known == checkout)
            && new.contains(&&member.name)
        {
            let text = format!(
                "`{other}` and `{}` work in one checkout, {}: what one does to its files the other gets; \
                 give each its own with `--worktree`",
                member.name,
                checkout.display()
            );
            team.record(
                Note::of(EventKind::Warning).member(&member.name).with("text", text.as_str()),
            )?;
            warnings.push(text);
        }
        housed.push((member.name.clone(), checkout));
    }
    Ok(warnings)
}

fn is_agent(record: &MemberRecord) -> bool {
    record.wish.profile != SHELL && record.wish.profile != WORKER
}
