//! The blocks of the pages in docs/cli, from the definition of the command line. They have what
//! `--help` prints; the pages add what it does not.

use std::borrow::Cow;

use clap::{Arg, ArgAction, Command};

use super::page::PageBlock;
use crate::fail::exits;
use crate::groups::{GROUPS, VerbGroup};
use crate::verbs::{definition, shown};

/// Returns a block for each verb and subcommand of the group.
pub(super) fn page(group: &VerbGroup) -> Vec<PageBlock> {
    let mut blocks = Vec::new();
    for verb in group.commands(&definition()) {
        push_verb(verb, "##", &mut blocks);
    }
    blocks
}

/// Returns the blocks of the index: the lists of verbs, the global options and the exit codes.
pub(super) fn index() -> Vec<PageBlock> {
    let root = definition();
    let block = |name: &str, text: String| PageBlock { name: name.to_owned(), text };
    let global: Vec<&Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).collect();
    vec![
        block("verbs", verb_tables(&root)),
        block("global options", table("option", &global)),
        block("exit codes", exit_codes()),
    ]
}

fn exit_codes() -> String {
    let mut text = "| code | `kind` | meaning |\n|---|---|---|\n".to_owned();
    for (code, word, meaning) in exits() {
        let word = word.map_or("–".to_owned(), |word| format!("`{word}`"));
        text.push_str(&format!("| {code} | {word} | {meaning} |\n"));
    }
    text
}

fn verb_tables(root: &Command) -> String {
    let tables = GROUPS.iter().map(|group| {
        let page = group.page();
        let rows = group.commands(root).map(|verb| {
            let name = verb.get_name();
            format!("| [`{name}`]({page}#{name}) | {} |\n", summary(verb))
        });
        let rows: String = rows.collect();
        format!("[{}]({page})\n\n| verb | purpose |\n|---|---|\n{rows}", group.title)
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// Adds the block of a verb, and those of its subcommands.
fn push_verb(verb: &Command, level: &str, blocks: &mut Vec<PageBlock>) {
    let path = verb.get_bin_name().unwrap_or(verb.get_name());
    let name = path.strip_prefix("phalanx ").unwrap_or(path);
    let mut text = format!("{level} `{name}`\n\n{}\n", about(verb));
    if !verb.is_subcommand_required_set() {
        text.push_str(&format!("\n{}", usage(verb)));
        let (positional, options): (Vec<&Arg>, Vec<&Arg>) =
            own_arguments(verb).partition(|arg| arg.is_positional());
        for (title, args) in [("argument", positional), ("option", options)] {
            if !args.is_empty() {
                text.push_str(&format!("\n{}", table(title, &args)));
            }
        }
    }
    if let Some(after) = verb.get_after_long_help().or(verb.get_after_help()) {
        text.push_str(&after_help(&after.to_string()));
    }
    blocks.push(PageBlock { name: name.to_owned(), text });
    for inner in shown(verb) {
        push_verb(inner, "###", blocks);
    }
}

fn own_arguments(verb: &Command) -> impl Iterator<Item = &Arg> {
    verb.get_arguments()
        .filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help")
}

/// The first sentence of `--help`.
fn summary(verb: &Command) -> String {
    markdown(&verb.get_about().map(ToString::to_string).unwrap_or_default())
}

/// The description at the head of `--help`, with full stops.
fn about(verb: &Command) -> String {
    let text = verb.get_long_about().or(verb.get_about()).map(ToString::to_string);
    let text = text.unwrap_or_default();
    let paragraphs: Vec<String> =
        text.split("\n\n").map(|text| sentence(&markdown(text))).collect();
    paragraphs.join("\n\n")
}

fn usage(verb: &Command) -> String {
    let text = verb.clone().render_usage().to_string();
    let lines = text.trim_start_matches("Usage:").lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).map(|line| format!("    {line}\n")).collect()
}

fn table(title: &str, args: &[&Arg]) -> String {
    let mut text = format!("| {title} | meaning |\n|---|---|\n");
    for arg in args {
        text.push_str(&format!("| {} | {} |\n", names(arg), meaning(arg)));
    }
    text
}

/// The names of an argument with its value, as in `--help`.
fn names(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("`-{short}`, ")).unwrap_or_default();
    cell(&format!("{short}`{arg}`"))
}

fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut parts = vec![markdown(help.trim_end_matches('.'))];
    let words: Vec<String> = (arg.get_possible_values().iter())
        .filter(|value| takes_value(arg) && !value.is_hide_set())
        .map(|value| match value.get_help() {
            Some(help) => format!("`{}` ({})", value.get_name(), markdown(&help.to_string())),
            None => format!("`{}`", value.get_name()),
        })
        .collect();
    if !words.is_empty() {
        parts.push(format!("one of {}", words.join(", ")));
    }
    let default: Vec<Cow<str>> =
        arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if takes_value(arg) && default.iter().any(|value| !value.is_empty()) {
        parts.push(format!("default `{}`", default.join(" ")));
    }
    if let Some(name) = arg.get_env() {
        parts.push(format!("also `${}`", name.to_string_lossy()));
    }
    let may_repeat = matches!(arg.get_action(), ArgAction::Append) && !arg.is_positional();
    if may_repeat && !["repeatable", "several times"].iter().any(|words| help.contains(words)) {
        parts.push("repeatable".to_owned());
    }
    if arg.is_required_set() && !arg.is_positional() && !help.contains("required") {
        parts.push("required".to_owned());
    }
    cell(&parts.join("; "))
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

/// The text after the options: paragraphs, and examples as code.
fn after_help(text: &str) -> String {
    let mut page = String::new();
    for paragraph in text.trim_end().split("\n\n") {
        page.push('\n');
        let is_indented = paragraph.lines().skip(1).all(|line| line.starts_with("  "));
        match paragraph.split_once('\n') {
            Some((title, lines)) if title.ends_with(':') && is_indented => {
                page.push_str(&format!("{title}\n\n"));
                for line in lines.lines() {
                    page.push_str(&format!("  {line}\n"));
                }
            }
            _ => page.push_str(&format!("{}\n", markdown(paragraph))),
        }
    }
    page
}

/// Escapes what Markdown would take as markup, except in code.
fn markdown(text: &str) -> String {
    let mut in_code = false;
    let mut page = String::with_capacity(text.len());
    for letter in text.chars() {
        in_code ^= letter == '`';
        if !in_code && matches!(letter, '<' | '*') {
            page.push('\\');
        }
        page.push(letter);
    }
    page
}

/// Puts a text on one line, for a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn sentence(text: &str) -> String {
    if text.ends_with(['.', '?', '!', ':']) { text.to_owned() } else { format!("{text}.") }
}
