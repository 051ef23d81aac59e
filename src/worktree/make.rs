//! Creates a worktree, hides it from the repository's status and prepares it for its member, and
//! removes one that could not be completed. The caller keeps a record of it meanwhile.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::error::WorktreeError;
use super::git;
use super::list::{WorktreeEntry, list_worktrees};
use super::repository::Repository;
use super::start::{WorktreeStart, remote_ref};
use model::team::worktree::{Checkout, DIR, Rules, WorktreeRequest};
use model::text;
use sys::clock::{self, Deadline};
use sys::exec::{self, ExecCommand};
use sys::fs;

/// Time for which a process of a start that was cut off may still write, and the pause between two
/// attempts to remove what it left.
const LEFTOVERS: Duration = Duration::from_secs(5);
const LEFTOVERS_PAUSE: Duration = Duration::from_millis(50);
/// Timeout of the setup command, which may have to download packages.
const SETUP: Duration = Duration::from_secs(600);
/// Size limit of a file to be copied, in bytes; a larger one is an error.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Size limit of all files that are sent to another host for one worktree, in bytes.
const LARGEST_SUM: usize = 256 * 1024 * 1024;

/// The file that names the ignored files which a new worktree needs, as for Claude Code. It has
/// the syntax of `.gitignore`.
const INCLUDE: &str = ".worktreeinclude";

/// What a new worktree gets besides its commit.
pub(super) struct NewContent<'a> {
    /// Files to copy: the path in the worktree, and the source.
    pub(super) files: Vec<(String, PathBuf)>,
    pub(super) setup: &'a [String],
}

/// A worktree that is complete.
#[derive(Debug)]
pub struct BuiltWorktree {
    pub checkout: Checkout,
    /// What failed without harm to the checkout.
    pub warning: Option<String>,
}

impl Repository {
    /// Rejects a directory for worktrees that is a symbolic link inside of the repository. Without
    /// `dir`, it is [`DIR`].
    ///
    /// # Errors
    /// [`WorktreeError::LinkedDir`] for the link; [`WorktreeError::File`] if it cannot be read.
    pub fn must_not_be_linked(&self, dir: Option<&str>) -> Result<(), WorktreeError> {
        let mut at = self.root.clone();
        for part in Path::new(dir.unwrap_or(DIR)).components() {
            if !matches!(part, Component::Normal(_) | Component::CurDir) {
                break;
            }
            at.push(part);
            if let Some(target) = fs::link_target(&at)? {
                let target = at.with_file_name(target).to_string_lossy().into_owned();
                return Err(WorktreeError::LinkedDir { path: at.display().to_string(), target });
            }
        }
        Ok(())
    }

    /// Returns the worktree that [`Repository::build`] can make at `path`, without making anything.
    /// `name` is the name of the new branch for [`WorktreeRequest::Own`]. A new branch starts from
    /// `base`, or as [`Repository::start`] says.
    ///
    /// # Errors
    /// [`WorktreeError::InUse`] if a member works at `path` or on the branch,
    /// [`WorktreeError::Taken`] if something exists at `path`, [`WorktreeError::BranchTaken`] if
    /// the branch `name` exists, [`WorktreeError::NoBase`] and [`WorktreeError::Ambiguous`] if there
    /// is no commit to start from, [`WorktreeError::Exec`] if git cannot be run.
    pub fn plan(
        &self,
        path: &Path,
        name: &str,
        request: &WorktreeRequest,
        base: Option<&str>,
    ) -> Result<Checkout, WorktreeError> {
        let shown = path.to_string_lossy().into_owned();
        self.must_be_unused(path, request.branch(name))?;
        if fs::exists(path) {
            return Err(WorktreeError::Taken { path: shown });
        }
        let WorktreeStart { commit, from } = self.start(name, request, base)?;
        Ok(Checkout {
            repository: self.top.to_string_lossy().into_owned(),
            path: shown,
            branch: request.branch(name).to_owned(),
            base: commit,
            new_branch: from.is_some(),
            from,
            is_unfinished: true,
            origin: None,
            copy: None,
            landed: Vec::new(),
            landing: None,
            merged: None,
        })
    }

