//! The record of a run that begins on this host.

use crate::now;
use model::id::{Incarnation, MemberName};
use model::members::lifecycle::MemberState;
use model::members::placement::BackendKind;
use model::members::readiness::Readiness;
use model::members::record::{FORMAT, LaunchRequest, MemberRecord};
use store::TeamStore;
use sys::{env, rand};

/// Returns the record of a new pending run with its own identity and secrets, and without a
/// spawner, a placement and a start.
pub(crate) fn new_record(
    team: &TeamStore,
    name: MemberName,
    backend: BackendKind,
    request: LaunchRequest,
) -> MemberRecord {
    let asked_at = now();
    MemberRecord {
        format: FORMAT,
        name,
        incarnation: Incarnation::parse(&rand::uuid()).expect("a fresh uuid has the form of one"),
        index: None,
        token: rand::token(),
        nonce: rand::token(),
        state: MemberState::Pending,
        reason: None,
        state_since: asked_at,
        backend,
        request,
        spawner: None,
        asked_at,
        placement: None,
        start: None,
        ready_at: None,
        exit: None,
        unresponsive: None,
        prompt: None,
        rate_limit: None,
        usage: None,
        reminded: None,
        session: None,
        earlier_sessions: Vec::new(),
        config_dir: None,
        turn_ended_at: None,
        readiness: Readiness::default(),
        restart: None,
        gave_up_after: None,
        before: None,
        boot_id: Some(env::boot_id()).filter(|boot| !boot.is_empty()),
        host: team.host().cloned(),
        machine: team.machine(),
        is_elsewhere: false,
    }
}
