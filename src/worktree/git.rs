//! Runs git in one directory, without a shell and with a deadline. Errors carry git's own message.
//! A call runs no program that the repository names, unless it is made with [`Git::acting`]:
//! members can write the configuration of repositories.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::error::WorktreeError;
use model::text;
use sys::clock::Deadline;
use sys::exec::{self, CancelToken, ExecCommand, ExecLimits, ExecOutput};

/// Time limit of a call that a person waits for to see something.
const LOOK: Duration = Duration::from_secs(10);
/// Time limit of other calls. Checking out a large repository on a slow disk can take minutes.
const WORK: Duration = Duration::from_secs(300);

/// Settings with which git asks no monitor of files, runs no hook, checks no signature, enters no
/// submodule and asks for no password.
const QUIET: [&str; 5] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "log.showSignature=false",
    "submodule.recurse=false",
    "credential.helper=",
];

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
    /// Time limit of each call.
    limit: Duration,
    /// The end of all calls together.
    until: Option<Deadline>,
    /// Size limit of the output of each call, in bytes.
    largest: Option<usize>,
    /// Once it is known; `None` if the repository may run its programs.
    off: Option<Arc<OnceLock<SwitchedOff>>>,
}

/// What the configuration of a repository would run, and does not.
#[derive(Debug)]
struct SwitchedOff {
    /// The variables that switch it off.
    env: Env,
    /// The names of the filters.
    filters: BTreeSet<String>,
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
        let (dir, settings, off) = (dir.to_owned(), Vec::new(), Some(Arc::default()));
        Git { dir, env, settings, cancel: None, limit: LOOK, until: None, largest: None, off }
    }

    pub(super) fn at(&self, dir: &Path) -> Git {
        // Another directory can have another configuration.
        let off = self.off.as_ref().map(|_| Arc::default());
        Git { dir: dir.to_owned(), off, ..self.clone() }
    }

    /// Git with all that the repository is configured to run, for a change that the person asked
    /// for.
    pub(super) fn acting(&self) -> Git {
        Git { off: None, ..self.patient() }
    }

    /// Git with time for a change, which is carried through once it has begun.
    pub(super) fn patient(&self) -> Git {
        Git { limit: WORK, until: None, ..self.clone() }
    }

    /// Git whose calls together end by a deadline.
    pub(super) fn until(&self, deadline: Deadline) -> Git {
        Git { until: Some(deadline), ..self.clone() }
    }

    /// Git whose calls fail if they print more than `largest` bytes.
    pub(super) fn printing_at_most(&self, largest: usize) -> Git {
        Git { largest: Some(largest), ..self.clone() }
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
        let quiet = if self.off.is_some() { &QUIET[..] } else { &[] };
        let settings = quiet.iter().copied().chain(self.settings.iter().map(String::as_str));
        let settings = settings.flat_map(|setting| ["-c", setting]);
        let command = ExecCommand {
            program: "git".into(),
            args: settings.chain(args.iter().copied()).map(Into::into).collect(),
            env: Some([&self.env[..], self.off()?.map_or(&[], |off| &off.env)].concat()),
            cwd: Some(self.dir.clone()),
            stdin,
        };
        let left = self.until.map_or(self.limit, |until| until.remaining().min(self.limit));
        let (output, cancel) = (self.largest, self.cancel.clone());
        let limits = ExecLimits { deadline: left, output, cancel };
        Ok(exec::run_within(&command, &limits)?)
    }

    /// Returns the names of the filters that are off because only the repository defines them.
    pub(super) fn filters_off(&self) -> Result<BTreeSet<String>, WorktreeError> {
        Ok(self.off()?.map(|off| off.filters.clone()).unwrap_or_default())
    }

    fn off(&self) -> Result<Option<&SwitchedOff>, WorktreeError> {
        let Some(known) = &self.off else { return Ok(None) };
        if let Some(off) = known.get() {
            return Ok(Some(off));
        }
        let plain = Git { off: None, largest: None, ..self.clone() };
        let listed = plain.call(&["config", "--list", "--show-scope", "-z"])?;
        let listed = take_stdout("read the configuration of git", listed)?;
        let taken = self.env.iter().find(|(name, _)| name == "GIT_CONFIG_COUNT");
        let taken = taken.and_then(|(_, count)| count.to_str()?.parse().ok()).unwrap_or_default();
        Ok(Some(known.get_or_init(|| switch_off(&listed, taken))))
    }

    /// Runs git and returns its stdout; an exit status other than 0 is an error. `what` completes
    /// the sentence "cannot …".
    pub(super) fn get(&self, what: &str, args: &[&str]) -> Result<String, WorktreeError> {
        let stdout = take_stdout(what, self.call(args)?)?;
        Ok(String::from_utf8_lossy(&stdout).into_owned())
    }

    /// Returns the path that `git rev-parse` prints. `what` as in [`Git::get`].
    pub(super) fn path(&self, what: &str, args: &[&str]) -> Result<PathBuf, WorktreeError> {
        let path = self.get(what, &[&["rev-parse", "--path-format=absolute"], args].concat())?;
        Ok(PathBuf::from(path.trim_end_matches('\n')))
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

/// Reads `git config --list --show-scope -z`, and gives each setting by which the repository would
/// run a command the value that the person's own files have, or one that runs nothing. `taken` is
/// the number of settings that the caller's environment has.
fn switch_off(listed: &[u8], taken: usize) -> SwitchedOff {
    let (mut own, mut off, mut filters) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    let mut fields = listed.split(|byte| *byte == 0);
    while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
        let mut entry = entry.splitn(2, |byte| *byte == b'\n');
        let key = entry.next().unwrap_or_default().to_vec();
        if matches!(scope, b"system" | b"global" | b"command") {
            own.insert(key, entry.next().unwrap_or(b"true").to_vec());
        } else if let Some((key, value)) = harmless(key) {
            off.insert(key, value.to_vec());
        }
    }
    // By variables, because the name of a filter can have any character.
    let mut env: Env = vec![("GIT_NO_LAZY_FETCH".into(), "1".into())];
    env.push(("GIT_CONFIG_COUNT".into(), (taken + off.len()).to_string().into()));
    for (nth, (key, value)) in (taken..).zip(off) {
        let value = own.remove(&key).unwrap_or(value);
        let name = String::from_utf8_lossy(&key);
        if value.is_empty()
            && let Some((name, _)) = name.strip_prefix("filter.").and_then(|of| of.rsplit_once('.'))
        {
            filters.insert(name.to_owned());
        }
        env.push((format!("GIT_CONFIG_KEY_{nth}").into(), OsString::from_vec(key)));
        env.push((format!("GIT_CONFIG_VALUE_{nth}").into(), OsString::from_vec(value)));
    }
    SwitchedOff { env, filters }
}

/// Returns the setting that keeps git from running the command of another one; `None` if that is no
/// command which a call that reads would run.
fn harmless(mut key: Vec<u8>) -> Option<(Vec<u8>, &'static [u8])> {
    let section = key.split(|byte| *byte == b'.').next()?.to_vec();
    let start = key.iter().rposition(|byte| *byte == b'.')? + 1;
    let value: &[u8] = match (section.as_slice(), &key[start..]) {
        (b"filter", b"clean" | b"smudge" | b"process") => b"",
        (b"filter", b"required") => b"false",
        // The merge of the file is then a conflict.
        (b"merge", b"driver") => b"false",
        (b"hook", b"command") => {
            key.splice(start.., *b"enabled");
            b"false"
        }
        _ => return None,
    };
    Some((key, value))
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
