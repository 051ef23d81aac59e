//! Sources of the lead's events: changes on disk, processes that exit, results of background work.

use std::collections::BTreeSet;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::event::Terminated;
use crate::model::id::{Incarnation, MemberName};
use crate::model::placement::ProcessId;
use crate::model::topic::Topic;
use crate::sys::proc::{self, Process};

/// A raw notification that the driver turns into an event.
#[derive(Debug, Clone)]
pub(super) enum Signal {
    Changed(Topic),
    Exited { name: MemberName, incarnation: Incarnation },
    Terminated(Vec<Terminated>),
    Activity { name: MemberName, incarnation: Incarnation, fingerprint: u64 },
    Started { kind: usize, names: Vec<MemberName>, failures: Vec<(MemberName, String)> },
}

/// Reports the exit of the process, at once if it has already exited.
pub(super) fn watch_exit(
    name: MemberName,
    incarnation: Incarnation,
    process: ProcessId,
    signals: UnboundedSender<Signal>,
) {
    tokio::spawn(async move {
        proc::exited(Process { pid: process.pid, start: process.start }).await;
        // The driver may have ended.
        let _ = signals.send(Signal::Exited { name, incarnation });
    });
}

/// Takes all queued signals: changes are deduplicated, the rest keeps its order.
pub(super) fn drain(
    first: Signal,
    receiver: &mut UnboundedReceiver<Signal>,
) -> (BTreeSet<Topic>, Vec<Signal>) {
    let (mut topics, mut others) = (BTreeSet::new(), Vec::new());
    let mut next = Some(first);
    while let Some(signal) = next {
        match signal {
            // All records are read at once.
            Signal::Changed(Topic::Member(_)) => drop(topics.insert(Topic::Members)),
            Signal::Changed(topic) => drop(topics.insert(topic)),
            other @ (Signal::Exited { .. }
            | Signal::Terminated(_)
            | Signal::Activity { .. }
            | Signal::Started { .. }) => others.push(other),
        }
        next = receiver.try_recv().ok();
    }
    (topics, others)
}
