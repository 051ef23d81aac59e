//! A narrow door into the store and the lead's step, for benches and for tests that need several processes. Not an
//! interface: nobody else may depend on it.

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
use crate::store::{Ending, NewTask, Store, StoreError, TeamStore};
use crate::sys::clock;
use crate::sys::watch::Changes;

/// Errors as text: whoever drives only reports them.
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

/// A mailbox entry: id, sender, text, read.
pub type Entry = (String, String, String, bool);

/// The run of everybody who is driven.
const RUN: &str = "00000000-0000-4000-8000-000000000000";

/// A team on disk.
#[derive(Debug)]
pub struct Team(TeamStore);

impl Team {
    /// Makes a team under a config root.
    ///
    /// # Errors
    /// What the store says.
    pub fn create(root: &Path, name: &str) -> Result<Team> {
        let name = TeamName::new(name).map_err(|e| e.to_string())?;
        let file = team::Team::found(&name, "driven", "team-lead", "session", "/", now());
        Store::at(root).create(&name, &file, &Settings::by_hand(64)).map(Team).map_err(text)
    }

    /// Opens a team that exists.
    ///
    /// # Errors
    /// What the store says.
    pub fn open(root: &Path, name: &str) -> Result<Team> {
        let name = TeamName::existing(name).map_err(|e| e.to_string())?;
        Store::at(root).team(&name).map(Team).map_err(text)
    }

    /// Adds a teammate with an empty mailbox.
    ///
    /// # Errors
    /// What the store says.
    pub fn join(&self, name: &str) -> Result<()> {
        let entry =
            serde_json::json!({"name": name, "agentId": format!("{name}@{}", self.0.name())});
        let member = entry.as_object().and_then(team::Member::read).ok_or("not a name")?;
        self.0.change_roster(|roster| roster.join(&member)).map_err(text)?;
        self.0.mailbox(&member.name).found().map(drop).map_err(text)
    }

    /// Takes a teammate off the roster.
    ///
    /// # Errors
    /// What the store says.
    pub fn leave(&self, name: &str) -> Result<bool> {
        let name = named(name)?;
        self.0.change_roster(|roster| Ok(roster.leave(&name))).map_err(text)
    }

    /// The teammates on the roster.
    ///
    /// # Errors
    /// What the store says.
    pub fn teammates(&self) -> Result<Vec<String>> {
        Ok(self.0.team().map_err(text)?.teammates().map(|m| m.name.to_string()).collect())
    }

    /// Puts a message into a mailbox.
    ///
    /// # Errors
    /// What the store says.
    pub fn append(&self, to: &str, from: &str, body: &str, id: &str) -> Result<()> {
        let envelope = Envelope::new(from, body, id.to_owned(), now());
        self.0.mailbox(&named(to)?).append(&envelope).map_err(text)
    }

    /// What is in a mailbox.
    ///
    /// # Errors
    /// What the store says.
    pub fn entries(&self, of: &str) -> Result<Vec<Entry>> {
        let entries = self.0.mailbox(&named(of)?).entries().map_err(text)?;
        Ok(entries.into_iter().map(|e| (e.msg_id, e.from, e.text, e.read)).collect())
    }

    /// Marks messages as read.
    ///
    /// # Errors
    /// What the store says.
    pub fn mark(&self, of: &str, ids: &[String]) -> Result<()> {
        self.0.mailbox(&named(of)?).mark_read(ids).map(drop).map_err(text)
    }

    /// Removes messages.
    ///
    /// # Errors
    /// What the store says.
    pub fn remove(&self, of: &str, ids: &[String]) -> Result<()> {
        self.0.mailbox(&named(of)?).remove(ids).map(drop).map_err(text)
    }

    /// Says that messages were handed over, as a reader does.
    ///
    /// # Errors
    /// What the store says.
    pub fn acknowledge(&self, of: &str, ids: &[String]) -> Result<()> {
        self.0.mailbox(&named(of)?).acknowledge(ids).map(drop).map_err(text)
    }

