//! The events of tasks, with their comments and attachments: a copy of what the journal says about
//! tasks, which is never rotated.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

use memchr::memmem::Finder;
use serde::Deserialize;

use crate::error::StoreError;
use crate::files::dirs;
use crate::files::documents::{self, DocumentPlace};
use crate::shared::SharedTeam;
use crate::team::TeamStore;
use database::{DocumentKind, LogKind, LogScope};
use model::id::{MemberName, TaskId};
use model::team::event::{Event, EventKind};
use model::time::Timestamp;
use model::wire;
use sys::fs::{self, LineFile};

impl TeamStore {
    /// Returns when a member last looked at the board, if that was noted.
    pub fn looked_at(&self, who: &MemberName) -> Result<Option<Timestamp>, StoreError> {
        if self.shared.is_some() {
            return documents::read_typed(&self.looked_place(who), 1);
        }
        let bytes = fs::read(&self.layout.looked_at(who), 64)?.unwrap_or_default();
        Ok(String::from_utf8_lossy(&bytes).trim().parse().ok().map(Timestamp))
    }

    /// Notes that a member looked at the board.
    pub fn set_looked_at(&self, who: &MemberName, at: Timestamp) -> Result<(), StoreError> {
        if self.shared.is_some() {
            let body = Some(serde_json::json!(at));
            return documents::change(&self.looked_place(who), |_| Ok((body.clone(), ())));
        }
        let path = self.layout.looked_at(who);
        dirs::make_dirs_of(&path)?;
        Ok(fs::write_atomic(&path, at.0.to_string().as_bytes())?)
    }

    /// Returns the events of one task, oldest first.
    pub fn task_events(&self, id: TaskId) -> Result<Vec<Event>, StoreError> {
        if let Some(shared) = &self.shared {
            return shared.task_lines(&LogScope::Task(id.0));
        }
        // Only lines with the id are parsed: the file holds the events of all tasks.
        let id_text = serde_json::to_string(&id).expect("an id can be written");
        let mut events = self.log_lines(&format!("\"task\":{id_text}"))?;
        events.retain(|event| event.task == Some(id));
        Ok(events)
    }

    /// Returns the time since the file of a task was written; `None` if there is no such file.
    pub fn task_age(&self, id: TaskId) -> Result<Option<Duration>, StoreError> {
        if let Some(shared) = &self.shared {
            let found = shared.stored_task(id)?;
            return Ok(found.map(|task| Duration::from_millis(task.age_ms)));
        }
        Ok(fs::about(&self.layout.task(id))?.map(|about| about.age))
    }

    /// Returns the ids of all events about tasks, and the time of the first.
    pub fn task_log_ids(&self) -> Result<(BTreeSet<String>, Option<Timestamp>), StoreError> {
        if let Some(shared) = &self.shared {
            let events = shared.task_lines(&LogScope::Tasks)?;
            let first = events.first().map(|event| event.at);
            return Ok((events.into_iter().map(|event| event.id).collect(), first));
        }
        #[derive(Deserialize)]
        struct Head {
            id: String,
            at: Timestamp,
        }
        let (mut ids, mut first) = (BTreeSet::new(), None);
        if let Some(file) = LineFile::open(&self.layout.task_log())? {
            file.read_lines(0, |line| {
                if let Ok(head) = serde_json::from_slice::<Head>(line) {
                    ids.insert(head.id);
                    first.get_or_insert(head.at);
                }
                ControlFlow::Continue(())
            })?;
        }
        Ok((ids, first))
    }

    /// Returns the comments of all tasks.
    pub fn comments(&self) -> Result<BTreeMap<TaskId, Vec<String>>, StoreError> {
        let mut comments: BTreeMap<TaskId, Vec<String>> = BTreeMap::new();
        let events = match &self.shared {
            Some(shared) => shared.task_lines(&LogScope::Tasks)?,
            None => self.log_lines(EventKind::TaskCommented.as_str())?,
        };
        for event in events {
            let (Some(id), Some(text)) = (event.task, wire::text(&event.detail, "text")) else {
                continue;
            };
            if event.event == EventKind::TaskCommented {
                comments.entry(id).or_default().push(text);
            }
        }
        Ok(comments)
    }

    fn looked_place(&self, who: &MemberName) -> DocumentPlace {
        self.document(DocumentKind::Looked, &who.file_stem(), || {
            self.own_place("board", self.layout.looked_at(who))
        })
    }

    /// Returns the events whose lines contain `needle`.
    fn log_lines(&self, needle: &str) -> Result<Vec<Event>, StoreError> {
        let Some(file) = LineFile::open(&self.layout.task_log())? else { return Ok(Vec::new()) };
        let (finder, mut events) = (Finder::new(needle), Vec::new());
        file.read_lines(0, |line| {
            if finder.find(line).is_some() {
                // Lines of a newer phalanx and remains of interrupted writes are skipped.
                events.extend(serde_json::from_slice::<Event>(line));
            }
            ControlFlow::Continue(())
        })?;
        Ok(events)
    }
}

impl SharedTeam {
    /// Returns events about tasks, oldest first.
    fn task_lines(&self, scope: &LogScope) -> Result<Vec<Event>, StoreError> {
        let lines = self.database.log(self.name(), LogKind::Journal, scope)?;
        Ok(lines.iter().filter_map(|line| serde_json::from_str(&line.body).ok()).collect())
    }
}
