//! Checks that references resolve: failure ids, pages, links with their anchors, files, modules and
//! tests. Reads README.md and the text files below `src`, `tests`, `scripts` and `docs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use regex::Regex;

use crate::{entries, root};

/// Folders of other programs' files.
const SKIPPED: [&str; 3] = [".venv", "node_modules", "target"];

/// The form of a link to another site.
const EXTERNAL: &str = r"^https://[a-z0-9-]+(\.[a-z0-9-]+)+(/[^\s]*)?$";

/// A file of the repository in a page, as the first word of code. A word with a placeholder is not
/// one.
const FILE: &str = r"`((?:src|tests|docs|fixtures|scripts)/[a-z0-9_./-]*[a-z0-9_])[ `]";

/// A text file of the repository.
struct Text {
    /// Path from the repository's root, with forward slashes.
    name: String,
    content: String,
}

#[test]
fn cited_failure_ids_are_defined() {
    let defined: BTreeSet<String> = failures().into_iter().map(|(id, _)| id).collect();
    assert!(defined.len() > 100, "docs/dev/failures.md defines {} ids", defined.len());
    none(undefined(&everything(), &defined));
}

#[test]
fn each_failure_is_defined_once_and_its_files_cite_it() {
    let path = Regex::new(r"`((?:src|tests)/[^`]+)`").expect("a pattern");
    let mut seen = BTreeSet::new();
    let mut broken = Vec::new();
    for (id, tests) in failures() {
        if !seen.insert(id.clone()) {
            broken.push(format!("{id} is defined twice"));
        }
        if tests.starts_with("no test: ") {
            continue;
        }
        let in_names = format!("{}_", id.to_lowercase().replace('-', "_"));
        let cited: Vec<&str> =
            path.captures_iter(&tests).filter_map(|found| Some(found.get(1)?.as_str())).collect();
        if cited.is_empty() {
            broken.push(format!("{id} names no file"));
        }
        for name in cited {
            let content = fs::read_to_string(root().join(name)).unwrap_or_default();
            if !content.contains(&in_names) && !content.contains(&id) {
                broken.push(format!("{id}: {name} does not cite it"));
            }
        }
    }
    none(broken);
}

#[test]
fn cited_pages_exist() {
    let mut texts = below("src");
    // Strings in tests may name pages that are made up.
    texts.extend(below("tests").into_iter().map(comments));
    texts.extend(below("scripts"));
    let from = Text { name: "docs/README.md".to_owned(), content: String::new() };
    none(broken(
        &texts,
        r"\bdocs/((?:(?:dev|cli)/)?[A-Za-z0-9_.-]+\.md(?:#[a-z0-9_-]+)?)",
        |_, page| !resolves(&from, page),
    ));
    // What `phalanx docs TOPIC SECTION` prints.
    none(broken(&below("src"), r"`phalanx docs ((?:cli/)?[a-z]+(?: [a-z0-9-]+)?)`", |_, cited| {
        let (topic, section) = cited.split_once(' ').unwrap_or((cited, ""));
        !resolves(&from, format!("{topic}.md#{section}").trim_end_matches('#'))
    }));
}

#[test]
fn files_named_in_pages_exist() {
    none(broken(&pages(), FILE, |_, file| !root().join(file).exists()));
}

/// A module is named by its file, a function by its name behind the modules that lead to it.
#[test]
fn modules_and_functions_named_in_pages_exist() {
    let sources: Vec<Text> = ["src", "tests"].into_iter().flat_map(below).collect();
    none(broken(&pages(), r"`([a-z0-9_]+(?:::[a-z0-9_]+)+)`", |_, path| !names(path, &sources)));
}

#[test]
fn links_between_pages_resolve() {
    let pages: Vec<Text> = pages().into_iter().map(without_code).collect();
    none(broken(&pages, r"\]\(([^)\s]+)\)", |page, link| !resolves(page, link)));
}

/// docs/cli has an index of its own.
#[test]
fn each_page_is_linked_once_by_its_index() {
    let index = |name: &str| text(name).content;
    let (docs, cli) = (index("docs/README.md"), index("docs/cli/README.md"));
    let mut broken = Vec::new();
    for page in pages() {
        let name = page.name.trim_start_matches("docs/");
        let (index, link) = match name.strip_prefix("cli/") {
            Some(verbs) if verbs != "README.md" => (&cli, verbs),
            _ => (&docs, name),
        };
        if name != "README.md" && index.matches(&format!("]({link})")).count() != 1 {
            broken.push(page.name);
        }
    }
    none(broken);
}

#[test]
fn each_protection_and_format_names_tests_that_exist() {
    let sources: Vec<Text> = ["src", "tests"].into_iter().flat_map(below).collect();
    let page = |name: &str| text(&format!("docs/{name}")).content;
    let (security, failures) = (page("security.md"), page("dev/failures.md"));
    let threats = first_cells(&failures, "| threat | tests |");
    assert_eq!(first_cells(&security, "| threat | protection |"), threats);
    let protections = without_test(&failures, "| threat | tests |", &sources);
    let formats = without_test(&page("dev/protocol.md"), "| what | test |", &sources);
    assert!(protections.0 > 10 && formats.0 > 3, "{} and {} rows", protections.0, formats.0);
    none([protections.1, formats.1].concat());
}

