//! The part of the shared store that belongs to one team.

pub(crate) mod access;
pub(crate) mod bridge;
pub(crate) mod machine;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::StoreError;
use crate::files::format::refuse_newer;
use database::{
    ClaimScope, Database, DocumentKind, DocumentWrite, Interest, StoreChange, StoreUrl,
    StoredDocument, Subscription,
};
use model::id::{HostName, MemberName, TeamName};
use model::team::settings::Settings;
use model::topic::Topic;
use model::wire::{self, Object};
use sys::{clock, rand};

/// Attempts to change a document that other processes change at the same time.
const TRIES: u32 = 200;
/// Longest pause after a conflict, in microseconds.
const LONGEST_PAUSE_US: u64 = 8000;

/// A team in the shared store.
#[derive(Debug, Clone)]
pub(crate) struct SharedTeam {
    pub(crate) database: Database,
    pub(crate) url: Arc<StoreUrl>,
    /// The name of this host.
    pub(crate) host: HostName,
    pub(crate) name: TeamName,
    /// The claim for the next task whose reply was lost.
    pub(crate) lost_claim: Arc<Mutex<Option<LostClaim>>>,
}

/// A claim that the store may have carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostClaim {
    pub(crate) who: MemberName,
    pub(crate) scope: ClaimScope,
    pub(crate) event: String,
}

/// One document of a team in the shared store.
#[derive(Debug, Clone)]
pub(crate) struct SharedDocument {
    pub(crate) team: SharedTeam,
    pub(crate) kind: DocumentKind,
    pub(crate) key: String,
}

/// Repeats `attempt` until it returns a value; after each failure it pauses for a random time, so
/// that competing processes do not stay in step. `None` after [`TRIES`] attempts.
pub(crate) fn until_written<T>(
    mut attempt: impl FnMut() -> Result<Option<T>, StoreError>,
) -> Result<Option<T>, StoreError> {
    for nth in 0..TRIES {
        if let Some(done) = attempt()? {
            return Ok(Some(done));
        }
        clock::sleep(Duration::from_micros(rand::below(
            LONGEST_PAUSE_US.min(500 * u64::from(nth + 1)),
        )));
    }
    Ok(None)
}

impl SharedTeam {
    pub(crate) fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Creates the team; `names` are the members that get mail, in the form in which names are
    /// compared.
    ///
    /// # Errors
    /// [`StoreError::TeamTaken`] if the store has a team of this name.
    pub(crate) fn create(
        &self,
        file: &Object,
        names: &[String],
        settings: Option<&Settings>,
    ) -> Result<(), StoreError> {
        let settings = settings.map(|settings| {
            serde_json::to_string(&settings.clone().shared_by(&self.host))
                .expect("settings have string keys")
        });
        let file = Value::Object(file.clone()).to_string();
        let document = |kind, body, names| DocumentWrite { kind, key: "", body, names };
        let config = document(DocumentKind::Config, file.as_str(), Some(names));
        let settings =
            settings.as_deref().map(|settings| document(DocumentKind::Settings, settings, None));
        let documents: Vec<DocumentWrite<'_>> = settings.into_iter().chain([config]).collect();
        if !self.database.create_team(self.name(), &documents)? {
            return Err(StoreError::TeamTaken { name: self.name.clone() });
        }
        self.database.create_mailbox(self.name(), &MemberName::lead().file_stem())?;
        Ok(())
    }

