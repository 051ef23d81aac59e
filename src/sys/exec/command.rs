//! The program to run, its output, and the errors of both.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use thiserror::Error;

/// A program to run. A name without a slash is looked up in the PATH of `env`, or in this process's
/// PATH if `env` is `None`.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExecCommand {
    pub(crate) program: OsString,
    /// Arguments, without the program itself.
    pub(crate) args: Vec<OsString>,
    /// The complete environment; `None` inherits this process's.
    pub(crate) env: Option<Vec<(OsString, OsString)>>,
    /// Working directory; `None` inherits this process's.
    pub(crate) cwd: Option<PathBuf>,
    /// Written to the program while its output is read; empty means /dev/null.
    pub(crate) stdin: Vec<u8>,
}

/// Result of a program that has ended: exactly one of `code` and `signal` is set. Each stream holds
/// at most its first 16 MiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExecOutput {
    /// Exit status.
    pub(crate) code: Option<i32>,
    /// Number of the signal that ended the program.
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl ExecOutput {
    pub(super) fn new(status: ExitStatus, stdout: Vec<u8>, stderr: Vec<u8>) -> ExecOutput {
        ExecOutput { code: status.code(), signal: status.signal(), stdout, stderr }
    }
}

/// Failure to start a program or to run it to its end.
#[derive(Debug, Error)]
pub(crate) enum ExecError {
    /// No executable has this name, or its `#!` interpreter is missing.
    #[error("cannot find the program {}", program.display())]
    NotFound { program: OsString },
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
    /// A system call failed while the program was started or its pipes were served.
    #[error("cannot run {}", shown(argv))]
    Io {
        argv: Vec<OsString>,
        #[source]
        source: io::Error,
    },
}

impl ExecError {
    /// Classifies a failed start. The system reports ENOENT for a missing directory and for a
    /// missing program alike.
    pub(in crate::sys) fn start(
        argv: Vec<OsString>,
        cwd: Option<&Path>,
        source: io::Error,
    ) -> ExecError {
        // Resolving `.` needs the same permissions as entering the directory.
        let cannot_enter =
            |cwd: &&Path| fs::metadata(cwd.join(".")).is_err_and(|e| e.kind() == source.kind());
        if let Some(cwd) = cwd.filter(cannot_enter) {
            return ExecError::Directory { argv, cwd: cwd.to_owned(), source };
        }
        match (source.kind(), argv.first()) {
            (io::ErrorKind::NotFound, Some(program)) => {
                ExecError::NotFound { program: program.clone() }
            }
            _ => ExecError::Io { argv, source },
        }
    }
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
