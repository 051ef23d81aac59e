//! The architecture rules, as data and pure functions over the text of a file.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;

use crate::scan::{self, Kind, Path, Token};

/// Paths allowed only under some folders, with the alternative elsewhere; which crate uses which
/// library is its `Cargo.toml`. A path of one segment is a crate and matches at the beginning of a
/// path; a longer one matches anywhere.
const FENCES: &[(&str, &[&str], &str)] = &[
    ("std::fs", SYS, "use sys::fs"),
    ("tokio::fs", SYS, "use sys::fs"),
    ("process::Command", SYS, "use sys::exec"),
    ("tokio::process", SYS, "use sys::exec"),
    ("std::env", SYS, "use sys::env; only cli asks it"),
    ("SystemTime::now", SYS, "take the time as an argument, or ask sys::clock"),
    ("Instant::now", SYS, "take the time as an argument, or ask sys::clock"),
    ("thread::sleep", SYS, "wait on a named condition with a deadline, through sys::clock"),
    ("Timestamp::now", SYS, "take the time as an argument, or ask sys::clock"),
    ("Zoned::now", SYS, "take the time as an argument, or ask sys::clock"),
    (
        "clap",
        &["src/cli/", "src/model/board/task/fields.rs"],
        "parse in cli and pass typed values down",
    ),
    ("rmcp", &["src/cli/mcp/"], "speak MCP in cli::mcp"),
    (
        "ratatui",
        &[
            "src/ui/dashboard/",
            "src/ui/review/",
            "src/cli/terminal/",
            "src/cli/watch/",
            "src/diff/",
        ],
        "draw in ui::dashboard or ui::review",
    ),
    ("tmux_interface", &["src/backend/tmux/"], "let backend::tmux build the command"),
];

const SYS: &[&str] = &["src/sys/"];

/// The complete list of visible top-level names.
const TOP_LEVEL: [&str; 8] =
    ["Cargo.lock", "Cargo.toml", "README.md", "docs", "fixtures", "scripts", "src", "tests"];

const LONGEST_FILE: usize = 600;

/// A source file, tokenized once for all rules.
pub(crate) struct File {
    /// Path relative to the root of the repository, with forward slashes.
    pub(crate) name: String,
    pub(crate) text: String,
    tokens: Vec<Token>,
    paths: Vec<Path>,
}

impl File {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        let tokens = scan::tokens(text);
        let paths = scan::paths(&tokens);
        Self { name: name.to_owned(), text: text.to_owned(), tokens, paths }
    }

    /// Returns whether the file defines a function of this name.
    pub(crate) fn defines(&self, name: &str) -> bool {
        self.text.contains(&format!("fn {name}("))
    }

    fn is_source(&self) -> bool {
        self.name.starts_with("src/")
    }

    fn is_under(&self, folders: &[&str]) -> bool {
        folders.iter().any(|folder| self.name.starts_with(folder))
    }

    fn problem(&self, line: usize, rule: &'static str, found: String, remedy: &str) -> Problem {
        Problem { file: self.name.clone(), line, rule, found, remedy: remedy.to_owned() }
    }
}

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Problem {
    file: String,
    line: usize,
    rule: &'static str,
    found: String,
    remedy: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}:{}: {}: {}\n    do: {}",
            self.file, self.line, self.rule, self.found, self.remedy
        )
    }
}

/// OS calls and `unsafe` are allowed only in `sys`, and each large library only in its module.
pub(crate) fn fences(file: &File) -> Vec<Problem> {
    if !file.is_source() {
        return Vec::new();
    }
    let breaks = FENCES.iter().filter(|(_, inside, _)| !file.is_under(inside)).flat_map(
        |(fenced, inside, remedy)| {
            let hits = file.paths.iter().filter(move |path| spells(&path.segments, fenced));
            hits.map(move |path| {
                let found = format!(
                    "`{}` belongs in {} only",
                    path.segments.join("::"),
                    inside.join(" and ")
                );
                file.problem(path.line, "fence", found, remedy)
            })
        },
    );
    let unsafes = file.tokens.iter().filter(|t| t.is("unsafe") && !file.is_under(SYS)).map(|t| {
        file.problem(
            t.line,
            "fence",
            "`unsafe` belongs in src/sys/ only".into(),
            "put a safe function into sys",
        )
    });
    unique(breaks.chain(unsafes))
}

/// Returns whether the path contains `fenced`, or imports it with a `*`.
fn spells(path: &[String], fenced: &str) -> bool {
    let pieces: Vec<_> = fenced.split("::").collect();
    let starts = |window: &[String]| window.iter().zip(&pieces).all(|(a, b)| a == b);
    match (path, pieces.as_slice()) {
        ([first, ..], [only]) => first == only,
        ([.., last, star], [outer, ..]) if star == "*" && last == outer => true,
        _ => path.windows(pieces.len()).any(starts),
    }
}

/// The files that name a shell. Hooks from the settings of Claude Code are shell lines; the scripts
/// for hosts are constants. Nothing is inserted into either. The processes of other programs become
/// the text of a manifest.
const SHELLS: [&str; 3] =
    ["src/config/process_file/list.rs", "src/hooks/run.rs", "src/remote/script.rs"];

