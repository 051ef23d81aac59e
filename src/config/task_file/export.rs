//! The JSON list that `task export` writes. States, owners and times are left behind: the tasks are
//! for another team, or were deleted from this one.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fault_list::FaultList;
use super::words::slug;
use crate::{ConfigError, LineCounter};
use model::board::task::{Task, TaskFields};
use model::board::task_definition::{TaskDefinition, TaskFile, check_key};
use model::id::TaskId;

/// Maximum length of the file's name in a key, in characters.
const LONGEST_STEM: usize = 80;

#[derive(Deserialize)]
struct IdField {
    id: String,
}

pub(super) fn parse(stem: &str, text: &str) -> Result<TaskFile, Vec<ConfigError>> {
    let mut faults = FaultList::default();
    let list: Vec<&RawValue> = match serde_json::from_str(text) {
        Ok(list) => list,
        Err(error) => {
            let message = format!("the file is not a JSON list of tasks: {error}");
            faults.add(error.line().max(1), error.column().max(1), message);
            return faults.into_result(TaskFile::default());
        }
    };
    let mut lines = LineCounter::new(text);
    let mut found: Vec<(usize, Task)> = Vec::with_capacity(list.len());
    for value in list {
        let json = value.get();
        let line = lines.line_at(json.as_ptr() as usize - text.as_ptr() as usize);
        found.extend(task(line, json, &mut faults).map(|task| (line, task)));
    }
    let stem = slug(stem, LONGEST_STEM);
    let mut keys: BTreeMap<TaskId, String> = BTreeMap::new();
    for (line, task) in &found {
        let key = task.extra.key.clone().unwrap_or_else(|| format!("{stem}/{}", task.id));
        if keys.insert(task.id, key).is_some() {
            faults.add(*line, 1, format!("two tasks have the id {}", task.id));
        }
    }
    let tasks = found.into_iter().map(|(line, task)| definition(line, task, &keys, &mut faults));
    let tasks = tasks.collect();
    faults.into_result(TaskFile { tasks, ..TaskFile::default() })
}

fn task(line: usize, json: &str, faults: &mut FaultList) -> Option<Task> {
    let IdField { id } = faults.parse_object(line, json)?;
    let id = match TaskId::parse(&id) {
        Ok(id) => id,
        Err(problem) => {
            faults.add(line, 1, problem.to_string());
            return None;
        }
    };
    let task = Task::quick(id, json.as_bytes());
    match &task {
        None => faults.add(line, 1, format!("task {id} is not as `phalanx task export` writes it")),
        Some(task) if task.subject.trim().is_empty() => {
            faults.add(line, 1, format!("task {id} has no subject"));
        }
        Some(_) => {}
    }
    task
}

fn definition(
    line: usize,
    task: Task,
    keys: &BTreeMap<TaskId, String>,
    faults: &mut FaultList,
) -> TaskDefinition {
    let key = keys.get(&task.id).cloned().unwrap_or_default();
    if let Err(problem) = check_key(&key) {
        faults.add(line, 1, format!("the key {key:?} {problem}"));
    }
    let mut after = Vec::with_capacity(task.blocked_by.len());
    for blocker in &task.blocked_by {
        match keys.get(blocker) {
            Some(key) => after.push(key.clone()),
            None => {
                let id = task.id;
                faults.add(
                    line,
                    1,
                    format!("task {id} is blocked by task {blocker}, which is not in the file"),
                );
            }
        }
    }
    // Tasks that another program keeps for itself mean nothing in another team.
    let is_done = task.state.frees_dependants() || task.is_internal();
    TaskDefinition {
        key,
        line,
        fields: TaskFields::copied(&task),
        subject: task.subject,
        description: task.description,
        owner: None,
        after,
        is_done,
    }
}
