//! Minimal domain values for tests.

use crate::decisions::request::{ShutdownRequest, WorkLeft};
use crate::id::{Incarnation, MemberName, RequestId};
use crate::members::lifecycle::MemberState;
use crate::members::placement::BackendKind;
use crate::members::readiness::Readiness;
use crate::members::record::{FORMAT, LaunchRequest, MemberRecord};
use crate::time::Timestamp;

/// Returns a distinct incarnation for each `n`.
pub fn run(n: u64) -> Incarnation {
    Incarnation::parse(&format!("00000000-0000-4000-8000-{n:012}")).expect("uuid")
}

/// Returns the record of a starting run without placement, start or exit.
pub fn record(name: &str, incarnation: Incarnation, profile: &str, at: Timestamp) -> MemberRecord {
    MemberRecord {
        format: FORMAT,
        name: MemberName::new(name).expect("name"),
        incarnation,
        index: None,
        token: "t".to_owned(),
        nonce: String::new(),
        state: MemberState::Starting,
        reason: None,
        state_since: at,
        backend: BackendKind::Pty,
        request: LaunchRequest {
            profile: profile.to_owned(),
            cwd: "/".to_owned(),
            color: "blue".to_owned(),
            ..LaunchRequest::default()
        },
        spawner: None,
        asked_at: at,
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
        boot_id: None,
        host: None,
        machine: None,
        is_elsewhere: false,
    }
}

/// Returns an open shutdown request.
pub fn shutdown(
    id: RequestId,
    member: &str,
    incarnation: Incarnation,
    asked_at: Timestamp,
    deadline_at: Timestamp,
) -> ShutdownRequest {
    ShutdownRequest {
        format: 1,
        id,
        member: MemberName::new(member).expect("name"),
        incarnation,
        reason: None,
        asked_at,
        deadline_at,
        force: false,
        outcome: None,
        answer: None,
        ended_at: None,
        event: None,
        agreed_at: None,
        work_left: WorkLeft::default(),
        cwd: None,
        deviations: None,
    }
}
