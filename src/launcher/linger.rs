//! Keeps the terminal of a program that failed to start open until its spawner has read the screen
//! (SP-09): a pane closes with its launcher, and the error output would be lost.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use super::run::Run;
use crate::model::lifecycle::MemberState;
use crate::sys::child::Supervisor;
use crate::sys::clock::Deadline;
use crate::sys::signal::{HUP, INT, QUIT, TERM};

/// Poll interval for the record. Change notifications may be late or missing.
const GLANCE: Duration = Duration::from_millis(250);
/// Timeout of one wait for a signal, repeated in a loop.
const LISTEN: Duration = Duration::from_secs(60);

/// The event that ended a wait early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// A signal asked the launcher to exit.
    Told,
    /// Files of the team changed.
    Changed,
}

/// Returns whether a spawner may still wait for a member in this state to come up.
pub(super) fn is_awaited(state: MemberState) -> bool {
    !state.is_up() && !state.is_over()
}

/// Blocks while the spawner is `awaited`: until a signal arrives, the record is gone or has
/// advanced, or the linger time has passed.
pub(super) fn hold(run: &Run, awaited: bool) {
    if !awaited || run.linger.is_zero() {
        return;
    }
    let (sender, woken) = channel();
    let told = sender.clone();
    // The signal thread and the watch are optional: the deadline and the poll end the wait too.
    let _ = thread::Builder::new().name("signals".to_owned()).spawn(move || listen(&told));
    let changed = sender.clone();
    let _watch = run.team.watch(move |_| {
        let _ = changed.send(Woken::Changed);
    });
    let deadline = Deadline::after(run.linger);
    while !deadline.expired() && still_awaited(run) {
        if woken.recv_timeout(deadline.remaining().min(GLANCE)) == Ok(Woken::Told) {
            return;
        }
    }
    // Keeps the channel connected: `recv_timeout` on a disconnected one returns at once.
    drop(sender);
}

fn still_awaited(run: &Run) -> bool {
    // An unreadable record counts as gone.
    let record = run.team.member_record(&run.member).ok().flatten();
    record.is_some_and(|record| record.is(&run.incarnation) && is_awaited(record.state))
}

fn listen(told: &Sender<Woken>) {
    loop {
        if let Some(HUP | INT | QUIT | TERM) = Supervisor::next_signal(LISTEN) {
            // Fails only after `hold` has returned.
            let _ = told.send(Woken::Told);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_09_the_screen_is_held_only_before_the_member_is_up() {
        use MemberState::{
            Completed, Disappeared, Failed, Idle, Killed, Pending, ShutdownRequested, Starting,
            Working,
        };
        assert!([Pending, Starting].into_iter().all(is_awaited));
        let after = [Working, Idle, ShutdownRequested, Completed, Failed, Killed, Disappeared];
        assert!(!after.into_iter().any(is_awaited));
    }
}
