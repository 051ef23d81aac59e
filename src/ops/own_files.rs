//! TOML files of the user in a directory under the config root, such as profiles and templates.

use std::path::{Path, PathBuf};

use crate::OpsError;
use model::name::check_name;
use sys::fs;

/// Size limit of a file, in bytes.
const LARGEST: u64 = 256 * 1024;
const ENDING: &str = ".toml";

/// Returns the names of the files in a directory, without their ending; other files are skipped.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, OpsError> {
    let files = fs::list(dir)?;
    let name = |file: &String| file.strip_suffix(ENDING).map(str::to_owned);
    Ok(files.iter().filter_map(name).filter(|name| check_name(name).is_ok()).collect())
}

/// Returns the file of this name.
pub(crate) fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}{ENDING}"))
}

/// Returns the text of a file. Errors name its kind, `what`, and the page that describes it.
///
/// # Errors
/// [`OpsError::Usage`] if it is not there or not UTF-8, [`OpsError::File`] if it cannot be read.
pub(crate) fn read(what: &str, page: &str, file: &Path) -> Result<String, OpsError> {
    let unreadable = |problem: &str| OpsError::Usage {
        problem: format!("{what} {}: {problem}", file.display()),
        hint: Some(format!("the keys are described in docs/{page}")),
    };
    let bytes = fs::read(file, LARGEST)?.ok_or_else(|| unreadable("it no longer exists"))?;
    String::from_utf8(bytes).map_err(|_| unreadable("it is not UTF-8 text"))
}
