//! The launcher, `phalanx exec SPEC`, which placements start instead of a shell line (SP-01). It
//! reads its spec, starts the program, records its start and exit, and ends all processes the
//! program leaves behind.

mod answer;
pub(crate) mod command;
mod linger;
mod output;
mod program;
mod run;

use std::path::Path;
use std::time::Duration;

use crate::model::record::ExitRecord;
use crate::ops::now;
use crate::sys::child::{self, Exit, Forward, Supervisor};
use crate::sys::proc::{self, Process};
use crate::sys::signal::{HUP, TERM, WINCH};
use output::Output;
use program::Problem;
use run::{Run, complain};

/// Time between forwarding a termination signal and killing the program.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// Time that processes left behind by the program get before SIGKILL.
const REST_GRACE: Duration = Duration::from_secs(1);
/// The same after a termination signal: the program's own grace has been used, and the sender is
/// waiting.
const REST_GRACE_WHEN_TOLD: Duration = Duration::from_millis(500);
/// Time to wait for remaining output on the launcher's own pty. A child that the program left
/// behind may keep the pty open, so that no EOF arrives.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The launcher's exit code if it failed itself.
const OWN_FAILURE: i32 = 125;
/// Added to a signal number to form an exit code, as shells do.
const BY_SIGNAL: i32 = 128;

/// Runs the program of the spec at `path` until it exits, and returns the exit code for this
/// process. Must be called on the main thread before other threads exist.
pub(crate) fn exec(path: &Path) -> i32 {
    // Must come first: from here on only SIGKILL can end the launcher between the start of the
    // program and its record.
    Supervisor::block_signals();
    // Where subreapers do not exist, leftover processes are found by their sessions.
    proc::become_subreaper();
    let mut run = match Run::take(path) {
        Ok(run) => run,
        Err(problem) => {
            complain(&problem);
            return OWN_FAILURE;
        }
    };
    let opened = run.open_log();
    let started = opened
        .and_then(|()| program::of(&run.order))
        .and_then(|program| output::start(&program, &run));
    match started {
        Ok((child, output)) => attend(&run, child, output),
        Err(problem) => never_ran(&run, &problem),
    }
}

/// Supervises the running program until it exits.
fn attend(run: &Run, child: Process, mut output: Output) -> i32 {
    if let Err(problem) = run.note_start(child, &output) {
        // The run cannot be recorded because the team or the record is gone: end it, so that no
        // unrecorded program keeps running.
        run.say(&format!("ended again: {problem}"));
        proc::end_tree(Process::current(), false, REST_GRACE_WHEN_TOLD);
        return OWN_FAILURE;
    }
    let mut told = false;
    let mut on_signal = |sig| {
        told |= sig == TERM || sig == HUP;
        answer(sig)
    };
    let exit = child::supervise(child, &mut on_signal, KILL_AFTER);
    output.wait_end(LAST_WORDS);
    let record = record(exit);
    let awaited = run.note_exit(record.clone());
    output.farewell(exit);
    let left = proc::end_tree(
        Process::current(),
        false,
        if told { REST_GRACE_WHEN_TOLD } else { REST_GRACE },
    );
    run.warn_of(&left);
    output.wait_end(LAST_WORDS);
    if !told {
        answer::give(run, &record);
    }
    linger::hold(run, awaited);
    if !told {
        answer::leave(run, &record);
    }
    exit_code(exit)
}

/// Decides whether a signal received by the launcher is forwarded. Signals typed on the keyboard do
/// not arrive here, since the program's process group is in the foreground. SIGWINCH is dropped
/// because the terminal sends it to that group as well.
fn answer(sig: i32) -> Forward {
    if sig == WINCH { Forward::Swallow } else { Forward::Pass }
}

fn never_ran(run: &Run, problem: &Problem) -> i32 {
    run.say(&problem.text);
    let awaited = run.note_exit(ExitRecord {
        code: Some(problem.code),
        signal: None,
        problem: Some(problem.text.clone()),
        no_terminal: problem.no_terminal,
        at: now(),
    });
    linger::hold(run, awaited);
    problem.code
}

fn record(exit: Exit) -> ExitRecord {
    ExitRecord {
        code: exit.code,
        signal: exit.signal,
        problem: None,
        no_terminal: false,
        at: now(),
    }
}

fn exit_code(exit: Exit) -> i32 {
    exit.code.or(exit.signal.map(|sig| BY_SIGNAL + sig)).unwrap_or(OWN_FAILURE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::signal::{INT, QUIT};

    #[test]
    fn exit_codes_follow_shell_convention() {
        assert_eq!(exit_code(Exit { code: Some(7), signal: None }), 7);
        assert_eq!(exit_code(Exit { code: None, signal: Some(9) }), 137);
        assert_eq!(exit_code(Exit { code: None, signal: None }), OWN_FAILURE);
    }

    #[test]
    fn only_sigwinch_is_not_forwarded() {
        assert_eq!([HUP, INT, QUIT, TERM].map(answer), [Forward::Pass; 4]);
        assert_eq!(answer(WINCH), Forward::Swallow);
    }
}
