//! `inbox`: the messages of a member. Reading and acknowledging are separate steps, so that a
//! message is marked only after its reader has it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::OpsError;
use crate::members::lead;
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::news::{is_for_loop, is_news};
use model::team::event::{EventKind, Note};
use store::{Marking, TeamStore};

/// Returns the unread messages of `owner`, or with `all` every message.
pub fn read_messages(
    team: &TeamStore,
    owner: &MemberName,
    all: bool,
) -> Result<Vec<Envelope>, OpsError> {
    must_be_on_roster(team, owner)?;
    let mailbox = team.mailbox(owner);
    Ok(if all { mailbox.all()? } else { mailbox.unread()? })
}

/// Returns the unread messages of `owner` that a reader is to be shown. While a lead runs, its loop
/// marks the protocol chatter in the lead's mailbox.
pub fn read_news(team: &TeamStore, owner: &MemberName) -> Result<Vec<Envelope>, OpsError> {
    must_be_on_roster(team, owner)?;
    let is_led = owner.is_lead() && lead::is_led(team)?;
    Ok(team.mailbox(owner).unread_where(|envelope| !is_led || is_news(envelope))?)
}

/// Returns the messages to the lead that its loop acts on. Text waits for a reader, and there can
/// be much of it.
pub fn read_for_loop(team: &TeamStore) -> Result<Vec<Envelope>, OpsError> {
    let lead = MemberName::lead();
    must_be_on_roster(team, &lead)?;
    Ok(team.mailbox(&lead).entries_where(is_for_loop)?)
}

fn must_be_on_roster(team: &TeamStore, owner: &MemberName) -> Result<(), OpsError> {
    let roster = team.team()?;
    if roster.member(owner).is_none() {
        return Err(OpsError::no_such_member(team, owner, &roster.members));
    }
    Ok(())
}

/// Removes messages that were acted upon.
pub fn remove(team: &TeamStore, owner: &MemberName, ids: &[String]) -> Result<(), OpsError> {
    let fresh = team.mailbox(owner).remove(ids)?;
    journal_handled(team, owner, fresh)
}

/// Acknowledges messages that were acted upon.
pub fn acknowledge(team: &TeamStore, owner: &MemberName, ids: &[String]) -> Result<(), OpsError> {
    let fresh = team.mailbox(owner).acknowledge(ids, Marking::IfReadByPhalanx)?;
    journal_handled(team, owner, fresh)
}

/// Returns the ids of unread messages that were sent to the member's program in an earlier run,
/// without a receipt.
///
/// # Errors
/// The mailbox or the journal cannot be read.
pub fn in_doubt(team: &TeamStore, owner: &MemberName) -> Result<BTreeSet<String>, OpsError> {
    let unread: BTreeSet<String> =
        team.mailbox(owner).unread()?.into_iter().map(|message| message.msg_id).collect();
    if unread.is_empty() {
        return Ok(BTreeSet::new());
    }
    let events = team.events()?.into_iter().filter(|event| {
        event.event == EventKind::MessageSubmitted && event.member.as_ref() == Some(owner)
    });
    let ids = events.filter_map(|event| event.detail.get("msg_ids").cloned());
    let ids = ids.filter_map(|ids| serde_json::from_value::<Vec<String>>(ids).ok()).flatten();
    Ok(ids.filter(|id| unread.contains(id)).collect())
}

/// Records that messages to the lead were acted upon. A running lead marks them in its mailbox a
/// moment later; without one they are marked here.
pub fn record_handled(team: &TeamStore, ids: &[String]) -> Result<(), OpsError> {
    let lead = MemberName::lead();
    let fresh = team.mailbox(&lead).record_delivered(ids)?;
    journal_handled(team, &lead, fresh)?;
    if lead::is_led(team)? { Ok(()) } else { mark(team) }
}

/// Marks the messages in the lead's mailbox that are on record as acted upon.
pub fn mark(team: &TeamStore) -> Result<(), OpsError> {
    Ok(team.mailbox(&MemberName::lead()).mark_delivered()?)
}

/// Journals messages that are handled for the first time; concurrent or repeated reads add nothing.
fn journal_handled(
    team: &TeamStore,
    owner: &MemberName,
    fresh: Vec<String>,
) -> Result<(), OpsError> {
    if !fresh.is_empty() {
        team.record(Note::of(EventKind::MessageHandled).member(owner).with("msg_ids", fresh))?;
    }
    Ok(())
}

/// Writes the text of a message that cannot be typed to a file. Returns the file's path.
pub fn put_aside(
    team: &TeamStore,
    owner: &MemberName,
    envelope: &Envelope,
) -> Result<PathBuf, OpsError> {
    Ok(team.mailbox(owner).spill_text(envelope)?)
}

/// Returns true if phalanx delivers the messages of `owner`; otherwise its program reads the
/// mailbox.
pub fn is_read_by_us(team: &TeamStore, owner: &MemberName) -> Result<bool, OpsError> {
    Ok(team.mailbox(owner).is_read_by_phalanx()?)
}
