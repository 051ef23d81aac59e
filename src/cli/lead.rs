//! `lead` and `adopt`: lead an existing team, in the foreground or in the background.

use std::ffi::OsString;
use std::time::Duration;

use clap::ValueEnum;
use serde_json::json;

use super::args_lead::{Leading, OnExit};
use super::conduct::{Conclusion, LeadSession};
use super::fail::{Class, Exit, Failure};
use super::notice::Notice;
use super::out::Out;
use super::setup::Setup;
use super::{Done, args_lead, interrupt, seat};
use crate::lead::End;
use crate::model::report::Report;
use crate::model::task::TaskState;
use crate::model::text;
use crate::ops::authority::Action;
use crate::ops::{self, OpsError, TeamStore};
use crate::sys::clock::Deadline;
use crate::sys::env;
use crate::sys::exec::spawn_detached;
use crate::sys::fs;
use crate::sys::proc::Process;
use crate::sys::signal::Signals;
use crate::ui;

/// Checks for a lead of another program. Returns a warning about what it could not check.
type CheckLead<'a> = &'a dyn Fn(&TeamStore) -> Result<Option<&'static str>, OpsError>;

/// Time limit for a background lead to acquire the lease.
const TAKEN_OVER: Duration = Duration::from_secs(5);
/// Interval of checks for its exit, which need not change any file.
const GLANCE: Duration = Duration::from_millis(50);
/// Number of bytes of its log that are searched for its last lines.
const LOG_TAIL: u64 = 4096;

pub(super) fn lead(setup: &Setup, args: &args_lead::Lead) -> Done {
    if !args.command.is_empty() {
        return seat::lead(setup, args);
    }
    let how = &args.how;
    let team = setup.team(Action::Lead)?;
    go(setup, &team, &|team| ops::lease::may_lead(&setup.ctx, team).map(|()| None), &["lead"], how)
}

pub(super) fn adopt(setup: &Setup, args: &args_lead::Adopt) -> Done {
    let team = setup.team(Action::Adopt)?;
    let verb: &[&str] = if args.force { &["adopt", "--force"] } else { &["adopt"] };
    go(setup, &team, &|team| ops::lease::may_adopt(&setup.ctx, team, args.force), verb, &args.how)
}

fn go(setup: &Setup, team: &TeamStore, check: CheckLead<'_>, verb: &[&str], how: &Leading) -> Done {
    if how.detach {
        // These errors must reach the caller and not only the background lead's log.
        let unseen = check(team)?;
        ops::lease::must_be_unheld(team)?;
        unseen.iter().for_each(|unseen| setup.out.say(unseen));
        let policy = OnExit::to_possible_value(&how.on_exit).expect("no policy is hidden");
        let pid = background(setup, team, &[verb, &["--on-exit", policy.get_name()]].concat())?;
        let document = json!({ "team_name": team.name().as_str(), "lead_pid": pid });
        setup.out.confirm(&document, || {
            format!("process {pid} leads team {} in the background", team.name())
        })?;
        return Ok(Exit::DONE);
    }
    let runtime = interrupt::runtime()?;
    let conclusion = runtime.block_on(async {
        // Handlers are installed before the lease makes this process visible as the lead: from then
        // on it may be signalled.
        let mut signals = Signals::new()?;
        let unseen = check(team)?;
        let lease = ops::lease::take(team)?;
        let (session, wishes) = LeadSession::new(setup, team, how.on_exit)?;
        session.catch_up()?;
        unseen.iter().for_each(|unseen| session.say(unseen));
        session.say(&format!("leading team {}; Ctrl-C {}", team.name(), meaning(how.on_exit)));
        session.lead(&mut signals, wishes, lease).await
    });
    runtime.shutdown_background();
    told(setup, team, &conclusion?)
}

/// Reports the end of the lead and returns the exit code.
pub(super) fn told(setup: &Setup, team: &TeamStore, conclusion: &Conclusion) -> Done {
    match conclusion.end {
        End::TeamGone => {
            setup.out.say(&format!("team {} was deleted: nothing is left to lead", team.name()));
            if setup.out.json {
                setup
                    .out
                    .document(&json!({ "team_name": team.name().as_str(), "lead_pid": null }))?;
            }
            Ok(Exit::DONE)
        }
        End::Left => {
            let document = json!({ "team_name": team.name().as_str(), "lead_pid": null });
            let again = format!("lead it again with `phalanx adopt -t {}`", team.name());
            setup.out.confirm(&document, || {
                format!("team {} runs on without a lead; {again}", team.name())
            })?;
            Ok(Exit::DONE)
        }
        End::TasksOver | End::Stopped | End::Carried => tell(&setup.out, team, conclusion, None),
    }
}

