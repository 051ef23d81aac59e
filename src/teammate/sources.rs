//! Inputs of a worker besides changes of files: the exit of its command, and signals.

use std::time::Duration;

use tokio::time::timeout;

use super::event::WorkerEvent;
use event_loop::{Batch, InputQueue, Inputs};
use sys::clock::Deadline;
use sys::signal::Signals;

/// Forwards stop signals as inputs. If handlers cannot be installed, the signals keep their
/// default action.
pub(super) fn forward_signals(inputs: Inputs<WorkerEvent>) {
    let Ok(mut signals) = Signals::new() else { return };
    tokio::spawn(async move {
        loop {
            inputs.send(WorkerEvent::Signal(signals.recv().await));
        }
    });
}

/// Time to wait for a signal to this process after the command was ended by one.
const OWN_END: Duration = Duration::from_millis(200);

/// Moves signals before other inputs, and waits briefly for one if a signal ended the command: a
/// process that ends the worker also ends its command, and the command's exit may be reported
/// first. With the signal first, the task is released instead of failed.
pub(super) async fn signals_first(
    (mut topics, mut others): Batch<WorkerEvent>,
    queue: &mut InputQueue<WorkerEvent>,
) -> Batch<WorkerEvent> {
    let by_signal = |input: &WorkerEvent| matches!(input, WorkerEvent::CommandEnded { outcome, .. } if outcome.signal.is_some());
    let is_signal = |input: &WorkerEvent| matches!(input, WorkerEvent::Signal(_));
    let limit = Deadline::after(OWN_END);
    while others.iter().any(by_signal) && !others.iter().any(is_signal) {
        let Ok(more) = timeout(limit.remaining(), queue.receive()).await else { break };
        topics.extend(more.0);
        others.extend(more.1);
    }
    others.sort_by_key(|input| !is_signal(input));
    (topics, others)
}
