//! Access to the store and the lead's step function for benches, fuzz targets and integration
//! tests. This is not a public interface and can change at any time.

use std::path::Path;

use serde_json::Value;

use crate::lead;
use crate::model::envelope::Envelope;
use crate::model::event::{EventKind, Note};
use crate::model::id::{Incarnation, MemberName, TaskId, TeamName};
use crate::model::manifest::Manifest;
use crate::model::protocol::Message;
use crate::model::record::MemberRecord;
use crate::model::settings::Settings;
use crate::model::task::Task;
use crate::model::team;
use crate::model::time::Timestamp;
use crate::store::{NewTask, Store, StoreError, TaskEnding, TeamStore};
use crate::sys::clock;
use crate::sys::watch::Changes;

/// Errors are text, because the callers only report them.
type Result<T> = std::result::Result<T, String>;

fn text(e: StoreError) -> String {
    e.to_string()
}

fn named(name: &str) -> Result<MemberName> {
    MemberName::existing(name).map_err(|e| e.to_string())
}

fn now() -> Timestamp {
    Timestamp(clock::now_ms())
}

/// A mailbox entry: id, sender, text, and whether it is read.
pub type Entry = (String, String, String, bool);

/// Incarnation of all members whose records [`Team::begin`] writes.
const RUN: &str = "00000000-0000-4000-8000-000000000000";

/// A team on disk.
#[derive(Debug)]
pub struct Team(TeamStore);

impl Team {
    /// Creates a team under a config root, for at most 64 members.
    ///
    /// # Errors
    /// The name is invalid, the team already exists, or its files cannot be written.
    pub fn create(root: &Path, name: &str) -> Result<Team> {
        let name = TeamName::new(name).map_err(|e| e.to_string())?;
        let file = team::Team::found(&name, "driven", "team-lead", "session", "/", now());
        Store::at(root).create(&name, &file, &Settings::by_hand(64)).map(Team).map_err(text)
    }

    /// Opens an existing team.
    ///
    /// # Errors
    /// The name is invalid, or the team does not exist.
    pub fn open(root: &Path, name: &str) -> Result<Team> {
        let name = TeamName::existing(name).map_err(|e| e.to_string())?;
        Store::at(root).team(&name).map(Team).map_err(text)
    }

    /// Adds a teammate with an empty mailbox.
    ///
    /// # Errors
    /// The name is invalid or in use, or a file cannot be read or written.
    pub fn join(&self, name: &str) -> Result<()> {
        let entry =
            serde_json::json!({"name": name, "agentId": format!("{name}@{}", self.0.name())});
        let member = entry.as_object().and_then(team::Member::read).ok_or("not a name")?;
        self.0.change_roster(|roster| roster.join(&member)).map_err(text)?;
        self.0.mailbox(&member.name).create(None).map(drop).map_err(text)
    }

    /// Removes a teammate from the roster. Returns false if it was not on the roster.
    ///
    /// # Errors
    /// The name is invalid, or the team file cannot be read or written.
    pub fn leave(&self, name: &str) -> Result<bool> {
        let name = named(name)?;
        self.0.change_roster(|roster| Ok(roster.leave(&name))).map_err(text)
    }

    /// Returns the names of the teammates on the roster.
    ///
    /// # Errors
    /// The team file cannot be read.
    pub fn teammates(&self) -> Result<Vec<String>> {
        Ok(self.0.team().map_err(text)?.teammates().map(|m| m.name.to_string()).collect())
    }

    /// Appends a message to a mailbox.
    ///
    /// # Errors
    /// The name is invalid or not on the roster, the message is too long, the mailbox is full, or
    /// it cannot be read or written.
    pub fn append(&self, to: &str, from: &str, body: &str, id: &str) -> Result<()> {
        let envelope = Envelope::new(from, body, id.to_owned(), now());
        self.0.mailbox(&named(to)?).append(&envelope).map_err(text)
    }

    /// Returns the entries of a mailbox, oldest first.
    ///
    /// # Errors
    /// The name is invalid, or the mailbox cannot be read.
    pub fn entries(&self, of: &str) -> Result<Vec<Entry>> {
        let entries = self.0.mailbox(&named(of)?).entries().map_err(text)?;
        Ok(entries.into_iter().map(|e| (e.msg_id, e.from, e.text, e.read)).collect())
    }

