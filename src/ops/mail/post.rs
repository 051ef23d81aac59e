//! Messages of phalanx itself to one mailbox, each with its event in the journal.

use std::collections::BTreeSet;

use crate::{OpsError, now};
use model::id::{MemberName, RequestId, TaskId};
use model::mail::envelope::Envelope;
use model::mail::handoff::Handoff;
use model::mail::protocol::Message;
use model::team::event::{EventKind, Note};
use model::time::Timestamp;
use model::{digest, text, wire};
use store::TeamStore;
use sys::rand;

/// Maximum length of a summary in the journal, in characters.
const SUMMARY_LENGTH: usize = 100;

/// Difference in ms between the clocks of hosts that is allowed for.
const CLOCKS_MS: u64 = 60_000;

/// A message to one mailbox.
#[must_use = "nothing is sent yet"]
pub struct Post {
    from: MemberName,
    to: MemberName,
    message: Message,
    /// It interrupts the turn of a wrapped agent, where its profile can.
    urgent: bool,
    /// Id of the journal event that caused it.
    cause: Option<String>,
    id: String,
}

impl Post {
    pub fn new(from: &MemberName, to: &MemberName, message: Message) -> Post {
        let (from, to, id) = (from.clone(), to.clone(), rand::uuid());
        Post { from, to, message, urgent: false, cause: None, id }
    }

    /// A notice of the team itself.
    pub fn notice(to: &MemberName, text: String) -> Post {
        Post::new(&MemberName::system(), to, Message::Text(text))
    }

    /// A message of a teammate to its lead. The event of its subject is its cause.
    pub fn report(team: &TeamStore, from: &MemberName, message: Message) -> Post {
        let cause = cause_of(team, &message);
        Post::new(from, &MemberName::lead(), message).because(cause)
    }

    pub fn because(self, cause: Option<String>) -> Post {
        Post { cause, ..self }
    }

    /// Sets the cause, whose id becomes that of the message, so that it can be found again after a
    /// crash.
    pub(crate) fn for_event(self, event: &str) -> Post {
        Post { cause: Some(event.to_owned()), id: event.to_owned(), ..self }
    }

    pub(crate) fn with_id(self, id: String) -> Post {
        Post { id, ..self }
    }

    /// Gives it an id that follows from sender and text. The shared store keeps one message of an
    /// id, so that one whose reply was lost can be sent again.
    pub fn with_id_of_text(self) -> Post {
        let text = self.message.to_text();
        let id = digest::hash(&[self.from.as_str().as_bytes(), text.as_bytes()]);
        self.with_id(id)
    }

    pub fn urgent(self, urgent: bool) -> Post {
        Post { urgent, ..self }
    }

    /// Sends it, and returns its id.
    pub fn send(self, team: &TeamStore) -> Result<String, OpsError> {
        let id = self.id.clone();
        send_all(team, &[self])?;
        Ok(id)
    }

    /// Sends it unless the mailbox has a message with its id: a process that was killed may have
    /// sent it.
    pub(crate) fn send_once(self, team: &TeamStore) -> Result<(), OpsError> {
        match team.mailbox(&self.to).find(&self.id)? {
            Some(_) => Ok(()),
            None => self.send(team).map(drop),
        }
    }
}

/// Sends several messages of one sender to one mailbox at once.
pub(crate) fn send_all(team: &TeamStore, posts: &[Post]) -> Result<(), OpsError> {
    let Some(Post { from, to, .. }) = posts.first() else { return Ok(()) };
    let color = team.team()?.member(from).and_then(|member| member.color.clone());
    let envelope = |post: &Post| {
        let text = post.message.to_text();
        let envelope = Envelope::new(from.as_str(), &text, post.id.clone(), now());
        Envelope { urgent: post.urgent, ..envelope }.with(None, color.as_deref())
    };
    let envelopes: Vec<Envelope> = posts.iter().map(envelope).collect();
    let notes =
        envelopes.iter().zip(posts).map(|(sent, post)| message_note(to, sent, post.cause.clone()));
    Ok(team.mailbox(to).append_with_events(&envelopes, notes.collect())?)
}

/// Journals the unread texts to the lead that another program has written, which are those that the
/// journal does not have. `known` has the ids of messages that are in the journal, and gets more.
pub fn journal_native(team: &TeamStore, known: &mut BTreeSet<String>) -> Result<(), OpsError> {
    let is_new = |mail: &Envelope| {
        !known.contains(&mail.msg_id) && matches!(Message::parse(&mail.text), Message::Text(_))
    };
    let new = team.mailbox(&MemberName::lead()).unread_where(is_new)?;
    let sent_at = |mail: &Envelope| Timestamp::parse(&mail.timestamp).unwrap_or_else(now);
    let Some(first) = new.iter().map(sent_at).min() else { return Ok(()) };
    let events = team.events_since(first.minus_ms(CLOCKS_MS))?;
    let sent = events.iter().filter(|event| event.event == EventKind::MessageSent);
    known.extend(sent.filter_map(|event| wire::text(&event.detail, "msg_id")));
    let missing = new.iter().filter(|mail| known.insert(mail.msg_id.clone()));
    let notes: Vec<Note> =
        missing.map(|mail| message_note(&MemberName::lead(), mail, None)).collect();
    if !notes.is_empty() {
        team.record_all(notes)?;
    }
    Ok(())
}

/// Returns the event of a message.
pub(crate) fn message_note(to: &MemberName, envelope: &Envelope, cause: Option<String>) -> Note {
    // Parsed, because a sender can pass the text of a protocol message.
    let message = Message::parse(&envelope.text);
    let note = Note { cause, ..Note::of(EventKind::MessageSent) }
        .member(to)
        .with("from", envelope.from.as_str())
        .with("msg_id", envelope.msg_id.as_str())
        .with("kind", message.kind())
        .with_some("request_id", message.request_id());
    if let Message::Text(text) = &message
        && to.is_lead()
    {
        let preview = envelope.summary.as_deref().unwrap_or(text);
        return note.with("preview", text::short(preview, SUMMARY_LENGTH));
    }
    match Handoff::of_message(&message) {
        Some(Ok(handoff)) => note.with("summary", text::short(&handoff.sentence(), SUMMARY_LENGTH)),
        Some(Err(_)) | None => note,
    }
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
        _ => None,
    }
}