/// A command line is an argument vector, so that no name can become shell syntax.
pub(crate) fn shells(file: &File) -> Vec<Problem> {
    let in_tests = scan::test_lines(&file.tokens);
    let is_test_file = file.name.ends_with("/tests.rs") || file.name.contains("/tests/");
    if !file.is_source() || is_test_file || SHELLS.contains(&file.name.as_str()) {
        return Vec::new();
    }
    let texts: Vec<(usize, &Token, &str)> = (file.tokens.iter().enumerate())
        .filter(|(_, t)| {
            !in_tests.iter().any(|lines: &RangeInclusive<usize>| lines.contains(&t.line))
        })
        .filter_map(|(at, t)| {
            if let Kind::Text(text) = &t.kind { Some((at, t, text.as_str())) } else { None }
        })
        .collect();
    let report = |line| {
        let remedy = "run the program's argv directly through sys::exec";
        file.problem(
            line,
            "no shell (SEC-11)",
            "a command is handed to a shell as text".into(),
            remedy,
        )
    };
    let in_one =
        texts.iter().filter(|(_, _, text)| is_shell_line(text)).map(|(_, t, _)| report(t.line));
    // `Command::new("sh").arg("-c")`, `["bash", "-c", …]`: two literals with little between them.
    let in_two = texts.windows(2).filter(|pair| {
        let close = pair[1].0 - pair[0].0 <= 10;
        close && is_shell(pair[0].2) && is_command_flag(pair[1].2)
    });
    unique(in_one.chain(in_two.map(|pair| report(pair[0].1.line))))
}

fn is_shell_line(text: &str) -> bool {
    let words: Vec<_> = text.split(|c: char| c.is_whitespace() || "'\"`".contains(c)).collect();
    words.windows(2).any(|pair| is_shell(pair[0]) && is_command_flag(pair[1]))
}

fn is_shell(word: &str) -> bool {
    matches!(word.rsplit('/').next(), Some("sh" | "bash" | "dash" | "zsh" | "ksh" | "fish"))
}

/// `-c`, and clusters such as `-lc`.
fn is_command_flag(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or_default();
    letters.contains('c') && letters.chars().all(|c| c.is_ascii_lowercase()) && letters.len() <= 4
}

/// The first line is `//!`, and the file is at most [`LONGEST_FILE`] lines long.
pub(crate) fn form(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    let purpose = file.text.lines().next().and_then(|line| line.strip_prefix("//!"));
    if purpose.is_none_or(|words| words.trim().is_empty()) {
        let remedy = "say in the first line what the file provides";
        problems.push(file.problem(1, "file form", "the first line is not `//! …`".into(), remedy));
    }
    let lines = file.text.lines().count();
    if lines > LONGEST_FILE {
        let found = format!("{lines} lines, {LONGEST_FILE} are allowed");
        problems.push(file.problem(
            LONGEST_FILE + 1,
            "file form",
            found,
            "split it: it tells two stories",
        ));
    }
    problems
}

/// No unfinished code, no disabled test, no lint silenced without a reason.
pub(crate) fn leftovers(file: &File) -> Vec<Problem> {
    const RULE: &str = "leftover";
    let tokens = &file.tokens;
    let unfinished = tokens.windows(2).filter(|pair| pair[1].mark('!')).filter_map(|pair| {
        let name = ["todo", "unimplemented", "dbg"].into_iter().find(|name| pair[0].is(name))?;
        Some(file.problem(
            pair[0].line,
            RULE,
            format!("`{name}!` in the tree"),
            "finish it or take it out",
        ))
    });
    let attributes = scan::attributes(tokens)
        .into_iter()
        .flat_map(|inside| inside.clone().map(move |at| (inside.start, at)));
    let silenced = attributes.filter_map(|(start, at)| {
        let token = &tokens[at];
        if token.is("ignore") && (at == start || tokens[start].is("cfg_attr")) {
            // An ignored test that another test runs as a helper process is allowed.
            let reason = tokens.get(at + 2).map(|t| &t.kind);
            if matches!(reason, Some(scan::Kind::Text(text)) if text.starts_with("helper process of ")) {
                return None;
            }
            let remedy = "make the test pass everywhere, or skip loudly inside it";
            return Some(file.problem(token.line, RULE, "`#[ignore]` switches a test off".into(), remedy));
        }
        let level = ["allow", "expect"].into_iter().find(|level| token.is(level))?;
        // `.expect(` inside an attribute is a method call.
        tokens.get(at + 1).filter(|t| t.mark('(') && !tokens[at - 1].mark('.'))?;
        let reasoned = tokens[at..scan::closing(tokens, at + 1)].iter().any(|t| t.is("reason"));
        let remedy = "add reason = \"…\", or fix what the lint says";
        (!reasoned).then(|| file.problem(token.line, RULE, format!("`{level}(…)` without a reason"), remedy))
    });
    unique(unfinished.chain(silenced))
}

/// The visible top-level names, without dot-files, match the fixed list.
pub(crate) fn top_level(names: &[String]) -> Vec<Problem> {
    let problem = |name: &str, found: &str, remedy: &str| Problem {
        file: name.to_owned(),
        line: 1,
        rule: "visible top level",
        found: found.to_owned(),
        remedy: remedy.to_owned(),
    };
    let strangers = names.iter().filter(|name| !TOP_LEVEL.contains(&name.as_str())).map(|name| {
        problem(
            name,
            "not on the fixed list",
            "move it under docs, scripts or fixtures, or make it a dot-file",
        )
    });
    let missing = TOP_LEVEL
        .iter()
        .filter(|name| !names.iter().any(|n| n == *name))
        .map(|name| problem(name, "on the fixed list but not there", "put it back"));
    unique(strangers.chain(missing))
}

/// Sorts and deduplicates: a path in a `use` group can break the same rule twice on one line.
fn unique(problems: impl Iterator<Item = Problem>) -> Vec<Problem> {
    problems.collect::<BTreeSet<_>>().into_iter().collect()
}
