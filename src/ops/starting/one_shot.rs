//! The end of a one-shot run, which is the last tier of the backend fallback and the only kind in
//! task mode. Its launcher completes or fails its task, sends the output to the lead, and takes the
//! member off the team.

use std::path::{Path, PathBuf};

use crate::board::task;
use crate::ending::remove::{self, MemberRemoval};
use crate::mail::post::Post;
use crate::team::hooks;
use crate::{Caller, Context, OpsError};
use launcher::command::Tail;
use launcher::{LauncherRun, OneShotEnd};
use model::board::task::{CommandOutcome, TaskAction};
use model::id::{MemberName, TaskId};
use model::mail::protocol::Message;
use model::members::lifecycle::Cause;
use model::members::record::{ExitRecord, MemberRecord};
use model::members::spec::Terminal;
use store::TaskStep;
use sys::{env, fs};

/// The steps that the launcher performs after a one-shot run.
pub const END: OneShotEnd = OneShotEnd { report, leave };

/// Number of bytes read from the end of the log.
const TAIL: u64 = 64 * 1024;

/// Ends the run's task, if it has one: the report of the task has the end of the output. Without a
/// task, or if it cannot be ended, sends the exit status and the end of the output to the lead.
fn report(run: &LauncherRun, exit: &ExitRecord) {
    let Terminal::Once { log } = &run.command.terminal else { return };
    if !run.team.exists() {
        return;
    }
    let mut tail = Tail::default();
    tail.push(&fs::read_tail(Path::new(log), TAIL).unwrap_or_default());
    let text = tail.text();
    let printed = text.trim_end();
    // Without the record the task is unknown; it is released when the member leaves.
    let record = run.team.member_record(&run.member).ok().flatten();
    let problem = match record.and_then(|record| end_task(run, &record, exit, printed)) {
        Some(Ok(())) => return,
        Some(Err((id, e))) => Some(format!("task #{id} is left as it is: {e}")),
        None => None,
    };
    let summary = summary(run.member.as_str(), exit, problem.as_deref(), printed, log);
    let post = Post::report(&run.team, &run.member, Message::Text(summary));
    if let Err(e) = post.send(&run.team) {
        run.print(&format!("the answer did not reach the lead: {e}"));
    }
}

/// Completes or fails the task according to the exit status. `None` without a task.
fn end_task(
    run: &LauncherRun,
    record: &MemberRecord,
    exit: &ExitRecord,
    printed: &str,
) -> Option<Result<(), (TaskId, OpsError)>> {
    let id = record.request.task?;
    let begun = record.start.as_ref().map_or(record.asked_at, |start| start.at);
    let outcome = CommandOutcome {
        exit_code: exit.code,
        signal: exit.signal,
        tail: printed.to_owned(),
        elapsed_ms: exit.at.since(begun),
    };
    let ended = match exit.code {
        Some(0) => complete(run, id, &outcome),
        Some(_) | None => fail(run, id, &outcome),
    };
    Some(ended.map_err(|e| (id, e)))
}

/// Returns the context of the run's own commands.
fn context(run: &LauncherRun) -> Context {
    Context {
        store: run.store.clone(),
        speaker: run.member.clone(),
        caller: Caller {
            env: run.command.env.clone(),
            cwd: run.command.cwd.clone(),
            exe: env::current_exe().unwrap_or_else(|_| PathBuf::from("phalanx")),
        },
    }
}

fn complete(run: &LauncherRun, id: TaskId, outcome: &CommandOutcome) -> Result<(), OpsError> {
    let ctx = context(run);
    let hooks = hooks::load_hooks(&ctx, &run.team);
    let step = TaskStep::with_outcome(TaskAction::Complete, outcome);
    match task::act(&ctx, &run.team, &hooks, id, &run.member, &step) {
        Ok(done) => {
            done.complaints.iter().for_each(|complaint| run.print(complaint));
            Ok(())
        }
        // The program has exited and cannot satisfy the hook, so the task fails.
        Err(OpsError::HookRefused { said, .. }) => {
            let tail = format!("{}\na hook refuses it: {said}", outcome.tail);
            fail(run, id, &CommandOutcome { tail, ..outcome.clone() })
        }
        Err(e) => Err(e),
    }
}

fn fail(run: &LauncherRun, id: TaskId, outcome: &CommandOutcome) -> Result<(), OpsError> {
    let step = TaskStep::with_outcome(TaskAction::Fail, outcome);
    task::end(&run.team, id, &run.member, &step)?;
    Ok(())
}

/// Formats the message to the lead.
fn summary(
    member: &str,
    exit: &ExitRecord,
    problem: Option<&str>,
    printed: &str,
    log: &str,
) -> String {
    let problem = problem.map(|text| format!(" {}.", text.trim_end_matches('.')));
    let how = format!(
        "{member} ran once, without a terminal, and has ended: {}.{}",
        exit.describe(),
        problem.unwrap_or_default()
    );
    match printed {
        "" => format!("{how} It printed nothing."),
        printed => format!("{how} The end of what it printed (all of it: {log}):\n\n{printed}"),
    }
}

/// Takes the member off the team, since its program has exited.
fn leave(run: &LauncherRun, exit: &ExitRecord) {
    if !run.team.exists() {
        return;
    }
    let removal = MemberRemoval {
        name: MemberName::clone(&run.member),
        incarnation: run.incarnation.clone(),
        cause: Cause::Ended { code: exit.code },
        reason: exit.describe(),
    };
    if let Err(e) = remove::remove(&context(run), &run.team, &[removal]) {
        run.print(&format!("it could not leave the team: {e}"));
    }
}
