//! The work of all members that waits for a review, and where it would conflict.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::changes::snapshot_of;
use super::checks::{WorkCheck, last_run};
use super::comments;
use super::tasks::{OpenTask, TaskInReview, open_task, tasks_in_review};
use crate::team::worktree::{UnreachableHosts, checkouts, must_be_here, repository};
use crate::{Context, OpsError};
use model::id::{HostName, MemberName};
use model::review::{CommentState, ReviewComment};
use model::team::worktree::Checkout;
use model::time::Timestamp;
use store::TeamStore;
use sys::clock::Deadline;
use sys::parallel::{cores, parallel_map};
use worktree::WorktreeError;

/// Time for the work of members on other hosts.
const HOSTS_LIMIT: Duration = Duration::from_secs(10);

/// Work of a member that the main branch does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingWork {
    /// The name of the commits in the repository: a branch or an abbreviated commit.
    pub from: String,
    /// The host of the worktree, if it is not on the machine of the repository.
    pub host: Option<HostName>,
    /// The commit since which the worktree has changed.
    pub base: String,
    pub head: String,
    /// The commit that has all files as they are; `head` if everything is committed.
    pub snapshot: String,
    pub commits: usize,
    /// Number of files that are not committed.
    pub uncommitted: usize,
    /// Number of files that differ from `base`.
    pub files: usize,
    pub added: usize,
    pub removed: usize,
    /// Files that conflict with the main branch.
    pub conflicts: Vec<String>,
    /// The date of the last commit.
    pub since: Timestamp,
}

/// The work of one member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewRow {
    pub name: MemberName,
    /// Its task that is in review.
    pub task: Option<TaskInReview>,
    /// Its task that is not over, first one in review.
    pub open_task: Option<OpenTask>,
    pub comments: CommentCounts,
    /// The snapshot that the speaker saw last.
    pub seen: Option<String>,
    /// The checks of the team, with their results on this work.
    pub checks: Vec<WorkCheck>,
    /// The reviewers that find nothing left to change in the work as it is.
    pub passed_by: Vec<MemberName>,
    /// The work, or the reason why git or its host could not tell.
    #[serde(flatten, serialize_with = "work_or_problem")]
    pub work: Result<WaitingWork, String>,
}

/// Writes the fields of the work, or `problem`.
fn work_or_problem<S: Serializer>(
    work: &Result<WaitingWork, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match work {
        Ok(work) => work.serialize(serializer),
        Err(problem) => serializer.collect_map([("problem", problem)]),
    }
}

/// The comments on the work of a member that the speaker may see, by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CommentCounts {
    pub drafts: usize,
    /// Sent, and not answered.
    pub sent: usize,
    /// Answered, and not resolved.
    pub answered: usize,
}

/// Two members that have changed the same files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Overlap {
    pub first: MemberName,
    pub second: MemberName,
    /// The files that both have changed.
    pub files: Vec<String>,
    /// Files that would conflict once the work of both is merged; all of `files` if git cannot try
    /// it.
    pub conflicts: Vec<String>,
}

/// The work that waits for a review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReviewOverview {
    /// The branch of the main working directory, or its abbreviated commit; empty if this machine
    /// has no repository of the team.
    pub into: String,
    /// The commit of the main working directory.
    pub main: String,
    /// By member. Members whose work has landed are left out.
    pub work: Vec<ReviewRow>,
    pub overlaps: Vec<Overlap>,
    /// Tasks in review of members that are not in `work`.
    pub tasks: Vec<TaskInReview>,
}

/// The work of one member, with the paths that it changes.
struct FoundWork {
    name: MemberName,
    checkout: Checkout,
    work: WaitingWork,
    paths: BTreeSet<String>,
}

type FindOutcome = Result<Option<FoundWork>, String>;

