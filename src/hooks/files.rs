//! Finds configured hooks: a user's own always count, a project's only if the user trusts the
//! project. A file that cannot be read adds a warning and never an error.

use std::path::{Path, PathBuf};

use crate::model::hook::{ClaudeHooks, Hook, OwnHooks, read_claude, read_own};
use crate::sys::env;
use crate::sys::fs;

/// Size limit of a settings file, in bytes; `fs::read` rejects a larger one.
const LARGEST: u64 = 1 << 20;
const OTHERS_WRITE: u32 = 0o002;

/// The files that may configure hooks.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    /// `<config root>/phalanx/hooks.toml`.
    pub(crate) own: PathBuf,
    /// `<config root>/settings.json`.
    pub(crate) user: PathBuf,
    /// The project's directory, which may hold `.claude/settings.json` and
    /// `.claude/settings.local.json`.
    pub(crate) project: Option<PathBuf>,
}

impl Places {
    /// The paths of the project's settings files, whether or not they exist.
    pub(crate) fn project_settings(&self) -> Vec<PathBuf> {
        let dir = self.project.iter().map(|project| project.join(".claude"));
        dir.flat_map(|dir| ["settings.json", "settings.local.json"].map(|file| dir.join(file)))
            .collect()
    }
}

/// A hook and the file that configures it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) hook: Hook,
    /// The path of the file, for messages.
    pub(crate) source: String,
    /// True if the file is one of Claude's settings files, which a native Claude teammate reads
    /// itself.
    pub(crate) of_claude: bool,
}

/// The hooks that may run, and a warning for each file or entry that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Found {
    pub(crate) hooks: Vec<Known>,
    pub(crate) warnings: Vec<String>,
}

/// Reads the user's own file, the user's settings and the project's settings, in this order.
pub(crate) fn find(places: &Places) -> Found {
    let mut found = Found::default();
    let own = own_hooks(&places.own, &mut found);
    let settings = settings(places, &own.trusted, &mut found);
    if settings.iter().any(|(_, read)| read.disabled) {
        return found;
    }
    for (path, read) in settings {
        let source = path.display().to_string();
        found.warnings.extend(read.problems.iter().map(|problem| format!("{source}: {problem}")));
        for hook in read.hooks {
            // Like Claude, runs a hook once that is configured identically in two files.
            if !found.hooks.iter().any(|known| known.of_claude && known.hook == hook) {
                found.hooks.push(Known { hook, source: source.clone(), of_claude: true });
            }
        }
    }
    found
}

fn own_hooks(path: &Path, found: &mut Found) -> OwnHooks {
    let text = match read(path) {
        Ok(None) => return OwnHooks::default(),
        Ok(Some(text)) => text,
        Err(problem) => {
            found.warnings.push(format!("hooks in {} are disabled: {problem}", path.display()));
            return OwnHooks::default();
        }
    };
    let own = read_own(&text).unwrap_or_else(|e| {
        found.warnings.push(format!("hooks in {0} are disabled: {0}:{e}", path.display()));
        OwnHooks::default()
    });
    let source = path.display().to_string();
    let known =
        |hook: &Hook| Known { hook: hook.clone(), source: source.clone(), of_claude: false };
    found.hooks.extend(own.hooks.iter().map(known));
    own
}

/// Reads those of Claude's settings files whose hooks may run.
fn settings(places: &Places, trusted: &[String], found: &mut Found) -> Vec<(PathBuf, ClaudeHooks)> {
    let mut heard: Vec<(PathBuf, ClaudeHooks)> = claude_hooks(&places.user, found)
        .map(|read| (places.user.clone(), read))
        .into_iter()
        .collect();
    let Some(project) = &places.project else { return heard };
    let trusts = trusts(trusted, project);
    for path in places.project_settings() {
        // If the project is the home directory, its settings file is the user's.
        if fs::canonical(&path).ok() == fs::canonical(&places.user).ok() {
            continue;
        }
        let Some(read) = claude_hooks(&path, found) else { continue };
        if trusts {
            heard.push((path, read));
        } else if !read.hooks.is_empty() {
            found.warnings.push(format!(
                "hooks in {} are disabled: {} is not listed under `trusted` in {}",
                path.display(),
                project.display(),
                places.own.display()
            ));
        }
    }
    heard
}

fn claude_hooks(path: &Path, found: &mut Found) -> Option<ClaudeHooks> {
    let read = read(path).and_then(|text| text.map(|text| read_claude(&text)).transpose());
    match read {
        Ok(read) => read,
        Err(problem) => {
            found.warnings.push(format!("hooks in {} are disabled: {problem}", path.display()));
            None
        }
    }
}

/// Returns true if the project is one of the trusted directories or lies below one.
fn trusts(trusted: &[String], project: &Path) -> bool {
    let Ok(project) = fs::canonical(project) else { return false };
    trusted
        .iter()
        .filter_map(|dir| fs::canonical(Path::new(dir)).ok())
        .any(|dir| project.starts_with(dir))
}

/// Returns true if the user's own file lists the project, or a directory above it, as trusted.
pub(crate) fn is_trusted(places: &Places) -> bool {
    let own = own_hooks(&places.own, &mut Found::default());
    places.project.as_ref().is_some_and(|project| trusts(&own.trusted, project))
}

/// Reads a text file that belongs to the user or to root and is not world-writable (SEC-07).
/// Follows symbolic links, because users keep such files elsewhere. Returns `None` if the file does
/// not exist.
///
/// # Errors
/// A message if the path is a broken symbolic link or no regular file, if the file belongs to a
/// user other than the effective user and root, is world-writable, larger than the limit or not
/// UTF-8, or if an I/O operation fails.
pub(crate) fn read(path: &Path) -> Result<Option<String>, String> {
    let Ok(real) = fs::canonical(path) else {
        return if fs::exists(path) {
            Err("it is a broken symbolic link".to_owned())
        } else {
            Ok(None)
        };
    };
    let Some(about) = fs::about(&real).map_err(|e| e.to_string())? else { return Ok(None) };
    if about.uid != env::effective_uid() && about.uid != 0 {
        return Err("it belongs to another user".to_owned());
    }
    if about.mode & OTHERS_WRITE != 0 {
        return Err("it is world-writable".to_owned());
    }
    let bytes = fs::read(&real, LARGEST).map_err(|e| e.to_string())?;
    let text = bytes.map(String::from_utf8).transpose();
    text.map_err(|_| "it is not UTF-8 text".to_owned())
}
