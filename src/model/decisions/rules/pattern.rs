//! Matches a pattern against a tool use, with three results: yes, no or maybe. Denying patterns
//! match as broadly as possible, allowing patterns as narrowly as possible.

use std::collections::VecDeque;

use serde_json::Value;

use super::rule::{LONGEST, Rule};
use super::shell::{self, Line, Part, Word};

/// Tools that change files, all covered by `Edit(…)`.
const EDITORS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];
/// Tools that read files, all covered by `Read(…)`.
const READERS: [&str; 5] = ["Read", "Grep", "Glob", "LS", "NotebookRead"];

/// A single use of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Use<'a> {
    pub tool: &'a str,
    pub input: &'a Value,
    /// Home directory that `~` in patterns stands for.
    pub home: Option<&'a str>,
    /// Working directory of the member.
    pub cwd: &'a str,
}

/// The result of matching a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    No,
    Maybe,
    Yes,
}

pub(super) enum What {
    Shell(Line),
    File {
        path: Option<String>,
        /// False if the path may lead elsewhere than it appears to.
        tidy: bool,
    },
    Host(Option<String>),
    Other,
}

/// A tool use, parsed once for all patterns.
pub(super) struct Act<'a> {
    used: &'a Use<'a>,
    what: What,
}

/// Returns true for tools that `Edit(…)` covers.
pub(super) fn changes_files(tool: &str) -> bool {
    EDITORS.contains(&tool)
}

/// Returns true if patterns for one tool may also cover uses of the other.
pub(super) fn same_family(one: &str, other: &str) -> bool {
    let both = |family: &[&str]| family.contains(&one) && family.contains(&other);
    let server = |name: &str| name.split("__").take(2).collect::<Vec<_>>().join("__");
    one == other
        || both(&EDITORS)
        || both(&READERS)
        || (one.starts_with("mcp__") && server(one) == server(other))
}

impl<'a> Act<'a> {
    pub(super) fn of(used: &'a Use<'a>) -> Act<'a> {
        let text = |key: &str| used.input.get(key).and_then(Value::as_str);
        let what = match used.tool {
            "Bash" => What::Shell(shell::split(text("command").unwrap_or_default())),
            "WebFetch" => What::Host(text("url").and_then(host)),
            // The glob pattern may lead to any directory.
            "Glob" => What::File { path: None, tidy: false },
            tool if EDITORS.contains(&tool) || READERS.contains(&tool) => {
                let given = ["file_path", "notebook_path", "path"].iter().find_map(|key| text(key));
                let path = given.filter(|p| p.len() <= LONGEST && !p.starts_with('~'));
                let rough =
                    |p: &str| p.split('/').any(|part| part == "..") || p.contains(char::is_control);
                What::File {
                    path: path.map(|p| absolute(used.cwd, p)),
                    tidy: path.is_some_and(|p| !rough(p)),
                }
            }
            _ => What::Other,
        };
        Act { used, what }
    }

    pub(super) fn what(&self) -> &What {
        &self.what
    }

    /// Matches a denying or asking pattern against all parts of the use, and returns the strongest
    /// match.
    pub(super) fn fits(&self, rule: &Rule) -> Fit {
        if !names(&rule.tool, self.used.tool) {
            return Fit::No;
        }
        let Some(spec) = &rule.spec else { return Fit::Yes };
        match &self.what {
            What::Shell(line) => {
                let pattern = Command::of(spec);
                let fit = line.parts.iter().map(|part| pattern.fits_somewhere(part)).max();
                let unseen = if line.clear { Fit::No } else { Fit::Maybe };
                fit.unwrap_or(Fit::No).max(unseen)
            }
            What::File { path: Some(path), tidy } => {
                let pattern = path_pattern(spec, self.used, true);
                match pattern.map(|pattern| path_fits(&pattern, path)) {
                    Some(true) => Fit::Yes,
                    Some(false) if *tidy => Fit::No,
                    Some(false) | None => Fit::Maybe,
                }
            }
            What::Host(Some(host)) => match domain_fits(spec, host) {
                true => Fit::Yes,
                false => Fit::No,
            },
            What::File { path: None, .. } | What::Host(None) | What::Other => Fit::Maybe,
        }
    }

    /// Returns a clearly matching pattern for each part of the use; `None` if any part has none.
    pub(super) fn allowed_by<'r>(
        &self,
        rules: &[(&'r str, &'r Rule)],
    ) -> Option<Vec<(&'r str, &'r Rule)>> {
        let find = |fits: &dyn Fn(Option<&str>) -> bool| {
            let fits = |(_, rule): &&(&str, &Rule)| {
                names(&rule.tool, self.used.tool) && fits(rule.spec.as_deref())
            };
            rules.iter().find(fits).copied()
        };
        match &self.what {
            What::Shell(line) if !line.clear => None,
            What::Shell(line) => {
                let parts = line.parts.iter().filter(|part| !part.hidden);
                let allows = |part: &Part| {
                    find(&|spec| match spec {
                        // Commands that run other commands must be allowed by name.
                        None => !part.runner,
                        Some(spec) => Command::of(spec).fits(&part.words, false) == Fit::Yes,
                    })
                };
                parts.map(allows).collect()
            }
            What::File { path: Some(path), tidy: true } => one(find(&|spec| {
                spec.is_none_or(|spec| {
                    path_pattern(spec, self.used, false)
                        .is_some_and(|pattern| path_fits(&pattern, path))
                })
            })),
            What::Host(Some(host)) => one(find(&|spec| spec.is_none_or(|s| domain_fits(s, host)))),
            What::File { .. } | What::Host(None) | What::Other => one(find(&|spec| spec.is_none())),
        }
    }
}

