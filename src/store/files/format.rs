//! The check of the `format` number of phalanx's own documents (docs/dev/protocol.md).

use std::path::PathBuf;

use serde_json::Value;

use crate::error::StoreError;

/// Checks the `format` of a document; one without is of the first format. A release raises the
/// number only if an older release would misread the document.
///
/// # Errors
/// [`StoreError::NewerFormat`], with the path from `path`, if it is above `known`.
pub(crate) fn refuse_newer(
    value: &Value,
    known: u32,
    path: impl FnOnce() -> PathBuf,
) -> Result<(), StoreError> {
    match value.get("format").and_then(Value::as_u64) {
        Some(found) if found > u64::from(known) => {
            Err(StoreError::NewerFormat { path: path(), found, known })
        }
        Some(_) | None => Ok(()),
    }
}
