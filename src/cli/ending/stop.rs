//! Stops members and waits until they have ended. The team's lead carries the requests through;
//! without a lead this process does.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;

use crate::ending::by_process;
use crate::fail::{ErrorMessage, Exit, Failure};
use crate::interrupt;
use crate::notice::WaitNotice;
use crate::setup::Setup;
use crate::team::deletion::delete_team;
use lead::{Goal, LeadOptions, lead};
use model::decisions::request::ShutdownRequest;
use model::id::{MemberName, RequestId};
use ops::ending::shutdown::{Awaited, ShutdownOptions, ShutdownResult};
use ops::{self, Context, Kind, Lease, OpsError, TeamStore};
use sys::signal::Signals;

/// Maximum number of times that a team with a member that was starting is tried to be deleted.
const TRIES: usize = 10;

pub(crate) fn all_members(setup: &Setup, team: &TeamStore) -> Result<Vec<MemberName>, Failure> {
    let others = ops::ending::delete::living_strangers(&setup.ctx, team)?;
    if !others.is_empty() {
        let names = others.iter().map(MemberName::as_str).collect::<Vec<_>>().join(", ");
        setup.out.print_message(&format!("not started by phalanx, and not asked: {names}"));
    }
    Ok(ops::ending::shutdown::all_members(team)?)
}

/// Ends all members of a team that is to be deleted, and lets none start meanwhile. If that fails,
/// the team stays and its members can start.
pub(crate) fn end_members(
    setup: &Setup,
    team: &TeamStore,
    options: &ShutdownOptions,
) -> Result<Vec<ShutdownResult>, Failure> {
    ops::ending::shutdown::hold_starts(team, options.deadline_s)?;
    let names = all_members(setup, team);
    let ended = names.and_then(|names| stop_members(setup, team, &names, options, true));
    if ended.is_err() {
        let _ = ops::ending::shutdown::allow_starts(team);
    }
    ended
}

/// Deletes a team whose members have ended. With force, a member that was starting meanwhile is
/// ended first. Returns the results of these.
pub(crate) fn delete_ended(
    setup: &Setup,
    team: &TeamStore,
    options: &ShutdownOptions,
) -> Result<Vec<ShutdownResult>, Failure> {
    let mut late = Vec::new();
    for nth in 1.. {
        match delete_team(&setup.ctx, team, |words| setup.out.print_message(words)) {
            Err(OpsError::LiveMembers { members, .. }) if options.force && nth < TRIES => {
                let ended = stop_members(setup, team, &members, options, true)?;
                by_process::end_unrecorded(setup, team, &ended)?;
                late.extend(ended);
            }
            done => return Ok(done.map(|()| late)?),
        }
    }
    unreachable!("the last try returns")
}

pub(crate) fn stop_members(
    setup: &Setup,
    team: &TeamStore,
    names: &[MemberName],
    options: &ShutdownOptions,
    waits: bool,
) -> Result<Vec<ShutdownResult>, Failure> {
    let since = ops::now();
    if options.force {
        ops::ending::stop_without_lead::release_locks(team)?;
    }
    let mut requests = ops::ending::shutdown::ask(team, &setup.ctx.speaker, names, options)?;
    if waits && requests.iter().any(ShutdownRequest::is_open) {
        requests = await_requests(setup, team, requests, Duration::from_secs(options.deadline_s))?;
        ops::ending::report::report_findings(&setup.ctx, team, &mut requests)?;
    }
    Ok(ops::ending::shutdown::outcomes(team, &requests, since)?)
}

/// Stops members that are to be started again or left out. Reports those that run on, each with the
/// hint for its name. Returns who has stopped, and the results of the others.
pub(crate) fn stop_or_report(
    setup: &Setup,
    team: &TeamStore,
    names: &[MemberName],
    options: &ShutdownOptions,
    hint: impl Fn(&MemberName) -> String,
) -> Result<(Vec<MemberName>, Vec<ShutdownResult>), Failure> {
    let ended = stop_members(setup, team, names, options, true)?;
    let (running, stopped): (Vec<ShutdownResult>, Vec<ShutdownResult>) =
        ended.into_iter().partition(|one| one.outcome == "rejected" || is_stuck(one));
    for one in &running {
        let message =
            format!("`{}` still runs: {}", one.name, one.reason.as_deref().unwrap_or(one.outcome));
        let hint = Some(hint(&one.name));
        setup.out.report_error(&ErrorMessage { kind: Kind::Refused, message, hint });
    }
    Ok((stopped.into_iter().map(|one| one.name).collect(), running))
}

