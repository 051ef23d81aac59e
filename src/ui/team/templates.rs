//! The table of templates.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, tinted};

/// A template in the table.
pub struct TemplateRow {
    pub name: String,
    /// Its file, or that it is built in.
    pub source: String,
    /// A description; for an unusable template the problem.
    pub about: String,
}

pub fn template_table(rows: impl Iterator<Item = TemplateRow>, paint: Paint) -> String {
    let mut table = Table::new(&["template", "source", "what it is"]);
    for row in rows {
        table.row(vec![cell(row.name), cell(row.source), tinted(Tint::Dim, row.about)]);
    }
    table.render(paint)
}
