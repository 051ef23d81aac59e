//! Tests of the list of checks. The end-to-end tests run the checks.

use std::collections::BTreeSet;

use super::CHECKS;
use super::check::{CheckFault, HelperRole, require, wait_for};

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/macos.md"));
const MACOS: [&str; 3] = [
    include_str!("../macos/mod.rs"),
    include_str!("../macos/process.rs"),
    include_str!("../macos/watch.rs"),
];

/// Returns the first word in backquotes of each row of the page's table of functions, and the rest
/// of the row.
fn rows() -> Vec<(&'static str, &'static str)> {
    let lines = PAGE.lines().filter_map(|line| line.strip_prefix("| `"));
    lines.filter_map(|line| line.split_once('`')).collect()
}

#[test]
fn the_page_names_each_function_of_macos_and_each_check() {
    let source = MACOS.concat();
    let functions = source.lines().filter_map(|line| {
        let (_, name) = line.split_once("fn ").or_else(|| line.split_once("struct "))?;
        line.starts_with("pub").then(|| name.split(['(', '<', ' ']).next())?
    });
    let listed: BTreeSet<&str> = rows().into_iter().map(|(name, _)| name).collect();
    let missing: Vec<&str> = functions.filter(|name| !listed.contains(name)).collect();
    assert_eq!(missing, Vec::<&str>::new(), "docs/macos.md has no row for them");
    let unnamed = CHECKS.iter().filter(|check| !PAGE.contains(&format!("`{}`", check.name)));
    let unnamed: Vec<&str> = unnamed.map(|check| check.name).collect();
    assert_eq!(unnamed, Vec::<&str>::new(), "docs/macos.md does not name these checks");
}

#[test]
fn an_error_fails_a_check_with_its_causes() {
    let missing = std::fs::read("/no/such/file").expect_err("not there");
    let text = missing.to_string();
    let error = crate::fs::FsError::io("read", "/no/such/file".as_ref(), missing);
    let expected = format!("cannot read /no/such/file: {text}");
    assert_eq!(CheckFault::from(error), CheckFault::Failed(expected));
    assert_eq!(require(false, "no"), Err(CheckFault::Failed("no".to_owned())));
    assert!(wait_for("nothing", || true).is_ok());
}

#[test]
fn roles_of_helpers_are_parsed_as_they_are_written() {
    for role in [HelperRole::Wait, HelperRole::Hold, HelperRole::Supervise] {
        let word: &'static str = role.into();
        assert_eq!(word.parse(), Ok(role));
    }
}
