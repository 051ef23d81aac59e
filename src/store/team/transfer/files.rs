//! The contents of a team of files.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{KINDS, KeyedDocument, MailboxContents, MessageContents, TeamContents};
use crate::error::StoreError;
use crate::files::dirs;
use crate::files::document::{self, Durability, MAX_FILE};
use crate::files::layout::QUESTION;
use crate::mail::ack_log::AckLog;
use crate::mail::archive::Archive;
use crate::team::TeamStore;
use crate::team::teams::Store;
use database::DocumentKind;
use model::board::task::Task;
use model::id::MemberName;
use model::mail::handoff::TeamHandoff;
use model::team::event::Event;
use model::time::Timestamp;
use model::wire;
use sys::fs::{self, LineFile};

/// Ending of the files that note when a member last looked at the board.
const LOOKED: &str = ".looked";

impl TeamStore {
    pub(super) fn contents_of_files(
        &self,
        handoffs: Vec<TeamHandoff>,
    ) -> Result<TeamContents, StoreError> {
        let file = document::read(&self.roster_place())?;
        let Some(Value::Object(file)) = file else {
            return Err(StoreError::NoSuchTeam { name: self.name.to_string(), known: Vec::new() });
        };
        let mut documents = Vec::new();
        for kind in KINDS {
            for key in self.keys(kind)? {
                let body = self.read_body(kind, &key)?;
                documents.extend(body.map(|body| KeyedDocument { kind, key, body }));
            }
        }
        let mut tasks = Vec::new();
        for id in self.task_ids()? {
            if let Some(Value::Object(file)) = document::read(&self.task_place(id))? {
                tasks.push((Task::read(id, &file), file));
            }
        }
        Ok(TeamContents {
            file,
            settings: self.settings()?,
            documents,
            mailboxes: self.mailboxes_of_files()?,
            deleted: self.deleted_tasks()?.into_iter().collect(),
            mark: self.mark()?.max(tasks.last().map_or(0, |(task, _)| task.id.0)),
            tasks,
            events: self.all_events()?,
            handoffs,
        })
    }

    /// Returns the keys of the documents of a kind, which are parts of the names of their files.
    fn keys(&self, kind: DocumentKind) -> Result<Vec<String>, StoreError> {
        let dir = self.body_path(kind, "").parent().map_or_else(PathBuf::new, PathBuf::from);
        let key = |file: &String| match kind {
            DocumentKind::Looked => file.strip_suffix(LOOKED).map(str::to_owned),
            DocumentKind::Question => {
                file.strip_prefix(QUESTION)?.strip_suffix(".json").map(str::to_owned)
            }
            _ => file
                .strip_suffix(".json")
                .filter(|stem| !stem.starts_with(QUESTION))
                .map(str::to_owned),
        };
        let files = fs::list(&dir)?;
        Ok(files.iter().filter(|file| !file.starts_with('.')).filter_map(key).collect())
    }

    fn body_path(&self, kind: DocumentKind, key: &str) -> PathBuf {
        let layout = &self.layout;
        match kind {
            DocumentKind::Member => layout.members().join(format!("{key}.json")),
            DocumentKind::Request => layout.requests().join(format!("{key}.json")),
            DocumentKind::Question => layout.requests().join(format!("{QUESTION}{key}.json")),
            DocumentKind::Review => layout.review(key),
            DocumentKind::Looked => layout.board().join(format!("{key}{LOOKED}")),
            DocumentKind::Config => layout.team_file(),
            DocumentKind::Settings => layout.settings(),
            DocumentKind::Lead => layout.lead(),
            // Never copied: files have no hosts.
            DocumentKind::Host => layout.store_address(),
        }
    }

    fn read_body(&self, kind: DocumentKind, key: &str) -> Result<Option<Value>, StoreError> {
        let path = self.body_path(kind, key);
        if kind == DocumentKind::Looked {
            let bytes = fs::read(&path, 64)?.unwrap_or_default();
            let at = String::from_utf8_lossy(&bytes).trim().parse().ok().map(Timestamp);
            return Ok(at.map(|at| json!(at)));
        }
        document::read(&self.own_place("transfer", path))
    }

    fn mailboxes_of_files(&self) -> Result<Vec<MailboxContents>, StoreError> {
        let files = fs::list(&self.layout.inboxes())?;
        let stems = files.iter().filter(|file| !file.starts_with('.'));
        let mut mailboxes = Vec::new();
        for owner in stems.filter_map(|file| file.strip_suffix(".json")) {
            let name = MemberName::existing(owner)?;
            let archived = Archive::at(self.layout.archive(&name)).entries()?;
            let place =
                self.own_place("transfer", self.layout.inboxes().join(format!("{owner}.json")));
            let entries = match document::read(&place)? {
                Some(Value::Array(entries)) => entries,
                None => Vec::new(),
                Some(_) => {
                    return Err(document::quarantine(&place, "it is not an array".to_owned()));
                }
            };
            let acks: BTreeSet<String> =
                AckLog::at(self.layout.deliveries(&name)).ids()?.into_iter().collect();
            let mut known = BTreeSet::new();
            let mut messages = Vec::new();
            for entry in archived.into_iter().chain(entries) {
                let is_read = entry.get("read").and_then(Value::as_bool).unwrap_or(false);
                let mut message = MessageContents { entry, delivered: is_read };
                let id = message.msg_id();
                message.delivered |= acks.contains(&id);
                // A crash can leave a message in both files.
                if known.insert(id) {
                    messages.push(message);
                }
            }
            mailboxes.push(MailboxContents { owner: owner.to_owned(), messages });
        }
        Ok(mailboxes)
    }

