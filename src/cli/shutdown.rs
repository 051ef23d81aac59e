//! `shutdown` and `down`: ask members to shut down and wait. The team's lead carries the requests
//! through; without a lead this process does.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::args_short::Restart;
use super::conduct;
use super::fail::{Class, Exit, Failure, Told};
use super::notice::Notice;
use super::setup::Setup;
use super::{Done, args, broken, interrupt};
use crate::model::id::{MemberName, RequestId};
use crate::model::report::Report;
use crate::model::request::ShutdownRequest;
use crate::model::settings::Finish;
use crate::ops::authority::Action;
use crate::ops::shutdown::{Awaited, Ended, ShutdownOptions};
use crate::ops::{self, OpsError, TeamStore};
use crate::sys::clock::Deadline;
use crate::sys::fs;
use crate::sys::signal::Signals;
use crate::ui;

/// Time limit for a lead to remove its team after all members have ended.
const CLEARED: Duration = Duration::from_secs(3);
/// Interval of checks whether the lead has removed the team.
const GLANCE: Duration = Duration::from_millis(100);

pub(super) fn shutdown(setup: &Setup, args: &args::Shutdown) -> Done {
    let (team, named) = setup.members(&args.names, Action::Shutdown)?;
    let names = if args.all {
        everybody(setup, &team)?
    } else {
        named.into_iter().collect::<BTreeSet<_>>().into_iter().collect()
    };
    let wish = ShutdownOptions {
        reason: args.reason.clone(),
        deadline_s: args.deadline,
        force: args.force,
    };
    let ended = end(setup, &team, &names, &wish, !args.no_wait)?;
    give(setup, &ended)?;
    Ok(exit(&ended))
}

pub(super) fn down(setup: &Setup, args: &args::Down) -> Done {
    if args.force {
        broken::restore_missing(setup, None)?;
    }
    let team = setup.team(Action::Down)?;
    if args.force {
        broken::make_endable(setup, &team)?;
    }
    let reason = args.reason.clone().or_else(|| Some("the team is taken down".to_owned()));
    let wish = ShutdownOptions { reason, deadline_s: args.deadline, force: args.force };
    let names = everybody(setup, &team)?;
    let report =
        args.report.as_deref().map(|file| RunReport::open(setup, &team, file)).transpose()?;
    let ended = end(setup, &team, &names, &wish, true)?;
    if let Some(report) = report {
        report.write(setup, &team)?;
    }
    let strangers = match args.force || !team.exists() {
        true => Vec::new(),
        false => ops::team::living_strangers(&setup.ctx, &team)?,
    };
    let stays =
        !strangers.is_empty() || ended.iter().any(|one| one.outcome == "rejected" || is_stuck(one));
    let exit = match exit(&ended) {
        Exit::DONE if !strangers.is_empty() => Exit::of(Class::Refused),
        exit => exit,
    };
    if !stays {
        give_way(setup, &team)?;
        conduct::remove(&setup.ctx, &team, |words| setup.out.say(words))?;
    }
    give(setup, &ended)?;
    match stays {
        true => setup.out.say(&format!("team {} was kept", team.name())),
        false => setup.out.say(&format!("team {} is gone", team.name())),
    }
    Ok(exit)
}

/// The summary of a run, for `down --report`.
struct RunReport {
    path: PathBuf,
    /// The report before the shutdown requests, because the lead may delete the team afterwards.
    before: Report,
}

impl RunReport {
    fn open(setup: &Setup, team: &TeamStore, file: &Path) -> Result<RunReport, Failure> {
        let path = setup.ctx.caller.cwd.join(file);
        if fs::exists(&path) {
            return Err(taken(&path));
        }
        if !path.parent().is_some_and(fs::is_dir) {
            let problem =
                format!("the directory of the report file {} does not exist", path.display());
            return Err(Failure::usage(problem, "make it, or choose another file"));
        }
        Ok(RunReport { before: read_report(team)?, path })
    }

    fn write(self, setup: &Setup, team: &TeamStore) -> Result<(), Failure> {
        let report = read_report(team).unwrap_or(self.before);
        let page = ui::Page { paint: ui::Paint { on: false }, width: None, more: None };
        let text = match setup.out.json {
            true => serde_json::to_string_pretty(&report).map_err(std::io::Error::from)?,
            false => ui::report(&report, &page),
        };
        if !fs::create_new(&self.path, format!("{text}\n").as_bytes()).map_err(OpsError::from)? {
            return Err(taken(&self.path));
        }
        setup.out.say(&format!("report: {}", self.path.display()));
        Ok(())
    }
}

