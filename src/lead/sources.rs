//! Inputs of the lead besides changes on disk: processes that exit, and results of background
//! work.

use super::event::Event;
use event_loop::Inputs;
use model::id::{Incarnation, MemberName};
use model::members::placement::ProcessId;
use sys::proc::{self, Process};

/// An input that the driver turns into an event.
#[derive(Debug, Clone)]
pub(super) enum LeadInput {
    /// The run has exited; its record is read next.
    Exited { name: MemberName, incarnation: Incarnation },
    /// The result of an effect that was carried out on another thread.
    Done(Event),
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
