//! The state of the lead. It changes only through events and does no I/O.

use std::collections::{BTreeMap, BTreeSet};

use super::effect::Effect;
use model::board::Board;
use model::decisions::request::{ShutdownOutcome, ShutdownRequest};
use model::id::{Incarnation, MemberName, RequestId, TaskId};
use model::members::budget::Budgets;
use model::members::launch::Template;
use model::members::lifecycle::{Cause, MemberState};
use model::members::rate_limit::{RateLimit, ResumePolicy};
use model::members::record::LaunchRequest;
use model::members::usage::Prices;
use model::team::followup::{LastNotification, Reminded, ReminderPolicy};
use model::team::settings::{Finish, OnHang, Settings};
use model::time::Timestamp;

/// The task of the lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Goal {
    /// Leads until stopped, or until all tasks are done.
    Lead(Finish),
    /// Only carries these requests through, for a command that coordinates its own shutdown.
    Carry(BTreeSet<RequestId>),
}

impl Default for Goal {
    fn default() -> Goal {
        Goal::Lead(Finish::default())
    }
}

/// The reason why the lead's work is over. The journal has it as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum LeadEnd {
    /// No task on the board can proceed, and all members have ended.
    TasksOver,
    /// A person or a failed task stopped the team, and all members have ended.
    Stopped,
    /// The time limit of the team stopped it, and all members have ended.
    TimedOut,
    /// All requests that were to be carried have ended.
    Carried,
    /// A person stopped only the lead.
    Left,
    /// A signal of the system stopped the lead and its members; the team goes on later.
    Interrupted,
    TeamGone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Phase {
    #[default]
    Leading,
    /// All members are being stopped; `end` applies once they have ended.
    Stopping {
        end: LeadEnd,
        force: bool,
        /// Time at which those that have refused are ended by force.
        due: Option<Timestamp>,
    },
    Done(LeadEnd),
}

/// A run that is being stopped, and the notice that follows.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PendingStop {
    pub(super) cause: Cause,
    pub(super) reason: String,
    /// The shutdown request to close afterwards, with its outcome.
    pub(super) request: Option<(RequestId, ShutdownOutcome)>,
}

/// The lead's view of a running member.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TrackedMember {
    pub(super) incarnation: Incarnation,
    pub(super) state: MemberState,
    pub(super) state_since: Timestamp,
    /// The state in the label of its placement.
    pub(super) shown: Option<&'static str>,
    /// It can be asked for consent to a shutdown and reminded of tasks.
    pub(super) reads_mail: bool,
    /// It claims tasks by itself and runs their commands.
    pub(super) runs_commands: bool,
    /// It has proven that it runs, and its process is watched for exit.
    pub(super) watched: bool,
    /// Set while it is being stopped.
    pub(super) ending: Option<PendingStop>,
    /// It rejected the shutdown of a stopping team; it is asked again when it is idle.
    pub(super) refused: bool,
    /// It could not be stopped.
    pub(super) stuck: bool,
    /// It was asked to shut down for lack of work; it is not asked for that again, whatever it
    /// answers.
    pub(super) dismissed: bool,
    /// Start of the run, as far as known.
    pub(super) since: Timestamp,
    /// Start of the time that it has owed an answer.
    pub(super) owes_since: Option<Timestamp>,
    /// The number of checks whether it has taken the assignment that it owes an answer to.
    pub(super) answer_checks: u64,
    /// The usage limit that it has reached.
    pub(super) limit: Option<RateLimit>,
    /// The start of the state in which it was asked to end for its budget.
    pub(super) ended_for_budget: Option<Timestamp>,
    /// Signs of activity while it has a task in progress.
    pub(super) activity: Option<ActivityCheck>,
    /// It is stopped because it hangs, and is then started again.
    pub(super) restarts: bool,
    /// The index in `State::kinds` of the kind that it was made from.
    pub(super) kind: Option<usize>,
    /// The task that was assigned to it and that it could start.
    pub(super) given: Option<TaskId>,
    /// The task that it works on, and since when the task is silent.
    pub(super) quiet: Option<Quiet>,
    /// Its program writes its own state to the team's files; if it fails to report idle, only its
    /// screen shows it.
    pub(super) native: bool,
    /// It runs on another host, whose screens take longer to read.
    pub(super) is_elsewhere: bool,
    /// `isActive` of the team file, and the time at which this value was first seen.
    pub(super) says_active: Option<(bool, Timestamp)>,
    /// It waits for a person or for its next try, as its screen shows.
    pub(super) is_blocked: bool,
    /// It repeats a failed request by itself, as its screen shows.
    pub(super) is_retrying: bool,
    /// Its last turn ended with an error, and it has got no message since then.
    pub(super) has_failed: bool,
    /// It has passed the check whether it is ready.
    pub(super) is_ready: bool,
    /// The request that started it.
    pub(super) request: LaunchRequest,
    /// The start of the last wait at a prompt that this lead has announced.
    pub(super) announced_prompt: Option<Timestamp>,
    /// The last check of its screen in this state.
    pub(super) idle_checked_at: Option<Timestamp>,
    /// The reminders by an earlier lead, until they are taken over.
    pub(super) reminded: Option<Reminded>,
}

