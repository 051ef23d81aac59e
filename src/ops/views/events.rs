//! `events`: the journal, once or followed.

use crate::OpsError;
use model::id::MemberName;
use model::team::event::{Event, Note};
use model::topic::Topic;
use store::{TeamStore, TeamWatch};
use sys::watch::PollingReason;

/// Returns the warning that is shown once if a team is polled.
pub fn polling_notice(reason: PollingReason) -> &'static str {
    match reason {
        PollingReason::NetworkFiles => {
            "the team is on a network file system: phalanx polls for changes every 2 s instead of being told"
        }
        PollingReason::LimitReached => {
            "the system's limit of watches for file changes is reached: phalanx polls every 2 s instead of being told"
        }
    }
}

/// Calls `on_change` for every change of the team's files until the watch is dropped.
pub fn watch(
    team: &TeamStore,
    on_change: impl Fn(Topic) + Send + 'static,
) -> Result<TeamWatch, OpsError> {
    Ok(team.watch(on_change)?)
}

/// Like [`watch`], for changes that may concern this teammate only.
pub fn watch_as(
    team: &TeamStore,
    name: &MemberName,
    on_change: impl Fn(Topic) + Send + 'static,
) -> Result<TeamWatch, OpsError> {
    Ok(team.watch_as(name, on_change)?)
}

/// Appends an event that nothing depends on to the journal. See [`TeamStore::record_unconfirmed`].
pub fn note_unconfirmed(team: &TeamStore, note: Note) {
    team.record_unconfirmed(note);
}

/// Appends one event to the journal.
pub fn append(team: &TeamStore, note: Note) -> Result<Event, OpsError> {
    Ok(team.record(note)?)
}
