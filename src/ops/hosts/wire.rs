//! The messages between a lead and `phalanx host serve` on another host: one JSON document per
//! line. Both ends are the same release.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::OpsError;
use crate::error::RemoteFailure;
use crate::hosts::log_part::LogRange;
use crate::hosts::stop_mode::StopMode;
use backend::Label;
use model::id::{HostName, Incarnation, MemberName, TeamName};
use model::mail::scope::Scope;
use model::members::environ::EnvRules;
use model::members::input::Input;
use model::members::launch::LaunchSpec;
use model::members::placement::{BackendKind, Layout, Placement};
use model::team::check::TeamCheck;
use model::team::settings::BackendChoice;
use model::team::worktree::Checkout;
use worktree::{CopyTraits, WorktreeState};

/// The release whose messages these are.
pub(crate) const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// The first line of a connection.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostHello {
    /// The release of the lead. A server of another release refuses.
    pub release: String,
    pub team: TeamName,
    /// The address of the shared store; it may hold a password.
    pub store: String,
    /// The password of the address, if that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub password: Option<String>,
    /// The name of the server's host. A machine that knows itself by another name refuses.
    pub host: HostName,
    /// The work directory, in which members are started.
    pub dir: String,
}

/// A later line of the lead.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostCall {
    pub id: u64,
    pub request: HostRequest,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HostRequest {
    /// Starts members and replies with a [`RemoteReport`].
    Spawn(RemoteSpawn),
    /// Ends runs and replies with one result for each.
    StopRuns(Vec<RunToEnd>),
    /// Replies with one verdict for each.
    Verify(Vec<MarkedPlacement>),
    /// Closes what is proven to be the team's and replies with one result for each.
    Close(Vec<MarkedPlacement>),
    /// Replies with text.
    Screen {
        at: MarkedPlacement,
        lines: usize,
    },
    Focus(MarkedPlacement),
    /// Replies with the new placement, as [`HostRequest::Show`] does.
    Hide(MarkedPlacement),
    Show(MarkedPlacement),
    Input {
        at: MarkedPlacement,
        input: Input,
    },
    Label(Vec<(MarkedPlacement, Label)>),
    /// Replies with one [`Liveness`](sys::proc::Liveness) for each.
    Runs(Vec<(MemberName, Incarnation)>),
    /// Opens the host's copy of a repository, and replies with a [`CopyReport`].
    OpenCopy(CopyRequest),
    /// Takes a commit into a copy.
    Receive(CommitDelivery),
    /// Replies with a [`WorktreeState`].
    Worktree(Checkout),
    /// Replies with a [`WorktreeState`] that has a snapshot.
    Snapshot(Checkout),
    /// Ends the check of this call, which replies then. Replies with nothing.
    Cancel(u64),
    /// Runs a check in a worktree and replies with a [`CheckRun`](model::review::CheckRun).
    Check {
        checkout: Checkout,
        check: TeamCheck,
        env: EnvRules,
    },
    /// Pushes commits, or replies with a [`SentBundle`].
    Send(CommitRequest),
    /// Removes a worktree that is still in the state that was seen, and replies with a
    /// [`worktree::RemovalOutcome`].
    RemoveWorktree {
        checkout: Checkout,
        seen: WorktreeState,
        deletes_branch: bool,
    },
    /// Replies with that part of the log.
    Log(LogRequest),
}

/// A repository of the lead's machine, and the commit that a worktree needs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CopyRequest {
    /// The lead's machine.
    pub origin: HostName,
    /// The repository's main working directory there.
    pub repository: String,
    pub traits: CopyTraits,
    pub commit: String,
    /// Names the directory for the files of this operation.
    pub token: String,
}

/// The host's copy of a repository.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CopyReport {
    pub path: String,
    pub has_commit: bool,
    /// Commits that it has.
    pub tips: Vec<String>,
}

/// A commit that the host can take from a bundle or an address.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CommitDelivery {
    pub origin: HostName,
    pub repository: String,
    pub commit: String,
    pub token: String,
    pub from: String,
}

/// Commits of a worktree that the lead's machine lacks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommitRequest {
    pub checkout: Checkout,
    pub commits: Vec<String>,
    /// Commits that the lead's machine has.
    pub known: Vec<String>,
    pub token: String,
    /// The address to push them to; `None` for a bundle.
    pub to: Option<String>,
}

/// A bundle on the host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentBundle {
    pub path: String,
    /// In bytes.
    pub length: u64,
}

/// A part of the log of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct LogRequest {
    pub name: MemberName,
    pub incarnation: Incarnation,
    pub range: LogRange,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MarkedPlacement {
    pub placement: Placement,
    pub token: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct RunToEnd {
    pub name: MemberName,
    pub incarnation: Incarnation,
    pub(crate) mode: StopMode,
}

/// Members to start on the server's host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RemoteSpawn {
    pub specs: Vec<LaunchSpec>,
    pub backend: Option<BackendChoice>,
    pub(crate) until_ready: bool,
    pub deadline_ms: u64,
    pub unique: bool,
    pub layout: Option<Layout>,
    pub scope: Scope,
}

/// The result of a [`RemoteSpawn`].
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RemoteReport<T> {
    pub backend: BackendKind,
    /// Why this backend was chosen.
    pub why: String,
    /// One for each spec, in order.
    pub results: Vec<Result<T, RemoteFailure>>,
    pub warnings: Vec<String>,
}

/// Returns an error as it is sent.
pub fn failure_of(error: &OpsError) -> RemoteFailure {
    RemoteFailure { kind: error.kind(), text: error.to_string(), hint: error.hint() }
}

/// A line of the server: the reply to the hello has no id.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HostReply {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    pub result: Result<Value, RemoteFailure>,
}

/// Parses a line as each message of the connection, for fuzzing. Returns whether it was one.
pub fn parse_line(line: &str) -> bool {
    fn is<M: for<'de> Deserialize<'de>>(line: &str) -> bool {
        serde_json::from_str::<M>(line).is_ok()
    }
    let (hello, call) = (is::<HostHello>(line), is::<HostCall>(line));
    is::<HostReply>(line) || hello || call
}

#[cfg(test)]
mod tests {
    use crate::hosts::log_part::LogPart;
    use model::time::Timestamp;

    #[test]
    fn every_byte_of_a_log_survives_the_way() {
        let part = LogPart {
            bytes: (0..=u8::MAX).collect(),
            len: 256,
            has_times: true,
            times: vec![(7, Timestamp(9))],
        };
        let text = serde_json::to_string(&part).expect("text");
        assert!(!text.contains('\n'), "a message is one line");
        assert_eq!(serde_json::from_str::<LogPart>(&text).expect("a part"), part);
    }
}
