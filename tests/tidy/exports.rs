//! What a crate exports, another one uses. The compiler does not look beyond a crate, so it reports
//! no unused `pub` item.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::{Source, all_texts, sources};

/// Crates whose items are for the root package: the program, and its tests.
const FACES: [&str; 2] = ["cli", "testing"];

#[test]
fn every_export_is_used_by_another_crate() {
    let problems = problems(&sources(), &all_texts());
    assert!(problems.is_empty(), "{}\n", problems.join("\n"));
}

/// Returns one line for each `pub` item of a crate whose name no other crate mentions. A type may
/// also be part of another `pub` item. `texts` has the crate and the text of each file, tests too.
pub(crate) fn problems(files: &[Source], texts: &[(String, String)]) -> Vec<String> {
    let mut mentioned: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (folder, text) in texts {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        let words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        mentioned.entry(folder).or_default().extend(words);
    }
    let mut interfaces: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        interfaces.entry(file.folder()).or_default().extend(interface(&file.words));
    }
    let mut found = Vec::new();
    for file in files.iter().filter(|file| !FACES.contains(&file.folder())) {
        let is_used = |name: &str| {
            let mut others = mentioned.iter().filter(|(folder, _)| **folder != file.folder());
            others.any(|(_, words)| words.contains(name))
                || interfaces[file.folder()].contains(name)
        };
        for name in exports(&file.words).into_iter().filter(|name| !is_used(name)) {
            found.push(format!("{}: `pub {name}` is used by no other crate", file.name));
        }
    }
    found
}

/// Returns the types in the signatures and definitions of `pub` items, except the name of each.
fn interface(words: &[String]) -> Vec<&str> {
    let starts = (0..words.len()).filter(|at| words[*at] == "pub");
    starts.flat_map(|at| types_of_item(&words[at + 1..])).collect()
}

/// Returns the types in an item, which begins after its `pub`.
fn types_of_item(words: &[String]) -> Vec<&str> {
    let is =
        |at: usize, any: &[&str]| words.get(at).is_some_and(|word| any.contains(&word.as_str()));
    if is(0, &["use"]) {
        return Vec::new();
    }
    let is_definition = is(0, &["struct", "enum", "trait"]);
    let own = if is_definition { words.get(1) } else { None };
    let mut depth = 0;
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        match word.as_str() {
            // The body of a function.
            "{" if !is_definition => break,
            "{" | "(" | "<" => depth += 1,
            ">" if is(at.wrapping_sub(1), &["-", "="]) => {}
            "}" | ")" | ">" => depth -= 1,
            _ => {}
        }
        let is_over = match word.as_str() {
            "}" => depth == 0,
            // Of a field, or of an item.
            "," | ";" => depth == 0,
            _ => depth < 0,
        };
        if is_over {
            break;
        }
        if word.starts_with(|c: char| c.is_ascii_uppercase()) && Some(word) != own {
            found.push(word.as_str());
        }
    }
    found
}

/// Returns the names of the `pub` items, and of those that a `pub use` passes on.
fn exports(words: &[String]) -> Vec<&str> {
    const BEFORE_NAME: [&str; 10] =
        ["fn", "struct", "enum", "trait", "type", "const", "static", "mod", "async", "union"];
    let mut found = Vec::new();
    for at in (0..words.len()).filter(|at| words[*at] == "pub") {
        let mut next = words[at + 1..].iter().map(String::as_str);
        match next.next() {
            Some("use") => {
                let path: Vec<&str> = next.take_while(|word| *word != ";").collect();
                let ends = |at: &usize| {
                    let is_name = path[*at].starts_with(|c: char| c.is_alphabetic());
                    is_name && path.get(at + 1).is_none_or(|word| matches!(*word, "," | "}"))
                };
                found.extend((0..path.len()).filter(ends).map(|at| path[at]));
            }
            Some(word) if BEFORE_NAME.contains(&word) => {
                let name = next.find(|word| !BEFORE_NAME.contains(word));
                found.extend(name.filter(|name| name.starts_with(|c: char| c.is_alphabetic())));
            }
            // A field, or a visibility.
            _ => {}
        }
    }
    found
}
