//! `send` and `broadcast`: puts a message into mailboxes. The output claims that it was stored, not
//! that it was read (MSG-04).

use serde::Serialize;

use crate::authority::access;
use crate::mail::{post, routing};
use crate::members::profiles;
use crate::{Context, OpsError, now};
use model::id::MemberName;
use model::mail::envelope::Envelope;
use model::mail::protocol::Message;
use model::mail::scope::Scope;
use model::team::{Member, Team};
use profile::Runs;
use store::TeamStore;
use sys::rand;

/// Begins the refusal of a message by the access policy.
const NOT_SENT: &str = "cannot send the message";
/// As [`NOT_SENT`], before the name of the recipient.
const NOT_SENT_TO: &str = "cannot send to";

/// Sender, recipient and content of a message.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    pub sender: String,
    pub(crate) sender_color: Option<String>,
    pub target: String,
    pub(crate) target_color: Option<String>,
    pub summary: Option<String>,
    pub content: String,
}

/// The output of `send`.
#[derive(Debug, Clone, Serialize)]
pub struct Sent {
    pub success: bool,
    pub message: String,
    pub msg_id: String,
    pub routing: Routing,
}

/// The output of `broadcast`.
#[derive(Debug, Clone, Serialize)]
pub struct Broadcast {
    pub success: bool,
    pub message: String,
    pub recipients: Vec<String>,
    /// The members that the sender may not message, or that take no messages of this origin.
    pub skipped: Vec<String>,
}

/// Sends a text from the speaker to one member.
///
/// # Errors
/// [`OpsError::no_such_member`] for a name that is not on the roster; no file is created for it
/// (MSG-05). [`OpsError::ReadsNoMail`] for a member without a mailbox reader;
/// A refusal for an urgent message to a program that cannot be interrupted;
/// A refusal for a recipient that the team's routing rules exclude;
/// [`OpsError::AccessDenied`] for an origin that the access policy refuses.
pub fn send(
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
/// [`OpsError::Usage`] if that would be the speaker; [`OpsError::no_such_member`] for a speaker
/// that is not on the roster; [`OpsError::AccessDenied`] as for [`send`].
pub fn escalate(
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
    let msg_id = append(team, &target.name, envelope)?;
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
pub fn broadcast(
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
            append(team, &target.name, envelope_from(sender, text, summary))?;
            recipients.push(target.name.to_string());
        } else {
            skipped.push(target.name.to_string());
        }
    }
    let boxes = if recipients.len() == 1 { "mailbox" } else { "mailboxes" };
    let message = format!("stored in {} {boxes}", recipients.len());
    Ok(Broadcast { success: true, message, recipients, skipped })
}

fn envelope_from(sender: &Member, text: &str, summary: Option<&str>) -> Envelope {
    Envelope::new(sender.name.as_str(), text, rand::uuid(), now())
        .with(summary, sender.color.as_deref())
}

fn append(team: &TeamStore, to: &MemberName, envelope: Envelope) -> Result<String, OpsError> {
    let note = post::message_note(to, &envelope, None);
    team.mailbox(to).append_with_events(std::slice::from_ref(&envelope), vec![note])?;
    Ok(envelope.msg_id)
}

fn find<'a>(team: &TeamStore, roster: &'a Team, name: &MemberName) -> Result<&'a Member, OpsError> {
    roster.member(name).ok_or_else(|| OpsError::no_such_member(team, name, &roster.members))
}

/// Rejects a member whose program reads no mailbox (MSG-16).
fn must_read_mail(team: &TeamStore, target: &Member) -> Result<(), OpsError> {
    if reads_mail(team, &target.name)? {
        Ok(())
    } else {
        Err(OpsError::ReadsNoMail { name: target.name.clone() })
    }
}

/// A program is interrupted by its wrapper, if its profile has an interrupt key, or over ACP.
fn must_be_interruptible(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<(), OpsError> {
    let refused = |why: String| {
        Err(OpsError::refused(
            format!("`{name}` cannot be interrupted: {why}"),
            "send it without `--urgent`",
        ))
    };
    let Some(record) = team.member_record(name)? else {
        return refused("phalanx did not start it".to_owned());
    };
    let profile = profiles::find(ctx, &record.request.profile)?;
    match (profile.runs, profile.keys.interrupt) {
        (Runs::Wrapped, Some(_)) | (Runs::Acp, _) => Ok(()),
        (Runs::Wrapped, None) => {
            refused(format!("profile `{}` has no `interrupt` in [keys]", profile.name))
        }
        (Runs::Native, _) => {
            refused(format!("the program of profile `{}` reads its mail by itself", profile.name))
        }
    }
}

/// Returns true if a member is on the team, and its mailbox has a reader.
pub(crate) fn can_be_told(team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    Ok(team.team()?.member(name).is_some() && reads_mail(team, name)?)
}

/// Returns true if the member's mailbox has a reader. A member that phalanx did not start is a
/// native agent, which reads it.
pub fn reads_mail(team: &TeamStore, name: &MemberName) -> Result<bool, OpsError> {
    let record = team.member_record(name)?;
    Ok(record.is_none_or(|record| record.reads_mail()))
}
