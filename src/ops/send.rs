//! `send` and `broadcast`: puts a message into mailboxes. The output claims that it was stored, not
//! that it was read (MSG-04).

use serde::Serialize;

use super::access;
use super::context::{Context, now};
use super::error::OpsError;
use super::{profiles, routing};
use crate::model::digest;
use crate::model::envelope::Envelope;
use crate::model::event::{EventKind, Note};
use crate::model::handoff::Handoff;
use crate::model::id::{MemberName, RequestId, TaskId};
use crate::model::protocol::Message;
use crate::model::scope::Scope;
use crate::model::team::{Member, Team};
use crate::model::text;
use crate::profile::Runs;
use crate::store::{StoreError, TeamStore};
use crate::sys::rand;

/// Begins the refusal of a message by the access policy.
const NOT_SENT: &str = "cannot send the message";
/// As [`NOT_SENT`], before the name of the recipient.
const NOT_SENT_TO: &str = "cannot send to";
/// Maximum length of the summary of a handoff in the journal, in characters.
const SUMMARY: usize = 100;

/// Sender, recipient and content of a message.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Routing {
    pub(crate) sender: String,
    pub(crate) sender_color: Option<String>,
    pub(crate) target: String,
    pub(crate) target_color: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) content: String,
}

/// The output of `send`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Sent {
    pub(crate) success: bool,
    pub(crate) message: String,
    pub(crate) msg_id: String,
    pub(crate) routing: Routing,
}

/// The output of `broadcast`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Broadcast {
    pub(crate) success: bool,
    pub(crate) message: String,
    pub(crate) recipients: Vec<String>,
    /// The members that the sender may not message, or that take no messages of this origin.
    pub(crate) skipped: Vec<String>,
}

/// Sends a text from the speaker to one member.
///
/// # Errors
/// [`StoreError::NoSuchMember`] for a name that is not on the roster; no file is created for it
/// (MSG-05). [`OpsError::ReadsNoMail`] for a member without a mailbox reader;
/// [`OpsError::NotInterruptible`] for an urgent message to a program that cannot be interrupted;
/// [`OpsError::NotRouted`] for a recipient that the team's routing rules exclude;
/// [`OpsError::AccessDenied`] for an origin that the access policy refuses.
pub(crate) fn send(
    ctx: &Context,
    team: &TeamStore,
    to: &MemberName,
    text: &str,
    summary: Option<&str>,
    urgent: bool,
    scope: &Scope,
) -> Result<Sent, OpsError> {
    let roster = team.team()?;
    let target = find(team, &roster, to)?;
    let sender = find(team, &roster, &ctx.speaker)?;
    // Members may pass an answer to a request as the text of a message.
    if !Message::parse(text).is_protocol() {
        routing::must_permit(&routing::policy(team)?, &roster, sender, target)?;
    }
    must_read_mail(team, target)?;
    access::must_admit(ctx, team, scope, NOT_SENT)?;
    access::must_admit_to(ctx, team, scope, (&target.name, None), NOT_SENT_TO)?;
    if urgent {
        must_be_interruptible(ctx, team, &target.name)?;
    }
    store(team, sender, target, text, summary, urgent)
}

/// Sends a text from the speaker to the first member that the team's `escalate` names and that
/// reads mail, or else to the lead.
///
/// # Errors
/// [`OpsError::Usage`] if that would be the speaker; [`StoreError::NoSuchMember`] for a speaker
/// that is not on the roster; [`OpsError::AccessDenied`] as for [`send`].
pub(crate) fn escalate(
    ctx: &Context,
    team: &TeamStore,
    text: &str,
    summary: Option<&str>,
    scope: &Scope,
) -> Result<Sent, OpsError> {
    access::must_admit(ctx, team, scope, NOT_SENT)?;
    let roster = team.team()?;
    let sender = find(team, &roster, &ctx.speaker)?;
    for superior in routing::policy(team)?.superiors(sender, &roster.members) {
        if reads_mail(team, &superior.name)? {
            access::must_admit_to(ctx, team, scope, (&superior.name, None), NOT_SENT_TO)?;
            return store(team, sender, superior, text, summary, false);
        }
    }
    if sender.name.is_lead() {
        return Err(OpsError::Usage {
            problem: "the lead has no superior to escalate to".to_owned(),
            hint: Some("name a recipient".to_owned()),
        });
    }
    store(team, sender, find(team, &roster, &MemberName::lead())?, text, summary, false)
}

fn store(
    team: &TeamStore,
    sender: &Member,
    target: &Member,
    text: &str,
    summary: Option<&str>,
    urgent: bool,
) -> Result<Sent, OpsError> {
    let envelope = Envelope { urgent, ..envelope_from(sender, text, summary) };
    let msg_id = append(team, &target.name, envelope, None)?;
    Ok(Sent {
        success: true,
        message: format!("stored in the mailbox of {}", target.name),
        msg_id,
        routing: Routing {
            sender: sender.name.to_string(),
            sender_color: sender.color.clone(),
            target: target.name.to_string(),
            target_color: target.color.clone(),
            summary: summary.map(str::to_owned),
            content: text.to_owned(),
        },
    })
}

