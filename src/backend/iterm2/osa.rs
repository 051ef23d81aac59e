//! Runs `osascript`: the script on stdin, data as arguments, with a deadline. Turns its errors into
//! advice for the user (LY-09).

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use super::super::BackendError;
use super::script::{SURVEY, Script};
use model::text;
use sys::exec::{self, ExecError};

/// Timeout of one script.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// Advice if iTerm2 does not answer in time.
const SILENT: &str = "check whether iTerm2 or macOS shows a dialog, and answer it";
/// Advice if iTerm2 has no such session.
const GONE: &str =
    "the session was closed in the meantime: run the command again in an iTerm2 session";
/// Advice if iTerm2 does not run.
const START: &str = "start iTerm2 and run the command again in one of its sessions";

/// The `osascript` program.
#[derive(Debug, Clone)]
pub(super) struct Osa {
    pub(super) program: PathBuf,
    /// Timeout of a script.
    pub(super) within: Duration,
}

impl Osa {
    pub(super) fn new(program: PathBuf) -> Osa {
        Osa { program, within: ANSWER_WITHIN }
    }

    pub(super) fn run(&self, script: &Script, args: &[&str]) -> Result<String, BackendError> {
        let command = exec::ExecCommand {
            program: self.program.clone().into(),
            args: std::iter::once("-").chain(args.iter().copied()).map(OsString::from).collect(),
            stdin: script.text.as_bytes().to_vec(),
            ..exec::ExecCommand::default()
        };
        let output = exec::run(&command, self.within).map_err(|error| match error {
            ExecError::Deadline { after_ms, .. } => {
                refused(script, None, format!("no answer within {after_ms} ms"), Some(SILENT))
            }
            other => BackendError::Exec(other),
        })?;
        if output.code != Some(0) {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let (code, message) = parse_error(&stderr);
            return Err(refused(script, code, message, code.and_then(advice)));
        }
        let answer = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(answer.strip_suffix('\n').map(str::to_owned).unwrap_or(answer))
    }
}

pub(super) fn not_running(script: &Script) -> BackendError {
    refused(script, None, "it is not running".to_owned(), Some(START))
}

/// The error for a version of iTerm2 that closes the wrong sessions.
pub(super) fn too_old(version: &str) -> BackendError {
    let message = format!("version {} is too old", text::short(version, 40));
    refused(&SURVEY, None, message, Some("update iTerm2 to version 3.2 or later"))
}

/// The error for an answer that no script of ours gives.
pub(super) fn unreadable(script: &Script, answer: &str) -> BackendError {
    refused(script, None, format!("it answered {:?}", text::short(answer, 80)), advice(-1708))
}

pub(super) fn refused(
    script: &Script,
    code: Option<i32>,
    message: String,
    advice: Option<&'static str>,
) -> BackendError {
    BackendError::Iterm2 { doing: script.doing, code, message, advice }
}

/// Extracts number and message from a line such as `120:155: execution error: iTerm got an error:
/// Can’t get session. (-1728)`.
fn parse_error(stderr: &str) -> (Option<i32>, String) {
    let line = stderr
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it failed without an error message")
        .trim();
    let message = line.split_once("error: ").map_or(line, |(_, message)| message);
    let code = line
        .strip_suffix(')')
        .and_then(|rest| rest.rsplit_once('('))
        .and_then(|(_, code)| code.parse().ok());
    (code, text::short(message, 300))
}

fn advice(code: i32) -> Option<&'static str> {
    match code {
        -1743 => Some(
            "allow it in System Settings > Privacy & Security > Automation: under your terminal, turn on iTerm",
        ),
        -1719 | -1728 => Some(GONE),
        -600 | -609 => Some(START),
        -1712 => Some(SILENT),
        -128 => Some("a dialog was cancelled: run the command again and allow it"),
        // -2753 and -2763: a command gave no result; -10006: a property cannot be set.
        -1708 | -2753 | -2763 | -10000 | -10006 => {
            Some("update iTerm2: this version does not understand phalanx's scripts")
        }
        -2740 | -2741 | -10814 | -43 => {
            Some("install iTerm2 (https://iterm2.com), or use `--backend auto`")
        }
        _ => None,
    }
}

/// Returns true if the error reports that an object does not exist or no longer exists.
pub(super) fn is_gone(error: &BackendError) -> bool {
    matches!(error, BackendError::Iterm2 { code: Some(-1719 | -1728), .. })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ly_09_every_error_code_has_advice() {
        let table = [
            (-1743, "Automation"),
            (-1728, "closed in the meantime"),
            (-1719, "closed in the meantime"),
            (-600, "start iTerm2"),
            (-609, "start iTerm2"),
            (-1712, "dialog"),
            (-128, "cancelled"),
            (-1708, "update iTerm2"),
            (-2753, "update iTerm2"),
            (-2763, "update iTerm2"),
            (-10000, "update iTerm2"),
            (-10006, "update iTerm2"),
            (-2741, "install iTerm2"),
            (-2740, "install iTerm2"),
            (-10814, "install iTerm2"),
            (-43, "install iTerm2"),
        ];
        for (code, expected) in table {
            let stderr = format!("0:9: execution error: iTerm got an error: It’s so. ({code})\n");
            let (read, message) = parse_error(&stderr);
            assert_eq!(read, Some(code));
            assert_eq!(message, format!("iTerm got an error: It’s so. ({code})"));
            assert!(advice(code).is_some_and(|advice| advice.contains(expected)), "{code}");
        }
        assert_eq!(advice(-1), None);
        assert_eq!(parse_error(""), (None, "it failed without an error message".to_owned()));
        assert_eq!(parse_error("odd (x)\n"), (None, "odd (x)".to_owned()));
        assert!(!parse_error("error: \u{1b}[2J (-1)").1.contains('\u{1b}'), "SEC-10");
    }
}
