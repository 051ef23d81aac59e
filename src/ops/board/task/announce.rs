//! Journals what happened to a task, and notifies the members that it concerns.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::board::owners::{self, SUBJECT};
use crate::mail::post::Post;
use crate::{OpsError, now};
use model::board::Board;
use model::board::task::{Task, TaskAction, TaskState};
use model::id::{MemberName, TaskId};
use model::mail::protocol::{Message, TaskCompleted};
use model::team::event::{Event, EventKind, Note};
use model::team::role::REVIEWER;
use model::text;
use model::time::Timestamp;
use store::TeamStore;
use sys::failpoint;

/// Time after a change within which the process that made it announces it, unless it was killed.
const SETTLED: Duration = Duration::from_secs(5);
/// A task that was changed this much before the first line of the log was changed by an older
/// phalanx. Milliseconds.
const BEFORE_LOG_MS: u64 = 60_000;

pub(super) fn note_claim(team: &TeamStore, task: &Task, who: &MemberName) -> Result<(), OpsError> {
    team.record(Note::of_task(EventKind::TaskClaimed, task).member(who))?;
    Ok(())
}

/// Notifies the members that an action concerns, and journals it.
pub(super) fn say_step(
    team: &TeamStore,
    task: &Task,
    who: &MemberName,
    action: TaskAction,
    freed: &[TaskId],
) -> Result<(), OpsError> {
    let kind = match action {
        TaskAction::Claim => return note_claim(team, task, who),
        TaskAction::Complete | TaskAction::Fail | TaskAction::Cancel => None,
        TaskAction::Approve => Some(EventKind::TaskApproved),
        TaskAction::Reject => Some(EventKind::TaskRejected),
        TaskAction::Review => Some(EventKind::TaskSubmitted),
        TaskAction::Retry => Some(EventKind::TaskRetried),
        TaskAction::Release => Some(EventKind::TaskReleased),
        TaskAction::Stall => Some(EventKind::TaskStale),
        TaskAction::Recover => Some(EventKind::TaskRecovered),
    };
    if action == TaskAction::Review {
        notify_about_review(team, task, who)?;
    }
    let note = kind.map(|kind| {
        let note = Note::of_task(kind, task).member(who).with("by", who.as_str());
        note.with_some("reason", task.extra.reason.as_deref())
    });
    if task.state.is_over() {
        // The event id on the task belongs to its end.
        return say_end(team, task, who, freed, note.map(|note| Note { id: None, ..note }));
    }
    team.record_all(note.into_iter().collect())?;
    Ok(())
}

/// Notifies the lead and the owners of the tasks that it unblocked that a task is over, and
/// journals that, after the decision that led to it.
pub(super) fn say_end(
    team: &TeamStore,
    task: &Task,
    who: &MemberName,
    freed: &[TaskId],
    decision: Option<Note>,
) -> Result<(), OpsError> {
    let kind = match task.state {
        TaskState::Failed => EventKind::TaskFailed,
        TaskState::Cancelled => EventKind::TaskCancelled,
        TaskState::Pending
        | TaskState::Blocked
        | TaskState::InProgress
        | TaskState::Stopping
        | TaskState::InReview
        | TaskState::Completed
        | TaskState::Stale => EventKind::TaskCompleted,
    };
    let mut note = Note::of_task(kind, task).member(who);
    if let Some(outcome) = &task.extra.outcome {
        note = note.with("exit_code", outcome.exit_code).with("elapsed_ms", outcome.elapsed_ms);
    }
    let note = note
        .with_some("reason", task.extra.reason.as_deref())
        .with_some("result", task.result_line())
        .with("freed", freed.iter().map(TaskId::to_string).collect::<Vec<_>>());
    // Before the journal: recovery repeats all of it where the journal lacks the end.
    notify_lead(team, task, who)?;
    failpoint::hit("task.told");
    owners::freed(team, who, freed, task.extra.event.as_deref())?;
    failpoint::hit("task.freed");
    team.record_all(decision.into_iter().chain([note]).collect())?;
    Ok(())
}

