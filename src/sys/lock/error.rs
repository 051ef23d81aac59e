//! The error of a lock that was not acquired.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::super::clock::Deadline;

/// Failure to acquire a lock.
#[derive(Debug, Error)]
pub enum LockError {
    /// The lock was held up to the deadline. `holder` describes the holder, as far as it is known.
    #[error("gave up waiting for {} after {waited_ms} ms{}", resource.display(), held_by(holder.as_deref()))]
    Timeout { resource: PathBuf, waited_ms: u64, holder: Option<String> },
    /// The lock cannot be used: its directory is missing, permission is denied, or another kind of
    /// file is in its place.
    #[error("cannot lock with {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl LockError {
    pub(super) fn io(path: &Path, source: io::Error) -> LockError {
        LockError::Io { path: path.to_owned(), source }
    }

    pub(super) fn timeout(
        resource: &Path,
        deadline: &Deadline,
        holder: Option<String>,
    ) -> LockError {
        let waited_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX);
        LockError::Timeout { resource: resource.to_owned(), waited_ms, holder }
    }
}

fn held_by(holder: Option<&str>) -> String {
    holder.map(|holder| format!(", held by {holder}")).unwrap_or_default()
}