impl TrackedMember {
    /// Returns the effect that records a transition of the member's life cycle.
    pub(super) fn move_on(&self, name: &MemberName, cause: Cause, why: Option<String>) -> Effect {
        let (name, incarnation) = (name.clone(), self.incarnation.clone());
        Effect::MoveOn { name, incarnation, cause, reason: why }
    }
}

/// The action for hanging members and its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HangRule {
    pub(super) action: OnHang,
    /// Minimum time without activity.
    pub(super) after_ms: u64,
}

impl HangRule {
    pub(super) fn new(action: OnHang, after_s: u64) -> HangRule {
        HangRule { action, after_ms: after_s.saturating_mul(1000) }
    }
}

/// The activity of a member, as one fingerprint of its screen, the mail that it has read and its
/// task.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ActivityCheck {
    /// `None` before the first check.
    pub(super) fingerprint: Option<u64>,
    /// Time since when the fingerprint is unchanged.
    pub(super) since: Timestamp,
    /// Time of the last check.
    pub(super) checked_at: Timestamp,
    /// The lack of activity has been reported.
    pub(super) is_reported: bool,
}

impl ActivityCheck {
    pub(super) fn new(now: Timestamp) -> ActivityCheck {
        ActivityCheck { fingerprint: None, since: now, checked_at: now, is_reported: false }
    }
}

/// A snapshot of the board with values derived from it, computed once per read instead of at each
/// step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoardView {
    pub(super) board: Board,
    /// The tasks that any fitting agent could claim, in claim order.
    pub(super) free: Vec<TaskId>,
    /// A task is in progress or can be started.
    pub(super) can_move: bool,
    /// The first task that each owner was given and could start, by the owner's name in lower case.
    pub(super) given: BTreeMap<String, TaskId>,
    /// The task in progress of each owner, by the owner's name in lower case.
    pub(super) working: BTreeMap<String, TaskId>,
    /// The stale tasks of each owner that nothing has resumed yet, with the time since when each is
    /// stale; by the owner's name in lower case.
    pub(super) stale: BTreeMap<String, Vec<(TaskId, Timestamp)>>,
    /// The open and the failed readiness tasks, each with its member.
    pub(super) awaited: Vec<(TaskId, MemberName)>,
    /// The time limits of tasks in progress.
    pub(super) limits: BTreeMap<TaskId, Timestamp>,
    /// The times of the next reminders that members have set on tasks.
    pub(super) reminders: BTreeMap<TaskId, Timestamp>,
}

impl BoardView {
    pub(super) fn work_of(&self, name: &MemberName) -> Option<TaskId> {
        self.working.get(&name.folded()).copied()
    }

    pub(super) fn given_to(&self, name: &MemberName) -> Option<TaskId> {
        self.given.get(&name.folded()).copied()
    }
}

/// A free task, and the idle members that were notified of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TaskOffer {
    /// Since when it is free, as far as known.
    pub(super) since: Timestamp,
    pub(super) told: BTreeSet<Incarnation>,
}

