//! Copies a whole team from one store to another, for `store export` and `store import`.

mod files;
mod shared;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::error::StoreError;
use crate::mail::handoffs::ReceivedHandoffs;
use crate::team::TeamStore;
use crate::team::teams::Store;
use database::DocumentKind;
use model::board::task::Task;
use model::id::{TaskId, TeamName};
use model::mail::envelope::Envelope;
use model::mail::handoff::TeamHandoff;
use model::team::event::Event;
use model::team::settings::Settings;
use model::wire::Object;

/// The documents of a team that exist once for each member or request.
const KINDS: [DocumentKind; 5] = [
    DocumentKind::Member,
    DocumentKind::Request,
    DocumentKind::Question,
    DocumentKind::Review,
    DocumentKind::Looked,
];

/// Everything that a store keeps of a team. Fields of other programs are included.
#[derive(Debug)]
pub struct TeamContents {
    /// The team file.
    file: Object,
    /// `None` for a team that Claude Code created.
    settings: Option<Settings>,
    documents: Vec<KeyedDocument>,
    mailboxes: Vec<MailboxContents>,
    /// By id.
    tasks: Vec<(Task, Object)>,
    deleted: Vec<TaskId>,
    /// The largest id of a task that was ever assigned.
    mark: u64,
    /// Oldest first. Those about tasks may go back further than the others.
    events: Vec<Event>,
    handoffs: Vec<TeamHandoff>,
}

#[derive(Debug)]
struct KeyedDocument {
    kind: DocumentKind,
    key: String,
    body: Value,
}

#[derive(Debug)]
struct MailboxContents {
    /// Stem of the name of the mailbox file.
    owner: String,
    /// Oldest first.
    messages: Vec<MessageContents>,
}

#[derive(Debug)]
struct MessageContents {
    entry: Value,
    /// Its reader has it.
    delivered: bool,
}

impl MessageContents {
    fn msg_id(&self) -> String {
        Envelope::read(&self.entry).msg_id
    }
}

impl TeamContents {
    /// Returns the numbers of tasks and of messages.
    pub fn counts(&self) -> (usize, usize) {
        (self.tasks.len(), self.mailboxes.iter().map(|mailbox| mailbox.messages.len()).sum())
    }
}

impl TeamStore {
    /// Reads everything that the store keeps of the team. The caller holds the lease, and no member
    /// runs.
    ///
    /// # Errors
    /// If a part cannot be read, since a copy without it would look complete.
    pub fn contents(&self) -> Result<TeamContents, StoreError> {
        let ReceivedHandoffs { handoffs, faults } = self.received_handoffs()?;
        if let Some(problem) = faults.into_iter().next() {
            let what = format!("the handoffs of team {}", self.name);
            return Err(StoreError::BadDocument { what, problem });
        }
        match &self.shared {
            Some(shared) => shared.contents(self.settings()?, self.events()?, handoffs),
            None => self.contents_of_files(handoffs),
        }
    }
}

impl Store {
    /// Creates a team with these contents. If that fails, the team is deleted again.
    ///
    /// # Errors
    /// [`StoreError::TeamTaken`] if there is a team of this name.
    pub fn create_with(
        &self,
        name: &TeamName,
        contents: &TeamContents,
    ) -> Result<TeamStore, StoreError> {
        for key in contents.keys() {
            if key.is_empty() || key.starts_with('.') || key.contains('/') {
                let what = format!("a document of team {name}");
                let problem = format!("{key:?} cannot be the name of a file");
                return Err(StoreError::BadDocument { what, problem });
            }
        }
        let team = self.open(name);
        match &team.shared {
            Some(shared) => {
                shared.create_with(contents)?;
                team.join_host()?;
            }
            None => self.create_files_with(&team, contents)?,
        }
        Ok(team)
    }
}

impl TeamContents {
    fn keys(&self) -> impl Iterator<Item = &str> {
        let documents = self.documents.iter().map(|document| document.key.as_str());
        documents.chain(self.mailboxes.iter().map(|mailbox| mailbox.owner.as_str()))
    }
}
