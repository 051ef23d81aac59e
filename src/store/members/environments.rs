//! The environment of a member's program, for the server of its tools: some agents do not pass it
//! on, and others would put it on a command line, which every user can read (SEC-06).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::error::{StoreError, without_text};
use crate::team::TeamStore;
use model::id::MemberName;
use model::members::spec::OsText;
use sys::fs;

/// Largest file that is read, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// An environment on disk, which only this user can read. Removed on drop, unless another run has
/// replaced it.
#[derive(Debug)]
pub struct KeptEnvironment {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl KeptEnvironment {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for KeptEnvironment {
    fn drop(&mut self) {
        let found = fs::read(&self.path, LARGEST).ok().flatten();
        if found.is_some_and(|found| found == self.bytes) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl TeamStore {
    /// Writes the environment of the member's program.
    pub fn keep_environment(
        &self,
        name: &MemberName,
        env: &[(OsString, OsString)],
    ) -> Result<KeptEnvironment, StoreError> {
        let env: Vec<(OsText, OsText)> =
            env.iter().map(|(name, value)| (OsText::new(name), OsText::new(value))).collect();
        let bytes = serde_json::to_vec(&env).expect("names and values are texts");
        let path = self.layout.environment(name);
        fs::write_atomic(&path, &bytes)?;
        Ok(KeptEnvironment { path, bytes })
    }
}

/// Reads an environment; `None` if there is no such file.
///
/// # Errors
/// [`StoreError::Corrupt`] if the file does not parse; it is left in place.
pub fn read_environment(path: &Path) -> Result<Option<Vec<(OsString, OsString)>>, StoreError> {
    let Some(bytes) = fs::read(path, LARGEST)? else { return Ok(None) };
    let env: Vec<(OsText, OsText)> = serde_json::from_slice(&bytes).map_err(|e| {
        let problem = without_text(&e);
        StoreError::Corrupt { path: path.to_owned(), problem, copy: path.to_owned() }
    })?;
    Ok(Some(env.into_iter().map(|(name, value)| (name.into_os(), value.into_os())).collect()))
}