fn one<T>(found: Option<T>) -> Option<Vec<T>> {
    found.map(|found| vec![found])
}

/// Returns true if the pattern's tool is, or covers, `tool`.
fn names(pattern: &str, tool: &str) -> bool {
    if let Some(rest) = tool.strip_prefix(pattern.trim_end_matches('*').trim_end_matches("__"))
        && pattern.starts_with("mcp__")
        && pattern.trim_end_matches("__*").matches("__").count() == 1
    {
        return rest.is_empty() || rest.starts_with("__");
    }
    pattern == tool
        || (pattern == "Edit" && EDITORS.contains(&tool))
        || (pattern == "Read" && READERS.contains(&tool))
}

/// A pattern for a shell command: its words, and whether further words may follow.
struct Command<'s> {
    words: Vec<&'s str>,
    open: bool,
}

impl<'s> Command<'s> {
    fn of(spec: &'s str) -> Command<'s> {
        let (stem, open) = match spec.strip_suffix(":*").or_else(|| spec.strip_suffix(" *")) {
            Some(stem) => (stem, true),
            None => (spec, spec.ends_with('*')),
        };
        Command { words: stem.split_ascii_whitespace().collect(), open }
    }

    /// Matches the command itself or any command that a runner may run.
    fn fits_somewhere(&self, part: &Part) -> Fit {
        let starts = if part.runner { part.words.len() } else { 1 };
        (0..starts).map(|from| self.fits(&part.words[from..], true)).max().unwrap_or(Fit::No)
    }

    /// Matches the words of a command. With `wide`, a program given by its path matches its base
    /// name.
    fn fits(&self, words: &[Word], wide: bool) -> Fit {
        for (at, pattern) in self.words.iter().enumerate() {
            let Some(word) = words.get(at) else { return Fit::No };
            if word.hazy {
                return Fit::Maybe;
            }
            let name = word.text.rsplit('/').next().unwrap_or_default();
            let by_path = wide && at == 0 && word_fits(pattern, name);
            if !by_path && !word_fits(pattern, &word.text) {
                return Fit::No;
            }
        }
        let more = &words[self.words.len()..];
        match (self.open || more.is_empty(), more.iter().all(|word| word.hazy)) {
            (true, _) => Fit::Yes,
            (false, true) => Fit::Maybe,
            (false, false) => Fit::No,
        }
    }
}

/// Matches a word against a pattern in which `*` stands for any characters.
fn word_fits(pattern: &str, word: &str) -> bool {
    let mut pieces: VecDeque<&str> = pattern.split('*').collect();
    let (Some(first), last) = (pieces.pop_front(), pieces.pop_back()) else {
        return pattern == word;
    };
    let Some(last) = last else { return pattern == word };
    let Some(mut rest) = word.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    true
}

/// A part of a path pattern, between two slashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Segment<'p> {
    /// A directory of the base, whose `*` is an ordinary character.
    Literal(&'p str),
    /// A name in which `*` stands for any characters.
    Name(&'p str),
    /// `**`: any number of directories.
    AnyDepth,
}

/// Makes a file pattern absolute: `~/x` is relative to the home directory, `/x` and `//x` are
/// absolute, `./x` and `a/x` are relative to the working directory. A bare name matches in any
/// directory below the working directory, or, if it `forbids`, anywhere. `None` if the home
/// directory is not known.
fn path_pattern<'p>(spec: &'p str, used: &'p Use, forbids: bool) -> Option<Vec<Segment<'p>>> {
    if let Some(rest) = spec.strip_prefix('~') {
        return used.home.map(|home| below(&directories(home), rest));
    }
    if spec.starts_with('/') {
        return Some(below(&[], spec));
    }
    let here = directories(used.cwd);
    if spec.contains('/') {
        return Some(below(&here, spec));
    }
    let base = if forbids { Vec::new() } else { here };
    Some(below(&[base.as_slice(), &[Segment::AnyDepth]].concat(), spec))
}

/// Returns the directories of an absolute path.
fn directories(path: &str) -> Vec<Segment<'_>> {
    let mut found = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(found.pop()),
            name => found.push(Segment::Literal(name)),
        }
    }
    found
}

