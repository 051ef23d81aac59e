//! Moves commits between the repositories of two machines: in a bundle, or through a git remote.
//! Objects of another machine are not trusted: git checks each, and starts no program that an
//! address names.

use std::path::{Path, PathBuf};

use super::error::WorktreeError;
use super::git::Git;
use super::repository::Repository;
use sys::fs;

/// Largest bundle, in bytes.
pub const LARGEST_BUNDLE: u64 = 1 << 30;

/// Namespace of the refs that name commits on their way.
const PASSING: &str = "refs/phalanx/passing";

/// Settings of each call that gives or takes commits. `ext::` addresses would run a command.
/// Maintenance in the background would outlive the call.
const SETTINGS: [&str; 6] = [
    "protocol.ext.allow=never",
    "protocol.file.allow=always",
    "fetch.fsckObjects=true",
    "transfer.fsckObjects=true",
    "gc.auto=0",
    "maintenance.auto=false",
];

/// Returns the ref of a commit that is on its way in the operation `token`.
pub(super) fn passing_ref(token: &str, commit: &str) -> String {
    format!("{PASSING}/{token}/{commit}")
}

/// Checks the id of an object, as another machine sent it or a file of the team names it.
///
/// # Errors
/// [`WorktreeError::Git`] for other text.
pub(super) fn check_id(id: &str) -> Result<(), WorktreeError> {
    if matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(());
    }
    Err(WorktreeError::git("use a commit", "it is named by something else than an id", None))
}

impl Git {
    /// Returns true if the repository has this commit.
    pub(super) fn has_commit(&self, commit: &str) -> Result<bool, WorktreeError> {
        check_id(commit)?;
        Ok(self.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?.is_some())
    }

    /// Writes a bundle with `commits`, without those that the receiver has by `known`. Ids in
    /// `known` that are not here are ignored.
    pub(super) fn write_bundle(
        &self,
        file: &Path,
        token: &str,
        commits: &[String],
        known: &[String],
    ) -> Result<(), WorktreeError> {
        let what = "pack the commits";
        let refs: Vec<String> = commits.iter().map(|commit| passing_ref(token, commit)).collect();
        let mut shared = Vec::new();
        for commit in known {
            if self.has_commit(commit)? {
                shared.push(commit.as_str());
            }
        }
        let file = file.to_string_lossy();
        let mut args = vec!["bundle", "create", "--quiet", &file];
        args.extend(refs.iter().map(String::as_str));
        args.push("--not");
        args.extend(shared);
        let named = refs
            .iter()
            .zip(commits)
            .try_for_each(|(name, commit)| self.get(what, &["update-ref", name, commit]).map(drop));
        let written = named.and_then(|()| self.patient().get(what, &args).map(drop));
        for name in &refs {
            // A ref that is left only keeps its commit.
            let _ = self.call(&["update-ref", "-d", name]);
        }
        written
    }

    /// Fetches `refspecs` from a bundle or an address.
    pub(super) fn fetch(&self, from: &str, refspecs: &[String]) -> Result<(), WorktreeError> {
        let mut args = vec!["fetch", "--quiet", "--no-tags", "--no-prune", "--no-write-fetch-head"];
        args.extend(["--no-recurse-submodules", "--no-auto-gc", "--", from]);
        args.extend(refspecs.iter().map(String::as_str));
        self.exchanging().get("take the commits", &args).map(drop)
    }

    /// Git that gives commits to an address or takes them from one.
    fn exchanging(&self) -> Git {
        self.acting().without_policy().configured(&SETTINGS)
    }

    /// Pushes `commits` to an address, as refs of the operation `token`.
    pub(super) fn push(
        &self,
        to: &str,
        token: &str,
        commits: &[String],
    ) -> Result<(), WorktreeError> {
        let spec = |commit: &String| format!("+{commit}:{}", passing_ref(token, commit));
        self.push_specs(to, &commits.iter().map(spec).collect::<Vec<_>>())
    }

    /// Pushes refspecs to an address.
    pub(super) fn push_specs(&self, to: &str, specs: &[String]) -> Result<(), WorktreeError> {
        let mut args = vec!["push", "--quiet", "--no-verify", "--no-follow-tags"];
        args.extend(["--recurse-submodules=no", "--", to]);
        args.extend(specs.iter().map(String::as_str));
        self.exchanging().get("push the commits to the remote", &args).map(drop)
    }

    /// Unpacks the refs of a bundle into a new repository at `scratch`, which borrows the objects
    /// of this one.
    fn unpack_bundle(
        &self,
        scratch: &Path,
        bundle: &[u8],
        refs: &[String],
        known: &[String],
    ) -> Result<(), WorktreeError> {
        let what = "unpack the commits";
        let format = self.get(what, &["rev-parse", "--show-object-format"])?;
        let format = format!("--object-format={}", format.trim());
        let shown = scratch.to_string_lossy();
        self.get(what, &["init", "--quiet", "--bare", "--template=", &format, &shown])?;
        let objects = ["rev-parse", "--path-format=absolute", "--git-path", "objects"];
        let objects = self.get(what, &objects)?;
        fs::private_dir(&scratch.join("objects/info"))?;
        fs::write_atomic(&scratch.join("objects/info/alternates"), objects.as_bytes())?;
        let inner = self.at(scratch);
        for commit in known {
            if inner.has_commit(commit)? {
                // A bundle is refused unless refs reach what it builds on.
                let name = format!("{PASSING}/known/{commit}");
                inner.get(what, &["update-ref", &name, commit])?;
            }
        }
        let file = scratch.join("bundle");
        fs::write_atomic(&file, bundle)?;
        let same: Vec<String> = refs.iter().map(|name| format!("{name}:{name}")).collect();
        inner.fetch(&file.to_string_lossy(), &same)
    }

    /// Returns a path in the repository's own directory.
    pub(super) fn own_path(&self, name: &str) -> Result<PathBuf, WorktreeError> {
        Ok(self.path("ask git for its directory", &["--git-common-dir"])?.join(name))
    }
}

impl Repository {
    /// Takes commits out of a bundle that a host made. Older versions of git do not check the
    /// objects of a bundle, so it goes to a repository of its own, and from there through the
    /// checks of a fetch. `known` are the commits that the sender left out.
    ///
    /// # Errors
    /// [`WorktreeError::Git`] if git refuses an object, or a commit is not in the bundle.
    pub fn take_bundle(
        &self,
        bundle: &[u8],
        token: &str,
        commits: &[String],
        known: &[String],
    ) -> Result<(), WorktreeError> {
        let scratch = self.git.own_path(&format!("phalanx-{token}"))?;
        let refs: Vec<String> = commits.iter().map(|commit| passing_ref(token, commit)).collect();
        let unpacked = self.git.unpack_bundle(&scratch, bundle, &refs, known);
        let fetched = unpacked.and_then(|()| self.git.fetch(&scratch.to_string_lossy(), &refs));
        // A directory that is left has a name that is never used again.
        let _ = fs::remove_dir_all(&scratch);
        fetched
    }
}