    /// Marks messages as read in the mailbox file, as for a member that does not run.
    ///
    /// # Errors
    /// The name is invalid, or the mailbox cannot be read or written.
    pub fn mark(&self, of: &str, ids: &[String]) -> Result<()> {
        self.0.mailbox(&named(of)?).mark_read(ids).map(drop).map_err(text)
    }

    /// Removes messages from a mailbox and its archive.
    ///
    /// # Errors
    /// The name is invalid, or the mailbox cannot be read or written.
    pub fn remove(&self, of: &str, ids: &[String]) -> Result<()> {
        self.0.mailbox(&named(of)?).remove(ids).map(drop).map_err(text)
    }

    /// Acknowledges messages as delivered, as their reader does.
    ///
    /// # Errors
    /// The name is invalid, or the mailbox cannot be read or written.
    pub fn acknowledge(&self, of: &str, ids: &[String]) -> Result<()> {
        self.0.mailbox(&named(of)?).acknowledge(ids).map(drop).map_err(text)
    }

    /// Returns the ids of the messages that are neither read nor acknowledged, oldest first.
    ///
    /// # Errors
    /// The name is invalid, or the mailbox cannot be read.
    pub fn unread(&self, of: &str) -> Result<Vec<String>> {
        let unread = self.0.mailbox(&named(of)?).unread().map_err(text)?;
        Ok(unread.into_iter().map(|e| e.msg_id).collect())
    }

    /// Returns the entries of the archive and the mailbox, oldest first.
    ///
    /// # Errors
    /// The name is invalid, or the mailbox or its archive cannot be read.
    pub fn all(&self, of: &str) -> Result<Vec<Entry>> {
        let all = self.0.mailbox(&named(of)?).all().map_err(text)?;
        Ok(all.into_iter().map(|e| (e.msg_id, e.from, e.text, e.read)).collect())
    }

    /// Writes the record of a new run of a worker. Its mailbox then counts as read by phalanx.
    ///
    /// # Errors
    /// The name is invalid, or the record cannot be written.
    pub fn begin(&self, name: &str) -> Result<()> {
        let record = serde_json::json!({
            "format": 1, "name": name, "incarnation": RUN, "token": "t", "state": "starting", "state_since": 1,
            "backend": "pty", "asked_at": 1,
            "wish": {"profile": "worker", "argv": ["x"], "cwd": "/", "color": "blue"},
        });
        let record: MemberRecord = serde_json::from_value(record).map_err(|e| e.to_string())?;
        self.0.begin_record(&record).map_err(text)
    }

    /// Sets the reason in the record that [`Team::begin`] wrote. Returns false if there is no such
    /// record.
    ///
    /// # Errors
    /// The name is invalid, or the record cannot be read or written.
    pub fn reason(&self, name: &str, reason: &str) -> Result<bool> {
        let run = Incarnation::parse(RUN).map_err(|e| e.to_string())?;
        let edit = |record: &mut MemberRecord| record.reason = Some(reason.to_owned());
        Ok(self.0.change_record(&named(name)?, &run, edit).map_err(text)?.is_some())
    }

    /// Sets the maximum number of members in the team's settings.
    ///
    /// # Errors
    /// The settings cannot be read or written.
    pub fn limit_members(&self, max: usize) -> Result<()> {
        self.0.change_settings(|settings| settings.max_members = max).map_err(text)
    }

    /// Appends a warning to the journal.
    ///
    /// # Errors
    /// The journal cannot be written.
    pub fn note(&self, words: &str) -> Result<()> {
        self.0.record(Note::of(EventKind::Warning).with("text", words)).map(drop).map_err(text)
    }

