//! `up` on a team that exists: shows the difference between its manifest and the team, asks, and
//! applies it.

use std::time::Duration;

use serde_json::json;

use crate::ending::stop::{exit_code, stop_or_report};
use crate::fail::{ErrorMessage, Exit, Failure, VerbResult, chain};
use crate::interrupt;
use crate::members::start::{START, start};
use crate::read::is_confirmed;
use crate::setup::Setup;
use model::id::MemberName;
use ops::ending::shutdown::ShutdownOptions;
use ops::starting::reconcile::{self, Difference, MemberStep, WantedTeam};
use ops::starting::spawn::SpawnOptions;
use ops::{Kind, OpsError, TeamStore};
use sys::{env, failpoint};

/// Time in seconds for members to agree to their end.
const STOP_S: u64 = 30;
/// Age of a team whose `up` has created its tasks and started its members.
const BEGUN: Duration = Duration::from_secs(5);
/// Age of a team that its `up` leads.
const LED: Duration = Duration::from_millis(500);
/// Interval of comparisons meanwhile.
const LOOK: Duration = Duration::from_millis(100);

/// Prints what a manifest would change, of a team that exists or of none.
pub(crate) fn print_difference(
    setup: &Setup,
    name: &str,
    is_new: bool,
    difference: &Difference,
) -> VerbResult {
    let document = json!({ "team_name": name, "exists": !is_new, "changes": difference });
    setup.out.confirm(&document, || words(setup, name, is_new, difference))
}

fn words(setup: &Setup, name: &str, is_new: bool, difference: &Difference) -> String {
    let head = match (is_new, difference.is_empty(), difference.is_continued) {
        (true, _, _) => format!("team {name} would be created:"),
        (false, true, _) => return format!("team {name} is as the manifest says"),
        (false, false, true) => format!("team {name} is not complete yet:"),
        (false, false, false) => format!("team {name} differs from the manifest:"),
    };
    format!("{head}\n{}", ui::difference(difference, setup.out.paint))
}

/// Brings a team to its manifest. Another `up` that has just made it may be doing so. Returns the
/// exit code of a step that failed in part.
pub(crate) fn bring(
    setup: &Setup,
    team: &TeamStore,
    wanted: &WantedTeam,
    is_agreed: bool,
) -> Result<Option<Exit>, Failure> {
    reconcile::recover_unled(&setup.ctx, team)?;
    // Subscribed once, so that no change between two comparisons is missed.
    let changes = team.changes().map_err(OpsError::from)?;
    let mut difference = reconcile::compare(&setup.ctx, team, wanted)?;
    let created_at = ops::team::created_at(team)?;
    let is_begun = || -> Result<bool, OpsError> {
        let age = Duration::from_millis(ops::now().since(created_at));
        Ok(age > BEGUN || age > LED && !ops::members::lead::is_led(team)?)
    };
    while difference.is_continued && !is_begun()? {
        changes.wait(LOOK);
        difference = reconcile::compare(&setup.ctx, team, wanted)?;
    }
    if difference.is_empty() && ops::members::lead::is_led(team)? {
        return Ok(None);
    }
    setup.out.print_message(&words(setup, team.name().as_str(), false, &difference));
    if !difference.is_empty() && !difference.is_continued && !is_agreed {
        agree(team)?;
    }
    reconcile::settle(&setup.ctx, team, wanted, &difference)?;
    failpoint::hit("up.settled");
    let (staying, stopped) = stop(setup, team, &difference)?;
    let difference = without(difference, &staying);
    failpoint::hit("up.stopped");
    let failed = start_members(setup, team, wanted, &difference)?;
    failpoint::hit("up.started");
    match stopped.or(failed) {
        None => {
            reconcile::conclude(&setup.ctx, team, wanted, &difference)?;
            Ok(None)
        }
        exit => Ok(exit),
    }
}

fn agree(team: &TeamStore) -> Result<(), Failure> {
    let hint = "`--yes` applies the changes, `--dry-run` only shows them".to_owned();
    if !env::stdin_is_tty() || !env::stderr_is_tty() {
        let problem =
            format!("team {} exists, and nobody was asked about the changes", team.name());
        return Err(Failure::new(Kind::Refused, problem, Some(hint)));
    }
    match is_confirmed("apply these changes?")? {
        true => Ok(()),
        false => Err(Failure::new(Kind::Refused, "nothing was changed", Some(hint))),
    }
}

/// Asks the members to end that the manifest no longer has or changes. Returns the names of those
/// that run on, which are reported, and the exit code for them.
fn stop(
    setup: &Setup,
    team: &TeamStore,
    difference: &Difference,
) -> Result<(Vec<String>, Option<Exit>), Failure> {
    let live = ops::members::status::live_members(team)?;
    let mut leaving = difference.leaving();
    leaving.retain(|name| live.iter().any(|live| live.clashes_with(name.as_str())));
    if leaving.is_empty() {
        return Ok((Vec::new(), None));
    }
    let reason = Some("the manifest has changed".to_owned());
    let options = ShutdownOptions { reason, deadline_s: STOP_S, ..Default::default() };
    let hint = |name: &MemberName| {
        format!("end it with `phalanx shutdown --force {name}`, then run `up` again")
    };
    let (_, running) = stop_or_report(setup, team, &leaving, &options, hint)?;
    let exit = (!running.is_empty()).then(|| exit_code(&running));
    Ok((running.into_iter().map(|one| one.name.to_string()).collect(), exit))
}

/// Returns the difference without the starts of members that run on.
fn without(mut difference: Difference, staying: &[String]) -> Difference {
    difference.members.retain(|of| of.step != MemberStep::Restart || !staying.contains(&of.name));
    difference
}

/// Starts the new, changed and vanished members. Returns the exit code for those that failed, which
/// are reported.
fn start_members(
    setup: &Setup,
    team: &TeamStore,
    wanted: &WantedTeam,
    difference: &Difference,
) -> Result<Option<Exit>, Failure> {
    let specs = reconcile::starts(&setup.ctx, team, wanted, difference)?;
    if specs.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = specs.iter().map(|spec| spec.name.clone()).collect();
    let runtime = interrupt::runtime()?;
    let options = SpawnOptions::ready_within(START);
    let started = runtime.block_on(start(setup, team, specs, options));
    runtime.shutdown_background();
    let (batch, interrupted) = started?;
    batch.remarks().for_each(|line| setup.out.print_message(&line));
    let mut worst = interrupted.then_some(Kind::Interrupted);
    for (name, result) in names.iter().zip(batch.results) {
        match result {
            Err(_) if reconcile::runs_as_wanted(team, wanted, name)? => {}
            Ok(one) => setup.out.print_message(&format!("{} runs (process {})", one.name, one.pid)),
            Err(e) => {
                let (kind, message, hint) = (e.kind(), chain(&e), e.hint());
                worst.get_or_insert(kind);
                setup.out.report_error(&ErrorMessage { kind, message, hint });
            }
        }
    }
    Ok(worst.map(Exit::of))
}
