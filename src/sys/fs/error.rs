//! The error of all file operations.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// A failed file operation. `op` is a verb phrase that precedes the path in the message, such as
/// "read" or "list".
#[derive(Debug, Error)]
pub enum FsError {
    /// A system call failed.
    #[error("cannot {op} {}", path.display())]
    Io {
        op: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The operation was not attempted, because the path or the data is not safe for it.
    #[error("refused to {op} {}: {reason}", path.display())]
    Refused { op: &'static str, path: PathBuf, reason: String },
    /// The file holds more bytes than the caller accepts.
    #[error("refused to read {}: larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
}

impl FsError {
    pub fn io(op: &'static str, path: &Path, source: io::Error) -> FsError {
        FsError::Io { op, path: path.to_owned(), source }
    }

    /// Returns the reason without the path, for messages that name the path themselves.
    pub fn reason(&self) -> String {
        match self {
            FsError::Io { source, .. } => source.to_string(),
            FsError::Refused { reason, .. } => reason.clone(),
            FsError::TooLarge { limit, .. } => format!("it is larger than {limit} bytes"),
        }
    }

    /// Returns true if this process lacks the permission.
    pub fn is_denied(&self) -> bool {
        matches!(self, FsError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }

    pub(super) fn refused(op: &'static str, path: &Path, reason: impl Into<String>) -> FsError {
        FsError::Refused { op, path: path.to_owned(), reason: reason.into() }
    }
}

pub(super) type Result<T> = std::result::Result<T, FsError>;