/// Journals and announces what happened to tasks where the process that did it was killed before it
/// could. Returns those tasks.
pub(crate) fn say_unsaid(team: &TeamStore) -> Result<Vec<TaskId>, OpsError> {
    let (mut said, first) = team.task_log_ids()?;
    let Some(first) = first else { return Ok(Vec::new()) };
    let board = team.board()?;
    let is_unsaid = |said: &BTreeSet<String>, task: &Task| {
        task.extra.event.as_ref().is_some_and(|id| !said.contains(id))
    };
    let mut unsaid: Vec<&Task> = board.work().filter(|task| is_unsaid(&said, task)).collect();
    if !unsaid.is_empty() {
        said.extend(team.events()?.into_iter().map(|event| event.id));
        unsaid.retain(|task| is_unsaid(&said, task));
    }
    let mut found = Vec::new();
    for task in unsaid {
        let Some(age) = team.task_age(task.id)? else { continue };
        let changed_at = now().minus_ms(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        // The process that changed the task may be about to say so. An older phalanx kept no log of
        // tasks, and its journal may have been rotated since.
        if age < SETTLED || changed_at.plus_ms(BEFORE_LOG_MS) < first {
            continue;
        }
        say_again(team, task)?;
        found.push(task.id);
    }
    Ok(found)
}

fn say_again(team: &TeamStore, task: &Task) -> Result<(), OpsError> {
    let name = |name: Option<&str>| name.and_then(|name| MemberName::existing(name).ok());
    let decided = name(task.extra.decided_by.as_deref());
    let owner = name(task.owner_name());
    let (action, who) = match task.state {
        TaskState::Completed if decided.is_some() => (TaskAction::Approve, decided),
        TaskState::Completed => (TaskAction::Complete, name(task.extra.ended_by.as_deref())),
        TaskState::Cancelled => (TaskAction::Cancel, name(task.extra.ended_by.as_deref())),
        TaskState::Failed => (TaskAction::Fail, name(task.extra.ended_by.as_deref())),
        TaskState::InReview => (TaskAction::Review, owner),
        TaskState::InProgress if task.extra.rounds > 0 && task.extra.reason.is_some() => {
            (TaskAction::Reject, Some(MemberName::lead()))
        }
        TaskState::InProgress | TaskState::Stopping => (TaskAction::Claim, owner),
        TaskState::Stale => (TaskAction::Stall, Some(MemberName::lead())),
        TaskState::Pending | TaskState::Blocked => {
            let is_new = task.extra.cause.is_none();
            let kind = if is_new { EventKind::TaskCreated } else { EventKind::TaskUpdated };
            team.record(Note::of_task(kind, task))?;
            return Ok(());
        }
    };
    let freed = if task.state.is_over() { team.freed_by(task)? } else { Vec::new() };
    say_step(team, task, &who.unwrap_or_else(MemberName::lead), action, &freed)
}

/// Notifies the lead of work that waits for approval, and the reviewers of the team, who read it
/// first. The messages have the id of the task's event.
fn notify_about_review(team: &TeamStore, task: &Task, who: &MemberName) -> Result<(), OpsError> {
    let Some(event) = task.extra.event.as_deref().filter(|_| !who.is_lead()) else {
        return Ok(());
    };
    let called = format!("task #{} \"{}\"", task.id, text::short(&task.subject, SUBJECT));
    let round = match task.extra.rounds {
        0 => String::new(),
        1 => " again, after it was sent back once".to_owned(),
        n => format!(" again, after it was sent back {n} times"),
    };
    let reviewers = reviewers(team, who)?;
    let names: Vec<&str> = reviewers.iter().map(MemberName::as_str).collect();
    let first = match names.as_slice() {
        [] => String::new(),
        names => format!(" {} reviews it first and then writes to you.", names.join(", ")),
    };
    let settings = team.settings()?;
    let has_worktree = settings.is_some_and(|settings| settings.checkouts.contains_key(who));
    let changes = match has_worktree {
        true => format!("`phalanx review {who}` shows its changes, "),
        false => String::new(),
    };
    let said = format!(
        "{called} is finished{round} and waits for approval: {changes}`phalanx task get {0}` shows it, \
         `phalanx task approve {0}` or `phalanx task reject {0} --reason TEXT` decides.{first}",
        task.id
    );
    for reviewer in &reviewers {
        let asked = format!(
            "{called} of {who} is finished{round}: review it before the lead decides. `phalanx review show {who}` \
             lists the changed files and the comments, `phalanx worktree diff {who}` the changes. Comment with \
             `phalanx review comment {who} \"TEXT\" --at FILE:LINE`, then `phalanx review send {who}` sends your \
             comments as one message. Resolve what is answered well: `phalanx review resolve ID`. Once nothing is \
             left to change: `phalanx review pass {who} \"what you have checked\"`."
        );
        Post::new(who, reviewer, Message::Text(asked)).for_event(event).send_once(team)?;
    }
    Post::new(who, &MemberName::lead(), Message::Text(said)).for_event(event).send_once(team)
}

/// Returns the members with the role of a reviewer that can read the work of `who`.
fn reviewers(team: &TeamStore, who: &MemberName) -> Result<Vec<MemberName>, OpsError> {
    let records = team.member_records()?;
    let reviewers = records.into_iter().filter(|record| {
        let has_role = record.request.role.as_deref() == Some(REVIEWER);
        has_role && !record.state.is_over() && record.reads_mail() && record.name != *who
    });
    Ok(reviewers.map(|record| record.name).collect())
}

/// Sends `task_completed` to the lead's mailbox, once: the message has the id of the task's event.
/// The end of a command or of a run reaches the lead in other messages already.
fn notify_lead(team: &TeamStore, task: &Task, who: &MemberName) -> Result<(), OpsError> {
    let by_hand = task.state == TaskState::Completed && task.extra.outcome.is_none();
    let Some(event) = task.extra.event.as_deref().filter(|_| by_hand && !who.is_lead()) else {
        return Ok(());
    };
    let news = Message::TaskCompleted(TaskCompleted {
        from: Some(who.to_string()),
        task_id: task.id.to_string(),
        task_subject: Some(task.subject.clone()),
        timestamp: Some(now().iso()),
    });
    Post::new(who, &MemberName::lead(), news).for_event(event).send_once(team)
}

/// Returns the tasks that `who` has ended since then.
pub fn ended_by<'b>(board: &'b Board, who: &MemberName, since: Timestamp) -> Vec<&'b Task> {
    let is_it = |task: &&Task| {
        let by_it = task.extra.ended_by.as_deref() == Some(who.as_str());
        by_it && task.state.is_over() && task.extra.ended_at.is_some_and(|at| at >= since)
    };
    board.tasks.values().filter(is_it).collect()
}

/// Announces ended tasks whose end is not in the journal, because the process that ended them
/// crashed. Returns them.
pub(crate) fn journal_ends(
    team: &TeamStore,
    ended: &[&Task],
    journal: &[Event],
) -> Result<Vec<TaskId>, OpsError> {
    let ends = |event: &&Event| {
        use EventKind::{TaskCancelled, TaskCompleted, TaskFailed};
        matches!(event.event, TaskCompleted | TaskFailed | TaskCancelled)
    };
    let said: BTreeMap<TaskId, Timestamp> =
        journal.iter().filter(ends).filter_map(|event| Some((event.task?, event.at))).collect();
    let mut told = Vec::new();
    for task in ended.iter().filter(|task| said.get(&task.id).copied() < task.extra.ended_at) {
        let Some(who) =
            task.extra.ended_by.as_deref().and_then(|who| MemberName::existing(who).ok())
        else {
            continue;
        };
        say_end(team, task, &who, &team.freed_by(task)?, None)?;
        told.push(task.id);
    }
    Ok(told)
}
