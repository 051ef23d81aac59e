//! Waits for the answer of a member to a message.

use std::slice;
use std::time::Duration;

use serde_json::Value;

use crate::views::wait::{StateWait, Until};
use crate::{Context, Kind, OpsError};
use model::board::waiting::Ability;
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::{IdleNotification, Message};
use model::members::launch::ability;
use model::members::record::MemberRecord;
use model::team::event::{Event, EventKind};
use model::time::Timestamp;
use model::wire;
use store::TeamStore;
use sys::clock::{self, Deadline};

/// Interval of looks at the mailbox.
const LOOK: Duration = Duration::from_millis(200);

/// Time in which a member that rests has sent the notification with its result.
const NOTICE: Duration = Duration::from_secs(3);

/// Checks that a member can answer a message.
///
/// # Errors
/// A refusal for a program that reads no mail, and for a worker.
pub fn must_answer(team: &TeamStore, name: &MemberName) -> Result<(), OpsError> {
    let is_mute = |record: MemberRecord| {
        !record.reads_mail() || ability(&record.request.profile) == Ability::Commands
    };
    if team.member_record(name)?.is_some_and(is_mute) {
        let problem = format!("`{name}` is no agent and answers no messages");
        return Err(OpsError::refused(problem, "leave out `--wait`".to_owned()));
    }
    Ok(())
}

/// Waits for the answer of `from` to `owner` since then: a message, or else the result of the turn
/// after which it rests.
///
/// # Errors
/// [`OpsError::Deadline`] after `limit`; [`OpsError::Failed`] if the member ends, or rests without
/// an answer.
pub fn await_answer(
    ctx: &Context,
    team: &TeamStore,
    owner: &MemberName,
    from: &MemberName,
    since: Timestamp,
    limit: Option<Duration>,
) -> Result<Envelope, OpsError> {
    let deadline = limit.map(Deadline::after);
    let mut rested: Option<Deadline> = None;
    let mut rest = StateWait::begin(ctx, team, slice::from_ref(from), false, &Until::Idle, limit)?;
    loop {
        let rests = rest.step(Some(LOOK));
        let mut result = None;
        for envelope in team.mailbox(owner).all()? {
            let at = Timestamp::parse(&envelope.timestamp);
            if !from.clashes_with(&envelope.from) || at.is_none_or(|at| at < since) {
                continue;
            }
            match Message::parse(&envelope.text) {
                Message::Text(_) => return Ok(envelope),
                Message::IdleNotification(IdleNotification { result: said, summary, .. }) => {
                    let said = said.as_ref().and_then(Value::as_str).map(str::to_owned);
                    let said = said.or(summary).filter(|text| !text.is_empty());
                    result = said.map(|text| Envelope { text, ..envelope }).or(result);
                }
                _ => {}
            }
        }
        if rests?.is_none() {
            rested = None;
        } else if let Some(found) = result.or(last_words(team, from, since)?) {
            return Ok(found);
        } else if rested.get_or_insert_with(|| Deadline::after(NOTICE)).expired() {
            let problem = format!("`{from}` has ended its turn without an answer");
            let hint = format!("`phalanx explain {from}` shows what it did");
            return Err(OpsError::described(Kind::Failed, problem, hint));
        } else {
            clock::sleep(LOOK);
        }
        if deadline.is_some_and(|deadline| deadline.expired()) {
            let what = format!("`{from}` did not answer");
            return Err(OpsError::Deadline { what, limit: limit.unwrap_or_default() });
        }
    }
}

/// Returns the last words of the latest turn that has ended since then, as the hook of the program
/// reports them. A turn can be too short for a notification.
fn last_words(
    team: &TeamStore,
    from: &MemberName,
    since: Timestamp,
) -> Result<Option<Envelope>, OpsError> {
    let of_member = |event: &&Event| {
        let is_end = event.event == EventKind::TurnEnded && event.at >= since;
        is_end && event.member.as_ref().is_some_and(|name| name.clashes_with(from.as_str()))
    };
    let events = team.events_since(since)?;
    let last = events.iter().rev().find(of_member);
    let said = last.and_then(|end| Some((end, wire::text(&end.detail, "last_words")?)));
    Ok(said.map(|(end, text)| Envelope::new(from.as_str(), &text, end.id.clone(), end.at)))
}
