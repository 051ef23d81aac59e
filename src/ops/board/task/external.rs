//! Changes of tasks by other programs: the journal and the notifications.

use crate::OpsError;
use crate::board::owners;
use model::board::external_change::ExternalChange;
use model::id::{MemberName, TaskId};
use model::team::event::{EventKind, Note};
use store::TeamStore;

/// Journals what another program changed in a task.
pub fn journal_change(team: &TeamStore, change: ExternalChange) -> Result<(), OpsError> {
    team.record(change_note(change))?;
    Ok(())
}

/// Notifies the owners of tasks that another program has unblocked (TK-04).
pub fn notify_unblocked(team: &TeamStore, tasks: &[TaskId]) -> Result<(), OpsError> {
    owners::freed(team, &MemberName::lead(), tasks, None)
}

fn change_note(change: ExternalChange) -> Note {
    let note = |kind, id, subject: String| Note::of(kind).task(id).with("subject", subject);
    match change {
        ExternalChange::Vanished { id, subject } => note(EventKind::TaskVanished, id, subject),
        ExternalChange::Rewritten { id, subject, fields } => {
            note(EventKind::TaskRewritten, id, subject).with("fields", fields)
        }
        ExternalChange::Changed { id, subject, status, owner, fields } => {
            note(EventKind::TaskChanged, id, subject)
                .with_some("status", status)
                .with_some("owner", owner)
                .with_some("fields", (!fields.is_empty()).then_some(fields))
        }
    }
}
