//! Spec files: written by the spawner, read once and unlinked by the launcher (SEC-06).

use std::path::{Path, PathBuf};

use super::document::{self, Kept};
use super::error::StoreError;
use super::teams::TeamStore;
use crate::model::id::Incarnation;
use crate::model::spec::Spec;
use crate::sys::fs;

/// A spec larger than this is not one of ours.
const MAX_SPEC: u64 = 16 * 1024 * 1024;

impl TeamStore {
    /// Writes the spec and gives the one path that goes onto the launcher's command line.
    pub(crate) fn keep_spec(&self, spec: &Spec) -> Result<PathBuf, StoreError> {
        let path = self.spec_path(&spec.incarnation);
        document::write_new(&path, spec, Kept::ForThisBoot)?;
        Ok(path)
    }

    /// Where the spec of that run lies.
    pub(crate) fn spec_path(&self, incarnation: &Incarnation) -> PathBuf {
        self.layout.spec(incarnation)
    }

    /// Removes a spec whose launcher never came.
    pub(crate) fn drop_spec(&self, incarnation: &Incarnation) -> Result<(), StoreError> {
        fs::remove_file(&self.layout.spec(incarnation))?;
        Ok(())
    }
}

/// Reads a spec and unlinks it; none if there is no such file.
pub(crate) fn take_spec(path: &Path) -> Result<Option<Spec>, StoreError> {
    let Some(bytes) = fs::read(path, MAX_SPEC)? else { return Ok(None) };
    fs::remove_file(path)?;
    match serde_json::from_slice(&bytes) {
        Ok(spec) => Ok(Some(spec)),
        Err(e) => Err(StoreError::Corrupt {
            path: path.to_owned(),
            problem: e.to_string(),
            copy: path.to_owned(),
        }),
    }
}
