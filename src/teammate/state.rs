//! The state of a worker.

use std::collections::{BTreeSet, VecDeque};

use super::effect::{OutboundOp, WorkerEffect};
use super::event::{OpFailure, Requests};
use model::board::task::{CommandOutcome, Task};
use model::decisions::request::ShutdownRequest;
use model::id::{Incarnation, MemberName, RequestId, TaskId, TeamName};
use model::mail::protocol::{IdleNotification, Message, ShutdownApproved, ShutdownStatus};
use model::text;
use model::time::Timestamp;

/// Delay before a retry, in milliseconds.
pub(super) const PAUSE_MS: u64 = 1000;
/// Delay after a failure that a retry does not mend soon, in milliseconds.
pub(super) const LONG_PAUSE_MS: u64 = 60_000;

/// The identity and placement of the worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Me {
    pub name: MemberName,
    pub incarnation: Incarnation,
    pub team: TeamName,
    /// The pane according to `$TMUX_PANE`.
    pub pane: Option<String>,
    /// The backend's name in the team file.
    pub backend: &'static str,
}

impl Me {
    /// Returns the message that agrees to a shutdown.
    pub(super) fn agreement(&self, request: &ShutdownRequest, now: Timestamp) -> Message {
        Message::ShutdownApproved(ShutdownApproved {
            request_id: request.id.to_string(),
            from: Some(self.name.to_string()),
            timestamp: Some(now.iso()),
            pane_id: self.pane.clone(),
            backend_type: Some(self.backend.to_owned()),
            status: Some(ShutdownStatus::Clean),
            pending_work: Vec::new(),
            artifacts_committed: None,
        })
    }

    /// Returns the message that the member is idle, after a failure if that is given.
    pub(super) fn idle_notice(&self, failure: Option<String>, now: Timestamp) -> IdleNotification {
        let reason = if failure.is_some() { "failed" } else { "available" };
        IdleNotification {
            from: Some(self.name.to_string()),
            timestamp: Some(now.iso()),
            idle_reason: Some(reason.to_owned()),
            failure_reason: failure,
            ..IdleNotification::default()
        }
    }
}

/// Returns whether a request has ended in another way and needs no answer.
pub(super) fn is_ended(request: &ShutdownRequest, requests: &Requests) -> bool {
    let found = requests.get(request.id.as_str());
    found.is_some_and(|found| found.as_ref().is_ok_and(|request| !request.is_open()))
}

/// The current task.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CurrentTask {
    pub(super) id: TaskId,
    pub(super) subject: String,
    /// The command as one line, shortened for display.
    pub(super) command: String,
    /// Time of the claim.
    pub(super) since: Timestamp,
    /// Time limit of the command. Seconds.
    pub(super) timeout_s: Option<u64>,
    /// The limit has passed, and the command is being ended.
    pub(super) is_late: bool,
}

impl CurrentTask {
    pub(super) fn new(task: &Task, now: Timestamp) -> CurrentTask {
        let words = task.extra.run.iter().map(String::as_str);
        let command = shlex::try_join(words).unwrap_or_else(|_| task.extra.run.join(" "));
        CurrentTask {
            id: task.id,
            subject: task.subject.clone(),
            command: text::short(&command, 120),
            since: now,
            timeout_s: task.extra.timeout_s,
            is_late: false,
        }
    }

    /// Returns the time at which the command is ended.
    pub(super) fn limit(&self) -> Option<Timestamp> {
        let seconds = self.timeout_s.filter(|_| !self.is_late)?;
        Some(self.since.plus_ms(seconds.saturating_mul(1000)))
    }

    /// Returns the reason for its failure after its limit.
    pub(super) fn lateness(&self) -> Option<String> {
        let seconds = self.timeout_s.filter(|_| self.is_late)?;
        Some(format!("not done within its limit of {seconds} s"))
    }

    /// Formats as `task #3 Run the tests`, on one line.
    pub(super) fn title(&self) -> String {
        format!("task #{} {}", self.id, text::short(&self.subject, 120))
    }
}

/// The stage of the current work.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    Idle,
    /// The task is claimed; the plan with this request id awaits approval.
    Proposed(CurrentTask, String),
    /// The plan is approved; the task starts if it is still assigned to this worker.
    Approved(CurrentTask),
    /// The command is running.
    Running(CurrentTask),
    /// The command is being ended, because this worker was asked to end, or another member takes the
    /// task or has taken it. It is `asked` if that member waits for the end.
    Stopping {
        job: CurrentTask,
        asked: bool,
    },
    /// The command was ended, and the task is still this worker's.
    Stopped {
        job: CurrentTask,
        confirmed: bool,
        until: Timestamp,
    },
    /// The command has exited; the outcome is not yet on the board.
    Ending(CurrentTask, CommandOutcome),
}

/// The outstanding operation of the driver; at most one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outstanding {
    Mail,
    Claim,
    Recheck,
    LetGo,
    End,
    OutboundOp,
}

/// The last finished task.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LastTask {
    pub(super) id: TaskId,
    /// The reason if it failed.
    pub(super) failure: Option<String>,
}