/// Sends a text to every other member that reads mail, that the speaker may message, and that
/// takes messages of this origin.
///
/// # Errors
/// [`OpsError::AccessDenied`] for an origin that the team refuses.
pub(crate) fn broadcast(
    ctx: &Context,
    team: &TeamStore,
    text: &str,
    summary: Option<&str>,
    scope: &Scope,
) -> Result<Broadcast, OpsError> {
    let roster = team.team()?;
    let sender = find(team, &roster, &ctx.speaker)?;
    access::must_admit(ctx, team, scope, NOT_SENT)?;
    let policy = routing::policy(team)?;
    let is_protocol = Message::parse(text).is_protocol();
    let (mut recipients, mut skipped) = (Vec::new(), Vec::new());
    for target in roster.members.iter().filter(|m| m.name != sender.name) {
        if must_read_mail(team, target).is_err() {
            continue;
        }
        let is_routed = is_protocol || policy.check(sender, target).is_ok();
        if is_routed && access::admits_to(ctx, team, scope, &target.name, NOT_SENT_TO)? {
            append(team, &target.name, envelope_from(sender, text, summary), None)?;
            recipients.push(target.name.to_string());
        } else {
            skipped.push(target.name.to_string());
        }
    }
    let boxes = if recipients.len() == 1 { "mailbox" } else { "mailboxes" };
    let message = format!("stored in {} {boxes}", recipients.len());
    Ok(Broadcast { success: true, message, recipients, skipped })
}

/// Sends a protocol message from `from`, with the id of the journal event that caused it, if known.
/// Returns the message's id.
pub(crate) fn say(
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
    message: &Message,
    cause: Option<String>,
) -> Result<String, OpsError> {
    say_as(team, from, to, message, cause, rand::uuid())
}

/// Sends a text like [`say`]. An urgent one interrupts the turn of a wrapped agent, where its profile
/// can.
pub(crate) fn say_text(
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
    text: String,
    urgent: bool,
    cause: Option<String>,
) -> Result<(), OpsError> {
    let color = team.team()?.member(from).and_then(|m| m.color.clone());
    let envelope = Envelope::new(from.as_str(), &text, rand::uuid(), now());
    let envelope = Envelope { urgent, ..envelope }.with(None, color.as_deref());
    append(team, to, envelope, cause).map(drop)
}

/// Like [`say`], with an id that the sender can look for after a crash.
fn say_as(
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
    message: &Message,
    cause: Option<String>,
    msg_id: String,
) -> Result<String, OpsError> {
    let roster = team.team()?;
    let color = roster.member(from).and_then(|m| m.color.clone());
    let envelope = Envelope::new(from.as_str(), &message.to_text(), msg_id, now())
        .with(None, color.as_deref());
    append(team, to, envelope, cause)
}

/// Sends a teammate's message to its lead, with the event of the message's subject as the cause.
pub(crate) fn report(
    team: &TeamStore,
    from: &MemberName,
    message: &Message,
) -> Result<String, OpsError> {
    say(team, from, &MemberName::lead(), message, cause_of(team, message))
}

/// Like [`report`], for a message that is sent again if the reply to it was lost: the shared store
/// keeps one message of an id, and the same text has the same id. The messages of a member's loop
/// differ by a time or the id of a request.
pub(crate) fn report_again(
    team: &TeamStore,
    from: &MemberName,
    message: &Message,
) -> Result<String, OpsError> {
    let text = message.to_text();
    let msg_id = digest::of(&[from.as_str().as_bytes(), text.as_bytes()]);
    say_as(team, from, &MemberName::lead(), message, cause_of(team, message), msg_id)
}

/// Returns the event of the request that is answered or of the task that is over; `None` for other
/// messages.
fn cause_of(team: &TeamStore, message: &Message) -> Option<String> {
    let request = |id: &str| team.request(&RequestId::parse(id).ok()?).ok()?.event;
    match message {
        Message::ShutdownApproved(answer) => request(&answer.request_id),
        Message::ShutdownRejected(answer) => request(&answer.request_id),
        Message::TaskCompleted(news) => {
            team.task(TaskId::parse(&news.task_id).ok()?).ok()??.extra.event
        }
        Message::ShutdownRequest(_)
        | Message::PlanApprovalRequest(_)
        | Message::PlanApprovalResponse(_)
        | Message::PermissionRequest(_)
        | Message::PermissionResponse(_)
        | Message::SandboxPermissionRequest(_)
        | Message::SandboxPermissionResponse(_)
        | Message::IdleNotification(_)
        | Message::TaskAssignment(_)
        | Message::TeamPermissionUpdate(_)
        | Message::ModeSetRequest(_)
        | Message::TeammateTerminated(_)
        | Message::Text(_)
        | Message::Unknown { .. }
        | Message::Malformed { .. } => None,
    }
}

