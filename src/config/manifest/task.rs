//! `[[task]]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::task_file::slug;
use model::board::task::{ShowOutput, TaskFields};
use model::board::task_definition::TaskDefinition;
use model::value::{Argv, As, AtLeast, Choice, Name, NonBlank, PlainText, Variables};

/// Maximum length of a key that is made from a subject, in characters.
const KEY_LENGTH: usize = 40;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "task")]
pub(super) struct TaskTable {
    /// Name of the task in this file [default: the words of its subject, joined by dashes].
    key: Option<Name>,
    /// Short title.
    subject: NonBlank,
    /// Full description.
    description: Option<String>,
    /// Text to show while the task runs.
    active_form: Option<NonBlank>,
    /// The command that a worker runs.
    run: Option<Argv>,
    /// Tasks that must be completed first, by their keys, or their subjects if they have none; and
    /// members that must be ready, as `member:NAME`.
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
    /// Seconds after which the task fails: its command is ended, or the agent that does it is asked
    /// to stop.
    timeout: Option<AtLeast<1, u64>>,
    /// The part of the output of the command that announcements and the final report repeat: its
    /// last lines, `all` of its last 50 lines, or `none` unless it fails.
    show_output: Option<Choice<ShowOutput>>,
}

/// Returns the key of a task that names none.
fn key_of(subject: &str) -> String {
    let key = slug(subject, KEY_LENGTH);
    if key.is_empty() { "task".to_owned() } else { key }
}

/// Returns the key that is meant: a subject names a task without a key.
fn key_named(named: String) -> String {
    if named.contains(char::is_whitespace) { key_of(&named) } else { named }
}

impl TaskTable {
    pub(super) fn into_definition(self) -> TaskDefinition {
        TaskDefinition {
            key: self.key.map_or_else(|| key_of(&self.subject.0), |key| key.0),
            subject: self.subject.0,
            description: self.description.unwrap_or_default(),
            owner: self.owner.map(|owner| owner.0),
            after: self.after.unwrap_or_default().into_iter().map(key_named).collect(),
            fields: TaskFields {
                active_form: self.active_form.map(|form| form.0),
                priority: self.priority,
                role: self.role.map(|role| role.0),
                files: Some(self.files.into_iter().map(|file| file.0).collect()),
                cwd: self.cwd.map(|cwd| cwd.0),
                env: Some(self.env.into_iter().collect()).filter(|env: &Vec<_>| !env.is_empty()),
                command: self.run.map(|run| run.0).unwrap_or_default(),
                show_output: Some(self.show_output.map(|show| show.0).unwrap_or_default()),
                timeout: self.timeout.map(|limit| limit.0),
                ..TaskFields::default()
            },
            ..TaskDefinition::default()
        }
    }
}