fn taken(path: &Path) -> Failure {
    let problem = format!("the report file {} exists", path.display());
    Failure::usage(problem, "remove it, or choose another name")
}

fn read_report(team: &TeamStore) -> Result<Report, Failure> {
    let age = ops::now().since(ops::team::created_at(team)?);
    Ok(ops::report::report(team, age)?)
}

/// Kills all members of a team that is to be deleted.
pub(super) fn end_all_by_force(setup: &Setup, team: &TeamStore) -> Result<(), Failure> {
    let names = everybody(setup, team)?;
    let wish = ShutdownOptions {
        reason: Some("the team is deleted".to_owned()),
        deadline_s: 30,
        force: true,
    };
    end(setup, team, &names, &wish, true)?;
    Ok(())
}

/// Stops members before a restart. Returns the stopped ones, and an exit code if others refused or
/// could not be terminated; those are reported on stderr.
pub(super) fn stop(
    setup: &Setup,
    team: &TeamStore,
    args: &Restart,
    names: &[MemberName],
) -> Result<(Vec<MemberName>, Option<Exit>), Failure> {
    let reason = Some("the member is restarted".to_owned());
    let wish = ShutdownOptions { reason, deadline_s: args.deadline, force: args.force };
    let ended = end(setup, team, names, &wish, true)?;
    let (runs, stopped): (Vec<Ended>, Vec<Ended>) =
        ended.into_iter().partition(|one| one.outcome == "rejected" || is_stuck(one));
    for one in &runs {
        let message =
            format!("`{}` still runs: {}", one.name, one.reason.as_deref().unwrap_or(one.outcome));
        let hint =
            Some(format!("kill it and start it again: `phalanx restart --force {}`", one.name));
        setup.out.complain(&Told { class: Class::Refused, message, hint });
    }
    let names = stopped.into_iter().map(|one| one.name).collect();
    Ok((names, (!runs.is_empty()).then(|| exit(&runs))))
}

fn everybody(setup: &Setup, team: &TeamStore) -> Result<Vec<MemberName>, Failure> {
    let (ours, others) = ops::shutdown::everybody(team)?;
    if !others.is_empty() {
        let names = others.iter().map(MemberName::as_str).collect::<Vec<_>>().join(", ");
        setup.out.say(&format!("not started by phalanx, and not asked: {names}"));
    }
    Ok(ours)
}

fn end(
    setup: &Setup,
    team: &TeamStore,
    names: &[MemberName],
    wish: &ShutdownOptions,
    waits: bool,
) -> Result<Vec<Ended>, Failure> {
    if wish.force {
        ops::force::release_locks(team)?;
    }
    let mut requests = ops::shutdown::ask(team, &setup.ctx.speaker, names, wish)?;
    if waits && requests.iter().any(ShutdownRequest::is_open) {
        requests = settle(setup, team, requests, Duration::from_secs(wish.deadline_s))?;
        ops::verify::verify(&setup.ctx, team, &mut requests)?;
    }
    Ok(ops::shutdown::outcomes(team, &requests)?)
}

/// Waits for the requests to be resolved by the team's lead, or carries them through as a temporary
/// lead. Returns the requests as last read.
///
/// # Errors
/// Returns `Interrupted` on a signal, and any failure to acquire the lease or to wait while the
/// team exists.
pub(super) fn settle(
    setup: &Setup,
    team: &TeamStore,
    requests: Vec<ShutdownRequest>,
    limit: Duration,
) -> Result<Vec<ShutdownRequest>, Failure> {
    let _notice = notice_of(setup, team, &requests);
    let runtime = interrupt::runtime()?;
    let settled = runtime.block_on(async {
        let mut signals = Signals::new()?;
        tokio::select! {
            done = see_through(setup, team, requests, limit) => done,
            _signal = signals.recv() => {
                let hint = Some("the members were asked; type the same again to wait for them".to_owned());
                Err(Failure::interrupted("interrupted while members were ending", hint))
            }
        }
    });
    runtime.shutdown_background();
    settled
}

/// Starts a notice that names the members that have not ended, and what each waits for.
pub(super) fn notice_of(setup: &Setup, team: &TeamStore, requests: &[ShutdownRequest]) -> Notice {
    let ids: BTreeSet<RequestId> = requests.iter().map(|request| request.id.clone()).collect();
    let team = team.clone();
    Notice::begin(&setup.out, move || ops::shutdown::awaited(&team, &ids).ok().flatten())
}

