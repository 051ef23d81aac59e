//! The launcher, `phalanx exec SPEC`: what a placement runs instead of a shell line (SP-01). It reads its spec, sets
//! directory and environment, proves in the member's record that the program runs, stays with it, writes how it ended,
//! and leaves nothing of it behind. Knows nothing of backends: it stands in whatever they gave it.

mod answer;
mod linger;
mod output;
mod program;
mod run;

use std::path::Path;
use std::time::Duration;

use super::context::now;
use crate::model::record::ExitRecord;
use crate::sys::child::{self, Exit, Forward, Supervisor};
use crate::sys::proc::{self, Process};
use crate::sys::signal::{HUP, TERM, WINCH};
use output::Output;
use program::Problem;
use run::{Run, complain};

/// How long the program gets after it was told to end.
const KILL_AFTER: Duration = Duration::from_secs(2);
/// How long what the program left behind gets before it is killed.
const REST_GRACE: Duration = Duration::from_secs(1);
/// The same when we were told to end: the program's own grace has been spent, and somebody waits for us.
const REST_GRACE_WHEN_TOLD: Duration = Duration::from_millis(500);
/// How long to wait for the program's last words on a terminal of its own. A child that it left behind may hold the
/// terminal open, so that no end of it comes.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// The launcher's own exit code when it could not do its work.
const OWN_FAILURE: i32 = 125;
/// Added to a signal's number to make an exit code of it, as shells do.
const BY_SIGNAL: i32 = 128;

/// Runs the program of the spec at `path` to its end and gives the exit code for this process. To be called in the
/// first thread, before there are others.
pub(crate) fn exec(path: &Path) -> i32 {
    // First of all: from here on nothing but KILL can end us between the program's start and its record.
    Supervisor::block_signals();
    // Where there is no such thing, what the program leaves behind is still found by its sessions.
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

/// Stays with the running program.
fn attend(run: &Run, child: Process, mut output: Output) -> i32 {
    if let Err(problem) = run.note_start(child, &output) {
        // Nobody would ever know of it: the team or this run is no more.
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

/// What a signal from outside means to the program. The keyboard's own never come here: the program's group has the
/// foreground. Nor do changes of a terminal's size: its own group is told by the terminal.
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
    fn exit_codes_are_those_of_shells() {
        assert_eq!(exit_code(Exit { code: Some(7), signal: None }), 7);
        assert_eq!(exit_code(Exit { code: None, signal: Some(9) }), 137);
        assert_eq!(exit_code(Exit { code: None, signal: None }), OWN_FAILURE);
    }

    #[test]
    fn only_changes_of_size_are_kept_from_the_program() {
        assert_eq!([HUP, INT, QUIT, TERM].map(answer), [Forward::Pass; 4]);
        assert_eq!(answer(WINCH), Forward::Swallow);
    }
}
