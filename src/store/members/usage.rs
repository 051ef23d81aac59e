//! The usage of a member and the usage limit that it has reached, in its record.

use crate::error::StoreError;
use crate::team::TeamStore;
use crate::team::journal::now;
use model::id::{Incarnation, MemberName};
use model::members::rate_limit::{LimitHit, RateLimit};
use model::members::usage::MemberUsage;
use model::team::event::{EventKind, Note};

impl TeamStore {
    /// Replaces the recorded usage. A later run of the name is left alone.
    pub fn record_usage(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
        usage: &MemberUsage,
    ) -> Result<(), StoreError> {
        self.change_record(name, incarnation, |record| record.usage = Some(usage.clone()))?;
        Ok(())
    }

    /// Records and journals that the account of the program has reached its usage limit; `None`:
    /// that it has answered again. A later run of the name is left alone.
    pub fn record_limit(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
        hit: Option<&LimitHit>,
    ) -> Result<(), StoreError> {
        let at = now();
        let changed = self.change_record(name, incarnation, |record| {
            let before = record.rate_limit.take();
            record.rate_limit = hit.map(|hit| RateLimit::after(before.as_ref(), hit, at));
            (record.state, before.is_some())
        })?;
        let Some((state, was_limited)) = changed.filter(|(_, was)| *was || hit.is_some()) else {
            return Ok(());
        };
        let state = state.as_str();
        let (next, before) = match (hit, was_limited) {
            (Some(_), true) => ("limited", "limited"),
            (Some(_), false) => ("limited", state),
            (None, _) => (state, "limited"),
        };
        let note = Note::of(EventKind::MemberHealth).member(name);
        let note = note.with("state", next).with("prev_state", before);
        let note = note.with_some("reason", hit.map(|hit| hit.said.as_str()));
        let until = hit.and_then(|hit| hit.until);
        self.record(note.with_some("until", until.map(|until| until.iso())))?;
        Ok(())
    }
}
