//! Reports the results of members to the lead's mailbox, in one message when the last member at
//! work has ended.

use std::collections::BTreeSet;

use crate::{OpsError, now};
use model::board::{Board, results};
use model::id::{MemberName, TaskId};
use model::mail::envelope::Envelope;
use model::team::event::{Event, EventKind, Note};
use model::time::Timestamp;
use store::TeamStore;

/// Kind of this message in the journal.
const KIND: &str = "results";
/// Prefix of the ids of these messages.
const PREFIX: &str = "results-";

/// Returns the tasks that earlier leads reported and that were not retried since.
pub fn reported(team: &TeamStore) -> Result<BTreeSet<TaskId>, OpsError> {
    let mut reported = BTreeSet::new();
    for event in team.events()? {
        if event.event == EventKind::MessageSent
            && event.detail.get("kind").is_some_and(|kind| kind == KIND)
        {
            reported.extend(tasks_of(&event));
        } else if let (EventKind::TaskRetried, Some(id)) = (event.event, event.task) {
            reported.remove(&id);
        }
    }
    Ok(reported)
}

/// Reports the tasks that have ended and whose report is due, for a team that no lead runs.
pub(crate) fn report_due(team: &TeamStore, now: Timestamp) -> Result<(), OpsError> {
    let board = team.board()?;
    // The journal can be long, so it is read only if a report may be due.
    if results::ended(&board, &BTreeSet::new()).is_none_or(|(at, _)| at > now) {
        return Ok(());
    }
    match results::ended(&board, &reported(team)?) {
        Some((at, ids)) if at <= now => report(team, &ids),
        Some(_) | None => Ok(()),
    }
}

/// Reports all ended tasks that were not reported, in a team that ends with its tasks.
pub fn report_rest(team: &TeamStore) -> Result<(), OpsError> {
    let (board, reported) = (team.board()?, reported(team)?);
    let ids: Vec<TaskId> =
        results::unreported(&board, &reported).iter().map(|task| task.id).collect();
    if ids.is_empty() { Ok(()) } else { report(team, &ids) }
}

/// Reports these tasks to the lead. After a crash between the message and the journal it is called
/// again, and without a lead several processes may call it at once; the id of the message prevents a
/// duplicate.
pub fn report(team: &TeamStore, ids: &[TaskId]) -> Result<(), OpsError> {
    let board = team.board()?;
    // Without the names of files the report still has the results.
    let files = team.workspace_files_by_task().unwrap_or_default();
    let (heading, text) = results::report(&board, ids, &files);
    let lead = MemberName::lead();
    let msg_id = msg_id(&board, ids);
    let envelope = Envelope::new("system", &text, msg_id.clone(), now());
    team.mailbox(&lead).append_once(&envelope.with(Some(&heading), None))?;
    let note = Note::of(EventKind::MessageSent).member(&lead).with("from", "system");
    let ids: Vec<String> = ids.iter().map(TaskId::to_string).collect();
    team.record(note.with("msg_id", msg_id).with("kind", KIND).with("tasks", ids))?;
    Ok(())
}

/// Returns the tasks that a report is about.
fn tasks_of(event: &Event) -> Vec<TaskId> {
    let ids = event.detail.get("tasks").and_then(|ids| ids.as_array()).into_iter().flatten();
    ids.filter_map(|id| TaskId::parse(id.as_str()?).ok()).collect()
}

/// Returns the same id for the same ends of the same tasks.
fn msg_id(board: &Board, ids: &[TaskId]) -> String {
    let ended = ids.iter().filter_map(|id| board.tasks.get(id)?.extra.ended_at);
    let last = ended.max().map_or(0, |at| at.0);
    let first = ids.first().map(TaskId::to_string).unwrap_or_default();
    format!("{PREFIX}{last}-{first}-{}", ids.len())
}
