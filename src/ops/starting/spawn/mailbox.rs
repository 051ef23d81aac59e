//! The initial mailbox of a teammate.

use crate::{OpsError, now};
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use store::{Marking, TeamStore};
use sys::rand;

/// Creates the mailbox, marks stale control messages of an existing one as read (SD-10) and appends
/// the prompt. Must run before the program starts. Returns true if the mailbox is new.
///
/// # Errors
///
/// The mailbox cannot be locked, read or written.
pub(super) fn prepare_mailbox(
    team: &TeamStore,
    member: &MemberName,
    prompt: Option<&str>,
) -> Result<bool, OpsError> {
    let mailbox = team.mailbox(member);
    let lead = MemberName::lead();
    let prompt = prompt.map(|text| Envelope::new(lead.as_str(), text, rand::uuid(), now()));
    if mailbox.create(prompt.as_ref())? {
        return Ok(true);
    }
    let stale: Vec<String> =
        mailbox.unread()?.into_iter().filter(is_control).map(|e| e.msg_id).collect();
    mailbox.acknowledge(&stale, Marking::Always)?;
    prompt.map_or(Ok(()), |prompt| mailbox.append(&prompt))?;
    Ok(false)
}

fn is_control(envelope: &Envelope) -> bool {
    matches!(
        Message::parse(&envelope.text),
        Message::ShutdownRequest(_)
            | Message::ModeSetRequest(_)
            | Message::PlanApprovalResponse(_)
            | Message::PermissionResponse(_)
            | Message::SandboxPermissionResponse(_)
    )
}
