//! `resume`: restarts members whose runs ended without a request, as they were, with what their
//! programs need to continue.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::authority::names::started_record;
use crate::ending::remove;
use crate::hosts;
use crate::members::lead;
use crate::members::{presence, profiles};
use crate::starting::spawn;
use crate::team::worktree;
use crate::{Context, OpsError};
use launcher::sessions;
use model::id::MemberName;
use model::members::launch::LaunchSpec;
use model::members::lifecycle::MemberState;
use model::members::record::MemberRecord;
use model::team::event::{Event, EventKind};
use model::team::host::HostChoice;
use model::team::worktree::{Checkout, WorktreeRequest};
use model::{text, wire};
use store::TeamStore;
use sys::env;
use sys::proc::Liveness;

/// Time limit for a restarted member to prove that it runs.
const START: Duration = Duration::from_secs(30);
/// Number of events of the last run that a restarted member's prompt lists.
const EVENTS: usize = 12;
/// Separates the first prompt from the summary of the last run.
const RESTARTED: &str = "You have been restarted.";
/// The events that the summary lists, with their verbs.
const TASKS: [(EventKind, &str); 4] = [
    (EventKind::TaskClaimed, "began"),
    (EventKind::TaskCompleted, "completed"),
    (EventKind::TaskFailed, "failed at"),
    (EventKind::TaskReleased, "gave back"),
];

/// The launch specs to restart a member.
#[derive(Debug)]
pub struct RestartSpecs {
    pub spec: LaunchSpec,
    /// The spec to start without the known session, if that cannot be resumed. `None` if no
    /// session is known, or if the caller chose one.
    pub without_session: Option<LaunchSpec>,
    /// An agent that begins a new conversation, because no session of it is known.
    pub begins_anew: bool,
}

/// Returns the specs to restart `names`, or without names all members that failed or disappeared.
/// Removes what is left of their runs, so that their names are free.
///
/// # Errors
/// [`store::StoreError::NoSuchMember`] for an unknown name, [`OpsError::NotOurMember`] for a member
/// that phalanx did not start; a refusal for one that runs; a profile that no longer exists; a run
/// that cannot be removed.
pub fn specs(
    ctx: &Context,
    team: &TeamStore,
    names: &[MemberName],
    session: Option<&str>,
) -> Result<Vec<RestartSpecs>, OpsError> {
    // First, because a record follows its worktree.
    let checkouts = worktree::checkouts(ctx, team)?;
    if let [name] = names
        && let Some(spec) = never_started(team, name)?
    {
        let spec = LaunchSpec { session: session.map(str::to_owned), ..spec };
        return Ok(vec![RestartSpecs { spec, without_session: None, begins_anew: false }]);
    }
    let records = ended(ctx, team, names)?;
    let journal = team.events()?;
    let restart = |record: &MemberRecord| {
        let last = relaunch_spec(ctx, record, checkout_of(&checkouts, record))?;
        let profile = profiles::find(ctx, &record.request.profile)?;
        let had = last_session(team, record).filter(|_| session.is_none() && profile.can_resume());
        let in_session = |session: Option<&str>| with_session(&last, record, session, &journal);
        let without_session = had.as_ref().map(|_| in_session(None));
        let spec = in_session(session.or(had.as_deref()));
        let begins_anew = profile.is_agent() && spec.session.is_none();
        Ok(RestartSpecs { spec, without_session, begins_anew })
    };
    let specs = records.iter().map(restart).collect::<Result<Vec<_>, OpsError>>()?;
    // Members still on the roster are removed before their restart; a lead may safely do so, too.
    let roster = team.team()?;
    for record in records.iter().filter(|record| roster.member(&record.name).is_some()) {
        remove::stop_and_remove(ctx, team, record)?;
    }
    Ok(specs)
}

/// Checks that members which may still run can be started again, before they are stopped for that.
///
/// # Errors
/// As [`specs`]; [`OpsError::Worktree`] for a worktree that cannot be used; the error that their
/// start would return.
pub fn check(ctx: &Context, team: &TeamStore, names: &[MemberName]) -> Result<(), OpsError> {
    let checkouts = worktree::checkouts(ctx, team)?;
    let spec = |name| {
        let record = started_record(team, name)?;
        let checkout = checkout_of(&checkouts, &record);
        if let Some(had) = checkout.filter(|_| record.other_host().is_none()) {
            worktree::is_usable(&worktree::repository(ctx, had), had)?;
        }
        relaunch_spec(ctx, &record, checkout)
    };
    let specs = names.iter().map(spec).collect::<Result<Vec<_>, OpsError>>()?;
    spawn::check_again(ctx, team, &specs)
}

