//! `docs`: the documentation for users, as it was when this program was built.

use std::io;

use clap::Args;
use serde_json::{Value, json};

use crate::fail::{Exit, Failure, VerbResult};
use crate::interrupt::runtime;
use crate::out::Out;
use crate::pager;
use model::name::nearest;
use model::text;
use sys::env;
use sys::exec::{ExecCommand, run_in_foreground};
use sys::signal::Signals;

/// Print a page of the documentation, or list the pages.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx docs\n  phalanx docs guide\n  phalanx docs manifest roles\n  \
    phalanx docs timeout\n\n\
    On a terminal the page is shown in $PAGER, or in less."
)]
pub(crate) struct DocsArgs {
    /// Page, or a word to list the sections that have it [default: a list of the pages].
    pub(crate) topic: Option<String>,
    /// Heading of a section of the page, in lower case with a dash between words.
    pub(crate) section: Option<String>,
}

/// Maximum number of sections that are listed for a word.
const MAX_SECTIONS: usize = 30;

/// A page of the documentation.
struct DocsPage {
    /// Its path below `docs`, without the extension.
    topic: &'static str,
    text: &'static str,
}

macro_rules! page {
    ($topic:literal) => {
        page!($topic, concat!("docs/", $topic, ".md"))
    };
    ($topic:literal, $file:expr) => {
        DocsPage { topic: $topic, text: include_str!(concat!("../../", $file)) }
    };
}

/// The pages in the order of the list.
const PAGES: [DocsPage; 27] = [
    page!("readme", "README.md"),
    page!("guide"),
    page!("manifest"),
    page!("profiles"),
    page!("dashboard"),
    page!("decisions"),
    page!("review"),
    page!("messages"),
    page!("lifecycle"),
    page!("events"),
    page!("mcp"),
    page!("acp"),
    page!("backends"),
    page!("hosts"),
    page!("platforms"),
    page!("macos"),
    page!("security"),
    page!("changelog"),
    page!("cli", "docs/cli/README.md"),
    page!("cli/teams"),
    page!("cli/members"),
    page!("cli/messages"),
    page!("cli/tasks"),
    page!("cli/requests"),
    page!("cli/watching"),
    page!("cli/places"),
    page!("cli/setup"),
];

/// The table that says what the pages are for.
const INDEX: &str = include_str!("../../docs/README.md");

/// Returns the topics with the purpose of each.
pub(super) fn topics() -> impl Iterator<Item = (&'static str, &'static str)> {
    PAGES.iter().map(|page| (page.topic, page.about()))
}

/// Prints a page, a section of it, or the list of pages.
pub(super) fn docs(out: &Out, args: &DocsArgs) -> VerbResult {
    let Some(topic) = &args.topic else { return list(out) };
    let Some(page) = PAGES.iter().find(|page| page.topic == topic) else {
        return list_sections(out, topic);
    };
    let shown = match &args.section {
        None => page.text,
        Some(section) => page.section(section).ok_or_else(|| {
            let known: Vec<String> = page.headings().map(|(_, _, name)| name).collect();
            let of = format!(" of `{topic}`");
            unknown("section", section, known.iter().map(String::as_str), &of)
        })?,
    };
    // The marks of generated parts are for the tests of the pages.
    let lines = shown.split_inclusive('\n').filter(|line| !line.starts_with("<!-- "));
    let shown: String = lines.collect();
    if out.json {
        out.print_document(&json!({ "topic": topic, "text": shown }))?;
    } else if !env::stdout_is_tty() || !is_paged(&shown)? {
        out.print_text(&shown)?;
    }
    Ok(Exit::DONE)
}

fn list(out: &Out) -> VerbResult {
    let document: Vec<Value> =
        topics().map(|(topic, about)| json!({ "topic": topic, "about": about })).collect();
    let line = |(topic, about): (&str, &str)| {
        format!("{topic:13} {}\n", text::short(about, out.width().saturating_sub(14)))
    };
    out.print(&document, || topics().map(line).collect())
}

/// Lists the sections that have this word, those with the word in their heading first.
fn list_sections(out: &Out, word: &str) -> VerbResult {
    let lower = word.to_lowercase();
    let mut found: Vec<(bool, &str, String)> = Vec::new();
    for page in &PAGES {
        let headings: Vec<(usize, usize, String)> = page.headings().collect();
        let ends = headings.iter().skip(1).map(|(at, ..)| *at).chain([page.text.len()]);
        for ((at, _, name), end) in headings.iter().zip(ends) {
            if page.text[*at..end].to_lowercase().contains(&lower) {
                found.push((!name.contains(&lower), page.topic, name.clone()));
            }
        }
    }
    if found.is_empty() {
        return Err(unknown("page or word", word, PAGES.iter().map(|page| page.topic), ""));
    }
    found.sort_by_key(|(is_text, ..)| *is_text);
    found.truncate(MAX_SECTIONS);
    let document: Vec<Value> = found
        .iter()
        .map(|(_, topic, section)| json!({ "topic": topic, "section": section }))
        .collect();
    let line =
        |(_, topic, section): &(bool, &str, String)| format!("phalanx docs {topic} {section}\n");
    out.print(&document, || found.iter().map(line).collect())
}

