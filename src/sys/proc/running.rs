//! The running processes of this user, with the command line and environment they were started
//! with.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use super::super::stat::Stat;
use super::super::{env, native};
use super::process::Process;

/// A live process and how it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningProcess {
    pub process: Process,
    /// Pid of the parent.
    pub parent: i32,
    /// Command line, program first. The process may have overwritten it.
    pub argv: Vec<OsString>,
    /// Executable as the kernel reports it, followed by ` (deleted)` if the file was replaced.
    pub exe: PathBuf,
}

impl RunningProcess {
    /// Returns the working directory; `None` once the process has ended.
    pub fn cwd(&self) -> Option<PathBuf> {
        native::cwd(self.process.pid)
    }

    /// Returns a variable of the environment that the process was started with.
    pub fn var(&self, name: &str) -> Option<OsString> {
        let [value] = self.vars([name]);
        value
    }

    /// As [`RunningProcess::var`], for several variables, which are read together.
    pub fn vars<const N: usize>(&self, names: [&str; N]) -> [Option<OsString>; N] {
        let environment = native::environment(self.process.pid).unwrap_or_default();
        names.map(|name| {
            let value = |word: &Vec<u8>| {
                word.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec)
            };
            environment.iter().find_map(value).map(OsString::from_vec)
        })
    }
}

/// Returns the processes of this user, except zombies, those that the system hides, and those of
/// other pid namespaces: the paths and pids that these know mean something else there.
pub fn of_this_user() -> Vec<RunningProcess> {
    of_this_user_with(|_| true)
}

/// As [`of_this_user`], only the processes whose command line `is_wanted`. Nothing else is read of
/// the others: on a busy machine the reading of a long process table takes seconds.
pub fn of_this_user_with(is_wanted: impl Fn(&[OsString]) -> bool) -> Vec<RunningProcess> {
    let us = env::effective_uid();
    let living = native::stats().into_iter().filter(|stat| !stat.ended);
    living.filter_map(|stat| running(&stat, us, &is_wanted)).collect()
}

/// Returns whether a process has the file open, also after its removal; `None` where the system
/// does not show it.
pub fn has_open(process: Process, path: &Path) -> Option<bool> {
    let found = native::has_open(process.pid, path)?;
    Some(found && process.is_alive())
}

/// Returns the executable of a process as the kernel reports it; `None` once it has ended, and for
/// a process of another user.
pub fn exe(process: Process) -> Option<PathBuf> {
    let exe = native::exe(process.pid)?;
    process.is_alive().then_some(exe)
}

fn running(
    stat: &Stat,
    us: u32,
    is_wanted: &impl Fn(&[OsString]) -> bool,
) -> Option<RunningProcess> {
    let argv: Vec<OsString> = native::argv(stat.pid)?.into_iter().map(OsString::from_vec).collect();
    if !is_wanted(&argv) || native::owner(stat.pid)? != us || !native::shares_pids(stat.pid) {
        return None;
    }
    let exe = native::exe(stat.pid)?;
    // Checked last, because the pid may have been reused since the table was read.
    let process = Process::of(stat.pid).filter(|process| process.start == stat.start)?;
    Some(RunningProcess { process, parent: stat.ppid, argv, exe })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_listed_with_its_properties() {
        let us = Process::current();
        let found = of_this_user().into_iter().find(|running| running.process == us).expect("us");
        assert_eq!(found.argv, env::args());
        assert_eq!(found.exe, env::current_exe().expect("our program"));
        assert_eq!(found.cwd(), env::current_dir().ok());
        assert_eq!(found.var("PATH"), env::var("PATH"));
        assert_eq!(found.var("PAT"), None, "a part of a name is another name");
    }
}
