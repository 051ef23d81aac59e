//! Keeps the terminal of a program that failed to start open until its spawner has read the screen
//! (SP-09): a pane closes with its launcher, and the error output would be lost.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use super::run::{LauncherRun, is_awaited};
use crate::sys::child::Supervisor;
use crate::sys::clock::Deadline;
use crate::sys::signal::{HUP, INT, QUIT, TERM};

/// Poll interval for the record. Change notifications may be late or missing.
const POLL: Duration = Duration::from_millis(250);
/// Timeout of one wait for a signal, repeated in a loop.
const SIGNAL_WAIT: Duration = Duration::from_secs(60);

/// The event that ended a wait early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WakeReason {
    /// A signal asked the launcher to exit.
    Signalled,
    /// Files of the team changed.
    Changed,
}

/// Blocks while the spawner is `awaited`: until a signal arrives, the record is gone or has
/// advanced, or the linger time has passed.
pub(super) fn wait_for_spawner(run: &LauncherRun, awaited: bool) {
    if !awaited || run.linger.is_zero() {
        return;
    }
    let (sender, woken) = channel();
    let signalled = sender.clone();
    // The signal thread and the watch are optional: the deadline and the poll end the wait too.
    let _ =
        thread::Builder::new().name("signals".to_owned()).spawn(move || forward_signal(&signalled));
    let changed = sender.clone();
    let _watch = run.team.watch(move |_| {
        let _ = changed.send(WakeReason::Changed);
    });
    let deadline = Deadline::after(run.linger);
    while !deadline.expired() && still_awaited(run) {
        if woken.recv_timeout(deadline.remaining().min(POLL)) == Ok(WakeReason::Signalled) {
            return;
        }
    }
    // Keeps the channel connected: `recv_timeout` on a disconnected one returns at once.
    drop(sender);
}

fn still_awaited(run: &LauncherRun) -> bool {
    // An unreadable record counts as gone.
    let record = run.team.member_record(&run.member).ok().flatten();
    record.is_some_and(|record| record.is(&run.incarnation) && is_awaited(record.state))
}

fn forward_signal(wakes: &Sender<WakeReason>) {
    loop {
        if let Some(HUP | INT | QUIT | TERM) = Supervisor::next_signal(SIGNAL_WAIT) {
            // Fails only after `wait_for_spawner` has returned.
            let _ = wakes.send(WakeReason::Signalled);
            return;
        }
    }
}
