//! Plans as JSON lines: a header with `p`, `n`, `d` and `xd`, then a task with `id`, `a`, `f` and
//! `td` on each line. Other keys are ignored.

use serde::Deserialize;

use super::fault_list::FaultList;
use super::words::subject;
use crate::ConfigError;
use model::board::task::TaskFields;
use model::board::task_definition::{
    PlanHeader, TaskDefinition, TaskFile, all_of, check_key, check_key_part,
};

#[derive(Deserialize)]
struct HeaderLine {
    /// Phase.
    p: String,
    /// Number of the plan in its phase.
    n: String,
    /// Plans that this one depends on.
    #[serde(default)]
    d: Vec<String>,
    /// Artifacts that must be complete.
    #[serde(default)]
    xd: Vec<String>,
}

#[derive(Deserialize)]
struct TaskLine {
    id: String,
    /// Action: the text of the task.
    a: String,
    #[serde(default)]
    f: Vec<String>,
    /// Tasks that this one depends on.
    #[serde(default)]
    td: Vec<String>,
}

pub(super) fn parse(text: &str) -> Result<TaskFile, Vec<ConfigError>> {
    let mut faults = FaultList::default();
    let mut lines =
        (1..).zip(text.lines()).filter(|(_, line): &(usize, &str)| !line.trim().is_empty());
    let Some((number, line)) = lines.next() else {
        faults.add(1, 1, "the plan is empty: its first line is a header with `p` and `n`");
        return faults.into_result(TaskFile::default());
    };
    let plan = header(number, line, &mut faults);
    let tasks = lines.filter_map(|(number, line)| task(plan.as_ref(), number, line, &mut faults));
    let tasks = tasks.collect();
    faults.into_result(TaskFile { plan, tasks, ..TaskFile::default() })
}

fn header(number: usize, line: &str, faults: &mut FaultList) -> Option<PlanHeader> {
    let header: HeaderLine = faults.parse_object(number, line)?;
    let ids = [("p", &header.p), ("n", &header.n)].into_iter();
    for (key, id) in ids.chain(header.d.iter().map(|plan| ("d", plan))) {
        check(number, key, id, check_key_part, faults);
    }
    if header.xd.iter().any(|path| path.trim().is_empty() || path.contains('\0')) {
        faults.add(number, 1, "`xd`: an entry is not the path of a file");
    }
    let id = format!("{}-{}", header.p, header.n);
    Some(PlanHeader { line: number, id, depends_on: header.d, artifacts: header.xd })
}

fn task(
    plan: Option<&PlanHeader>,
    number: usize,
    line: &str,
    faults: &mut FaultList,
) -> Option<TaskDefinition> {
    let task: TaskLine = faults.parse_object(number, line)?;
    check(number, "id", &task.id, check_key_part, faults);
    task.td.iter().for_each(|id| check(number, "td", id, check_key, faults));
    if task.a.trim().is_empty() {
        faults.add(number, 1, "`a` is blank");
    }
    if task.f.iter().any(|file| file.trim().is_empty() || file.contains('\0')) {
        faults.add(number, 1, "`f`: an entry is not the pattern of a file");
    }
    let plan = plan?;
    let key = |id: &String| {
        if id.contains('/') { id.clone() } else { format!("{}/{id}", plan.id) }
    };
    Some(TaskDefinition {
        key: key(&task.id),
        line: number,
        subject: subject(&task.a),
        description: task.a.trim().to_owned(),
        after: plan.depends_on.iter().map(|id| all_of(id)).chain(task.td.iter().map(key)).collect(),
        fields: TaskFields { files: Some(task.f), ..TaskFields::default() },
        ..TaskDefinition::default()
    })
}

fn check(
    line: usize,
    key: &str,
    id: &str,
    rule: impl Fn(&str) -> Result<(), String>,
    faults: &mut FaultList,
) {
    if let Err(problem) = rule(id) {
        faults.add(line, 1, format!("`{key}`: {id:?} {problem}"));
    }
}
