//! What the lead knows. Everything here follows from events; nothing is read from anywhere.

use std::collections::{BTreeMap, BTreeSet};

use super::react::{makers, next_check, next_look, next_reminder, next_silence, next_start};
use crate::model::board::Board;
use crate::model::followup::{Followup, Reminded, Told};
use crate::model::id::{Incarnation, MemberName, RequestId, TaskId};
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::order::Template;
use crate::model::request::{ShutdownOutcome, ShutdownRequest};
use crate::model::settings::{Finish, OnHang};
use crate::model::time::Timestamp;

/// What the lead is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Lead until told otherwise, or until the tasks are over.
    Lead(Finish),
    /// Only bring these requests to their end: a verb does its own coordinating.
    Carry(BTreeSet<RequestId>),
}

/// Why the lead's work is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Nothing can move on the board, and all members have ended.
    TasksOver,
    /// A person stopped it, and all members have ended.
    Stopped,
    /// The requests it was to carry have ended.
    Carried,
    /// A person ended the lead, and nobody else.
    Left,
    /// The team was deleted by somebody.
    TeamGone,
}

/// How far the lead has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Leading,
    /// All members are to end; then it ends like this.
    Stopping {
        end: End,
        force: bool,
    },
    Done(End),
}

/// A run that is being ended, and what is to be said of it afterwards.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ending {
    pub(super) cause: Cause,
    pub(super) reason: String,
    pub(super) request: Option<(RequestId, ShutdownOutcome)>,
}

/// A living member.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct View {
    pub(super) incarnation: Incarnation,
    pub(super) state: MemberState,
    pub(super) state_since: Timestamp,
    /// The state that its placement shows.
    pub(super) shown: Option<MemberState>,
    pub(super) reads_mail: bool,
    /// It claims tasks with a command by itself.
    pub(super) runs_commands: bool,
    pub(super) role: Option<String>,
    /// It has proven that it runs, and its end is looked out for.
    pub(super) watched: bool,
    pub(super) ending: Option<Ending>,
    /// It said no to the shutdown of a stopping team; it is asked again when it rests.
    pub(super) refused: bool,
    /// It could not be ended; why.
    pub(super) stuck: bool,
    /// It was asked to end because no work for it; whatever it says, it is not asked for that again.
    pub(super) dismissed: bool,
    /// Since when it runs, as far as is known.
    pub(super) since: Timestamp,
    /// Since when it owes an answer.
    pub(super) owes_since: Option<Timestamp>,
    /// It has owed one for too long, and that was said.
    pub(super) unresponsive: bool,
    /// Signs of activity, while it has a task in progress.
    pub(super) activity: Option<Activity>,
    /// It is ended because it hangs, and is started again.
    pub(super) restarts: bool,
    /// The kind that it was made from: its place in `State::kinds`.
    pub(super) kind: Option<usize>,
    /// The task on the board that was given to it, and that it could begin.
    pub(super) given: Option<TaskId>,
    /// The task that it works on, since nothing was heard of it.
    pub(super) quiet: Option<Quiet>,
    /// Nothing of ours says what it does: a screen that rests is all there is, should it keep silent.
    pub(super) native: bool,
    /// It has said nothing of its end of work for a while; its screen was looked at then.
    pub(super) looked_at: Option<Timestamp>,
    /// What an earlier lead has reminded it of, until that is looked at.
    pub(super) reminded: Option<Reminded>,
}

/// The action for members that hang, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HangRule {
    pub(super) action: OnHang,
    /// The time without activity.
    pub(super) after_ms: u64,
}

impl HangRule {
    pub(super) fn new(action: OnHang, after_s: u64) -> HangRule {
        HangRule { action, after_ms: after_s.saturating_mul(1000) }
    }
}

/// The activity of a member: its screen, the mail that it has read and its task, as one fingerprint.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Activity {
    /// None before the first check.
    pub(super) fingerprint: Option<u64>,
    /// The last change.
    pub(super) since: Timestamp,
    pub(super) checked_at: Timestamp,
    /// The hang was reported.
    pub(super) is_reported: bool,
}

