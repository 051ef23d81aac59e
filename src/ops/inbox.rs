//! `inbox`: what a member has been sent. Reading and marking are two steps, so that a message is marked only after
//! its reader has it (invariant 4).

use std::path::PathBuf;

use super::error::OpsError;
use super::lease;
use crate::model::envelope::Envelope;
use crate::model::event::{EventKind, Note};
use crate::model::id::MemberName;
use crate::model::protocol::Message;
use crate::store::{StoreError, TeamStore};

/// What happens to messages once they were handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// They stay unread.
    Leave,
    /// They stay, marked as read.
    Mark,
    /// They are removed.
    Remove,
}

/// The messages of `owner`: the unread ones, or all.
pub(crate) fn look(
    team: &TeamStore,
    owner: &MemberName,
    all: bool,
) -> Result<Vec<Envelope>, OpsError> {
    let roster = team.team()?;
    if roster.member(owner).is_none() {
        let known = roster.members.into_iter().map(|m| m.name).collect();
        return Err(StoreError::NoSuchMember {
            team: team.name().clone(),
            name: owner.clone(),
            known,
        }
        .into());
    }
    let mailbox = team.mailbox(owner);
    Ok(if all { mailbox.all()? } else { mailbox.unread()? })
}

/// Says that `messages` were handed over to their reader; gives those of which that is so. What a loop has to act upon
/// stays unread while one leads: whoever looks at its mail must not take an answer out of its hands.
pub(crate) fn settle(
    team: &TeamStore,
    owner: &MemberName,
    mut messages: Vec<Envelope>,
    afterwards: Afterwards,
) -> Result<Vec<Envelope>, OpsError> {
    if messages.is_empty() || afterwards == Afterwards::Leave {
        return Ok(Vec::new());
    }
    if owner.is_lead() && lease::is_led(team)? {
        messages.retain(|message| message.read || !Message::parse(&message.text).is_for_the_loop());
    }
    let ids: Vec<String> = messages.iter().map(|m| m.msg_id.clone()).collect();
    if afterwards == Afterwards::Mark && !ids.is_empty() {
        acknowledge(team, owner, &ids)?;
    }
    if afterwards == Afterwards::Remove && !ids.is_empty() {
        let fresh = team.mailbox(owner).remove(&ids)?;
        say_handled(team, owner, fresh)?;
    }
    Ok(messages)
}

/// Says that the messages of these ids were acted upon.
pub(crate) fn acknowledge(
    team: &TeamStore,
    owner: &MemberName,
    ids: &[String],
) -> Result<(), OpsError> {
    let fresh = team.mailbox(owner).acknowledge(ids)?;
    say_handled(team, owner, fresh)
}

/// Says that these messages to the lead were acted upon. Whoever leads marks them in its mailbox a moment later.
pub(crate) fn heard(team: &TeamStore, ids: &[String]) -> Result<(), OpsError> {
    let lead = MemberName::lead();
    let fresh = team.mailbox(&lead).hand_over(ids)?;
    say_handled(team, &lead, fresh)?;
    if lease::is_led(team)? { Ok(()) } else { mark(team) }
}

/// Marks in the lead's mailbox what was acted upon.
pub(crate) fn mark(team: &TeamStore) -> Result<(), OpsError> {
    Ok(team.mailbox(&MemberName::lead()).mark_handed()?)
}

/// Two that read the same mail at once, or one that reads it again, are told of once.
fn say_handled(team: &TeamStore, owner: &MemberName, fresh: Vec<String>) -> Result<(), OpsError> {
    if !fresh.is_empty() {
        team.record(Note::of(EventKind::MessageHandled).member(owner).with("msg_ids", fresh))?;
    }
    Ok(())
}

/// Writes the text of a message that cannot be typed into a file; gives its path.
pub(crate) fn put_aside(
    team: &TeamStore,
    owner: &MemberName,
    envelope: &Envelope,
) -> Result<PathBuf, OpsError> {
    Ok(team.mailbox(owner).put_aside(envelope)?)
}

/// Whether `owner` is given its messages by phalanx; else its own program reads its mailbox.
pub(crate) fn is_read_by_us(team: &TeamStore, owner: &MemberName) -> Result<bool, OpsError> {
    Ok(team.mailbox(owner).is_read_by_us()?)
}
