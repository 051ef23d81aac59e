//! The table of profiles.

use super::paint::{Paint, Tint};
use super::table::{Table, cell, maybe, tinted};

pub(crate) struct ProfileRow {
    pub(crate) name: String,
    pub(crate) runs: String,
    /// The program version that its screen rules were recorded from.
    pub(crate) seen: Option<String>,
    pub(crate) source: String,
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
