//! The queue of inputs that the loops of the lead, the worker and the wrapper share. A loop takes
//! all queued inputs at once, or continues without one when its next deadline has passed.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use model::topic::Topic;

/// Interval of full re-reads of the team's files: a change notification can be lost.
pub const SWEEP: Duration = Duration::from_secs(60);
/// Interval of full re-reads if changes cannot be watched.
pub const BLIND_SWEEP: Duration = Duration::from_secs(5);

enum QueuedInput<S> {
    Changed(Topic),
    Source(S),
}

/// All inputs of one turn: each changed topic once, and the other inputs in their order.
pub type Batch<S> = (BTreeSet<Topic>, Vec<S>);

/// The sending half of an [`InputQueue`]. Has no effect once the loop has ended.
pub struct Inputs<S>(UnboundedSender<QueuedInput<S>>);

impl<S> Inputs<S> {
    pub fn send(&self, input: S) {
        let _ = self.0.send(QueuedInput::Source(input));
    }

    pub fn send_change(&self, topic: Topic) {
        let _ = self.0.send(QueuedInput::Changed(topic));
    }
}

impl<S> Clone for Inputs<S> {
    fn clone(&self) -> Inputs<S> {
        Inputs(self.0.clone())
    }
}

/// The inputs of a loop, before they are turned into events: changes of files, and those of type
/// `S`.
pub struct InputQueue<S> {
    inputs: Inputs<S>,
    incoming: UnboundedReceiver<QueuedInput<S>>,
}

impl<S> Default for InputQueue<S> {
    fn default() -> InputQueue<S> {
        let (inputs, incoming) = unbounded_channel();
        InputQueue { inputs: Inputs(inputs), incoming }
    }
}

impl<S> InputQueue<S> {
    /// Returns a sender for a source of inputs.
    pub fn inputs(&self) -> Inputs<S> {
        self.inputs.clone()
    }

    /// Waits for an input and takes all that are queued. Cancel safe.
    pub async fn receive(&mut self) -> Batch<S> {
        let (mut topics, mut others) = (BTreeSet::new(), Vec::new());
        let mut next = self.incoming.recv().await;
        while let Some(input) = next {
            match input {
                QueuedInput::Changed(topic) => drop(topics.insert(topic)),
                QueuedInput::Source(other) => others.push(other),
            }
            next = self.incoming.try_recv().ok();
        }
        (topics, others)
    }
}
