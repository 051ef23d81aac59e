//! The issues of beads (`.beads/issues.jsonl`): a JSON object on each line.

use serde::Deserialize;

use super::fault_list::FaultList;
use super::words::subject;
use crate::ConfigError;
use model::board::task::TaskFields;
use model::board::task_definition::{FileNote, TaskDefinition, TaskFile, check_key};

/// The priority of an issue without one. 0 is the most urgent.
const USUAL: i64 = 2;

#[derive(Deserialize)]
struct Issue {
    id: String,
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    design: String,
    #[serde(default)]
    acceptance_criteria: String,
    #[serde(default)]
    notes: String,
    #[serde(default)]
    status: String,
    priority: Option<i64>,
    #[serde(default)]
    issue_type: Option<String>,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    assignee: Option<String>,
    #[serde(default)]
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    depends_on_id: String,
    #[serde(rename = "type", default)]
    kind: String,
}

/// Returns whether a line is an issue. That of a plan has none of these keys.
pub(super) fn is_issue(line: &str) -> bool {
    #[derive(Deserialize)]
    struct IssueKeys {
        #[serde(rename = "id")]
        _id: String,
        #[serde(rename = "title")]
        _title: String,
    }
    serde_json::from_str::<IssueKeys>(line).is_ok()
}

pub(super) fn parse(text: &str) -> Result<TaskFile, Vec<ConfigError>> {
    let mut faults = FaultList::default();
    let mut file = TaskFile::default();
    for (line, json) in (1..).zip(text.lines()).filter(|(_, json)| !json.trim().is_empty()) {
        let Some(issue) = faults.parse_object::<Issue>(line, json) else { continue };
        let mut note = |text: String| file.notes.push(FileNote { line, text });
        if issue.status == "tombstone" {
            note(format!("issue {} is deleted; left out", issue.id));
            continue;
        }
        if !["open", "in_progress", "blocked", "closed", ""].contains(&&*issue.status) {
            note(format!("`{}` is {}; taken as open", issue.id, issue.status));
        }
        if let Some(name) = issue.assignee.filter(|name| !name.is_empty()) {
            note(format!("`assignee` of `{}`, {name}, has no counterpart; left out", issue.id));
        }
        let mut after = Vec::new();
        for dependency in issue.dependencies {
            match dependency.kind.as_str() {
                "blocks" => after.push(dependency.depends_on_id),
                kind => note(format!(
                    "`{}` is linked to `{}` as {kind}, which orders nothing; left out",
                    issue.id, dependency.depends_on_id
                )),
            }
        }
        if let Err(problem) = check_key(&issue.id) {
            faults.add(line, 1, format!("`id`: {:?} {problem}", issue.id));
        }
        if issue.title.trim().is_empty() {
            faults.add(line, 1, "`title` is blank");
        }
        let parts = [issue.description, issue.design, issue.acceptance_criteria, issue.notes];
        let parts = parts.iter().map(|part| part.trim()).filter(|part| !part.is_empty());
        let priority = issue.priority.map(|priority| USUAL - priority).filter(|p| *p != 0);
        file.tasks.push(TaskDefinition {
            key: issue.id,
            line,
            subject: subject(&issue.title),
            description: [issue.title.trim()]
                .into_iter()
                .chain(parts)
                .collect::<Vec<_>>()
                .join("\n\n"),
            after,
            fields: TaskFields {
                priority,
                kind: issue.issue_type,
                labels: Some(issue.labels).filter(|labels| !labels.is_empty()),
                ..TaskFields::default()
            },
            is_done: issue.status == "closed",
            ..TaskDefinition::default()
        });
    }
    faults.into_result(file)
}
