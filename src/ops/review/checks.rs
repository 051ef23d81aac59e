//! The checks of a team: runs them in the worktree of a member, and keeps the results.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use super::changes::{Reviewed, reviewed};
use crate::hosts::away::AwayWorktree;
use crate::team::worktree::checkout_of;
use crate::{Context, OpsError, now};
use model::id::MemberName;
use model::members::environ::{self, EnvRules};
use model::review::{CheckEnd, CheckRun, TeamReview};
use model::team::check::TeamCheck;
use model::team::worktree::short_commit;
use model::text;
use store::TeamStore;
use sys::exec::{self, CancelToken, ExecCommand, ExecError, ExecLimits};
use sys::{clock, proc, rand};

/// Lines of output that are kept of a run.
const LINES: usize = 200;
/// Largest output that is kept of a run, in bytes.
const OUTPUT: usize = 32 * 1024;
/// Environment variable that holds the id of one run. It finds processes that have left the group.
const MARK: &str = "PHALANX_CHECK_RUN";
/// Grace period for processes that a check has left behind.
const GRACE: Duration = Duration::from_millis(500);

/// A check of the team with its last result on the work of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkCheck {
    pub name: String,
    /// `None` if it has not run on the work as it is.
    pub last: Option<CheckRun>,
}

impl WorkCheck {
    /// Returns the name with the result in a few words.
    pub fn words(&self) -> String {
        match &self.last {
            Some(run) => format!("{} {}", self.name, run.end.words()),
            None => format!("{} has not run", self.name),
        }
    }

    pub fn has_passed(&self) -> bool {
        self.last.as_ref().is_some_and(|run| run.end.has_passed())
    }
}

/// Checks that have run on the work of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckedWork {
    pub name: MemberName,
    /// The snapshot that was checked.
    pub commit: String,
    /// The files changed while the checks ran: the results are not kept, and count for nothing.
    pub changed: bool,
    pub checks: Vec<WorkCheck>,
}

impl CheckedWork {
    pub fn has_passed(&self) -> bool {
        !self.changed && self.checks.iter().all(WorkCheck::has_passed)
    }
}

/// Runs checks of the team on the work of a member, one after the other; all of them if `only` is
/// empty. Results of a worktree that changes meanwhile are not kept.
///
/// # Errors
/// [`OpsError::Usage`] if the team has no such check; as [`reviewed`]. A check that fails is none.
pub fn run(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    only: &[String],
    cancel: &CancelToken,
) -> Result<CheckedWork, OpsError> {
    let (checks, env) = checks_of(team)?;
    let chosen = chosen(&checks, only)?;
    let checkout = checkout_of(ctx, team, name)?;
    let before = reviewed(ctx, team, name, cancel)?;
    let mut done = Vec::new();
    for check in chosen {
        let ran = match &checkout.copy {
            Some(copy) => {
                AwayWorktree::reach(ctx, team, &checkout, copy)?.check(check, &env, cancel)?
            }
            None => run_in(ctx, Path::new(&checkout.path), check, &env, cancel),
        };
        if cancel.is_cancelled() {
            let problem = format!("check `{}` was cancelled", check.name);
            return Err(OpsError::Failed { problem });
        }
        let last = CheckRun { commit: before.snapshot.clone(), ..ran };
        done.push(WorkCheck { name: check.name.clone(), last: Some(last) });
    }
    let changed = reviewed(ctx, team, name, cancel)?.snapshot != before.snapshot;
    if !changed {
        team.change_review(|review| {
            let known = review.checks.entry(name.clone()).or_default();
            known.retain(|check, _| checks.iter().any(|of| of.name == *check));
            let runs = done.iter().filter_map(|of| Some((of.name.clone(), of.last.clone()?)));
            known.extend(runs);
            Ok(())
        })?;
    }
    Ok(CheckedWork { name: name.clone(), commit: before.snapshot, changed, checks: done })
}

/// Requires that all checks of the team pass on the commits of a member, and returns the last of
/// the commits. Runs those that have not passed on it.
///
/// # Errors
/// As [`run`]; a refusal for work that is not committed, which the checks would see and which would
/// not land, and for a check that does not pass.
pub fn require(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    cancel: &CancelToken,
) -> Result<String, OpsError> {
    let found = reviewed(ctx, team, name, cancel)?;
    if found.uncommitted > 0 {
        return Err(OpsError::refused(
            format!(
                "{} file(s) of `{name}` are not committed: checks would test more than what lands",
                found.uncommitted
            ),
            format!("let it commit them: `phalanx send {name} \"Commit your work.\"`"),
        ));
    }
    let (checks, _) = checks_of(team)?;
    let known = last_runs(&checks, &team.review()?, &found);
    let open: Vec<String> =
        known.iter().filter(|of| !of.has_passed()).map(|of| of.name.clone()).collect();
    if open.is_empty() {
        return Ok(found.snapshot);
    }
    let done = run(ctx, team, name, &open, cancel)?;
    if done.has_passed() {
        return Ok(done.commit);
    }
    let words = if done.changed {
        format!("the work of {name} has changed while its checks ran")
    } else {
        let failed = done.checks.iter().find(|of| !of.has_passed());
        let words = failed.map(WorkCheck::words).unwrap_or_default();
        format!("check {words} on the work of {name} at {}", short_commit(&done.commit))
    };
    Err(OpsError::refused(
        words,
        format!("run them and see the output: `phalanx review check {name}`"),
    ))
}

