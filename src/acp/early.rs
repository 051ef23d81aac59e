//! Updates that arrive before the agent has named its session. gemini and copilot send some before
//! they answer `session/new`.

use serde_json::value::RawValue;

/// Limits of what is kept, in updates and in bytes.
const MOST_UPDATES: usize = 1000;
const MOST_BYTES: usize = 16 << 20;

#[derive(Debug, Default)]
pub(crate) struct EarlyUpdates {
    updates: Vec<(String, Box<RawValue>)>,
    bytes: usize,
}

impl EarlyUpdates {
    /// Keeps an update. Returns false if there are too many.
    pub(crate) fn add(&mut self, session: &str, update: &RawValue) -> bool {
        let bytes = self.bytes + update.get().len();
        if self.updates.len() >= MOST_UPDATES || bytes > MOST_BYTES {
            return false;
        }
        self.bytes = bytes;
        self.updates.push((session.to_owned(), update.to_owned()));
        true
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.updates.is_empty()
    }

    /// Removes all updates, and returns those of a session.
    pub(crate) fn take(&mut self, session: &str) -> Vec<Box<RawValue>> {
        let updates = std::mem::take(self).updates.into_iter();
        updates.filter(|(of, _)| of == session).map(|(_, update)| update).collect()
    }
}
