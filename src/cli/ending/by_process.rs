//! `--force` for a team whose files or shared store cannot be used: what runs for it is ended by
//! what the system shows, and then as much is written and deleted as can be (SD-14).

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::fail::{ErrorMessage, Exit, Failure, VerbResult};
use crate::setup::Setup;
use crate::team::broken;
use crate::team::deletion::delete_team;
use model::id::{MemberName, TeamName};
use ops::ending::by_process::{self, EndedRun};
use ops::ending::shutdown::ShutdownResult;
use ops::{self, Kind, OpsError, TeamStore};

/// Time within which a shared store must answer a forced command. Other commands wait for it much
/// longer.
const STORE_ANSWERS: Duration = Duration::from_millis(1500);

/// Checks that the store of the team answers, or without a name that of all teams. A shared store
/// may take long to refuse.
///
/// # Errors
/// A failure of the backend, if it does not answer within [`STORE_ANSWERS`].
pub(crate) fn store_must_answer(setup: &Setup, name: Option<TeamName>) -> Result<(), Failure> {
    let store = setup.ctx.store.clone();
    let (done, answer) = mpsc::channel();
    thread::spawn(move || {
        // Every answer will do, also that there is no such team.
        let _ = match name {
            Some(name) => store.team(&name).map(drop),
            None => store.teams().map(drop),
        };
        let _ = done.send(());
    });
    answer.recv_timeout(STORE_ANSWERS).map_err(|_| {
        let message = format!("the shared store has not answered for {STORE_ANSWERS:?}");
        let hint = "see `phalanx store check`".to_owned();
        Failure::new(Kind::Backend, message, Some(hint))
    })
}

/// Ends a team after `failure` stopped the orderly way.
///
/// # Errors
/// `failure`, if nothing runs for the team or the caller may not end it.
pub(crate) fn down(setup: &Setup, given: Option<&str>, failure: Failure) -> VerbResult {
    let named = setup.named_team(given)?;
    let Some(local) = team_to_end(setup, named, &failure) else { return Err(failure) };
    let ended = by_process::end_team(&setup.ctx, &local);
    if ended.is_empty() {
        return Err(failure);
    }
    print_ended(setup, &ended, &failure)?;
    if has_left(&ended) {
        return Ok(Exit::of(Kind::Failed));
    }
    let name = local.name();
    let deleted = match (setup.opened_team(), local.delete_without_file()) {
        (_, Ok(true)) => Ok(()),
        (None, Ok(false)) if local.exists() => delete(setup, &local),
        (Some(team), Ok(false)) => delete(setup, team),
        // It is in a shared store that does not answer.
        (None, Ok(false)) => Err(failure),
        (_, Err(e)) => Err(OpsError::from(e).into()),
    };
    match deleted {
        Err(Failure::Message(error)) => {
            let hint = format!("once that is mended: `phalanx down --force -t {name}`");
            let message = format!(
                "nothing of team `{name}` runs any longer, but its files stay: {}",
                error.message
            );
            Err(Failure::Message(ErrorMessage { message, hint: Some(hint), ..error }))
        }
        Err(e) => Err(e),
        Ok(()) => {
            setup.out.print_message(&format!("team {name} is gone"));
            Ok(Exit::DONE)
        }
    }
}

fn delete(setup: &Setup, team: &TeamStore) -> Result<(), Failure> {
    Ok(delete_team(&setup.ctx, team, |words| setup.out.print_message(words))?)
}

/// Ends these members, or with none of them named all members, after `failure` stopped the orderly
/// way.
///
/// # Errors
/// `failure`, if none of them runs or the caller may not end them.
pub(crate) fn kill(setup: &Setup, names: &[String], failure: Failure) -> VerbResult {
    let (names, named) = setup.unopened_members(names)?;
    let Some(team) = team_to_end(setup, named, &failure) else { return Err(failure) };
    let only = (!names.is_empty()).then_some(names.as_slice());
    let ended = by_process::end_members(&setup.ctx, &team, only);
    if ended.is_empty() {
        return Err(failure);
    }
    print_ended(setup, &ended, &failure)?;
    Ok(Exit::of(if has_left(&ended) { Kind::Failed } else { Kind::Backend }))
}

/// Ends members that were killed in order, but whose records did not show that they run.
pub(crate) fn end_unrecorded(
    setup: &Setup,
    team: &TeamStore,
    killed: &[ShutdownResult],
) -> Result<(), Failure> {
    let gone = killed.iter().filter(|one| one.outcome == "gone");
    let gone: Vec<MemberName> = gone.map(|one| one.name.clone()).collect();
    if gone.is_empty() {
        return Ok(());
    }
    let store = &setup.ctx.store;
    let local = store.under(team.root()).open(team.name());
    for run in by_process::end_members(&setup.ctx, &local, Some(&gone)) {
        broken::report_ended(setup, &run, "which its record did not show")?;
    }
    Ok(())
}

/// Returns the team's files on this machine, for a team to end without them; `None` for a failure
/// of another kind.
fn team_to_end(setup: &Setup, named: Option<TeamName>, failure: &Failure) -> Option<TeamStore> {
    let Failure::Message(error) = failure else { return None };
    let possible = [Kind::Failed, Kind::NotFound, Kind::Deadline, Kind::Backend];
    if !possible.contains(&error.kind) {
        return None;
    }
    let store = &setup.ctx.store;
    let open = |name: &TeamName| Some(store.under(store.root()).open(name));
    if let Some(team) = setup.opened_team() {
        return open(team.name());
    }
    // Without its files, a team cannot tell whether a caller with a token is its lead.
    if ops::authority::speaker::has_token(&setup.ctx) || !setup.ctx.speaker.is_lead() {
        return None;
    }
    let only = || {
        let running = by_process::running_teams(&setup.ctx);
        running.first().filter(|_| running.len() == 1).cloned()
    };
    open(&named.or_else(only)?)
}

fn print_ended(setup: &Setup, ended: &[EndedRun], failure: &Failure) -> VerbResult {
    let reason = match failure {
        Failure::Message(error) if error.kind == Kind::NotFound => "its team file is missing",
        Failure::Message(error) => error.message.as_str(),
        Failure::StreamEnded | Failure::OutputClosed => "",
    };
    setup.out.print_message(&format!(
        "the team's files cannot be used, so its processes were found by what the system shows: {reason}"
    ));
    setup.out.print_outcome(&ended, !has_left(ended), || ui::ended_runs(ended, setup.out.paint))
}

fn has_left(ended: &[EndedRun]) -> bool {
    ended.iter().any(|one| one.failure.is_some())
}
