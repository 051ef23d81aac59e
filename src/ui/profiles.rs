//! The table of profiles.

use super::paint::{Paint, Tint};
use super::table::{Table, cell, maybe, tinted};

/// A profile as it is listed.
pub(crate) struct ProfileRow {
    pub(crate) name: String,
    pub(crate) runs: String,
    /// The version whose screens its rules were taken from.
    pub(crate) seen: Option<String>,
    pub(crate) source: String,
    pub(crate) about: String,
}

/// One line for each profile.
pub(crate) fn profile_table(rows: impl Iterator<Item = ProfileRow>, paint: Paint) -> String {
    let mut table = Table::new(&["profile", "runs", "seen", "source", "what it is"]);
    for row in rows {
        let about = tinted(Tint::Dim, row.about);
        table.row(vec![cell(row.name), cell(row.runs), maybe(row.seen), cell(row.source), about]);
    }
    table.render(paint)
}
