//! The table of worktrees.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, maybe, tinted};

/// A worktree in the table.
pub struct WorktreeRow {
    /// The member that it belongs to.
    pub name: String,
    pub branch: String,
    /// With the evidence of a merge.
    pub condition: String,
    /// The reason why it must be kept.
    pub keeps: Option<String>,
    pub path: String,
}

pub fn worktree_table(rows: impl Iterator<Item = WorktreeRow>, paint: Paint) -> String {
    let mut table = Table::new(&["member", "branch", "stands", "keeps it", "path"]);
    for row in rows {
        let path = tinted(Tint::Dim, row.path);
        table.row(vec![
            cell(row.name),
            cell(row.branch),
            cell(row.condition),
            maybe(row.keeps),
            path,
        ]);
    }
    table.render(paint)
}
