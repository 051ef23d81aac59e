//! The `tasks.json` of Task Master: lists of tasks by tag, with tasks below them. A task is blocked
//! by those below it, as in a check list.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::fault_list::FaultList;
use super::words::{slug, subject};
use crate::{ConfigError, LineCounter};
use model::board::task::TaskFields;
use model::board::task_definition::{FileNote, TaskDefinition, TaskFile, check_key};

/// Maximum length of the name of a list in a key, in characters.
const LONGEST_LIST: usize = 80;

#[derive(Deserialize)]
struct MasterList<'t> {
    #[serde(borrow)]
    tasks: Vec<&'t RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MasterTask {
    id: Value,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    details: String,
    #[serde(default)]
    test_strategy: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    priority: String,
    #[serde(default)]
    dependencies: Vec<Value>,
    #[serde(default)]
    subtasks: Vec<MasterTask>,
}

pub(super) fn parse(stem: &str, text: &str) -> Result<TaskFile, Vec<ConfigError>> {
    let mut faults = FaultList::default();
    let lists: Result<BTreeMap<String, &RawValue>, _> = serde_json::from_str(text);
    let lists = lists.map(|lists| match serde_json::from_str::<MasterList>(text) {
        Ok(list) => vec![(slug(stem, LONGEST_LIST), list)],
        Err(_) => lists
            .into_iter()
            .filter_map(|(tag, list)| {
                Some((slug(&tag, LONGEST_LIST), serde_json::from_str(list.get()).ok()?))
            })
            .collect(),
    });
    let lists = match lists {
        Ok(lists) if !lists.is_empty() => lists,
        Ok(_) => {
            let message = "the file has no list `tasks`: expected is what `phalanx task export` writes, \
                           or the tasks.json of Task Master";
            faults.add(1, 1, message);
            return faults.into_result(TaskFile::default());
        }
        Err(error) => {
            faults.add(error.line().max(1), error.column().max(1), error.to_string());
            return faults.into_result(TaskFile::default());
        }
    };
    let mut lines = LineCounter::new(text);
    let mut file = TaskFile::default();
    let mut tasks: Vec<(usize, String, MasterTask)> = Vec::new();
    for (list, found) in lists {
        for json in found.tasks {
            let json = json.get();
            let line = lines.line_at(json.as_ptr() as usize - text.as_ptr() as usize);
            let task = faults.parse_object(line, json);
            tasks.extend(task.map(|task| (line, list.clone(), task)));
        }
    }
    for (line, list, task) in tasks {
        add(&mut file, line, &list, None, task, &mut faults);
    }
    file.tasks.sort_by_key(|task| task.line);
    faults.into_result(file)
}

/// Adds a task and those below it, and returns its key. `above` is the id of the task that it is
/// below, and the keys of that one's blockers, which also block it.
fn add(
    file: &mut TaskFile,
    line: usize,
    list: &str,
    above: Option<(&str, &[String])>,
    task: MasterTask,
    faults: &mut FaultList,
) -> String {
    let own = id_text(&task.id);
    let id = above.map_or_else(|| own.clone(), |(above, _)| format!("{above}.{own}"));
    let key = format!("{list}/{id}");
    if let Err(problem) = check_key(&key) {
        faults.add(line, 1, format!("`id`: {id:?} {problem}"));
    }
    if task.title.trim().is_empty() {
        faults.add(line, 1, "`title` is blank");
    }
    let is_done = match task.status.as_str() {
        "done" | "completed" => true,
        "" | "pending" | "in-progress" | "review" | "blocked" => false,
        "cancelled" => {
            file.notes.push(FileNote { line, text: format!("{id} is cancelled; left out") });
            true
        }
        other => {
            file.notes.push(FileNote { line, text: format!("{id} is {other}; taken as open") });
            false
        }
    };
    let mut after: Vec<String> = task
        .dependencies
        .iter()
        .map(|dependency| match (id_text(dependency), above) {
            // A number names a task beside it.
            (other, Some((above, _))) if !other.contains('.') => format!("{list}/{above}.{other}"),
            (other, _) => format!("{list}/{other}"),
        })
        .collect();
    after.extend(above.into_iter().flat_map(|(_, blockers)| blockers.iter().cloned()));
    let inherited = after.clone();
    for below in task.subtasks {
        after.push(add(file, line, list, Some((&id, &inherited)), below, faults));
    }
    let parts = [&task.title, &task.description, &task.details, &task.test_strategy];
    let parts = parts.into_iter().map(|part| part.trim()).filter(|part| !part.is_empty());
    let priority = match task.priority.as_str() {
        "high" => Some(1),
        "low" => Some(-1),
        _ => None,
    };
    file.tasks.push(TaskDefinition {
        key: key.clone(),
        line,
        subject: subject(&task.title),
        description: parts.collect::<Vec<_>>().join("\n\n"),
        after,
        fields: TaskFields { priority, ..TaskFields::default() },
        is_done,
        ..TaskDefinition::default()
    });
    key
}

/// Returns an id, which is a number or a string.
fn id_text(id: &Value) -> String {
    id.as_str().map_or_else(|| id.to_string(), str::to_owned)
}
