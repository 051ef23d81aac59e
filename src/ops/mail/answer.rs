//! Waits for the answer of a member to a message.

use std::time::Duration;

use crate::members::status;
use crate::{Kind, OpsError};
use model::board::waiting::Ability;
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::members::launch::ability;
use model::members::record::MemberRecord;
use model::time::Timestamp;
use store::TeamStore;
use sys::clock::Deadline;

/// The interval of checks: a member can end without writing anything.
const SWEEP: Duration = Duration::from_millis(500);

/// Checks that a member can answer a message.
///
/// # Errors
/// A refusal for a program that reads no mail, and for a worker.
pub fn must_answer(team: &TeamStore, name: &MemberName) -> Result<(), OpsError> {
    let is_mute = |record: MemberRecord| {
        !record.reads_mail() || ability(&record.request.profile) == Ability::Commands
    };
    if status::record(team, name)?.is_some_and(is_mute) {
        let problem = format!("`{name}` is no agent and answers no messages");
        return Err(OpsError::refused(problem, "leave out `--wait`".to_owned()));
    }
    Ok(())
}

/// Waits until `from` has written to `owner` since then: a message, or the result of its turn.
///
/// # Errors
/// [`OpsError::Deadline`] after `limit`; [`OpsError::Failed`] if the member ends without an answer.
pub fn await_answer(
    team: &TeamStore,
    owner: &MemberName,
    from: &MemberName,
    since: Timestamp,
    limit: Option<Duration>,
) -> Result<Envelope, OpsError> {
    let deadline = Deadline::after(limit.unwrap_or(Duration::MAX));
    let changes = team.changes()?;
    loop {
        let has_ended = status::record(team, from)?.is_some_and(|record| record.state.is_over());
        let answer = |envelope: Envelope| {
            let at = Timestamp::parse(&envelope.timestamp)?;
            let text = match Message::parse(&envelope.text) {
                Message::Text(text) => Some(text),
                Message::IdleNotification(notice) => notice.summary,
                _ => None,
            };
            let is_it = from.clashes_with(&envelope.from) && at >= since;
            Some(Envelope { text: text.filter(|_| is_it)?, ..envelope })
        };
        if let Some(found) = team.mailbox(owner).all()?.into_iter().find_map(answer) {
            return Ok(found);
        }
        if has_ended {
            let problem = format!("`{from}` has ended without an answer");
            return Err(OpsError::described(
                Kind::Failed,
                problem,
                format!("`phalanx explain {from}` shows why"),
            ));
        }
        if deadline.expired() {
            let what = format!("`{from}` did not answer");
            return Err(OpsError::Deadline { what, limit: limit.unwrap_or_default() });
        }
        changes.wait(SWEEP.min(deadline.remaining()));
    }
}