/// Returns the checks of the team with their results on this work.
pub(super) fn results(
    team: &TeamStore,
    review: &TeamReview,
    found: &Reviewed,
) -> Result<Vec<WorkCheck>, OpsError> {
    let checks = team.settings()?.map(|settings| settings.checks).unwrap_or_default();
    Ok(last_runs(&checks, review, found))
}

fn last_runs(checks: &[TeamCheck], review: &TeamReview, found: &Reviewed) -> Vec<WorkCheck> {
    checks.iter().map(|check| last_run(check, review, &found.name, &found.snapshot)).collect()
}

/// Returns a check with its result on a snapshot of a member.
pub(super) fn last_run(
    check: &TeamCheck,
    review: &TeamReview,
    name: &MemberName,
    snapshot: &str,
) -> WorkCheck {
    let run = review.checks.get(name).and_then(|runs| runs.get(&check.name));
    let last = run.filter(|run| run.commit == snapshot).cloned();
    WorkCheck { name: check.name.clone(), last }
}

/// Returns the checks of the team, and the rules for their environment.
fn checks_of(team: &TeamStore) -> Result<(Vec<TeamCheck>, EnvRules), OpsError> {
    let settings = team.settings()?;
    let (checks, env) = settings.map(|of| (of.checks, of.env)).unwrap_or_default();
    if checks.is_empty() {
        return Err(OpsError::usage(
            format!("team `{}` has no checks", team.name()),
            "name one: `phalanx team set check.test.run '[\"cargo\", \"test\"]'`, or a [[check]] in the \
             manifest",
        ));
    }
    Ok((checks, env))
}

fn chosen<'c>(checks: &'c [TeamCheck], only: &[String]) -> Result<Vec<&'c TeamCheck>, OpsError> {
    if only.is_empty() {
        return Ok(checks.iter().collect());
    }
    let find = |name: &String| {
        checks.iter().find(|check| check.name == *name).ok_or_else(|| {
            let known: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
            let problem = format!("the team has no check `{}`", text::line(name));
            OpsError::usage(problem, format!("it has: {}", known.join(", ")))
        })
    };
    only.iter().map(find).collect()
}

/// Runs a check in a directory of this machine. The commit of the result is empty.
pub(crate) fn run_in(
    ctx: &Context,
    dir: &Path,
    check: &TeamCheck,
    env: &EnvRules,
    cancel: &CancelToken,
) -> CheckRun {
    let (at, limit) = (now(), check.limit());
    let mark = rand::uuid();
    // As a member's own process would have it: the code of the member runs.
    let mut env = environ::compose(&ctx.caller.env, env, &[], &[]);
    env.push((MARK.into(), OsString::from(&mark)));
    let mut words = check.run.iter().map(OsString::from);
    let command = ExecCommand {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        env: Some(env),
        cwd: Some(dir.to_owned()),
        stdin: Vec::new(),
    };
    let begun = clock::now_ms();
    let limits = ExecLimits { deadline: limit, output: None, cancel: Some(cancel.clone()) };
    let result = exec::run_within(&command, &limits);
    let took_ms = clock::now_ms().saturating_sub(begun);
    let (end, output) = match result {
        Ok(output) => {
            let end = match (output.code, output.signal) {
                (Some(0), _) => CheckEnd::Passed,
                (Some(exit), _) => CheckEnd::Failed { exit },
                (None, signal) => CheckEnd::Killed { signal: signal.unwrap_or_default() },
            };
            (end, kept_output(&output.stdout, &output.stderr))
        }
        Err(ExecError::Deadline { .. }) => {
            (CheckEnd::Late { after_s: limit.as_secs() }, String::new())
        }
        Err(e) => (CheckEnd::NotRun { problem: e.to_string() }, String::new()),
    };
    proc::end_marked(&[format!("{MARK}={mark}")], GRACE);
    CheckRun { commit: String::new(), at, took_ms, end, output }
}

/// Returns the last lines of the output, without escape sequences; errors last.
fn kept_output(stdout: &[u8], stderr: &[u8]) -> String {
    let end = |bytes: &[u8]| {
        let from = bytes.len().saturating_sub(OUTPUT / 2);
        let plain = text::plain(&String::from_utf8_lossy(&bytes[from..]));
        text::last_lines(plain.trim_end(), LINES / 2)
    };
    let parts = [end(stdout), end(stderr)];
    let parts: Vec<&str> =
        parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}
