//! The tables of profiles and of their recordings.

use crate::paint::{Paint, Tint};
use crate::table::{Table, cell, maybe, tinted};

/// A profile in the table.
pub struct ProfileRow {
    pub name: String,
    /// The program that it starts.
    pub runs: Option<String>,
    /// What is installed of an agent, or how to install it.
    pub here: Option<String>,
    /// The newest version that it was tried with.
    pub seen: Option<String>,
    /// Its file, or that it is built in.
    pub source: Option<String>,
    /// A description; for an unusable profile the problem.
    pub about: String,
}

pub fn profile_table(rows: impl Iterator<Item = ProfileRow>, paint: Paint) -> String {
    let mut table = Table::new(&["profile", "runs", "here", "tried with", "source", "what it is"]);
    for row in rows {
        let about = tinted(Tint::Dim, row.about);
        let (here, seen) = (maybe(row.here), maybe(row.seen));
        let (runs, source) = (maybe(row.runs), maybe(row.source));
        table.row(vec![cell(row.name), runs, here, seen, source, about]);
    }
    table.render(paint)
}

/// The verdict of a profile about a recorded screen.
pub struct RecordingRow {
    pub screen: String,
    /// The expected state.
    pub expected: String,
    pub found: String,
    /// The rule that has found it; empty if none matched.
    pub rule: String,
    /// The content of the composer, if known.
    pub composer: Option<String>,
    pub passed: bool,
}

pub fn recording_table(rows: impl Iterator<Item = RecordingRow>, paint: Paint) -> String {
    let mut table = Table::new(&["screen", "expected", "found", "rule", "composer", "ok"]);
    for row in rows {
        let ok = if row.passed { tinted(Tint::Good, "yes") } else { tinted(Tint::Bad, "NO") };
        let rule = Some(row.rule).filter(|rule| !rule.is_empty());
        let found = cell(row.found);
        let composer = maybe(row.composer);
        table.row(vec![cell(row.screen), cell(row.expected), found, maybe(rule), composer, ok]);
    }
    table.render(paint)
}
