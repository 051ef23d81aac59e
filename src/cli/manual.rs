//! `man` and `version`: output generated from the command-line definition.

use serde_json::json;

use super::fail::{Exit, Failure, VerbResult};
use super::out::Out;
use super::verbs::visible;

/// Prints the manual page of the verb that `words` name, or of phalanx if there are none.
pub(super) fn man(out: &Out, words: &[String]) -> VerbResult {
    let mut command = visible();
    // Sets the page names, such as `phalanx-team-create`.
    command.build();
    let found = words.iter().try_fold(&command, |command, word| command.find_subcommand(word));
    let Some(found) = found else {
        let problem = format!("unknown command `{}`", words.join(" "));
        return Err(Failure::usage(problem, "see `phalanx --help`"));
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(found.clone()).render(&mut text)?;
    let text = String::from_utf8_lossy(&text);
    let name = found.get_display_name().unwrap_or(found.get_name());
    out.print(&json!({ "name": name, "page": text }), || text.to_string())?;
    Ok(Exit::DONE)
}

pub(super) fn version(out: &Out) -> VerbResult {
    let version = env!("CARGO_PKG_VERSION");
    out.print(&json!({ "name": "phalanx", "version": version }), || format!("phalanx {version}"))?;
    Ok(Exit::DONE)
}