    /// Makes a planned worktree, copies files and runs the setup command as `rules` say.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git refuses (for example because the branch is checked out
    /// elsewhere), [`WorktreeError::Copy`] and [`WorktreeError::Setup`] if a file or the setup
    /// command fails, [`WorktreeError::Exec`] and [`WorktreeError::File`] if git or a file operation
    /// fails. [`Repository::discard`] removes what exists then.
    pub fn build(&self, planned: &Checkout, rules: &Rules) -> Result<BuiltWorktree, WorktreeError> {
        let content = NewContent { files: self.sources(rules)?, setup: &rules.setup };
        self.build_with(planned, &content)
    }

    /// Reads the files that a new worktree gets, to send them to another host.
    ///
    /// # Errors
    /// [`WorktreeError::Copy`] for a file that is missing or too large.
    pub fn files_to_copy(&self, rules: &Rules) -> Result<Vec<(String, Vec<u8>)>, WorktreeError> {
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        let mut sum = 0;
        let mut sources = self.sources(rules)?;
        // Links are not sent.
        sources.retain(|(file, source)| inner_link(file, source).is_none());
        for (file, source) in sources {
            let bytes = read_source(&file, &source)?;
            sum += bytes.len();
            if sum > LARGEST_SUM {
                let problem = "the files have more than 256 MiB in all".to_owned();
                return Err(WorktreeError::Copy { file, problem });
            }
            files.push((file, bytes));
        }
        Ok(files)
    }

    /// Returns the files that a new worktree gets, each with its source.
    fn sources(&self, rules: &Rules) -> Result<Vec<(String, PathBuf)>, WorktreeError> {
        let from = |file: &String| {
            let here = self.here.join(file);
            let source = if fs::exists(&here) { here } else { self.top.join(file) };
            (file.clone(), source)
        };
        let mut files: Vec<(String, PathBuf)> = rules.copy.iter().map(from).collect();
        files.extend(self.included()?);
        Ok(files)
    }

    /// Returns the ignored files that [`INCLUDE`] names, without links that lead out.
    fn included(&self) -> Result<Vec<(String, PathBuf)>, WorktreeError> {
        let Some(dir) = [&self.here, &self.top].into_iter().find(|d| fs::exists(&d.join(INCLUDE)))
        else {
            return Ok(Vec::new());
        };
        let what = format!("list the files that `{INCLUDE}` names");
        let git = self.git.at(dir);
        let by = format!("--exclude-from={INCLUDE}");
        let named = git.get(&what, &["ls-files", "-z", "--others", "--ignored", &by])?;
        if named.is_empty() {
            return Ok(Vec::new());
        }
        let ignored = git.feed(&["check-ignore", "-z", "--stdin"], named.into_bytes())?;
        // 1: none of them is ignored.
        if !matches!(ignored.code, Some(0 | 1)) {
            return Err(git::refused(&what, &ignored));
        }
        let files = String::from_utf8_lossy(&ignored.stdout).into_owned();
        // The name of another repository ends with a slash.
        let files = files.split('\0').filter(|file| !file.is_empty() && !file.ends_with('/'));
        let source = |file: &str| (file.to_owned(), dir.join(file));
        let is_kept = |(file, source): &(String, PathBuf)| {
            inner_link(file, source).is_some() || matches!(fs::link_target(source), Ok(None))
        };
        Ok(files.map(source).filter(is_kept).collect())
    }

    /// Makes a planned worktree with this content, as [`Repository::build`] does.
    pub(super) fn build_with(
        &self,
        planned: &Checkout,
        content: &NewContent<'_>,
    ) -> Result<BuiltWorktree, WorktreeError> {
        self.hide(Path::new(&planned.path))?;
        let warning = self.add(planned)?;
        // With symbolic links resolved, as git and `getcwd` report the path.
        let path = fs::canonical(Path::new(&planned.path))?;
        content.files.iter().try_for_each(|(file, source)| copy(&path, file, source))?;
        self.set_up(&path, content.setup)?;
        let path = path.to_string_lossy().into_owned();
        let checkout = Checkout { path, is_unfinished: false, ..planned.clone() };
        Ok(BuiltWorktree { checkout, warning })
    }