    /// Returns the events of the journal, after the older ones of tasks, which are kept for longer.
    fn all_events(&self) -> Result<Vec<Event>, StoreError> {
        let journal = self.events()?;
        let known: BTreeSet<&String> = journal.iter().map(|event| &event.id).collect();
        let mut events = Vec::new();
        if let Some(file) = LineFile::open(&self.layout.task_log())? {
            file.read_lines(0, |line| {
                events.extend(serde_json::from_slice::<Event>(line));
                ControlFlow::Continue(())
            })?;
        }
        events.retain(|event| !known.contains(&event.id));
        drop(known);
        events.extend(journal);
        Ok(events)
    }

    /// Writes everything but the team file.
    fn write_files(&self, contents: &TeamContents) -> Result<(), StoreError> {
        for dir in self.layout.all_dirs() {
            fs::private_dir(&dir)?;
        }
        fs::create_new(&self.layout.task_list_lock(), b"")?;
        if let Some(settings) = &contents.settings {
            document::write_new(&self.layout.settings(), settings, Durability::Permanent)?;
        }
        for KeyedDocument { kind, key, body } in &contents.documents {
            let path = self.body_path(*kind, key);
            dirs::make_dirs_of(&path)?;
            if *kind == DocumentKind::Looked {
                let at: Timestamp = serde_json::from_value(body.clone()).unwrap_or_default();
                fs::write_atomic(&path, at.0.to_string().as_bytes())?;
            } else {
                document::write_new(&path, body, Durability::Permanent)?;
            }
        }
        for mailbox in &contents.mailboxes {
            let path = self.layout.inboxes().join(format!("{}.json", mailbox.owner));
            let entries: Vec<Value> = mailbox.messages.iter().map(entry_in_file).collect();
            let bytes = serde_json::to_vec(&entries).map_or(0, |bytes| bytes.len() as u64);
            if bytes > MAX_FILE {
                let owner = MemberName::existing(&mailbox.owner)?;
                return Err(StoreError::BoxFull { owner, limit: MAX_FILE });
            }
            document::write_new(&path, &entries, Durability::Permanent)?;
        }
        for (task, file) in &contents.tasks {
            document::write_new(&self.layout.task(task.id), file, Durability::Permanent)?;
        }
        for id in &contents.deleted {
            self.record_deletion(*id)?;
        }
        self.raise_mark(contents.mark)?;
        self.write_events(&contents.events)?;
        for handoff in &contents.handoffs {
            self.append_handoff(handoff)?;
        }
        Ok(())
    }

    pub(crate) fn write_events(&self, events: &[Event]) -> Result<(), StoreError> {
        let line =
            |event: &Event| serde_json::to_vec(event).expect("an event has string keys only");
        let all: Vec<Vec<u8>> = events.iter().map(line).collect();
        fs::append_durable(&self.layout.journal(), &all)?;
        let about_tasks: Vec<Vec<u8>> =
            events.iter().filter(|event| event.is_about_task()).map(line).collect();
        dirs::make_dirs_of(&self.layout.task_log())?;
        fs::append_durable(&self.layout.task_log(), &about_tasks)?;
        Ok(())
    }
}

impl Store {
    /// Creates the team. Its file appears last, so that it is complete once it exists.
    pub(super) fn create_files_with(
        &self,
        team: &TeamStore,
        contents: &TeamContents,
    ) -> Result<(), StoreError> {
        fs::private_dir(self.root())?;
        for dir in self.common_dirs() {
            fs::private_dir(&dir)?;
        }
        let is_free = !fs::exists(&team.layout.tasks());
        if !is_free || !fs::create_dir_exclusive(&team.layout.team_dir())? {
            return Err(StoreError::TeamTaken { name: team.name.clone() });
        }
        let file = Value::Object(contents.file.clone());
        let written = team.write_files(contents).and_then(|()| {
            team.keep_last(&file)?;
            document::write_new(&team.layout.team_file(), &file, Durability::Permanent)
        });
        written.map(drop).inspect_err(|_| drop(team.delete()))
    }
}

fn entry_in_file(message: &MessageContents) -> Value {
    let mut entry = message.entry.clone();
    if let Some(entry) = entry.as_object_mut() {
        wire::put(entry, "read", message.delivered);
    }
    entry
}