/// An exit without a shutdown request: after a signal, or because the team is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaving {
    /// Exit code.
    pub(super) code: i32,
    /// Time limit for its command or program to exit.
    pub(super) by: Timestamp,
}

/// Records the time of an event in `last`, and shifts `times` if the clock was set back since the
/// event before. Without the shift they would wait until the clock has caught up. Deadlines that
/// other processes share are not shifted.
pub(super) fn follow_clock<'t>(
    last: &mut Timestamp,
    now: Timestamp,
    times: impl IntoIterator<Item = &'t mut Timestamp>,
) {
    let by = std::mem::replace(last, now).since(now);
    for time in times {
        time.0 = time.0.saturating_sub(by);
    }
}

/// The complete state of a worker.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WorkerState {
    pub(super) me: Me,
    /// Time of the last event.
    pub(super) now: Timestamp,
    /// Effects of the current step.
    pub(super) effects: Vec<WorkerEffect>,
    /// Set if the lead must approve each task before it runs.
    pub(super) needs_approval: bool,
    pub(super) work: Work,
    /// The operation whose result has not arrived; no other is started meanwhile.
    pub(super) asked: Option<Outstanding>,
    /// Set while hooks decide on the current task; everything else continues.
    pub(super) held: bool,
    /// Outbound operations not yet completed, in order.
    pub(super) outbound: VecDeque<OutboundOp>,
    /// Shutdown requests that await an answer.
    pub(super) pending: Vec<ShutdownRequest>,
    /// Requests accepted in this run; each is accepted only once.
    pub(super) honoured: BTreeSet<RequestId>,
    /// Handled messages, which may be repeated until they are marked as read.
    pub(super) handled: BTreeSet<String>,
    /// The mail has to be read before anything is claimed.
    pub(super) mail_due: bool,
    /// The board may have a task to claim.
    pub(super) claim_due: bool,
    /// The task of the command may have been taken from this worker.
    pub(super) check_due: bool,
    /// Set once the spawner has confirmed the start. Before that the start may still be rolled
    /// back, and no process would supervise its work, so no task is claimed.
    pub(super) accepted: bool,
    /// The lead has been notified that the worker is idle (MSG-12: once per transition).
    pub(super) idle_reported: bool,
    /// The last finished task, until it is reported with the idle notification.
    pub(super) last: Option<LastTask>,
    /// After a failure, nothing is attempted before this time.
    pub(super) pause_until: Option<Timestamp>,
    /// The last failure printed, to avoid repeating it.
    pub(super) complaint: Option<String>,
    /// The worker has agreed to a shutdown and exits once its answer is sent.
    pub(super) agreed: bool,
    /// Set once the worker exits without a shutdown request.
    pub(super) leaving: Option<Leaving>,
    /// The exit code, once the worker is done.
    pub(super) end: Option<i32>,
}

impl WorkerState {
    /// The initial state.
    pub(crate) fn new(me: Me, needs_approval: bool) -> WorkerState {
        WorkerState {
            me,
            now: Timestamp::default(),
            effects: Vec::new(),
            needs_approval,
            work: Work::Idle,
            asked: None,
            held: false,
            outbound: VecDeque::from([OutboundOp::Hello]),
            pending: Vec::new(),
            honoured: BTreeSet::new(),
            handled: BTreeSet::new(),
            mail_due: true,
            claim_due: true,
            check_due: false,
            accepted: false,
            idle_reported: true,
            last: None,
            pause_until: None,
            complaint: None,
            agreed: false,
            leaving: None,
            end: None,
        }
    }

    /// Records that the result of an operation has arrived.
    pub(super) fn reported(&mut self, what: Outstanding) {
        if self.asked == Some(what) {
            self.asked = None;
        }
    }

    /// Queues a message to the lead.
    pub(super) fn send(&mut self, message: Message) {
        self.outbound.push_back(OutboundOp::Send(Box::new(message)));
    }

    /// Prints a text in the pane.
    pub(super) fn print(&mut self, text: String) {
        self.effects.push(WorkerEffect::Print(text));
    }

    /// Prints a failure once, and delays the next attempt if a retry can help.
    pub(super) fn complain(&mut self, failure: &OpFailure) {
        if !failure.lasting {
            self.pause_until = Some(self.now.plus_ms(PAUSE_MS));
        }
        if self.complaint.as_ref() != Some(&failure.text) {
            self.complaint = Some(failure.text.clone());
            self.print(format!("{}: {}", self.who(), failure.text));
        }
    }

    /// The time of the next `Tick`, if any.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        if let Some(leaving) = self.leaving {
            return Some(leaving.by);
        }
        let due = match self.work {
            Work::Stopped { until, .. } => Some(until),
            Work::Running(ref job) => job.limit(),
            _ => None,
        };
        // During a pause no deadline is handled.
        self.pause_until.or(due)
    }

    /// Ids of the requests that await an answer.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &RequestId> {
        self.pending.iter().map(|request| &request.id)
    }

    /// Member and team, as a prefix for printed lines.
    pub(crate) fn who(&self) -> String {
        format!("{} of {}", self.me.name, self.me.team)
    }
}
