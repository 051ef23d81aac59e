//! Nouns for tests, with nothing in them but what a test is about.

use super::id::{Incarnation, MemberName, RequestId};
use super::lifecycle::MemberState;
use super::placement::BackendKind;
use super::record::{FORMAT, MemberRecord, Wish};
use super::request::{Parting, ShutdownRequest};
use super::time::Timestamp;

/// The `n`th of all runs.
pub(crate) fn run(n: u64) -> Incarnation {
    Incarnation::parse(&format!("00000000-0000-4000-8000-{n:012}")).expect("uuid")
}

/// A run that was asked for, and that nothing is known of yet.
pub(crate) fn record(
    name: &str,
    incarnation: Incarnation,
    profile: &str,
    at: Timestamp,
) -> MemberRecord {
    MemberRecord {
        format: FORMAT,
        name: MemberName::new(name).expect("name"),
        incarnation,
        token: "t".to_owned(),
        nonce: String::new(),
        state: MemberState::Starting,
        reason: None,
        state_since: at,
        backend: BackendKind::Pty,
        wish: Wish {
            profile: profile.to_owned(),
            reads_mail: None,
            native: None,
            role: None,
            model: None,
            mode: None,
            plan: false,
            prompt: None,
            task: None,
            tools: Default::default(),
            argv: Vec::new(),
            cwd: "/".to_owned(),
            color: "blue".to_owned(),
            env: Vec::new(),
        },
        spawner: None,
        asked_at: at,
        placement: None,
        start: None,
        ready_at: None,
        exit: None,
        unresponsive: None,
        reminded: None,
        session: None,
        boot_id: None,
    }
}

/// A shutdown that was asked of a run, and that nobody has answered.
pub(crate) fn shutdown(
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
        parting: Parting::default(),
        cwd: None,
        deviations: None,
    }
}
