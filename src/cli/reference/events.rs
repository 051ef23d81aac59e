//! Compares the tables of docs/events.md with the kinds of events and their details.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use strum::VariantArray;

use crate::model::event::EventKind;

/// Returns the differences between the page and the program, one on each line.
pub(super) fn differences(page: &str) -> Vec<String> {
    let mut documented = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, keys) in rows(page) {
        if documented.insert(name.clone(), keys).is_some() {
            problems.push(format!("{name} has two rows"));
        }
    }
    for kind in EventKind::VARIANTS {
        let name = kind.as_str();
        let Some(keys) = documented.remove(name) else {
            problems.push(format!("{name} has no row"));
            continue;
        };
        let known: BTreeSet<String> = kind.detail_keys().iter().map(ToString::to_string).collect();
        let missing = known.difference(&keys);
        problems.extend(missing.map(|key| format!("`{key}` of {name} is not in the page")));
        let unknown = keys.difference(&known);
        problems.extend(unknown.map(|key| format!("{name} has no `{key}`")));
    }
    problems.extend(documented.into_keys().map(|name| format!("no event is named {name}")));
    problems
}

/// Returns the events of the tables with the keys in their last column. Words in parentheses are
/// values and explanations.
fn rows(page: &str) -> impl Iterator<Item = (String, BTreeSet<String>)> {
    let row = Regex::new(r"(?m)^\| (`[^|]*) \| [^|]* \| ([^|]*) \|$").expect("a pattern");
    let word = Regex::new(r"`([a-z_]+)`").expect("a pattern");
    let aside = Regex::new(r"\((?:\[[^]]*\]\([^)]*\)|[^()])*\)").expect("a pattern");
    let words = |text: &str| -> BTreeSet<String> {
        word.captures_iter(text).map(|found| found[1].to_owned()).collect()
    };
    let found: Vec<(String, BTreeSet<String>)> = row
        .captures_iter(page)
        .flat_map(|row| {
            let keys = words(&aside.replace_all(&row[2], ""));
            words(&row[1]).into_iter().map(move |name| (name, keys.clone()))
        })
        .collect();
    found.into_iter()
}
