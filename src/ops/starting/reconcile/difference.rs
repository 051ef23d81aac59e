//! The difference between a manifest and a team.

use serde::Serialize;

use model::id::{MemberName, TaskId};

/// What `up` does with a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberStep {
    Start,
    /// The lead starts it when it is needed.
    Offer,
    /// Its run failed or vanished.
    Resume,
    /// It is asked to end, and started again from its changed entry.
    Restart,
    /// The lead keeps its changed entry for later starts.
    Change,
    /// It is asked to end.
    End,
}

/// A member that `up` starts, changes or ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemberChange {
    pub name: String,
    pub step: MemberStep,
    /// The keys of its entry that differ, or the reason of its end.
    pub keys: Vec<String>,
    /// The task in progress that goes back to the board.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// What `up` does with a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskChangeStep {
    Create,
    Edit,
    Cancel,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskChange {
    pub key: String,
    /// `None` for a task to create.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<TaskId>,
    pub step: TaskChangeStep,
    pub subject: String,
    /// The fields that differ.
    pub fields: Vec<String>,
    /// A member works on it: an edit is for its next run.
    pub is_running: bool,
}

/// A setting of the team with its value now and then; `None` is the default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SettingChange {
    pub key: String,
    pub now: Option<String>,
    pub then: Option<String>,
}

/// The difference between a manifest and a team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub members: Vec<MemberChange>,
    pub tasks: Vec<TaskChange>,
    pub settings: Vec<SettingChange>,
    /// Members that have ended by themselves, and are left alone.
    pub ended: Vec<MemberName>,
    /// The manifest is the one that was applied last: what is left of it is continued.
    pub is_continued: bool,
}

impl Difference {
    pub fn is_empty(&self) -> bool {
        self.members.is_empty() && self.tasks.is_empty() && self.settings.is_empty()
    }

    /// Returns the members that are asked to end.
    pub fn leaving(&self) -> Vec<MemberName> {
        let ends = self
            .members
            .iter()
            .filter(|of| matches!(of.step, MemberStep::End | MemberStep::Restart));
        ends.filter_map(|of| MemberName::existing(&of.name).ok()).collect()
    }
}

/// Returns the change of a member without a task.
pub(super) fn change(name: &str, step: MemberStep, keys: Vec<String>) -> MemberChange {
    MemberChange { name: name.to_owned(), step, keys, task: None }
}

pub(super) fn new_task(key: String, subject: String) -> TaskChange {
    let (id, step) = (None, TaskChangeStep::Create);
    TaskChange { key, id, step, subject, fields: Vec::new(), is_running: false }
}
