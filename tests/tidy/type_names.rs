//! One type name, one type.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{Source, sources};

/// Names of the parts of an event loop, which `lead` and `teammate` share.
const LOOP_PARTS: [&str; 4] = ["Driver", "Effect", "Event", "State"];

/// Names that several types still have. The list can only become shorter.
const DUPLICATES: &[&str] = &[];

#[test]
fn type_names_are_unique() {
    let problems = problems(&sources(), DUPLICATES);
    assert!(problems.is_empty(), "{}\n", problems.join("\n"));
}

/// Returns one line for each name that several types have and that is not in `known`, and for each
/// name in `known` that only one type has.
pub(crate) fn problems(files: &[Source], known: &[&str]) -> Vec<String> {
    let mut types: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for file in files {
        let is_loop = matches!(file.folder(), "lead" | "teammate");
        let names = type_names(&file.words).into_iter();
        for name in names.filter(|name| !is_loop || !LOOP_PARTS.contains(name)) {
            types.entry(name).or_default().push(&file.name);
        }
    }
    types.retain(|_, files| files.len() > 1);
    let known: BTreeSet<&str> = known.iter().copied().collect();
    let fresh = types.iter().filter(|(name, _)| !known.contains(*name));
    let fresh = fresh.map(|(name, files)| format!("several types `{name}`: {}", files.join(", ")));
    let single = known.iter().filter(|name| !types.contains_key(*name));
    let single = single.map(|name| format!("`{name}` is unique; take it off the list"));
    fresh.chain(single).collect()
}

/// Returns the names of all types and traits; associated types do not count.
fn type_names(words: &[String]) -> Vec<&str> {
    let mut found = Vec::new();
    // For each open brace, whether it is that of an `impl` or a trait.
    let mut blocks = Vec::new();
    let mut is_next = false;
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map_or(";", |before| words[before].as_str());
        match word.as_str() {
            "{" => {
                blocks.push(is_next);
                is_next = false;
            }
            "}" => drop(blocks.pop()),
            ";" => is_next = false,
            "impl" if matches!(before, ";" | "{" | "}" | "]" | "unsafe") => is_next = true,
            "type" if blocks.last() == Some(&true) => {}
            "struct" | "enum" | "trait" | "type" => {
                is_next = word == "trait";
                // In a macro the name can be a variable (`$name`).
                found.extend(words.get(at + 1).map(String::as_str).filter(|name| *name != "$"));
            }
            _ => {}
        }
    }
    found
}
