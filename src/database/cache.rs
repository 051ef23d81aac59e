//! Replies to `document` and `documents`, kept while the connection is subscribed to their team.
//!
//! A reply is kept only if no change of the team was seen between its request and its arrival. The
//! server sends a notification after the replies that do not show the change yet, so a stale reply
//! is either not kept, or removed by the notification.

use std::collections::HashMap;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sys::clock::Deadline;

const MOST_ENTRIES: usize = 4096;
const MOST_BYTES: usize = 32 << 20;
/// Larger replies are not kept.
const LARGEST: usize = 4 << 20;

/// The arguments of a call that can be answered from the cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub(super) struct DocumentCall {
    pub(super) team: String,
    kind: String,
    /// `None` for all documents of the kind.
    #[serde(default)]
    key: Option<String>,
}

impl DocumentCall {
    /// Returns the call if it can be answered from the cache.
    pub(super) fn read(function: &str, arguments: &str) -> Option<DocumentCall> {
        let reads = matches!(function, "document" | "documents");
        reads.then(|| serde_json::from_str(arguments).ok()).flatten()
    }
}

/// A document in a reply, without its content.
#[derive(Debug, Clone, Deserialize)]
struct CachedDocument {
    key: Box<RawValue>,
    version: i64,
    body: Box<RawValue>,
    age_ms: u64,
}

impl CachedDocument {
    /// Returns the document as the database would send it now.
    fn shown(&self, later: u64) -> String {
        let (key, version, body) = (&self.key, self.version, &self.body);
        let age = self.age_ms + later;
        format!(r#"{{"key":{key},"version":{version},"body":{body},"age_ms":{age}}}"#)
    }
}

#[derive(Debug)]
struct CachedReply {
    documents: Vec<CachedDocument>,
    ticket: Ticket,
    bytes: usize,
}

/// The state of a team before a request, to be compared on arrival of the reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticket {
    changes: u64,
    /// Grows with each ticket, as requests are sent in this order.
    number: u64,
    since: Deadline,
}

#[derive(Debug, Default)]
struct TeamCache {
    /// Counts changes.
    changes: u64,
    replies: HashMap<DocumentCall, CachedReply>,
}

/// The replies of all teams that the connection is subscribed to.
#[derive(Debug, Default)]
pub(super) struct DocumentCache {
    teams: HashMap<String, TeamCache>,
    entries: usize,
    bytes: usize,
    /// Carried over when a team is forgotten, so that old tickets stay invalid.
    changes: u64,
    last_ticket: u64,
}

impl DocumentCache {
    /// Returns true if replies of the team are kept.
    pub(super) fn covers(&self, team: &str) -> bool {
        self.teams.contains_key(team)
    }

    /// Keeps replies of the team from now on: the connection is subscribed to it.
    pub(super) fn cover(&mut self, team: &str) {
        self.changes += 1;
        let changes = self.changes << 32;
        self.teams
            .entry(team.to_owned())
            .or_insert_with(|| TeamCache { changes, replies: HashMap::new() });
    }

    /// Forgets everything: the connection is lost.
    pub(super) fn clear(&mut self) {
        let (changes, last_ticket) = (self.changes, self.last_ticket);
        *self = DocumentCache { changes, last_ticket, ..DocumentCache::default() };
    }

