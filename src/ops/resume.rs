//! `resume`: restarts members whose runs ended without a request, as they were, with what their
//! programs need to continue.

use std::fmt::Write as _;
use std::time::Duration;

use super::context::Context;
use super::error::OpsError;
use super::retire;
use super::shutdown::started_record;
use super::{profiles, spawn, status};
use crate::model::event::{Event, EventKind};
use crate::model::id::MemberName;
use crate::model::lifecycle::MemberState;
use crate::model::order::Order;
use crate::model::record::MemberRecord;
use crate::model::worktree::{Checkout, WorktreeRequest};
use crate::model::{text, wire};
use crate::store::{StoreError, TeamStore};
use crate::sys::proc::Liveness;

/// Time limit for a restarted member to prove that it runs.
const START: Duration = Duration::from_secs(30);
/// Number of events of the last run that a restarted member's prompt lists.
const TOLD: usize = 12;
/// Separates the first prompt from the summary of the last run.
const AGAIN: &str = "You have been restarted.";
/// The events that the summary lists, with their verbs.
const TASKS: [(EventKind, &str); 4] = [
    (EventKind::TaskClaimed, "began"),
    (EventKind::TaskCompleted, "completed"),
    (EventKind::TaskFailed, "failed at"),
    (EventKind::TaskReleased, "gave back"),
];

/// The orders to restart a member.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) order: Order,
    /// The order to start without the known session, if that cannot be resumed. `None` if no
    /// session is known, or if the caller chose one.
    pub(crate) anew: Option<Order>,
}

/// Returns the orders to restart `names`, or without names all members that failed or disappeared.
/// Retires what is left of their runs, so that their names are free.
///
/// # Errors
/// [`StoreError::NoSuchMember`] for an unknown name, [`OpsError::NotOurMember`] for a member that
/// phalanx did not start, [`StoreError::MemberTaken`] for one that runs; a profile that no longer
/// exists; a run that cannot be retired.
pub(crate) fn orders(
    ctx: &Context,
    team: &TeamStore,
    names: &[MemberName],
    session: Option<&str>,
) -> Result<Vec<Again>, OpsError> {
    let records = match names {
        [] => status::records(team)?.into_iter().filter(fell).collect(),
        names => names.iter().map(|name| ended(team, name)).collect::<Result<Vec<_>, _>>()?,
    };
    let journal = team.events()?;
    let checkouts = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    let again = |record: &MemberRecord| {
        let housed = checkouts.get(&record.name).filter(|had| had.path == record.wish.cwd);
        let known = known(ctx, record)?.filter(|_| session.is_none());
        let from = |session: Option<&str>| order(ctx, record, session, housed, &journal);
        let anew = known.as_ref().map(|_| from(None)).transpose()?;
        Ok(Again { order: from(session.or(known.as_deref()))?, anew })
    };
    let orders = records.iter().map(again).collect::<Result<Vec<_>, OpsError>>()?;
    // Members still on the roster are retired before their restart; a lead may safely do so, too.
    let roster = team.team()?;
    for record in records.iter().filter(|record| roster.member(&record.name).is_some()) {
        retire::terminate_and_retire(ctx, team, record)?;
    }
    Ok(orders)
}

