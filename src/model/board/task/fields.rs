//! The fields of a task that its creator gives, in the one shape in which they travel from a
//! manifest, an imported file, the command line or a tool to the board.

use std::collections::BTreeMap;

use clap::Args;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};

use super::{ShowOutput, Task};
use crate::members::environ::parse_variable;
use crate::wire::Object;

/// The planned fields of a new task, or the changes of an edit. A field that was not given is left
/// as it is. An empty text removes one; lists and `env` replace what was there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args, Deserialize, JsonSchema)]
pub struct TaskFields {
    /// Text to show while the task runs.
    #[arg(long, value_name = "TEXT")]
    pub active_form: Option<String>,
    /// Priority; higher numbers are claimed first [default: 0].
    #[arg(help_heading = "Assignment", long, value_name = "N", allow_negative_numbers = true)]
    pub priority: Option<i64>,
    /// Role that a member must have to claim it.
    #[arg(help_heading = "Assignment", long, value_name = "ROLE")]
    pub role: Option<String>,
    /// Patterns of the files that it changes.
    #[arg(long = "file", value_name = "PATTERN", num_args = 1..)]
    pub files: Option<Vec<String>>,
    /// Kind of task.
    #[arg(long = "type", value_name = "TYPE")]
    pub kind: Option<String>,
    /// Label; repeatable.
    #[arg(long = "label", value_name = "LABEL", num_args = 1..)]
    pub labels: Option<Vec<String>>,
    /// Metadata, as a JSON object; in an update, null removes a key.
    #[arg(long, value_name = "JSON", value_parser = metadata)]
    #[serde(default, deserialize_with = "metadata_from_json")]
    #[schemars(schema_with = "object_schema")]
    pub metadata: Option<Object>,
    /// Working directory of its command [default: that of the worker].
    #[arg(help_heading = "Program", long, value_name = "DIR")]
    pub cwd: Option<String>,
    /// Environment variable of its command; repeatable.
    #[arg(help_heading = "Program", long, value_parser = parse_variable, value_name = "NAME=VALUE")]
    #[serde(default, deserialize_with = "variables_from_json")]
    #[schemars(schema_with = "object_schema")]
    pub env: Option<Vec<(String, String)>>,
    /// Seconds from its claim until it fails.
    #[arg(help_heading = "Program", long, value_name = "S", value_parser = clap::value_parser!(u64).range(1..))]
    pub timeout: Option<u64>,
    /// Command for a worker to run.
    #[arg(last = true, value_name = "CMD")]
    #[serde(default)]
    pub command: Vec<String>,
    /// The part of its output that reports repeat. Only manifests and exported tasks say so.
    #[arg(skip)]
    #[serde(skip)]
    pub show_output: Option<ShowOutput>,
}

impl TaskFields {
    /// Returns the fields of a task of another board, as far as they differ from those of a new
    /// one.
    pub fn copied(task: &Task) -> TaskFields {
        let extra = task.extra.clone();
        let list = |items: Vec<String>| Some(items).filter(|items| !items.is_empty());
        TaskFields {
            active_form: task.active_form.clone(),
            priority: extra.priority,
            role: extra.role,
            files: Some(extra.files),
            kind: extra.kind,
            labels: list(extra.labels),
            metadata: Some(task.metadata.clone()).filter(|metadata| !metadata.is_empty()),
            cwd: extra.cwd,
            env: Some(extra.env.into_iter().collect()).filter(|env: &Vec<_>| !env.is_empty()),
            timeout: extra.timeout_s,
            command: extra.run,
            show_output: Some(extra.output),
        }
    }