fn meaning(policy: OnExit) -> &'static str {
    match policy {
        OnExit::Stop => "ends it",
        OnExit::Detach => "leaves it",
        OnExit::Refuse => "ends it once no member lives",
    }
}

/// Prints the final report of a team and returns the exit code. `rerun` is the command that runs
/// the same team again.
pub(super) fn tell(
    out: &Out,
    team: &TeamStore,
    conclusion: &Conclusion,
    rerun: Option<&str>,
) -> Done {
    let success = conclusion.report.as_ref().is_some_and(|report| report.success);
    if let Some(report) = &conclusion.report {
        let more = more(team, report, rerun);
        let width = env::stdout_is_tty().then(|| usize::from(ui::size().0));
        out.outcome(report, success, || {
            ui::report(report, &ui::Page { paint: out.paint, width, more })
        })?;
    }
    if let Some(Failure::Told(told)) = &conclusion.left {
        out.complain(told);
    }
    if team.exists() && conclusion.left.is_none() {
        out.say(&format!(
            "team {0} stays on disk; remove it with `phalanx team delete -t {0}`",
            team.name()
        ));
    }
    Ok(match (conclusion.interrupted, &conclusion.left) {
        (true, _) => Exit::of(Class::Interrupted),
        (false, Some(left)) => left.exit(),
        (false, None) if success => Exit::DONE,
        (false, None) => Exit::of(Class::Failed),
    })
}

/// Returns the command that shows more than the report: one for the board if the team stays, else a
/// run that keeps the team.
fn more(team: &TeamStore, report: &Report, rerun: Option<&str>) -> Option<String> {
    let failed = report.tasks.iter().find(|task| task.state == TaskState::Failed);
    match (failed, rerun) {
        (Some(task), _) if team.exists() => {
            Some(format!("see more: phalanx task get {} -t {}", task.id, team.name()))
        }
        (None, _) if team.exists() && !report.tasks.is_empty() => {
            Some(format!("see more: phalanx task list --all -t {}", team.name()))
        }
        (Some(_), Some(rerun)) => Some(format!("to keep the team and its output: {rerun} --keep")),
        (_, _) => None,
    }
}

/// Starts a lead in the background, waits until it holds the lease, and returns its process id.
///
/// # Errors
/// Returns [`OpsError::LedByAnother`] if another process acquired the lease first, a failure with
/// the log's last lines if the lead exits, and a timeout after [`TAKEN_OVER`].
pub(super) fn background(setup: &Setup, team: &TeamStore, verb: &[&str]) -> Result<i32, Failure> {
    let ctx = &setup.ctx;
    let log = team.lead_log();
    let words: [OsString; 4] =
        ["--config-dir".into(), team.root().into(), "--team".into(), team.name().as_str().into()];
    let args: Vec<OsString> = words.into_iter().chain(verb.iter().map(OsString::from)).collect();
    let changes = team.changes()?;
    let pid = spawn_detached(ctx.caller.exe.as_os_str(), &args, None, &ctx.caller.cwd, Some(&log))?;
    let deadline = Deadline::after(TAKEN_OVER);
    let limit = TAKEN_OVER.as_secs();
    let _notice =
        Notice::of(&setup.out, format!("waiting for process {pid} to take over, up to {limit} s"));
    loop {
        // A short run can be over before the lease was seen.
        if !team.exists() || ops::lease::holder(team)? == Some(pid) {
            return Ok(pid);
        }
        if Process::of(pid).is_none() && team.exists() {
            ops::lease::must_be_unheld(team)?;
            let said = fs::read_tail(&log, LOG_TAIL).unwrap_or_default();
            let said = text::last_lines(&String::from_utf8_lossy(&said), 10);
            let hint = format!(
                "lead it here with `phalanx lead -t {0}`, or end it with `phalanx down -t {0}`",
                team.name()
            );
            return Err(Failure::new(
                Class::Failed,
                format!("the lead in the background has ended\n{said}"),
                Some(hint),
            ));
        }
        if deadline.expired() {
            let seconds = TAKEN_OVER.as_secs();
            let what = format!(
                "process {pid} did not take over the lead of team {} within {seconds} s",
                team.name()
            );
            return Err(Failure::new(
                Class::Deadline,
                what,
                Some(format!("look into {}", log.display())),
            ));
        }
        changes.wait(GLANCE.min(deadline.remaining()));
    }
}