/// Returns the spec of a member that the lead was to start, if no start of it has succeeded.
fn never_started(team: &TeamStore, name: &MemberName) -> Result<Option<LaunchSpec>, OpsError> {
    let templates = team.settings()?.map(|settings| settings.templates).unwrap_or_default();
    let mut templates = templates.iter().filter(|template| !template.is_per_task());
    let template = templates.find(|template| template.names().contains(name));
    let is_known = template.is_none() || team.member_record(name)?.is_some();
    Ok(template.filter(|_| !is_known).map(|template| template.spec_named(name)))
}

/// Returns the worktree in which the run worked.
fn checkout_of<'c>(
    checkouts: &'c BTreeMap<MemberName, Checkout>,
    record: &MemberRecord,
) -> Option<&'c Checkout> {
    checkouts.get(&record.name).filter(|had| had.path == record.request.cwd)
}

/// Restarts one member as it was, in its last session if that can be resumed.
///
/// # Errors
/// As [`specs`]; the error of a start that failed.
pub fn start_again(ctx: &Context, team: &TeamStore, name: &MemberName) -> Result<(), OpsError> {
    let start = |spec: LaunchSpec| -> Result<(), OpsError> {
        let results = spawn::for_lead(ctx, team, &[spec], START)?;
        results.into_iter().try_for_each(|result| result.map(drop))
    };
    for RestartSpecs { spec, without_session, .. } in
        specs(ctx, team, std::slice::from_ref(name), None)?
    {
        match (start(spec), without_session) {
            (Err(_), Some(spec)) => start(spec)?,
            (done, _) => done?,
        }
    }
    Ok(())
}

/// Returns the records of `names`, all of which must have ended, or without names those of all
/// members that failed or disappeared.
fn ended(
    ctx: &Context,
    team: &TeamStore,
    names: &[MemberName],
) -> Result<Vec<MemberRecord>, OpsError> {
    let records = match names {
        [] => team.member_records()?,
        names => names.iter().map(|name| started_record(team, name)).collect::<Result<_, _>>()?,
    };
    // A program may have ended while its launcher still cleans up after it.
    let is_known_ended = |record: &MemberRecord| {
        record.state.is_over()
            || record.exit.is_some()
            || presence::liveness(record) == Liveness::Dead
    };
    // The lead may not have noticed yet that a launcher was killed on another host.
    let unclear: Vec<MemberRecord> =
        records.iter().filter(|record| !is_known_ended(record)).cloned().collect();
    let dead = hosts::dead_runs(ctx, team, &unclear, hosts::HOSTS_ANSWER);
    let has_ended = |record: &MemberRecord| {
        is_known_ended(record) || dead.iter().any(|run| record.is(&run.incarnation))
    };
    if names.is_empty() {
        let records = records.into_iter();
        return Ok(records.filter(|record| has_ended(record) && has_failed(record)).collect());
    }
    match records.iter().find(|record| !has_ended(record)) {
        Some(record) => {
            let problem = format!("{} runs: there is nothing to resume", record.name);
            let hint =
                format!("start it anew: `phalanx restart {} -t {}`", record.name, team.name());
            Err(OpsError::refused(problem, hint))
        }
        None => Ok(records),
    }
}

/// Returns the members that have ended without a request, as their lead has: it was killed with
/// them, as by the end of a container or of the tmux server, or they ran in another boot of the
/// machine.
///
/// # Errors
/// Files of the team that cannot be read.
pub fn stopped_with_lead(team: &TeamStore) -> Result<Vec<MemberName>, OpsError> {
    let boot = env::boot_id();
    let has_dead_lead = lead::find_lead(team)?.is_some_and(|lead| lead.alive == Liveness::Dead);
    let is_stopped = |record: &MemberRecord| {
        let other = record.boot_id.as_ref().is_some_and(|own| !boot.is_empty() && *own != boot);
        let is_gone = || record.exit.is_some() || presence::liveness(record) == Liveness::Dead;
        (other || (has_dead_lead && is_gone())) && !record.is_elsewhere && has_failed(record)
    };
    let records = team.member_records()?.into_iter();
    Ok(records.filter(is_stopped).map(|record| record.name).collect())
}

/// Returns true for an ended run that ended without a request, or for a restart that was cut: it
/// failed, disappeared, or ended with the machine. A run for one task is started again with its
/// task.
pub(crate) fn has_failed(record: &MemberRecord) -> bool {
    let state = record.state;
    let is_failure = matches!(state, MemberState::Failed | MemberState::Disappeared);
    record.request.task.is_none() && (!state.is_over() || is_failure || record.restart.is_some())
}

/// Returns the session that the last run wrote last. A run that was to continue a session and could
/// not, and wrote none itself, leaves that session to the next one (CR-17).
fn last_session(team: &TeamStore, record: &MemberRecord) -> Option<String> {
    let prompt = record.request.prompt.as_deref();
    let is_restart = prompt.is_some_and(|prompt| prompt.contains(RESTARTED));
    let earlier = record.earlier_sessions.iter().rev().filter(|_| is_restart);
    record.session.iter().chain(earlier).find_map(|session| {
        let record = MemberRecord { session: Some(session.clone()), ..record.clone() };
        sessions::last_session(team, &record)
    })
}