    /// The ids of what was not handed over yet.
    ///
    /// # Errors
    /// What the store says.
    pub fn unread(&self, of: &str) -> Result<Vec<String>> {
        let unread = self.0.mailbox(&named(of)?).unread().map_err(text)?;
        Ok(unread.into_iter().map(|e| e.msg_id).collect())
    }

    /// What is in a mailbox and in its archive.
    ///
    /// # Errors
    /// What the store says.
    pub fn all(&self, of: &str) -> Result<Vec<Entry>> {
        let all = self.0.mailbox(&named(of)?).all().map_err(text)?;
        Ok(all.into_iter().map(|e| (e.msg_id, e.from, e.text, e.read)).collect())
    }

    /// Writes the record of a run of a wrapped member, whose mailbox phalanx reads.
    ///
    /// # Errors
    /// What the store says.
    pub fn begin(&self, name: &str) -> Result<()> {
        let record = serde_json::json!({
            "format": 1, "name": name, "incarnation": RUN, "token": "t", "state": "starting", "state_since": 1,
            "backend": "pty", "asked_at": 1,
            "wish": {"profile": "worker", "argv": ["x"], "cwd": "/", "color": "blue"},
        });
        let record: MemberRecord = serde_json::from_value(record).map_err(|e| e.to_string())?;
        self.0.begin_record(&record).map_err(text)
    }

    /// Changes the record that [`Team::begin`] wrote. False: it is not there.
    ///
    /// # Errors
    /// What the store says.
    pub fn reason(&self, name: &str, reason: &str) -> Result<bool> {
        let run = Incarnation::parse(RUN).map_err(|e| e.to_string())?;
        let edit = |record: &mut MemberRecord| record.reason = Some(reason.to_owned());
        Ok(self.0.change_record(&named(name)?, &run, edit).map_err(text)?.is_some())
    }

    /// Changes the team's settings.
    ///
    /// # Errors
    /// What the store says.
    pub fn limit_members(&self, max: usize) -> Result<()> {
        self.0.change_settings(|settings| settings.max_members = max).map_err(text)
    }

    /// Writes a line into the journal.
    ///
    /// # Errors
    /// What the store says.
    pub fn note(&self, words: &str) -> Result<()> {
        self.0.record(Note::of(EventKind::Warning).with("text", words)).map(drop).map_err(text)
    }

    /// How many lines of the journal can be read.
    ///
    /// # Errors
    /// What the store says.
    pub fn count_events(&self) -> Result<usize> {
        Ok(self.0.events_from(0).map_err(text)?.0.len())
    }

    /// Puts `count` tasks with a command on the board.
    ///
    /// # Errors
    /// What the store says.
    pub fn add_tasks(&self, count: usize) -> Result<()> {
        let task = |n: usize| {
            let mut task = NewTask { subject: format!("task {n}"), ..NewTask::default() };
            task.extra.run = vec!["true".to_owned()];
            task
        };
        let batch: Vec<NewTask> = (0..count).map(task).collect();
        self.0.create_tasks(&batch, "team-lead", now()).map(drop).map_err(text)
    }

    /// Claims what `who` should do next.
    ///
    /// # Errors
    /// What the store says.
    pub fn claim_next(&self, who: &str) -> Result<Option<u64>> {
        Ok(self.0.claim_next(&named(who)?, None, now()).map_err(text)?.map(|task| task.id.0))
    }

    /// Completes a task that `who` has claimed.
    ///
    /// # Errors
    /// What the store says.
    pub fn complete(&self, id: u64, who: &str) -> Result<()> {
        self.0
            .end_task(TaskId(id), &named(who)?, Ending::Completed, None, now())
            .map(drop)
            .map_err(text)
    }

    /// How many tasks the board holds.
    ///
    /// # Errors
    /// What the store says.
    pub fn count_tasks(&self) -> Result<usize> {
        Ok(self.0.board().map_err(text)?.tasks.len())
    }

    /// Whose each task is: id, state, owner.
    ///
    /// # Errors
    /// What the store says.
    pub fn tasks(&self) -> Result<Vec<(u64, &'static str, Option<String>)>> {
        let board = self.0.board().map_err(text)?;
        Ok(board.tasks.into_values().map(|t| (t.id.0, t.state.as_str(), t.owner)).collect())
    }

