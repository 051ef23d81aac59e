//! The complete description of a program to start.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};

use super::super::exec::ExecError;
use super::super::proc::Process;

/// Complete description of a program to start: nothing is added, looked up or inherited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// An absolute path; no PATH is searched.
    pub path: PathBuf,
    /// All arguments, including `argv[0]`. Empty means only the path.
    pub argv: Vec<OsString>,
    /// Working directory. The child enters it; failure to do so is an error of the start.
    pub cwd: PathBuf,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
}

impl Program {
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        if let Some((name, args)) = self.argv.split_first() {
            command.arg0(name).args(args);
        }
        command
            .current_dir(&self.cwd)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    pub(super) fn failure(&self, source: io::Error) -> ExecError {
        let args = self.argv.iter().skip(1).cloned();
        let argv = std::iter::once(self.path.clone().into_os_string()).chain(args).collect();
        ExecError::start(argv, Some(&self.cwd), source)
    }

    pub(super) fn started(&self, child: &Child) -> Result<Process, ExecError> {
        let process = i32::try_from(child.id()).ok().and_then(Process::of_child);
        process.ok_or_else(|| {
            self.failure(io::Error::other("the system does not show the new process"))
        })
    }
}