/// Waits for the requests to be resolved by the team's lead, or carries them through as a temporary
/// lead. Returns the requests as last read.
///
/// # Errors
/// Returns `Interrupted` on a signal, and any failure to acquire the lease or to wait while the
/// team exists.
pub(crate) fn await_requests(
    setup: &Setup,
    team: &TeamStore,
    requests: Vec<ShutdownRequest>,
    limit: Duration,
) -> Result<Vec<ShutdownRequest>, Failure> {
    let _notice = start_notice(setup, team, &requests);
    let runtime = interrupt::runtime()?;
    let resolved = runtime.block_on(async {
        let mut signals = Signals::new()?;
        tokio::select! {
            done = resolve_requests(setup, team, requests, limit) => done,
            _signal = signals.recv() => {
                let hint = Some("the members were asked; type the same again to wait for them".to_owned());
                Err(Failure::interrupted("interrupted while members were ending", hint))
            }
        }
    });
    runtime.shutdown_background();
    resolved
}

/// Starts a notice that names the members that have not ended, and what each waits for.
pub(crate) fn start_notice(
    setup: &Setup,
    team: &TeamStore,
    requests: &[ShutdownRequest],
) -> WaitNotice {
    let ids: BTreeSet<RequestId> = requests.iter().map(|request| request.id.clone()).collect();
    let team = team.clone();
    WaitNotice::start(&setup.out, move || {
        ops::ending::shutdown::awaited(&team, &ids).ok().flatten()
    })
}

async fn resolve_requests(
    setup: &Setup,
    team: &TeamStore,
    mut requests: Vec<ShutdownRequest>,
    limit: Duration,
) -> Result<Vec<ShutdownRequest>, Failure> {
    loop {
        // `is_led` comes first: `take` would wait for the holder, which may only be inspecting the
        // lease.
        let taken = match ops::members::lead::is_led(team) {
            Ok(true) => Ok(None),
            Ok(false) => ops::team::lease::take(team).map(Some),
            Err(e) => Err(e),
        };
        match taken {
            Ok(Some(lease)) => {
                let ids = requests.iter().map(|r| r.id.clone()).collect();
                return match carry_out(&setup.ctx, team, lease, ids).await {
                    Err(e) if team.exists() => Err(e.into()),
                    Ok(()) | Err(_) => Ok(requests),
                };
            }
            Ok(None) | Err(OpsError::LedByAnother { .. }) => {}
            Err(_) if !team.exists() => return Ok(requests),
            Err(e) => return Err(e.into()),
        }
        let (led, mut latest) = (team.clone(), requests);
        let wait =
            move || Ok((ops::ending::shutdown::await_end(&led, &mut latest, limit)?, latest));
        let (awaited, latest) = interrupt::run_on_thread(wait).await?;
        requests = latest;
        match awaited {
            Awaited::Ended | Awaited::TeamGone => return Ok(requests),
            Awaited::LeadStopped => {
                setup
                    .out
                    .print_message("the team's lead is stopped; ending the members without it");
                let (ctx, team) = (setup.ctx.clone(), team.clone());
                let work =
                    move || Ok(ops::ending::stop_without_lead::end_members(&ctx, &team, requests)?);
                return interrupt::run_on_thread(work).await;
            }
            Awaited::LeadGone => setup.out.print_message("the team's lead is gone; taking over"),
        }
    }
}

/// Carries these shutdown requests through in this process.
pub(crate) async fn carry_out(
    ctx: &Context,
    team: &TeamStore,
    lease: Lease,
    ids: BTreeSet<RequestId>,
) -> Result<(), OpsError> {
    let (_stops, mut stop_requests) = unbounded_channel();
    let journal = team.journal_end()?;
    let (goal, settings) = (Goal::Carry(ids), team.settings()?);
    let (has_agent_lead, tells_agent) = (false, false);
    let options =
        LeadOptions { ctx, team, lease, goal, settings, has_agent_lead, tells_agent, journal };
    lead(options, &mut stop_requests, &mut |_| {}).await?;
    Ok(())
}

/// Returns whether a member could not be stopped after its deadline; only then is there a
/// reason.
pub(crate) fn is_stuck(one: &ShutdownResult) -> bool {
    one.outcome == "timed_out" && one.reason.is_some()
}

pub(crate) fn exit_code(ended: &[ShutdownResult]) -> Exit {
    let any = |outcome: &str| ended.iter().any(|one| one.outcome == outcome);
    match () {
        () if ended.iter().any(is_stuck) => Exit::of(Kind::Failed),
        () if any("rejected") => Exit::of(Kind::Refused),
        () if any("timed_out") => Exit::of(Kind::Deadline),
        () => Exit::DONE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::decisions::request::WorkLeft;

    #[test]
    fn worst_outcome_decides_the_exit_code() {
        let one = |outcome: &'static str, reason: Option<&str>| ShutdownResult {
            name: MemberName::new("ada").expect("name"),
            outcome,
            request_id: RequestId::parse("shutdown-1@ada").expect("id"),
            reason: reason.map(str::to_owned),
            elapsed_ms: Some(1),
            work_left: WorkLeft::default(),
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
            assert_eq!(exit_code(&ended), Exit(code), "{ended:?}");
        }
    }
}