/// The silence of a task in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quiet {
    pub(super) task: TaskId,
    /// Time of the last sign of life or the last reminder.
    pub(super) since: Timestamp,
    /// Number of reminders since the last sign of life.
    pub(super) times: u32,
}

/// An unread plan or question of a member in the lead's mailbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenQuestion {
    /// The member that waits for the answer.
    pub(super) member: MemberName,
    pub(super) request_id: String,
    /// `PlanSent` or `PermissionAsked`.
    pub(super) cause: Cause,
}

/// Ended tasks with the times of their ends.
pub(super) type TaskEnds = BTreeMap<TaskId, Option<Timestamp>>;

/// The budgets of the team, and what was reported of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct BudgetWatch {
    pub(super) budgets: Budgets,
    pub(super) prices: Prices,
    /// The marks of the shares that were reported.
    pub(super) reported: BTreeSet<String>,
    /// The budget of the team allows no further start.
    pub(super) stops_starts: bool,
}

/// The members that are made from one template.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pool {
    pub(super) template: Template,
    /// All names that its members can have.
    pub(super) names: Vec<MemberName>,
    /// Number of members that the board requires; `None` before the first read of the board, and
    /// for a standing member.
    pub(super) asked_for: Option<usize>,
    /// Members that the driver was asked to start, without a result so far.
    pub(super) starting: BTreeSet<MemberName>,
    /// The task of each starting member that is started for one task.
    pub(super) dispatched: BTreeMap<MemberName, TaskId>,
    /// Members started by this lead whose records have not been read yet.
    pub(super) expected: BTreeSet<MemberName>,
    /// Consecutive failures.
    pub(super) failures: u32,
    /// Earliest time of the next start, after a failure.
    pub(super) not_before: Option<Timestamp>,
    /// Time until which the next start is deferred, so that a member outside the kind can take the
    /// task.
    pub(super) defers_until: Option<Timestamp>,
    /// The deferral has expired: no member outside the kind has taken the task.
    pub(super) has_deferred: bool,
    /// The single member that stands is to be started: for the first time, once what it waits for
    /// is ready, or in place of the last one.
    pub(super) owed: bool,
    /// A shutdown of one of its members was requested: none is started until a task with a higher
    /// id exists.
    pub(super) held: Option<TaskId>,
    /// The settings no longer contain it: no member is started or dismissed.
    pub(super) removed: bool,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct State {
    pub(super) goal: Goal,
    /// The team was set to end with its tasks while it had none: the first task begins its work.
    pub(super) awaits_tasks: bool,
    /// Time of the first event.
    pub(super) began_at: Option<Timestamp>,
    pub(super) phase: Phase,
    pub(super) members: BTreeMap<MemberName, TrackedMember>,
    /// The names in the team file, as last read. An ended run keeps its name until it has left.
    pub(super) listed: BTreeSet<MemberName>,
    /// The ended members that are about to be started again, and until when that is expected.
    pub(super) returning: BTreeMap<MemberName, Timestamp>,
    /// Open shutdown requests.
    pub(super) open: BTreeMap<RequestId, ShutdownRequest>,
    /// The members that have rejected a shutdown, by the id of the request.
    pub(super) rejected: BTreeMap<String, MemberName>,
    /// `None` before the first read of the board.
    pub(super) seen: Option<BoardView>,
    /// The free tasks that idle members can claim.
    pub(super) offers: BTreeMap<TaskId, TaskOffer>,
    /// The runs that have given a task back.
    pub(super) returned: BTreeMap<TaskId, BTreeSet<Incarnation>>,
    /// The free tasks that each member has given back, as already reported to the lead.
    pub(super) refused: BTreeSet<TaskId>,
    /// The members that may still claim the task that they were notified of last, with the time.
    pub(super) asked: BTreeMap<MemberName, (TaskId, Timestamp)>,
    /// As last read; `None` for a team of another program.
    pub(super) settings: Option<Settings>,
    /// Tasks whose results were reported to the lead's mailbox; without a time if an earlier lead
    /// did that.
    pub(super) reported: TaskEnds,
    /// Tasks to be reported together, and when, if none is started meanwhile.
    pub(super) results: Option<(Timestamp, TaskEnds)>,
    /// The records have been read at least once.
    pub(super) members_seen: bool,
    /// The shutdown requests have been read at least once.
    pub(super) requests_seen: bool,
    /// Ids of the open questions in the table of requests.
    pub(super) filed: BTreeSet<String>,
    /// The last announcement of each open question; `None` if it was not announced yet.
    pub(super) notifications: BTreeMap<RequestId, Option<LastNotification>>,
    /// `None` if the team has no reminders.
    pub(super) followup: Option<ReminderPolicy>,
    pub(super) kinds: Vec<Pool>,
    /// The index of the kind that makes a name, by the name in lower case.
    pub(super) makers: BTreeMap<String, usize>,
    /// Time after which an owed answer is overdue, in ms.
    pub(super) unresponsive_after_ms: u64,
    /// The rule for hanging members; `None` turns the detection off.
    pub(super) hang: Option<HangRule>,
    pub(super) budget: BudgetWatch,
    /// The policy for members at a usage limit.
    pub(super) resume_limited: ResumePolicy,
    /// An agent lead runs beside this loop and gets the lead's messages.
    pub(super) has_agent_lead: bool,
    /// Ids of handled messages that can be read again.
    pub(super) handled: BTreeSet<String>,
    /// The readiness tasks that the driver was asked to end since the last read of the board.
    pub(super) settled: BTreeSet<TaskId>,
    /// Members that are idle according to the journal; filled only if the team has hooks.
    pub(super) resting: BTreeSet<MemberName>,
    /// Unanswered plans and questions, by the id of the message.
    pub(super) questions: BTreeMap<String, OpenQuestion>,
}

