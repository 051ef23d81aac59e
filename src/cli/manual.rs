//! `help`, `man` and `version`: output generated from the command-line definition.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::Command;
use clap::builder::StyledStr;
use serde_json::json;

use crate::fail::{Failure, VerbResult, chain};
use crate::groups::full_help;
use crate::out::Out;
use crate::verbs::{definition, parse, shown};
use model::name::nearest;
use model::text;
use ops::Kind;
use sys::{env, fs};

/// Prints the help of the verb that `words` name, or of phalanx: the everyday verbs, or `all`.
pub(super) fn help(out: &Out, words: &[String], all: bool) -> VerbResult {
    let root = definition();
    let help = if all {
        let template = full_help(&root);
        root.help_template(template).render_help()
    } else {
        named(&root, words)?;
        let line =
            ["phalanx"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
        // clap alone knows whether the short or the long form is the one for `--help`.
        match parse(&line.map(OsString::from).collect::<Vec<_>>()) {
            Err(error) => error.render(),
            Ok(_) => StyledStr::new(),
        }
    };
    let text = if out.paint.on { help.ansi().to_string() } else { help.to_string() };
    out.print(&json!({ "help": help.to_string() }), || text)
}

/// Returns the verb that `words` name, or the root if there are none.
fn named<'r>(root: &'r Command, words: &[String]) -> Result<&'r Command, Failure> {
    words.iter().try_fold(root, |group, word| {
        group.find_subcommand(word).ok_or_else(|| {
            let problem = format!("unknown command `{}`", text::line(&words.join(" ")));
            let near = nearest(word, shown(group).map(Command::get_name));
            let hint = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "see all verbs with `phalanx help --all`".to_owned(),
            };
            Failure::usage(problem, &hint)
        })
    })
}

/// Prints the manual page of the verb that `words` name, or of phalanx if there are none.
pub(super) fn man(out: &Out, words: &[String]) -> VerbResult {
    let root = definition();
    let (name, text) = page(named(&root, words)?)?;
    out.print(&json!({ "name": name, "page": text }), || text.clone())
}

/// Writes the manual pages of phalanx and of all verbs, for packages.
pub(super) fn write_pages(out: &Out, dir: &Path) -> VerbResult {
    let command = definition();
    let dir = env::current_dir()?.join(dir);
    let mut written: Vec<String> = Vec::new();
    let mut left = vec![&command];
    while let Some(command) = left.pop() {
        let (name, text) = page(command)?;
        let file = format!("{name}.1");
        fs::write_atomic(&dir.join(&file), text.as_bytes())
            .map_err(|e| Failure::new(Kind::Failed, chain(&e), None))?;
        written.push(file);
        left.extend(shown(command));
    }
    written.sort();
    let shown = dir.display().to_string();
    let document = json!({ "dir": shown, "pages": written });
    out.confirm(&document, || format!("wrote {} pages to {shown}", written.len()))
}

/// Returns the name of a command's page, such as `phalanx-team-create`, and its text.
fn page(command: &Command) -> io::Result<(String, String)> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut text)?;
    let name = command.get_display_name().unwrap_or(command.get_name());
    Ok((name.to_owned(), String::from_utf8_lossy(&text).into_owned()))
}

pub(super) fn version(out: &Out) -> VerbResult {
    let version = env!("CARGO_PKG_VERSION");
    out.print(&json!({ "name": "phalanx", "version": version }), || format!("phalanx {version}"))
}
