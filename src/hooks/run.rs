//! Runs one hook to its end: its own process group, no terminal, the event as JSON on stdin, a deadline, bounded output.
//! What a hook does can take time and nothing else from whoever calls this.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::model::hook::{Hook, Words};
use crate::model::text;
use crate::sys::exec::{self, Command, ExecError};
use crate::sys::{clock, proc, rand};

/// What is kept of each stream, characters.
const LONGEST: usize = 10_000;
/// How long what a hook has started may take to end once the hook is over its time.
const GRACE: Duration = Duration::from_millis(500);
/// The variable that all of one run have in common.
const MARK: &str = "PHALANX_HOOK_RUN";
/// The one that all runs of one owner have in common.
const OWNER: &str = "PHALANX_HOOK_OWNER";

/// What a hook is run with.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) input: &'a Value,
    /// The whole environment.
    pub(crate) env: &'a [(OsString, OsString)],
    pub(crate) cwd: &'a Path,
    /// Who has it run: random, for [`end_all`].
    pub(crate) owner: &'a str,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    Code(i32),
    Signal(i32),
    /// It was ended, with all that it had started.
    TimedOut,
    /// It could not be started; why.
    NotRun(String),
}

/// What came of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ran {
    pub(crate) end: End,
    /// Without escape sequences, cut to 10 000 characters; so is `stderr`.
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed_ms: u64,
}

/// Runs the hook; comes back when it has ended, or soon after its time.
pub(crate) fn run(hook: &Hook, call: &Call) -> Ran {
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
            // Its group is dead; what has left the group still bears the mark.
            proc::end_marked(&[format!("{MARK}={mark}")], GRACE);
            (End::TimedOut, String::new(), String::new())
        }
        Err(
            e @ (ExecError::NotFound { .. } | ExecError::Directory { .. } | ExecError::Io { .. }),
        ) => (End::NotRun(with_cause(&e)), String::new(), String::new()),
    };
    Ran { end, stdout, stderr, elapsed_ms: clock::now_ms().saturating_sub(begun) }
}

/// Ends all that runs for this owner, as their time would; each [`run`] then comes back soon.
pub(crate) fn end_all(owner: &str) {
    proc::end_marked(&[format!("{OWNER}={owner}")], GRACE);
}

fn command(hook: &Hook, call: &Call, mark: &str) -> Command {
    let (program, args) = match &hook.run {
        Words::Program(argv) => {
            let mut words = argv.iter().map(OsString::from);
            (words.next().unwrap_or_default(), words.collect())
        }
        // The one place where a shell gets a text: the user wrote it for one, and nothing is put into it.
        Words::Line(line) => ("sh".into(), vec!["-c".into(), line.into()]),
    };
    let mut env = call.env.to_vec();
    env.extend([(MARK.into(), mark.into()), (OWNER.into(), call.owner.into())]);
    Command {
        program,
        args,
        env: Some(env),
        cwd: Some(call.cwd.to_owned()),
        stdin: call.input.to_string().into_bytes(),
    }
}

/// What a hook printed, fit for a mailbox and the journal.
fn readable(bytes: &[u8]) -> String {
    // A character has four bytes at most; what is not going to be kept is not looked at.
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