    pub(crate) fn exists(&self) -> Result<bool, StoreError> {
        match self.document(DocumentKind::Config, "").stored() {
            Ok(stored) => Ok(stored.is_some()),
            Err(StoreError::NoSuchTeam { .. }) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Calls `on_change` on a separate thread for each later change that `interest` covers.
    pub(crate) fn watch(
        &self,
        interest: &Interest,
        on_change: impl Fn(Topic) + Send + 'static,
    ) -> Result<Subscription, StoreError> {
        Ok(self.database.subscribe(self.name(), interest, move |change| {
            if let Some(topic) = topic(change) {
                on_change(topic);
            }
        })?)
    }

    pub(crate) fn document(&self, kind: DocumentKind, key: &str) -> SharedDocument {
        SharedDocument { team: self.clone(), kind, key: key.to_owned() }
    }

    /// Returns the documents of a kind, by key. Skips those of another form.
    ///
    /// # Errors
    /// [`StoreError::NewerFormat`] if the `format` of one is above `known`.
    pub(crate) fn documents<T: DeserializeOwned>(
        &self,
        kind: DocumentKind,
        known: u32,
    ) -> Result<Vec<T>, StoreError> {
        let mut documents = Vec::new();
        for found in self.database.documents(self.name(), kind)? {
            let Ok(value) = serde_json::from_str(&found.body) else { continue };
            refuse_newer(&value, known, || {
                format!("a {} document of team {}", <&str>::from(kind), self.name()).into()
            })?;
            documents.extend(serde_json::from_value(value));
        }
        Ok(documents)
    }
}

impl SharedDocument {
    /// Names the document in an error.
    pub(crate) fn label(&self) -> String {
        let kind: &str = self.kind.into();
        let space = if self.key.is_empty() { "" } else { " " };
        format!("the {kind} document{space}{} of team {}", self.key, self.team.name)
    }

    pub(crate) fn stored(&self) -> Result<Option<StoredDocument>, StoreError> {
        Ok(self.team.database.document(self.team.name(), self.kind, &self.key)?)
    }

    pub(crate) fn value(&self, stored: &StoredDocument) -> Result<Value, StoreError> {
        serde_json::from_str(&stored.body).map_err(|e| self.corrupt(e.to_string()))
    }

    pub(crate) fn corrupt(&self, problem: String) -> StoreError {
        StoreError::BadDocument { what: self.label(), problem }
    }

    pub(crate) fn read(&self) -> Result<Option<Value>, StoreError> {
        self.stored()?.map(|stored| self.value(&stored)).transpose()
    }

    /// Writes the document in place of version `expected`. Returns false if another version is
    /// stored.
    pub(crate) fn put(&self, value: &Value, expected: Option<i64>) -> Result<bool, StoreError> {
        let body = value.to_string();
        let names = (self.kind == DocumentKind::Config).then(|| roster_names(value));
        let write =
            DocumentWrite { kind: self.kind, key: &self.key, body: &body, names: names.as_deref() };
        Ok(self.team.database.put_document(self.team.name(), &write, expected)?.is_some())
    }

    /// Changes the document. `edit` runs again if another process changed it meanwhile; if it
    /// returns no content, nothing is written.
    pub(crate) fn change<T>(
        &self,
        mut edit: impl FnMut(Option<Value>) -> Result<(Option<Value>, T), StoreError>,
    ) -> Result<T, StoreError> {
        let changed = until_written(|| {
            let stored = self.stored()?;
            let before = stored.as_ref().map(|stored| self.value(stored)).transpose()?;
            let (after, answer) = edit(before.clone())?;
            let is_written = match &after {
                Some(after) if Some(after) != before.as_ref() => {
                    self.put(after, stored.map(|stored| stored.version))?
                }
                Some(_) | None => true,
            };
            Ok(is_written.then_some(answer))
        })?;
        changed.ok_or_else(|| self.contended())
    }

    /// Removes the document if `is_such` returns true for its content.
    pub(crate) fn remove_if(
        &self,
        is_such: impl Fn(Value) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        let removed = until_written(|| {
            let Some(stored) = self.stored()? else { return Ok(Some(())) };
            if !is_such(self.value(&stored)?)? {
                return Ok(Some(()));
            }
            let (database, team) = (&self.team.database, self.team.name());
            let removed = database.delete_document(team, self.kind, &self.key, stored.version)?;
            Ok(removed.then_some(()))
        })?;
        removed.ok_or_else(|| self.contended())
    }

    pub(crate) fn contended(&self) -> StoreError {
        StoreError::Contended { path: self.label().into(), tries: TRIES }
    }
}

/// Returns the topic of a change; `None` for one that concerns no reader.
fn topic(change: StoreChange) -> Option<Topic> {
    Some(match change {
        StoreChange::Document { kind, key } => match kind {
            DocumentKind::Config => Topic::Roster,
            DocumentKind::Settings => Topic::Settings,
            DocumentKind::Member => Topic::Member(key),
            DocumentKind::Request | DocumentKind::Question => Topic::Request(key),
            DocumentKind::Lead
            | DocumentKind::Review
            | DocumentKind::Looked
            | DocumentKind::Host => return None,
        },
        StoreChange::Mail(owner) => Topic::Mail(owner),
        StoreChange::Claim | StoreChange::Tasks => Topic::Tasks,
        StoreChange::Journal => Topic::Journal,
        StoreChange::Everything => Topic::Everything,
    })
}

/// Returns the names on the roster, in the form in which names are compared.
pub(crate) fn roster_names(file: &Value) -> Vec<String> {
    let members = file.get("members").and_then(Value::as_array).into_iter().flatten();
    let names = members.filter_map(|entry| wire::text(entry.as_object()?, "name"));
    names.filter_map(|name| MemberName::existing(&name).ok()).map(|name| name.folded()).collect()
}