    /// Returns the number of readable lines of the journal.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn count_events(&self) -> Result<usize> {
        Ok(self.0.events().map_err(text)?.len())
    }

    /// Creates `count` tasks with a command.
    ///
    /// # Errors
    /// The board has no free ids, or a file cannot be read or written.
    pub fn add_tasks(&self, count: usize) -> Result<()> {
        let task = |n: usize| {
            let mut task = NewTask { subject: format!("task {n}"), ..NewTask::default() };
            task.extra.run = vec!["true".to_owned()];
            task
        };
        let batch: Vec<NewTask> = (0..count).map(task).collect();
        self.0.create_tasks(&batch, "team-lead", now()).map(drop).map_err(text)
    }

    /// Claims the next task that `who` may run, and returns its id. `None` if none is available.
    ///
    /// # Errors
    /// The name is invalid, or a file of the board cannot be read or written.
    pub fn claim_next(&self, who: &str) -> Result<Option<u64>> {
        Ok(self.0.claim_next(&named(who)?, None, now()).map_err(text)?.map(|task| task.id.0))
    }

    /// Completes a task that `who` has claimed.
    ///
    /// # Errors
    /// The name is invalid, the task does not exist, is blocked, has ended or belongs to another
    /// member, or a file cannot be read or written.
    pub fn complete(&self, id: u64, who: &str) -> Result<()> {
        self.0
            .end_task(TaskId(id), &named(who)?, TaskEnding::Completed, None, now())
            .map(drop)
            .map_err(text)
    }

    /// Returns the number of tasks on the board.
    ///
    /// # Errors
    /// The board cannot be read.
    pub fn count_tasks(&self) -> Result<usize> {
        Ok(self.0.board().map_err(text)?.tasks.len())
    }

    /// Returns id, state and owner of each task.
    ///
    /// # Errors
    /// The board cannot be read.
    pub fn tasks(&self) -> Result<Vec<(u64, &'static str, Option<String>)>> {
        let board = self.0.board().map_err(text)?;
        Ok(board.tasks.into_values().map(|t| (t.id.0, t.state.as_str(), t.owner)).collect())
    }

    /// Deletes a task in any state.
    ///
    /// # Errors
    /// The task does not exist, or a file of the board cannot be read or written.
    pub fn delete_task(&self, id: u64) -> Result<()> {
        self.0.delete_task(TaskId(id), &MemberName::lead(), true).map(drop).map_err(text)
    }
}

impl Team {
    /// Subscribes to changes of the team's files from now on.
    ///
    /// # Errors
    /// The directories of the team cannot be created or watched.
    pub fn follow(&self) -> Result<Follower> {
        self.0.changes().map(Follower).map_err(text)
    }
}

/// Subscription to changes of a team's files.
#[derive(Debug)]
pub struct Follower(Changes);

impl Follower {
    /// Waits up to `limit` for a change. Returns true at once if there was one since the last call.
    #[must_use]
    pub fn wait(&self, limit: std::time::Duration) -> bool {
        self.0.wait(limit)
    }
}

/// A lead with 50 members, and the events that it is about to handle.
pub struct Rehearsal(lead::Rehearsal);

impl Rehearsal {
    /// Prepares this number of events.
    #[must_use]
    pub fn of(events: usize) -> Rehearsal {
        Rehearsal(lead::Rehearsal::of(events))
    }

    /// Handles all events and returns the number of effects.
    #[must_use]
    pub fn play(self) -> usize {
        self.0.play()
    }
}

