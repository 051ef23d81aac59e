//! Questions of members (`phalanx/requests/asked.*.json`). Lock order: the question first, then the
//! mailbox of its member.

use super::document::{self, Durability};
use super::error::StoreError;
use super::layout::QUESTION;
use super::teams::TeamStore;
use crate::model::envelope::Envelope;
use crate::model::id::RequestId;
use crate::model::question::Question;
use crate::sys::fs;

/// Format version of question files.
const FORMAT: u32 = 1;

impl TeamStore {
    /// Files a question. Returns false if its id is taken.
    pub(crate) fn file_question(&self, question: &Question) -> Result<bool, StoreError> {
        document::write_new(&self.layout.question(&question.id), question, Durability::ThisBoot)
    }

    /// Returns one question.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRequest`] if there is no question with this id.
    pub(crate) fn question(&self, id: &RequestId) -> Result<Question, StoreError> {
        let found: Option<Question> = document::read_typed(&self.question_place(id))?;
        found.filter(|q| q.id == *id).ok_or_else(|| StoreError::NoSuchRequest { id: id.clone() })
    }

    /// Returns all questions, oldest first.
    pub(crate) fn questions(&self) -> Result<Vec<Question>, StoreError> {
        let files = fs::list(&self.layout.requests())?;
        let mut found = Vec::new();
        for file in files.iter().filter(|f| f.starts_with(QUESTION) && f.ends_with(".json")) {
            let place = self.request_place_of(file, self.layout.requests().join(file));
            found.extend(document::read_typed::<Question>(&place)?);
        }
        found.sort_by(|a, b| (a.asked_at, &a.id).cmp(&(b.asked_at, &b.id)));
        Ok(found)
    }

    /// Changes a question under its lock.
    ///
    /// # Errors
    /// [`StoreError::NoSuchRequest`] if there is no question with this id; the error of `edit`.
    pub(crate) fn change_question<T>(
        &self,
        id: &RequestId,
        mut edit: impl FnMut(&mut Question) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        document::change_typed(&self.question_place(id), FORMAT, |found: &mut Option<Question>| {
            let question = found.as_mut().filter(|q| q.id == *id);
            edit(question.ok_or_else(|| StoreError::NoSuchRequest { id: id.clone() })?)
        })
    }

    /// Appends the answer to a decided question to its member's mailbox, once. Returns true if this
    /// call did it. Any process that finds an answer unsent may send it, also after a crash in
    /// between.
    pub(crate) fn send_reply(
        &self,
        id: &RequestId,
        envelope: &Envelope,
    ) -> Result<bool, StoreError> {
        // Lock order: the question before the mailbox, never the reverse.
        self.change_question(id, |question| {
            let mailbox = self.mailbox(&question.from);
            let Some(decision) = question.decision.as_mut().filter(|d| !d.sent) else {
                return Ok(false);
            };
            decision.sent = true;
            if mailbox.find(&envelope.msg_id)?.is_some() {
                return Ok(false);
            }
            match mailbox.append(envelope) {
                Ok(()) => Ok(true),
                // The member has left the team and needs no answer.
                Err(StoreError::NoSuchMember { .. }) => Ok(false),
                Err(e) => Err(e),
            }
        })
    }

    /// Removes a question that is decided and answered; leaves any other.
    pub(crate) fn forget_question(&self, id: &RequestId) -> Result<(), StoreError> {
        document::remove_if(&self.question_place(id), Question::is_settled)
    }

    fn question_place(&self, id: &RequestId) -> document::FilePlace {
        self.request_place_of(
            &format!("{QUESTION}{}.json", id.file_stem()),
            self.layout.question(id),
        )
    }
}