/// Restarts one member as it was, in its last session if that can be resumed.
///
/// # Errors
/// As [`orders`]; the error of a start that failed.
pub(crate) fn start_again(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<(), OpsError> {
    for Again { order, anew } in orders(ctx, team, std::slice::from_ref(name), None)? {
        let start = |order: Order| -> Result<(), OpsError> {
            let results = spawn::for_lead(ctx, team, &[order], START)?;
            results.into_iter().try_for_each(|result| result.map(drop))
        };
        match (start(order), anew) {
            (Err(_), Some(anew)) => start(anew)?,
            (done, _) => done?,
        }
    }
    Ok(())
}

/// Returns true for a run that ended without a request: it failed, disappeared, or ended with the
/// machine.
fn fell(record: &MemberRecord) -> bool {
    // A run for one task is started again with its task.
    if record.wish.task.is_some() {
        return false;
    }
    match record.state.is_over() {
        true => matches!(record.state, MemberState::Failed | MemberState::Disappeared),
        false => is_gone(record),
    }
}

/// Returns true if the program has ended, even while its launcher still cleans up after it.
fn is_gone(record: &MemberRecord) -> bool {
    record.exit.is_some() || status::liveness(record) == Liveness::Dead
}

fn ended(team: &TeamStore, name: &MemberName) -> Result<MemberRecord, OpsError> {
    let record = started_record(team, name)?;
    match record.state.is_over() || is_gone(&record) {
        true => Ok(record),
        false => {
            Err(StoreError::MemberTaken { team: team.name().clone(), holder: record.name }.into())
        }
    }
}

/// Returns the session of the last run, if its program can resume one.
fn known(ctx: &Context, record: &MemberRecord) -> Result<Option<String>, OpsError> {
    let Some(session) = &record.session else { return Ok(None) };
    let profile = profiles::find(ctx, &record.wish.profile)?;
    Ok((!profile.launch.resume.is_empty()).then(|| session.clone()))
}

fn order(
    ctx: &Context,
    record: &MemberRecord,
    session: Option<&str>,
    housed: Option<&Checkout>,
    journal: &[Event],
) -> Result<Order, OpsError> {
    let again = same(ctx, record, housed)?;
    let first = again.prompt.as_deref();
    let prompt = match session {
        // Kept for a start without the session; a resumed program does not receive it again.
        Some(_) => first.map(str::to_owned),
        None if record.reads_mail() => Some(told(first, record, journal)),
        None => first.map(str::to_owned),
    };
    Ok(Order { prompt, session: session.map(str::to_owned), ..again })
}

/// Returns the order that started the member's last run.
pub(super) fn same(
    ctx: &Context,
    record: &MemberRecord,
    housed: Option<&Checkout>,
) -> Result<Order, OpsError> {
    let wish = &record.wish;
    let profile = profiles::find(ctx, &wish.profile)?;
    let first = wish
        .prompt
        .as_deref()
        .map(|prompt| prompt.split(AGAIN).next().unwrap_or_default().trim_end());
    Ok(Order {
        name: record.name.to_string(),
        profile: Some(wish.profile.clone()),
        role: wish.role.clone(),
        model: wish.model.clone(),
        mode: wish.mode,
        plan: wish.plan,
        prompt: first.map(str::to_owned),
        session: None,
        // A worktree is requested for its repository, and the existing one is reused.
        cwd: Some(housed.map_or(&wish.cwd, |had| &had.repository).clone()),
        worktree: housed.map(|had| WorktreeRequest::Branch(had.branch.clone())),
        tools: wish.tools.clone(),
        env: wish.env.clone(),
        command: if profile.needs_command() { wish.argv.clone() } else { Vec::new() },
        task: None,
    })
}

/// Returns the first prompt with a summary of the last run from the journal.
fn told(first: Option<&str>, record: &MemberRecord, journal: &[Event]) -> String {
    let of_run = |e: &&Event| e.member.as_ref() == Some(&record.name) && e.at >= record.asked_at;
    let mut lines: Vec<String> = journal.iter().filter(of_run).filter_map(line).collect();
    lines.drain(..lines.len().saturating_sub(TOLD));
    // While the record is not closed, its reason is about the work, not about the end.
    let reason = record.reason.as_deref().filter(|_| record.state.is_over());
    let reason = reason.unwrap_or("its process is gone");
    let mut whole = first.map(|first| format!("{first}\n\n")).unwrap_or_default();
    // Writing to a string cannot fail.
    let _ = write!(whole, "{AGAIN} Your previous run ended: {}.", text::line(reason));
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
