//! Holds the terminal of a program that was never up until its spawner has looked at the screen (SP-09): a pane whose
//! launcher ends is gone, and its last words with it.

use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use super::run::Run;
use crate::model::lifecycle::MemberState;
use crate::sys::child::Supervisor;
use crate::sys::clock::Deadline;
use crate::sys::signal::{HUP, INT, QUIT, TERM};

/// The record is looked at this often although its changes are told: they may be told late or never.
const GLANCE: Duration = Duration::from_millis(250);
/// How long one wait for a signal lasts; the next one follows.
const LISTEN: Duration = Duration::from_secs(60);

/// What ends a wait before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    /// Somebody wants us to end.
    Told,
    /// Something about the team has changed.
    Changed,
}

/// Whether a spawner may still be waiting for a proof from a member in this state.
pub(super) fn is_awaited(state: MemberState) -> bool {
    !state.is_up() && !state.is_over()
}

/// Waits while the spawner is `awaited`: until we are told to end, the record has gone or moved on, or the time is up.
pub(super) fn hold(run: &Run, awaited: bool) {
    if !awaited || run.linger.is_zero() {
        return;
    }
    let (sender, woken) = channel();
    let told = sender.clone();
    // Without one or the other the wait still ends by itself.
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
    // Lives until here: a channel without senders would not wait.
    drop(sender);
}

fn still_awaited(run: &Run) -> bool {
    // A record that cannot be read has gone as far as a spawner is concerned.
    let record = run.team.member_record(&run.member).ok().flatten();
    record.is_some_and(|record| record.is(&run.incarnation) && is_awaited(record.state))
}

fn listen(told: &Sender<Woken>) {
    loop {
        if let Some(HUP | INT | QUIT | TERM) = Supervisor::next_signal(LISTEN) {
            // Fails only when nobody waits any more.
            let _ = told.send(Woken::Told);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sp_09_only_before_the_proof_is_a_screen_held() {
        use MemberState::{
            Completed, Disappeared, Failed, Idle, Killed, Pending, ShutdownRequested, Starting,
            Working,
        };
        assert!([Pending, Starting].into_iter().all(is_awaited));
        let after = [Working, Idle, ShutdownRequested, Completed, Failed, Killed, Disappeared];
        assert!(!after.into_iter().any(is_awaited));
    }
}
