//! Looks at the top of the repository in which a command runs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use model::team::project::{Project, ProjectCheck, ProjectFiles};
use sys::{env, fs};
use worktree::Repository;

use crate::Context;

/// Size limit of a file that is looked at, in bytes. A larger one counts as unreadable.
const LARGEST: u64 = 1024 * 1024;

/// A directory, as far as it can be read. Symbolic links are not followed.
struct TopDirectory {
    path: PathBuf,
    names: BTreeSet<String>,
}

impl ProjectFiles for TopDirectory {
    fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(&self.path.join(path), LARGEST).ok()??;
        String::from_utf8(bytes).ok()
    }
}

/// Recognizes the repository whose top is `dir`. What cannot be read is skipped.
pub fn look_at(dir: &Path) -> Project {
    let names = fs::names(dir).unwrap_or_default().into_iter().collect();
    Project::detect(&TopDirectory { path: dir.to_owned(), names })
}

/// Returns the programs of checks that are not on the caller's PATH, each once.
pub fn missing_programs(ctx: &Context, project: &Project) -> Vec<&'static str> {
    let programs: BTreeSet<&str> = project.checks.iter().map(ProjectCheck::program).collect();
    let path = ctx.caller.var("PATH");
    let is_missing =
        |program: &&str| env::find_program(OsStr::new(program), path, &ctx.caller.cwd).is_none();
    programs.into_iter().filter(is_missing).collect()
}

/// Returns whether members can have git worktrees in the caller's directory.
pub fn has_worktrees(ctx: &Context) -> bool {
    Repository::find(&ctx.caller.cwd, &ctx.caller.env).is_ok()
}
