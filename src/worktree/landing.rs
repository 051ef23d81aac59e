//! Lands the commits of a worktree on the branch of the main working directory: builds the commit
//! beside all checkouts, then moves the branch by a fast-forward in its own checkout, never under
//! it. Takes them back in the same way. Only commits that the caller has named are landed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use super::error::WorktreeError;
use super::git;
use super::repository::Repository;
use super::snapshot::on_index_copy;
use model::team::worktree::{Checkout, LandedWork, LandingKind};
use model::text;
use sys::clock::{self, Deadline};
use sys::lock::Gate;
use sys::{failpoint, fs};

/// Maximum number of subjects in the message of a squash.
const SUBJECTS: usize = 50;

/// The file in the repository that landings lock.
const LOCK: &str = "phalanx-landing";
/// Time to wait for the end of another landing in the same repository.
const LANDING: Duration = Duration::from_secs(60);
/// Time for which another git command may hold the index, and the pause between two attempts.
const INDEX: Duration = Duration::from_secs(5);
const INDEX_PAUSE: Duration = Duration::from_millis(50);

/// Commits that are to land.
#[derive(Debug, Clone)]
pub struct Landing<'a> {
    /// The last of them. Later ones of the worktree stay.
    pub head: &'a str,
    /// The name of their branch, for the message of a merge.
    pub from: &'a str,
    pub kind: LandingKind,
    /// The message of the new commit, instead of git's own. A rebase keeps the messages.
    pub message: Option<&'a str>,
    /// The work in a few words: the first line of a squash of several commits without a message.
    pub title: Option<&'a str>,
}

/// The result of merging two commits without a checkout.
pub(super) enum MergedTree {
    /// The id of the tree.
    Clean(String),
    /// The files with conflicting changes.
    Conflicts(Vec<String>),
}

impl MergedTree {
    /// Returns the files with conflicting changes.
    pub(super) fn conflicts(self) -> Vec<String> {
        match self {
            MergedTree::Clean(_) => Vec::new(),
            MergedTree::Conflicts(files) => files,
        }
    }
}

impl Repository {
    /// Makes the commit with which the branch of the main working directory has the landed ones, and
    /// changes no branch. Hooks for commits do not run; commits are signed where git is configured
    /// so.
    ///
    /// # Errors
    /// [`WorktreeError::NothingToLand`]; [`WorktreeError::Conflicts`] with the files;
    /// [`WorktreeError::Git`] if git refuses, or the main working directory has changes in the way.
    pub fn prepare(
        &self,
        checkout: &Checkout,
        landing: &Landing<'_>,
    ) -> Result<LandedWork, WorktreeError> {
        let what = "land the commits";
        let old = self.git.get(what, &["rev-parse", "--verify", "HEAD^{commit}"])?;
        let (old, head) = (old.trim_end(), landing.head);
        let base = self.landed_base(checkout, head)?;
        if self.unlanded(checkout, head, base)? == 0 {
            return Err(WorktreeError::NothingToLand { into: self.main_name()? });
        }
        let new = match landing.kind {
            LandingKind::Merge if self.is_ancestor(old, head)? => head.to_owned(),
            LandingKind::Merge | LandingKind::Squash => {
                let is_merge = landing.kind == LandingKind::Merge;
                let message = match landing.message {
                    Some(message) => message.to_owned(),
                    None if is_merge => format!("Merge branch '{}'", landing.from),
                    None => self.squash_message(base, landing)?,
                };
                let tree = self.merged_tree_without_conflict(base, old, head)?;
                let parents = if is_merge { vec![old, head] } else { vec![old] };
                self.commit(&tree, &parents, &message, &[])?
            }
            LandingKind::Rebase => self.rebased(base, old, head)?,
        };
        if new == old {
            return Err(WorktreeError::NothingToLand { into: self.main_name()? });
        }
        self.must_be_able_to_move(what, old, &new)?;
        let (head, old, branch) = (head.to_owned(), old.to_owned(), self.main_branch()?);
        Ok(LandedWork { head, old, new, kind: landing.kind, branch })
    }

    /// Moves the branch of the main working directory to a prepared commit. Index and files are as
    /// they were if that fails. Finishes what a process that was killed has begun.
    ///
    /// # Errors
    /// [`WorktreeError::Moved`] if the branch has got other commits since;
    /// [`WorktreeError::OtherBranch`] if another one is checked out; [`WorktreeError::Git`] if the
    /// main working directory has changes in the same files.
    pub fn land(&self, landed: &LandedWork) -> Result<(), WorktreeError> {
        let LandedWork { old, new, branch, .. } = landed;
        self.move_branch("land the commits", branch.as_deref(), old, new, true)
    }