/// Sends a message with the id of the journal event that caused it, unless the mailbox has one with
/// this id: a process that was killed may have sent it.
pub(crate) fn say_once(
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
    message: &Message,
    event: &str,
) -> Result<(), OpsError> {
    say_once_as(team, from, to, message, Some(event.to_owned()), event.to_owned())
}

/// Like [`say_once`], with an id of its own.
pub(crate) fn say_once_as(
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
    message: &Message,
    cause: Option<String>,
    msg_id: String,
) -> Result<(), OpsError> {
    if team.mailbox(to).find(&msg_id)?.is_none() {
        say_as(team, from, to, message, cause, msg_id)?;
    }
    Ok(())
}

/// Sends several protocol messages from `from` to one mailbox at once, each with the journal event
/// that caused it. A message has the id of its event, so that it can be found again after a crash.
pub(crate) fn say_all(
    team: &TeamStore,
    from: &MemberName,
    to: &MemberName,
    messages: &[(Message, &str)],
) -> Result<(), OpsError> {
    let color = team.team()?.member(from).and_then(|m| m.color.clone());
    let envelope = |(message, cause): &(Message, &str)| {
        let said = Envelope::new(from.as_str(), &message.to_text(), (*cause).to_owned(), now());
        said.with(None, color.as_deref())
    };
    let envelopes: Vec<Envelope> = messages.iter().map(envelope).collect();
    let notes = envelopes.iter().zip(messages).map(|(envelope, (message, cause))| {
        let note =
            Note::of(EventKind::MessageSent).because(cause).member(to).with("from", from.as_str());
        note.with("msg_id", envelope.msg_id.as_str()).with("kind", message.kind())
    });
    Ok(team.mailbox(to).append_with_events(&envelopes, notes.collect())?)
}

fn envelope_from(sender: &Member, text: &str, summary: Option<&str>) -> Envelope {
    Envelope::new(sender.name.as_str(), text, rand::uuid(), now())
        .with(summary, sender.color.as_deref())
}

fn append(
    team: &TeamStore,
    to: &MemberName,
    envelope: Envelope,
    cause: Option<String>,
) -> Result<String, OpsError> {
    // Parsed, because a sender can pass the text of a protocol message.
    let message = Message::parse(&envelope.text);
    let note = Note { cause, ..Note::of(EventKind::MessageSent) }
        .member(to)
        .with("from", envelope.from.as_str())
        .with("msg_id", envelope.msg_id.as_str())
        .with("kind", message.kind());
    let note = message.request_id().iter().fold(note, |note, id| note.with("request_id", *id));
    let note = match Handoff::of_message(&message) {
        Some(Ok(handoff)) => note.with("summary", text::short(&handoff.sentence(), SUMMARY)),
        Some(Err(_)) | None => note,
    };
    team.mailbox(to).append_with_events(std::slice::from_ref(&envelope), vec![note])?;
    Ok(envelope.msg_id)
}

fn find<'a>(team: &TeamStore, roster: &'a Team, name: &MemberName) -> Result<&'a Member, OpsError> {
    roster.member(name).ok_or_else(|| {
        let known = roster.members.iter().map(|m| m.name.clone()).collect();
        StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into()
    })
}

/// Rejects a member whose program reads no mailbox (MSG-16).
fn must_read_mail(team: &TeamStore, target: &Member) -> Result<(), OpsError> {
    match reads_mail(team, &target.name)? {
        true => Ok(()),
        false => Err(OpsError::ReadsNoMail { name: target.name.clone() }),
    }
}

/// Only the wrapper of a program whose profile has an interrupt key can interrupt its work.
fn must_be_interruptible(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<(), OpsError> {
    let refused = |why: String| Err(OpsError::NotInterruptible { name: name.clone(), why });
    let Some(record) = team.member_record(name)? else {
        return refused("phalanx did not start it".to_owned());
    };
    let profile = profiles::find(ctx, &record.request.profile)?;
    match (profile.runs, profile.keys.interrupt) {
        (Runs::Wrapped, Some(_)) => Ok(()),
        (Runs::Wrapped, None) => {
            refused(format!("profile `{}` has no `interrupt` in [keys]", profile.name))
        }
        (Runs::Native, _) => {
            refused(format!("profile `{}` is native: it reads its mail by itself", profile.name))
        }
    }
}

/// Returns true if a member is on the team, and its mailbox has a reader.
pub(super) fn can_be_told(team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    Ok(team.team()?.member(name).is_some() && reads_mail(team, name)?)
}

/// Returns true if the member's mailbox has a reader. A member that phalanx did not start is a
/// native agent, which reads it.
pub(super) fn reads_mail(team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    let record = team.member_record(name)?;
    Ok(record.is_none_or(|record| record.reads_mail()))
}
