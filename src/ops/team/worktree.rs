//! `worktree`: the git worktrees of a team's members. `spawn` creates them; they are removed with
//! the team or on request, unless work would be lost (EN-07). One that stays is reported with the
//! reason.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::hosts::away::AwayWorktree;
use crate::members::status;
use crate::{Context, OpsError};
use model::id::{HostName, Incarnation, MemberName};
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use model::team::worktree::{
    Checkout, Condition, RepositoryCopy, Rules, WorktreeOrigin, WorktreeRequest,
};
use store::TeamStore;
use sys::clock::Deadline;
use sys::parallel::parallel_map;
use sys::{failpoint, fs};
use worktree::{BuiltWorktree, HostRepository, RemovalOutcome, Repository, WorktreeError};

pub use worktree::Preview;

/// Number of worktrees at which git looks at the same time.
const AT_ONCE: usize = 16;
/// Time to find out which worktrees of a team that ends can go.
const CLEARING: Duration = Duration::from_secs(3);

/// A member's worktree and its condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    pub name: MemberName,
    pub checkout: Checkout,
    /// The condition, or the reason why git could not tell.
    pub condition: Result<Condition, String>,
}

/// The result of removing a worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Removal {
    pub name: MemberName,
    pub path: String,
    /// The host of the path, if it is not on the machine of the repository.
    pub host: Option<HostName>,
    pub removed: bool,
    /// The reason why it stays.
    pub why: Option<String>,
    /// The branch of a removed worktree, if the branch stays.
    pub branch_left: Option<String>,
}

/// Returns the worktrees of the team by member, also of members that have left.
///
/// # Errors
/// Files of the team that cannot be read.
pub fn list(ctx: &Context, team: &TeamStore) -> Result<Vec<Standing>, OpsError> {
    let all = checkouts(ctx, team)?;
    let found = with_each(&all, |name, checkout| condition(ctx, team, name, checkout));
    let standing = |((name, checkout), condition)| Standing { name, checkout, condition };
    Ok(all.into_iter().zip(found).map(standing).collect())
}

/// Performs an operation on each worktree: side by side on this machine, so that one at which git
/// waits holds up no other, and one after the other on hosts. Returns errors as text.
fn with_each<T: Send>(
    all: &BTreeMap<MemberName, Checkout>,
    operation: impl Fn(&MemberName, &Checkout) -> Result<T, OpsError> + Sync,
) -> Vec<Result<T, String>> {
    let attempt = |(name, checkout): &(&MemberName, &Checkout)| {
        checkout.copy.is_none().then(|| operation(name, checkout).map_err(|e| e.to_string()))
    };
    let found_here = parallel_map(&all.iter().collect::<Vec<_>>(), AT_ONCE, attempt);
    let mut hosts = UnreachableHosts::default();
    let there = |((name, checkout), found): ((&MemberName, &Checkout), Option<_>)| {
        found.unwrap_or_else(|| hosts.attempt(checkout, || operation(name, checkout)))
    };
    all.iter().zip(found_here).map(there).collect()
}

/// Returns the worktrees on record. The record follows what git says about those of this machine.
///
/// # Errors
/// Files of the team that cannot be read.
pub(crate) fn checkouts(
    ctx: &Context,
    team: &TeamStore,
) -> Result<BTreeMap<MemberName, Checkout>, OpsError> {
    let mut all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    all.iter_mut().for_each(|(name, checkout)| follow(ctx, team, name, checkout));
    Ok(all)
}

/// Corrects a worktree that git has elsewhere, its record, and that of its member.
fn follow(ctx: &Context, team: &TeamStore, name: &MemberName, checkout: &mut Checkout) {
    // The operation on the worktree reports what is wrong.
    let Some(Ok(now)) = here(ctx, team, name, checkout).map(|here| here.follow(checkout)) else {
        return;
    };
    let had = std::mem::replace(checkout, now);
    if had == *checkout {
        return;
    }
    // A record that cannot be written follows with the next command.
    let _ = team.change_settings(|settings| {
        if let Some(known) = settings.checkouts.get_mut(name).filter(|known| **known == had) {
            known.clone_from(checkout);
        }
    });
    if let Ok(Some(record)) = team.member_record(name)
        && record.request.cwd == had.path
    {
        let moved = |record: &mut MemberRecord| record.request.cwd.clone_from(&checkout.path);
        let _ = team.change_record(name, &record.incarnation, moved);
    }
}