async fn see_through(
    setup: &Setup,
    team: &TeamStore,
    mut requests: Vec<ShutdownRequest>,
    limit: Duration,
) -> Result<Vec<ShutdownRequest>, Failure> {
    loop {
        // `is_led` comes first: `take` would wait for the holder, which may only be inspecting the
        // lease.
        let taken = match ops::lease::is_led(team) {
            Ok(true) => Ok(None),
            Ok(false) => ops::lease::take(team).map(Some),
            Err(e) => Err(e),
        };
        match taken {
            Ok(Some(lease)) => {
                let ids = requests.iter().map(|r| r.id.clone()).collect();
                return match conduct::carry(&setup.ctx, team, lease, ids).await {
                    Err(e) if team.exists() => Err(e.into()),
                    Ok(_) | Err(_) => Ok(requests),
                };
            }
            Ok(None) | Err(OpsError::LedByAnother { .. }) => {}
            Err(_) if !team.exists() => return Ok(requests),
            Err(e) => return Err(e.into()),
        }
        let (led, mut seen) = (team.clone(), requests);
        let wait = move || Ok((ops::shutdown::await_end(&led, &mut seen, limit)?, seen));
        let (awaited, seen) = interrupt::aside(wait).await?;
        requests = seen;
        match awaited {
            Awaited::Ended | Awaited::TeamGone => return Ok(requests),
            Awaited::LeadStopped => {
                setup.out.say("the team's lead is stopped; ending the members without it");
                let (ctx, team) = (setup.ctx.clone(), team.clone());
                let work = move || Ok(ops::force::end_members(&ctx, &team, requests)?);
                return interrupt::aside(work).await;
            }
            Awaited::LeadGone => setup.out.say("the team's lead is gone; taking over"),
        }
    }
}

/// Lets a lead that removes its team by itself do so, so that it can print its report first.
fn give_way(setup: &Setup, team: &TeamStore) -> Result<(), Failure> {
    let ends_itself = || -> Result<bool, OpsError> {
        let own_end = team.settings()?.is_some_and(|s| s.finish == Finish::TasksDone && !s.keep);
        Ok(own_end && ops::lease::is_led(team)? && ops::lease::stopped(team)?.is_none())
    };
    let deadline = Deadline::after(CLEARED);
    let seconds = CLEARED.as_secs();
    let _notice = Notice::of(
        &setup.out,
        format!("waiting for the lead to remove the team, up to {seconds} s"),
    );
    while team.exists() && !deadline.expired() {
        match (ends_itself(), team.changes()) {
            (Ok(true), Ok(changes)) => drop(changes.wait(GLANCE)),
            (Ok(false), _) => break,
            // The files vanish during a read while the team is being removed.
            (Err(_), _) | (_, Err(_)) if !team.exists() => break,
            (Err(e), _) => return Err(e.into()),
            (_, Err(e)) => return Err(e.into()),
        }
    }
    Ok(())
}

fn give(setup: &Setup, ended: &[Ended]) -> Result<(), Failure> {
    let words =
        || if ended.is_empty() { String::new() } else { ui::shutdowns(ended, setup.out.paint) };
    setup.out.outcome(&ended, exit(ended) == Exit::DONE, words)
}

/// Returns whether a member could not be terminated after its deadline; only then is there a
/// reason.
fn is_stuck(one: &Ended) -> bool {
    one.outcome == "timed_out" && one.reason.is_some()
}

fn exit(ended: &[Ended]) -> Exit {
    let any = |outcome: &str| ended.iter().any(|one| one.outcome == outcome);
    match () {
        () if ended.iter().any(is_stuck) => Exit::of(Class::Failed),
        () if any("rejected") => Exit::of(Class::Refused),
        () if any("timed_out") => Exit::of(Class::Deadline),
        () => Exit::DONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::request::Parting;

    #[test]
    fn worst_outcome_decides_the_exit_code() {
        let one = |outcome: &'static str, reason: Option<&str>| Ended {
            name: MemberName::new("ada").expect("name"),
            outcome,
            request_id: RequestId::parse("shutdown-1@ada").expect("id"),
            reason: reason.map(str::to_owned),
            elapsed_ms: Some(1),
            parting: Parting::default(),
            deviations: Vec::new(),
        };
        let table = [
            (
                vec![
                    one("closed", None),
                    one("forced", None),
                    one("gone", None),
                    one("requested", None),
                ],
                0,
            ),
            (vec![one("closed", None), one("timed_out", None)], 5),
            (vec![one("timed_out", None), one("rejected", Some("busy"))], 4),
            (vec![one("rejected", None), one("timed_out", Some("could not be ended"))], 1),
            (vec![], 0),
        ];
        for (ended, code) in table {
            assert_eq!(exit(&ended), Exit(code), "{ended:?}");
        }
    }
}
