//! Inputs of the lead besides changes on disk: processes that exit, and results of background
//! work.

use super::event::StoppedRun;
use event_loop::Inputs;
use model::id::{Incarnation, MemberName};
use model::members::placement::ProcessId;
use sys::proc::{self, Process};

/// An input that the driver turns into an event.
#[derive(Debug, Clone)]
pub(super) enum LeadInput {
    Exited { name: MemberName, incarnation: Incarnation },
    RunsStopped(Vec<StoppedRun>),
    Activity { name: MemberName, incarnation: Incarnation, fingerprint: u64 },
    Started { kind: usize, names: Vec<MemberName>, failures: Vec<(MemberName, String)> },
}

/// Reports the exit of the process, at once if it has already exited.
pub(super) fn watch_exit(
    name: MemberName,
    incarnation: Incarnation,
    process: ProcessId,
    inputs: Inputs<LeadInput>,
) {
    tokio::spawn(async move {
        proc::exited(Process { pid: process.pid, start: process.start }).await;
        inputs.send(LeadInput::Exited { name, incarnation });
    });
}