    /// Lets git make the worktree. Returns a warning if only a hook failed: git runs it when the
    /// checkout is complete.
    fn add(&self, planned: &Checkout) -> Result<Option<String>, WorktreeError> {
        let Checkout { path, branch, base, .. } = planned;
        let tracked = planned.from.as_ref().map(|name| self.is_tracked(branch, name));
        let tracked = tracked.transpose()?.unwrap_or_default();
        let remote = remote_ref(planned.from.as_deref().unwrap_or_default());
        let start: Vec<&str> = match &planned.from {
            Some(_) if tracked => vec!["--track", "-b", branch, path, &remote],
            _ if planned.new_branch => vec!["--no-track", "-b", branch, path, base],
            _ => vec![path, branch],
        };
        // Git takes the sparse patterns from the checkout that it runs in.
        let args = [vec!["worktree", "add", "--quiet"], start].concat();
        let output = self.git.at(&self.here).acting().call(&args)?;
        if output.code == Some(0) {
            return Ok(None);
        }
        let refused = git::refused("make a worktree", &output);
        match &refused {
            WorktreeError::Git { message, .. } if self.is_whole(planned)? => {
                Ok(Some(format!("its worktree is complete, but a git hook failed: {message}")))
            }
            _ => Err(refused),
        }
    }

    /// Returns whether the files of a new worktree are those of its commit.
    fn is_whole(&self, planned: &Checkout) -> Result<bool, WorktreeError> {
        let Ok(path) = fs::canonical(Path::new(&planned.path)) else { return Ok(false) };
        let all = list_worktrees(&self.git)?;
        let entry = all.iter().find(|one| Path::new(&one.path) == path);
        let is_at_base =
            |one: &WorktreeEntry| one.locked.is_none() && one.head.as_ref() == Some(&planned.base);
        if !entry.is_some_and(is_at_base) {
            return Ok(false);
        }
        let status = ["status", "--porcelain", "--untracked-files=no", "--ignore-submodules=dirty"];
        Ok(self.in_worktree(&path)?.get("ask how a worktree stands", &status)?.is_empty())
    }

    /// Removes what exists of a planned worktree in which no member has worked. Only this is forced,
    /// and the removal of submodules of which nothing would be lost.
    ///
    /// # Errors
    /// [`WorktreeError::Taken`] for a directory with content that git has never had, or no longer
    /// has; [`WorktreeError::Git`] if something is left.
    pub fn discard(&self, planned: &Checkout) -> Result<(), WorktreeError> {
        let what = "remove an unfinished worktree";
        let path = Path::new(&planned.path);
        let is_it = |one: &WorktreeEntry| one.path == planned.path;
        let is_known = || list_worktrees(&self.git).map(|all| all.iter().any(is_it));
        // Git removes its entry even if it cannot remove all files.
        let (is_ours, deadline) = (is_known()?, Deadline::after(LEFTOVERS));
        loop {
            // Twice: also one that git has locked while it makes it.
            let args = ["worktree", "remove", "--force", "--force", &planned.path];
            let output = self.git.patient().call(&args)?;
            if !fs::exists(path) && !is_known()? {
                break;
            }
            // Git writes its entry before any file, so a directory without one is empty.
            if !is_ours && !fs::names(path).is_ok_and(|names| names.is_empty()) {
                return Err(WorktreeError::Taken { path: planned.path.clone() });
            }
            if deadline.expired() {
                return Err(git::refused(what, &output));
            }
            // Fails while a process of the start that was cut off still writes there.
            let _ = fs::remove_dir_all(path);
            clock::sleep(LEFTOVERS_PAUSE);
        }
        if planned.new_branch && self.tip(&planned.branch)?.as_ref() == Some(&planned.base) {
            self.git.get(what, &["branch", "--quiet", "-D", &planned.branch])?;
        }
        Ok(())
    }