#[test]
fn nothing_outside_the_repository_is_cited() {
    let pattern = r"(?i)(\bseeds? 00|\bproduct\.md|\bissue [0-9]+)";
    none(broken(&everything(), pattern, |_, _| true));
}

#[test]
fn a_broken_reference_is_caught() {
    let page = |content: String| Text { name: "docs/dev/page.md".to_owned(), content };
    let defined = BTreeSet::from(["SD-10".to_owned()]);
    let cites = |id: &str| undefined(&[page(format!("see {id}, ECMA-48"))], &defined);
    assert_eq!(cites(&format!("SD-{}", 99)), [format!("docs/dev/page.md:1: SD-{}", 99)]);
    assert!(cites("SD-10").is_empty());
    let sources = [page("fn a_test(seed in 0..9) {".to_owned())];
    let rows =
        |cell: &str| without_test(&format!("| h |\n|---|\n| x | {cell} |\n"), "| h |", &sources);
    assert_eq!(rows("`a_test`"), (1, Vec::new()));
    assert_eq!(rows("`b_test`").1, ["no test is named b_test"]);
    assert_eq!(rows("none").1.len(), 1);
    let here = page(String::new());
    let outside = ["https:/nexte.st", "https://nexte", "http://nexte.st", "https://nexte.st/a b"];
    for link in ["gone.md", "#gone", "failures.md#gone", "../gone"].into_iter().chain(outside) {
        assert!(!resolves(&here, link), "{link}");
    }
    for link in
        ["failures.md", "failures.md#security-sec", "../../README.md", "https://nexte.st/a#b"]
    {
        assert!(resolves(&here, link), "{link}");
    }
    assert_eq!(anchors("# A b\n```\n# c\n```\n## `a` B\n"), ["a-b", "a-b-1"]);
    let cited = "`tests/tidy.rs` `src/gone.rs --all` `src/ops/NAME.rs` `src/**`";
    let gone = |_: &Text, file: &str| !root().join(file).exists();
    assert_eq!(broken(&[page(cited.to_owned())], FILE, gone), ["docs/dev/page.md:1: src/gone.rs"]);
    let source = |name: &str| Text {
        name: name.to_owned(),
        content: "fn a_test(seed in 0..9) {".to_owned(),
    };
    let sources = [source("tests/e2e/calls.rs"), source("src/ops/send/mod.rs")];
    for (path, is_named) in [
        ("calls::a_test", true),
        ("ops::send", true),
        ("ops::send::tests::a_test", true),
        ("calls::b_test", false),
        ("others::a_test", false),
        ("ops::gone", false),
    ] {
        assert_eq!(names(path, &sources), is_named, "{path}");
    }
}

#[track_caller]
fn none(broken: Vec<String>) {
    assert!(broken.is_empty(), "{} broken references\n{}\n", broken.len(), broken.join("\n"));
}

/// The rows of docs/dev/failures.md, as id and tests.
fn failures() -> Vec<(String, String)> {
    let row = Regex::new(r"^\| ([A-Z]{2,4}-[0-9]{2}) \| .* \| (.*) \|$").expect("a pattern");
    let page = text("docs/dev/failures.md").content;
    let rows = page.lines().filter_map(|line| row.captures(line));
    rows.map(|cells| (cells[1].to_owned(), cells[2].to_owned())).collect()
}

/// The rows below a table's head.
fn rows<'p>(page: &'p str, head: &str) -> Vec<&'p str> {
    let lines = page.lines().skip_while(|line| *line != head).skip(2);
    lines.take_while(|line| line.starts_with('|')).collect()
}

fn first_cells<'p>(page: &'p str, head: &str) -> Vec<&'p str> {
    let rows = rows(page, head).into_iter();
    rows.filter_map(|row| row.trim_start_matches("| ").split(" | ").next()).collect()
}

/// The number of rows below a table's head, and those whose last cell names no test, or one that
/// does not exist.
fn without_test(page: &str, head: &str, sources: &[Text]) -> (usize, Vec<String>) {
    let rows = rows(page, head);
    let named = Regex::new(r"`([a-z0-9_]+)`").expect("a pattern");
    let mut broken = Vec::new();
    for row in &rows {
        let cell = row.trim_end_matches(" |").rsplit(" | ").next().unwrap_or_default();
        let tests: Vec<&str> =
            named.captures_iter(cell).filter_map(|found| Some(found.get(1)?.as_str())).collect();
        let is_test = |name: &&str| {
            let head = format!("fn {name}(");
            sources.iter().any(|text| text.content.contains(&head))
        };
        if tests.is_empty() {
            broken.push(format!("no test: {row}"));
        }
        let missing = tests.iter().filter(|name| !is_test(name));
        broken.extend(missing.map(|name| format!("no test is named {name}")));
    }
    (rows.len(), broken)
}

