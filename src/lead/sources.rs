//! Where the lead's events come from: changes on disk, processes that end, a person's signals, time.

use std::collections::BTreeSet;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::event::Terminated;
use crate::model::id::{Incarnation, MemberName};
use crate::model::placement::ProcessId;
use crate::model::topic::Topic;
use crate::sys::proc::{self, Process};

/// What reaches the driver before it has been looked at.
#[derive(Debug, Clone)]
pub(super) enum Signal {
    Changed(Topic),
    Exited { name: MemberName, incarnation: Incarnation },
    Terminated(Vec<Terminated>),
    Activity { name: MemberName, incarnation: Incarnation, fingerprint: u64 },
    Started { kind: usize, names: Vec<MemberName>, failures: Vec<(MemberName, String)> },
}

/// Reports when the process is gone; at once, if it is gone already.
pub(super) fn watch_exit(
    name: MemberName,
    incarnation: Incarnation,
    process: ProcessId,
    signals: UnboundedSender<Signal>,
) {
    tokio::spawn(async move {
        proc::exited(Process { pid: process.pid, start: process.start }).await;
        // The driver may have ended: then nobody wants to know.
        let _ = signals.send(Signal::Exited { name, incarnation });
    });
}

/// Takes what has piled up behind `first`: changes once each, the rest in order.
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
