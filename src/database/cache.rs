//! Replies to `document` and `documents`, kept while the connection is subscribed to their team.
//!
//! A reply is kept only if no change of the team was seen between its request and its arrival. The
//! server sends a notification after the replies that do not show the change yet, so a stale reply
//! is either not kept, or removed by the notification. Replies arrive in the order of their
//! requests and are handled on one thread, so that an earlier one never replaces a later one.

use std::collections::HashMap;

use serde::Deserialize;

const MAX_BYTES: usize = 32 << 20;
/// Larger replies are not kept.
const MAX_REPLY_BYTES: usize = 4 << 20;
/// Estimated cost of a reply besides its text.
const ENTRY_BYTES: usize = 512;

/// The arguments of a call that reads or writes documents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct DocumentCall {
    pub(super) team: String,
    /// `None` for all documents of the team.
    pub(super) kind: Option<String>,
    /// `None` for all documents of the kind.
    pub(super) key: Option<String>,
}

#[derive(Debug, Default)]
struct TeamCache {
    /// Number of the latest change.
    change: u64,
    replies: HashMap<DocumentCall, String>,
}

/// The replies of all teams that the connection is subscribed to.
#[derive(Debug, Default)]
pub(super) struct DocumentCache {
    teams: HashMap<String, TeamCache>,
    bytes: usize,
    /// Counts the changes of all teams, also of those that were forgotten.
    changes: u64,
}

impl DocumentCache {
    /// Returns true if replies of the team are kept.
    pub(super) fn covers(&self, team: &str) -> bool {
        self.teams.contains_key(team)
    }

    /// Keeps replies of the team from now on: the connection is subscribed to it.
    pub(super) fn cover(&mut self, team: &str) {
        self.changes += 1;
        let change = self.changes;
        let new = || TeamCache { change, replies: HashMap::new() };
        self.teams.entry(team.to_owned()).or_insert_with(new);
    }

    /// Forgets everything: the connection is lost.
    pub(super) fn clear(&mut self) {
        self.teams.clear();
        self.bytes = 0;
    }

    /// Returns a reply.
    pub(super) fn get(&self, call: &DocumentCall) -> Option<String> {
        self.teams.get(&call.team)?.replies.get(call).cloned()
    }

    /// Returns the latest change of a team, which [`DocumentCache::put`] compares. Must be called
    /// before the request is sent. `None` if replies of the team are not kept.
    pub(super) fn latest_change(&self, team: &str) -> Option<u64> {
        Some(self.teams.get(team)?.change)
    }

    /// Keeps a reply, unless the team has changed since `change`.
    pub(super) fn put(&mut self, call: DocumentCall, change: u64, reply: &str) {
        if self.latest_change(&call.team) != Some(change) || reply.len() > MAX_REPLY_BYTES {
            return;
        }
        if self.bytes + cost(reply) > MAX_BYTES {
            // Rare, and a reply costs one round trip.
            self.teams.values_mut().for_each(|team| team.replies.clear());
            self.bytes = 0;
        }
        let Some(team) = self.teams.get_mut(&call.team) else { return };
        let before = team.replies.insert(call, reply.to_owned());
        self.bytes += cost(reply);
        self.bytes -= before.as_deref().map_or(0, cost);
    }

    /// Removes the replies that show a document, or any document of the kind or team, after a
    /// change of it.
    pub(super) fn remove(&mut self, changed: &DocumentCall) {
        self.changes += 1;
        let Some(team) = self.teams.get_mut(&changed.team) else { return };
        team.change = self.changes;
        let overlap = |a: &Option<String>, b: &Option<String>| a.is_none() || b.is_none() || a == b;
        let stale = team.replies.extract_if(|call, _| {
            overlap(&call.kind, &changed.kind) && overlap(&call.key, &changed.key)
        });
        self.bytes -= stale.map(|(_, reply)| cost(&reply)).sum::<usize>();
    }
}

fn cost(reply: &str) -> usize {
    reply.len() + ENTRY_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"key":"ann","version":7,"body":"{\"a\": 1}"}"#;

    fn call(kind: Option<&str>, key: Option<&str>) -> DocumentCall {
        let (kind, key) = (kind.map(str::to_owned), key.map(str::to_owned));
        DocumentCall { team: "t".to_owned(), kind, key }
    }

    fn member(name: &str) -> DocumentCall {
        call(Some("member"), Some(name))
    }

    fn filled() -> DocumentCache {
        let mut cache = DocumentCache::default();
        cache.cover("t");
        let change = cache.latest_change("t").expect("covered");
        cache.put(member("ann"), change, ONE);
        cache.put(call(Some("member"), None), change, &format!("[{ONE}]"));
        cache
    }

    #[test]
    fn arguments_name_the_documents() {
        let read = |text: &str| serde_json::from_str::<DocumentCall>(text).expect("valid");
        assert_eq!(read(r#"{"actor":{},"team":"t","kind":"member","key":"ann"}"#), member("ann"));
        assert_eq!(read(r#"{"team":"t","write":"w"}"#), call(None, None));
    }

    #[test]
    fn reply_is_returned_as_the_database_sent_it() {
        let cache = filled();
        assert_eq!(cache.get(&member("ann")).as_deref(), Some(ONE));
        assert_eq!(cache.get(&call(Some("member"), None)), Some(format!("[{ONE}]")));
        assert_eq!(cache.get(&member("zoe")), None);
    }

    #[test]
    fn change_removes_the_replies_that_show_the_document() {
        let mut cache = filled();
        cache.remove(&member("bob"));
        assert!(cache.get(&member("ann")).is_some());
        assert!(cache.get(&call(Some("member"), None)).is_none());
        cache.remove(&call(Some("request"), Some("ann")));
        assert!(cache.get(&member("ann")).is_some());
        cache.remove(&member("ann"));
        assert!(cache.get(&member("ann")).is_none());
        assert_eq!(cache.bytes, 0);
    }

    #[test]
    fn reply_that_a_change_has_overtaken_is_not_kept() {
        let mut cache = filled();
        let change = cache.latest_change("t").expect("covered");
        cache.remove(&call(None, None));
        cache.put(member("ann"), change, ONE);
        assert!(cache.get(&member("ann")).is_none());
        let change = cache.latest_change("t").expect("covered");
        cache.clear();
        assert!(cache.latest_change("t").is_none());
        cache.cover("t");
        cache.put(member("ann"), change, ONE);
        assert!(cache.get(&member("ann")).is_none(), "the request is from before the loss");
    }

    #[test]
    fn bytes_are_bounded() {
        let mut cache = filled();
        let change = cache.latest_change("t").expect("covered");
        for n in 0..100_000 {
            cache.put(member(&n.to_string()), change, "null");
        }
        assert!(cache.teams["t"].replies.len() * ENTRY_BYTES <= MAX_BYTES);
        let large = "x".repeat(MAX_REPLY_BYTES);
        for n in 0..20 {
            cache.put(member(&n.to_string()), change, &large);
        }
        assert!(cache.bytes <= MAX_BYTES && cache.bytes > MAX_REPLY_BYTES);
        let kept = cache.bytes;
        cache.put(member("larger"), change, &format!("{large}x"));
        assert_eq!(cache.bytes, kept);
    }
}
