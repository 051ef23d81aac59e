//! What surrounds this process: variables, directories, user, host, terminal, programs on a PATH.
//! Refuses to know which of them matter to whom.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nix::unistd::{self, Uid, User};

use super::fs::FsError;
use super::proc;

/// All variables, as they are.
pub(crate) fn vars() -> Vec<(OsString, OsString)> {
    env::vars_os().collect()
}

/// The words of our own command line, the program first.
pub(crate) fn args() -> Vec<OsString> {
    env::args_os().collect()
}

/// One variable; an empty one counts as unset.
pub(crate) fn var(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The working directory. Fails when it has been removed under us.
pub(crate) fn current_dir() -> Result<PathBuf, FsError> {
    env::current_dir()
        .map_err(|source| FsError::io("find the working directory", Path::new("."), source))
}

/// Makes `dir` the working directory of this process.
pub(crate) fn enter_dir(dir: &Path) -> Result<(), FsError> {
    env::set_current_dir(dir).map_err(|source| FsError::io("enter", dir, source))
}

/// The file that this process runs.
pub(crate) fn current_exe() -> Result<PathBuf, FsError> {
    env::current_exe().map_err(|source| {
        FsError::io("find the phalanx executable", Path::new("/proc/self/exe"), source)
    })
}

/// `$HOME` when set, else what the password database says.
pub(crate) fn home_dir() -> Option<PathBuf> {
    let from_database = || User::from_uid(Uid::current()).ok().flatten().map(|user| user.dir);
    var("HOME").map(PathBuf::from).or_else(from_database)
}

/// The host's name; `localhost` when the system does not tell.
pub(crate) fn hostname() -> String {
    let name = unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}

/// Names this boot of this machine: process start times compare only within one. Empty where the system has none.
pub(crate) fn boot_id() -> String {
    static BOOT: LazyLock<String> = LazyLock::new(|| {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
        id.map(|id| id.trim().to_owned()).unwrap_or_default()
    });
    BOOT.clone()
}

/// Names the processes among which our pids are counted: the host, and where the system has them its pid namespace, as
/// `host#pid:[4026531836]` (the form of Claude Code's `pidSpace`, observed with 2.1.330).
pub(crate) fn pid_space() -> String {
    match fs::read_link("/proc/self/ns/pid") {
        Ok(space) => format!("{}#{}", hostname(), space.to_string_lossy()),
        Err(_) => hostname(),
    }
}

/// The operating system's name: `linux`, `macos` …
pub(crate) fn os() -> &'static str {
    env::consts::OS
}

/// Whose rights we act with.
pub(crate) fn effective_uid() -> u32 {
    Uid::effective().as_raw()
}

/// True when a human's terminal may be at our standard input.
pub(crate) fn stdin_is_tty() -> bool {
    io::stdin().is_terminal()
}

/// True when our standard output is a terminal.
pub(crate) fn stdout_is_tty() -> bool {
    io::stdout().is_terminal()
}

/// True when our standard error is a terminal.
pub(crate) fn stderr_is_tty() -> bool {
    io::stderr().is_terminal()
}

/// The terminal at our standard input, else our controlling terminal, as `/dev/pts/7`.
pub(crate) fn tty_name() -> Option<String> {
    let at_stdin =
        unistd::ttyname(io::stdin()).ok().and_then(|path| path.into_os_string().into_string().ok());
    at_stdin.or_else(|| proc::tty_of(proc::Process::current().pid))
}

/// The executable file that `name` means: searched in `path` (a PATH value; ours is not looked at) when it has no
/// slash, resolved against `cwd` when it has one.
pub(crate) fn find_program(name: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    which::which_in(name, path, cwd).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn program(dir: &Path, name: &str, mode: u32) -> PathBuf {
        let file = dir.join(name);
        fs::write(&file, "#!/bin/sh\n").expect("writable test directory");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("own file");
        file
    }

    #[test]
    fn programs_come_from_the_given_path_only() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let found = program(dir.path(), "only-here", 0o755);
        let path = dir.path().as_os_str();
        let elsewhere = Path::new("/");
        assert_eq!(find_program(OsStr::new("only-here"), Some(path), elsewhere), Some(found));
        assert_eq!(find_program(OsStr::new("sh"), Some(path), elsewhere), None);
        assert_eq!(find_program(OsStr::new("sh"), None, elsewhere), None);
        assert_eq!(find_program(OsStr::new(""), Some(path), elsewhere), None);
    }

    #[test]
    fn a_slash_means_relative_to_the_given_directory() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let found = program(dir.path(), "tool", 0o755);
        let resolved = find_program(OsStr::new("./tool"), None, dir.path()).expect("tool is there");
        assert_eq!(
            fs::canonicalize(resolved).expect("exists"),
            fs::canonicalize(found).expect("exists")
        );
        assert_eq!(find_program(OsStr::new("./tool"), None, Path::new("/")), None);
    }

    #[test]
    fn plain_files_and_directories_are_no_programs() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        program(dir.path(), "notes", 0o644);
        fs::create_dir(dir.path().join("folder")).expect("writable test directory");
        let path = Some(dir.path().as_os_str());
        assert_eq!(find_program(OsStr::new("notes"), path, Path::new("/")), None);
        assert_eq!(find_program(OsStr::new("folder"), path, Path::new("/")), None);
    }

    #[test]
    fn surroundings_have_plausible_values() {
        assert!(!hostname().is_empty());
        assert!(home_dir().is_some());
        assert!(current_dir().expect("tests run somewhere").is_absolute());
        assert!(current_exe().expect("tests have a binary").is_file());
        assert_eq!(boot_id(), boot_id());
        assert!(vars().iter().any(|(name, _)| name == "PATH"));
        assert!(var("PATH").is_some());
        assert_eq!(var("PHALANX_NO_SUCH_VARIABLE"), None);
    }
}