/// Returns the work of all members that waits for a review. Hosts that do not answer within ten
/// seconds are left behind.
///
/// # Errors
/// Files of the team that cannot be read; [`OpsError::Worktree`] if the main branch cannot be read.
pub fn overview(ctx: &Context, team: &TeamStore) -> Result<ReviewOverview, OpsError> {
    let all = checkouts(ctx, team)?;
    let checks = team.settings()?.map(|settings| settings.checks).unwrap_or_default();
    let (into, main) = main_branch(ctx, team, &all)?.unwrap_or_default();
    let mut overview = ReviewOverview { into, main, ..ReviewOverview::default() };
    let mut tasks = tasks_in_review(team)?;
    let board = team.board()?;
    let mut review = team.review()?;
    let comments = comments::visible(ctx, team, &review, None)?;
    let looks = review.looks.remove(&ctx.speaker).unwrap_or_default();
    let mut row = |name: MemberName, work: Result<WaitingWork, String>| {
        let task = tasks.iter().find(|task| task.is_of(&name)).cloned();
        tasks.retain(|other| task.as_ref().is_none_or(|task| task.id != other.id));
        let comments = count(comments.iter().filter(|comment| comment.member == name));
        let seen = looks.get(&name).map(|look| look.commit.clone());
        let snapshot = work.as_ref().map(|work| work.snapshot.as_str()).unwrap_or_default();
        let last = checks.iter().map(|check| last_run(check, &review, &name, snapshot));
        let passed_by = review.passed_by(&name, snapshot);
        let (checks, open_task) = (last.collect(), open_task(&board, &name));
        ReviewRow { checks, name, task, open_task, comments, seen, passed_by, work }
    };
    let mut found = Vec::new();
    for (name, outcome) in outcomes(ctx, team, &all) {
        match outcome {
            Ok(Some(one)) if review.dropped.get(&name) == Some(&one.work.snapshot) => {}
            Ok(Some(one)) => {
                overview.work.push(row(name, Ok(one.work.clone())));
                found.push(one);
            }
            Ok(None) => {}
            Err(problem) => overview.work.push(row(name, Err(problem))),
        }
    }
    overview.tasks = tasks;
    overview.overlaps = overlaps(ctx, &found);
    Ok(overview)
}

fn count<'c>(comments: impl Iterator<Item = &'c ReviewComment>) -> CommentCounts {
    let mut counts = CommentCounts::default();
    for comment in comments {
        match comment.state() {
            CommentState::Draft => counts.drafts += 1,
            CommentState::Sent => counts.sent += 1,
            CommentState::Answered => counts.answered += 1,
            CommentState::Resolved => {}
        }
    }
    counts
}

/// Returns the commit onto which the work of the team lands; `None` for a team without worktrees
/// here.
///
/// # Errors
/// Files of the team that cannot be read; [`OpsError::Worktree`] if git fails.
pub fn main_commit(ctx: &Context, team: &TeamStore) -> Result<Option<String>, OpsError> {
    let all = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    Ok(main_branch(ctx, team, &all)?.map(|(_, commit)| commit))
}

/// Returns the branch of the main working directory and its commit.
fn main_branch(
    ctx: &Context,
    team: &TeamStore,
    all: &BTreeMap<MemberName, Checkout>,
) -> Result<Option<(String, String)>, OpsError> {
    let here = all.iter().find(|(name, checkout)| must_be_here(team, name, checkout).is_ok());
    let Some((_, checkout)) = here else { return Ok(None) };
    let repository = repository(ctx, checkout);
    Ok(Some((repository.main_name()?, repository.main_commit()?)))
}

