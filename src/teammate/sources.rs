//! Event sources of a worker: file changes, the exit of its command, and signals.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::event::Event;
use crate::model::id::TaskId;
use crate::model::task::Outcome;
use crate::model::topic::Topic;
use crate::sys::signal::{Signal, Signals};

/// A raw input of the driver, before it is turned into an event.
#[derive(Debug)]
pub(super) enum Wake {
    Changed(Topic),
    CommandEnded {
        task: TaskId,
        outcome: Outcome,
    },
    /// The result of a completion that waited for hooks.
    Completed(Box<Event>),
    Signal(Signal),
}

/// Forwards termination signals as wakes. If handlers cannot be installed, the signals keep their
/// default action.
pub(super) fn hear_signals(wakes: UnboundedSender<Wake>) {
    let Ok(mut signals) = Signals::new() else { return };
    tokio::spawn(async move { while wakes.send(Wake::Signal(signals.recv().await)).is_ok() {} });
}

/// Time to wait for a signal to this process after the command was ended by one.
const OWN_END: Duration = Duration::from_millis(200);

/// Moves signals before other wakes, and waits briefly for one if a signal ended the command: a
/// process that ends the worker also ends its command, and the command's exit may be reported
/// first. With the signal first, the task is released instead of failed.
pub(super) async fn hear_own_end_first(
    mut wakes: Vec<Wake>,
    receiver: &mut UnboundedReceiver<Wake>,
) -> Vec<Wake> {
    let by_signal = |wake: &Wake| matches!(wake, Wake::CommandEnded { outcome, .. } if outcome.signal.is_some());
    if wakes.iter().any(by_signal) {
        let limit = tokio::time::sleep(OWN_END);
        tokio::pin!(limit);
        while !wakes.iter().any(|wake| matches!(wake, Wake::Signal(_))) {
            tokio::select! {
                Some(next) = receiver.recv() => wakes.push(next),
                () = &mut limit => break,
            }
        }
    }
    wakes.sort_by_key(|wake| !matches!(wake, Wake::Signal(_)));
    wakes
}

/// Drains the queue behind `first`: each changed topic once, other wakes in order.
pub(super) fn drain(
    first: Wake,
    receiver: &mut UnboundedReceiver<Wake>,
) -> (BTreeSet<Topic>, Vec<Wake>) {
    let (mut topics, mut others) = (BTreeSet::new(), Vec::new());
    let mut next = Some(first);
    while let Some(wake) = next {
        match wake {
            Wake::Changed(topic) => {
                topics.insert(topic);
            }
            other @ (Wake::CommandEnded { .. } | Wake::Completed(_) | Wake::Signal(_)) => {
                others.push(other)
            }
        }
        next = receiver.try_recv().ok();
    }
    (topics, others)
}
