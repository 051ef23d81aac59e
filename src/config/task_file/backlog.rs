//! A task of Backlog.md: a Markdown file with front matter.

use serde::Deserialize;

use super::fault_list::FaultList;
use super::words::subject;
use crate::ConfigError;
use model::board::task::TaskFields;
use model::board::task_definition::{FileNote, TaskDefinition, TaskFile, check_key};

/// The line before and after the front matter.
const FENCE: &str = "---";

#[derive(Debug, Deserialize)]
struct BacklogTask {
    id: String,
    title: String,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    priority: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    assignee: Assignees,
    #[serde(default)]
    milestone: Option<String>,
    #[serde(default)]
    parent_task_id: Option<String>,
}

/// One name or several.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Assignees {
    One(Option<String>),
    Several(Vec<String>),
}

impl Default for Assignees {
    fn default() -> Assignees {
        Assignees::One(None)
    }
}

impl Assignees {
    fn names(self) -> Vec<String> {
        match self {
            Assignees::One(name) => name.into_iter().collect(),
            Assignees::Several(names) => names,
        }
    }
}

/// Splits a file into its front matter and the text below it.
fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix(FENCE)?;
    let rest = rest.strip_prefix('\r').unwrap_or(rest).strip_prefix('\n')?;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == FENCE {
            return Some((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

/// Returns whether a Markdown file is a task: its front matter has an id and a title.
pub(super) fn is_task(text: &str) -> bool {
    let has =
        |key: &str, line: &str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    split(text).is_some_and(|(front, _)| {
        ["id", "title"].iter().all(|key| front.lines().any(|line| has(key, line)))
    })
}

pub(super) fn parse(text: &str) -> Result<TaskFile, Vec<ConfigError>> {
    let mut faults = FaultList::default();
    let Some((front, body)) = split(text) else {
        faults.add(1, 1, "the file does not begin with front matter between two lines `---`");
        return faults.into_result(TaskFile::default());
    };
    let task: BacklogTask = match serde_saphyr::from_str(front) {
        Ok(task) => task,
        Err(error) => {
            let (line, column) = error.location().map_or((1, 1), |at| {
                (usize::try_from(at.line()).unwrap_or(1), usize::try_from(at.column()).unwrap_or(1))
            });
            let message = error.without_snippet().to_string();
            faults.add(line + 1, column, message.lines().next().unwrap_or_default());
            return faults.into_result(TaskFile::default());
        }
    };
    let mut file = TaskFile::default();
    let mut note = |text: String| file.notes.push(FileNote { line: 1, text });
    // Its ids are written in either case.
    let key = task.id.to_lowercase();
    if let Err(problem) = check_key(&key) {
        faults.add(1, 1, format!("`id`: {:?} {problem}", task.id));
    }
    if task.title.trim().is_empty() {
        faults.add(1, 1, "`title` is blank");
    }
    let status = task.status.unwrap_or_default();
    let is_done = status.eq_ignore_ascii_case("done");
    if !is_done && !["", "to do", "todo", "draft"].contains(&status.to_lowercase().as_str()) {
        note(format!("`{key}` is {status}; taken as open"));
    }
    for (what, names) in [
        ("assignee", task.assignee.names()),
        ("milestone", task.milestone.into_iter().collect()),
        ("parent_task_id", task.parent_task_id.into_iter().collect()),
    ] {
        if !names.is_empty() {
            note(format!(
                "`{what}` of `{key}`, {}, has no counterpart; left out",
                names.join(", ")
            ));
        }
    }
    let priority = match task.priority.map(|word| word.to_lowercase()).as_deref() {
        Some("high") => Some(1),
        Some("low") => Some(-1),
        _ => None,
    };
    // Its sections are enclosed in comments.
    let is_comment = |line: &&str| line.trim().starts_with("<!--") && line.trim().ends_with("-->");
    let body: Vec<&str> = body.lines().filter(|line| !is_comment(line)).collect();
    let body = body.join("\n");
    let parts = [task.title.trim(), body.trim()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    file.tasks.push(TaskDefinition {
        key,
        line: 1,
        subject: subject(&task.title),
        description: parts.join("\n\n"),
        after: task.dependencies.iter().map(|id| id.to_lowercase()).collect(),
        fields: TaskFields {
            priority,
            labels: Some(task.labels).filter(|labels| !labels.is_empty()),
            ..TaskFields::default()
        },
        is_done,
        ..TaskDefinition::default()
    });
    faults.into_result(file)
}
