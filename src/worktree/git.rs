//! Runs git in one directory, without a shell and with a deadline. Errors carry git's own message.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::WorktreeError;
use model::text;
use sys::exec::{self, CancelToken, ExecCommand, ExecLimits, ExecOutput};

/// Checking out a large repository on a slow disk can take minutes.
const DEADLINE: Duration = Duration::from_secs(300);

/// Variables that make git use a repository or index other than that of its directory. A git hook
/// runs with some of them set.
pub const MISLEADING: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

pub(super) type Env = Vec<(OsString, OsString)>;

/// Git in one directory.
#[derive(Debug, Clone)]
pub(super) struct Git {
    dir: PathBuf,
    env: Env,
    /// Settings that override the configuration, as `KEY=VALUE`.
    settings: Vec<String>,
    cancel: Option<CancelToken>,
}

impl Git {
    /// Git with the caller's environment, without [`MISLEADING`] variables. Its messages are in
    /// English, and it never prompts.
    pub(super) fn new(dir: &Path, caller: &[(OsString, OsString)]) -> Git {
        let ours = [("LC_ALL", "C"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_OPTIONAL_LOCKS", "0")];
        let replaced = |name: &OsString| {
            MISLEADING.iter().any(|bad| name == bad) || ours.iter().any(|(known, _)| name == known)
        };
        let mut env: Env = caller.iter().filter(|(name, _)| !replaced(name)).cloned().collect();
        env.extend(ours.map(|(name, value)| (name.into(), value.into())));
        Git { dir: dir.to_owned(), env, settings: Vec::new(), cancel: None }
    }

    pub(super) fn at(&self, dir: &Path) -> Git {
        Git { dir: dir.to_owned(), ..self.clone() }
    }

    /// Git with more settings, as `KEY=VALUE`.
    pub(super) fn configured(&self, settings: &[impl AsRef<str>]) -> Git {
        let mut git = self.clone();
        git.settings.extend(settings.iter().map(|setting| setting.as_ref().to_owned()));
        git
    }

    /// Git whose calls another thread can cancel.
    pub(super) fn cancelled_by(&self, cancel: &CancelToken) -> Git {
        Git { cancel: Some(cancel.clone()), ..self.clone() }
    }

    /// Git without the list of transports in the caller's environment, which would override the
    /// settings of a call.
    pub(super) fn without_policy(&self) -> Git {
        let env = self.env.iter().filter(|(name, _)| name != "GIT_ALLOW_PROTOCOL");
        Git { env: env.cloned().collect(), ..self.clone() }
    }

    /// Git with one more variable.
    pub(super) fn with(&self, name: &str, value: impl Into<OsString>) -> Git {
        let mut git = self.clone();
        git.env.retain(|(known, _)| known != name);
        git.env.push((name.into(), value.into()));
        git
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// Runs git and returns its output, whatever the exit status.
    pub(super) fn call(&self, args: &[&str]) -> Result<ExecOutput, WorktreeError> {
        self.feed(args, Vec::new())
    }

    /// Runs git with an input and returns its output, whatever the exit status.
    pub(super) fn feed(&self, args: &[&str], stdin: Vec<u8>) -> Result<ExecOutput, WorktreeError> {
        self.run(args, stdin, None)
    }

    /// Runs git as [`Git::feed`] does. More than `largest` bytes of output are an error.
    pub(super) fn feed_within(
        &self,
        args: &[&str],
        stdin: Vec<u8>,
        largest: usize,
    ) -> Result<ExecOutput, WorktreeError> {
        self.run(args, stdin, Some(largest))
    }

    fn run(
        &self,
        args: &[&str],
        stdin: Vec<u8>,
        output: Option<usize>,
    ) -> Result<ExecOutput, WorktreeError> {
        let settings = self.settings.iter().flat_map(|setting| ["-c", setting]);
        let command = ExecCommand {
            program: "git".into(),
            args: settings.chain(args.iter().copied()).map(Into::into).collect(),
            env: Some(self.env.clone()),
            cwd: Some(self.dir.clone()),
            stdin,
        };
        let limits = ExecLimits { deadline: DEADLINE, output, cancel: self.cancel.clone() };
        Ok(exec::run_within(&command, &limits)?)
    }

    /// Runs git and returns its stdout; an exit status other than 0 is an error. `what` completes
    /// the sentence "cannot …".
    pub(super) fn get(&self, what: &str, args: &[&str]) -> Result<String, WorktreeError> {
        let stdout = take_stdout(what, self.call(args)?)?;
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    /// Runs git as a query: returns its output without the final newline, or `None` if the exit
    /// status is not 0.
    pub(super) fn ask(&self, args: &[&str]) -> Result<Option<String>, WorktreeError> {
        let output = self.call(args)?;
        let line = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
        Ok((output.code == Some(0)).then_some(line))
    }

    /// Returns the branch that is checked out, or its abbreviated commit. `what` as in [`Git::get`].
    pub(super) fn name_of_head(&self, what: &str) -> Result<String, WorktreeError> {
        match self.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])? {
            Some(branch) => Ok(branch),
            None => Ok(self.get(what, &["rev-parse", "--short", "HEAD"])?.trim_end().to_owned()),
        }
    }
}

/// Returns the stdout of a call, or the error of one that failed. `what` as in [`Git::get`].
pub(super) fn take_stdout(what: &str, output: ExecOutput) -> Result<Vec<u8>, WorktreeError> {
    if output.code == Some(0) { Ok(output.stdout) } else { Err(refused(what, &output)) }
}

/// Builds the error of a failed call from what git wrote to stderr: its reason, and the advice that
/// it gives. Hooks and filters write to stderr too, before and after it.
pub(super) fn refused(what: &str, output: &ExecOutput) -> WorktreeError {
    let stderr = text::plain(&String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_hint = |line: &&str| line.starts_with("hint:");
    let starting = |word: &str| lines.iter().position(|line| line.starts_with(word));
    let last = || lines.iter().rposition(|line| !is_hint(line));
    let reason = starting("fatal: ").or_else(|| starting("error: ")).or_else(last);
    let message = reason.map_or("git gave no reason", |at| lines[at]);
    // The remedy of a repository that git does not trust is a command after the reason.
    let command =
        reason.and_then(|at| lines[at..].iter().find(|line| line.trim().starts_with("git ")));
    let hints = lines.iter().filter(|line| is_hint(line)).chain(command);
    let hints: Vec<&str> = hints.map(|line| line.trim_start_matches("hint:").trim()).collect();
    WorktreeError::Git {
        what: what.to_owned(),
        message: message.trim_start_matches("fatal: ").trim_start_matches("error: ").to_owned(),
        hint: (!hints.is_empty()).then(|| hints.join(" ")),
    }
}
