//! Runs one hook to completion, with the event as JSON on stdin, in its own process group and
//! without a terminal. A deadline and an output limit bound what a hook can cost its caller.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use model::team::hook::{HookCommand, Invocation};
use model::text;
use sys::exec::{self, ExecCommand, ExecError};
use sys::{clock, proc, rand};

/// Characters kept of each output stream.
const LONGEST: usize = 10_000;
/// Grace period for the processes of a hook that timed out: those still alive after it are killed.
const GRACE: Duration = Duration::from_millis(500);
/// Environment variable that holds the id of one run.
const MARK: &str = "PHALANX_HOOK_RUN";
/// Environment variable that holds the owner's id, which all runs of one owner share.
const OWNER: &str = "PHALANX_HOOK_OWNER";

/// The input and surroundings of one hook run.
#[derive(Debug)]
pub struct Call<'a> {
    /// The event; written to the hook's stdin as JSON.
    pub input: &'a Value,
    /// The complete environment: nothing is inherited from this process.
    pub env: &'a [(OsString, OsString)],
    pub cwd: &'a Path,
    /// Random id of the caller, by which [`end_all`] finds its runs.
    pub owner: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Code(i32),
    Signal(i32),
    /// The deadline passed; the hook and all processes that it started were stopped.
    TimedOut,
    /// The hook could not be started; holds the reason.
    NotRun(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    pub end: End,
    /// Without escape sequences, cut to 10,000 characters; so is `stderr`.
    pub stdout: String,
    pub stderr: String,
    pub elapsed_ms: u64,
}

/// Runs the hook and waits until it exits or its timeout has passed.
pub fn run(hook: &HookCommand, call: &Call) -> Ran {
    let mark = rand::uuid();
    let command = command(hook, call, &mark);
    let begun = clock::now_ms();
    let result = exec::run(&command, Duration::from_secs(hook.timeout_s));
    let (end, stdout, stderr) = match result {
        Ok(output) => {
            let end = match (output.code, output.signal) {
                (Some(code), _) => End::Code(code),
                (None, signal) => End::Signal(signal.unwrap_or_default()),
            };
            (end, readable(&output.stdout), readable(&output.stderr))
        }
        Err(ExecError::Deadline { .. }) => {
            // The process group is dead; processes that left it still carry the mark in their
            // environment.
            proc::end_marked(&[format!("{MARK}={mark}")], GRACE);
            (End::TimedOut, String::new(), String::new())
        }
        Err(
            e @ (ExecError::NotFound { .. }
            | ExecError::NoInterpreter { .. }
            | ExecError::Directory { .. }
            | ExecError::TooMuchOutput { .. }
            | ExecError::Cancelled { .. }
            | ExecError::Io { .. }),
        ) => (End::NotRun(with_cause(&e)), String::new(), String::new()),
    };
    Ran { end, stdout, stderr, elapsed_ms: clock::now_ms().saturating_sub(begun) }
}

/// Stops all running hooks of this owner; each pending [`run`] then returns soon.
pub fn end_all(owner: &str) {
    proc::end_marked(&[format!("{OWNER}={owner}")], GRACE);
}

fn command(hook: &HookCommand, call: &Call, mark: &str) -> ExecCommand {
    let (program, args) = match &hook.run {
        Invocation::Program(argv) => {
            let mut words = argv.iter().map(OsString::from);
            (words.next().unwrap_or_default(), words.collect())
        }
        // The only use of a shell: the user wrote this line for one, and nothing is interpolated.
        Invocation::Line(line) => ("sh".into(), vec!["-c".into(), line.into()]),
    };
    let mut env = call.env.to_vec();
    env.extend([(MARK.into(), mark.into()), (OWNER.into(), call.owner.into())]);
    ExecCommand {
        program,
        args,
        env: Some(env),
        cwd: Some(call.cwd.to_owned()),
        stdin: call.input.to_string().into_bytes(),
    }
}

/// Makes a hook's output safe for a mailbox and the journal.
fn readable(bytes: &[u8]) -> String {
    // A character takes at most four bytes in UTF-8; bytes beyond the limit are not decoded.
    let head = &bytes[..bytes.len().min(4 * LONGEST)];
    let plain = text::plain(&String::from_utf8_lossy(head));
    let plain = plain.trim();
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain.to_owned(),
    }
}

fn with_cause(error: &ExecError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}
