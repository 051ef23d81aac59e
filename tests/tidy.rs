//! Architecture rules as tests on the source text, which the compiler does not check: access to the
//! OS, rooms, cycles, exports, file form, top-level names. Reasons: `docs/dev/architecture.md`.
#![allow(clippy::disallowed_methods, reason = "tests drive the real system")]

#[path = "tidy/catches.rs"]
mod catches;
#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/code_lines.rs"]
mod code_lines;
#[path = "tidy/cycles.rs"]
mod cycles;
#[path = "tidy/exports.rs"]
mod exports;
#[path = "tidy/references.rs"]
mod references;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/scan.rs"]
mod scan;
#[path = "tidy/type_names.rs"]
mod type_names;
#[path = "tidy/workflows.rs"]
mod workflows;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rules::{File, Problem};

#[test]
fn os_calls_and_libraries_are_used_only_in_their_folders() {
    every_file(rules::fences);
}

#[test]
fn no_command_goes_through_a_shell() {
    every_file(rules::shells);
}

#[test]
fn files_start_with_a_module_doc_and_stay_short() {
    every_file(rules::form);
}

#[test]
fn no_unfinished_code_and_no_lint_silenced_without_reason() {
    every_file(rules::leftovers);
}

#[test]
fn visible_top_level_matches_the_fixed_list() {
    judge(rules::top_level(&top_level_names()));
}

#[test]
fn code_lines_stay_below_the_limit() {
    let page = fs::read_to_string(root().join("docs/dev/architecture.md")).expect("a page");
    let limit = code_lines::limit(&page).expect("the page names a limit");
    let count: usize = sources(&root().join("src")).iter().map(code_lines::code_lines).sum();
    println!("code lines in src: {count}, at most {limit}");
    assert!(count > 10_000 && count <= limit, "code lines in src: {count}, at most {limit}");
}

/// Runs one rule over all of `src` and `tests` and reports every violation.
fn every_file(rule: fn(&File) -> Vec<Problem>) {
    let files: Vec<_> =
        ["src", "tests"].iter().flat_map(|folder| sources(&root().join(folder))).collect();
    // Without this check, finding no files would pass.
    assert!(
        files.iter().any(|f| f.name == "src/main.rs"),
        "src/main.rs not found under {}",
        root().display()
    );
    judge(files.iter().flat_map(rule).collect());
}

#[test]
fn tests_named_in_the_docs_exist() {
    let files: Vec<_> =
        ["src", "tests"].iter().flat_map(|folder| sources(&root().join(folder))).collect();
    let pages = ["docs", "docs/cli", "docs/dev"]
        .iter()
        .flat_map(|folder| entries(&root().join(folder)))
        .filter(|path| path.extension().is_some_and(|e| e == "md"));
    let text: String = pages.map(|path| fs::read_to_string(path).expect("a page")).collect();
    // Only test names have five or more parts.
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

/// The visible top-level names: from git if available, without ignored files, else from the folder,
/// as in an unpacked release.
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
    // Git still lists a file that was just deleted.
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
