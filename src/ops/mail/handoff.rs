//! `handoff`: typed bodies between the members of a team, and between the leads of two teams.

use serde::Serialize;
use serde_json::Value;

use crate::authority::names::by_beginning;
use crate::mail::send::{self, Sent};
use crate::{Context, Kind, OpsError, now};
use model::id::{MemberName, TeamName, agent_id};
use model::mail::envelope::Envelope;
use model::mail::handoff::{Handoff, HandoffType, TeamHandoff};
use model::mail::protocol::Message;
use model::mail::scope::Scope;
use model::name::check_name;
use model::team::event::{EventKind, Note};
use model::text;
use model::wire::Object;
use store::{ReceivedHandoffs, TeamStore};
use sys::rand;

/// Maximum length of a summary, in characters.
const SUMMARY: usize = 100;

/// The output of `handoff put`.
#[derive(Debug, Clone, Serialize)]
pub struct HandedOver {
    pub success: bool,
    pub message: String,
    pub handoff_id: String,
    pub to_team: TeamName,
    #[serde(rename = "type")]
    pub kind: String,
}

/// A body with its type in it, checked if the type is known.
struct CheckedBody {
    object: Object,
    summary: String,
}

/// Sends a body to a member, or a blocker without a recipient to whom the team escalates it.
///
/// # Errors
/// [`OpsError::Usage`] for a body that does not have the form of its type, and for any other body
/// without a recipient; the errors of [`send::send`].
pub fn send(
    ctx: &Context,
    team: &TeamStore,
    to: Option<&MemberName>,
    kind: &str,
    body: Object,
    scope: &Scope,
) -> Result<Sent, OpsError> {
    if to.is_none() && kind != HandoffType::DevBlocker.as_str() {
        return Err(OpsError::Usage {
            problem: format!("a handoff of type `{kind}` needs a recipient"),
            hint: Some(format!("name a member: `phalanx handoff send NAME --type {kind}`")),
        });
    }
    let CheckedBody { object, summary } = check(kind, body)?;
    let text = Value::Object(object).to_string();
    match to {
        Some(to) => send::send(ctx, team, to, &text, Some(&summary), false, scope),
        None => send::escalate(ctx, team, &text, Some(&summary), scope),
    }
}

/// Hands a body over to the lead of another team.
///
/// # Errors
/// [`OpsError::Usage`] for the speaker's own team, and for a body that does not have the form of
/// its type; [`OpsError::Failed`] if the handoff is stored but the lead got no message.
pub fn put(
    ctx: &Context,
    team: &TeamStore,
    to: &TeamStore,
    kind: &str,
    body: Object,
) -> Result<HandedOver, OpsError> {
    if to.name() == team.name() {
        return Err(OpsError::Usage {
            problem: format!("`{}` is the speaker's own team", to.name()),
            hint: Some("send it to a member: `phalanx handoff send NAME`".to_owned()),
        });
    }
    let CheckedBody { object, summary } = check(kind, body)?;
    let handoff = TeamHandoff {
        id: rand::uuid(),
        from_team: team.name().clone(),
        kind: kind.to_owned(),
        at: now(),
        body: object,
    };
    to.store_handoff(&handoff)?;
    let note = Note::of(EventKind::HandoffSent).member(&ctx.speaker);
    let note = note.with("to_team", to.name().as_str());
    team.record(with_handoff(note, &handoff, &summary))?;
    notify_lead(to).map_err(|e| OpsError::Failed {
        problem: format!(
            "the handoff is stored as {}, but the lead of `{}` was not notified: {e}; do not repeat it, \
             because its next `phalanx handoff list` notifies it",
            handoff.id,
            to.name()
        ),
    })?;
    Ok(HandedOver {
        success: true,
        message: format!("handed over to team {} as {}", to.name(), handoff.id),
        handoff_id: handoff.id,
        to_team: to.name().clone(),
        kind: handoff.kind,
    })
}

/// Returns the handoffs from other teams. For the lead, first sends the messages that a process
/// that died did not send.
pub fn list(ctx: &Context, team: &TeamStore) -> Result<ReceivedHandoffs, OpsError> {
    let notified = if ctx.speaker.is_lead() { notify_lead(team) } else { Ok(()) };
    let mut found = team.received_handoffs()?;
    // A mailbox that is full does not hide the handoffs.
    found.faults.extend(notified.err().map(|e| format!("the lead was not notified: {e}")));
    Ok(found)
}

