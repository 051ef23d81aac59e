//! Where a worker's events come from: changes on disk, its command's end, signals, time.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::event::Event;
use crate::model::id::TaskId;
use crate::model::task::Outcome;
use crate::model::topic::Topic;
use crate::sys::signal::{Signal, Signals};

/// What reaches the driver before it has been looked at.
#[derive(Debug)]
pub(super) enum Wake {
    Changed(Topic),
    CommandEnded {
        task: TaskId,
        outcome: Outcome,
    },
    /// What came of a task's completion, about which hooks were asked.
    Completed(Box<Event>),
    Signal(Signal),
}

/// From now on the signals that ask this process to end come as wakes. Where they cannot be caught they end it as
/// they end any program.
pub(super) fn hear_signals(wakes: UnboundedSender<Wake>) {
    let Ok(mut signals) = Signals::new() else { return };
    tokio::spawn(async move { while wakes.send(Wake::Signal(signals.recv().await)).is_ok() {} });
}

/// How long to listen for our own end when our command was ended by a signal.
const OWN_END: Duration = Duration::from_millis(200);

/// Whoever ends us ends what we run too, and word of the command can come first. A signal that follows at once is put
/// before it: then the task is given back, and not taken for failed.
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

/// Takes what has piled up behind `first`: changes once each, the rest in order.
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
