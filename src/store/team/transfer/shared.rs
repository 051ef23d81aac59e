//! The contents of a team in the shared store.

use serde_json::Value;

use super::{KINDS, KeyedDocument, MailboxContents, MessageContents, TeamContents};
use crate::error::StoreError;
use crate::mail::handoffs;
use crate::shared::{SharedTeam, roster_names};
use crate::team::journal;
use database::{DocumentKind, DocumentWrite, LogEntry, LogKind, MailEntry, MailScope};
use database::{TaskScope, TaskWrite};
use model::board::task::{Task, TaskState};
use model::id::TaskId;
use model::mail::handoff::TeamHandoff;
use model::team::event::Event;
use model::team::settings::Settings;
use model::wire;

/// Rows to write at once.
const BATCH: usize = 200;

impl SharedTeam {
    pub(super) fn contents(
        &self,
        settings: Option<Settings>,
        events: Vec<Event>,
        handoffs: Vec<TeamHandoff>,
    ) -> Result<TeamContents, StoreError> {
        let file = match self.document(DocumentKind::Config, "").read()? {
            Some(Value::Object(file)) => file,
            Some(_) | None => {
                let (name, known) = (self.name.to_string(), Vec::new());
                return Err(StoreError::NoSuchTeam { name, known });
            }
        };
        let mut documents = Vec::new();
        for kind in KINDS {
            for stored in self.database.documents(self.name(), kind)? {
                let body = self.document(kind, &stored.key).value(&stored)?;
                documents.push(KeyedDocument { kind, key: stored.key, body });
            }
        }
        let stored = self.database.tasks(self.name(), &TaskScope::All)?;
        let tasks = stored.tasks.iter().map(|stored| self.task_and_object(stored));
        Ok(TeamContents {
            file,
            settings,
            documents,
            mailboxes: self.mailboxes()?,
            tasks: tasks.collect::<Result<_, _>>()?,
            deleted: stored.deleted.iter().map(|id| TaskId(*id)).collect(),
            mark: stored.mark,
            events,
            handoffs,
        })
    }

    fn mailboxes(&self) -> Result<Vec<MailboxContents>, StoreError> {
        let mut mailboxes = Vec::new();
        for owner in self.database.mailboxes(self.name())? {
            let rows = self.database.mail(self.name(), &owner, MailScope::All)?;
            let message = |row: &database::MailRow| {
                let mut entry: Value = serde_json::from_str(&row.body).map_err(|e| {
                    let what = format!("message {} to {owner} of team {}", row.msg_id, self.name);
                    StoreError::BadDocument { what, problem: e.to_string() }
                })?;
                if let Some(entry) = entry.as_object_mut() {
                    wire::put(entry, "read", row.delivered);
                }
                Ok(MessageContents { entry, delivered: row.delivered })
            };
            let messages = rows.iter().map(message).collect::<Result<_, StoreError>>()?;
            mailboxes.push(MailboxContents { owner, messages });
        }
        Ok(mailboxes)
    }

    /// Creates the team. Deletes it again if a part cannot be written.
    pub(super) fn create_with(&self, contents: &TeamContents) -> Result<(), StoreError> {
        let file = Value::Object(contents.file.clone());
        let members = roster_names(&file);
        // The store takes mail for members on the roster only, and former ones have mailboxes, too.
        let owners = contents.mailboxes.iter().map(|mailbox| mailbox.owner.clone());
        let everyone: Vec<String> = members.iter().cloned().chain(owners).collect();
        self.create(&contents.file, &everyone, contents.settings.as_ref())?;
        let written = self.write_contents(contents).and_then(|()| {
            let roster = self.document(DocumentKind::Config, "");
            let version = roster.stored()?.map(|stored| stored.version);
            roster.put(&file, version)
        });
        match written {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => {
                let _ = self.database.delete_team(self.name());
                Err(written.err().unwrap_or_else(|| {
                    let what = format!("the roster of team {}", self.name);
                    let problem = "another process has changed it meanwhile".to_owned();
                    StoreError::BadDocument { what, problem }
                }))
            }
        }
    }

    fn write_contents(&self, contents: &TeamContents) -> Result<(), StoreError> {
        let (database, team) = (&self.database, self.name());
        for KeyedDocument { kind, key, body } in &contents.documents {
            let body = body.to_string();
            let write = DocumentWrite { kind: *kind, key, body: &body, names: None };
            database.put_document(team, &write, None)?;
        }
        self.write_deleted(&contents.deleted)?;
        let row =
            |(task, file): &(Task, _)| crate::board::tasks::row(task, Clone::clone(file), None);
        for batch in contents.tasks.chunks(BATCH) {
            let rows: Vec<TaskWrite> = batch.iter().map(row).collect();
            database.put_tasks(team, &rows, contents.mark)?;
        }
        database.put_tasks(team, &[], contents.mark)?;
        for mailbox in &contents.mailboxes {
            self.write_mailbox(mailbox)?;
        }
        for events in contents.events.chunks(BATCH) {
            let lines: Vec<LogEntry> = events.iter().map(journal::log_entry).collect();
            database.append_log(team, LogKind::Journal, &lines)?;
        }
        let lines: Vec<LogEntry> = contents.handoffs.iter().map(handoffs::log_entry).collect();
        for lines in lines.chunks(BATCH) {
            database.append_log(team, LogKind::Handoff, lines)?;
        }
        Ok(())
    }

    /// Keeps the ids of deleted tasks on record: creates and deletes a task with each.
    fn write_deleted(&self, ids: &[TaskId]) -> Result<(), StoreError> {
        for ids in ids.chunks(BATCH) {
            let row = |id: &TaskId| {
                let task = Task { state: TaskState::Completed, ..Task::new(*id, "deleted", "") };
                crate::board::tasks::row(&task, task.to_object(), None)
            };
            let rows: Vec<TaskWrite> = ids.iter().map(row).collect();
            let versions = self.database.put_tasks(self.name(), &rows, 0)?.unwrap_or_default();
            for (id, version) in ids.iter().zip(versions) {
                self.database.delete_task(self.name(), id.0, version)?;
            }
        }
        Ok(())
    }

    fn write_mailbox(&self, mailbox: &MailboxContents) -> Result<(), StoreError> {
        let (database, team, owner) = (&self.database, self.name(), mailbox.owner.as_str());
        database.create_mailbox(team, owner)?;
        for messages in mailbox.messages.chunks(BATCH) {
            let entry = |message: &MessageContents| MailEntry {
                msg_id: message.msg_id(),
                body: message.entry.to_string(),
            };
            let entries: Vec<MailEntry> = messages.iter().map(entry).collect();
            database.append_mail(team, owner, owner, &entries, &[])?;
            let delivered = messages.iter().filter(|message| message.delivered);
            let ids: Vec<String> = delivered.map(MessageContents::msg_id).collect();
            if !ids.is_empty() {
                database.deliver_mail(team, owner, &ids, false)?;
            }
        }
        Ok(())
    }
}