    /// Deletes a task, whatever state it is in.
    ///
    /// # Errors
    /// What the store says.
    pub fn delete_task(&self, id: u64) -> Result<()> {
        self.0.delete_task(TaskId(id), &MemberName::lead(), true).map(drop).map_err(text)
    }
}

impl Team {
    /// Subscribes to changes of the team's files.
    ///
    /// # Errors
    /// What the system says.
    pub fn follow(&self) -> Result<Follower> {
        self.0.changes().map(Follower).map_err(text)
    }
}

/// Tells when files of a team change.
#[derive(Debug)]
pub struct Follower(Changes);

impl Follower {
    /// Whether something changed since the last call, at once or within `limit`.
    #[must_use]
    pub fn wait(&self, limit: std::time::Duration) -> bool {
        self.0.wait(limit)
    }
}

/// A lead with 50 members, and events that it is about to hear.
pub struct Rehearsal(lead::Rehearsal);

impl Rehearsal {
    /// So many events.
    #[must_use]
    pub fn of(events: usize) -> Rehearsal {
        Rehearsal(lead::Rehearsal::of(events))
    }

    /// Feeds them to its step and gives the number of effects.
    #[must_use]
    pub fn play(self) -> usize {
        self.0.play()
    }
}

/// A task on the board: id, state, owner, whom it blocks, by whom it is blocked.
pub type Row = (u64, &'static str, Option<String>, Vec<u64>, Vec<u64>);

/// Puts tasks with a command on the board, all or none; each comes after tasks on the board and after others of the
/// batch, by their place in it. Gives their ids.
///
/// # Errors
/// The wire's word for a refusal, else what the store says.
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
/// The wire's word for a refusal, else what the store says.
pub fn claim(team: &Team, id: u64, who: &str) -> Result<()> {
    team.0.claim(TaskId(id), &named(who)?, now()).map(drop).map_err(word)
}

/// Ends a task as failed.
///
/// # Errors
/// What the store says.
pub fn fail(team: &Team, id: u64, who: &str) -> Result<()> {
    team.0.end_task(TaskId(id), &named(who)?, Ending::Failed, None, now()).map(drop).map_err(word)
}

/// Gives back what a member holds; gives the ids.
///
/// # Errors
/// What the store says.
pub fn release(team: &Team, who: &str) -> Result<Vec<u64>> {
    let (released, _) = team.0.release_tasks_of(&named(who)?).map_err(word)?;
    Ok(released.iter().map(|task| task.id.0).collect())
}

/// The board as it stands, by id, and whether anything on it can move.
///
/// # Errors
/// What the store says.
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

/// Sets one text field of a member's entry in the team file; whether the member is on the roster.
///
/// # Errors
/// What the store says.
pub fn set_member(team: &Team, name: &str, key: &str, value: &str) -> Result<bool> {
    let name = named(name)?;
    team.0.change_roster(|roster| Ok(roster.set(&name, key, value))).map_err(word)
}

fn word(e: StoreError) -> String {
    match &e {
        StoreError::Refused(refusal) => refusal.code().to_owned(),
        other => other.to_string(),
    }
}

/// Reads bytes as a mailbox, each text as a protocol message, and writes them again; whether it was JSON.
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

/// Reads bytes as a team file; whether it was an object.
#[must_use]
pub fn parse_team(bytes: &[u8]) -> bool {
    let Ok(Value::Object(file)) = serde_json::from_slice(bytes) else { return false };
    let team = team::Team::read(&file);
    let _ = team.next_color();
    team.members.iter().all(|member| team.member(&member.name).is_some())
}

/// Reads bytes as a task file and writes it back; whether it was an object.
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

/// Reads bytes as a protocol message and writes it again; whether it was one.
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

/// Reads bytes as a manifest; whether it was a right one.
#[must_use]
pub fn parse_manifest(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| match Manifest::parse(text) {
        Ok(_) => true,
        Err(fault) => fault.to_string().is_empty(),
    })
}
