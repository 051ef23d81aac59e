//! The environment of this process: variables, directories, user, host, terminals, programs on a
//! PATH.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use nix::unistd::{self, Gid, Uid, User};

use super::fs::FsError;
use super::{native, proc};

/// Returns all variables, including empty ones.
pub fn vars() -> Vec<(OsString, OsString)> {
    env::vars_os().collect()
}

/// Returns the command line of this process, program first.
pub fn args() -> Vec<OsString> {
    env::args_os().collect()
}

/// Returns one variable; an empty one counts as unset.
pub fn var(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the working directory.
///
/// # Errors
/// [`FsError::Io`] if the directory has been removed.
pub fn current_dir() -> Result<PathBuf, FsError> {
    env::current_dir()
        .map_err(|source| FsError::io("find the working directory", Path::new("."), source))
}

/// Makes `dir` the working directory of this process.
pub fn enter_dir(dir: &Path) -> Result<(), FsError> {
    env::set_current_dir(dir).map_err(|source| FsError::io("enter", dir, source))
}

/// Returns the executable of this process, also if its file was removed or replaced since.
pub fn current_exe() -> Result<PathBuf, FsError> {
    env::current_exe()
        .map(|exe| original_exe(&exe).to_owned())
        .map_err(|source| FsError::io("find the phalanx executable", Path::new("phalanx"), source))
}

/// Returns the path of an executable without the mark of the kernel for one whose file was removed
/// or replaced.
pub fn original_exe(exe: &Path) -> &Path {
    let text = exe.to_str().filter(|_| !exe.exists());
    text.and_then(|text| text.strip_suffix(" (deleted)")).map_or(exe, Path::new)
}

/// Returns `$HOME` if set, otherwise the home directory in the password database.
pub fn home_dir() -> Option<PathBuf> {
    let from_database = || User::from_uid(Uid::current()).ok().flatten().map(|user| user.dir);
    var("HOME").map(PathBuf::from).or_else(from_database)
}

/// Returns the host's name; `localhost` if the system reports none.
pub fn hostname() -> String {
    let name = unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
}

/// Returns the id of this boot; process start times are only comparable within one. Empty if the
/// system has none.
pub fn boot_id() -> String {
    static BOOT: LazyLock<String> = LazyLock::new(|| native::boot_id().unwrap_or_default());
    BOOT.clone()
}

/// Returns the id that the system has had since its installation (`/etc/machine-id`); `None` if it
/// has none, as on macOS.
pub fn machine_id() -> Option<String> {
    static MACHINE: LazyLock<Option<String>> = LazyLock::new(|| {
        let text = std::fs::read_to_string("/etc/machine-id").ok()?;
        let id = text.trim();
        (id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())).then(|| id.to_owned())
    });
    MACHINE.clone()
}

/// Returns a name of the set of processes in which a pid of this process is unique: the host and,
/// if the system has them, its pid namespace, as `host#pid:[4026531836]`. The format is that of
/// Claude Code's `pidSpace`, observed with 2.1.330.
pub fn pid_space() -> String {
    match native::pid_namespace() {
        Some(space) => format!("{}#{space}", hostname()),
        None => hostname(),
    }
}

/// Returns the operating system's name: `linux`, `macos` …
pub fn os() -> &'static str {
    env::consts::OS
}

/// Returns the effective user id.
pub fn effective_uid() -> u32 {
    Uid::effective().as_raw()
}

/// Returns the effective group id.
pub fn effective_gid() -> u32 {
    Gid::effective().as_raw()
}

/// Returns true if standard input is a terminal.
pub fn stdin_is_tty() -> bool {
    io::stdin().is_terminal()
}

/// Returns true if standard output is a terminal.
pub fn stdout_is_tty() -> bool {
    io::stdout().is_terminal()
}

/// Returns true if standard error is a terminal.
pub fn stderr_is_tty() -> bool {
    io::stderr().is_terminal()
}

/// Returns the terminal at standard input, otherwise the controlling terminal, as `/dev/pts/7`.
pub fn tty_name() -> Option<String> {
    let at_stdin =
        unistd::ttyname(io::stdin()).ok().and_then(|path| path.into_os_string().into_string().ok());
    at_stdin.or_else(|| proc::tty_of(proc::Process::current().pid))
}

/// Returns the executable that `name` refers to. A name without a slash is looked up in `path` (a
/// PATH value; this process's PATH is not used), one with a slash is resolved against `cwd`.
pub fn find_program(name: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Option<PathBuf> {
    which::which_in(name, path, cwd).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn program(dir: &Path, name: &str, mode: u32) -> PathBuf {
        let file = dir.join(name);
        fs::write(&file, "#!/bin/sh\n").expect("writable test directory");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("own file");
        file
    }

    #[test]
    fn programs_are_looked_up_only_in_the_given_path() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let found = program(dir.path(), "only-here", 0o755);
        let path = dir.path().as_os_str();
        let elsewhere = Path::new("/");
        assert_eq!(find_program(OsStr::new("only-here"), Some(path), elsewhere), Some(found));
        assert_eq!(find_program(OsStr::new("sh"), Some(path), elsewhere), None);
        assert_eq!(find_program(OsStr::new("sh"), None, elsewhere), None);
        assert_eq!(find_program(OsStr::new(""), Some(path), elsewhere), None);
    }

    /// CR-21: the kernel marks the path of an executable whose file is gone.
    #[test]
    fn cr_21_mark_of_the_kernel_is_not_part_of_a_path() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let real = program(dir.path(), "tool (deleted)", 0o755);
        assert_eq!(original_exe(&real), real, "the name of a file that is there");
        let removed = dir.path().join("phalanx (deleted)");
        assert_eq!(original_exe(&removed), dir.path().join("phalanx"));
        assert_eq!(original_exe(Path::new("/gone/phalanx")), Path::new("/gone/phalanx"));
    }

    #[test]
    fn name_with_slash_is_relative_to_the_given_directory() {
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
    fn non_executable_files_and_directories_are_not_found() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        program(dir.path(), "notes", 0o644);
        fs::create_dir(dir.path().join("folder")).expect("writable test directory");
        let path = Some(dir.path().as_os_str());
        assert_eq!(find_program(OsStr::new("notes"), path, Path::new("/")), None);
        assert_eq!(find_program(OsStr::new("folder"), path, Path::new("/")), None);
    }

    #[test]
    fn environment_has_plausible_values() {
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
