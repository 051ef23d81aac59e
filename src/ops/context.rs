//! What every verb needs to know about the process that asks. `cli` fills it in; nobody below reads environment or
//! configuration.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use crate::model::id::MemberName;
use crate::model::time::Timestamp;
use crate::store::Store;
use crate::sys::clock;

/// The asking process.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) cwd: PathBuf,
    /// This program's own file: what launchers and workers are started from.
    pub(crate) exe: PathBuf,
}

impl Caller {
    /// A variable of the asking process; one that is set to nothing counts as unset.
    pub(crate) fn var(&self, name: &str) -> Option<&OsStr> {
        let found = self.env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_os_str());
        found.filter(|v| !v.is_empty())
    }
}

/// Where a verb works, who speaks, and who asks.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    pub(crate) store: Store,
    pub(crate) speaker: MemberName,
    pub(crate) caller: Caller,
}

/// The time of day.
pub(crate) fn now() -> Timestamp {
    Timestamp(clock::now_ms())
}