/// Finds the work of all members: on this machine and on each host at the same time.
fn outcomes(
    ctx: &Context,
    team: &TeamStore,
    all: &BTreeMap<MemberName, Checkout>,
) -> BTreeMap<MemberName, FindOutcome> {
    let mut here = Vec::new();
    let mut hosts: BTreeMap<HostName, Vec<(MemberName, Checkout)>> = BTreeMap::new();
    for (name, checkout) in all {
        let member = (name.clone(), checkout.clone());
        match &checkout.copy {
            Some(copy) => hosts.entry(copy.host.clone()).or_default().push(member),
            None => here.push(member),
        }
    }
    let (sender, answers) = channel();
    let mut missing = BTreeMap::new();
    for (host, members) in hosts {
        missing.extend(members.iter().map(|(name, _)| (name.clone(), host.clone())));
        let (ctx, team, sender) = (ctx.clone(), team.clone(), sender.clone());
        // Not joined: it can take longer than the caller waits.
        thread::spawn(move || {
            let mut hosts = UnreachableHosts::default();
            for (name, checkout) in members {
                let outcome = hosts.attempt(&checkout, || find(&ctx, &team, &name, &checkout));
                // Fails once the caller has gone on.
                let _ = sender.send((name, outcome));
            }
        });
    }
    drop(sender);
    let deadline = Deadline::after(HOSTS_LIMIT);
    let found_here = parallel_map(&here, cores(), |(name, checkout)| {
        find(ctx, team, name, checkout).map_err(|e| e.to_string())
    });
    let names = here.into_iter().map(|(name, _)| name);
    let mut outcomes: BTreeMap<MemberName, FindOutcome> = names.zip(found_here).collect();
    while let Ok((name, outcome)) = answers.recv_timeout(deadline.remaining()) {
        missing.remove(&name);
        outcomes.insert(name, outcome);
    }
    for (name, host) in missing {
        let what = format!("host `{host}` did not answer");
        let late = OpsError::Deadline { what, limit: HOSTS_LIMIT };
        outcomes.insert(name, Err(late.to_string()));
    }
    outcomes
}

/// Finds the work of one member; `None` if nothing waits for a review.
fn find(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    checkout: &Checkout,
) -> Result<Option<FoundWork>, OpsError> {
    if checkout.is_unfinished {
        return Ok(None);
    }
    must_be_here(team, name, checkout)?;
    let repository = repository(ctx, checkout);
    let (snapshot, from) = match snapshot_of(ctx, team, &repository, checkout) {
        // A branch without a worktree has nothing to review unless it has commits.
        Err(OpsError::Worktree(WorktreeError::NoDirectory { .. }))
            if checkout.copy.is_none() && repository.pending_commits(checkout)? == 0 =>
        {
            return Ok(None);
        }
        other => other?,
    };
    let Some(pending) = repository.pending_work(checkout, &snapshot)? else { return Ok(None) };
    let paths = pending.files.iter().flat_map(|file| file.old_path.iter().chain([&file.path]));
    let paths = paths.cloned().collect();
    let work = WaitingWork {
        from,
        host: checkout.copy.as_ref().map(|copy| copy.host.clone()),
        base: pending.base,
        head: snapshot.head,
        snapshot: snapshot.commit,
        commits: pending.commits,
        uncommitted: snapshot.uncommitted,
        files: pending.files.len(),
        added: pending.files.iter().map(|file| file.added).sum(),
        removed: pending.files.iter().map(|file| file.removed).sum(),
        conflicts: pending.conflicts,
        since: pending.since,
    };
    Ok(Some(FoundWork { name: name.clone(), checkout: checkout.clone(), work, paths }))
}

/// Returns the pairs of members that have changed the same files of one repository.
fn overlaps(ctx: &Context, found: &[FoundWork]) -> Vec<Overlap> {
    let mut pairs = Vec::new();
    for (at, first) in found.iter().enumerate() {
        for second in &found[at + 1..] {
            let files: Vec<String> = first.paths.intersection(&second.paths).cloned().collect();
            let is_one_repository = first.checkout.repository == second.checkout.repository;
            if is_one_repository && !files.is_empty() {
                pairs.push((first, second, files));
            }
        }
    }
    parallel_map(&pairs, cores(), |(first, second, files)| {
        let repository = repository(ctx, &first.checkout);
        let conflicts = repository.conflicts_between(&first.work.snapshot, &second.work.snapshot);
        Overlap {
            first: first.name.clone(),
            second: second.name.clone(),
            files: files.clone(),
            conflicts: conflicts.unwrap_or_else(|_| files.clone()),
        }
    })
}
