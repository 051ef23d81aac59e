//! Pushes the commits of a worktree to a branch of a git remote. A push is by id and never forced,
//! so that the remote gets what was looked at and loses nothing.

use super::error::WorktreeError;
use super::exchange::check_id;
use super::git;
use super::repository::Repository;
use model::text;
use sys::exec::ExecOutput;

/// Characters of the reason that a remote gives.
const REASON: usize = 500;
/// The variables that choose the program for addresses of ssh.
const SSH: [&str; 2] = ["GIT_SSH_COMMAND", "GIT_SSH"];

impl Repository {
    /// Returns the branch that is checked out in the main working directory.
    ///
    /// # Errors
    /// [`WorktreeError::Exec`] if git cannot be run or times out.
    pub fn main_branch(&self) -> Result<Option<String>, WorktreeError> {
        // Not abbreviated by git: a tag of the same name would change it.
        let head = self.git.ask(&["symbolic-ref", "--quiet", "HEAD"])?;
        Ok(head.and_then(|name| name.strip_prefix("refs/heads/").map(str::to_owned)))
    }

    /// Returns the remote to which git pushes from the branch `main`, or `origin`.
    ///
    /// # Errors
    /// [`WorktreeError::NoRemote`] if the repository does not have it.
    pub fn push_remote(&self, main: &str) -> Result<String, WorktreeError> {
        let keys = [
            format!("branch.{main}.pushRemote"),
            "remote.pushDefault".to_owned(),
            format!("branch.{main}.remote"),
        ];
        let mut chosen = "origin".to_owned();
        for key in keys {
            // `.` is the repository itself.
            let found = self.git.ask(&["config", "--get", &key])?;
            if let Some(found) = found.filter(|found| found != ".") {
                chosen = found;
                break;
            }
        }
        self.remote(&chosen)?;
        Ok(chosen)
    }

    /// Returns the subjects of the commits from `base` to `head`, oldest first.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn subjects(&self, base: &str, head: &str) -> Result<Vec<String>, WorktreeError> {
        let range = format!("{base}..{head}");
        let pinned = ["--reverse", "--format=%s", "--encoding=UTF-8", "--no-show-signature"];
        let args = [&["log"], &pinned[..], &[&range, "--"]].concat();
        let subjects = self.git.get("read the subjects of the commits", &args)?;
        Ok(subjects.lines().map(text::line).collect())
    }

    /// Pushes a commit to a branch of a remote, which is made if it does not exist.
    ///
    /// # Errors
    /// [`WorktreeError::PushRejected`] if the branch has other commits there; [`WorktreeError::Git`]
    /// if the remote cannot be reached or refuses.
    pub fn push_branch(&self, remote: &str, head: &str, branch: &str) -> Result<(), WorktreeError> {
        check_id(head)?;
        let spec = format!("{head}:refs/heads/{branch}");
        let pinned = ["--porcelain", "--no-follow-tags", "--recurse-submodules=no"];
        let args = [&["push"], &pinned[..], &["--", remote, &spec]].concat();
        let mut git = self.git.acting();
        // A question of ssh at the terminal would stop the push until its deadline.
        let is_chosen = self.git.env().iter().any(|(name, _)| SSH.iter().any(|ssh| name == ssh));
        if !is_chosen && self.git.ask(&["config", "--get", "core.sshCommand"])?.is_none() {
            git = git.with(SSH[0], "ssh -o BatchMode=yes");
        }
        let output = git.call(&args)?;
        if output.code == Some(0) { Ok(()) } else { Err(rejection(remote, branch, &output)) }
    }
}

/// Builds the error of a push that failed: from its line for the branch, if git came that far.
fn rejection(remote: &str, branch: &str, output: &ExecOutput) -> WorktreeError {
    let what = format!("push to {remote}");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let line = stdout.lines().find_map(|line| line.strip_prefix("!\t"));
    let Some((_, reason)) = line.and_then(|line| line.rsplit_once('\t')) else {
        return git::refused(&what, output);
    };
    if reason.starts_with("[rejected]") {
        let (remote, branch) = (remote.to_owned(), branch.to_owned());
        return WorktreeError::PushRejected { remote, branch };
    }
    let stderr = text::plain(&String::from_utf8_lossy(&output.stderr));
    let said = stderr.lines().filter_map(|line| line.strip_prefix("remote:")).map(str::trim);
    let words: Vec<&str> =
        [reason].into_iter().chain(said).filter(|said| !said.is_empty()).collect();
    let message = text::short(&words.join(" "), REASON);
    WorktreeError::Git { what, message, hint: None }
}
