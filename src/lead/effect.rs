//! What the lead can do. The driver carries effects out in order; it decides nothing.

use crate::model::drift::Drift;
use crate::model::followup::Step;
use crate::model::id::{Incarnation, MemberName, RequestId, TaskId};
use crate::model::lifecycle::Cause;
use crate::model::order::Order;
use crate::model::placement::ProcessId;
use crate::model::record::MemberRecord;
use crate::model::request::{Parting, ShutdownOutcome};
use crate::ops::health::Silence;
use crate::ops::hooks::Occasion;
use crate::ops::retire::Retirement;

/// Something to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// Tell when this process is gone.
    WatchExit { name: MemberName, incarnation: Incarnation, process: ProcessId },
    /// Show beside their placements which state these runs are in.
    Label { runs: Vec<MemberRecord> },
    /// These messages were acted upon.
    Acknowledge { ids: Vec<String> },
    /// Ask these members to shut down.
    AskShutdown { names: Vec<MemberName>, reason: String, force: bool },
    /// End the run and close its placement; `agreed`: let it end by itself first. Reports `Terminated`.
    Terminate { name: MemberName, incarnation: Incarnation, agreed: bool },
    /// Start these members of a kind. Reports `Started`.
    Start { kind: usize, orders: Vec<Order> },
    /// The runs are proven over: off the roster, tasks given back, notices sent.
    Retire(Vec<Retirement>),
    /// Write down that the member agrees to this request, and what it says of its work.
    Agree { request: RequestId, parting: Parting },
    /// Bring a request to its end.
    Resolve { request: RequestId, outcome: ShutdownOutcome, answer: Option<String> },
    /// Move a member on in its life.
    MoveOn { name: MemberName, incarnation: Incarnation, cause: Cause, reason: Option<String> },
    /// Record that the member is silent, or no longer is, in its record, the journal and the lead's mailbox.
    Health { name: MemberName, incarnation: Incarnation, silence: Option<Silence> },
    /// Compute the fingerprint of the member's activity. Reports `Activity`.
    CheckActivity { name: MemberName, incarnation: Incarnation },
    /// Make the tasks of the member free for others; it keeps running.
    Release(MemberName),
    /// Release the tasks of an owner that has no run, if it is not on the team either.
    ReleaseAbsent(MemberName),
    /// Journal the circuit breaker of a restarted member: its failures in a row, and the time until the next start;
    /// none: it is not started again. No failures: it was reset.
    NoteRestart { member: MemberName, failures: u32, delay_ms: Option<u64> },
    /// Start the member again as it was; its last run has left the team.
    Resume(MemberName),
    /// Another program has written it out of the team file: put it back.
    PutBack { name: MemberName, incarnation: Incarnation },
    /// Look at its screen, whether it rests and has not said so.
    Look { name: MemberName, incarnation: Incarnation },
    /// Tell whoever decides that this request waits.
    Announce { id: RequestId, step: Step },
    /// Tell the owner of a task that nothing is heard of it; or, in the end, what the team wants done then.
    Remind { name: MemberName, incarnation: Incarnation, task: TaskId, step: Step },
    /// Something was heard of whoever was reminded.
    Heard { name: MemberName, incarnation: Incarnation },
    /// Tell the lead's mailbox what came of these tasks.
    Report(Vec<TaskId>),
    /// Say in the journal what another program did to a task.
    Tell(Drift),
    /// Tell the owners of these tasks that another program has freed them.
    TellFreed(Vec<TaskId>),
    /// Have the user's hooks run for this.
    Hook(Occasion),
    /// Say in the journal that something is odd.
    Warn { member: Option<MemberName>, text: String },
}
