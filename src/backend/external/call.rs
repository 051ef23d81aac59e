//! Runs an external backend program once: a verb as argument, a JSON document on stdin, a JSON
//! document on stdout, within a deadline. Validates everything that the program returns.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::contract::{AnswerHeader, ContractVerb, VERSION, VersionedRequest};
use crate::model::text;
use crate::sys::exec::{self, ExecCommand, ExecError, ExecOutput};

/// Deadline of one call; the program's process group is killed after it. A script may need seconds
/// to start while agents compile on all cores.
const DEADLINE: Duration = Duration::from_secs(15);
/// Size limit of an answer, in bytes.
const LONGEST_ANSWER: usize = 1 << 20;
/// Length limit of the program's output quoted in an error, in characters.
const QUOTED: usize = 300;
/// Exit code by which the program reports that the place does not exist.
const NOT_THERE: i32 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallFault {
    NotThere,
    /// The program does not support the verb.
    Unsupported,
    /// A description that follows the program's name in a sentence.
    Failed(String),
}

/// Calls `program` with `verb` as its only argument and `request` on its stdin.
pub(super) fn call<T: DeserializeOwned>(
    program: &str,
    env: &[(OsString, OsString)],
    verb: ContractVerb,
    request: &impl Serialize,
) -> Result<T, CallFault> {
    let stdin = serde_json::to_vec(&VersionedRequest { version: VERSION, body: request })
        .map_err(|e| CallFault::Failed(format!("could not be queried: {e}")))?;
    let command = ExecCommand {
        program: program.into(),
        args: vec![verb.as_str().into()],
        env: Some(env.to_vec()),
        // A fixed directory, so that the call does not depend on the caller's.
        cwd: Some(PathBuf::from("/")),
        stdin,
    };
    let output = exec::run(&command, DEADLINE).map_err(|e| CallFault::Failed(not_run(&e)))?;
    match (output.code, output.signal) {
        (Some(0), _) => read(&output.stdout),
        (Some(NOT_THERE), _) => Err(CallFault::NotThere),
        (Some(code), _) => {
            Err(CallFault::Failed(format!("failed with exit code {code}{}", stderr(&output))))
        }
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            Err(CallFault::Failed(format!("was killed by signal {signal}{}", stderr(&output))))
        }
    }
}

fn not_run(e: &ExecError) -> String {
    match e {
        ExecError::NotFound { .. } => "cannot be found".to_owned(),
        ExecError::NoInterpreter { needs, .. } => format!("cannot be run: {needs} does not exist"),
        ExecError::Deadline { after_ms, .. } => {
            format!("did not answer within {after_ms} ms and was killed")
        }
        ExecError::Directory { source, .. } | ExecError::Io { source, .. } => {
            format!("cannot be run: {source}")
        }
    }
}

/// The last lines of stderr, where a traceback has its reason.
fn stderr(output: &ExecOutput) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let quoted = text::short(&text::last_lines(&stderr, 3), QUOTED);
    if quoted.is_empty() { quoted } else { format!(": {quoted}") }
}

fn read<T: DeserializeOwned>(stdout: &[u8]) -> Result<T, CallFault> {
    if stdout.len() > LONGEST_ANSWER {
        return Err(CallFault::Failed(format!("answered more than {LONGEST_ANSWER} bytes")));
    }
    let unreadable = |e: serde_json::Error| {
        let quoted = text::short(String::from_utf8_lossy(stdout).trim(), QUOTED);
        CallFault::Failed(format!("gave an invalid answer ({e}): `{quoted}`"))
    };
    let answer: serde_json::Map<String, serde_json::Value> =
        serde_json::from_slice(stdout).map_err(unreadable)?;
    let answer = serde_json::Value::Object(answer);
    let head: AnswerHeader = serde::Deserialize::deserialize(&answer).map_err(unreadable)?;
    if head.version != VERSION {
        let problem = format!(
            "answered with protocol version {}; this phalanx supports version {VERSION}",
            head.version
        );
        return Err(CallFault::Failed(problem));
    }
    if head.unsupported {
        return Err(CallFault::Unsupported);
    }
    serde_json::from_value(answer).map_err(unreadable)
}

#[cfg(test)]
mod tests {
    use super::super::contract::{EmptyAnswer, VerdictWord, VerdictsAnswer};
    use super::*;

    fn problem<T: DeserializeOwned + std::fmt::Debug>(stdout: &[u8]) -> String {
        match read::<T>(stdout).expect_err("not an answer") {
            CallFault::Failed(problem) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn sp_08_answers_are_parsed_and_invalid_ones_quoted() {
        let verdicts: VerdictsAnswer =
            read(br#" {"version": 1, "verdicts": ["owned", "gone"], "new": 7} "#)
                .expect("an answer");
        assert_eq!(verdicts.verdicts, [VerdictWord::Owned, VerdictWord::Gone]);
        assert_eq!(
            read::<EmptyAnswer>(br#"{"version":1,"unsupported":true}"#).expect_err("no"),
            CallFault::Unsupported
        );
        for (answer, named) in [
            (&b""[..], "EOF"),
            (b"zsh: \x1b[31mno", "zsh"),
            (b"\xff\xfe\xfd", "expected value"),
            (b"{}", "version"),
            (b"[]", "expected a map"),
            (br#"{"version":1}"#, "verdicts"),
            (br#"{"version":2,"verdicts":[]}"#, "version 2"),
            (br#"{"version":1,"verdicts":["mine"]}"#, "mine"),
            (br#"{"version":1,"verdicts":[]} trailing"#, "trailing"),
        ] {
            let problem = problem::<VerdictsAnswer>(answer);
            assert!(problem.contains(named), "{problem}");
            assert!(!problem.contains('\u{1b}') && problem.chars().count() < 500, "{problem:?}");
        }
        let nested = [&br#"{"version":1,"verdicts":"#[..], &b"[".repeat(100_000)].concat();
        assert!(problem::<VerdictsAnswer>(&nested).contains("recursion"));
        assert!(problem::<VerdictsAnswer>(&vec![b' '; LONGEST_ANSWER + 1]).contains("more than"));
    }
}
