//! What a worker knows.

use std::collections::{BTreeSet, VecDeque};

use super::effect::Errand;
use super::event::Requests;
use crate::model::id::{Incarnation, MemberName, RequestId, TaskId, TeamName};
use crate::model::request::ShutdownRequest;
use crate::model::task::{Outcome, Task};
use crate::model::text;
use crate::model::time::{Timestamp, human};

/// Who the worker is, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Me {
    pub(crate) name: MemberName,
    pub(crate) incarnation: Incarnation,
    pub(crate) team: TeamName,
    /// The pane it believes to stand in (`$TMUX_PANE`).
    pub(crate) pane: Option<String>,
    /// The team file's word for its backend.
    pub(crate) backend: &'static str,
}

/// A task in hand.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Job {
    pub(super) id: TaskId,
    pub(super) subject: String,
    /// The command as one line for people.
    pub(super) command: String,
    pub(super) since: Timestamp,
}

impl Job {
    pub(super) fn of(task: &Task, now: Timestamp) -> Job {
        let words = task.extra.run.iter().map(String::as_str);
        let command = shlex::try_join(words).unwrap_or_else(|_| task.extra.run.join(" "));
        Job {
            id: task.id,
            subject: task.subject.clone(),
            command: text::short(&command, 120),
            since: now,
        }
    }

    /// `task #3 Run the tests`, as one line.
    pub(super) fn title(&self) -> String {
        format!("task #{} {}", self.id, text::short(&self.subject, 120))
    }

    /// Why a worker with this task stays.
    pub(super) fn excuse(&self, now: Timestamp) -> String {
        format!(
            "busy with task #{} ({}), running for {}",
            self.id,
            self.command,
            human(now.since(self.since))
        )
    }
}

/// What the worker is at.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Work {
    Idle,
    /// The task is claimed, and the plan of this request id waits for the lead.
    Proposed(Job, String),
    /// The plan was approved; the task is begun if it is still this worker's.
    Approved(Job),
    /// The command runs.
    Running(Job),
    /// The command has ended, and the board does not know it yet.
    Ending(Job, Outcome),
}

/// What the driver was asked for and has not reported on; one thing at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Mail,
    Claim,
    Recheck,
    End,
    Errand,
}

/// A request to end that has not been answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pending {
    pub(super) request: ShutdownRequest,
    /// A worker that is still busy then says no.
    pub(super) answer_by: Timestamp,
}

impl Pending {
    /// Whether somebody else has brought it to its end: it needs no answer any more.
    pub(super) fn is_ended(&self, requests: &Requests) -> bool {
        let found = requests.get(self.request.id.as_str());
        found.is_some_and(|found| found.as_ref().is_ok_and(|request| !request.is_open()))
    }
}

/// The task that was brought to its end last; what went wrong with it, if so.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Finished {
    pub(super) id: TaskId,
    pub(super) failure: Option<String>,
}

/// It was told to end without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leaving {
    pub(super) code: i32,
    /// The command has until then to be gone.
    pub(super) by: Timestamp,
}

/// All that a worker knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(super) me: Me,
    /// It runs no task before the lead has approved that.
    pub(super) needs_approval: bool,
    pub(super) work: Work,
    pub(super) asked: Option<Asked>,
    /// Hooks think about the end of the task in hand; all but that goes on.
    pub(super) held: bool,
    /// Words that have not been said yet, in order.
    pub(super) errands: VecDeque<Errand>,
    pub(super) pending: Vec<Pending>,
    /// Requests that were honoured in this run; none is honoured twice.
    pub(super) honoured: BTreeSet<RequestId>,
    /// Messages that were handled; they may be seen again until they are marked.
    pub(super) handled: BTreeSet<String>,
    /// The mail has to be looked at before anything is claimed.
    pub(super) mail_due: bool,
    pub(super) claim_due: bool,
    /// It counts as a member. A start may still be taken back, and until then nobody watches over what it does:
    /// nothing is begun.
    pub(super) accepted: bool,
    /// The lead knows that there is nothing to do (MSG-12: it is told once per edge).
    pub(super) rested: bool,
    pub(super) last: Option<Finished>,
    /// Something failed: nothing is tried before this.
    pub(super) pause_until: Option<Timestamp>,
    /// What failed last; the same is not complained of twice in a row.
    pub(super) complaint: Option<String>,
    /// It has agreed to end: once this is said, it does.
    pub(super) agreed: bool,
    pub(super) leaving: Option<Leaving>,
    pub(super) end: Option<i32>,
}

impl State {
    /// A worker that has just started.
    pub(crate) fn new(me: Me, needs_approval: bool) -> State {
        State {
            me,
            needs_approval,
            work: Work::Idle,
            asked: None,
            held: false,
            errands: VecDeque::from([Errand::Hello]),
            pending: Vec::new(),
            honoured: BTreeSet::new(),
            handled: BTreeSet::new(),
            mail_due: true,
            claim_due: true,
            accepted: false,
            rested: true,
            last: None,
            pause_until: None,
            complaint: None,
            agreed: false,
            leaving: None,
            end: None,
        }
    }

    /// The exit code, once it is time to go.
    pub(crate) fn end(&self) -> Option<i32> {
        self.end
    }

    /// When it wants to be told that time has passed.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        if let Some(leaving) = self.leaving {
            return Some(leaving.by);
        }
        // While it pauses nothing is done, whatever is due.
        self.pause_until.or_else(|| self.pending.iter().map(|p| p.answer_by).min())
    }

    /// Whether it does nothing before it has seen its mail.
    pub(crate) fn waits_for_mail(&self) -> bool {
        self.mail_due
    }

    /// The requests that wait for an answer.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &RequestId> {
        self.pending.iter().map(|p| &p.request.id)
    }

    /// Its name and its team, for the first words of a line.
    pub(crate) fn who(&self) -> String {
        format!("{} of {}", self.me.name, self.me.team)
    }
}