/// Returns one handoff from another team.
///
/// # Errors
/// A refusal if there is none with this id.
pub fn get(ctx: &Context, team: &TeamStore, id: &str) -> Result<TeamHandoff, OpsError> {
    let mut handoffs = list(ctx, team)?.handoffs;
    let known: Vec<&str> = handoffs.iter().map(|handoff| handoff.id.as_str()).collect();
    let found = by_beginning("handoff", id, &known)?;
    let nth = known.iter().position(|known| Some(*known) == found);
    nth.map(|nth| handoffs.swap_remove(nth)).ok_or_else(|| {
        OpsError::described(
            Kind::NotFound,
            format!("there is no handoff `{}`", id.escape_debug()),
            "list them with `phalanx handoff list`",
        )
    })
}

/// Checks a body and puts its type into it.
fn check(kind: &str, body: Object) -> Result<CheckedBody, OpsError> {
    let usage = |problem: String, hint: String| OpsError::Usage { problem, hint: Some(hint) };
    check_name(kind).map_err(|problem| {
        let known = "list the types with `phalanx handoff types`".to_owned();
        usage(format!("the type `{}` {problem}", kind.escape_debug()), known)
    })?;
    if Message::is_kind(kind) {
        let hint = "list the types of handoffs with `phalanx handoff types`".to_owned();
        return Err(usage(format!("`{kind}` is the type of a protocol message"), hint));
    }
    if let Some(own) = body.get("type").filter(|own| own.as_str() != Some(kind)) {
        let own = text::short(&own.to_string(), SUMMARY);
        let hint = format!("remove `type` from the body, or write `--type {kind}` for its type");
        return Err(usage(format!("the `type` in the body is {own}, not `{kind}`"), hint));
    }
    let mut object = Object::from_iter([("type".to_owned(), Value::from(kind))]);
    object.extend(body);
    let summary = match kind.parse::<HandoffType>() {
        Ok(known) => Handoff::read(known, &object)
            .map_err(|fault| {
                usage(fault.to_string(), format!("a valid body: {}", known.example()))
            })?
            .sentence(),
        Err(_) => format!("sends a handoff of type {kind}"),
    };
    Ok(CheckedBody { object, summary: text::short(&summary, SUMMARY) })
}

/// Sends the lead the message about each handoff for which it was not sent.
fn notify_lead(team: &TeamStore) -> Result<(), OpsError> {
    let lead = MemberName::lead();
    let sent = team.notify_of_handoffs(|handoff| message(team.name(), handoff))?;
    let notes = sent.iter().flat_map(|handoff| {
        let summary = handoff.sentence().unwrap_or_default();
        let received = Note::of(EventKind::HandoffReceived)
            .member(&lead)
            .with("from_team", handoff.from_team.as_str());
        let received = with_handoff(received, handoff, &text::short(&summary, SUMMARY));
        let event = rand::uuid();
        let stored = Note::of(EventKind::MessageSent).because(&event).member(&lead);
        let stored = stored
            .with("from", sender(&handoff.from_team))
            .with("msg_id", handoff.id.as_str())
            .with("kind", "message");
        [Note { id: Some(event), ..received }, stored]
    });
    team.record_all(notes.collect())?;
    Ok(())
}

fn with_handoff(note: Note, handoff: &TeamHandoff, summary: &str) -> Note {
    note.with("handoff_id", handoff.id.as_str())
        .with("type", handoff.kind.as_str())
        .with("summary", summary)
}

/// The name under which the lead of another team writes.
fn sender(team: &TeamName) -> String {
    agent_id(&MemberName::lead(), team)
}

/// Returns the message about a handoff, with the handoff's id.
fn message(to: &TeamName, handoff: &TeamHandoff) -> Envelope {
    let TeamHandoff { id, from_team, kind, .. } = handoff;
    let sentence = handoff
        .sentence()
        .map(|sentence| format!("\nThe lead of {from_team} {}.", text::short(&sentence, SUMMARY)));
    let words = format!(
        "Team {from_team} has handed over: {kind}.{}\nRead it with: phalanx handoff get {id} -t {to}",
        sentence.unwrap_or_default()
    );
    let summary = format!("{kind} from team {from_team}");
    Envelope::new(&sender(from_team), &words, id.clone(), now()).with(Some(&summary), None)
}
