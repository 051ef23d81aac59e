//! Lands the commits of members on the branch of the main working directory, and takes them back,
//! the last ones first. Each is recorded as an intent before git changes anything, so that the next
//! process finishes what a killed one has begun.

use serde::Serialize;

use crate::board::task;
use crate::hosts::away::AwayWorktree;
use crate::team::hooks;
use crate::team::worktree::{locate, must_be_here, recorded, repository};
use crate::{Context, OpsError};
use model::board::task::{TaskAction, TaskState};
use model::id::{MemberName, TaskId};
use model::team::event::{EventKind, Note};
use model::team::worktree::{Checkout, LandedWork, LandingIntent, LandingKind, short_commit};
use store::{TaskStep, TeamStore};
use sys::{failpoint, rand};
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
    /// The task of the work, and the action that ends it. It ends with the landing, or not at all.
    pub task: Option<(TaskId, TaskAction)>,
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
    /// Problems with hooks of the task that has ended.
    #[serde(skip)]
    pub complaints: Vec<String>,
}

/// Lands the commits of a member. Those that arrive while it runs stay.
///
/// # Errors
/// As [`preview`](crate::team::worktree::preview); [`OpsError::Worktree`] for conflicts, for
/// nothing to land, and if a changed file of the main working directory is in the way; a refusal
/// for uncommitted work; as [`task::act`] for the task. Nothing is changed then.
pub fn land(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    request: &LandRequest,
) -> Result<LandingReport, OpsError> {
    let plan = plan(ctx, team, name, request)?;
    let repository = &plan.repository;
    let mut complaints = Vec::new();
    if let Some((id, action)) = request.task {
        // No hook runs for commits that cannot land.
        repository.prepare(&plan.checkout, &plan.landing(request))?;
        let (hooks, step) = (hooks::load_hooks(ctx, team), TaskStep::of(action));
        (_, complaints) = task::must_be_allowed(ctx, team, &hooks, id, &ctx.speaker, &step)?;
    }
    let _alone = repository.lock_landings()?;
    let landings = MemberLandings { team, name, repository };
    landings.finish()?;
    let (_, checkout) = recorded(team, name)?;
    let mut attempt = 1;
    let intent = loop {
        let work = repository.prepare(&checkout, &plan.landing(request))?;
        let (by, event) = (ctx.speaker.clone(), rand::uuid());
        let intent = LandingIntent { work, takes_back: false, task: request.task, by, event };
        match landings.carry_out(&intent) {
            Ok(()) => break intent,
            Err(OpsError::Worktree(WorktreeError::Moved { .. })) if attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(e) => return Err(e),
        }
    };
    landings.conclude(&intent, false)?;
    let LandingPlan { found: Preview { from, into, uncommitted, .. }, later, .. } = plan;
    let (name, landed) = (name.clone(), intent.work);
    Ok(LandingReport { name, from, into, landed, uncommitted, later, complaints })
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
    let (repository, checkout) = locate(ctx, team, name)?;
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

/// Finishes the landings that killed processes have begun, or takes them back.
///
/// # Errors
/// Files of the team that cannot be read or written; [`OpsError::Worktree`] if git fails.
pub fn finish(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    let all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    for (name, checkout) in all.iter().filter(|(_, checkout)| checkout.landing.is_some()) {
        let repository = repository(ctx, checkout);
        // The process that holds the lock finishes its own.
        if must_be_here(team, name, checkout).is_ok()
            && let Some(_alone) = repository.try_lock_landings()?
        {
            MemberLandings { team, name, repository: &repository }.finish()?;
        }
    }
    Ok(())
}

/// Takes the work that has landed last on the branch of the main working directory off it again: it
/// is unmerged then.
///
/// # Errors
/// A refusal that names the reason if no landing is at the end of this branch;
/// [`OpsError::Worktree`] if a changed file is in the way. Nothing is changed then.
pub fn take_back(ctx: &Context, team: &TeamStore) -> Result<LandingReport, OpsError> {
    let all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    // The best reason to refuse has the lowest rank: a landing with few commits on top of it.
    let mut refusal: Option<(usize, OpsError)> = None;
    for (name, checkout) in all.iter().filter(|(_, all)| all.landings().next().is_some()) {
        must_be_here(team, name, checkout)?;
        let repository = repository(ctx, checkout);
        let _alone = repository.lock_landings()?;
        let landings = MemberLandings { team, name, repository: &repository };
        landings.finish()?;
        for work in recorded(team, name)?.1.landed.into_iter().rev() {
            let (rank, reason) = match landings.why_not_last(&work)? {
                Some(reason) => reason,
                None => return landings.take_back(ctx, work),
            };
            if refusal.as_ref().is_none_or(|(lowest, _)| rank < *lowest) {
                refusal = Some((rank, reason));
            }
        }
    }
    Err(refusal.map_or_else(
        || {
            OpsError::refused(
                format!("no landing of team `{}` is left to take back", team.name()),
                "`phalanx worktree merge NAME` lands the work of a member",
            )
        },
        |(_, reason)| reason,
    ))
}

/// The landings of one member.
struct MemberLandings<'a> {
    team: &'a TeamStore,
    name: &'a MemberName,
    repository: &'a Repository,
}

