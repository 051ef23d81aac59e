//! The tables of docs/events.md, against which debug builds check each event.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// Details of every event about a task that has them.
const OF_TASKS: [&str; 2] = ["active_form", "scope"];

/// The keys of each event.
static TABLES: LazyLock<BTreeMap<String, BTreeSet<String>>> =
    LazyLock::new(|| rows(include_str!("../../../../docs/events.md")).into_iter().collect());

/// Returns true if the page has this detail of the event.
pub(super) fn has(event: &str, key: &str) -> bool {
    OF_TASKS.contains(&key) || TABLES.get(event).is_some_and(|keys| keys.contains(key))
}

/// Returns the events of the tables with the keys in their last column. Words in parentheses are
/// values and explanations.
fn rows(page: &str) -> Vec<(String, BTreeSet<String>)> {
    let pattern = |text: &str| Regex::new(text).expect("a pattern");
    let row = pattern(r"(?m)^\| (`[^|]*) \| [^|]* \| ([^|]*) \|$");
    let word = pattern(r"`([a-z_]+)`");
    let aside = pattern(r"\((?:\[[^]]*\]\([^)]*\)|[^()])*\)");
    let words = |text: &str| -> BTreeSet<String> {
        word.captures_iter(text).map(|found| found[1].to_owned()).collect()
    };
    let of_row = |row: regex::Captures| {
        let keys = words(&aside.replace_all(&row[2], ""));
        words(&row[1]).into_iter().map(move |name| (name, keys.clone())).collect::<Vec<_>>()
    };
    row.captures_iter(page).flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use strum::VariantArray;

    use super::*;
    use crate::team::event::EventKind;

    #[test]
    fn page_has_one_row_for_each_event() {
        let rows = rows(include_str!("../../../../docs/events.md"));
        let mut names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
        let mut kinds: Vec<&str> = EventKind::VARIANTS.iter().map(|kind| kind.as_str()).collect();
        names.sort_unstable();
        kinds.sort_unstable();
        assert_eq!(names, kinds);
    }
}