    /// Returns the fields that would change the task.
    pub fn differing(self, task: &Task) -> TaskFields {
        let extra = &task.extra;
        let env = |given: &Vec<(String, String)>| *given != pairs(&extra.env);
        let mut metadata = self.metadata.unwrap_or_default();
        metadata.retain(|key, value| task.metadata.get(key) != Some(value));
        TaskFields {
            active_form: self.active_form.filter(|text| task.active_form.as_ref() != Some(text)),
            priority: self.priority.filter(|priority| extra.priority != Some(*priority)),
            role: self.role.filter(|role| extra.role.as_ref() != Some(role)),
            files: self.files.filter(|files| extra.files != *files),
            kind: self.kind.filter(|kind| extra.kind.as_ref() != Some(kind)),
            labels: self.labels.filter(|labels| extra.labels != *labels),
            metadata: Some(metadata).filter(|metadata| !metadata.is_empty()),
            cwd: self.cwd.filter(|cwd| extra.cwd.as_ref() != Some(cwd)),
            env: self.env.filter(env),
            timeout: self.timeout.filter(|limit| extra.timeout_s != Some(*limit)),
            command: if extra.run == self.command { Vec::new() } else { self.command },
            show_output: self.show_output.filter(|show| extra.output != *show),
        }
    }

    /// Returns the wire names of the given fields.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("activeForm", self.active_form.is_some()),
            ("priority", self.priority.is_some()),
            ("role", self.role.is_some()),
            ("cwd", self.cwd.is_some()),
            ("type", self.kind.is_some()),
            ("labels", self.labels.is_some()),
            ("files", self.files.is_some()),
            ("run", !self.command.is_empty()),
            ("env", self.env.is_some()),
            ("timeout", self.timeout.is_some()),
            ("show_output", self.show_output.is_some()),
            ("metadata", self.metadata.as_ref().is_some_and(|metadata| !metadata.is_empty())),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name)
    }

    /// Sets the given fields of the task.
    pub fn apply(&self, task: &mut Task) {
        let extra = &mut task.extra;
        set_text(&mut task.active_form, self.active_form.as_ref());
        set_text(&mut extra.role, self.role.as_ref());
        set_text(&mut extra.kind, self.kind.as_ref());
        set_text(&mut extra.cwd, self.cwd.as_ref());
        extra.priority = self.priority.or(extra.priority);
        extra.timeout_s = self.timeout.or(extra.timeout_s);
        extra.output = self.show_output.unwrap_or(extra.output);
        if let Some(files) = &self.files {
            extra.files = files.iter().filter(|file| !file.trim().is_empty()).cloned().collect();
        }
        self.labels.iter().for_each(|labels| extra.labels.clone_from(labels));
        self.env.iter().for_each(|env| extra.env = env.iter().cloned().collect());
        if !self.command.is_empty() {
            extra.run.clone_from(&self.command);
        }
        for (key, value) in self.metadata.iter().flatten().filter(|(key, _)| *key != "phalanx") {
            if value.is_null() {
                task.metadata.shift_remove(key);
            } else {
                task.metadata.insert(key.clone(), value.clone());
            }
        }
    }
}

fn set_text(field: &mut Option<String>, given: Option<&String>) {
    if let Some(text) = given {
        *field = Some(text.clone()).filter(|text| !text.trim().is_empty());
    }
}

fn pairs(env: &BTreeMap<String, String>) -> Vec<(String, String)> {
    env.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn variables_from_json<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<(String, String)>>, D::Error> {
    let given = Option::<BTreeMap<String, String>>::deserialize(deserializer)?;
    Ok(given.map(|variables| variables.into_iter().collect()))
}

fn metadata(given: &str) -> Result<Object, String> {
    check_metadata(serde_json::from_str(given).map_err(|e| format!("not a JSON object: {e}"))?)
}

fn metadata_from_json<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Object>, D::Error> {
    let given = Option::<Object>::deserialize(deserializer)?;
    given.map(check_metadata).transpose().map_err(de::Error::custom)
}

fn check_metadata(object: Object) -> Result<Object, String> {
    match object.contains_key("phalanx") {
        true => Err("the key `phalanx` is reserved".to_owned()),
        false => Ok(object),
    }
}

fn object_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object" })
}
