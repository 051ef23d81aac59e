//! Profiles: the built-in ones, and the user's own, which are read again at each use.

mod learn;
mod recordings;
mod trial;

use std::fmt;
use std::path::PathBuf;

use crate::{Context, OpsError, own_files};
use model::name::nearest;
use profile::{self, Profile};

pub use learn::{
    LearnedProgram, RecordedScreen, RecordedSession, SavedProfile, check_unused, quit_keys, save,
};
pub use recordings::{TestedRecording, TestedScreen, test_recording, test_recordings};
pub use trial::{Trial, watch};

/// Where a profile or a template comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Builtin,
    /// A user's file, which overrides a built-in one of the same name.
    File(PathBuf),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Builtin => f.write_str("built in"),
            Source::File(file) => write!(f, "{}", file.display()),
        }
    }
}

/// A profile by name, whether it can be parsed or not.
#[derive(Debug)]
pub struct ListedProfile {
    pub name: String,
    pub source: Source,
    /// Its text; empty if it cannot be read.
    pub text: String,
    pub profile: Result<Profile, OpsError>,
}

/// Returns the profile of this name; a user's own overrides a built-in one.
///
/// # Errors
/// [`OpsError::NoSuchProfile`] for an unknown name; [`OpsError::Usage`] for a file that cannot be
/// read, [`OpsError::Profile`] for one that cannot be parsed.
pub fn find(ctx: &Context, name: &str) -> Result<Profile, OpsError> {
    listed(ctx, name)?.profile
}

/// Returns the profile of this name with its source, even if it cannot be parsed.
///
/// # Errors
/// [`OpsError::NoSuchProfile`] for an unknown name.
pub fn listed(ctx: &Context, name: &str) -> Result<ListedProfile, OpsError> {
    let own = own_names(ctx)?;
    let name = name.to_owned();
    if own.contains(&name) {
        let file = own_files::path(&ctx.store.profiles(), &name);
        let found = own_files::read("profile", "profiles.md", &file);
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
pub fn list(ctx: &Context) -> Result<Vec<ListedProfile>, OpsError> {
    names(&own_names(ctx)?).iter().map(|name| listed(ctx, name)).collect()
}

fn names(own: &[String]) -> Vec<String> {
    let mut names: Vec<String> =
        profile::builtin_names().map(str::to_owned).chain(own.iter().cloned()).collect();
    names.sort();
    names.dedup();
    names
}

fn own_names(ctx: &Context) -> Result<Vec<String>, OpsError> {
    own_files::names(&ctx.store.profiles())
}

#[cfg(test)]
mod tests;
