//! `[[task]]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use model::board::task::TaskFields;
use model::board::task_definition::TaskDefinition;
use model::value::{Argv, As, Name, NonBlank, PlainText, Variables};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "task")]
pub(super) struct TaskTable {
    /// Name of the task in this file.
    key: Name,
    /// Short title.
    subject: NonBlank,
    /// Full description.
    description: Option<String>,
    /// Text to show while the task runs.
    active_form: Option<NonBlank>,
    /// The command that a worker runs.
    run: Option<Argv>,
    /// Keys of tasks that must be completed first, and members that must be ready, as
    /// `member:NAME`.
    after: Option<Vec<String>>,
    /// Patterns of the files that the task touches. Two tasks that touch the same files do not run
    /// at the same time.
    #[serde(default)]
    files: Vec<PlainText>,
    /// The member that does the task.
    owner: Option<NonBlank>,
    /// The role that a member must have to claim the task.
    role: Option<NonBlank>,
    /// Tasks with a higher number are claimed first; tasks of equal priority in the order of the
    /// file.
    #[schemars(extend("default" = 0))]
    priority: Option<i64>,
    /// Working directory of the command.
    cwd: Option<NonBlank>,
    /// Environment variables of the command.
    #[serde(default, with = "As::<Variables>")]
    env: BTreeMap<String, String>,
    /// Include the last 50 lines of the task's output in the final report of `up`, for a task that
    /// summarises others.
    #[serde(default)]
    show_output: bool,
}

impl TaskTable {
    pub(super) fn into_definition(self) -> TaskDefinition {
        TaskDefinition {
            key: self.key.0,
            subject: self.subject.0,
            description: self.description.unwrap_or_default(),
            owner: self.owner.map(|owner| owner.0),
            after: self.after.unwrap_or_default(),
            fields: TaskFields {
                active_form: self.active_form.map(|form| form.0),
                priority: self.priority,
                role: self.role.map(|role| role.0),
                files: Some(self.files.into_iter().map(|file| file.0).collect()),
                cwd: self.cwd.map(|cwd| cwd.0),
                env: Some(self.env.into_iter().collect()).filter(|env: &Vec<_>| !env.is_empty()),
                command: self.run.map(|run| run.0).unwrap_or_default(),
                show_output: Some(self.show_output),
                ..TaskFields::default()
            },
            ..TaskDefinition::default()
        }
    }
}
