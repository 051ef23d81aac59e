//! A team on disk, as tests and benches use it. Every error is a text: the wire code of a refusal,
//! or the message of any other error.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use model::id::{Incarnation, MemberName, TaskId, TeamName};
use model::mail::envelope::Envelope;
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use model::team::settings::Settings;
use strum::VariantArray;

use model::board::task::{Task, TaskAction};
use model::team;
use store::{
    ClaimKind, Marking, NewTask, Store, StoreError, TaskStep, TeamChanges, TeamStore, now,
};

fn describe(e: StoreError) -> String {
    match e {
        StoreError::Refused(refusal) => refusal.code().to_owned(),
        other => other.to_string(),
    }
}

fn member(name: &str) -> Result<MemberName, String> {
    MemberName::existing(name).map_err(|e| e.to_string())
}

fn entries_of(envelopes: Vec<Envelope>) -> Vec<Entry> {
    envelopes.into_iter().map(|e| (e.msg_id, e.from, e.text, e.read)).collect()
}

/// A mailbox entry: id, sender, text, and whether it is read.
pub type Entry = (String, String, String, bool);

/// A task on the board: id, state, owner, the ids it blocks, the ids it is blocked by.
pub type TaskRow = (u64, &'static str, Option<String>, Vec<u64>, Vec<u64>);

/// Incarnation of all members whose records [`TestTeam::begin`] writes.
const RUN: &str = "00000000-0000-4000-8000-000000000000";

/// A team on disk.
#[derive(Debug)]
pub struct TestTeam(TeamStore);

impl TestTeam {
    /// Creates a team under a config root, for at most 64 members.
    pub fn create(root: &Path, name: &str) -> Result<TestTeam, String> {
        let name = TeamName::new(name).map_err(|e| e.to_string())?;
        let file = team::Team::found(&name, "driven", "team-lead", "session", "/", now());
        Store::at(root).create(&name, &file, &Settings::by_hand(64)).map(TestTeam).map_err(describe)
    }

    /// Opens an existing team.
    pub fn open(root: &Path, name: &str) -> Result<TestTeam, String> {
        let name = TeamName::existing(name).map_err(|e| e.to_string())?;
        Store::at(root).team(&name).map(TestTeam).map_err(describe)
    }

    /// Adds a teammate with an empty mailbox.
    pub fn join(&self, name: &str) -> Result<(), String> {
        let entry = json!({"name": name, "agentId": format!("{name}@{}", self.0.name())});
        let member = entry.as_object().and_then(team::Member::read).ok_or("not a name")?;
        self.0.change_roster(|roster| roster.join(&member)).map_err(describe)?;
        self.0.mailbox(&member.name).create(None).map(drop).map_err(describe)
    }

    /// Removes a teammate from the roster. Returns false if it was not on the roster.
    pub fn leave(&self, name: &str) -> Result<bool, String> {
        let name = member(name)?;
        self.0.change_roster(|roster| Ok(roster.leave(&name))).map_err(describe)
    }

    /// Returns the names of the teammates on the roster.
    pub fn teammates(&self) -> Result<Vec<String>, String> {
        Ok(self.0.team().map_err(describe)?.teammates().map(|m| m.name.to_string()).collect())
    }

    /// Sets one text field of a member's entry in the team file. Returns false if the member is not
    /// on the roster.
    pub fn set_member(&self, name: &str, key: &str, value: &str) -> Result<bool, String> {
        let name = member(name)?;
        self.0.change_roster(|roster| Ok(roster.set(&name, key, value))).map_err(describe)
    }

    /// Appends a message to a mailbox.
    pub fn append(&self, to: &str, from: &str, body: &str, id: &str) -> Result<(), String> {
        let envelope = Envelope::new(from, body, id.to_owned(), now());
        self.0.mailbox(&member(to)?).append(&envelope).map_err(describe)
    }

    /// Returns the entries of a mailbox, oldest first.
    pub fn entries(&self, of: &str) -> Result<Vec<Entry>, String> {
        self.0.mailbox(&member(of)?).entries().map(entries_of).map_err(describe)
    }

    /// Returns the entries of the archive and the mailbox, oldest first.
    pub fn all(&self, of: &str) -> Result<Vec<Entry>, String> {
        self.0.mailbox(&member(of)?).all().map(entries_of).map_err(describe)
    }

    /// Returns the ids of the messages that are neither read nor acknowledged, oldest first.
    pub fn unread(&self, of: &str) -> Result<Vec<String>, String> {
        let unread = self.0.mailbox(&member(of)?).unread().map_err(describe)?;
        Ok(unread.into_iter().map(|e| e.msg_id).collect())
    }

    /// Marks messages as read in the mailbox file, as for a member that does not run.
    pub fn mark(&self, of: &str, ids: &[String]) -> Result<(), String> {
        self.0.mailbox(&member(of)?).acknowledge(ids, Marking::Always).map(drop).map_err(describe)
    }

    /// Removes messages from a mailbox and its archive.
    pub fn remove(&self, of: &str, ids: &[String]) -> Result<(), String> {
        self.0.mailbox(&member(of)?).remove(ids).map(drop).map_err(describe)
    }

    /// Acknowledges messages as delivered, as their reader does.
    pub fn acknowledge(&self, of: &str, ids: &[String]) -> Result<(), String> {
        self.0
            .mailbox(&member(of)?)
            .acknowledge(ids, Marking::IfReadByPhalanx)
            .map(drop)
            .map_err(describe)
    }

    /// Writes the record of a new run of a worker. Its mailbox then counts as read by phalanx.
    pub fn begin(&self, name: &str) -> Result<(), String> {
        let record = json!({
            "format": 1, "name": name, "incarnation": RUN, "token": "t",
            "state": "starting", "state_since": 1, "backend": "pty", "asked_at": 1,
            "wish": {"profile": "worker", "argv": ["x"], "cwd": "/", "color": "blue"},
        });
        let record: MemberRecord = serde_json::from_value(record).map_err(|e| e.to_string())?;
        self.0.begin_record(&record).map_err(describe)
    }

    /// Sets the reason in the record that [`TestTeam::begin`] wrote. Returns false if there is no
    /// such record.
    pub fn reason(&self, name: &str, reason: &str) -> Result<bool, String> {
        let run = Incarnation::parse(RUN).map_err(|e| e.to_string())?;
        let edit = |record: &mut MemberRecord| record.reason = Some(reason.to_owned());
        Ok(self.0.change_record(&member(name)?, &run, edit).map_err(describe)?.is_some())
    }

    /// Sets the maximum number of members in the team's settings.
    pub fn limit_members(&self, max: usize) -> Result<(), String> {
        self.0.change_settings(|settings| settings.max_members = max).map_err(describe)
    }

    /// Appends a warning to the journal.
    pub fn note(&self, text: &str) -> Result<(), String> {
        self.0.record(Note::of(EventKind::Warning).with("text", text)).map(drop).map_err(describe)
    }

    /// Creates `count` tasks with a command.
    pub fn add_tasks(&self, count: usize) -> Result<(), String> {
        self.create_tasks(&vec![Default::default(); count]).map(drop)
    }

    /// Creates tasks with a command, all or none, and returns their ids. Each entry of `batch`
    /// lists the tasks on the board that block the new one, by id, and the tasks of the batch that
    /// block it, by index.
    pub fn create_tasks(&self, batch: &[(Vec<u64>, Vec<usize>)]) -> Result<Vec<u64>, String> {
        let mut tasks = Vec::new();
        for (n, (blocked_by, after)) in batch.iter().enumerate() {
            let mut task = NewTask {
                subject: format!("task {n}"),
                blocked_by: blocked_by.iter().map(|id| TaskId(*id)).collect(),
                after: after.clone(),
                ..NewTask::default()
            };
            task.fields.command = vec!["true".to_owned()];
            tasks.push(task);
        }
        let created = self.0.create_tasks(&tasks, "team-lead", now()).map_err(describe)?;
        Ok(created.iter().map(|task| task.id.0).collect())
    }

    /// Claims one task.
    pub fn claim(&self, id: u64, who: &str) -> Result<(), String> {
        self.0.claim(TaskId(id), &member(who)?, false, now()).map(drop).map_err(describe)
    }

    /// Claims the next task that `who` may run, and returns its id. `None` if none is available.
    pub fn claim_next(&self, who: &str) -> Result<Option<u64>, String> {
        let claimed =
            self.0.claim_next(&member(who)?, None, ClaimKind::Command, now()).map_err(describe)?;
        Ok(claimed.map(|task| task.id.0))
    }

    /// Completes a task that `who` has claimed.
    pub fn complete(&self, id: u64, who: &str) -> Result<(), String> {
        self.act(id, who, "complete")
    }

    /// Performs an action of the board, such as `review`.
    pub fn act(&self, id: u64, who: &str, action: &str) -> Result<(), String> {
        let known = TaskAction::VARIANTS.iter().find(|known| known.as_str() == action);
        let action = *known.ok_or_else(|| format!("no such action: {action}"))?;
        let done = self.0.step_task(TaskId(id), &member(who)?, &TaskStep::of(action), now());
        done.map(drop).map_err(describe)
    }

    /// Releases the unfinished tasks of a member and returns their ids.
    pub fn release(&self, who: &str) -> Result<Vec<u64>, String> {
        let who = member(who)?;
        let (released, _) = self.0.release_tasks_of(&[&who]).map_err(describe)?;
        let tasks: Result<Vec<_>, _> = released.into_iter().collect();
        Ok(tasks.map_err(describe)?.iter().flatten().map(|task| task.id.0).collect())
    }

    /// Deletes a task in any state.
    pub fn delete_task(&self, id: u64) -> Result<(), String> {
        self.0.delete_task(TaskId(id), &MemberName::lead(), true).map(drop).map_err(describe)
    }

    /// Returns the number of tasks on the board.
    pub fn count_tasks(&self) -> Result<usize, String> {
        Ok(self.0.board().map_err(describe)?.tasks.len())
    }

    /// Returns the whole board and the open tasks as text, to compare two reads.
    pub fn describe_board(&self) -> Result<String, String> {
        let (all, open) =
            (self.0.board().map_err(describe)?, self.0.open_board().map_err(describe)?);
        Ok(format!("{all:?}\n{open:?}"))
    }

    /// Returns the tasks by id, and whether any of them is running or can be started.
    pub fn board(&self) -> Result<(Vec<TaskRow>, bool), String> {
        let board = self.0.board().map_err(describe)?;
        let ids = |ids: &[TaskId]| ids.iter().map(|id| id.0).collect();
        let row = |task: &Task| {
            let state = task.state.as_str();
            (task.id.0, state, task.owner.clone(), ids(&task.blocks), ids(&task.blocked_by))
        };
        Ok((board.tasks.values().map(row).collect(), board.can_move()))
    }

    /// Subscribes to changes of the team's files from now on.
    pub fn follow(&self) -> Result<Follower, String> {
        self.0.changes().map(Follower).map_err(describe)
    }
}

/// Subscription to changes of a team's files.
#[derive(Debug)]
pub struct Follower(TeamChanges);

impl Follower {
    /// Waits up to `limit` for a change. Returns true at once if there was one since the last call.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> bool {
        !self.0.wait(limit).is_empty()
    }
}