impl Activity {
    pub(super) fn new(now: Timestamp) -> Activity {
        Activity { fingerprint: None, since: now, checked_at: now, is_reported: false }
    }
}

/// The board as it was last seen, and what follows from it alone: worked out when it is seen, not at each step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Seen {
    pub(super) board: Board,
    /// Whether anything is running or can be begun.
    pub(super) can_move: bool,
    /// Who was given a task that could be begun, in lower case, and the first such task.
    pub(super) given: BTreeMap<String, TaskId>,
    /// The task in progress of each owner, by the owner's name in lower case.
    pub(super) working: BTreeMap<String, TaskId>,
}

impl Seen {
    pub(super) fn work_of(&self, name: &MemberName) -> Option<TaskId> {
        self.working.get(&name.folded()).copied()
    }

    pub(super) fn given_to(&self, name: &MemberName) -> Option<TaskId> {
        self.given.get(&name.folded()).copied()
    }
}

/// How long nothing has been heard of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quiet {
    pub(super) task: TaskId,
    /// The last sign of life, or the last reminder.
    pub(super) since: Timestamp,
    /// How many reminders there were since the last sign of life.
    pub(super) times: u32,
}

/// A plan or a question of a member that lies unread with the lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) member: MemberName,
    pub(super) request_id: String,
    /// `PlanSent` or `PermissionAsked`.
    pub(super) cause: Cause,
}

/// Members that are made from one template.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    pub(super) template: Template,
    /// Those that they can have.
    pub(super) names: Vec<MemberName>,
    /// How many the board asks for; none known while it was not seen, and for a standing member.
    pub(super) asked_for: Option<usize>,
    /// Told to the driver to be started, and nothing heard yet.
    pub(super) starting: BTreeSet<MemberName>,
    /// The tasks of those, where each is started for one.
    pub(super) dispatched: BTreeMap<MemberName, TaskId>,
    /// Started by this lead, and their records not seen yet.
    pub(super) expected: BTreeSet<MemberName>,
    /// In a row.
    pub(super) failures: u32,
    /// The next start waits until then.
    pub(super) not_before: Option<Timestamp>,
    /// The next start waits until then for a member outside the kind to take the task.
    pub(super) defers_until: Option<Timestamp>,
    /// No member outside the kind has taken it.
    pub(super) has_deferred: bool,
    /// The last of them failed.
    pub(super) owed: bool,
    /// Somebody has asked one of them to end: nobody is started until there is a task with a higher id than this.
    pub(super) held: Option<TaskId>,
    /// The settings no longer have it: no member is started or dismissed.
    pub(super) retired: bool,
}

/// All that the lead knows.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    pub(super) goal: Goal,
    pub(super) phase: Phase,
    pub(super) members: BTreeMap<MemberName, View>,
    /// Requests that have not ended.
    pub(super) open: BTreeMap<RequestId, ShutdownRequest>,
    /// None until the board was seen.
    pub(super) seen: Option<Seen>,
    /// The tasks that the lead was told the results of.
    pub(super) reported: BTreeSet<TaskId>,
    /// Those that it is to be told of together, and when, if none begins meanwhile.
    pub(super) results: Option<(Timestamp, Vec<TaskId>)>,
    pub(super) members_seen: bool,
    pub(super) requests_seen: bool,
    /// Ids of questions that stand in the table of requests, open.
    pub(super) filed: BTreeSet<String>,
    /// How often whoever decides was told of each of the open questions; none: not yet.
    pub(super) told: BTreeMap<RequestId, Option<Told>>,
    /// None: nobody is reminded of anything.
    pub(super) followup: Option<Followup>,
    pub(super) kinds: Vec<Kind>,
    /// Which kind makes a name, by the name in lower case.
    pub(super) makers: BTreeMap<String, usize>,
    /// How long a member may owe an answer, ms.
    pub(super) unresponsive_after_ms: u64,
    /// The rule for members that hang; none: they are not looked for.
    pub(super) hang: Option<HangRule>,
    /// A program has the lead's place, and is told of what comes to the lead.
    pub(super) beside_program: bool,
    /// Messages that were acted upon; they may be seen again until they are marked.
    pub(super) handled: BTreeSet<String>,
    /// Who is known to rest, by the journal; kept only where there are hooks.
    pub(super) resting: BTreeSet<MemberName>,
    /// By the id of the message.
    pub(super) questions: BTreeMap<String, Question>,
}

