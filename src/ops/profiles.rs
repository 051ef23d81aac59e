//! The profiles there are: the built-in ones, and the users' own, read anew each time they are needed.

mod trial;

use std::path::{Path, PathBuf};

use super::context::Context;
use super::error::OpsError;
use crate::model::sheet;
use crate::profile::{self, Profile};
use crate::sys::fs;

pub(crate) use trial::{Trial, watch};

/// A larger file is no profile.
const LARGEST: u64 = 256 * 1024;
const ENDING: &str = ".toml";

/// Where a profile comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    Builtin,
    /// A user's file; it stands in the place of a built-in profile of the same name.
    File(PathBuf),
}

/// A profile by name, readable or not.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) source: Source,
    /// Its text, as far as it could be read.
    pub(crate) sheet: String,
    pub(crate) profile: Result<Profile, OpsError>,
}

/// The profile of this name; a user's own wins.
///
/// # Errors
/// No such profile, or a file that is not one.
pub(crate) fn find(ctx: &Context, name: &str) -> Result<Profile, OpsError> {
    listed(ctx, name)?.profile
}

/// The profile of this name with its source.
///
/// # Errors
/// No such profile.
pub(crate) fn listed(ctx: &Context, name: &str) -> Result<Listed, OpsError> {
    let own = own_names(ctx)?;
    let name = name.to_owned();
    if own.contains(&name) {
        let file = ctx.store.profiles().join(format!("{name}{ENDING}"));
        let text = read(&file);
        let sheet = text.as_ref().map_or(String::new(), Clone::clone);
        let parse = |text: String| {
            Profile::parse(&name, &text)
                .map_err(|source| OpsError::Profile { file: file.clone(), source })
        };
        let profile = text.and_then(parse);
        return Ok(Listed { name, source: Source::File(file), sheet, profile });
    }
    match profile::builtin_sheet(&name).zip(profile::builtin(&name)) {
        Some((sheet, profile)) => Ok(Listed {
            name,
            source: Source::Builtin,
            sheet: sheet.to_owned(),
            profile: Ok(profile),
        }),
        None => {
            let known = names(&own);
            let nearest =
                sheet::nearest(&name, known.iter().map(String::as_str)).map(str::to_owned);
            Err(OpsError::NoSuchProfile { name, known, nearest })
        }
    }
}

/// All profiles, by name.
///
/// # Errors
/// A directory that cannot be read.
pub(crate) fn list(ctx: &Context) -> Result<Vec<Listed>, OpsError> {
    names(&own_names(ctx)?).iter().map(|name| listed(ctx, name)).collect()
}

fn names(own: &[String]) -> Vec<String> {
    let mut names: Vec<String> =
        profile::builtin_names().map(str::to_owned).chain(own.iter().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The names of the files that can be profiles; others are passed over.
fn own_names(ctx: &Context) -> Result<Vec<String>, OpsError> {
    let files = fs::list(&ctx.store.profiles())?;
    let name = |file: &String| file.strip_suffix(ENDING).map(str::to_owned);
    Ok(files.iter().filter_map(name).filter(|name| sheet::check_name(name).is_ok()).collect())
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
