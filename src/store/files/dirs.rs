//! Directories of phalanx's own files, created on first use.

use std::path::Path;

use crate::error::StoreError;
use sys::fs;

/// Creates the missing directory of one of phalanx's files, and that directory's parent. Never
/// creates the team directory, which is the next one above: a write that comes after the team's
/// deletion must not bring it back.
pub(crate) fn make_dirs_of(file: &Path) -> Result<(), StoreError> {
    let Some(dir) = file.parent().filter(|dir| !fs::exists(dir)) else { return Ok(()) };
    for dir in dir.parent().into_iter().chain([dir]) {
        fs::create_dir_exclusive(dir)?;
    }
    Ok(())
}