/// Returns the spec of a last run with a session to resume, or else with a summary of that run.
fn with_session(
    last: &LaunchSpec,
    record: &MemberRecord,
    session: Option<&str>,
    journal: &[Event],
) -> LaunchSpec {
    let prompt = last.prompt.as_deref();
    let prompt = match session {
        None if record.reads_mail() => Some(restart_prompt(prompt, record, journal)),
        // A resumed program does not receive the prompt again; it is kept for a later start.
        Some(_) | None => prompt.map(str::to_owned),
    };
    LaunchSpec { prompt, session: session.map(str::to_owned), ..last.clone() }
}

/// Returns the spec that started the member's last run. `checkout` is its worktree.
pub(crate) fn relaunch_spec(
    ctx: &Context,
    record: &MemberRecord,
    checkout: Option<&Checkout>,
) -> Result<LaunchSpec, OpsError> {
    let request = &record.request;
    let profile = profiles::find(ctx, &request.profile)?;
    let first = request
        .prompt
        .as_deref()
        .map(|prompt| prompt.split(RESTARTED).next().unwrap_or_default().trim_end());
    Ok(LaunchSpec {
        name: record.name.to_string(),
        profile: Some(request.profile.clone()),
        role: request.role.clone(),
        model: request.model.clone(),
        mode: request.mode,
        plan: request.plan,
        is_unattended: request.is_unattended,
        ready: request.ready.clone(),
        pull: request.pull,
        access: request.access.clone(),
        prompt: first.map(str::to_owned),
        host: record.other_host().cloned().map(HostChoice::Name),
        // A worktree is requested for its repository, and the existing one is reused.
        cwd: Some(checkout.map_or(&request.cwd, |had| &had.repository).clone()),
        worktree: checkout.map(|had| WorktreeRequest::Branch(had.branch.clone())),
        origin: checkout.and_then(Checkout::known_origin),
        tools: request.tools.clone(),
        env: request.env.clone(),
        env_file: request.env_file.clone(),
        wrap: Some(request.wrap.clone()),
        command: match profile.needs_command() {
            true if request.command.is_empty() => request.argv.clone(),
            true => request.command.clone(),
            false => Vec::new(),
        },
        chat: request.chat.clone(),
        entry: request.entry.clone(),
        ..LaunchSpec::default()
    })
}

/// Returns the first prompt with a summary of the last run from the journal.
fn restart_prompt(first: Option<&str>, record: &MemberRecord, journal: &[Event]) -> String {
    let of_run = |e: &&Event| e.member.as_ref() == Some(&record.name) && e.at >= record.asked_at;
    let mut lines: Vec<String> = journal.iter().filter(of_run).filter_map(line).collect();
    lines.drain(..lines.len().saturating_sub(EVENTS));
    // While the record is not closed, its reason is about the work, not about the end.
    let reason = record.reason.as_deref().filter(|_| record.state.is_over());
    let reason = reason.unwrap_or("its process is gone");
    let mut whole = first.map(|first| format!("{first}\n\n")).unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(whole, "{RESTARTED} Your previous run ended: {}.", text::line(reason));
    if !lines.is_empty() {
        let _ = write!(whole, " Its last events:\n{}", lines.join("\n"));
    }
    whole
}

fn line(event: &Event) -> Option<String> {
    let (_, words) = TASKS.iter().find(|(kind, _)| *kind == event.event)?;
    let subject = wire::text(&event.detail, "subject").unwrap_or_default();
    Some(format!("- {} {words} #{} {}", event.at.iso(), event.task?, text::short(&subject, 80)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixture::sample;
    use model::id::TeamName;
    use model::members::launch::{Demand, Template};
    use model::team::Team;
    use model::team::settings::Settings;
    use model::time::Timestamp;
    use store::Store;

    /// CR-20: the message of the lead that gave up says `phalanx resume NAME`.
    #[test]
    fn cr_20_member_that_never_started_is_started_from_the_settings() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let name = TeamName::new("demo").expect("name");
        let file = Team::found(&name, "", "team-lead", "session", "/", Timestamp(1));
        let spec = LaunchSpec { name: "ann".to_owned(), ..LaunchSpec::default() };
        let templates = vec![Template { spec, demand: Demand::Standing }];
        let settings = Settings { templates, ..Settings::by_hand(8) };
        let team = Store::at(dir.path()).create(&name, &file, &settings).expect("a team");
        let spec_of = |name: &str| {
            let name = MemberName::new(name).expect("name");
            never_started(&team, &name).expect("readable").map(|spec| spec.name)
        };
        assert_eq!((spec_of("ann").as_deref(), spec_of("ben")), (Some("ann"), None));
        let record = sample::record("ann", sample::run(1), "worker", Timestamp(1));
        team.begin_record(&record).expect("a record");
        assert_eq!(spec_of("ann"), None, "its last run has its settings");
    }
}
