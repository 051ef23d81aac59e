//! Inputs of a worker besides changes of files: the exit of its command, and signals.

use std::time::Duration;

use tokio::time::timeout;

use super::event::WorkerEvent;
use event_loop::{Batch, InputQueue, Inputs};
use model::board::task::CommandOutcome;
use model::id::TaskId;
use sys::clock::Deadline;
use sys::signal::{Signal, Signals};

/// An input that the driver turns into an event.
#[derive(Debug)]
pub(super) enum WorkerInput {
    CommandEnded {
        task: TaskId,
        outcome: CommandOutcome,
    },
    /// The result of a completion that waited for hooks.
    Completed(Box<WorkerEvent>),
    Signal(Signal),
}

/// Forwards stop signals as inputs. If handlers cannot be installed, the signals keep their
/// default action.
pub(super) fn forward_signals(inputs: Inputs<WorkerInput>) {
    let Ok(mut signals) = Signals::new() else { return };
    tokio::spawn(async move {
        loop {
            inputs.send(WorkerInput::Signal(signals.recv().await));
        }
    });
}

/// Time to wait for a signal to this process after the command was ended by one.
const OWN_END: Duration = Duration::from_millis(200);

/// Moves signals before other inputs, and waits briefly for one if a signal ended the command: a
/// process that ends the worker also ends its command, and the command's exit may be reported
/// first. With the signal first, the task is released instead of failed.
pub(super) async fn signals_first(
    (mut topics, mut others): Batch<WorkerInput>,
    queue: &mut InputQueue<WorkerInput>,
) -> Batch<WorkerInput> {
    let by_signal = |input: &WorkerInput| matches!(input, WorkerInput::CommandEnded { outcome, .. } if outcome.signal.is_some());
    let is_signal = |input: &WorkerInput| matches!(input, WorkerInput::Signal(_));
    let limit = Deadline::after(OWN_END);
    while others.iter().any(by_signal) && !others.iter().any(is_signal) {
        let Ok(more) = timeout(limit.remaining(), queue.receive()).await else { break };
        topics.extend(more.0);
        others.extend(more.1);
    }
    others.sort_by_key(|input| !is_signal(input));
    (topics, others)
}
