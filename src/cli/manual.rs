//! `man` and `version`: output generated from the command-line definition.

use std::io;
use std::path::Path;

use clap::Command;
use serde_json::json;

use crate::fail::{Exit, Failure, VerbResult, chain};
use crate::out::Out;
use crate::verbs::{definition, shown};
use ops::Kind;
use sys::{env, fs};

/// Prints the manual page of the verb that `words` name, or of phalanx if there are none.
pub(super) fn man(out: &Out, words: &[String]) -> VerbResult {
    let command = definition();
    let found = words.iter().try_fold(&command, |command, word| command.find_subcommand(word));
    let Some(found) = found else {
        let problem = format!("unknown command `{}`", words.join(" "));
        return Err(Failure::usage(problem, "see `phalanx --help`"));
    };
    let (name, text) = page(found)?;
    out.print(&json!({ "name": name, "page": text }), || text.clone())?;
    Ok(Exit::DONE)
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
    out.confirm(&document, || format!("wrote {} pages to {shown}", written.len()))?;
    Ok(Exit::DONE)
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
    out.print(&json!({ "name": "phalanx", "version": version }), || format!("phalanx {version}"))?;
    Ok(Exit::DONE)
}
