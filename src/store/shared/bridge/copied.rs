//! What a bridge has copied.

use serde::{Deserialize, Serialize};

use model::wire::Object;
use sys::fs::FileVersion;

/// A task as it was when both sides were equal (`phalanx/bridge/ID.json`).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CopiedTask {
    /// Version in the store.
    pub(super) version: i64,
    pub(super) task: Object,
    /// The version of the file, if it has not changed for a while.
    #[serde(skip)]
    pub(super) file: Option<FileVersion>,
}