impl MemberLandings<'_> {
    /// Records an intent, and lets git carry it out. If git refuses, nothing has begun.
    fn carry_out(&self, intent: &LandingIntent) -> Result<(), OpsError> {
        self.change_checkout(|checkout| checkout.landing = Some(intent.clone()))?;
        failpoint::hit("land.recorded");
        let moved = match intent.takes_back {
            true => self.repository.take_back(&intent.work),
            false => self.repository.land(&intent.work),
        };
        failpoint::hit("land.moved");
        if moved.is_err() {
            self.change_checkout(|checkout| checkout.landing = None)?;
        }
        Ok(moved?)
    }

    /// Ends the task of work that has landed, journals that it has, or that it was taken back, and
    /// records that this is over. The work is taken back if the task cannot end.
    fn conclude(&self, intent: &LandingIntent, is_journaled: bool) -> Result<(), OpsError> {
        let MemberLandings { team, name, repository } = *self;
        let LandingIntent { work, takes_back, task, by, event } = intent;
        if let Some((id, action)) = *task {
            let is_over =
                || task::get(team, id).is_ok_and(|task| task.state == TaskState::Completed);
            // The lead announces an end that could not be announced.
            if !is_over()
                && let Err(e) = task::end(team, id, by, &TaskStep::of(action))
                && !is_over()
            {
                let is_back = repository.take_back(work).is_ok();
                self.change_checkout(|checkout| checkout.end_landing(work, !is_back))?;
                let state = if is_back { "has not landed" } else { "has landed" };
                return Err(OpsError::refused(
                    format!("the work of `{name}` {state}, and task #{id} has not ended: {e}"),
                    format!("see the task: `phalanx task get {id}`"),
                ));
            }
        }
        failpoint::hit("land.ended");
        if !is_journaled {
            let kind = if *takes_back { EventKind::WorkTakenBack } else { EventKind::WorkLanded };
            let mut note = Note { id: Some(event.clone()), ..Note::of(kind).member(name) };
            if !takes_back {
                note = note.with("kind", <&str>::from(work.kind)).with("head", work.head.as_str());
            }
            let into = work.branch.clone().map_or_else(|| repository.main_name(), Ok)?;
            let note = note.with("commit", work.new.as_str()).with("into", into);
            team.record(note.with("by", by.as_str()))?;
        }
        failpoint::hit("land.journaled");
        self.change_checkout(|checkout| checkout.end_landing(work, !takes_back))
    }

    fn change_checkout(&self, edit: impl Fn(&mut Checkout)) -> Result<(), OpsError> {
        Ok(self.team.change_settings(|settings| {
            settings.checkouts.get_mut(self.name).into_iter().for_each(&edit);
        })?)
    }

    /// Finishes the landing that a killed process has begun for this member. If git refuses, nothing
    /// has landed and nothing was taken back. The caller holds the lock of the repository.
    fn finish(&self) -> Result<(), OpsError> {
        let Some(intent) = recorded(self.team, self.name)?.1.landing else { return Ok(()) };
        if self.repository.has_landed(&intent.work)? == intent.takes_back {
            match self.carry_out(&intent) {
                Err(OpsError::Worktree(_)) => return Ok(()),
                done => done?,
            }
        }
        let is_journaled = self.team.events()?.iter().any(|event| event.id == intent.event);
        self.conclude(&intent, is_journaled)
    }

    /// Returns the reason why a landing is not at the end of the branch of the main working
    /// directory, with its rank.
    fn why_not_last(&self, work: &LandedWork) -> Result<Option<(usize, OpsError)>, OpsError> {
        let MemberLandings { name, repository, .. } = *self;
        let (now, dir) = (repository.main_name()?, repository.top().display().to_string());
        let (branch, new) = (work.branch.as_ref().unwrap_or(&now), short_commit(&work.new));
        if !repository.has_landed(work)? {
            let problem =
                format!("{branch} was rewritten since {new}, the work of `{name}`, landed");
            let hint = format!("land it again: `phalanx worktree merge {name}`");
            return Ok(Some((usize::MAX, OpsError::refused(problem, hint))));
        }
        if work.branch.is_some() && work.branch != repository.main_branch()? {
            let branch = branch.clone();
            let other = WorktreeError::OtherBranch { dir, branch, now };
            return Ok(Some((usize::MAX - 1, other.into())));
        }
        let after = repository.commits_after(work)?;
        let range = match work.kind == LandingKind::Merge && work.new != work.head {
            true => format!("-m 1 {new}"),
            false => format!("{}..{new}", short_commit(&work.old)),
        };
        let reason = OpsError::refused(
            format!("{now} has {after} commit(s) on top of {new}, the work of `{name}`"),
            format!("in {dir}, `git revert {range}` takes it back by a new commit"),
        );
        Ok((after > 0).then_some((after, reason)))
    }

    fn take_back(&self, ctx: &Context, work: LandedWork) -> Result<LandingReport, OpsError> {
        let MemberLandings { team, name, repository } = *self;
        repository.may_take_back(&work)?;
        let (by, event) = (ctx.speaker.clone(), rand::uuid());
        let intent = LandingIntent { work, takes_back: true, task: None, by, event };
        self.carry_out(&intent)?;
        self.conclude(&intent, false)?;
        let (into, from) = (repository.main_name()?, recorded(team, name)?.1.branch_here());
        let (name, landed, complaints) = (name.clone(), intent.work, Vec::new());
        Ok(LandingReport { name, from, into, landed, uncommitted: 0, later: 0, complaints })
    }
}
