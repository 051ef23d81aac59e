//! Source files as lists of words and marks, without comments, literals and test code.

use std::fs;
use std::path::Path;

use crate::scan::{self, Kind, Token};
use crate::{entries, root};

/// A source file that is part of the program.
pub(crate) struct Source {
    /// Path relative to the root of the repository, with forward slashes.
    pub(crate) name: String,
    /// Words, `::`, and every other character as one entry.
    pub(crate) words: Vec<String>,
}

impl Source {
    pub(crate) fn new(name: &str, text: &str) -> Source {
        Source { name: name.to_owned(), words: without_tests(&words(text)) }
    }

    /// Returns the module path below its crate's name: `src/store/usage.rs` is `store::usage`,
    /// `src/store/lib.rs` is `store`, `src/ops/mail/mod.rs` is `ops::mail`.
    pub(crate) fn module(&self) -> Vec<String> {
        let inner = self.name.trim_start_matches("src/").trim_end_matches(".rs");
        let inner = inner.trim_end_matches("/lib").trim_end_matches("/mod");
        inner.split('/').map(str::to_owned).collect()
    }

    /// Returns whether the file is the module of a test.
    fn is_test(&self) -> bool {
        self.name.ends_with("/tests.rs") || self.name.contains("/tests/")
    }

    /// Returns the folder below `src`, or the file's own name.
    pub(crate) fn folder(&self) -> &str {
        self.name.trim_start_matches("src/").split('/').next().unwrap_or_default()
    }
}

/// Reads every file below `src`, except files of tests.
pub(crate) fn sources() -> Vec<Source> {
    let files = files("src").into_iter().map(|(name, text)| Source::new(&name, &text));
    let found: Vec<Source> = files.filter(|source| !source.is_test()).collect();
    assert!(found.len() > 100, "only {} files are below src", found.len());
    found
}

/// Returns the crate and the text of every file below `src` and `tests`, which counts as a crate.
pub(crate) fn all_texts() -> Vec<(String, String)> {
    let crate_of = |name: &str| {
        let mut folders = name.split('/');
        let first = folders.next().unwrap_or_default();
        if first == "src" { folders.next().unwrap_or_default() } else { first }.to_owned()
    };
    let texts = ["src", "tests"].into_iter().flat_map(files);
    texts.map(|(name, text)| (crate_of(&name), text)).collect()
}

/// Returns the path of every source file below a folder from the root of the repository, with
/// forward slashes, and its text.
fn files(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    read(&root().join(folder), &mut found);
    found
}

fn read(folder: &Path, found: &mut Vec<(String, String)>) {
    for path in entries(folder) {
        if path.is_dir() {
            read(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path)
                .unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
            let name = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().into_owned();
            found.push((name.replace('\\', "/"), text));
        }
    }
}

/// Splits source text into words, `::` and single characters.
fn words(text: &str) -> Vec<String> {
    let word = |token: Token| match token.kind {
        Kind::Word(word) => Some(word),
        Kind::Text(_) => None,
        Kind::Step => Some("::".to_owned()),
        Kind::Mark(mark) => Some(mark.to_string()),
    };
    scan::tokens(text).into_iter().filter_map(word).collect()
}

/// Removes items under `#[cfg(test)]` and `#[cfg(any(test, …))]`.
fn without_tests(words: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    let starts = |at: usize, with: &[&str]| {
        let mut here = words[at..].iter();
        with.iter().all(|word| here.next().is_some_and(|next| next == word))
    };
    while at < words.len() {
        if starts(at, &["#", "[", "cfg", "(", "test"])
            || starts(at, &["#", "[", "cfg", "(", "any", "(", "test"])
        {
            let close = words[at..].iter().position(|word| word == "]");
            at = item_end(words, close.map_or(words.len(), |close| at + close + 1));
        } else {
            kept.push(words[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the index after the item at `at`: after its `;`, or after its closing brace.
fn item_end(words: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (at, word) in words.iter().enumerate().skip(at) {
        match word.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        if depth == 0 && word == "}" {
            return at + 1;
        }
    }
    words.len()
}