/// Appends the parts of a pattern to its base. Resolves `.` and `..` lexically.
fn below<'p>(base: &[Segment<'p>], spec: &'p str) -> Vec<Segment<'p>> {
    let mut segments = base.to_vec();
    for part in spec.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(segments.pop()),
            "**" => segments.push(Segment::AnyDepth),
            name => segments.push(Segment::Name(name)),
        }
    }
    segments
}

/// Resolves `.`, `..` and repeated slashes lexically.
fn absolute(base: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Matches an absolute path without `.` and `..` against a pattern.
fn path_fits(pattern: &[Segment<'_>], path: &str) -> bool {
    // Tracks which prefixes of the pattern match the path so far, which bounds the time by pattern
    // times path length.
    let mut reach = vec![false; pattern.len() + 1];
    reach[0] = true;
    skip_any_depth(pattern, &mut reach);
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let mut next = vec![false; pattern.len() + 1];
        for (at, segment) in pattern.iter().enumerate().filter(|(at, _)| reach[*at]) {
            match segment {
                Segment::AnyDepth => next[at] = true,
                Segment::Literal(literal) => next[at + 1] |= *literal == name,
                Segment::Name(pattern) => next[at + 1] |= word_fits(pattern, name),
            }
        }
        skip_any_depth(pattern, &mut next);
        reach = next;
    }
    reach[pattern.len()]
}

fn skip_any_depth(pattern: &[Segment<'_>], reach: &mut [bool]) {
    for at in 0..pattern.len() {
        if reach[at] && pattern[at] == Segment::AnyDepth {
            reach[at + 1] = true;
        }
    }
}

/// Returns the host of an HTTP URL; `None` if it is not unambiguous.
fn host(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = authority.rsplit_once(':').map_or(authority, |(name, port)| {
        if port.chars().all(|c| c.is_ascii_digit()) { name } else { authority }
    });
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let name = name.strip_suffix('.').unwrap_or(name);
    (!name.is_empty() && name.chars().all(plain)).then(|| name.to_ascii_lowercase())
}

fn domain_fits(spec: &str, host: &str) -> bool {
    word_fits(&spec.strip_prefix("domain:").unwrap_or(spec).to_ascii_lowercase(), host)
}
