//! The program to run, its output, and the errors of both.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use thiserror::Error;

use super::cancel::CancelToken;

/// A program to run. A name without a slash is looked up in the PATH of `env`, or in this process's
/// PATH if `env` is `None`.
#[derive(Debug, Clone, Default)]
pub struct ExecCommand {
    pub program: OsString,
    /// Arguments, without the program itself.
    pub args: Vec<OsString>,
    /// The complete environment; `None` inherits this process's.
    pub env: Option<Vec<(OsString, OsString)>>,
    /// Working directory; `None` inherits this process's.
    pub cwd: Option<PathBuf>,
    /// Written to the program while its output is read; empty means /dev/null.
    pub stdin: Vec<u8>,
}

/// The limits of a run, at which the program is killed.
#[derive(Debug, Clone)]
pub struct ExecLimits {
    pub deadline: Duration,
    /// Largest output, in bytes of each stream. Without it, the first 16 MiB are kept and the rest
    /// is discarded without an error.
    pub output: Option<usize>,
    pub cancel: Option<CancelToken>,
}

/// Result of a program that has ended: exactly one of `code` and `signal` is set. Each stream holds
/// at most its first 16 MiB, unless [`ExecLimits::output`] is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// Exit status.
    pub code: Option<i32>,
    /// Number of the signal that ended the program.
    pub signal: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl ExecOutput {
    pub(super) fn new(status: ExitStatus, stdout: Vec<u8>, stderr: Vec<u8>) -> ExecOutput {
        ExecOutput { code: status.code(), signal: status.signal(), stdout, stderr }
    }
}

/// Failure to start a program or to run it to its end.
#[derive(Debug, Error)]
pub enum ExecError {
    /// No executable has this name.
    #[error("cannot find the program {}", program.display())]
    NotFound { program: OsString },
    /// The executable exists, but its `#!` interpreter or dynamic loader, named in `needs`, does
    /// not.
    #[error("cannot start {}: {needs} does not exist", program.display())]
    NoInterpreter { program: OsString, needs: String },
    /// The requested working directory cannot be entered.
    #[error("cannot start {} in {}", shown(argv), cwd.display())]
    Directory {
        argv: Vec<OsString>,
        cwd: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The deadline passed. The program and its process group were killed.
    #[error("{} did not end within {after_ms} ms and was killed", shown(argv))]
    Deadline { argv: Vec<OsString>, after_ms: u64 },
    /// [`ExecLimits::output`] was exceeded. The program and its process group were killed.
    #[error("{} wrote more than {} MiB and was killed", shown(argv), limit >> 20)]
    TooMuchOutput { argv: Vec<OsString>, limit: usize },
    /// Another thread cancelled the run. The program and its process group were killed.
    #[error("{} was cancelled", shown(argv))]
    Cancelled { argv: Vec<OsString> },
    /// A system call failed while the program was started or its pipes were served.
    #[error("cannot run {}", shown(argv))]
    Io {
        argv: Vec<OsString>,
        #[source]
        source: io::Error,
    },
}

impl ExecError {
    /// Classifies a failed start. The system reports ENOENT for a missing directory, a missing
    /// program and a missing interpreter alike.
    pub fn start(argv: Vec<OsString>, cwd: Option<&Path>, source: io::Error) -> ExecError {
        // Resolving `.` needs the same permissions as entering the directory.
        let cannot_enter =
            |cwd: &&Path| fs::metadata(cwd.join(".")).is_err_and(|e| e.kind() == source.kind());
        if let Some(cwd) = cwd.filter(cannot_enter) {
            return ExecError::Directory { argv, cwd: cwd.to_owned(), source };
        }
        match (source.kind(), argv.first()) {
            (io::ErrorKind::NotFound, Some(program)) => {
                let program = program.clone();
                match missing_interpreter(&cwd.unwrap_or(Path::new("")).join(&program)) {
                    Some(needs) => ExecError::NoInterpreter { program, needs },
                    None => ExecError::NotFound { program },
                }
            }
            _ => ExecError::Io { argv, source },
        }
    }
}

/// Names what a program file needs and the system does not have: the interpreter of a script, often
/// with a carriage return at its end, or the dynamic loader of a program for another system.
/// Returns `None` if there is no such file, or if it needs nothing that is missing.
fn missing_interpreter(path: &Path) -> Option<String> {
    /// macOS reads this much of a script to find its interpreter, and Linux half of it.
    const FIRST_LINE: u64 = 512;
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut start = Vec::new();
    File::open(path).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    if start.starts_with(b"\x7fELF") {
        return Some("its dynamic loader".to_owned());
    }
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    let name = line.split(|byte| matches!(byte, b' ' | b'\t')).next()?;
    let is_missing = !Path::new(OsStr::from_bytes(name)).exists();
    is_missing
        .then(|| format!("its interpreter `{}`", String::from_utf8_lossy(name).escape_debug()))
}

/// Joins an argv for a message, cut to 200 characters because it may contain prompts.
pub(super) fn shown(argv: &[OsString]) -> String {
    const LONGEST: usize = 200;
    let words: Vec<_> = argv.iter().map(|word| word.to_string_lossy()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
