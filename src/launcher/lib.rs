//! The launcher, `phalanx exec SPEC`, which placements start instead of a shell line (SP-01). It
//! reads its spec, starts the program, records its start and exit, and ends all processes the
//! program leaves behind. `command` runs the commands of tasks for the worker and the wrapper.

mod bridge;
pub mod command;
mod last_output;
mod output;
mod program;
mod prompt;
mod readiness;
mod run;
pub mod sessions;
mod usage;

use std::path::Path;
use std::time::Duration;

use bridge::BridgeThread;
use last_output::LastOutput;
use model::members::record::ExitRecord;
use output::ProgramOutput;
use program::LaunchProblem;
use prompt::PromptThread;
use readiness::ReadinessThread;
pub use run::LauncherRun;
use run::{is_awaited, print_error};
use store::{Store, now};
use sys::child::{ChildExit, Forward, LoopHandle, Supervisor};
use sys::clock::Deadline;
use sys::failpoint;
use sys::proc::{self, Process};
use sys::signal::{HUP, INT, QUIT, TERM, WINCH};
use usage::UsageThread;

/// Interval of reading the record while the spawner is awaited. A wait is rare and lasts some
/// seconds at most.
const SPAWNER_POLL: Duration = Duration::from_millis(50);
/// Time between forwarding a stop signal and killing the program.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// Time that processes left behind by the program get before SIGKILL.
const REST_GRACE: Duration = Duration::from_secs(1);
/// The same after a stop signal: the program's own grace has been used, and the sender is
/// waiting.
const REST_GRACE_WHEN_SIGNALLED: Duration = Duration::from_millis(500);
/// Time to wait for remaining output on the launcher's own pty. A child that the program left
/// behind may keep the pty open, so that no EOF arrives.
const LAST_OUTPUT: Duration = Duration::from_millis(100);

/// The launcher's exit code if it failed itself.
const OWN_FAILURE: i32 = 125;
/// Added to a signal number to form an exit code, as shells do.
const BY_SIGNAL: i32 = 128;

/// The steps after the end of a one-shot run. They need tasks, hooks and messages, which are above
/// this layer, so the caller of [`exec`] passes them in.
pub struct OneShotEnd {
    /// Ends the run's task and reports to the lead.
    pub report: fn(&LauncherRun, &ExitRecord),
    /// Takes the member off the team. Called once the spawner no longer waits for the start.
    pub leave: fn(&LauncherRun, &ExitRecord),
}

/// Runs the program of the spec at `path` until it exits, and returns the exit code for this
/// process. Must be called on the main thread before other threads exist.
pub fn exec(path: &Path, store: &Store, one_shot: &OneShotEnd) -> i32 {
    // Must come first: from here on only SIGKILL can end the launcher between the start of the
    // program and its record.
    let supervisor = match Supervisor::new() {
        Ok(supervisor) => supervisor,
        Err(e) => {
            print_error(&format!("cannot receive signals: {e}"));
            return OWN_FAILURE;
        }
    };
    // Where subreapers do not exist, leftover processes are found by their sessions.
    proc::become_subreaper();
    let mut run = match LauncherRun::take(path, store) {
        Ok(run) => run,
        Err(problem) => {
            print_error(&problem);
            return OWN_FAILURE;
        }
    };
    failpoint::hit("launch.taken");
    let opened = run.open_log();
    let started = opened.and_then(|()| {
        let program = program::resolve(&run.command)?;
        let bridge = BridgeThread::start(&run)?;
        let (child, output) = output::start(&program, &run)?;
        Ok((child, output, bridge))
    });
    match started {
        Ok((child, output, bridge)) => {
            supervise(&supervisor, &run, child, (output, bridge), one_shot)
        }
        Err(problem) => record_failure(&supervisor, &run, &problem),
    }
}