impl State {
    /// A lead that knows nothing yet.
    pub(crate) fn new(goal: Goal, templates: Vec<Template>) -> State {
        let kinds: Vec<Kind> = templates.into_iter().map(Kind::new).collect();
        State {
            filed: BTreeSet::new(),
            told: BTreeMap::new(),
            followup: None,
            reported: BTreeSet::new(),
            results: None,
            makers: makers(&kinds),
            kinds,
            goal,
            phase: Phase::Leading,
            members: BTreeMap::new(),
            open: BTreeMap::new(),
            seen: None,
            members_seen: false,
            requests_seen: false,
            unresponsive_after_ms: 60_000,
            hang: None,
            beside_program: false,
            handled: BTreeSet::new(),
            resting: BTreeSet::new(),
            questions: BTreeMap::new(),
        }
    }

    /// The same with another patience.
    pub(crate) fn unresponsive_after(self, seconds: u64) -> State {
        State { unresponsive_after_ms: seconds.saturating_mul(1000), ..self }
    }

    /// Returns the state with this rule for members that hang.
    pub(crate) fn on_hang(self, on_hang: OnHang, after_s: u64) -> State {
        State { hang: Some(HangRule::new(on_hang, after_s)), ..self }
    }

    /// The same with reminders.
    pub(crate) fn with_followup(self, followup: Option<Followup>) -> State {
        State { followup, ..self }
    }

    /// The same beside a program that is told of what comes to the lead.
    pub(crate) fn beside_program(self, is_told: bool) -> State {
        State { beside_program: is_told, ..self }
    }

    /// Whether it is there for what members do and ask; a verb that only carries its own requests is not.
    pub(super) fn leads(&self) -> bool {
        matches!(self.goal, Goal::Lead(_))
    }

    /// Whether it tells the lead's mailbox of results. The report of a team that ends with its tasks says the same, and more.
    pub(crate) fn wants_reports(&self) -> bool {
        self.goal == Goal::Lead(Finish::Manual)
    }

    /// The same with what was told before.
    pub(crate) fn with_reported(self, reported: BTreeSet<TaskId>) -> State {
        State { reported, ..self }
    }

    /// How it ended, once it has.
    pub(crate) fn end(&self) -> Option<End> {
        match self.phase {
            Phase::Done(end) => Some(end),
            Phase::Leading | Phase::Stopping { .. } => None,
        }
    }

    /// When it wants to be told that time has passed.
    pub(crate) fn next_tick(&self) -> Option<Timestamp> {
        let waiting = |r: &&ShutdownRequest| {
            self.members.get(&r.member).is_some_and(|v| v.ending.is_none() && !v.stuck)
        };
        let deadlines = self.open.values().filter(waiting).map(|r| r.deadline_at);
        let results = self.results.as_ref().map(|(at, _)| *at);
        deadlines
            .chain(next_start(self))
            .chain(next_silence(self))
            .chain(next_reminder(self))
            .chain(next_look(self))
            .chain(next_check(self))
            .chain(results)
            .min()
    }

    /// The kind that makes members of this name.
    pub(super) fn maker(&self, name: &MemberName) -> Option<usize> {
        self.makers.get(&name.folded()).copied()
    }

    /// The open request for this run.
    pub(super) fn request_for(
        &self,
        name: &MemberName,
        incarnation: &Incarnation,
    ) -> Option<&ShutdownRequest> {
        self.open.values().find(|r| r.member == *name && r.incarnation == *incarnation)
    }
}
