//! `shutdown` and `down`: stop members, and for `down` delete their team.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ending::by_process;
use crate::ending::stop::{
    all_members, delete_ended, end_members, exit_code, is_stuck, stop_members,
};
use crate::fail::{Exit, Failure, VerbResult};
use crate::notice::WaitNotice;
use crate::setup::Setup;
use crate::team::broken;
use crate::team::closing::{self, ClosingReport};
use model::team::settings::Finish;
use ops::authority::Action;
use ops::ending::shutdown::{ShutdownOptions, ShutdownResult};
use ops::{self, Kind, OpsError, TeamStore};
use sys::clock::Deadline;
use sys::fs;

/// Ask members to stop, wait for their answers, close their panes.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx shutdown ada\n  phalanx shutdown --all --deadline 10\n\n\
    Exits with 4 if a member refused, with 5 if one did not answer and was killed."
)]
pub(crate) struct ShutdownArgs {
    /// Members to stop.
    #[arg(required_unless_present = "all", conflicts_with = "all", value_name = "NAME")]
    #[serde(default)]
    pub(crate) names: Vec<String>,
    /// Stop all members.
    #[arg(long)]
    #[serde(default)]
    pub(crate) all: bool,
    /// Reason to give to the members.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Seconds to wait for the members to answer.
    #[arg(long, value_name = "S", default_value_t = answer_limit())]
    #[serde(default = "answer_limit")]
    pub(crate) deadline: u64,
    /// Seconds between SIGTERM and SIGKILL for a worker's command or a plain program [default: the
    /// setting `grace` of the team].
    #[arg(long, value_name = "S")]
    #[serde(skip)]
    pub(crate) grace: Option<u64>,
    /// Kill the members without asking.
    #[arg(long)]
    #[serde(default)]
    pub(crate) force: bool,
    /// Send the request and do not wait.
    #[arg(long)]
    #[serde(skip)]
    pub(crate) no_wait: bool,
}

fn answer_limit() -> u64 {
    30
}