/// Returns the repository of a worktree that is complete and, as its repository, on this machine.
fn here(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    checkout: &Checkout,
) -> Option<Repository> {
    let is_here = checkout.copy.is_none() && must_be_here(team, name, checkout).is_ok();
    (is_here && !checkout.is_unfinished).then(|| repository(ctx, checkout))
}

/// Unlocks the worktree of a run that has ended, unless a newer one has begun. One that stays
/// locked by phalanx can be removed by it all the same.
pub(crate) fn unlock(ctx: &Context, team: &TeamStore, name: &MemberName, run: &Incarnation) {
    let is_last = team.member_record(name).is_ok_and(|last| last.is_some_and(|last| last.is(run)));
    let settings = team.settings().ok().flatten().filter(|_| is_last);
    if let Some(had) = settings.and_then(|mut settings| settings.checkouts.remove(name))
        && let Some(here) = here(ctx, team, name, &had)
    {
        let _ = here.unlock(&had);
    }
}

/// Returns true if a member can go on in a worktree, and false if it needs a new one.
///
/// # Errors
/// [`OpsError::Worktree`] for one that git no longer knows, or whose commits have no directory.
pub(crate) fn is_usable(repository: &Repository, had: &Checkout) -> Result<bool, OpsError> {
    let path = had.path.clone();
    match repository.condition(had)? {
        Condition::Gone | Condition::Missing | Condition::Unfinished => Ok(false),
        Condition::Foreign => Err(WorktreeError::NotAWorktree { path }.into()),
        _ if !fs::is_dir(Path::new(&path)) => Err(WorktreeError::NoDirectory { path }.into()),
        _ => Ok(true),
    }
}

/// The hosts that could not be reached, so that each is waited for once.
#[derive(Default)]
pub(crate) struct UnreachableHosts(BTreeMap<HostName, String>);

impl UnreachableHosts {
    /// Performs an operation on a worktree, unless its host is known to be unreachable. Returns an
    /// error as text.
    pub(crate) fn attempt<T>(
        &mut self,
        checkout: &Checkout,
        operation: impl FnOnce() -> Result<T, OpsError>,
    ) -> Result<T, String> {
        let host = checkout.copy.as_ref().map(|copy| &copy.host);
        if let Some(problem) = host.and_then(|host| self.0.get(host)) {
            return Err(problem.clone());
        }
        operation().map_err(|e| {
            let problem = e.to_string();
            if let (OpsError::Host(_), Some(host)) = (e, host) {
                self.0.insert(host.clone(), problem.clone());
            }
            problem
        })
    }
}

fn condition(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    checkout: &Checkout,
) -> Result<Condition, OpsError> {
    must_be_here(team, name, checkout)?;
    match &checkout.copy {
        Some(copy) => AwayWorktree::reach(ctx, team, checkout, copy)?.condition(),
        None => Ok(repository(ctx, checkout).condition(checkout)?),
    }
}

