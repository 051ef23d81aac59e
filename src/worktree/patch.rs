//! The changes between two commits, as patches and as lists of files, whatever git is configured to
//! show.

use serde::Serialize;

use super::error::WorktreeError;
use super::exchange::check_id;
use super::git::{self, Git};
use super::repository::Repository;
use sys::exec::ExecError;

/// Largest patch, in bytes.
const LARGEST_PATCH: usize = 64 << 20;

/// Settings of which git has no option.
const SETTINGS: [&str; 2] = ["diff.suppressBlankEmpty=false", "core.quotePath=true"];

/// Options that make the output independent of the configuration, which may also name programs to
/// run.
const PINNED: [&str; 13] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--inter-hunk-context=0",
    "--diff-algorithm=default",
    "--indent-heuristic",
    "-l1000",
    "--submodule=short",
    "--ignore-submodules=none",
    "--no-relative",
    "-O/dev/null",
];

/// The form of a patch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PatchOptions {
    /// Lines that differ only in white space are the same.
    pub ignores_whitespace: bool,
    /// A list of the files precedes the changes, as `git diff --stat` prints it.
    pub lists_files: bool,
}

/// The number of changed lines in one file; none for a binary file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    pub path: String,
    /// The path before, if git finds that the file was renamed.
    pub old_path: Option<String>,
    pub added: usize,
    pub removed: usize,
}

impl Repository {
    /// Returns the changes from one commit to another as a patch, with file names as git quotes them.
    ///
    /// # Errors
    /// [`WorktreeError::TooManyChanges`] for a patch of more than 64 MiB; [`WorktreeError::Git`] if
    /// git fails, for example for a commit that it no longer has; [`WorktreeError::Exec`] if it is
    /// cancelled, times out or cannot be run.
    pub fn patch(
        &self,
        from: &str,
        to: &str,
        options: &PatchOptions,
    ) -> Result<Vec<u8>, WorktreeError> {
        let mut form = vec!["--patch", "--unified=3", "--find-renames", "--full-index"];
        form.extend(options.ignores_whitespace.then_some("--ignore-all-space"));
        form.extend(options.lists_files.then_some("--stat"));
        diff_tree(&self.git.patient(), &form, from, to, &[])
    }

    /// Returns the files that differ between two commits.
    pub fn changed_files(&self, from: &str, to: &str) -> Result<Vec<ChangedFile>, WorktreeError> {
        let form = ["--numstat", "-z", "--find-renames"];
        let output = diff_tree(&self.git, &form, from, to, &[])?;
        Ok(parse_numstat(&String::from_utf8_lossy(&output)))
    }
}

/// Compares two commits, only in `paths` if there are any.
pub(super) fn diff_tree(
    git: &Git,
    form: &[&str],
    from: &str,
    to: &str,
    paths: &[&str],
) -> Result<Vec<u8>, WorktreeError> {
    let verb = ["--literal-pathspecs", "diff-tree", "-r"];
    compare(git, &[&verb, form].concat(), from, to, paths)
}

/// Compares two commits or blobs by a command of git.
pub(super) fn compare(
    git: &Git,
    verb: &[&str],
    from: &str,
    to: &str,
    paths: &[&str],
) -> Result<Vec<u8>, WorktreeError> {
    check_id(from)?;
    check_id(to)?;
    let args = [verb, &PINNED[..], &[from, to, "--"], paths].concat();
    let run = git.configured(&SETTINGS).printing_at_most(LARGEST_PATCH).call(&args);
    let output = run.map_err(|error| match error {
        WorktreeError::Exec(ExecError::TooMuchOutput { limit, .. }) => {
            let (from, to) = (from.to_owned(), to.to_owned());
            WorktreeError::TooManyChanges { mib: limit >> 20, from, to }
        }
        other => other,
    })?;
    git::take_stdout("compare the commits", output)
}

/// Reads `--numstat -z`: `ADDED\tREMOVED\tPATH`, and for a renamed file an empty path, which the old
/// and the new one follow.
fn parse_numstat(text: &str) -> Vec<ChangedFile> {
    let mut changes = Vec::new();
    let mut fields = text.split('\0');
    while let Some(field) = fields.next() {
        let [added, removed, path] = field.splitn(3, '\t').collect::<Vec<_>>()[..] else {
            continue;
        };
        let (old_path, path) = match path {
            "" => (fields.next().map(str::to_owned), fields.next().unwrap_or_default()),
            path => (None, path),
        };
        let count = |number: &str| number.parse().unwrap_or_default();
        let (added, removed) = (count(added), count(removed));
        changes.push(ChangedFile { path: path.to_owned(), old_path, added, removed });
    }
    changes
}