/// Shows a text in the pager; returns false if there is none.
fn is_paged(text: &str) -> Result<bool, Failure> {
    let Some(words) = pager::words(env::var, "-FRX") else { return Ok(false) };
    let mut words = words.into_iter();
    let pager = ExecCommand {
        program: words.next().unwrap_or_default(),
        args: words.collect(),
        stdin: text.as_bytes().to_vec(),
        ..ExecCommand::default()
    };
    let runtime = runtime()?;
    let _context = runtime.enter();
    // Ctrl-C is for the pager, which would be left on the terminal without its parent.
    let _signals: Result<Signals, io::Error> = Signals::new();
    Ok(run_in_foreground(&pager).is_ok())
}

fn unknown<'k>(what: &str, given: &str, known: impl Iterator<Item = &'k str>, of: &str) -> Failure {
    let known: Vec<&str> = known.collect();
    let given_line = text::line(given);
    let problem = format!("there is no {what} `{given_line}`{of}");
    let parts = || known.iter().filter(|name| name.contains(given) && !given.is_empty());
    let hint = match nearest(given, known.iter().copied()).or_else(|| parts().next().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if of.is_empty() => "see the pages with `phalanx docs`".to_owned(),
        None => format!("{what}s: {}", known.join(", ")),
    };
    Failure::usage(problem, &hint)
}

impl DocsPage {
    /// Returns what the page is for: the words of the index, or its first sentence.
    fn about(&self) -> &'static str {
        let links = [format!("[{}.md]", self.topic), format!("[{}/README.md]", self.topic)];
        let row = INDEX.lines().find(|line| links.iter().any(|link| line.contains(link)));
        let of_index = row.and_then(|row| row.strip_prefix("| ")?.split(" | ").next());
        let prose = || self.text.lines().skip(1).find(|line| !line.trim().is_empty());
        let sentence =
            |line: &'static str| line.split(". ").next().unwrap_or(line).trim_end_matches('.');
        of_index.or_else(|| prose().map(sentence)).unwrap_or_default()
    }

    /// Returns the offset, the level and the name of each heading.
    fn headings(&self) -> impl Iterator<Item = (usize, usize, String)> {
        let mut offset = 0;
        let mut in_code = false;
        self.text.split_inclusive('\n').filter_map(move |line| {
            let at = offset;
            offset += line.len();
            in_code ^= line.trim_start().starts_with("```");
            let level = line.chars().take_while(|c| *c == '#').count();
            (level > 0 && !in_code).then(|| (at, level, section_name(&line[level..])))
        })
    }

    /// Returns the section with this name, with those below it.
    fn section(&self, name: &str) -> Option<&'static str> {
        let mut headings = self.headings();
        let (start, level, _) = headings.find(|(_, _, found)| found == name)?;
        let end = headings.find(|(_, other, _)| *other <= level).map_or(self.text.len(), |h| h.0);
        self.text.get(start..end)
    }
}

/// Returns the name of a section: its heading as the anchor of a link.
fn section_name(heading: &str) -> String {
    let heading = heading.trim().to_lowercase();
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;
    use sys::fs;

    #[test]
    fn every_page_for_users_is_a_topic_with_a_purpose() {
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs"));
        let mut files = BTreeSet::from(["readme".to_owned()]);
        for (dir, prefix) in [(docs.to_owned(), ""), (docs.join("cli"), "cli/")] {
            let names = fs::names(&dir).expect("a directory");
            let pages = names.iter().filter_map(|name| name.strip_suffix(".md"));
            files.extend(pages.filter_map(|name| match (prefix, name) {
                // Its table is the list of topics.
                ("", "README") => None,
                (_, "README") => Some("cli".to_owned()),
                (prefix, name) => Some(format!("{prefix}{name}")),
            }));
        }
        assert_eq!(topics().map(|(topic, _)| topic.to_owned()).collect::<BTreeSet<_>>(), files);
        for (topic, about) in topics() {
            assert!(!about.is_empty() && !about.starts_with('['), "{topic}: {about}");
        }
    }

    #[test]
    fn section_ends_at_the_next_heading_of_its_level() {
        let page = DocsPage {
            topic: "t",
            text: "# T\n## A b\none\n```sh\n# no heading\n```\n### C\n## D\n",
        };
        assert_eq!(page.section("a-b"), Some("## A b\none\n```sh\n# no heading\n```\n### C\n"));
        assert_eq!(page.section("c"), Some("### C\n"));
        assert_eq!((page.section("no-heading"), page.section("")), (None, None));
    }
}
