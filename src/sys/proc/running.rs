//! The running processes of this user, with the command line and environment they were started
//! with.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::unistd::Uid;

use super::process::Process;
use super::table;

/// A live process and how it was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunningProcess {
    pub(crate) process: Process,
    /// Pid of the parent.
    pub(crate) parent: i32,
    /// Command line, program first. The process may have overwritten it.
    pub(crate) argv: Vec<OsString>,
    /// Executable as the kernel reports it, followed by ` (deleted)` if the file was replaced.
    pub(crate) exe: PathBuf,
}

impl RunningProcess {
    /// Returns the working directory; `None` once the process has ended.
    pub(crate) fn cwd(&self) -> Option<PathBuf> {
        fs::read_link(self.proc_dir().join("cwd")).ok()
    }

    /// Returns a variable of the environment that the process was started with.
    pub(crate) fn var(&self, name: &str) -> Option<OsString> {
        let environ = fs::read(self.proc_dir().join("environ")).ok()?;
        let value = |word: &[u8]| {
            word.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec)
        };
        environ.split(|byte| *byte == 0).find_map(value).map(OsString::from_vec)
    }

    fn proc_dir(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}", self.process.pid))
    }
}

/// Returns the processes of this user, except zombies and those that the system hides.
pub(crate) fn of_this_user() -> Vec<RunningProcess> {
    let us = Uid::effective().as_raw();
    table::all()
        .into_iter()
        .filter(|stat| !stat.ended)
        .filter_map(|stat| running(&stat, us))
        .collect()
}

fn running(stat: &table::Stat, us: u32) -> Option<RunningProcess> {
    let dir = PathBuf::from(format!("/proc/{}", stat.pid));
    if fs::metadata(&dir).ok()?.uid() != us {
        return None;
    }
    let line = fs::read(dir.join("cmdline")).ok()?;
    let exe = fs::read_link(dir.join("exe")).ok()?;
    // Checked last, because the pid may have been reused since the table was read.
    let process = Process::of(stat.pid).filter(|process| process.start == stat.start)?;
    let words = line.strip_suffix(&[0]).unwrap_or(&line).split(|byte| *byte == 0);
    let argv = words.map(|word| OsString::from_vec(word.to_vec())).collect();
    Some(RunningProcess { process, parent: stat.ppid, argv, exe })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::env;

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
