//! Creates a worktree, hides it from the repository's status and prepares it for its member. If a
//! step fails, the worktree is removed again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::WorktreeError;
use super::repository::Repository;
use model::team::worktree::{Checkout, Rules, WorktreeRequest};
use model::text;
use sys::exec::{self, ExecCommand};
use sys::fs;

/// Timeout of the setup command, which may have to download packages.
const SETUP: Duration = Duration::from_secs(600);
/// Size limit of a file to be copied, in bytes; a larger one is an error.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Size limit of all files that are sent to another host for one worktree, in bytes.
const LARGEST_SUM: usize = 256 * 1024 * 1024;

/// The commit that a new branch starts from, and what a new worktree gets besides.
pub(super) struct NewContent<'a> {
    pub(super) start: &'a str,
    /// Files to copy: the path in the worktree, and the source.
    pub(super) files: Vec<(String, PathBuf)>,
    pub(super) setup: &'a [String],
}

impl Repository {
    /// Creates a worktree at `path`, copies files and runs the setup command as `rules` say. `name`
    /// is the name of the new branch for [`WorktreeRequest::Own`].
    ///
    /// # Errors
    /// [`WorktreeError::Taken`] if something exists at `path`, [`WorktreeError::BranchTaken`] if
    /// the branch `name` exists, [`WorktreeError::Git`] if git refuses (for example because the
    /// branch is checked out elsewhere), [`WorktreeError::Copy`] and [`WorktreeError::Setup`] if a
    /// file or the setup command fails, [`WorktreeError::Exec`] and [`WorktreeError::File`] if git
    /// or a file operation fails. After a failed copy or setup, the worktree and its new branch are
    /// removed.
    pub fn make(
        &self,
        path: &Path,
        name: &str,
        request: &WorktreeRequest,
        rules: &Rules,
    ) -> Result<Checkout, WorktreeError> {
        let from_top = |file: &String| (file.clone(), self.top.join(file));
        let files = rules.copy.iter().map(from_top).collect();
        let content = NewContent { start: "HEAD", files, setup: &rules.setup };
        self.make_from(path, name, request, &content)
    }

    /// Reads the files that `rules` name, to send them to another host.
    ///
    /// # Errors
    /// [`WorktreeError::Copy`] for a file that is missing or too large.
    pub fn files_to_copy(&self, rules: &Rules) -> Result<Vec<Vec<u8>>, WorktreeError> {
        let mut files: Vec<Vec<u8>> = Vec::new();
        for file in &rules.copy {
            let bytes = read_source(file, &self.top.join(file))?;
            if files.iter().map(Vec::len).sum::<usize>() + bytes.len() > LARGEST_SUM {
                let problem = "the files have more than 256 MiB in all".to_owned();
                return Err(WorktreeError::Copy { file: file.clone(), problem });
            }
            files.push(bytes);
        }
        Ok(files)
    }

    /// Creates a worktree with this content, as [`Repository::make`] does.
    pub(super) fn make_from(
        &self,
        path: &Path,
        name: &str,
        request: &WorktreeRequest,
        content: &NewContent<'_>,
    ) -> Result<Checkout, WorktreeError> {
        if fs::exists(path) {
            return Err(WorktreeError::Taken { path: path.display().to_string() });
        }
        let branch = request.branch(name);
        let exists = self.tip(branch)?.is_some();
        if exists && *request == WorktreeRequest::Own {
            return Err(WorktreeError::BranchTaken { branch: branch.to_owned() });
        }
        self.hide(path)?;
        let shown = path.to_string_lossy();
        let add: &[&str] = match exists {
            true => &["worktree", "add", "--quiet", &shown, branch],
            false => {
                &["worktree", "add", "--quiet", "--no-track", "-b", branch, &shown, content.start]
            }
        };
        self.git.get("make a worktree", add)?;
        let made = Checkout {
            repository: self.top.to_string_lossy().into_owned(),
            path: shown.clone().into_owned(),
            branch: branch.to_owned(),
            base: String::new(),
            new_branch: !exists,
            origin: None,
            copy: None,
        };
        self.prepare(made.clone(), content).inspect_err(|_| self.remove_new(&made))
    }

    fn prepare(&self, made: Checkout, content: &NewContent) -> Result<Checkout, WorktreeError> {
        // With symbolic links resolved, as git and `getcwd` report the path.
        let path = fs::canonical(Path::new(&made.path))?;
        let there = self.git.at(&path);
        let base = there.get("ask for the commit of a worktree", &["rev-parse", "HEAD"])?;
        content.files.iter().try_for_each(|(file, source)| copy(&path, file, source))?;
        self.set_up(&path, content.setup)?;
        let path = path.to_string_lossy().into_owned();
        Ok(Checkout { path, base: base.trim_end().to_owned(), ..made })
    }

    /// Removes a worktree created moments ago, in which nothing but our own setup has run. This is
    /// the only forced removal.
    fn remove_new(&self, made: &Checkout) {
        // The caller reports the error that led here; a second one would hide it.
        let _ = self.git.call(&["worktree", "remove", "--force", &made.path]);
        if made.new_branch {
            let _ = self.git.call(&["branch", "--quiet", "-D", &made.branch]);
        }
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
        let args = ["rev-parse", "--path-format=absolute", "--git-path", "info/exclude"];
        let file = self.git.get("ask for the list of what git does not see", &args)?;
        let file = Path::new(file.trim_end_matches('\n'));
        let mut text = fs::read(file, LARGEST)?.unwrap_or_default();
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
        Ok(fs::write_atomic(file, &text)?)
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

/// Copies one file into a worktree, unless the checkout already has it.
fn copy(path: &Path, file: &str, source: &Path) -> Result<(), WorktreeError> {
    let fail = |problem: String| WorktreeError::Copy { file: file.to_owned(), problem };
    let bytes = read_source(file, source)?;
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
    fs::create_new(&target, &bytes).map(drop).map_err(|e| fail(e.to_string()))
}
