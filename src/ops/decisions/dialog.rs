//! Dialogs of programs as requests: withdraws a request whose dialog closed, and records whether an
//! answer could be typed. Wrappers find the dialogs and type the keys.

use std::time::Duration;

use crate::decisions::decide::{self, close};
use crate::{Context, OpsError};
use model::decisions::question::{Question, Typed};
use model::id::RequestId;
use model::team::event::{EventKind, Note};
use store::{StoreError, TeamStore};
use sys::clock::Deadline;

/// The poll interval, in case a change notification is lost.
const SWEEP: Duration = Duration::from_millis(500);

/// Closes a request that ended in its program: a person answered it in the pane, with the choice if
/// it is known, or the program withdrew it. An answer that came too late is replaced. No reply is
/// sent.
pub fn withdraw(
    ctx: &Context,
    team: &TeamStore,
    id: &RequestId,
    allowed: Option<bool>,
) -> Result<(), OpsError> {
    // Its message may still lie in the lead's mailbox.
    decide::process_requests(ctx, team)?;
    match close::decide_question(team, id, &close::in_pane(allowed)) {
        Ok(question) => close::go_on(team, question),
        Err(e) => ignore_missing(e),
    }
}

/// Records the result of typing an answer's keys. An answer that found no dialog decided nothing.
pub fn record_typed(team: &TeamStore, id: &RequestId, typed: Typed) -> Result<(), OpsError> {
    if typed == Typed::Gone {
        close::decide_question(team, id, &close::in_pane(None)).map(drop).or_else(ignore_missing)?;
    }
    let question = team.change_question(id, |question| {
        if let Some(decision) = &mut question.decision {
            decision.typed = Some(typed);
        }
        Ok(question.clone())
    });
    let question = match question {
        Ok(question) => question,
        Err(e) => return ignore_missing(e.into()),
    };
    let note = Note::of(EventKind::AnswerTyped).because(&question.event).member(&question.from);
    team.record(note.with("request_id", id.as_str()).with("typed", typed.as_str()))?;
    Ok(())
}

/// Ignores a missing request: in a team that another program leads, none are filed.
fn ignore_missing(e: OpsError) -> Result<(), OpsError> {
    match e {
        OpsError::Store(StoreError::NoSuchRequest { .. }) => Ok(()),
        e => Err(e),
    }
}

/// Waits until the result of typing the answer's keys is recorded. Returns the request with it.
///
/// # Errors
/// [`OpsError::Deadline`] if that takes longer than `limit`.
pub fn outcome(team: &TeamStore, asked: &Question, limit: Duration) -> Result<Question, OpsError> {
    let deadline = Deadline::after(limit);
    let changes = team.changes()?;
    loop {
        let question = team.question(&asked.id)?;
        if question.decision.as_ref().is_some_and(|decision| decision.typed.is_some()) {
            return Ok(question);
        }
        let left = deadline.remaining().min(SWEEP);
        if left.is_zero() {
            let what = format!(
                "the answer was recorded, but not typed into the program of `{}`",
                question.from
            );
            return Err(OpsError::Deadline { what, limit });
        }
        changes.wait(left);
    }
}
