//! Where a worker's events come from: changes on disk, its command's end, signals, time.

use std::collections::BTreeSet;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::model::id::TaskId;
use crate::model::task::Outcome;
use crate::model::topic::Topic;
use crate::sys::signal::{Signal, Signals};

/// What reaches the driver before it has been looked at.
#[derive(Debug)]
pub(super) enum Wake {
    Changed(Topic),
    CommandEnded { task: TaskId, outcome: Outcome },
    Signal(Signal),
}

/// From now on the signals that ask this process to end come as wakes. Where they cannot be caught they end it as
/// they end any program.
pub(super) fn hear_signals(wakes: UnboundedSender<Wake>) {
    let Ok(mut signals) = Signals::new() else { return };
    tokio::spawn(async move { while wakes.send(Wake::Signal(signals.recv().await)).is_ok() {} });
}

/// Takes what has piled up behind `first`: changes once each, the rest in order.
pub(super) fn drain(first: Wake, receiver: &mut UnboundedReceiver<Wake>) -> (BTreeSet<Topic>, Vec<Wake>) {
    let (mut topics, mut others) = (BTreeSet::new(), Vec::new());
    let mut next = Some(first);
    while let Some(wake) = next {
        match wake {
            Wake::Changed(topic) => {
                topics.insert(topic);
            }
            other @ (Wake::CommandEnded { .. } | Wake::Signal(_)) => others.push(other),
        }
        next = receiver.try_recv().ok();
    }
    (topics, others)
}