/// Supervises the running program until it exits.
fn supervise(
    supervisor: &Supervisor,
    run: &LauncherRun,
    child: Process,
    (mut output, bridge): (ProgramOutput, Option<BridgeThread>),
    one_shot: &OneShotEnd,
) -> i32 {
    if let Err(problem) = run.record_start(child, output.tty_name(), output.socket()) {
        // The run cannot be recorded because the team or the record is gone: end it, so that no
        // unrecorded program keeps running.
        run.print(&format!("ended again: {problem}"));
        proc::end_tree(Process::current(), false, REST_GRACE_WHEN_SIGNALLED);
        return OWN_FAILURE;
    }
    let usage = UsageThread::start(run);
    let (handle, jobs) = LoopHandle::new();
    let prompt = PromptThread::start(run, child, &output, handle.clone());
    let readiness = ReadinessThread::start(run, &output, handle);
    let (mut signalled, mut hung_up) = (false, false);
    let mut on_signal = |sig| {
        signalled |= sig == TERM || sig == HUP;
        hung_up |= sig == HUP;
        forwarding(sig)
    };
    let exit =
        after_hangup(supervisor.supervise(child, &mut on_signal, &jobs, KILL_AFTER), hung_up);
    drop(jobs);
    if let Some(prompt) = prompt {
        prompt.finish();
    }
    if let Some(readiness) = readiness {
        readiness.finish();
    }
    output.wait_end(LAST_OUTPUT);
    if let Some(bridge) = bridge {
        bridge.finish();
    }
    if let Some(usage) = usage {
        usage.finish();
    }
    let at = now();
    // A hangup means that the terminal is gone.
    let last = if hung_up { LastOutput::default() } else { output.keep_last(run) };
    let record = last.into_record(ExitRecord {
        code: exit.code,
        signal: exit.signal,
        at,
        ..ExitRecord::default()
    });
    let awaited = run.record_exit(record.clone());
    output.send_exit(exit);
    failpoint::hit("launch.ended");
    let grace = if signalled { REST_GRACE_WHEN_SIGNALLED } else { REST_GRACE };
    run.journal_leftovers(&proc::end_tree(Process::current(), false, grace));
    output.wait_end(LAST_OUTPUT);
    // Its task is given back to the team by the process that ends it.
    let reports = run.is_one_shot() && !signalled && !run.is_asked_to_end();
    if reports {
        (one_shot.report)(run, &record);
    }
    wait_for_spawner(supervisor, run, awaited);
    if reports {
        (one_shot.leave)(run, &record);
    }
    exit_code(exit)
}

/// Some programs exit with 0 when their terminal is closed (observed: Claude Code). They had not
/// come to their end, so the exit counts as one by the signal.
fn after_hangup(exit: ChildExit, hung_up: bool) -> ChildExit {
    match exit.code {
        Some(0) if hung_up => ChildExit { code: None, signal: Some(HUP) },
        _ => exit,
    }
}

/// Decides whether a signal received by the launcher is forwarded. Signals typed on the keyboard do
/// not arrive here, since the program's process group is in the foreground. SIGWINCH is dropped
/// because the terminal sends it to that group as well.
fn forwarding(sig: i32) -> Forward {
    if sig == WINCH { Forward::Swallow } else { Forward::Pass }
}

fn record_failure(supervisor: &Supervisor, run: &LauncherRun, problem: &LaunchProblem) -> i32 {
    run.print(&problem.text);
    let awaited = run.record_exit(ExitRecord {
        code: Some(problem.code),
        problem: Some(problem.text.clone()),
        no_terminal: problem.no_terminal,
        at: now(),
        ..ExitRecord::default()
    });
    wait_for_spawner(supervisor, run, awaited);
    problem.code
}

fn exit_code(exit: ChildExit) -> i32 {
    exit.code.or(exit.signal.map(|sig| BY_SIGNAL + sig)).unwrap_or(OWN_FAILURE)
}

/// Keeps the terminal of a program that failed to start open until its spawner has read the screen
/// (SP-09): a pane closes with its launcher, and the error output would be lost.
///
/// Blocks while the spawner is `awaited`: until a signal asks this process to end, the record is
/// gone or has advanced, or the linger time has passed.
fn wait_for_spawner(supervisor: &Supervisor, run: &LauncherRun, awaited: bool) {
    let deadline = Deadline::after(run.linger);
    while awaited && !deadline.expired() && still_awaited(run) {
        let signal = supervisor.next_signal(deadline.remaining().min(SPAWNER_POLL));
        if matches!(signal, Some(HUP | INT | QUIT | TERM)) {
            return;
        }
    }
}

fn still_awaited(run: &LauncherRun) -> bool {
    // An unreadable record counts as gone.
    let record = run.team.member_record(&run.member).ok().flatten();
    record.is_some_and(|record| record.is(&run.incarnation) && is_awaited(record.state))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::signal::{INT, QUIT};

    #[test]
    fn exit_codes_follow_shell_convention() {
        assert_eq!(exit_code(ChildExit { code: Some(7), signal: None }), 7);
        assert_eq!(exit_code(ChildExit { code: None, signal: Some(9) }), 137);
        assert_eq!(exit_code(ChildExit { code: None, signal: None }), OWN_FAILURE);
    }

    #[test]
    fn only_sigwinch_is_not_forwarded() {
        assert_eq!([HUP, INT, QUIT, TERM].map(forwarding), [Forward::Pass; 4]);
        assert_eq!(forwarding(WINCH), Forward::Swallow);
    }
}
