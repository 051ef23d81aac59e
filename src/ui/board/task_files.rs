//! Tasks as files: the report of an import, and the JSON and CSV forms of an export.

use std::error::Error;

use crate::paint::Paint;
use crate::table::{Table, cell, maybe};
use model::board::task::Task;
use model::id::TaskId;
use model::text;
use model::time::Timestamp;
use ops::board::task_import::{Imported, ImportedTask};

/// Number of tasks that the report of an import lists without `--verbose`.
const LISTED: usize = 20;

/// Formats the changes of an import: the tasks, and a line with their numbers.
pub fn import_report(done: &Imported, verbose: bool, paint: Paint) -> String {
    let created = done.created.iter().map(|task| ("create", task));
    let updated = done.updated.iter().map(|task| ("update", task));
    let rows: Vec<(&str, &ImportedTask)> = created.chain(updated).collect();
    let listed = if verbose { usize::MAX } else { LISTED };
    let mut table = Table::new(&["CHANGE", "ID", "KEY", "SUBJECT", "AFTER", "FIELDS"]);
    for (change, task) in rows.iter().take(listed) {
        table.row(vec![
            cell(change),
            maybe(task.id.map(|id| id.to_string())),
            cell(&task.key),
            cell(text::short(&task.subject, 60)),
            cell(text::short(&task.after.join(", "), 60)),
            cell(task.fields.join(", ")),
        ]);
    }
    let mut lines = Vec::new();
    if !rows.is_empty() {
        lines.push(table.render(paint));
    }
    if rows.len() > listed {
        lines.push(format!("… and {} more (`--verbose` lists them)", rows.len() - listed));
    }
    let more = done.notes.len().saturating_sub(listed);
    lines.extend(done.notes.iter().take(listed).map(|note| text::line(note)));
    if more > 0 {
        lines.push(format!("… and {more} more notes (`--verbose` lists them)"));
    }
    let skipped = match done.skipped {
        0 => String::new(),
        count => format!(", {count} done already"),
    };
    let dry = if done.dry_run { " (dry run: nothing was written)" } else { "" };
    lines.push(format!(
        "{} created, {} updated, {} unchanged{skipped}{dry}",
        done.created.len(),
        done.updated.len(),
        done.unchanged
    ));
    lines.join("\n")
}

/// Formats tasks as a JSON list in their wire form, one task on each line.
pub fn task_list_json(tasks: &[Task]) -> Result<String, Box<dyn Error>> {
    let lines = tasks.iter().map(|task| serde_json::to_string(&task.to_object()));
    let lines = lines.collect::<Result<Vec<String>, _>>()?;
    Ok(if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) })
}

/// Formats tasks as CSV with a heading. Lists are separated by spaces, files by semicolons.
pub fn task_csv(tasks: &[Task]) -> Result<String, Box<dyn Error>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record([
        "id",
        "key",
        "state",
        "priority",
        "owner",
        "role",
        "subject",
        "blocked_by",
        "files",
        "created_at",
        "claimed_at",
        "ended_at",
    ])?;
    for task in tasks {
        let extra = &task.extra;
        let guarded = |text: Option<&str>| guard(text.unwrap_or_default());
        let time = |at: Option<Timestamp>| at.map(Timestamp::iso).unwrap_or_default();
        writer.write_record([
            task.id.to_string(),
            guarded(extra.key.as_deref()),
            task.state.as_str().to_owned(),
            extra.priority.map(|priority| priority.to_string()).unwrap_or_default(),
            guarded(task.owner.as_deref()),
            guarded(extra.role.as_deref()),
            guard(&task.subject),
            task.blocked_by.iter().map(TaskId::to_string).collect::<Vec<_>>().join(" "),
            guard(&extra.files.join(";")),
            time(extra.created_at),
            time(extra.claimed_at),
            time(extra.ended_at),
        ])?;
    }
    Ok(String::from_utf8(writer.into_inner()?)?)
}

/// Returns a text for a cell, on one line. A spreadsheet would run one that begins like a formula,
/// so that gets a leading apostrophe.
fn guard(text: &str) -> String {
    let line = text::line(text);
    if line.starts_with(['=', '+', '-', '@']) { format!("'{line}") } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_cells_that_begin_like_formulas_are_guarded() {
        let mut task = Task::new(TaskId(3), "=HYPERLINK(\"http://x\",\"y\")", "d");
        task.owner = Some("ann".to_owned());
        task.blocked_by = vec![TaskId(1), TaskId(2)];
        task.extra.priority = Some(-1);
        task.extra.files = vec!["-rf".to_owned(), "src/a b.rs".to_owned()];
        task.extra.created_at = Some(Timestamp(1_795_214_628_804));
        let mut other = Task::new(TaskId(4), "a\u{1b}[2J\nb, c", "");
        other.extra.role = Some("@role".to_owned());
        let csv = task_csv(&[task, other]).expect("csv");
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            lines,
            [
                "id,key,state,priority,owner,role,subject,blocked_by,files,created_at,claimed_at,ended_at",
                "3,,pending,-1,ann,,\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\",1 2,'-rf;src/a b.rs,2026-11-20T22:43:48.804Z,,",
                "4,,pending,,,'@role,\"a\u{241b}[2J\u{240a}b, c\",,,,,",
            ]
        );
    }

    #[test]
    fn report_lists_some_tasks_and_counts_all() {
        let task = |n: u64| ImportedTask {
            id: Some(TaskId(n)),
            key: format!("03-02/T{n}"),
            subject: "Do\u{1b} it".to_owned(),
            after: vec!["03-01/*".to_owned()],
            fields: Vec::new(),
        };
        let done = Imported {
            dry_run: true,
            created: (1..=22).map(task).collect(),
            updated: Vec::new(),
            unchanged: 4,
            skipped: 1,
            notes: vec!["TODO.md:4: optional\u{1b}".to_owned()],
        };
        let report = import_report(&done, false, Paint { on: false });
        let lines: Vec<&str> = report.lines().collect();
        assert_eq!(lines[0], "CHANGE  ID  KEY        SUBJECT  AFTER");
        assert_eq!(lines[1], "create  1   03-02/T1   Do\u{241b} it   03-01/*");
        assert_eq!(lines.len(), 24);
        assert_eq!(
            lines[21..],
            [
                "… and 2 more (`--verbose` lists them)",
                "TODO.md:4: optional\u{241b}",
                "22 created, 0 updated, 4 unchanged, 1 done already (dry run: nothing was written)"
            ]
        );
        assert_eq!(import_report(&done, true, Paint { on: false }).lines().count(), 25);
    }
}