/// A task on the board: id, state, owner, the ids it blocks, the ids it is blocked by.
pub type Row = (u64, &'static str, Option<String>, Vec<u64>, Vec<u64>);

/// Creates tasks with a command, all or none, and returns their ids. Each entry of `batch` lists
/// the tasks on the board that block the new one, by id, and the tasks of the batch that block it,
/// by index.
///
/// # Errors
/// The wire code if a blocker on the board does not exist; a text if the board has no free ids or a
/// file cannot be read or written.
///
/// # Panics
/// If an index is out of range.
pub fn create_tasks(team: &Team, batch: &[(Vec<u64>, Vec<usize>)]) -> Result<Vec<u64>> {
    let task = |(blocked_by, after): &(Vec<u64>, Vec<usize>)| {
        let blocked_by = blocked_by.iter().map(|id| TaskId(*id)).collect();
        let mut task = NewTask { blocked_by, after: after.clone(), ..NewTask::default() };
        task.extra.run = vec!["true".to_owned()];
        task
    };
    let batch: Vec<NewTask> = batch.iter().map(task).collect();
    let made = team.0.create_tasks(&batch, "team-lead", now()).map_err(word)?;
    Ok(made.iter().map(|task| task.id.0).collect())
}

/// Claims one task.
///
/// # Errors
/// The wire code if the task may not be claimed; a text if the name is invalid or a file cannot be
/// read or written.
pub fn claim(team: &Team, id: u64, who: &str) -> Result<()> {
    team.0.claim(TaskId(id), &named(who)?, now()).map(drop).map_err(word)
}

/// Ends a task as failed.
///
/// # Errors
/// The wire code if the task does not exist; a text if the name is invalid, the task is not in
/// progress or belongs to another member, or a file cannot be read or written.
pub fn fail(team: &Team, id: u64, who: &str) -> Result<()> {
    team.0
        .end_task(TaskId(id), &named(who)?, TaskEnding::Failed, None, now())
        .map(drop)
        .map_err(word)
}

/// Releases the unfinished tasks of a member and returns their ids.
///
/// # Errors
/// The name is invalid, or a file of the board cannot be read or written.
pub fn release(team: &Team, who: &str) -> Result<Vec<u64>> {
    let (released, _) = team.0.release_tasks_of(&named(who)?).map_err(word)?;
    Ok(released.iter().map(|task| task.id.0).collect())
}

/// Returns the tasks by id, and whether any of them is running or can be started.
///
/// # Errors
/// The board cannot be read.
pub fn board(team: &Team) -> Result<(Vec<Row>, bool)> {
    let board = team.0.board().map_err(word)?;
    let numbers = |ids: &[TaskId]| ids.iter().map(|id| id.0).collect();
    let row = |task: &Task| {
        (
            task.id.0,
            task.state.as_str(),
            task.owner.clone(),
            numbers(&task.blocks),
            numbers(&task.blocked_by),
        )
    };
    Ok((board.tasks.values().map(row).collect(), board.can_move()))
}

/// Sets one text field of a member's entry in the team file. Returns false if the member is not on
/// the roster.
///
/// # Errors
/// The name is invalid, or the team file cannot be read or written.
pub fn set_member(team: &Team, name: &str, key: &str, value: &str) -> Result<bool> {
    let name = named(name)?;
    team.0.change_roster(|roster| Ok(roster.set(&name, key, value))).map_err(word)
}

/// Returns the wire code of a refusal, and the text of any other error.
fn word(e: StoreError) -> String {
    match &e {
        StoreError::Refused(refusal) => refusal.code().to_owned(),
        other => other.to_string(),
    }
}

/// Parses a mailbox and each text in it as a protocol message. Returns whether the bytes were JSON.
///
/// # Panics
/// If an entry that is written and read again differs.
#[must_use]
pub fn parse_mailbox(bytes: &[u8]) -> bool {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else { return false };
    let entries = value.as_array().map_or(std::slice::from_ref(&value), Vec::as_slice);
    for envelope in entries.iter().map(Envelope::read) {
        let again = Envelope::read(&Value::Object(envelope.to_entry()));
        assert_eq!(again, envelope, "an entry that we write reads as what it was");
        let _ = Message::parse(&envelope.text);
    }
    true
}

/// Parses a team file. Returns true if it was an object whose members can all be found by name.
#[must_use]
pub fn parse_team(bytes: &[u8]) -> bool {
    let Ok(Value::Object(file)) = serde_json::from_slice(bytes) else { return false };
    let team = team::Team::read(&file);
    let _ = team.next_color();
    team.members.iter().all(|member| team.member(&member.name).is_some())
}

/// Parses a task file. Returns whether the bytes were a JSON object.
///
/// # Panics
/// If the task's state or owner differs after it is written and read again.
#[must_use]
pub fn parse_task(bytes: &[u8]) -> bool {
    let Ok(Value::Object(mut file)) = serde_json::from_slice(bytes) else { return false };
    let task = Task::read(TaskId(1), &file);
    task.write(&mut file);
    let again = Task::read(TaskId(1), &file);
    assert_eq!(
        (again.state, again.owner),
        (task.state, task.owner),
        "a task that we write reads as what it was"
    );
    true
}

/// Parses a protocol message. Returns true if it was one of a known kind.
///
/// # Panics
/// If a message that is written and read again differs.
#[must_use]
pub fn parse_protocol(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let message = Message::parse(text);
    assert_eq!(
        Message::parse(&message.to_text()),
        message,
        "a message that we write reads as what it was"
    );
    match message {
        Message::Text(_) | Message::Unknown { .. } | Message::Malformed { .. } => false,
        known => !known.kind().is_empty(),
    }
}

/// Parses a manifest. Returns true if it was valid.
#[must_use]
pub fn parse_manifest(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| match Manifest::parse(text) {
        Ok(_) => true,
        Err(fault) => fault.to_string().is_empty(),
    })
}
