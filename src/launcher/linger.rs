//! Keeps the terminal of a program that failed to start open until its spawner has read the screen
//! (SP-09): a pane closes with its launcher, and the error output would be lost.

use std::time::Duration;

use super::run::{LauncherRun, is_awaited};
use crate::sys::child::Supervisor;
use crate::sys::clock::Deadline;
use crate::sys::signal::{HUP, INT, QUIT, TERM};

/// Interval of reading the record. A wait is rare and lasts some seconds at most.
const POLL: Duration = Duration::from_millis(50);

/// Blocks while the spawner is `awaited`: until a signal asks this process to end, the record is
/// gone or has advanced, or the linger time has passed.
pub(super) fn wait_for_spawner(supervisor: &Supervisor, run: &LauncherRun, awaited: bool) {
    let deadline = Deadline::after(run.linger);
    while awaited && !deadline.expired() && still_awaited(run) {
        let signal = supervisor.next_signal(deadline.remaining().min(POLL));
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
