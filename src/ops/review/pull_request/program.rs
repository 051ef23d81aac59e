//! Runs `gh` or `glab` in the main directory of a repository, within limits. Both choose the
//! repository of the service by themselves, from the remotes.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::{Context, Kind, OpsError};
use model::review::{ForgeTool, LineSide, PullRequestState};
use model::text;
use sys::env::find_program;
use sys::exec::{self, ExecCommand, ExecError, ExecLimits};
use worktree::MISLEADING;

const DEADLINE: Duration = Duration::from_secs(60);
/// Largest output of a call, in bytes.
const LARGEST: usize = 8 << 20;
/// Characters of an error message of the program.
const MESSAGE: usize = 1_000;

/// Variables that keep the program from asking, from colours and from messages about new versions.
const QUIET: [(&str, &str); 5] = [
    ("GH_PROMPT_DISABLED", "1"),
    ("GH_NO_UPDATE_NOTIFIER", "1"),
    ("NO_PROMPT", "1"),
    ("GLAB_CHECK_UPDATE", "false"),
    ("NO_COLOR", "1"),
];
/// Variables that make the program write as to a terminal.
const LOUD: [&str; 3] = ["GH_FORCE_TTY", "CLICOLOR_FORCE", "FORCE_COLOR"];

/// A program in a directory.
pub(super) struct Forge {
    pub(super) tool: ForgeTool,
    program: PathBuf,
    dir: PathBuf,
    env: Vec<(OsString, OsString)>,
}

/// A pull request as the service describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForgeRequest {
    pub(super) number: u64,
    pub(super) url: String,
    pub(super) state: PullRequestState,
    /// Its last commit, if that was asked for.
    pub(super) head: Option<String>,
}

/// A pull request to open.
pub(super) struct NewRequest<'a> {
    pub(super) branch: &'a str,
    pub(super) into: &'a str,
    pub(super) title: &'a str,
    pub(super) body: &'a str,
}

/// A comment of a pull request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForgeComment {
    /// Unique among the comments of the service.
    pub(super) id: String,
    pub(super) login: String,
    pub(super) text: String,
    /// `None` for the pull request as a whole.
    pub(super) place: Option<ForgePlace>,
}

/// The place of a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ForgePlace {
    pub(super) path: String,
    pub(super) side: LineSide,
    /// The first and the last line; `None` for the file.
    pub(super) lines: Option<(u32, u32)>,
    /// The commit of the pull request in which the lines have these numbers.
    pub(super) commit: Option<String>,
}

impl Forge {
    /// The program in this directory.
    ///
    /// # Errors
    /// A refusal if it is not installed.
    pub(super) fn new(ctx: &Context, tool: ForgeTool, dir: &Path) -> Result<Forge, OpsError> {
        let name: &str = tool.into();
        let path = ctx.caller.var("PATH");
        let program = find_program(OsStr::new(name), path, dir).ok_or_else(|| {
            let hint = format!("install it, and log in with `{name} auth login`");
            OpsError::refused(format!("`{name}` is not installed"), hint)
        })?;
        let is_dropped = |name: &OsString| {
            let dropped = MISLEADING.iter().chain(&LOUD).any(|bad| name == bad);
            dropped || QUIET.iter().any(|(known, _)| name == known)
        };
        let env = ctx.caller.env.iter().filter(|(name, _)| !is_dropped(name)).cloned();
        let quiet = QUIET.map(|(name, value)| (name.into(), value.into()));
        let env = env.chain(quiet).collect();
        Ok(Forge { tool, program, dir: dir.to_owned(), env })
    }

    pub(super) fn must_be_logged_in(&self) -> Result<(), OpsError> {
        let name: &str = self.tool.into();
        self.run("check the login", &["auth", "status"], "").map(drop).map_err(|e| match e {
            OpsError::Described { kind: Kind::Failed, .. } => OpsError::refused(
                format!("`{name}` is not logged in"),
                format!("log in with `{name} auth login`"),
            ),
            e => e,
        })
    }

    /// Runs the program and returns what it prints. `what` completes the sentence "cannot …".
    pub(super) fn run(&self, what: &str, args: &[&str], stdin: &str) -> Result<String, OpsError> {
        let command = ExecCommand {
            program: self.program.clone().into(),
            args: args.iter().map(Into::into).collect(),
            env: Some(self.env.clone()),
            cwd: Some(self.dir.clone()),
            stdin: stdin.as_bytes().to_vec(),
        };
        let limits = ExecLimits { deadline: DEADLINE, output: Some(LARGEST), cancel: None };
        let name: &str = self.tool.into();
        let output = exec::run_within(&command, &limits).map_err(|e| match e {
            ExecError::Deadline { .. } => OpsError::described(
                Kind::Deadline,
                format!("`{name}` cannot {what} within {} s", DEADLINE.as_secs()),
                format!("check the network, and `{name} auth status`"),
            ),
            e => self.failed(what, &text::line(&e.to_string())),
        })?;
        if output.code != Some(0) {
            let stderr = text::plain(&String::from_utf8_lossy(&output.stderr));
            let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
            return Err(self.failed(what, &text::short(&lines.join(" "), MESSAGE)));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs the program and parses the JSON that it prints: one document, or one for each page.
    pub(super) fn read<T: DeserializeOwned>(
        &self,
        what: &str,
        args: &[&str],
    ) -> Result<Vec<T>, OpsError> {
        let printed = self.run(what, args, "")?;
        documents(&printed).map_err(|e| self.failed(what, &format!("it printed no JSON: {e}")))
    }

    pub(super) fn failed(&self, what: &str, message: &str) -> OpsError {
        let name: &str = self.tool.into();
        let message = if message.is_empty() { "it gave no reason" } else { message };
        OpsError::described(
            Kind::Failed,
            format!("`{name}` cannot {what}: {message}"),
            format!(
                "check the login with `{name} auth status`, and the repository with `{name} repo view`"
            ),
        )
    }
}

/// Parses JSON documents that follow each other, as the pages of a list do.
fn documents<T: DeserializeOwned>(printed: &str) -> serde_json::Result<Vec<T>> {
    serde_json::Deserializer::from_str(printed).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_as_one_list() {
        let pages: Vec<Vec<u32>> = documents("[1,2]\n[3]").expect("two pages");
        assert_eq!(pages.concat(), [1, 2, 3]);
        assert_eq!(documents::<Vec<u32>>("").expect("nothing"), Vec::<Vec<u32>>::new());
        assert!(documents::<Vec<u32>>("[1,2").is_err());
    }
}
