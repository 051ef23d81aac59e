//! The table of profiles.

use super::paint::{Paint, Tint};
use super::table::{Table, cell, maybe, tinted};

/// A profile in the table.
pub(crate) struct ProfileRow {
    pub(crate) name: String,
    /// The program that it starts.
    pub(crate) runs: String,
    /// The program version that its screen rules were recorded from.
    pub(crate) seen: Option<String>,
    /// Its file, or that it is built in.
    pub(crate) source: String,
    /// A description; for an unusable profile the problem.
    pub(crate) about: String,
}

pub(crate) fn profile_table(rows: impl Iterator<Item = ProfileRow>, paint: Paint) -> String {
    let mut table = Table::new(&["profile", "runs", "seen", "source", "what it is"]);
    for row in rows {
        let about = tinted(Tint::Dim, row.about);
        table.row(vec![cell(row.name), cell(row.runs), maybe(row.seen), cell(row.source), about]);
    }
    table.render(paint)
}
