//! The store, speaker and calling process that every verb takes. `cli` fills them in; nothing below
//! it reads the environment or the configuration.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::{Kind, OpsError};
use model::id::MemberName;
use model::text;
use store::Store;
pub use store::now;
use sys::{env, fs};

/// The calling process.
#[derive(Debug, Clone)]
pub struct Caller {
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// Path of the phalanx executable at the start of this process; see [`Caller::program`].
    pub exe: PathBuf,
}

impl Caller {
    /// Returns a variable of the caller's environment; an empty one counts as unset.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        let found = self.env.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_os_str());
        found.filter(|v| !v.is_empty())
    }

    /// Returns the phalanx from which launchers and workers are started. A package manager may have
    /// removed the version that runs; then it is the one on `PATH`.
    ///
    /// # Errors
    /// There is none on `PATH` either.
    pub fn program(&self) -> Result<PathBuf, OpsError> {
        if fs::exists(&self.exe) {
            return Ok(self.exe.clone());
        }
        let name = self.exe.file_name().unwrap_or_default();
        let found = env::find_program(name, self.var("PATH"), Path::new("/"));
        let exe = text::line(&self.exe.to_string_lossy());
        let problem = format!("no member can be started: {exe} was removed, and PATH has none");
        let hint = "install phalanx again, then type `phalanx resume`";
        // Launchers are recognised by the real path of their executable.
        let found = found.and_then(|found| fs::canonical(&found).ok());
        found.ok_or_else(|| OpsError::described(Kind::Failed, problem, hint))
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// CR-21: members are started by what a package manager has put in the place of this version.
    #[test]
    fn cr_21_removed_phalanx_is_replaced_by_the_one_on_the_path() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let dir = fs::canonical(dir.path()).expect("there");
        let [old, new, linked] = ["v1/phalanx", "v2/phalanx", "bin/phalanx"].map(|at| dir.join(at));
        for file in [&old, &new] {
            fs::private_dir(file.parent().expect("a directory")).expect("made");
            symlink("/bin/sh", file).expect("made");
        }
        fs::private_dir(linked.parent().expect("a directory")).expect("made");
        let env = vec![("PATH".into(), dir.join("bin").into_os_string())];
        let caller = Caller { env, cwd: "/".into(), exe: old.clone() };
        assert_eq!(caller.program().expect("it is there"), old);
        fs::remove_file(&old).expect("removed");
        let error = caller.program().expect_err("none is there");
        assert!(error.to_string().contains(&*old.to_string_lossy()), "{error}");
        symlink(&new, &linked).expect("linked");
        let found = caller.program().expect("the new one");
        assert_eq!(found, fs::canonical(Path::new("/bin/sh")).expect("there"));
    }
}