    /// Returns a reply.
    pub(super) fn get(&self, call: &DocumentCall) -> Option<String> {
        let reply = self.teams.get(&call.team)?.replies.get(call)?;
        let later = u64::try_from(reply.ticket.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut shown = reply.documents.iter().map(|document| document.shown(later));
        Some(match call.key {
            Some(_) => shown.next().unwrap_or_else(|| "null".to_owned()),
            None => format!("[{}]", shown.collect::<Vec<_>>().join(",")),
        })
    }

    /// Must be called before the request is sent. `None` if replies of the team are not kept.
    pub(super) fn ticket(&mut self, team: &str) -> Option<Ticket> {
        let changes = self.teams.get(team)?.changes;
        self.last_ticket += 1;
        Some(Ticket { changes, number: self.last_ticket, since: Deadline::after(Duration::ZERO) })
    }

    /// Keeps a reply, unless the team has changed since the ticket was issued.
    pub(super) fn put(&mut self, call: DocumentCall, ticket: Ticket, reply: &str) {
        let bytes = reply.len();
        if self.teams.get(&call.team).is_none_or(|team| team.changes != ticket.changes) {
            return;
        }
        let documents = match &call.key {
            Some(_) => serde_json::from_str::<Option<CachedDocument>>(reply).map(Vec::from_iter),
            None => serde_json::from_str(reply),
        };
        let Ok(documents) = documents else { return };
        if bytes > LARGEST {
            return;
        }
        if self.entries >= MOST_ENTRIES || self.bytes + bytes > MOST_BYTES {
            // Rare, and a reply costs one round trip.
            self.teams.values_mut().for_each(|team| team.replies.clear());
            (self.entries, self.bytes) = (0, 0);
        }
        let Some(team) = self.teams.get_mut(&call.team) else { return };
        // A reply to a later request may show a change whose notification is still to come.
        if team.replies.get(&call).is_some_and(|kept| kept.ticket.number > ticket.number) {
            return;
        }
        let before = team.replies.insert(call, CachedReply { documents, ticket, bytes });
        self.entries += 1;
        self.bytes += bytes;
        self.subtract(before.as_slice());
    }

    /// Removes the replies that show a document, after a change of it.
    pub(super) fn changed(&mut self, team: &str, kind: &str, key: &str) {
        self.remove(team, |call| {
            call.kind == kind && call.key.as_deref().is_none_or(|cached| cached == key)
        });
    }

    /// Removes all replies of a team.
    pub(super) fn changed_entirely(&mut self, team: &str) {
        self.remove(team, |_| true);
    }

    fn remove(&mut self, team: &str, is_stale: impl Fn(&DocumentCall) -> bool) {
        let Some(team) = self.teams.get_mut(team) else { return };
        team.changes += 1;
        let removed: Vec<CachedReply> =
            team.replies.extract_if(|call, _| is_stale(call)).map(|(_, reply)| reply).collect();
        self.subtract(&removed);
    }

    fn subtract(&mut self, removed: &[CachedReply]) {
        self.entries -= removed.len();
        self.bytes -= removed.iter().map(|reply| reply.bytes).sum::<usize>();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = r#"{"key" : "ann", "version" : 7, "body" : "{\"a\": 1}", "age_ms" : 5}"#;

    fn call(arguments: &str) -> DocumentCall {
        DocumentCall::read("document", arguments).expect("valid")
    }

    fn ann() -> DocumentCall {
        call(r#"{"actor":{},"team":"t","kind":"member","key":"ann"}"#)
    }

    fn all() -> DocumentCall {
        call(r#"{"actor":{},"team":"t","kind":"member"}"#)
    }

    fn filled() -> DocumentCache {
        let mut cache = DocumentCache::default();
        cache.cover("t");
        let ticket = cache.ticket("t").expect("covered");
        cache.put(ann(), ticket, ONE);
        cache.put(all(), ticket, &format!("[{ONE}]"));
        cache
    }

    #[test]
    fn reply_is_returned_as_the_database_sent_it() {
        let cache = filled();
        let shown: serde_json::Value =
            serde_json::from_str(&cache.get(&ann()).expect("kept")).unwrap();
        assert_eq!((&shown["version"], &shown["body"]), (&7.into(), &"{\"a\": 1}".into()));
        assert!(shown["age_ms"].as_u64() >= Some(5));
        assert!(cache.get(&all()).expect("kept").starts_with("[{"));
    }

    #[test]
    fn missing_document_is_cached_too() {
        let mut cache = filled();
        let zoe = call(r#"{"team":"t","kind":"member","key":"zoe"}"#);
        let ticket = cache.ticket("t").expect("covered");
        cache.put(zoe.clone(), ticket, "null");
        assert_eq!(cache.get(&zoe).as_deref(), Some("null"));
    }

    #[test]
    fn change_removes_the_replies_that_show_the_document() {
        let mut cache = filled();
        cache.changed("t", "member", "bob");
        assert!(cache.get(&ann()).is_some() && cache.get(&all()).is_none());
        cache.changed("t", "member", "ann");
        assert!(cache.get(&ann()).is_none());
        assert_eq!((cache.entries, cache.bytes), (0, 0));
    }

    #[test]
    fn reply_that_a_change_has_overtaken_is_not_kept() {
        let mut cache = filled();
        let ticket = cache.ticket("t").expect("covered");
        cache.changed_entirely("t");
        cache.put(ann(), ticket, ONE);
        assert!(cache.get(&ann()).is_none());
        let ticket = cache.ticket("t").expect("covered");
        cache.clear();
        assert!(cache.ticket("t").is_none());
        cache.cover("t");
        cache.put(ann(), ticket, ONE);
        assert!(cache.get(&ann()).is_none(), "the ticket is from before the loss");
    }

    #[test]
    fn reply_to_a_later_request_is_not_replaced_by_an_earlier_one() {
        let mut cache = filled();
        let (earlier, later) = (cache.ticket("t").unwrap(), cache.ticket("t").unwrap());
        cache.put(ann(), later, &ONE.replace('7', "9"));
        cache.put(ann(), earlier, &ONE.replace('7', "8"));
        assert!(cache.get(&ann()).expect("kept").contains(r#""version":9"#));
    }

    #[test]
    fn entries_and_bytes_are_bounded() {
        let mut cache = filled();
        let ticket = cache.ticket("t").expect("covered");
        for n in 0..3 * MOST_ENTRIES {
            cache.put(call(&format!(r#"{{"team":"t","kind":"member","key":"{n}"}}"#)), ticket, ONE);
        }
        assert!(cache.entries <= MOST_ENTRIES);
        let large = ONE.replace(": 1", &"x".repeat(LARGEST - 200));
        for n in 0..20 {
            cache.put(
                call(&format!(r#"{{"team":"t","kind":"member","key":"{n}"}}"#)),
                ticket,
                &large,
            );
        }
        assert!(cache.bytes <= MOST_BYTES && cache.bytes > 0);
    }
}
