//! Finishes a one-shot run, which is the last tier of the backend fallback and the only kind in
//! task mode: completes or fails its task, sends the output to the lead, and takes the member off
//! the team.

use std::path::{Path, PathBuf};

use super::command::Tail;
use super::run::Run;
use crate::model::id::{MemberName, TaskId};
use crate::model::lifecycle::Cause;
use crate::model::protocol::Message;
use crate::model::record::{ExitRecord, MemberRecord};
use crate::model::spec::Terminal;
use crate::model::task::Outcome;
use crate::ops::OpsError;
use crate::ops::retire::{self, Retirement};
use crate::ops::{Caller, Context};
use crate::ops::{hooks, send, task};
use crate::store::{Ending, Store};
use crate::sys::{env, fs};

/// Number of bytes read from the end of the log.
const TAIL: u64 = 64 * 1024;

/// Ends the run's task, if it has one, and sends the exit status and the end of the output to the
/// lead.
pub(super) fn give(run: &Run, exit: &ExitRecord) {
    let Terminal::Once { log } = &run.order.terminal else { return };
    if !run.team.exists() {
        return;
    }
    let mut tail = Tail::default();
    tail.push(&fs::read_tail(Path::new(log), TAIL).unwrap_or_default());
    let text = tail.text();
    let printed = text.trim_end();
    // Without the record the task is unknown; it is released when the member leaves.
    let record = run.team.member_record(&run.member).ok().flatten();
    let done = record.and_then(|record| settle(run, &record, exit, printed));
    let message = Message::Text(words(run.member.as_str(), exit, done.as_deref(), printed, log));
    if let Err(e) = send::report(&run.team, &run.member, &message) {
        run.say(&format!("the answer did not reach the lead: {e}"));
    }
}

/// Completes or fails the task according to the exit status. Returns a description of the result.
fn settle(run: &Run, record: &MemberRecord, exit: &ExitRecord, printed: &str) -> Option<String> {
    let id = record.wish.task?;
    let begun = record.start.as_ref().map_or(record.asked_at, |start| start.at);
    let outcome = Outcome {
        exit_code: exit.code,
        signal: exit.signal,
        tail: printed.to_owned(),
        elapsed_ms: exit.at.since(begun),
    };
    let ended = match exit.code {
        Some(0) => complete(run, id, &outcome),
        Some(_) | None => fail(run, id, &outcome),
    };
    Some(ended.unwrap_or_else(|e| format!("task #{id} is left as it is: {e}")))
}

fn complete(run: &Run, id: TaskId, outcome: &Outcome) -> Result<String, OpsError> {
    let ctx = Context {
        store: Store::at(run.team.root()),
        speaker: run.member.clone(),
        caller: Caller {
            env: run.order.env.clone(),
            cwd: run.order.cwd.clone(),
            exe: env::current_exe().unwrap_or_else(|_| PathBuf::from("phalanx")),
        },
    };
    let hooks = hooks::configured(&ctx, &run.team);
    match task::complete(&ctx, &run.team, &hooks, id, &run.member, Some(outcome)) {
        Ok(done) => {
            done.complaints.iter().for_each(|complaint| run.say(complaint));
            Ok(format!("task #{id} is completed"))
        }
        // The program has exited and cannot satisfy the hook, so the task fails.
        Err(OpsError::HookRefused { said, .. }) => {
            let tail = format!("{}\na hook refuses it: {said}", outcome.tail);
            let failed = fail(run, id, &Outcome { tail, ..outcome.clone() })?;
            Ok(format!("{failed}, a hook refuses it: {said}"))
        }
        Err(e) => Err(e),
    }
}

fn fail(run: &Run, id: TaskId, outcome: &Outcome) -> Result<String, OpsError> {
    task::end(&run.team, id, &run.member, Ending::Failed, Some(outcome))?;
    Ok(format!("task #{id} has failed"))
}

fn words(member: &str, exit: &ExitRecord, done: Option<&str>, printed: &str, log: &str) -> String {
    let done = done.map(|done| format!(" {}.", done.trim_end_matches('.'))).unwrap_or_default();
    let how =
        format!("{member} ran once, without a terminal, and has ended: {}.{done}", exit.describe());
    match printed {
        "" => format!("{how} It printed nothing."),
        printed => format!("{how} The end of what it printed (all of it: {log}):\n\n{printed}"),
    }
}

/// Takes the member off the team, since its program has exited.
pub(super) fn leave(run: &Run, exit: &ExitRecord) {
    if !matches!(run.order.terminal, Terminal::Once { .. }) || !run.team.exists() {
        return;
    }
    let retirement = Retirement {
        name: MemberName::clone(&run.member),
        incarnation: run.incarnation.clone(),
        cause: Cause::Ended { code: exit.code },
        reason: exit.describe(),
    };
    if let Err(e) = retire::retire(&run.team, &[retirement]) {
        run.say(&format!("it could not leave the team: {e}"));
    }
}
