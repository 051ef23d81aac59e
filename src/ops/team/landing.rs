//! Lands the commits of a member on the branch of the main working directory, and takes the last
//! ones back.

use serde::Serialize;

use super::worktree::{checkout_of, must_be_here, repository};
use crate::hosts::away::AwayWorktree;
use crate::{Context, OpsError};
use model::id::MemberName;
use model::team::event::{EventKind, Note};
use model::team::worktree::{Checkout, LandedWork, LandingKind};
use store::TeamStore;
use sys::failpoint;
use worktree::{Landing, Preview, Repository, WorktreeError};

/// Attempts to land while other commits land on the same branch.
const ATTEMPTS: usize = 5;

/// A request to land commits.
#[derive(Debug, Clone)]
pub struct LandRequest {
    pub kind: LandingKind,
    /// The last commit to land; all of them without one. An id, which may be abbreviated.
    pub head: Option<String>,
    /// The message of the new commit.
    pub message: Option<String>,
    /// The work in a few words, as [`Landing::title`].
    pub title: Option<String>,
    /// Land the commits although the member has uncommitted work, which stays where it is.
    pub leaves_uncommitted: bool,
}

/// Work that has landed, or was taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LandingReport {
    pub name: MemberName,
    /// The name of the commits: a branch or a commit.
    pub from: String,
    /// The branch of the main working directory.
    pub into: String,
    #[serde(flatten)]
    pub landed: LandedWork,
    /// Files of the member that are not committed, and have not landed.
    pub uncommitted: usize,
    /// Later commits of the member, which have not landed.
    pub later: usize,
}

/// Lands the commits of a member. Those that arrive while it runs stay.
///
/// # Errors
/// As [`super::worktree::preview`]; [`OpsError::Worktree`] for conflicts, for nothing to land, and
/// if a changed file of the main working directory is in the way; a refusal for uncommitted work.
/// Nothing is changed then.
pub fn land(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    request: &LandRequest,
) -> Result<LandingReport, OpsError> {
    let plan = plan(ctx, team, name, request)?;
    let LandingPlan { checkout, repository, found, head: _, later } = &plan;
    let landed = land_commits(team, name, repository, checkout, &plan.landing(request))?;
    let note = Note::of(EventKind::WorkLanded).member(name).with("kind", <&str>::from(landed.kind));
    let note = note.with("head", landed.head.as_str()).with("commit", landed.new.as_str());
    team.record(note.with("into", found.into.as_str()).with("by", ctx.speaker.as_str()))?;
    let (from, into) = (found.from.clone(), found.into.clone());
    let (uncommitted, later) = (found.uncommitted, *later);
    Ok(LandingReport { name: name.clone(), from, into, landed, uncommitted, later })
}

/// Finds out whether the commits of a member could land now, and changes nothing.
///
/// # Errors
/// As [`land`], except that a changed file of the main working directory is not noticed.
pub(crate) fn try_out(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    request: &LandRequest,
) -> Result<(), OpsError> {
    let plan = plan(ctx, team, name, request)?;
    Ok(plan.repository.prepare(&plan.checkout, &plan.landing(request)).map(drop)?)
}

/// The commits that a request lands.
struct LandingPlan {
    checkout: Checkout,
    repository: Repository,
    found: Preview,
    /// The last of the commits.
    head: String,
    /// Number of later ones.
    later: usize,
}

impl LandingPlan {
    fn landing<'a>(&'a self, request: &'a LandRequest) -> Landing<'a> {
        Landing {
            head: &self.head,
            from: &self.found.from,
            kind: request.kind,
            message: request.message.as_deref(),
            title: request.title.as_deref(),
        }
    }
}

fn plan(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    request: &LandRequest,
) -> Result<LandingPlan, OpsError> {
    let checkout = checkout_of(ctx, team, name)?;
    must_be_here(team, name, &checkout)?;
    let repository = repository(ctx, &checkout);
    let found = match &checkout.copy {
        Some(copy) => AwayWorktree::reach(ctx, team, &checkout, copy)?.preview()?,
        None => repository.preview(&checkout)?,
    };
    if found.uncommitted > 0 && !request.leaves_uncommitted {
        return Err(OpsError::refused(
            format!("{} file(s) of `{name}` are not committed and would stay", found.uncommitted),
            format!(
                "let it commit them, or land the commits alone: \
                 `phalanx worktree merge {name} --leave-uncommitted`"
            ),
        ));
    }
    let (head, later) = match &request.head {
        Some(given) => repository.part_of(&found.head, given)?,
        None => (found.head.clone(), 0),
    };
    Ok(LandingPlan { checkout, repository, found, head, later })
}

/// Prepares the commits, records them and lands them; again if others have landed meanwhile. They
/// are on record first, because the main branch may change the files of a squash afterwards.
fn land_commits(
    team: &TeamStore,
    name: &MemberName,
    repository: &Repository,
    checkout: &Checkout,
    landing: &Landing<'_>,
) -> Result<LandedWork, OpsError> {
    let record = |landed: &Option<LandedWork>| {
        team.change_settings(|settings| {
            if let Some(known) = settings.checkouts.get_mut(name) {
                known.landed.clone_from(landed);
            }
        })
    };
    let _alone = repository.lock_landings()?;
    let mut attempt = 1;
    loop {
        let landed = repository.prepare(checkout, landing)?;
        record(&Some(landed.clone()))?;
        failpoint::hit("land.recorded");
        match repository.land(&landed) {
            Ok(()) => return Ok(landed),
            Err(WorktreeError::Moved { .. }) if attempt < ATTEMPTS => attempt += 1,
            Err(e) => {
                record(&checkout.landed)?;
                return Err(e.into());
            }
        }
    }
}

/// Takes the work that has landed last off the branch again: it is unmerged then.
///
/// # Errors
/// A refusal if nothing of the team has landed; [`OpsError::Worktree`] if the branch has got other
/// commits since, or a changed file is in the way. Nothing is changed then.
pub fn take_back(ctx: &Context, team: &TeamStore) -> Result<LandingReport, OpsError> {
    let all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    let mut moved = None;
    for (name, checkout) in &all {
        let Some(landed) = &checkout.landed else { continue };
        must_be_here(team, name, checkout)?;
        let repository = repository(ctx, checkout);
        let _alone = repository.lock_landings()?;
        match repository.take_back(landed) {
            Ok(()) => {}
            // The work of another member has landed after it.
            Err(e @ WorktreeError::Moved { .. }) => {
                moved = Some(e);
                continue;
            }
            Err(e) => return Err(e.into()),
        }
        team.change_settings(|settings| {
            if let Some(known) = settings.checkouts.get_mut(name) {
                known.landed = None;
            }
        })?;
        let into = repository.main_name()?;
        let note = Note::of(EventKind::WorkTakenBack).member(name);
        let note = note.with("commit", landed.new.as_str()).with("into", into.as_str());
        team.record(note.with("by", ctx.speaker.as_str()))?;
        return Ok(LandingReport {
            name: name.clone(),
            from: checkout.branch_here(),
            into,
            landed: landed.clone(),
            uncommitted: 0,
            later: 0,
        });
    }
    match moved {
        Some(e) => Err(e.into()),
        None => Err(OpsError::refused(
            format!("no work of team `{}` has landed", team.name()),
            "`phalanx worktree merge NAME` lands the work of a member",
        )),
    }
}