    /// Checks whether landed commits could be taken back now, and changes nothing.
    ///
    /// # Errors
    /// As [`Repository::take_back`].
    pub fn may_take_back(&self, landed: &LandedWork) -> Result<(), WorktreeError> {
        let what = "take the commits back";
        self.must_be_at(landed.branch.as_deref(), &landed.new, what)?;
        self.must_be_able_to_move(what, &landed.new, &landed.old)
    }

    /// Takes landed commits off the branch of the main working directory again. What is staged or
    /// changed in other files stays. Otherwise as [`Repository::land`].
    ///
    /// # Errors
    /// As [`Repository::land`].
    pub fn take_back(&self, landed: &LandedWork) -> Result<(), WorktreeError> {
        let LandedWork { old, new, branch, .. } = landed;
        self.move_branch("take the commits back", branch.as_deref(), new, old, false)
    }

    /// Returns true if the branch on which the commits landed has them.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn has_landed(&self, landed: &LandedWork) -> Result<bool, WorktreeError> {
        let tip = match &landed.branch {
            Some(branch) => self.tip(branch)?,
            None => Some(self.main_commit()?),
        };
        tip.map_or(Ok(false), |tip| self.is_ancestor(&landed.new, &tip))
    }

    /// Counts the commits of the main branch after a landing.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn commits_after(&self, landed: &LandedWork) -> Result<usize, WorktreeError> {
        self.count(&["rev-list", "--count", "HEAD", "--not", &landed.new, "--"])
    }

    fn move_branch(
        &self,
        what: &str,
        branch: Option<&str>,
        from: &str,
        to: &str,
        is_forward: bool,
    ) -> Result<(), WorktreeError> {
        self.must_be_at(branch, from, what)?;
        let name = branch.map_or("HEAD".to_owned(), |branch| format!("refs/heads/{branch}"));
        let reason = format!("phalanx: {what}");
        // Refuses if the branch has moved meanwhile, as a fast-forward does.
        let update = ["update-ref", "-m", &reason, &name, to, from];
        if self.is_bare()? {
            return self.git.acting().get(what, &update).map(drop);
        }
        let changed = self.names(what, &["diff-files"])?;
        let moved = if is_forward {
            let options = ["--ff-only", "--no-overwrite-ignore", "--quiet", "--no-stat"];
            self.change_checkout(what, &[&["merge"], &options[..], &[to]].concat())
        } else {
            // Without it, a file that was only touched counts as changed.
            let _ = self.change_checkout(what, &["update-index", "-q", "--refresh"]);
            let files = self.change_checkout(what, &["read-tree", "-m", "-u", from, to]);
            failpoint::hit("undo.files");
            files.and_then(|()| self.git.acting().get(what, &update).map(drop))
        };
        let now = self.main_branch()?;
        let is_other = branch.is_some() && now.as_deref() != branch;
        match moved {
            Ok(()) if is_other && is_forward => {
                // The person has checked out another branch, which got the commits.
                let before = self.git.get(what, &["rev-parse", "--verify", "ORIG_HEAD"])?;
                self.move_branch(what, now.as_deref(), to, before.trim_end(), false)?;
                self.must_be_at(branch, from, what)
            }
            Ok(()) if is_other => self.follow_branch(what, from, to),
            Ok(()) => Ok(()),
            Err(problem) => {
                // Staged changes of the person can prevent it, and then stop the next attempt, too.
                let _ = self.follow_branch(what, from, to);
                self.must_be_at(branch, from, what)?;
                let _ = self.restore_files(what, from, to, &changed);
                Err(problem)
            }
        }
    }

    /// Checks that the person's index and files do not prevent a move of the branch.
    fn must_be_able_to_move(&self, what: &str, from: &str, to: &str) -> Result<(), WorktreeError> {
        if self.is_bare()? {
            return Ok(());
        }
        let ours = self.names(what, &["diff-tree", "-r", from, to])?;
        // Git accepts a staged change that is the same, and a failure would then drop it. It
        // overwrites a file that it ignores.
        let staged = self.names(what, &["diff-index", "--cached", from])?;
        let added = self.names(what, &["diff-tree", "-r", "--diff-filter=A", from, to])?;
        let is_file = |path: &Path| fs::exists(path) && !fs::is_dir(path);
        let mut files = added.iter().filter(|name| is_file(&self.top.join(name)));
        if let Some(name) = ours.intersection(&staged).next().or_else(|| files.next()) {
            let message =
                format!("{} of the main working directory is in the way", text::line(name));
            let hint = "commit it, unstage it or move it away, and run this again";
            return Err(WorktreeError::git(what, message, Some(hint)));
        }
        on_index_copy(&self.git.acting(), |git| {
            git.call(&["update-index", "-q", "--refresh"])?;
            git.get(what, &["read-tree", "--dry-run", "-m", "-u", from, to]).map(drop)
        })
    }

    /// Restores the files that git has written or removed before it failed, as on a full disk,
    /// except those that were changed `before`, and files above 1 GiB. Other content is the
    /// person's.
    fn restore_files(
        &self,
        what: &str,
        from: &str,
        to: &str,
        before: &BTreeSet<String>,
    ) -> Result<(), WorktreeError> {
        let changed = self.names(what, &["diff-files"])?;
        let added = self.names(what, &["diff-tree", "-r", "--diff-filter=A", from, to])?;
        let mut lost = Vec::new();
        let ours = self.names(what, &["diff-tree", "-r", from, to])?;
        let new = added.iter().filter(|name| fs::exists(&self.top.join(name)));
        for name in ours.intersection(&(&changed - before)).chain(new) {
            let (path, is_new) = (self.top.join(name), added.contains(name));
            let args = ["cat-file", "--filters", &format!("{to}:{name}")];
            let ours = self.git.acting().printing_at_most(1 << 30).call(&args)?;
            let is_ours = match fs::read(&path, 1 << 30) {
                Ok(Some(now)) => ours.code == Some(0) && ours.stdout.starts_with(&now),
                Ok(None) => true,
                Err(_) => false,
            };
            if is_ours && is_new {
                fs::remove_file(&path)?;
            } else if is_ours {
                lost.extend([name.as_bytes(), b"\0"].concat());
            }
        }
        if lost.is_empty() {
            return Ok(());
        }
        let restore = ["checkout-index", "--force", "--quiet", "-z", "--stdin"];
        git::take_stdout(what, self.git.acting().feed(&restore, lost)?).map(drop)
    }

    /// Returns the names of files that a command of git for differences lists.
    fn names(&self, what: &str, args: &[&str]) -> Result<BTreeSet<String>, WorktreeError> {
        let args = [args, &["-z", "--name-only", "--no-renames"]].concat();
        let listed = self.git.get(what, &args)?;
        Ok(listed.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    }

    /// Brings index and files from a commit to which they were moved to that of HEAD: the one
    /// before, or a commit of the person that has moved the branch meanwhile. Git writes index and
    /// files before it moves the branch, with those of the person's commit in their earlier state:
    /// the next commit would revert both.
    pub(super) fn follow_branch(
        &self,
        what: &str,
        from: &str,
        to: &str,
    ) -> Result<(), WorktreeError> {
        let mut behind = self.names(what, &["diff-tree", "-r", from, "HEAD"])?;
        let staged = self.names(what, &["diff-index", "--cached", to])?;
        let ours = self.names(what, &["diff-tree", "-r", from, to])?;
        behind.retain(|name| !staged.contains(name) && !ours.contains(name));
        if !behind.is_empty() {
            let mut reset = vec!["--literal-pathspecs", "reset", "--quiet", "HEAD", "--"];
            reset.extend(behind.iter().map(String::as_str));
            self.change_checkout(what, &reset)?;
        }
        self.change_checkout(what, &["read-tree", "-m", "-u", to, "HEAD"])
    }

    /// Keeps other landings of this repository away until the lock is dropped. The system releases
    /// it when its holder dies.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if another landing takes too long.
    pub fn lock_landings(&self) -> Result<Gate, WorktreeError> {
        let gate = Gate::open(&self.git.own_path(LOCK)?, LANDING);
        let hint = Some("another one in this repository has not ended");
        gate.map_err(|e| WorktreeError::git("begin the landing", e.to_string(), hint))
    }

    /// As [`Repository::lock_landings`], but returns `None` at once if the lock is not free.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git fails.
    pub fn try_lock_landings(&self) -> Result<Option<Gate>, WorktreeError> {
        Ok(Gate::try_open(&self.git.own_path(LOCK)?).ok().flatten())
    }

    /// Runs a command that changes index and files. Retries while another git command holds the
    /// index.
    fn change_checkout(&self, what: &str, args: &[&str]) -> Result<(), WorktreeError> {
        let deadline = Deadline::after(INDEX);
        loop {
            match self.git.acting().get(what, args) {
                Err(WorktreeError::Git { message, .. })
                    if message.contains("index.lock") && !deadline.expired() =>
                {
                    clock::sleep(INDEX_PAUSE);
                }
                done => return done.map(drop),
            }
        }
    }

    /// Returns the commit that `given` names, which `head` must contain, and the number of later
    /// ones.
    ///
    /// # Errors
    /// [`WorktreeError::NotAPart`] for a commit that git does not know or `head` does not contain.
    pub fn part_of(&self, head: &str, given: &str) -> Result<(String, usize), WorktreeError> {
        let other = || WorktreeError::NotAPart { commit: given.to_owned() };
        let name = format!("{given}^{{commit}}");
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &name];
        let commit = self.git.ask(&args)?.ok_or_else(other)?;
        if !self.is_ancestor(&commit, head)? {
            return Err(other());
        }
        let later = self.count(&["rev-list", "--count", head, "--not", &commit, "--"])?;
        Ok((commit, later))
    }

    /// Merges two commits beside all checkouts. `base` replaces their merge base.
    pub(super) fn merged_tree(
        &self,
        base: Option<&str>,
        ours: &str,
        theirs: &str,
    ) -> Result<MergedTree, WorktreeError> {
        let what = "try the merge";
        let base = base.map(|base| format!("--merge-base={base}"));
        let mut args = vec!["merge-tree", "--write-tree", "--name-only", "--no-messages", "-z"];
        args.extend(base.as_deref());
        args.extend([ours, theirs]);
        let output = self.git.call(&args)?;
        let text = String::from_utf8_lossy(&output.stdout);
        // With -z, the id of the tree comes first, then the conflicting files.
        let mut parts = text.split('\0').filter(|part| !part.is_empty()).map(str::to_owned);
        match (output.code, parts.next()) {
            (Some(0), Some(tree)) => Ok(MergedTree::Clean(tree.trim_end().to_owned())),
            (Some(1), Some(_)) => Ok(MergedTree::Conflicts(parts.collect())),
            _ => Err(git::refused(what, &output)),
        }
    }

    /// Returns the commit up to which the main branch has the worktree's changes in other commits,
    /// if `head` continues it.
    pub(super) fn landed_base<'c>(
        &self,
        checkout: &'c Checkout,
        head: &str,
    ) -> Result<Option<&'c str>, WorktreeError> {
        for landed in checkout.landings() {
            if self.is_ancestor(&landed.new, "HEAD")? {
                let is_base = self.is_ancestor(&landed.head, head)?;
                return Ok(is_base.then_some(landed.head.as_str()));
            }
        }
        Ok(None)
    }

    /// Returns the last landed commit of a worktree, if a branch other than its own still has what
    /// has landed: it is not lost with the worktree then. `own` are its branches.
    pub(super) fn kept_landing<'c>(
        &self,
        checkout: &'c Checkout,
        own: &[&str],
    ) -> Result<Option<&'c str>, WorktreeError> {
        for landed in checkout.landings() {
            let format = "--format=%(refname:short)";
            let args = ["for-each-ref", format, "--contains", &landed.new, "refs/heads"];
            let branches = self.git.ask(&args)?.unwrap_or_default();
            if branches.lines().any(|branch| !own.contains(&branch)) {
                return Ok(Some(&landed.head));
            }
        }
        Ok(None)
    }

    fn merged_tree_without_conflict(
        &self,
        base: Option<&str>,
        ours: &str,
        theirs: &str,
    ) -> Result<String, WorktreeError> {
        match self.with(self.git.acting()).merged_tree(base, ours, theirs)? {
            MergedTree::Clean(tree) => Ok(tree),
            MergedTree::Conflicts(files) => {
                let into = self.main_name()?;
                Err(WorktreeError::Conflicts { into, files })
            }
        }
    }

    /// Copies the commits one by one onto `old`, with their authors and messages. Returns the last
    /// copy.
    fn rebased(&self, base: Option<&str>, old: &str, head: &str) -> Result<String, WorktreeError> {
        let what = "rebase the commits";
        let mut args =
            vec!["rev-list", "--reverse", "--topo-order", "--parents", head, "--not", old];
        args.extend(base);
        args.push("--");
        let list = self.git.get(what, &args)?;
        let mut onto = old.to_owned();
        for line in list.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [commit, parent] = words[..] else {
                let message = "there is a merge among them, or a commit without a parent";
                return Err(WorktreeError::git(what, message, Some("squash or merge them")));
            };
            let tree = self.merged_tree_without_conflict(Some(parent), &onto, commit)?;
            if tree == self.tree_of(&onto)? && tree != self.tree_of(parent)? {
                // The main branch has this change already.
                continue;
            }
            let author = ["show", "--no-patch", "--format=%an%x00%ae%x00%ad", "--date=raw", commit];
            let author = self.git.get(what, &author)?;
            let mut author = author.trim_end_matches('\n').split('\0');
            let names = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"];
            let author: Vec<_> =
                names.iter().map(|name| (*name, author.next().unwrap_or_default())).collect();
            let message = self.git.get(what, &["show", "--no-patch", "--format=%B", commit])?;
            onto = self.commit(&tree, &[&onto], message.trim_end(), &author)?;
        }
        Ok(onto)
    }

    /// Makes a commit, signed if git is configured so.
    fn commit(
        &self,
        tree: &str,
        parents: &[&str],
        message: &str,
        author: &[(&str, &str)],
    ) -> Result<String, WorktreeError> {
        let signs = ["config", "--type=bool", "--get", "commit.gpgsign"];
        let signs = self.git.ask(&signs)?.as_deref() == Some("true");
        let mut args = vec!["commit-tree", tree];
        args.extend(signs.then_some("-S"));
        args.extend(parents.iter().flat_map(|parent| ["-p", parent]));
        let git = author.iter().fold(self.git.acting(), |git, (name, value)| git.with(name, value));
        let output = git.feed(&args, format!("{message}\n").into_bytes())?;
        let commit = git::take_stdout("make the commit", output)?;
        Ok(String::from_utf8_lossy(&commit).trim_end().to_owned())
    }

    /// The message of a single commit, or a line for each of several.
    fn squash_message(
        &self,
        base: Option<&str>,
        landing: &Landing<'_>,
    ) -> Result<String, WorktreeError> {
        let log = |format: &str, rest: &[&str]| {
            let mut args = vec!["log", "--reverse", format, landing.head, "--not", "HEAD"];
            args.extend(base);
            args.extend(rest);
            args.push("--");
            self.git.get("read the messages of the commits", &args)
        };
        let subjects = log("--format=%s", &["--no-merges"])?;
        let subjects: Vec<String> = subjects.lines().map(text::line).collect();
        if let [_] = subjects.as_slice() {
            return Ok(log("--format=%B", &["--no-merges"])?.trim().to_owned());
        }
        let squash = || format!("Squash {} commits of {}", subjects.len(), landing.from);
        let mut message = landing.title.map_or_else(squash, text::line) + "\n";
        for subject in subjects.iter().take(SUBJECTS) {
            message.push_str(&format!("\n* {subject}"));
        }
        if let more @ 1.. = subjects.len().saturating_sub(SUBJECTS) {
            message.push_str(&format!("\n* and {more} more"));
        }
        Ok(message)
    }

    pub(super) fn tree_of(&self, commit: &str) -> Result<String, WorktreeError> {
        let name = format!("{commit}^{{tree}}");
        let tree = self.git.get("read a commit", &["rev-parse", "--verify", &name])?;
        Ok(tree.trim_end().to_owned())
    }

    pub(super) fn is_ancestor(&self, older: &str, newer: &str) -> Result<bool, WorktreeError> {
        let output = self.git.call(&["merge-base", "--is-ancestor", older, newer])?;
        Ok(output.code == Some(0))
    }

    fn is_bare(&self) -> Result<bool, WorktreeError> {
        Ok(self.git.ask(&["rev-parse", "--is-bare-repository"])?.as_deref() == Some("true"))
    }

    /// Refuses if the main working directory has another branch than this, or another commit.
    fn must_be_at(
        &self,
        branch: Option<&str>,
        commit: &str,
        what: &str,
    ) -> Result<(), WorktreeError> {
        if let Some(branch) = branch
            && self.main_branch()?.as_deref() != Some(branch)
        {
            return Err(WorktreeError::OtherBranch {
                dir: self.top.display().to_string(),
                branch: branch.to_owned(),
                now: self.main_name()?,
            });
        }
        let head = self.git.get(what, &["rev-parse", "--verify", "HEAD^{commit}"])?;
        if head.trim_end() != commit {
            return Err(WorktreeError::Moved { into: self.main_name()? });
        }
        Ok(())
    }
}
