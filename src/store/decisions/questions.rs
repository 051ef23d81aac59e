//! Questions of members (`phalanx/requests/asked.*.json`). Lock order: the question first, then the
//! mailbox of its member.

use std::slice;

use crate::error::StoreError;
use crate::files::documents::{self, DocumentPlace};
use crate::files::layout::QUESTION;
use crate::files::reread::Reread;
use crate::team::TeamStore;
use database::DocumentKind;
use model::decisions::question::Question;
use model::id::RequestId;
use model::mail::envelope::Envelope;
use model::team::event::Note;

/// Format version of question files.
const FORMAT: u32 = 1;

impl TeamStore {
    /// Files a question. Returns false if its id is taken.
    pub fn file_question(&self, question: &Question) -> Result<bool, StoreError> {
        documents::create(&self.question_place(&question.id), question)
    }

    /// Returns one question.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRequest`] if there is no question with this id.
    pub fn question(&self, id: &RequestId) -> Result<Question, StoreError> {
        let found: Option<Question> = documents::read_typed(&self.question_place(id), FORMAT)?;
        found.filter(|q| q.id == *id).ok_or_else(|| StoreError::NoSuchRequest { id: id.clone() })
    }

    /// Returns all questions, oldest first.
    pub fn questions(&self) -> Result<Vec<Question>, StoreError> {
        let mut found: Vec<Question> =
            self.in_requests(DocumentKind::Question, FORMAT, &mut Reread::default(), |stem| {
                stem.starts_with(QUESTION)
            })?;
        found.sort_by(|a, b| (a.asked_at, &a.id).cmp(&(b.asked_at, &b.id)));
        Ok(found)
    }

    /// Changes a question under its lock.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRequest`] if there is no question with this id; the error of `edit`.
    pub fn change_question<T>(
        &self,
        id: &RequestId,
        mut edit: impl FnMut(&mut Question) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        documents::change_typed(&self.question_place(id), FORMAT, |found: &mut Option<Question>| {
            let question = found.as_mut().filter(|q| q.id == *id);
            edit(question.ok_or_else(|| StoreError::NoSuchRequest { id: id.clone() })?)
        })
    }

    /// Appends the answer to a decided question to its member's mailbox, and the event about it to
    /// the journal, once. Any process that finds an answer unsent may send it. It has been sent and
    /// recorded when this returns, unless a process was killed between the two: then a team of files
    /// lacks the event.
    pub fn send_reply(
        &self,
        id: &RequestId,
        envelope: &Envelope,
        note: &Note,
    ) -> Result<(), StoreError> {
        // Lock order: the question before the mailbox, never the reverse.
        self.change_question(id, |question| {
            let mailbox = self.mailbox(&question.from);
            let Some(decision) = question.decision.as_mut().filter(|d| !d.sent) else {
                return Ok(());
            };
            decision.sent = true;
            if mailbox.find(&envelope.msg_id)?.is_some() {
                return Ok(());
            }
            match mailbox.append_with_events(slice::from_ref(envelope), vec![note.clone()]) {
                // The member has left the team and needs no answer.
                Err(StoreError::NoSuchMember { .. }) => Ok(()),
                sent => sent,
            }
        })
    }

    /// Removes a question that is decided and answered; leaves any other.
    pub fn forget_question(&self, id: &RequestId) -> Result<(), StoreError> {
        documents::remove_if(&self.question_place(id), FORMAT, Question::is_settled)
    }

    fn question_place(&self, id: &RequestId) -> DocumentPlace {
        let stem = id.file_stem();
        self.document(DocumentKind::Question, &stem, || {
            self.request_file(&format!("{QUESTION}{stem}.json"), self.layout.question(id))
        })
    }
}
