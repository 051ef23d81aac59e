//! The store, speaker and calling process that every verb takes. `cli` fills them in; nothing below
//! it reads the environment or the configuration.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use model::id::MemberName;
use store::Store;
pub use store::now;

/// The calling process.
#[derive(Debug, Clone)]
pub struct Caller {
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// Path of the phalanx executable, from which launchers and workers are started.
    pub exe: PathBuf,
}

impl Caller {
    /// Returns a variable of the caller's environment; an empty one counts as unset.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        let found = self.env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_os_str());
        found.filter(|v| !v.is_empty())
    }
}

/// The store that a verb works on, the member that it acts for, and the caller.
#[derive(Debug, Clone)]
pub struct Context {
    pub store: Store,
    pub speaker: MemberName,
    pub caller: Caller,
}

/// Resolves a directory against `here`, without `.` components.
pub(crate) fn resolve_dir(here: &Path, cwd: &str) -> String {
    here.join(cwd).components().collect::<PathBuf>().to_string_lossy().into_owned()
}
