//! `resume`: members whose runs ended without being asked to are started again as they were, with what their program
//! needs to go on.

use std::fmt::Write as _;
use std::time::Duration;

use super::context::Context;
use super::error::OpsError;
use super::retire;
use super::shutdown::record_of;
use super::{profiles, spawn, status};
use crate::model::event::{Event, EventKind};
use crate::model::id::MemberName;
use crate::model::lifecycle::MemberState;
use crate::model::order::Order;
use crate::model::record::MemberRecord;
use crate::model::worktree::{Checkout, Wish};
use crate::model::{text, wire};
use crate::store::{StoreError, TeamStore};
use crate::sys::proc::Liveness;

/// The time that a member has to prove that it runs.
const START: Duration = Duration::from_secs(30);
/// So many of the last events of its run are told to a member that is started again.
const TOLD: usize = 12;
/// What stands between its first message and what it is told of its last run.
const AGAIN: &str = "You have been restarted.";
/// The events of its run that it is told of.
const TASKS: [(EventKind, &str); 4] = [
    (EventKind::TaskClaimed, "began"),
    (EventKind::TaskCompleted, "completed"),
    (EventKind::TaskFailed, "failed at"),
    (EventKind::TaskReleased, "gave back"),
];

/// How a member is started again.
#[derive(Debug)]
pub(crate) struct Again {
    pub(crate) order: Order,
    /// If the session that phalanx knows of cannot be gone on with: from its beginning. None where nobody chose but whoever
    /// asked.
    pub(crate) anew: Option<Order>,
}

/// Orders for those that are to be started again: `names`, or all that failed or vanished. What their runs have left is
/// cleared away, so that their names are free.
///
/// # Errors
/// A name that nobody has or had; one that runs; a session for a program that cannot go on with one.
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
    let (journal, _) = team.events_from(0)?;
    let checkouts = team.settings()?.map(|settings| settings.checkouts).unwrap_or_default();
    let again = |record: &MemberRecord| {
        let housed = checkouts.get(&record.name).filter(|had| had.path == record.wish.cwd);
        let known = known(ctx, record)?.filter(|_| session.is_none());
        let from = |session: Option<&str>| order(ctx, record, session, housed, &journal);
        let anew = known.as_ref().map(|_| from(None)).transpose()?;
        Ok(Again { order: from(session.or(known.as_deref()))?, anew })
    };
    let orders = records.iter().map(again).collect::<Result<Vec<_>, OpsError>>()?;
    // Whoever is still on the team is taken off before it comes again; a lead that does the same does no harm.
    let roster = team.team()?;
    for record in records.iter().filter(|record| roster.member(&record.name).is_some()) {
        retire::take_off(ctx, team, record)?;
    }
    Ok(orders)
}

/// Starts one member again as it was, in its last session if that can be resumed.
///
/// # Errors
/// As [`orders`], or what kept it from starting.
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

/// Nobody had asked for its end: it failed, vanished, or went down with the machine.
fn fell(record: &MemberRecord) -> bool {
    // What was run for one task is run again with its task.
    if record.wish.task.is_some() {
        return false;
    }
    match record.state.is_over() {
        true => matches!(record.state, MemberState::Failed | MemberState::Disappeared),
        false => is_gone(record),
    }
}

/// Its program has ended, also where its launcher still sees to what that has left.
fn is_gone(record: &MemberRecord) -> bool {
    record.exit.is_some() || status::liveness(record) == Liveness::Dead
}

fn ended(team: &TeamStore, name: &MemberName) -> Result<MemberRecord, OpsError> {
    let record = record_of(team, name)?;
    match record.state.is_over() || is_gone(&record) {
        true => Ok(record),
        false => {
            Err(StoreError::MemberTaken { team: team.name().clone(), holder: record.name }.into())
        }
    }
}

/// The session that its last run was in, where its program can go on with one.
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
        // Kept for a start without the session; it is not said again.
        Some(_) => first.map(str::to_owned),
        None if record.reads_mail() => Some(told(first, record, journal)),
        None => first.map(str::to_owned),
    };
    Ok(Order { prompt, session: session.map(str::to_owned), ..again })
}

/// The order that the member's last run was started by.
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
        // A worktree is asked for at its repository, and the one that it had is gone on with.
        cwd: Some(housed.map_or(&wish.cwd, |had| &had.repository).clone()),
        worktree: housed.map(|had| Wish::Branch(had.branch.clone())),
        tools: wish.tools.clone(),
        env: wish.env.clone(),
        command: if profile.needs_command() { wish.argv.clone() } else { Vec::new() },
        task: None,
    })
}

/// Its first message, and what the journal has of its last run.
fn told(first: Option<&str>, record: &MemberRecord, journal: &[Event]) -> String {
    let of_run = |e: &&Event| e.member.as_ref() == Some(&record.name) && e.at >= record.asked_at;
    let mut lines: Vec<String> = journal.iter().filter(of_run).filter_map(line).collect();
    lines.drain(..lines.len().saturating_sub(TOLD));
    // Of a run that nobody has closed, the reason is that of what it was doing.
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
