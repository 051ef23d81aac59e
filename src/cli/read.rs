//! Reads texts from files and from stdin.

use std::io::{BufRead, Read, Write};
use std::path::Path;

use crate::fail::{Failure, plain_words};
use model::text;
use ops::{Kind, OpsError};
use sys::{env, fs};

/// Maximum size of a text from a file or stdin, in bytes.
pub(super) const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// Maximum size of a manifest, in bytes.
pub(super) const MAX_MANIFEST: u64 = 4 * 1024 * 1024;

/// Reads a text from a file, or from stdin for `-`; `what` names it in errors.
pub(super) fn text_from(what: &str, file: &Path) -> Result<String, Failure> {
    if file == Path::new("-") {
        return stdin();
    }
    read_text(file, MAX_TEXT).map_err(|problem| {
        Failure::new(Kind::Usage, format!("{what} file {}: {problem}", file.display()), None)
    })
}

/// Reads a member's prompt file; a relative path is relative to `here`.
pub(super) fn prompt_file(here: &Path, file: &str) -> Result<String, OpsError> {
    read_text(&here.join(file), MAX_MANIFEST).map_err(|problem| OpsError::Usage {
        problem: format!("prompt file {file}: {problem}"),
        hint: None,
    })
}

/// Reads all of stdin. Fails on a terminal instead of waiting for a person to type.
pub(super) fn stdin() -> Result<String, Failure> {
    if env::stdin_is_tty() {
        return Err(Failure::usage("there is no text", "give it as an argument, or pipe it in"));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().take(MAX_TEXT).read_to_end(&mut bytes)?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage("stdin is not UTF-8 text", "convert it first"))
}

/// Asks the person at the terminal a question; only `y` and `yes` confirm.
pub(super) fn is_confirmed(question: &str) -> Result<bool, Failure> {
    write!(std::io::stderr(), "{} [y/N] ", text::line(question))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Reads up to `most` bytes from a file, or from stdin if there is none. Follows a symbolic link.
pub(super) fn bytes_from(file: Option<&Path>, most: u64) -> Result<Vec<u8>, Failure> {
    let Some(file) = file else {
        if env::stdin_is_tty() {
            return Err(Failure::usage("there is no content", "give a file, or pipe it in"));
        }
        let mut bytes = Vec::new();
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)?;
        return Ok(bytes);
    };
    let read = fs::canonical(file).and_then(|path| fs::read_range(&path, 0, most));
    read.map_err(|e| {
        let problem = format!("file {}: {}", file.display(), plain_words(&e.reason()));
        Failure::new(Kind::Usage, problem, None)
    })
}

/// Reads a text file; follows a symbolic link.
///
/// # Errors
/// Returns the problem without the path, which callers add.
pub(super) fn read_text(path: &Path, limit: u64) -> Result<String, String> {
    let bytes = fs::canonical(path).and_then(|path| fs::read(&path, limit));
    let bytes = bytes.map_err(|e| match &e {
        // Callers name the path.
        fs::FsError::Io { source, .. } => plain_words(&source.to_string()),
        fs::FsError::Refused { reason, .. } => reason.clone(),
        fs::FsError::TooLarge { .. } => e.to_string(),
    })?;
    let bytes = bytes.ok_or("it is not there")?;
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}