/// Checks whether a member's commits would merge, without merging them.
///
/// # Errors
/// [`OpsError::NoWorktree`] for a member without one; [`OpsError::RepositoryElsewhere`] if its
/// repository is not here; [`OpsError::Worktree`] if git cannot try it; failures of its host.
pub fn preview(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<Preview, OpsError> {
    let (repository, checkout) = locate(ctx, team, name)?;
    match &checkout.copy {
        Some(copy) => AwayWorktree::reach(ctx, team, &checkout, copy)?.preview(),
        None => Ok(repository.preview(&checkout)?),
    }
}

/// The result of a look of git at the worktree of a member, or the reason for none.
type Looked<T> = (MemberName, Result<T, String>);

/// Returns what git finds in each worktree on this machine, as far as it answers within `limit` in
/// all.
pub(crate) fn look_at_each<T: Send>(
    ctx: &Context,
    team: &TeamStore,
    limit: Duration,
    look: fn(&Repository, &Checkout) -> Result<T, WorktreeError>,
) -> Result<Vec<Looked<T>>, OpsError> {
    let mut here = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    here.retain(|_, checkout| checkout.copy.is_none());
    let until = Deadline::after(limit);
    let found = with_each(&here, |name, checkout| {
        must_be_here(team, name, checkout)?;
        Ok(look(&repository(ctx, checkout).until(until), checkout)?)
    });
    Ok(here.into_keys().zip(found).collect())
}

/// Returns the error for a team that phalanx did not make.
pub(crate) fn not_managed(team: &TeamStore) -> OpsError {
    OpsError::refused(
        format!(
            "team `{}` was not created by phalanx, so phalanx manages no worktrees for it",
            team.name()
        ),
        "create one with `git worktree add` and pass it with `--cwd`",
    )
}

/// Removes the worktree of a member that has ended, unless work would be lost.
///
/// # Errors
/// [`OpsError::NoWorktree`] for a member without one; a refusal while the member
/// runs; [`OpsError::RepositoryElsewhere`] if its repository is not here; [`OpsError::Worktree`] if
/// git fails; failures of its host.
pub fn remove(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<Removal, OpsError> {
    let checkout = checkout_of(ctx, team, name)?;
    if status::live_members(team)?.iter().any(|live| live.clashes_with(name.as_str())) {
        return Err(OpsError::refused(
            format!("worktree {} is in use: `{name}` is still running", checkout.path),
            format!("end it first: `phalanx shutdown {name}`"),
        ));
    }
    drop_one(ctx, team, name, &checkout)
}

/// Removes all worktrees whose removal loses no work. Returns those that stay, or whose branch
/// stays. One whose condition git cannot tell within 3 s stays.
pub fn clear(ctx: &Context, team: &TeamStore) -> Result<Vec<Removal>, OpsError> {
    let all = checkouts(ctx, team)?;
    let looked = look_at_each(ctx, team, CLEARING, Repository::condition)?;
    let unknown: BTreeMap<_, _> =
        looked.into_iter().filter_map(|(name, found)| Some((name, found.err()?))).collect();
    let mut hosts = UnreachableHosts::default();
    // One after the other: two that have the same commits must not both count as merged.
    let removal = |(name, checkout): (&MemberName, &Checkout)| match unknown.get(name) {
        Some(problem) => kept(name, checkout, problem.clone()),
        None => hosts
            .attempt(checkout, || drop_one(ctx, team, name, checkout))
            .unwrap_or_else(|problem| kept(name, checkout, problem)),
    };
    let removals = all.iter().map(removal);
    Ok(removals.filter(|one| !one.removed || one.branch_left.is_some()).collect())
}

fn drop_one(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    checkout: &Checkout,
) -> Result<Removal, OpsError> {
    must_be_here(team, name, checkout)?;
    let outcome = match &checkout.copy {
        Some(copy) => AwayWorktree::reach(ctx, team, checkout, copy)?.remove()?,
        None => repository(ctx, checkout).remove(checkout)?,
    };
    record_removal(team, name, checkout, outcome)
}

/// Takes a worktree that was removed off the settings.
fn record_removal(
    team: &TeamStore,
    name: &MemberName,
    checkout: &Checkout,
    outcome: RemovalOutcome,
) -> Result<Removal, OpsError> {
    let removal = match outcome {
        RemovalOutcome::Kept { why } => return Ok(kept(name, checkout, why)),
        RemovalOutcome::Gone { branch_left } => {
            Removal { removed: true, why: None, branch_left, ..kept(name, checkout, String::new()) }
        }
    };
    team.change_settings(|settings| drop(settings.checkouts.remove(name)))?;
    let note =
        Note::of(EventKind::WorktreeRemoved).member(name).with("path", checkout.path.as_str());
    team.record(note)?;
    Ok(removal)
}

fn kept(name: &MemberName, checkout: &Checkout, why: String) -> Removal {
    Removal {
        name: name.clone(),
        path: checkout.path.clone(),
        host: checkout.copy.as_ref().map(|copy| copy.host.clone()),
        removed: false,
        why: Some(why),
        branch_left: None,
    }
}

/// Returns the worktree of a member, as [`checkouts`] does.
pub(crate) fn checkout_of(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<Checkout, OpsError> {
    let (known, mut checkout) = recorded(team, name)?;
    follow(ctx, team, &known, &mut checkout);
    Ok(checkout)
}

/// Returns the worktree of a member as it is on record, and the name as it is there.
pub(crate) fn recorded(
    team: &TeamStore,
    name: &MemberName,
) -> Result<(MemberName, Checkout), OpsError> {
    let all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    let missing =
        || OpsError::NoWorktree { name: name.clone(), known: all.keys().cloned().collect() };
    let found = all.iter().find(|(known, _)| known.clashes_with(name.as_str()));
    found.map(|(known, had)| (known.clone(), had.clone())).ok_or_else(missing)
}

/// Returns the worktree of a member with its repository, which this machine must have.
pub(crate) fn locate(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<(Repository, Checkout), OpsError> {
    let checkout = checkout_of(ctx, team, name)?;
    must_be_here(team, name, &checkout)?;
    Ok((repository(ctx, &checkout), checkout))
}

pub(crate) fn repository(ctx: &Context, checkout: &Checkout) -> Repository {
    Repository::at(Path::new(&checkout.repository), &ctx.caller.env)
}

/// Returns the name of a member's worktree and of its branch.
pub fn title(team: &TeamStore, name: &MemberName) -> String {
    format!("{}-{name}", team.name())
}

/// Rejects a worktree whose repository is on another machine.
pub(crate) fn must_be_here(
    team: &TeamStore,
    name: &MemberName,
    checkout: &Checkout,
) -> Result<(), OpsError> {
    match (&checkout.origin, team.host()) {
        (Some(origin), Some(here)) if !origin.clashes_with(here) => {
            let (name, repository) = (name.clone(), checkout.repository.clone());
            Err(OpsError::RepositoryElsewhere { name, repository, host: origin.clone() })
        }
        _ => Ok(()),
    }
}

/// Rejects a worktree that is not on `host`, where its member is about to start.
pub(crate) fn must_be_on(
    host: &HostName,
    name: &MemberName,
    checkout: &Checkout,
) -> Result<(), OpsError> {
    match checkout.host() {
        Some(other) if !other.clashes_with(host) => Err(OpsError::WorktreeOnHost {
            name: name.clone(),
            path: checkout.path.clone(),
            host: other.clone(),
        }),
        Some(_) | None => Ok(()),
    }
}

/// The worktree that a member is to have.
pub(crate) struct WantedWorktree<'a> {
    pub name: &'a MemberName,
    pub request: &'a WorktreeRequest,
    /// Set if the repository is a copy of one on another machine.
    pub origin: Option<&'a WorktreeOrigin>,
    pub rules: &'a Rules,
    /// The revision that a new branch starts from, if the member names one.
    pub base: Option<&'a str>,
    pub path: &'a Path,
}

/// The worktree of a member that is about to start.
pub(crate) struct ObtainedWorktree {
    pub checkout: Checkout,
    pub is_new: bool,
    /// What failed without harm to the checkout.
    pub warning: Option<String>,
}

/// Returns the worktree for a member that is about to start on this host: its earlier one, else a
/// new one. A new one is on record before it exists: the next start, or the end of the team, removes
/// one whose creation was cut off.
///
/// # Errors
/// [`OpsError::WorktreeOnHost`] if the member has one on another host; [`OpsError::Worktree`] if it
/// cannot be created. Nothing of it is left then.
pub(crate) fn obtain(
    ctx: &Context,
    team: &TeamStore,
    repository: &Repository,
    wanted: &WantedWorktree<'_>,
) -> Result<ObtainedWorktree, OpsError> {
    let WantedWorktree { name, request, path, .. } = *wanted;
    let known = team.settings()?.and_then(|settings| settings.checkouts.get(name).cloned());
    if let (Some(here), Some(had)) = (team.host(), &known) {
        must_be_on(here, name, had)?;
    }
    if let Some(had) = known.filter(|had| path == Path::new(&had.path)) {
        let is_same = request.branch(&had.branch) == had.branch;
        let is_usable = match &had.copy {
            Some(copy) => {
                let copy = HostRepository::at(Path::new(&copy.path), &ctx.caller.env);
                is_usable_on_host(&copy, &had)?
            }
            None => is_usable(repository, &had)?,
        };
        if !is_usable && had.copy.is_none() {
            repository.remove(&had)?;
        }
        if is_usable && is_same {
            return Ok(ObtainedWorktree { checkout: had, is_new: false, warning: None });
        }
    }
    let BuiltWorktree { checkout, warning } = make(ctx, team, repository, wanted)?;
    let note = Note::of(EventKind::WorktreeMade).member(name).with("path", checkout.path.as_str());
    let note = note.with("branch", checkout.branch.as_str());
    team.record(note.with_some("from", checkout.from.as_deref()))?;
    Ok(ObtainedWorktree { checkout, is_new: true, warning })
}

/// Makes a worktree, which is on record from before its first file on.
fn make(
    ctx: &Context,
    team: &TeamStore,
    repository: &Repository,
    wanted: &WantedWorktree<'_>,
) -> Result<BuiltWorktree, OpsError> {
    let WantedWorktree { name, request, origin, rules, base, path } = *wanted;
    let title = title(team, name);
    let source = origin.zip(team.host().cloned()).map(|(origin, host)| {
        let copy = HostRepository::at(repository.top(), &ctx.caller.env);
        (origin, host, copy)
    });
    let planned = match &source {
        Some((origin, host, copy)) => Checkout {
            repository: origin.repository.clone(),
            origin: Some(origin.host.clone()),
            copy: Some(RepositoryCopy {
                host: host.clone(),
                path: repository.top().to_string_lossy().into_owned(),
            }),
            ..copy.plan(path, &title, request, origin)?
        },
        None => {
            let planned = repository.plan(path, &title, request, base.or(rules.base.as_deref()))?;
            Checkout { origin: team.host().cloned(), ..planned }
        }
    };
    team.change_settings(|settings| {
        drop(settings.checkouts.insert(name.clone(), planned.clone()));
    })?;
    failpoint::hit("worktree.planned");
    let built = match &source {
        Some((origin, _, copy)) => copy.build(&planned, origin, &rules.setup),
        None => repository.build(&planned, rules),
    };
    failpoint::hit("worktree.built");
    let built = built.map_err(OpsError::from).and_then(|built| {
        let mut is_recorded = false;
        team.change_settings(|settings| {
            let known = settings.checkouts.get_mut(name).filter(|known| **known == planned);
            is_recorded = known.map(|known| known.clone_from(&built.checkout)).is_some();
        })?;
        let problem = format!("the team ended while its worktree {} was made", planned.path);
        if is_recorded { Ok(built) } else { Err(OpsError::Failed { problem }) }
    });
    if built.is_err() && repository.discard(&planned).is_ok() {
        // A worktree that cannot be removed stays on record.
        team.change_settings(|settings| drop(settings.checkouts.remove(name)))?;
    }
    built
}

/// Returns true if a worktree of this host can be used again. The entry of a deleted one is
/// removed, and its branch stays if it has commits.
fn is_usable_on_host(copy: &HostRepository, had: &Checkout) -> Result<bool, OpsError> {
    let state = copy.state(had)?;
    if !state.is_usable()
        && let RemovalOutcome::Kept { .. } = copy.remove_unused(had)?
    {
        copy.remove(had, &state, false)?;
    }
    Ok(state.is_usable())
}

/// Removes the worktree of a member that did not start on this host.
///
/// # Errors
/// A refusal if it has content by now, [`OpsError::Worktree`] if git fails; the
/// worktree then stays on record.
pub(crate) fn abandon(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    made: &Checkout,
) -> Result<(), OpsError> {
    let removal = match &made.copy {
        Some(copy) => {
            let copy = HostRepository::at(Path::new(&copy.path), &ctx.caller.env);
            record_removal(team, name, made, copy.remove_unused(made)?)?
        }
        None => drop_one(ctx, team, name, made)?,
    };
    match removal.why {
        None => Ok(()),
        Some(why) => Err(OpsError::Failed { problem: format!("{} was kept: {why}", made.path) }),
    }
}
