//! Markdown check lists: `- [ ] text` is a task and `- [x] text` one that is done. An item is
//! blocked by the items below it. Marks of other programs are read as open tasks, with a note:
//! `- [-]` and `- [~]` for a task in progress, and `- [ ]*` for an optional one.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use regex::{Captures, Regex};

use super::fault_list::FaultList;
use super::words::{slug, subject};
use crate::{ConfigError, LineCounter};
use model::board::task_definition::{FileNote, TaskDefinition, TaskFile, check_key};

/// Maximum length of the text in a key, in characters.
const LONGEST_SLUG: usize = 80;

/// A check box and the text that belongs to it.
struct Item {
    line: usize,
    is_done: bool,
    /// The item above it.
    parent: Option<usize>,
    /// Bytes of its text, from the box to the first list below.
    start: usize,
    end: usize,
}

/// A list item that is open at a position of the text.
struct OpenItem {
    end: usize,
    /// The check box of the item.
    own: Option<usize>,
    /// The check box that it is below.
    above: Option<usize>,
}

pub(super) fn parse(stem: &str, text: &str) -> Result<TaskFile, Vec<ConfigError>> {
    let mut faults = FaultList::default();
    let items = items(text);
    let mut tasks: Vec<TaskDefinition> = Vec::with_capacity(items.len());
    let mut lines_of_keys: BTreeMap<String, usize> = BTreeMap::new();
    let mut notes = Vec::new();
    for item in &items {
        let raw = text.get(item.start..item.end).unwrap_or_default();
        let (raw, note) = match raw.strip_prefix('*') {
            Some(raw) => (raw, Some("marked as optional; taken like the others")),
            None => (raw, None),
        };
        let mark = item.start.checked_sub(2).and_then(|at| text.get(at..at + 1));
        let note = note.or(match mark {
            Some("-" | "~") => Some("marked as in progress; taken as open"),
            _ => None,
        });
        notes.extend(note.map(|note| FileNote { line: item.line, text: note.to_owned() }));
        let task = definition(stem, item, raw, &mut faults);
        if let Some(line) = lines_of_keys.insert(task.key.clone(), item.line)
            && !task.key.is_empty()
        {
            let message = format!(
                "the item has the key `{}`, as that in line {line}; give one of them a key: `{{#KEY}}`",
                task.key
            );
            faults.add(item.line, 1, message);
        }
        tasks.push(task);
    }
    for (at, item) in items.iter().enumerate() {
        if let Some(parent) = item.parent {
            let key = tasks[at].key.clone();
            tasks[parent].after.push(key);
        }
    }
    faults.into_result(TaskFile { tasks, notes, ..TaskFile::default() })
}

/// Returns the text with every mark as Markdown has it. Positions stay the same.
fn with_known_marks(text: &str) -> Cow<'_, str> {
    static MARK: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?m)^([ \t>]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)(?:\[[-~]\]|\[([ xX])\]\*)([ \t])")
            .expect("a valid pattern")
    });
    MARK.replace_all(text, |found: &Captures| {
        let mark = found.get(2).map_or(String::from("[ ]"), |mark| format!("[{}] ", mark.as_str()));
        format!("{}{mark}{}", &found[1], &found[3])
    })
}

/// Returns the check boxes in the order of the text.
fn items(text: &str) -> Vec<Item> {
    let text = &*with_known_marks(text);
    let mut lines = LineCounter::new(text);
    let (mut items, mut open): (Vec<Item>, Vec<OpenItem>) = (Vec::new(), Vec::new());
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TASKLISTS).into_offset_iter() {
        match (event, open.last_mut()) {
            (Event::Start(Tag::Item), above) => {
                let above = above.and_then(|item| item.own.or(item.above));
                open.push(OpenItem { end: range.end, own: None, above });
            }
            (Event::End(TagEnd::Item), _) => drop(open.pop()),
            (Event::TaskListMarker(is_done), Some(item)) => {
                item.own = Some(items.len());
                let (line, parent) = (lines.line_at(range.start), item.above);
                let end = item.end.max(range.end);
                items.push(Item { line, is_done, parent, start: range.end, end });
            }
            (Event::Start(Tag::List(_)), Some(OpenItem { own: Some(own), .. })) => {
                let item = &mut items[*own];
                item.end = item.end.min(range.start).max(item.start);
            }
            _ => {}
        }
    }
    items
}

fn definition(stem: &str, item: &Item, raw: &str, faults: &mut FaultList) -> TaskDefinition {
    let mut lines = raw.trim_start().lines();
    let first: Vec<&str> =
        lines.by_ref().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let whole = first.join(" ");
    let (title, explicit) = match whole.strip_suffix('}').and_then(|rest| rest.rsplit_once("{#")) {
        Some((title, key)) => (title.trim_end(), Some(key)),
        None => (whole.as_str(), None),
    };
    if title.is_empty() {
        faults.add(item.line, 1, "the item has no text");
    }
    let text_key = slug(&title.to_lowercase(), LONGEST_SLUG);
    let key = match explicit {
        Some(key) => key.to_owned(),
        None if text_key.is_empty() => String::new(),
        None => format!("{}/{text_key}", slug(stem, LONGEST_SLUG)),
    };
    if explicit.is_none() && key.is_empty() {
        faults.add(item.line, 1, "the item needs a key, since its text has no words: `{#KEY}`");
    } else if let Err(problem) = check_key(&key) {
        faults.add(item.line, 1, format!("the key {key:?} {problem}"));
    }
    let rest = dedent(&lines.collect::<Vec<_>>());
    let description = if rest.is_empty() { title.to_owned() } else { format!("{title}\n\n{rest}") };
    TaskDefinition {
        key,
        line: item.line,
        subject: subject(title),
        description,
        is_done: item.is_done,
        ..TaskDefinition::default()
    }
}

/// Joins lines without the indentation that they have in common.
fn dedent(lines: &[&str]) -> String {
    let indent = |line: &&str| line.len() - line.trim_start_matches(' ').len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(indent).min();
    let cut = lines.iter().map(|line| line.get(common.unwrap_or(0)..).unwrap_or_default());
    cut.collect::<Vec<_>>().join("\n").trim().to_owned()
}
