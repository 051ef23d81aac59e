//! `init`: writes a commented manifest that runs as it is.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::fail::{Exit, Failure, VerbResult, chain};
use super::out::Out;
use crate::model::id::allowed_name;
use crate::ops::Kind;
use crate::sys::{env, fs};

/// Write a commented manifest that runs as it is.
///
/// Its team is named after the current directory. An existing file is never overwritten: exit
/// code 4.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  phalanx init && phalanx up team.toml")]
pub(super) struct InitArgs {
    /// File to create.
    #[arg(default_value = "team.toml")]
    pub(super) file: PathBuf,
}

/// The team name to use if the directory's name is not valid.
const FALLBACK: &str = "my-team";

pub(super) fn init(out: &Out, args: &InitArgs) -> VerbResult {
    let cwd = env::current_dir()?;
    let directory =
        cwd.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let team = allowed_name(&directory).map_or(FALLBACK.to_owned(), |name| name.to_lowercase());
    let shown = args.file.display().to_string();
    let words = [shown.as_str()];
    let quoted = shlex::try_join(words).unwrap_or_else(|_| shown.clone());
    let next = format!("phalanx up {quoted}");
    let made = fs::create_new(&cwd.join(&args.file), manifest(&team, &next).as_bytes())
        .map_err(|e| Failure::new(Kind::Failed, chain(&e), None))?;
    if !made {
        let hint = format!("run it with `{next}`, or choose another name: `phalanx init FILE`");
        return Err(Failure::new(Kind::Refused, format!("{shown} exists already"), Some(hint)));
    }
    let document = json!({ "file": shown, "team_name": team, "next": next });
    out.confirm(&document, || format!("created {shown}; run it with `{next}`"))?;
    Ok(Exit::DONE)
}

/// Returns a manifest whose tasks work in any directory; comments show what users change first.
fn manifest(team: &str, next: &str) -> String {
    format!(
        r#"# A team for phalanx. It runs as it is:
#
#     {next}
#
# Relative paths start in the directory in which `up` is run.
# docs/manifest.md explains every key.

[team]
name = "{team}"
description = "three tasks for two workers"
# The team ends when no task is left to do. With "manual" it stays until `phalanx down`.
finish = "tasks-done"

# Members. Without a `profile` a member is a worker: it runs the commands of tasks.
[[member]]
name = "ann"

[[member]]
name = "ben"

# A member can also be an agent. `phalanx profile list` shows the programs that are known.
#
# [[member]]
# name = "cleo"
# profile = "claude"
# prompt = "Read the files of this directory and send a summary to team-lead."

# Tasks. Each has a key of its own, a subject, and for workers a command.
# `run` is a program and its arguments; no shell is between.
[[task]]
key = "files"
subject = "List the files of this directory"
run = ["ls", "-la"]

[[task]]
key = "space"
subject = "Show the free disk space"
run = ["df", "-h", "."]

# Runs when the tasks named in `after` are completed.
[[task]]
key = "done"
subject = "Print the date"
run = ["date"]
after = ["files", "space"]
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::manifest::Manifest;

    #[test]
    fn manifest_is_valid_with_and_without_its_agent() {
        let text = manifest("demo", "phalanx up team.toml");
        let plain = Manifest::parse(&text).expect("valid");
        assert_eq!((plain.name.as_str(), plain.tasks.len()), ("demo", 3));
        let lines = text.lines().map(|line| match line.strip_prefix("# ") {
            Some(key) if key.starts_with("[[") || key.contains(" = ") => key,
            _ => line,
        });
        let with_agent = Manifest::parse(&lines.collect::<Vec<_>>().join("\n")).expect("valid");
        assert_eq!(with_agent.members.len(), 3);
    }
}
