//! Keeps the files of a team in the shared store up to date while a program runs that uses them.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::program::LaunchProblem;
use super::run::LauncherRun;
use model::topic::Topic;
use store::{DatabaseError, FileBridge, StoreError, TeamStore, TeamWatch};
use sys::clock::{Deadline, sleep};
use sys::proc::{self, Process};
use sys::signal::TERM;

/// Time to wait for the files of the team before the program starts.
const FIRST_COPY: Duration = Duration::from_secs(30);
/// Pause between looks for these files.
const LOOK: Duration = Duration::from_millis(10);
/// Time after which a failed copy is repeated, and after which a launcher tries to take over from
/// one that has ended.
const RETRY: Duration = Duration::from_secs(1);

/// The thread that copies. The launchers of a host take turns: one copies for all.
pub(super) struct BridgeThread {
    events: Sender<BridgeEvent>,
    thread: JoinHandle<()>,
}

enum BridgeEvent {
    Changed(Topic),
    /// The program has ended.
    Stop,
}

/// Whether to go on.
enum BridgeState {
    Running,
    /// The team is gone, or the run was declared lost.
    Over,
}

impl BridgeThread {
    /// Starts the thread, and waits until the program will find its team; `None` if the program
    /// does not use the files.
    ///
    /// # Errors
    ///
    /// The files do not appear in time, since the shared store cannot be reached or the disk cannot
    /// be written.
    pub(super) fn start(run: &LauncherRun) -> Result<Option<BridgeThread>, LaunchProblem> {
        if !run.uses_files {
            return Ok(None);
        }
        let (events, received) = channel();
        let (team, sender) = (run.team.clone(), events.clone());
        let thread = thread::spawn(move || copy_until_stopped(&team, &sender, &received));
        let deadline = Deadline::after(FIRST_COPY);
        while !run.team.is_in_files(&run.member) {
            if deadline.expired() {
                let problem = "the team could not be copied from the shared store to this host";
                return Err(LaunchProblem::not_runnable(problem.to_owned()));
            }
            sleep(LOOK);
        }
        Ok(Some(BridgeThread { events, thread }))
    }

    /// Copies what the program has written last, and ends the thread.
    pub(super) fn finish(self) {
        // Fails only if the thread has ended.
        let _ = self.events.send(BridgeEvent::Stop);
        let _ = self.thread.join();
    }
}

fn copy_until_stopped(
    team: &TeamStore,
    sender: &Sender<BridgeEvent>,
    events: &Receiver<BridgeEvent>,
) {
    let (mut watches, mut bridge) = (None, None);
    let mut changed = BTreeSet::new();
    loop {
        if watches.is_none() {
            watches = watch(team, sender).ok();
        }
        if bridge.is_none() {
            bridge = team.take_bridge().ok().flatten();
            changed = BTreeSet::from([Topic::Everything]);
        }
        let started = Deadline::after(RETRY);
        if let Some(bridge) = &mut bridge
            && !changed.is_empty()
            && let BridgeState::Over = copy(bridge, &mut changed)
        {
            return;
        }
        // Copying takes at most half of the time.
        sleep(started.elapsed());
        match next(events, &mut changed) {
            BridgeState::Running => {}
            BridgeState::Over => break,
        }
    }
    copy_at_end(team, bridge);
}

/// Copies once more. Another launcher that ends at the same time relies on the holder of the bridge
/// to copy what its program wrote, so the holder copies again after it has given the bridge up.
fn copy_at_end(team: &TeamStore, mut bridge: Option<FileBridge>) {
    for _ in 0..2 {
        let held = bridge.take().or_else(|| team.take_bridge().ok().flatten());
        let Some(mut held) = held else { return };
        copy(&mut held, &mut BTreeSet::from([Topic::Everything]));
    }
}

/// Waits for the next changes and adds them to `changed`.
fn next(events: &Receiver<BridgeEvent>, changed: &mut BTreeSet<Topic>) -> BridgeState {
    let first = match events.recv_timeout(RETRY) {
        Ok(event) => Some(event),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => return BridgeState::Over,
    };
    for event in first.into_iter().chain(events.try_iter()) {
        match event {
            BridgeEvent::Changed(topic) => drop(changed.insert(topic)),
            BridgeEvent::Stop => return BridgeState::Over,
        }
    }
    BridgeState::Running
}

/// Copies the changed parts, and clears `changed` if that succeeds.
fn copy(bridge: &mut FileBridge, changed: &mut BTreeSet<Topic>) -> BridgeState {
    match bridge.copy(changed) {
        Ok(()) => changed.clear(),
        Err(StoreError::Database(DatabaseError::Fenced { .. })) => {
            // The host was declared lost: the program must not go on with work of others.
            proc::signal(Process::current(), TERM);
            return BridgeState::Over;
        }
        Err(StoreError::NoSuchTeam { .. })
        | Err(StoreError::Database(DatabaseError::NoSuchTeam { .. })) => return BridgeState::Over,
        Err(StoreError::Database(_)) => {}
        // Best effort: a failed journal write has no other place to be reported.
        Err(e) => drop(bridge.report(format!("cannot copy the team's files: {e}"))),
    }
    BridgeState::Running
}

fn watch(
    team: &TeamStore,
    sender: &Sender<BridgeEvent>,
) -> Result<(TeamWatch, Option<TeamWatch>), StoreError> {
    let report = |sender: &Sender<BridgeEvent>| {
        let sender = sender.clone();
        move |topic| {
            // Fails only while the thread ends.
            let _ = sender.send(BridgeEvent::Changed(topic));
        }
    };
    Ok((team.watch(report(sender))?, team.watch_files(report(sender))?))
}
