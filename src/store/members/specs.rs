//! Spec files. The spawner writes one, and the launcher reads it once and unlinks it (SEC-06).

use std::path::{Path, PathBuf};

use crate::error::{StoreError, without_text};
use crate::files::document::{self, Durability};
use crate::team::TeamStore;
use model::id::Incarnation;
use model::members::spec::LauncherSpec;
use sys::fs;

/// Largest spec that is read, in bytes.
const MAX_SPEC: u64 = 16 * 1024 * 1024;

impl TeamStore {
    /// Writes the spec and returns its path, the launcher's only argument.
    pub fn keep_spec(&self, spec: &LauncherSpec) -> Result<PathBuf, StoreError> {
        let path = self.spec_path(&spec.incarnation);
        document::write_new(&path, spec, Durability::ThisBoot)?;
        Ok(path)
    }

    /// Returns the path of the run's spec.
    pub fn spec_path(&self, incarnation: &Incarnation) -> PathBuf {
        self.layout.spec(incarnation)
    }

    /// Removes a spec that no launcher has read.
    pub fn drop_spec(&self, incarnation: &Incarnation) -> Result<(), StoreError> {
        fs::remove_file(&self.layout.spec(incarnation))?;
        Ok(())
    }
}

/// Reads a spec and unlinks it; `None` if there is no such file.
///
/// # Errors
/// [`StoreError::Corrupt`] if the file does not parse; it is left in place.
pub fn take_spec(path: &Path) -> Result<Option<LauncherSpec>, StoreError> {
    let Some(bytes) = fs::read(path, MAX_SPEC)? else { return Ok(None) };
    let spec = serde_json::from_slice(&bytes).map_err(|e| StoreError::Corrupt {
        path: path.to_owned(),
        problem: without_text(&e),
        copy: path.to_owned(),
    })?;
    fs::remove_file(path)?;
    Ok(Some(spec))
}
