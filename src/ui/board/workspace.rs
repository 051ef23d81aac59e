//! The table of the files in a workspace.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, maybe, tinted};
use crate::team::report::ids;
use model::board::workspace::WorkspaceFile;
use model::id::TaskId;

pub fn workspace_table(files: &[WorkspaceFile], paint: Paint) -> String {
    let mut table = Table::new(&["FILE", "BYTES", "BY", "TASKS", "MODIFIED"]);
    for file in files {
        table.row(vec![
            tinted(Tint::Bold, file.name.as_str()),
            cell(file.bytes.to_string()),
            maybe(file.by.as_deref()),
            cell(ids(&file.tasks)),
            tinted(Tint::Dim, file.modified.iso()),
        ]);
    }
    table.render(paint)
}

/// Formats task ids as `#1, #2`.
pub fn task_ids(tasks: &[TaskId]) -> String {
    ids(tasks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::board::workspace::WorkspacePath;
    use model::time::Timestamp;

    #[test]
    fn files_are_formatted_as_table() {
        let file = |name: &str, by: Option<&str>, tasks: Vec<TaskId>| WorkspaceFile {
            name: WorkspacePath::parse(name).expect("a path"),
            path: name.to_owned(),
            bytes: 12,
            modified: Timestamp(0),
            by: by.map(str::to_owned),
            tasks,
        };
        let files = [file("a.md", Some("ann"), vec![TaskId(3)]), file("b\u{202e}", None, vec![])];
        assert_eq!(
            workspace_table(&files, Paint { on: false }),
            "FILE  BYTES  BY   TASKS  MODIFIED\n\
             a.md  12     ann  #3     1970-01-01T00:00:00.000Z\n\
             b\u{fffd}    12                 1970-01-01T00:00:00.000Z"
        );
    }
}
