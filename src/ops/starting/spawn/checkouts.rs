//! Working directories of running teammates: warns when two agents share a checkout (TK-09), or
//! when a member runs outside its worktree.

use std::path::{Path, PathBuf};

use crate::OpsError;
use model::board::waiting::Ability;
use model::id::MemberName;
use model::members::launch::ability;
use model::members::record::MemberRecord;
use model::team::Member;
use model::team::event::{EventKind, Note};
use model::team::role::reads_only;
use store::TeamStore;
use worktree::checkout_of;

/// Reports a start record whose directory differs from the member's worktree (EN-06, EN-07).
pub(super) fn outside_worktree(cwd: &str, member: &Member) -> Option<String> {
    let worktree = member.worktree_path.as_deref().filter(|worktree| *worktree != cwd)?;
    Some(format!("it runs in {cwd}, not in its worktree {worktree}"))
}

/// Returns and journals a warning for each new member that shares a checkout with another. Members
/// that only run given commands or read do not count, because they do not edit files on their own.
///
/// # Errors
///
/// The store cannot be read, or the journal cannot be written.
pub(super) fn warn_of_shared(
    team: &TeamStore,
    new: &[MemberName],
) -> Result<Vec<String>, OpsError> {
    let mut checkouts: Vec<(MemberName, PathBuf)> = Vec::new();
    let mut warnings = Vec::new();
    for member in team.team()?.teammates() {
        if !team.member_record(&member.name)?.is_none_or(|record| edits_files(&record)) {
            continue;
        }
        let Some(checkout) = checkout_of(Path::new(&member.cwd)) else { continue };
        // Members are visited in the order of joining, so `other` is the one that was there first.
        if let Some((other, _)) = checkouts.iter().find(|(_, known)| *known == checkout)
            && new.contains(&member.name)
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
        checkouts.push((member.name.clone(), checkout));
    }
    Ok(warnings)
}

fn edits_files(record: &MemberRecord) -> bool {
    !reads_only(record.request.role.as_deref())
        && ability(&record.request.profile) == Ability::Prompts
}