/// Stop all members, then delete the team.
#[derive(Debug, Default, Args)]
#[command(
    after_help = "Each member is asked to stop and may refuse; the team then stays, with exit code 4.\n\
    Prints what the team has found; `phalanx report TEAM` prints it again later."
)]
pub(crate) struct DownArgs {
    /// Reason to give to the members.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Seconds to wait for the members to answer.
    #[arg(long, value_name = "S", default_value_t = 30)]
    pub(crate) deadline: u64,
    /// Seconds between SIGTERM and SIGKILL for a worker's command or a plain program [default: the
    /// setting `grace` of the team].
    #[arg(long, value_name = "S")]
    pub(crate) grace: Option<u64>,
    /// Kill the members without asking.
    #[arg(long)]
    pub(crate) force: bool,
    /// Write a summary of the run to a new file; with --json as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

/// Time limit for a lead to remove its team after all members have ended.
const REMOVAL_LIMIT: Duration = Duration::from_secs(3);
/// Interval of checks whether the lead has removed the team.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

pub(crate) fn shutdown(setup: &Setup, args: &ShutdownArgs) -> VerbResult {
    match shutdown_in_order(setup, args) {
        Err(failure) if args.force => by_process::kill(setup, &args.names, failure),
        done => done,
    }
}

fn shutdown_in_order(setup: &Setup, args: &ShutdownArgs) -> VerbResult {
    if args.force {
        by_process::store_must_answer(setup, setup.unopened_members(&args.names)?.1)?;
    }
    let (team, named) = setup.members(&args.names, Action::Shutdown)?;
    let names = if args.all {
        all_members(setup, &team)?
    } else {
        named.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
    };
    let options = ShutdownOptions {
        reason: args.reason.clone(),
        deadline_s: args.deadline,
        grace_s: args.grace,
        force: args.force,
        ..ShutdownOptions::default()
    };
    let ended = stop_members(setup, &team, &names, &options, !args.no_wait)?;
    if args.force {
        by_process::end_unrecorded(setup, &team, &ended)?;
    }
    print_outcomes(setup, &ended)?;
    Ok(exit_code(&ended))
}

pub(crate) fn down(setup: &Setup, args: &DownArgs) -> VerbResult {
    match down_in_order(setup, args) {
        Err(failure) if args.force => by_process::down(setup, None, failure),
        done => done,
    }
}

fn down_in_order(setup: &Setup, args: &DownArgs) -> VerbResult {
    if args.force {
        by_process::store_must_answer(setup, setup.named_team(None)?)?;
        broken::restore_missing(setup, None)?;
    }
    let team = setup.team(Action::Down)?;
    ops::team::lease::must_be_left(&setup.ctx, &team)?;
    let began_at = ops::now();
    if args.force {
        broken::prepare_deletion(setup, &team)?;
    }
    let file = args.report.as_deref().map(|file| report_file(setup, file)).transpose()?;
    let before = file.as_ref().map(|_| ClosingReport::now(&setup.ctx, &team, "")).transpose()?;
    let reason = args.reason.clone().or_else(|| Some("the team is taken down".to_owned()));
    let options = ShutdownOptions {
        reason,
        deadline_s: args.deadline,
        grace_s: args.grace,
        force: args.force,
        ..ShutdownOptions::default()
    };
    let mut ended = end_members(setup, &team, &options)?;
    let strangers = if args.force || !team.exists() {
        Vec::new()
    } else {
        ops::ending::delete::living_strangers(&setup.ctx, &team)?
    };
    let stays =
        !strangers.is_empty() || ended.iter().any(|one| one.outcome == "rejected" || is_stuck(one));
    let exit = match exit_code(&ended) {
        Exit::DONE if !strangers.is_empty() => Exit::of(Kind::Refused),
        exit => exit,
    };
    if stays {
        ops::ending::shutdown::allow_starts(&team)?;
    } else {
        wait_for_lead_to_delete(setup, &team)?;
        ended.extend(delete_ended(setup, &team, &options)?);
    }
    let found = if stays { None } else { closing::kept_since(setup, team.name(), began_at)? };
    if let (Some(path), Some(before)) = (&file, before) {
        match &found {
            Some(found) => found.write(setup, path)?,
            None => {
                ClosingReport::now(&setup.ctx, &team, "").unwrap_or(before).write(setup, path)?
            }
        }
    }
    let found = found.filter(|found| found.has_tasks && !setup.out.json);
    if found.is_some() {
        // They are in the report, too.
        ended.iter_mut().for_each(|one| one.deviations.clear());
    }
    print_outcomes(setup, &ended)?;
    if stays {
        setup.out.print_message(&format!("team {} was kept", team.name()));
        return Ok(exit);
    }
    if let Some(found) = found {
        setup.out.confirm(&(), || format!("\n{}", found.text))?;
    }
    setup.out.print_message(&format!("team {} is gone", team.name()));
    Ok(exit)
}

/// Returns the path of a report, which must not exist yet.
fn report_file(setup: &Setup, file: &Path) -> Result<PathBuf, Failure> {
    let path = setup.ctx.caller.cwd.join(file);
    if fs::exists(&path) {
        return Err(closing::file_exists(&path));
    }
    if !path.parent().is_some_and(fs::is_dir) {
        let problem = format!("the directory of the report file {} does not exist", path.display());
        return Err(Failure::usage(problem, "make it, or choose another file"));
    }
    Ok(path)
}

/// Lets a lead that removes its team by itself do so, so that it can print its report first.
fn wait_for_lead_to_delete(setup: &Setup, team: &TeamStore) -> Result<(), Failure> {
    let ends_itself = || -> Result<bool, OpsError> {
        let own_end = team.settings()?.is_some_and(|s| s.finish == Finish::TasksDone && !s.keep);
        Ok(own_end
            && ops::members::lead::is_led(team)?
            && ops::members::lead::stopped(team)?.is_none())
    };
    let deadline = Deadline::after(REMOVAL_LIMIT);
    let seconds = REMOVAL_LIMIT.as_secs();
    let _notice = WaitNotice::fixed(
        &setup.out,
        format!("waiting for the lead to remove the team, up to {seconds} s"),
    );
    while team.exists() && !deadline.expired() {
        match (ends_itself(), team.changes()) {
            (Ok(true), Ok(changes)) => drop(changes.wait(POLL_INTERVAL)),
            (Ok(false), _) => break,
            // The files vanish during a read while the team is being removed.
            (Err(_), _) | (_, Err(_)) if !team.exists() => break,
            (Err(e), _) => return Err(e.into()),
            (_, Err(e)) => return Err(e.into()),
        }
    }
    Ok(())
}

fn print_outcomes(setup: &Setup, ended: &[ShutdownResult]) -> VerbResult {
    let words =
        || if ended.is_empty() { String::new() } else { ui::shutdowns(ended, setup.out.paint) };
    setup.out.print_outcome(&ended, exit_code(ended) == Exit::DONE, words)
}