impl State {
    pub(crate) fn new(goal: Goal, templates: Vec<Template>) -> State {
        let kinds: Vec<Pool> = templates.into_iter().map(Pool::new).collect();
        State {
            makers: makers(&kinds),
            kinds,
            goal,
            unresponsive_after_ms: 60_000,
            ..State::default()
        }
    }

    /// Applies the settings, except those of the members to be started.
    pub(super) fn apply(&mut self, settings: &Settings) {
        self.followup = settings.followup;
        self.unresponsive_after_ms = settings.unresponsive_after_s.saturating_mul(1000);
        self.budget.budgets = settings.budgets.clone();
        self.budget.prices = settings.prices.clone();
        self.resume_limited = settings.resume_limited;
        self.hang = Some(HangRule::new(settings.on_hang, settings.hang_after_s));
        self.settings = Some(settings.clone());
    }

    /// Returns whether this is a full lead. A command that only carries its own requests is not.
    pub(super) fn leads(&self) -> bool {
        matches!(self.goal, Goal::Lead(_))
    }

    /// Returns whether this is a full lead whose team is not being stopped.
    pub(super) fn is_leading(&self) -> bool {
        self.leads() && self.phase == Phase::Leading
    }

    /// Returns whether results go to the lead's mailbox. With `TasksDone` the final report of the
    /// team contains them.
    pub(crate) fn wants_reports(&self) -> bool {
        self.goal == Goal::Lead(Finish::Manual)
    }

    /// Returns how the lead's work ended, or `None` if it goes on.
    pub(crate) fn end(&self) -> Option<LeadEnd> {
        match self.phase {
            Phase::Done(end) => Some(end),
            Phase::Leading | Phase::Stopping { .. } => None,
        }
    }

    /// Returns the index of the kind that makes members of this name.
    pub(super) fn maker(&self, name: &MemberName) -> Option<usize> {
        self.makers.get(&name.folded()).copied()
    }

    pub(super) fn request_for(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
    ) -> Option<&ShutdownRequest> {
        self.open.values().find(|r| r.member == *name && r.incarnation == *incarnation)
    }
}

/// Returns the index of the kind that makes each name, by the name in lower case. The first of
/// several kinds wins.
pub(super) fn makers(kinds: &[Pool]) -> BTreeMap<String, usize> {
    let mut makers = BTreeMap::new();
    for (nth, kind) in kinds.iter().enumerate().filter(|(_, kind)| !kind.removed) {
        for name in &kind.names {
            makers.entry(name.folded()).or_insert(nth);
        }
    }
    makers
}
