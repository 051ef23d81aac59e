//! The actions of a member in a turn, for the report to its lead at the end of the turn.

use crate::{OpsError, now};
use model::id::{Incarnation, MemberName, TaskId};
use model::members::said::TurnEnd;
use model::team::event::{Event, EventKind, Note};
use model::time::Timestamp;
use model::{text, wire};
use store::{JournalReader, TeamStore};

/// Characters of a message that a report quotes.
const LONGEST: usize = 80;

/// Characters of a program's last words that are kept.
const LAST_WORDS: usize = 4000;

/// The actions of a member since some time, from the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deeds {
    /// The last task that it ended; true if it was completed.
    pub task: Option<(TaskId, bool)>,
    /// The last message that it sent to a peer, as `[to bob] TEXT`.
    pub told: Option<String>,
    /// The last words of its program, if that has a hook for them.
    pub last_words: Option<String>,
}

/// Records that the program of this run has ended its turn. Reports of an earlier run are ignored.
pub fn ended(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    end: &TurnEnd,
) -> Result<(), OpsError> {
    let Some(record) = team.member_record(name)?.filter(|record| record.is(incarnation)) else {
        return Ok(());
    };
    let is_other = end.session.is_some() && end.session != record.session;
    // A program's requests to a model outside its conversation have sessions of their own, and are
    // not turns of the member.
    if is_other && record.session.is_some() && !end.is_own {
        return Ok(());
    }
    team.change_record(name, incarnation, |record| {
        record.turn_ended_at = Some(now());
        if let Some(session) = end.session.as_deref().filter(|_| is_other && end.is_own) {
            record.begin_session(session);
        }
    })?;
    let said: String = end.last_words.chars().take(LAST_WORDS).collect();
    team.record(Note::of(EventKind::TurnEnded).member(name).with("last_words", said))?;
    Ok(())
}

/// Returns the actions of `name` since `since`, from the events that `journal` has not read yet.
pub fn deeds(
    team: &TeamStore,
    name: &MemberName,
    since: Timestamp,
    journal: &mut JournalReader,
) -> Result<Deeds, OpsError> {
    let events = journal.read()?;
    let mut deeds = Deeds::default();
    for event in events.iter().filter(|event| event.at >= since) {
        let own = event.member.as_ref() == Some(name);
        match (event.event, event.task) {
            (EventKind::TaskCompleted, Some(id)) if own => deeds.task = Some((id, true)),
            (EventKind::TaskFailed, Some(id)) if own => deeds.task = Some((id, false)),
            (EventKind::TurnEnded, _) if own => {
                deeds.last_words =
                    wire::text(&event.detail, "last_words").filter(|said| !said.trim().is_empty());
            }
            (EventKind::MessageSent, _) => {
                deeds.told = message_to_peer(team, event, name)?.or(deeds.told)
            }
            (_, _) => {}
        }
    }
    Ok(deeds)
}

/// Returns the recipient and the beginning of a message from this member to a peer, without the
/// text if the message is gone.
fn message_to_peer(
    team: &TeamStore,
    event: &Event,
    name: &MemberName,
) -> Result<Option<String>, OpsError> {
    let detail = |key: &str| wire::text(&event.detail, key);
    let Some(peer) = event.member.as_ref().filter(|to| !to.is_lead()) else { return Ok(None) };
    if detail("from").as_deref() != Some(name.as_str())
        || detail("kind").as_deref() != Some("message")
    {
        return Ok(None);
    }
    let id = detail("msg_id").unwrap_or_default();
    let sent = team.mailbox(peer).find(&id)?;
    let words =
        sent.map(|sent| text::short(sent.summary.as_deref().unwrap_or(&sent.text), LONGEST));
    Ok(Some(format!("[to {peer}] {}", words.unwrap_or_default()).trim_end().to_owned()))
}