/// Ids with a prefix of the defined ones that are not defined.
fn undefined(texts: &[Text], defined: &BTreeSet<String>) -> Vec<String> {
    let prefix = |id: &str| id.split('-').next().unwrap_or_default().to_owned();
    let prefixes: BTreeSet<String> = defined.iter().map(|id| prefix(id)).collect();
    broken(texts, r"\b([A-Z]{2,4}-[0-9]{2})\b", |_, id| {
        prefixes.contains(&prefix(id)) && !defined.contains(id)
    })
}

/// Matches of the first group of `pattern` that `is_broken` holds for, as `FILE:LINE: MATCH`.
fn broken(texts: &[Text], pattern: &str, is_broken: impl Fn(&Text, &str) -> bool) -> Vec<String> {
    let pattern = Regex::new(pattern).expect("a pattern");
    let mut found = Vec::new();
    for text in texts {
        for (at, line) in text.content.lines().enumerate() {
            for cited in pattern.captures_iter(line).filter_map(|groups| groups.get(1)) {
                if is_broken(text, cited.as_str()) {
                    found.push(format!("{}:{}: {}", text.name, at + 1, cited.as_str()));
                }
            }
        }
    }
    found
}

/// Returns true if the link of a page leads to a file, and to a heading in it if it has an anchor.
fn resolves(page: &Text, link: &str) -> bool {
    if link.contains(':') {
        return Regex::new(EXTERNAL).expect("a pattern").is_match(link);
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let here = Path::new(&page.name);
    let target = if path.is_empty() { here.to_owned() } else { here.with_file_name(path) };
    let target = root().join(target);
    if anchor.is_empty() {
        return target.exists();
    }
    let Ok(content) = fs::read_to_string(&target) else { return false };
    anchors(&content).iter().any(|known| known == anchor)
}

/// The anchors that GitHub makes of the headings of a page. A repeated one gets a number.
fn anchors(page: &str) -> Vec<String> {
    let page = without_code(Text { name: String::new(), content: page.to_owned() });
    let mut anchors = Vec::new();
    for line in page.content.lines().filter(|line| line.starts_with('#')) {
        let slug = slug(line);
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let mut free = [slug.clone()].into_iter().chain(numbered);
        anchors.extend(free.find(|anchor| !anchors.contains(anchor)));
    }
    anchors
}

/// Returns true if a path of modules leads to a file or to a function.
fn names(path: &str, sources: &[Text]) -> bool {
    // A test module can be a file or a part of one.
    let plain = |part: &&str| *part != "tests";
    let parts: Vec<&str> = path.split("::").filter(plain).collect();
    let (last, modules) = parts.split_last().expect("a name");
    let function = format!("fn {last}(");
    sources.iter().any(|text| {
        let folders = text.name.trim_end_matches(".rs").trim_end_matches("/mod");
        let folders: Vec<&str> = folders.split('/').filter(plain).collect();
        folders.ends_with(&parts)
            || (modules.iter().all(|module| folders.contains(module))
                && text.content.contains(&function))
    })
}

/// The anchor that GitHub makes of a heading.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn everything() -> Vec<Text> {
    let mut texts = vec![text("README.md")];
    texts.extend(["src", "tests", "docs"].into_iter().flat_map(below));
    texts
}

fn pages() -> Vec<Text> {
    let mut pages = vec![text("README.md")];
    pages.extend(below("docs").into_iter().filter(|text| text.name.ends_with(".md")));
    pages
}

/// The text files below a folder. Files that are not UTF-8 are left out.
fn below(folder: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                if !SKIPPED.iter().any(|skipped| path.ends_with(skipped)) {
                    folders.push(path);
                }
            } else if let Ok(content) = fs::read_to_string(&path) {
                let name = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy();
                texts.push(Text { name: name.replace('\\', "/"), content });
            }
        }
    }
    texts
}

fn text(name: &str) -> Text {
    let content = fs::read_to_string(root().join(name));
    Text { name: name.to_owned(), content: content.unwrap_or_else(|e| panic!("read {name}: {e}")) }
}

/// The page with empty lines in place of its code blocks.
fn without_code(page: Text) -> Text {
    let mut content = String::with_capacity(page.content.len());
    let mut in_code = false;
    for line in page.content.lines() {
        let is_fence = line.trim_start().starts_with("```");
        if !in_code && !is_fence {
            content.push_str(line);
        }
        content.push('\n');
        in_code ^= is_fence;
    }
    Text { content, ..page }
}

/// The file with nothing but its line comments.
fn comments(text: Text) -> Text {
    let lines = text.content.lines().map(|line| line.find("//").map_or("", |at| &line[at..]));
    let content = lines.collect::<Vec<_>>().join("\n");
    Text { content, ..text }
}
