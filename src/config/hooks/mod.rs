//! Finds configured hooks: a user's own always count, a project's only if the user trusts the
//! project. A file that cannot be read adds a warning and never an error.

mod claude;
mod own;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use claude::{ClaudeHooks, parse_claude_hooks};
use model::team::hook::HookCommand;
use own::{OwnHooks, parse_own_hooks};
use sys::env;
use sys::fs::{self, About};

pub(super) use own::{HookTable, hook_commands};

/// Size limit of a settings file, in bytes; `fs::read` rejects a larger one.
const LARGEST: u64 = 1 << 20;
const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITE: u32 = 0o020;

/// The files that may configure hooks.
#[derive(Debug, Clone)]
pub struct HookFiles {
    /// `<config root>/phalanx/hooks.toml`.
    pub own: PathBuf,
    /// `<config root>/settings.json`.
    pub user: PathBuf,
    /// The project's directory, which may hold `.claude/settings.json` and
    /// `.claude/settings.local.json`.
    pub project: Option<PathBuf>,
}

impl HookFiles {
    /// The paths of the project's settings files, whether or not they exist.
    pub fn project_settings(&self) -> Vec<PathBuf> {
        let dir = self.project.iter().map(|project| project.join(".claude"));
        dir.flat_map(|dir| ["settings.json", "settings.local.json"].map(|file| dir.join(file)))
            .collect()
    }
}

/// A hook and the file that configures it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredHook {
    pub hook: HookCommand,
    /// The path of the file, for messages.
    pub source: String,
    /// True if the file is one of Claude's settings files, which a native Claude teammate reads
    /// itself.
    pub of_claude: bool,
}

/// The hooks that may run, and a warning for each file or entry that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundHooks {
    pub hooks: Vec<ConfiguredHook>,
    pub warnings: Vec<String>,
}

/// Reads the user's own file, the user's settings and the project's settings, in this order.
pub fn find_hooks(files: &HookFiles) -> FoundHooks {
    let mut found = FoundHooks::default();
    let own = read_own_hooks(&files.own, &mut found);
    let settings = read_claude_settings(files, &own.trusted, &mut found);
    if settings.iter().any(|(_, read)| read.disabled) {
        return found;
    }
    for (path, read) in settings {
        let source = path.display().to_string();
        found.warnings.extend(read.problems.iter().map(|problem| format!("{source}: {problem}")));
        for hook in read.hooks {
            // Like Claude, runs a hook once that is configured identically in two files.
            if !found.hooks.iter().any(|known| known.of_claude && known.hook == hook) {
                found.hooks.push(ConfiguredHook { hook, source: source.clone(), of_claude: true });
            }
        }
    }
    found
}

fn read_own_hooks(path: &Path, found: &mut FoundHooks) -> OwnHooks {
    let text = match read_trusted_file(path) {
        Ok(None) => return OwnHooks::default(),
        Ok(Some(text)) => text,
        Err(problem) => {
            found.warnings.push(format!("hooks in {} are disabled: {problem}", path.display()));
            return OwnHooks::default();
        }
    };
    let own = parse_own_hooks(&text).unwrap_or_else(|e| {
        found.warnings.push(format!("hooks in {0} are disabled: {0}:{e}", path.display()));
        OwnHooks::default()
    });
    let source = path.display().to_string();
    found.hooks.extend(own.hooks.iter().map(|hook| ConfiguredHook {
        hook: hook.clone(),
        source: source.clone(),
        of_claude: false,
    }));
    own
}

/// Reads those of Claude's settings files whose hooks may run.
fn read_claude_settings(
    files: &HookFiles,
    trusted: &[String],
    found: &mut FoundHooks,
) -> Vec<(PathBuf, ClaudeHooks)> {
    let mut applied: Vec<(PathBuf, ClaudeHooks)> = read_claude_hooks(&files.user, found)
        .map(|read| (files.user.clone(), read))
        .into_iter()
        .collect();
    let Some(project) = &files.project else { return applied };
    let is_trusted = is_below(trusted, project);
    for path in files.project_settings() {
        // If the project is the home directory, its settings file is the user's.
        if fs::canonical(&path).ok() == fs::canonical(&files.user).ok() {
            continue;
        }
        let Some(read) = read_claude_hooks(&path, found) else { continue };
        if is_trusted {
            applied.push((path, read));
        } else if !read.hooks.is_empty() {
            found.warnings.push(format!(
                "hooks in {} are disabled: {} is not listed under `trusted` in {}",
                path.display(),
                project.display(),
                files.own.display()
            ));
        }
    }
    applied
}

fn read_claude_hooks(path: &Path, found: &mut FoundHooks) -> Option<ClaudeHooks> {
    let read = read_trusted_file(path)
        .and_then(|text| text.map(|text| parse_claude_hooks(&text)).transpose());
    match read {
        Ok(read) => read,
        Err(problem) => {
            found.warnings.push(format!("hooks in {} are disabled: {problem}", path.display()));
            None
        }
    }
}

/// Returns true if the project is one of the trusted directories or lies below one.
fn is_below(trusted: &[String], project: &Path) -> bool {
    let Ok(project) = fs::canonical(project) else { return false };
    trusted
        .iter()
        .filter_map(|dir| fs::canonical(Path::new(dir)).ok())
        .any(|dir| project.starts_with(dir))
}

/// Returns true if the user's own file lists the project, or a directory above it, as trusted.
pub fn is_trusted(files: &HookFiles) -> bool {
    let own = read_own_hooks(&files.own, &mut FoundHooks::default());
    files.project.as_ref().is_some_and(|project| is_below(&own.trusted, project))
}

/// Reads a text file that belongs to the user or to root and that no other user can write (SEC-07).
/// Follows symbolic links, because users keep such files elsewhere. Returns `None` if the file does
/// not exist.
///
/// # Errors
/// A message if the path is a broken symbolic link or no regular file, if the file belongs to a
/// user other than the effective user and root, can be written by others, is larger than the limit
/// or not UTF-8, or if an I/O operation fails.
pub fn read_trusted_file(path: &Path) -> Result<Option<String>, String> {
    let Ok(real) = fs::canonical(path) else {
        return if fs::exists(path) {
            Err("it is a broken symbolic link".to_owned())
        } else {
            Ok(None)
        };
    };
    let Some(about) = fs::about(&real).map_err(|e| e.to_string())? else { return Ok(None) };
    if let Some(problem) = foreign_access(&about, env::effective_uid(), env::effective_gid()) {
        return Err(problem.to_owned());
    }
    let bytes = fs::read(&real, LARGEST).map_err(|e| e.to_string())?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| "it is not UTF-8 text".to_owned())
}

/// Returns the reason why a user other than `user` and root can change a file. The user's own group
/// may write: with a private group for each user, a umask of 002 is usual.
fn foreign_access(about: &About, user: u32, group: u32) -> Option<&'static str> {
    if about.uid != user && about.uid != 0 {
        Some("it belongs to another user")
    } else if about.mode & OTHERS_WRITE != 0 {
        Some("it is world-writable")
    } else if about.mode & GROUP_WRITE != 0 && about.gid != group {
        Some("it is writable by a group other than yours")
    } else {
        None
    }
}
