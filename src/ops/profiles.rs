//! Profiles: the built-in ones, and the user's own, which are read again at each use.

mod trial;

use std::path::{Path, PathBuf};

use super::context::Context;
use super::error::OpsError;
use crate::model::name::{check_name, nearest};
use crate::profile::{self, Profile};
use crate::sys::fs;

pub(crate) use trial::{Trial, watch};

/// Size limit of a profile file, in bytes.
const LARGEST: u64 = 256 * 1024;
const ENDING: &str = ".toml";

/// Where a profile comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Builtin,
    /// A user's file, which overrides a built-in profile of the same name.
    File(PathBuf),
}

/// A profile by name, whether it can be parsed or not.
#[derive(Debug)]
pub(crate) struct ListedProfile {
    pub(crate) name: String,
    pub(crate) source: Source,
    /// Its text; empty if it cannot be read.
    pub(crate) text: String,
    pub(crate) profile: Result<Profile, OpsError>,
}

/// Returns the profile of this name; a user's own overrides a built-in one.
///
/// # Errors
/// [`OpsError::NoSuchProfile`] for an unknown name; [`OpsError::Usage`] for a file that cannot be
/// read, [`OpsError::Profile`] for one that cannot be parsed.
pub(crate) fn find(ctx: &Context, name: &str) -> Result<Profile, OpsError> {
    listed(ctx, name)?.profile
}

/// Returns the profile of this name with its source, even if it cannot be parsed.
///
/// # Errors
/// [`OpsError::NoSuchProfile`] for an unknown name.
pub(crate) fn listed(ctx: &Context, name: &str) -> Result<ListedProfile, OpsError> {
    let own = own_names(ctx)?;
    let name = name.to_owned();
    if own.contains(&name) {
        let file = ctx.store.profiles().join(format!("{name}{ENDING}"));
        let found = read(&file);
        let text = found.as_ref().map_or(String::new(), Clone::clone);
        let parse = |text: String| {
            Profile::parse(&name, &text)
                .map_err(|source| OpsError::Profile { file: file.clone(), source })
        };
        let profile = found.and_then(parse);
        return Ok(ListedProfile { name, source: Source::File(file), text, profile });
    }
    match profile::builtin_text(&name).zip(profile::builtin(&name)) {
        Some((text, profile)) => Ok(ListedProfile {
            name,
            source: Source::Builtin,
            text: text.to_owned(),
            profile: Ok(profile),
        }),
        None => {
            let known = names(&own);
            let nearest = nearest(&name, known.iter().map(String::as_str)).map(str::to_owned);
            Err(OpsError::NoSuchProfile { name, known, nearest })
        }
    }
}

/// Returns all profiles, sorted by name.
///
/// # Errors
/// A profile directory that cannot be read.
pub(crate) fn list(ctx: &Context) -> Result<Vec<ListedProfile>, OpsError> {
    names(&own_names(ctx)?).iter().map(|name| listed(ctx, name)).collect()
}

fn names(own: &[String]) -> Vec<String> {
    let mut names: Vec<String> =
        profile::builtin_names().map(str::to_owned).chain(own.iter().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the names of the files that can be profiles; other files are skipped.
fn own_names(ctx: &Context) -> Result<Vec<String>, OpsError> {
    let files = fs::list(&ctx.store.profiles())?;
    let name = |file: &String| file.strip_suffix(ENDING).map(str::to_owned);
    Ok(files.iter().filter_map(name).filter(|name| check_name(name).is_ok()).collect())
}

fn read(file: &Path) -> Result<String, OpsError> {
    let unreadable = |problem: &str| OpsError::Usage {
        problem: format!("profile {}: {problem}", file.display()),
        hint: Some("the keys are described in docs/profiles.md".to_owned()),
    };
    let bytes = fs::read(file, LARGEST)?.ok_or_else(|| unreadable("it no longer exists"))?;
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text"))
}

#[cfg(test)]
mod tests;
