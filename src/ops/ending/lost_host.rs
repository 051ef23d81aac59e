//! `host lost`: gives up the members of a host that does not answer. The shared store refuses their
//! calls from then on, so that a host that comes back changes nothing any more.

use serde::Serialize;

use crate::ending::remove::{self, MemberRemoval};
use crate::{Context, OpsError};
use model::id::{HostName, MemberName};
use model::members::lifecycle::Cause;
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;

/// The output of `host lost`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LostHost {
    pub host: HostName,
    /// The members that were given up; their tasks are free again.
    pub members: Vec<MemberName>,
}

/// Gives up all members of `team` on a host.
///
/// # Errors
/// [`OpsError::Usage`] for this host, or a team of files. The members that were reached before an
/// error are given up.
pub fn give_up(ctx: &Context, team: &TeamStore, host: &HostName) -> Result<LostHost, OpsError> {
    let hint = "end members with `phalanx shutdown NAME --force`";
    let refused = |problem: &str| Err(OpsError::usage(problem, hint));
    match team.host() {
        None => return refused("all members of this team are on this machine"),
        // Unless another machine has its name: one that this machine replaces.
        Some(here) if here.clashes_with(host) && !team.is_host_elsewhere(host)? => {
            return refused("this machine is that host");
        }
        Some(_) => {}
    }
    let is_there = |record: &MemberRecord| {
        !record.state.is_over() && record.other_host().is_some_and(|on| on.clashes_with(host))
    };
    let records: Vec<MemberRecord> = team.member_records()?.into_iter().filter(is_there).collect();
    let mut lost = Vec::new();
    for record in &records {
        // First of all: a process there may be about to change something.
        team.fence(&record.incarnation)?;
        let reason = format!("host {host} was declared lost");
        lost.push(MemberRemoval::of(record, Cause::Vanished, reason));
    }
    let members: Vec<MemberName> = records.into_iter().map(|record| record.name).collect();
    let note = Note::of(EventKind::HostLost).with("host", host.as_str());
    team.record(note.with("members", members.iter().map(MemberName::as_str).collect::<Vec<_>>()))?;
    remove::remove(ctx, team, &lost)?;
    team.forget_host(host)?;
    Ok(LostHost { host: host.clone(), members })
}
