//! Marks or removes messages that were shown to their reader. Requests among them stay open for a
//! decision.

use crate::decisions::decide;
use crate::mail::inbox;
use crate::members::lead;
use crate::{Context, OpsError};
use model::decisions::question::Ask;
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::mail::protocol::news::{is_for_loop, is_news};
use store::TeamStore;

/// The treatment of messages after they were handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Afterwards {
    /// They stay unread.
    Leave,
    /// They stay, marked as read.
    Mark,
    Remove,
}

/// Marks or removes messages that were handed over to their reader, and returns them. Requests to
/// the lead are filed first: no other process files them once they are marked. While a lead runs,
/// protocol chatter for its loop stays and is not returned, and refusals are marked instead of
/// removed: reading the lead's mail by hand must not take an answer away from the loop.
pub fn mark_or_remove(
    ctx: &Context,
    team: &TeamStore,
    owner: &MemberName,
    mut messages: Vec<Envelope>,
    afterwards: Afterwards,
) -> Result<Vec<Envelope>, OpsError> {
    let finish = match afterwards {
        _ if messages.is_empty() => return Ok(Vec::new()),
        Afterwards::Leave => return Ok(Vec::new()),
        Afterwards::Mark => inbox::acknowledge,
        Afterwards::Remove => inbox::remove,
    };
    let is_request = |one: &Envelope| !one.read && Ask::of(Message::parse(&one.text)).is_some();
    if owner.is_lead() && messages.iter().any(is_request) {
        decide::process_requests(ctx, team)?;
    }
    if owner.is_lead() && lead::is_led(team)? {
        messages.retain(|message| message.read || is_news(message));
        if afterwards == Afterwards::Remove {
            let for_loop = messages.extract_if(.., |message| !message.read && is_for_loop(message));
            inbox::acknowledge(team, owner, &ids(&for_loop.collect::<Vec<_>>()))?;
        }
    }
    finish(team, owner, &ids(&messages))?;
    Ok(messages)
}

fn ids(messages: &[Envelope]) -> Vec<String> {
    messages.iter().map(|message| message.msg_id.clone()).collect()
}
