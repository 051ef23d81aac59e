//! The rules of the house as tests: import direction, the seams to the OS, file form, the visible top level.
//! Judges the text of the source tree only; `docs/architecture.md` says why the rules are what they are.
#![allow(clippy::disallowed_methods, reason = "tests drive the real system")]

#[path = "tidy/catches.rs"]
mod catches;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/scan.rs"]
mod scan;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rules::{File, Problem};

#[test]
fn imports_go_down_only() {
    every_file(rules::imports);
}

#[test]
fn the_page_shows_the_table_that_is_enforced() {
    let page = root().join("docs/architecture.md");
    judge(rules::table(
        &fs::read_to_string(&page).unwrap_or_else(|e| panic!("read {}: {e}", page.display())),
    ));
}

#[test]
fn the_os_is_reached_through_sys_and_each_library_from_its_place() {
    every_file(rules::fences);
}

#[test]
fn no_command_goes_through_a_shell() {
    every_file(rules::shells);
}

#[test]
fn files_open_with_their_purpose_and_stay_short() {
    every_file(rules::form);
}

#[test]
fn nothing_is_left_half_done_or_silenced_without_a_reason() {
    every_file(rules::leftovers);
}

#[test]
fn the_visible_top_level_is_the_fixed_list() {
    judge(rules::top_level(&top_level_names()));
}

/// Runs one rule over all of `src` and `tests` and shows every break at once.
fn every_file(rule: fn(&File) -> Vec<Problem>) {
    let files: Vec<_> =
        ["src", "tests"].iter().flat_map(|folder| sources(&root().join(folder))).collect();
    // A walk that finds nothing would pass everything.
    assert!(
        files.iter().any(|f| f.name == "src/lib.rs"),
        "src/lib.rs not found under {}",
        root().display()
    );
    judge(files.iter().flat_map(rule).collect());
}

/// Where a page says which test shows something, there is such a test.
#[test]
fn the_tests_that_the_pages_name_are_there() {
    let files: Vec<_> =
        ["src", "tests"].iter().flat_map(|folder| sources(&root().join(folder))).collect();
    let pages = entries(&root().join("docs"))
        .into_iter()
        .filter(|path| path.extension().is_some_and(|e| e == "md"));
    let text: String = pages.map(|path| fs::read_to_string(path).expect("a page")).collect();
    // Nothing else on the pages has a name as long as a sentence.
    let is_long = |name: &&str| name.split('_').filter(|part| !part.is_empty()).count() >= 5;
    let name = |word: &str| word.rsplit("::").next().filter(is_long).map(str::to_owned);
    let is_plain = |word: &&str| {
        word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_:".contains(c))
    };
    let named: Vec<String> = text.split('`').filter(is_plain).filter_map(name).collect();
    assert!(named.len() > 10, "the pages name tests: {named:?}");
    let there = |name: &String| files.iter().any(|file| file.defines(name));
    assert_eq!(
        named.into_iter().filter(|name| !there(name)).collect::<Vec<_>>(),
        Vec::<String>::new()
    );
}

fn judge(problems: Vec<Problem>) {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "{} break(s) of the house rules\n\n{}\n",
        lines.len(),
        lines.join("\n")
    );
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sources(folder: &Path) -> Vec<File> {
    let (folders, files): (Vec<_>, Vec<_>) =
        entries(folder).into_iter().partition(|path| path.is_dir());
    let mut found: Vec<_> = folders.iter().flat_map(|inner| sources(inner)).collect();
    found.extend(files.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).map(
        |path| {
            let text =
                fs::read_to_string(path).unwrap_or_else(|e| panic!("read {}: {e}", path.display()));
            let name =
                path.strip_prefix(root()).unwrap_or(path).to_string_lossy().replace('\\', "/");
            File::new(&name, &text)
        },
    ));
    found
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let list = fs::read_dir(folder).unwrap_or_else(|e| panic!("list {}: {e}", folder.display()));
    let mut paths: Vec<_> = list.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// What a visitor sees: git's view where there is one (ignored files are not part of the repository), else the
/// folder itself, as in an unpacked release.
fn top_level_names() -> Vec<String> {
    let git = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let listed = Command::new("git").args(git).current_dir(root()).output();
    let listed = listed.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let mut names: Vec<String> = listed
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .map(|text| {
            text.split('\0').filter_map(|path| Some(path.split('/').next()?.to_owned())).collect()
        })
        .unwrap_or_default();
    // A file that git still lists but that was just removed is no longer there to be seen.
    names.retain(|name| !name.is_empty() && root().join(name).exists());
    if names.is_empty() {
        let name = |path: &PathBuf| Some(path.file_name()?.to_string_lossy().into_owned());
        names = entries(root()).iter().filter_map(name).filter(|name| name != "target").collect();
    }
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names.dedup();
    names
}