    /// Adds the directory of the worktrees to `info/exclude` of the repository, because
    /// `.gitignore` belongs to the user.
    fn hide(&self, path: &Path) -> Result<(), WorktreeError> {
        let hidden = path.parent().filter(|dir| *dir != self.top).unwrap_or(path);
        let Ok(inside) = hidden.strip_prefix(&self.top) else { return Ok(()) };
        let escape = |c: char| match c {
            '\\' | '*' | '?' | '[' | ' ' => format!("\\{c}"),
            c => c.to_string(),
        };
        let line =
            format!("/{}/", inside.to_string_lossy().chars().map(escape).collect::<String>());
        let what = "ask for the list of what git does not see";
        let file = self.git.path(what, &["--git-path", "info/exclude"])?;
        let mut text = fs::read(&file, LARGEST)?.unwrap_or_default();
        if text.split(|byte| *byte == b'\n').any(|known| known == line.as_bytes()) {
            return Ok(());
        }
        if let Some(dir) = file.parent().filter(|dir| !fs::is_dir(dir)) {
            fs::private_dir(dir)?;
        }
        if !text.is_empty() && !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        text.extend_from_slice(line.as_bytes());
        text.push(b'\n');
        Ok(fs::write_atomic(&file, &text)?)
    }

    fn set_up(&self, path: &Path, setup: &[String]) -> Result<(), WorktreeError> {
        let Some((program, args)) = setup.split_first() else { return Ok(()) };
        let command = ExecCommand {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            env: Some(self.git.env().clone()),
            cwd: Some(path.to_owned()),
            stdin: Vec::new(),
        };
        let output = exec::run(&command, SETUP)
            .map_err(|e| WorktreeError::Setup { problem: e.to_string() })?;
        let how = match (output.code, output.signal) {
            (Some(0), _) => return Ok(()),
            (Some(code), _) => format!("exit code {code}"),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "an unknown exit status".to_owned(),
        };
        let stderr = text::plain(&String::from_utf8_lossy(&output.stderr));
        let stderr = text::last_lines(&stderr, 10);
        let problem = if stderr.is_empty() { how } else { format!("{how}\n{stderr}") };
        Err(WorktreeError::Setup { problem })
    }
}

fn read_source(file: &str, source: &Path) -> Result<Vec<u8>, WorktreeError> {
    let fail = |problem: String| WorktreeError::Copy { file: file.to_owned(), problem };
    let bytes = fs::read(source, LARGEST).map_err(|e| fail(e.to_string()))?;
    let dir = source.parent().unwrap_or(source);
    bytes.ok_or_else(|| fail(format!("{} has no such file", dir.display())))
}

/// Returns the target of a symbolic link at `file` that stays in its checkout.
fn inner_link(file: &str, source: &Path) -> Option<PathBuf> {
    let target = fs::link_target(source).ok().flatten()?;
    let depth = Path::new(file).components().count().checked_sub(1)?;
    let inside = target.components().try_fold(depth, |depth, part| match part {
        Component::Normal(_) => Some(depth + 1),
        Component::CurDir => Some(depth),
        Component::ParentDir => depth.checked_sub(1),
        Component::RootDir | Component::Prefix(_) => None,
    });
    inside.map(|_| target)
}

/// Copies one file into a worktree, unless the checkout already has it. A symbolic link that stays
/// in the checkout is made anew there.
fn copy(path: &Path, file: &str, source: &Path) -> Result<(), WorktreeError> {
    let fail = |problem: String| WorktreeError::Copy { file: file.to_owned(), problem };
    let link = inner_link(file, source);
    let bytes = if link.is_some() { Vec::new() } else { read_source(file, source)? };
    let target = path.join(file);
    let dir = target.parent().unwrap_or(path);
    // A directory in the checkout may be a symbolic link to any place outside.
    let there = dir.ancestors().find(|dir| fs::exists(dir)).unwrap_or(path);
    let real = fs::canonical(there).map_err(|e| fail(e.to_string()))?;
    if !real.starts_with(path) {
        return Err(fail(format!("{} leads out of it", there.display())));
    }
    if !fs::is_dir(dir) {
        fs::private_dir(dir).map_err(|e| fail(e.to_string()))?;
    }
    let made = match link {
        Some(to) => fs::link(&to, &target),
        None => fs::create_new(&target, &bytes),
    };
    made.map(drop).map_err(|e| fail(e.to_string()))
}
