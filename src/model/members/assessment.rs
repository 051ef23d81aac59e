//! Decides what a member is doing, from all evidence at once. `status`, `ps`, `watch`, `up`,
//! `explain`, `wait` and the tools of MCP show this decision and make none of their own.

use strum::{VariantArray as _, VariantNames as _};

use crate::id::TaskId;
use crate::members::lifecycle::{Cause, MemberState};
use crate::members::need::Need;
use crate::members::record::{MemberRecord, PlannedRestart, UNRECOGNISED};
use crate::time::{Timestamp, human};

/// Time for which a program that took a message counts as working on it, in ms, until it reports
/// the end of a turn. Claude Code 2.1.34 marks mail as read 0.2 s before it reports that it works.
const TAKING_UP_MS: u64 = 5_000;
/// Time after its turn for which a native program may begin the next one with mail that it took
/// during that turn, in ms. 2.1.34 rested for up to 0.7 s in between.
const NEXT_TURN_MS: u64 = 1_500;
/// Time after which a member that rests and has not taken its mail does not respond, in ms.
const UNTAKEN_MS: u64 = 60_000;
/// The evidence for [`Doing::Retrying`].
const RETRIES: &str = "its screen shows that it repeats a failed request by itself";

/// The activity of a member.
#[derive(Debug, Clone, PartialEq, Eq, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum Doing {
    /// Its program has not proven yet that it runs.
    Starting,
    /// It has a turn, a task or a message to work on.
    Working,
    /// In its turn, its program repeats a failed request by itself.
    Retrying,
    /// It needs a decision or help before it can continue.
    Waiting(Need),
    /// Its program has said or shown that it rests, and nothing is on its way to it.
    Idle,
    /// A plain program runs, which takes neither messages nor tasks; or an agent whose screen is
    /// not recognised.
    Running,
    /// It should have begun something and has not.
    Unresponsive,
    /// It was asked to shut down.
    Stopping,
    /// Its run has ended, and the lead starts it again.
    Restarting(PlannedRestart),
    /// Its run is over, in this state.
    Ended(MemberState),
}

impl Doing {
    /// The name in `--json`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Doing::Ended(state) => state.as_str(),
            other => other.into(),
        }
    }

    /// All names that [`Doing::as_str`] returns.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let ended = MemberState::VARIANTS.iter().filter(|state| state.is_over());
        let doing = Doing::VARIANTS.iter().copied().filter(|name| *name != "ended");
        doing.chain(ended.map(|state| state.as_str()))
    }

    /// The name for people: `waits for you`, `idle`.
    pub fn words(&self) -> &'static str {
        match self {
            Doing::Waiting(Need::Limit) => "at its limit",
            Doing::Waiting(_) => "waits for you",
            other => other.as_str(),
        }
    }

    pub fn need(&self) -> Option<Need> {
        match self {
            Doing::Waiting(need) => Some(*need),
            _ => None,
        }
    }

    /// Returns true if a person should see to the member: it waits for one, does not respond, or
    /// has ended without a request.
    pub fn needs_attention(&self) -> bool {
        match self {
            Doing::Waiting(_) | Doing::Unresponsive => true,
            Doing::Ended(state) => *state != MemberState::Completed,
            Doing::Starting
            | Doing::Working
            | Doing::Retrying
            | Doing::Idle
            | Doing::Running
            | Doing::Stopping
            | Doing::Restarting(_) => false,
        }
    }
}

/// Messages in a member's mailbox that it has not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UntakenMail {
    pub count: usize,
    /// The time of the oldest one, if its sender wrote a valid one.
    pub since: Option<Timestamp>,
}

/// An open request of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenRequest {
    pub need: Need,
    pub id: String,
    /// The object of the request, on one line: foreign text.
    pub summary: String,
    pub since: Timestamp,
}

/// The screen of a program as its profile reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScreenSign {
    Working,
    /// It repeats a failed request by itself, described by this text.
    Retrying(String),
    Idle,
    /// It shows a dialog or an error, described by this text.
    Waits(Need, String),
}

/// All that is known about a member.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'e> {
    /// The record of its latest run; `None` if phalanx did not start it.
    pub record: Option<&'e MemberRecord>,
    /// True if the launcher of that run is proven dead; of a member that runs inside of its lead,
    /// if that is.
    pub is_dead: bool,
    /// The team has a running lead.
    pub is_led: bool,
    /// It has no process of its own: it runs in that of a lead of another program.
    pub is_inside: bool,
    /// `isActive` of the team file.
    pub is_active: Option<bool>,
    /// The last change of the team file, if that says that a working program is not active.
    pub rested_at: Option<Timestamp>,
    pub mail: Option<UntakenMail>,
    /// The last change of its mailbox, if nothing in it is untaken.
    pub mail_changed_at: Option<Timestamp>,
    /// Its oldest open request.
    pub request: Option<&'e OpenRequest>,
    /// The task in progress that it owns.
    pub task: Option<TaskId>,
    /// A task that a worker is about to begin.
    pub next_task: Option<TaskId>,
    /// A task that was assigned to it, which it could begin.
    pub given: Option<TaskId>,
    /// The screen as read for this decision; `None` if it was not read.
    pub screen: Option<&'e ScreenSign>,
    pub now: Timestamp,
}

/// The decision about a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    pub doing: Doing,
    /// The time of the last change, if known.
    pub since: Option<Timestamp>,
    /// The object of a wait, the cause of an end, the work: text for people, partly foreign.
    pub reason: Option<String>,
    /// The evidence that decided, as a clause: `its process is alive`.
    pub because: String,
    /// The next time at which the same evidence may mean something else.
    pub lapses_at: Option<Timestamp>,
}

impl Assessment {
    fn new(doing: Doing, since: Option<Timestamp>, because: impl Into<String>) -> Assessment {
        Assessment { doing, since, reason: None, because: because.into(), lapses_at: None }
    }

    fn with_reason(self, reason: Option<String>) -> Assessment {
        Assessment { reason, ..self }
    }
}

/// Decides what the member is doing. The order is that of the proofs: a process that is gone, then
/// what holds the member up, then its work.
pub fn assess(evidence: &Evidence) -> Assessment {
    let found = match evidence.record {
        None => assess_unrecorded(evidence),
        Some(record) => ended(evidence, record)
            .or_else(|| held_up(evidence, record))
            .or_else(|| failed_turn(evidence, record))
            .unwrap_or_else(|| at_work(evidence, record)),
    };
    let rests_since = evidence.record.map(|record| {
        record.state_since.max(record.turn_ended_at.max(evidence.rested_at).unwrap_or_default())
    });
    let limits = [
        (evidence.mail_changed_at, TAKING_UP_MS),
        (rests_since, NEXT_TURN_MS),
        (evidence.mail.and_then(|mail| mail.since), UNTAKEN_MS),
    ];
    let lapses = limits.into_iter().filter_map(|(since, limit)| Some(since?.plus_ms(limit)));
    Assessment { lapses_at: lapses.filter(|at| *at > evidence.now).min(), ..found }
}

/// A member that phalanx did not start: only the team's files describe it.
fn assess_unrecorded(evidence: &Evidence) -> Assessment {
    if let Some(asked) = waits_for_answer(evidence) {
        return asked;
    }
    if evidence.is_inside && evidence.is_dead {
        let because = "it ran in the process of its lead, which has ended";
        return Assessment::new(Doing::Ended(MemberState::Disappeared), None, because);
    }
    match evidence.is_active {
        Some(false) => untaken(evidence).unwrap_or_else(|| {
            Assessment::new(Doing::Idle, None, "the team file says that it is not active")
        }),
        Some(true) => Assessment::new(Doing::Working, None, "the team file says that it is active"),
        None if evidence.is_inside => {
            let because = "it runs in the process of its lead, which does not say what it does";
            Assessment::new(Doing::Running, None, because)
        }
        None => Assessment::new(Doing::Working, None, "the team file does not say that it rests"),
    }
}

/// A run that is over, or whose processes are gone while its record is still open (CR-01).
fn ended(evidence: &Evidence, record: &MemberRecord) -> Option<Assessment> {
    let is_recorded = record.state.is_over();
    if !is_recorded && record.exit.is_none() && !evidence.is_dead {
        return None;
    }
    let cause = record.exit.as_ref().map_or(Cause::Vanished, |e| Cause::Ended { code: e.code });
    let state = match is_recorded {
        true => record.state,
        false => record.state.after(cause).unwrap_or(MemberState::Disappeared),
    };
    let since = match (&record.exit, is_recorded) {
        (_, true) => Some(record.state_since),
        (Some(exit), false) => Some(exit.at),
        (None, false) => None,
    };
    let because = match (&record.exit, is_recorded) {
        (Some(exit), _) => {
            format!("its launcher recorded the end of its program: {}", exit.describe())
        }
        (None, true) => format!("its record says `{}`", state.as_str()),
        (None, false) => "its launcher is gone and recorded no end".to_owned(),
    };
    let reason = match is_recorded {
        true => record.reason.clone().or_else(|| record.ending()),
        false => record.ending().or_else(|| record.reason.clone()),
    };
    let reason = match record.gave_up_after {
        Some(failures) => {
            let first = reason.map(|reason| format!("{reason}; ")).unwrap_or_default();
            Some(format!("{first}not started again after {failures} failures in a row"))
        }
        None => reason,
    };
    let Some(restart) = record.restart.filter(|_| evidence.is_led && record.is_restarted_by_lead())
    else {
        return Some(Assessment::new(Doing::Ended(state), since, because).with_reason(reason));
    };
    let pause = match restart.at.since(evidence.now) {
        0 => "now".to_owned(),
        left => format!("in {}", human(left)),
    };
    let failures = match (restart.failures, is_failure(state)) {
        (1, true) => "1 failure".to_owned(),
        (some, true) => format!("{some} failures"),
        (_, false) => "its end".to_owned(),
    };
    let after = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let text = format!("{pause}, after {failures}{after}");
    Some(Assessment::new(Doing::Restarting(restart), since, because).with_reason(Some(text)))
}

fn is_failure(state: MemberState) -> bool {
    matches!(state, MemberState::Failed | MemberState::Disappeared)
}

/// Anything that keeps a living run from its work.
fn held_up(evidence: &Evidence, record: &MemberRecord) -> Option<Assessment> {
    let since = Some(record.state_since);
    if let Some(limit) = record.limit() {
        let said = Some(limit.said.clone());
        let because = "its provider answered that its usage limit is reached";
        return Some(Assessment::new(Doing::Waiting(Need::Limit), None, because).with_reason(said));
    }
    if record.state == MemberState::ShutdownRequested {
        let because = "it was asked to shut down and has not answered";
        return Some(
            Assessment::new(Doing::Stopping, since, because).with_reason(record.reason.clone()),
        );
    }
    if let Some(asked) = waits_for_answer(evidence) {
        return Some(asked);
    }
    let awaits = match record.state {
        MemberState::AwaitingPlan => Some(Need::Plan),
        MemberState::AwaitingPermission => Some(Need::Permission),
        _ => None,
    };
    if let Some(need) = awaits {
        let because = format!("its record says `{}`", record.state.as_str());
        let waiting = Assessment::new(Doing::Waiting(need), since, because);
        return Some(waiting.with_reason(record.reason.clone()));
    }
    if let Some(ScreenSign::Waits(need, text)) = evidence.screen {
        let waiting = Assessment::new(Doing::Waiting(*need), None, "its screen shows it");
        return Some(waiting.with_reason(Some(text.clone())));
    }
    // A screen that was read now is newer than what the record says about an earlier one.
    if let Some((need, text)) = record.need().filter(|_| evidence.screen.is_none()) {
        let waiting = Assessment::new(Doing::Waiting(need), None, "its screen shows it");
        return Some(waiting.with_reason(Some(text.to_owned())));
    }
    if let Some(prompt) = &record.prompt {
        let because = "its program reads its terminal after a line that ends as a prompt";
        let waiting = Assessment::new(Doing::Waiting(Need::Prompt), Some(prompt.since), because);
        return Some(waiting.with_reason(Some(prompt.line.clone())));
    }
    if matches!(record.state, MemberState::Pending | MemberState::Starting) {
        let because = match record.placement {
            Some(_) => "its program has not proven yet that it runs",
            None => "its start was requested, and it has no place yet",
        };
        return Some(Assessment::new(Doing::Starting, since, because));
    }
    if let Some(check) = record.open_check() {
        let condition = check.condition();
        let (doing, reason) = match &record.readiness.overdue {
            Some(overdue) => (Doing::Unresponsive, overdue.clone()),
            None => (Doing::Starting, format!("until {condition}")),
        };
        let because = "its program runs, and its `ready` check has not passed";
        return Some(Assessment::new(doing, since, because).with_reason(Some(reason)));
    }
    let silent = record.unresponsive.as_ref()?;
    let because = "it has not taken the assignment of a task, or hangs";
    let silence = Assessment::new(Doing::Unresponsive, None, because);
    Some(silence.with_reason(Some(silent.clone())))
}

/// A request counts until the record has moved on after it: the member may have been answered by
/// other means, or have continued without an answer.
fn waits_for_answer(evidence: &Evidence) -> Option<Assessment> {
    let asked = evidence.request?;
    let has_moved_on = evidence.record.is_some_and(|record| {
        let is_free = matches!(record.state, MemberState::Working | MemberState::Idle);
        is_free && record.state_since > asked.since
    });
    if has_moved_on {
        return None;
    }
    let because = format!("its request {} is open", asked.id);
    let waiting = Assessment::new(Doing::Waiting(asked.need), Some(asked.since), because);
    Some(waiting.with_reason(Some(asked.summary.clone())))
}

/// A run that rests because its last turn ended with an error.
fn failed_turn(evidence: &Evidence, record: &MemberRecord) -> Option<Assessment> {
    let error = record.turn_error()?;
    let rests = match at_work(evidence, record).doing {
        Doing::Idle => true,
        // 2.1.34 does not say in the team file that such a turn is over. The lead may have recorded
        // its beginning a little later.
        Doing::Working => {
            let is_late = record.is_native() && evidence.is_active == Some(true);
            let took = evidence.mail_changed_at.filter(|at| *at > error.at);
            let is_next = record.state_since > error.at.plus_ms(TAKING_UP_MS)
                || untaken(evidence).is_some()
                || took.is_some_and(|at| evidence.now.since(at) < TAKING_UP_MS);
            is_late && !is_next && evidence.screen != Some(&ScreenSign::Working)
        }
        _ => false,
    };
    if !rests {
        return None;
    }
    let need = if error.needs_login { Need::Login } else { Need::Error };
    let because = "its program says that its last turn ended with this error";
    let waiting = Assessment::new(Doing::Waiting(need), Some(error.at), because);
    Some(waiting.with_reason(Some(error.said)))
}

/// A living run that nothing holds up.
fn at_work(evidence: &Evidence, record: &MemberRecord) -> Assessment {
    let since = Some(record.state_since);
    // A screen that was read now no longer shows what the record says of an earlier one.
    let reason = record.reason.clone().filter(|_| !record.is_blocked());
    let retries = match evidence.screen {
        Some(ScreenSign::Retrying(said)) => Some(said.as_str()),
        Some(_) => None,
        None => record.retrying(),
    };
    let works = |since, because: &str| match retries {
        Some(said) => {
            Assessment::new(Doing::Retrying, since, RETRIES).with_reason(Some(said.to_owned()))
        }
        None => Assessment::new(Doing::Working, since, because),
    };
    let is_working = record.state == MemberState::Working;
    if !record.reads_mail() {
        return match record.request.task.or(evidence.task) {
            Some(task) => {
                works(since, "it was started for a task").with_reason(Some(format!("task #{task}")))
            }
            None => Assessment::new(Doing::Running, since, "its process is alive"),
        };
    }
    if record.is_native() {
        if let Some(true) = evidence.is_active {
            let since = since.filter(|_| is_working);
            return works(since, "the team file says that it is active");
        }
        if matches!(evidence.screen, Some(ScreenSign::Working | ScreenSign::Retrying(_))) {
            return works(None, "its screen shows that it works");
        }
    }
    if reason.as_deref() == Some(UNRECOGNISED) {
        let because = "its process is alive, and no rule of its profile matches its screen";
        return Assessment::new(Doing::Running, since, because).with_reason(reason);
    }
    // What a native program says in the team file is newer than what the lead has recorded.
    let says_idle = record.is_native() && evidence.is_active == Some(false);
    if is_working && !says_idle {
        let reason = retries.map(str::to_owned).or(reason);
        return works(since, "it reported that it works").with_reason(reason);
    }
    if let Some(untaken) = untaken(evidence) {
        return untaken;
    }
    if let Some(task) = evidence.task.filter(|_| record.runs_commands()) {
        let because = "the board says that its task is in progress";
        return works(None, because).with_reason(Some(format!("task #{task}")));
    }
    if let Some(task) = evidence.next_task {
        return works(None, "it is about to begin a task")
            .with_reason(Some(format!("task #{task}")));
    }
    let ends = [record.turn_ended_at, since, evidence.rested_at];
    let rests_since = ends.into_iter().flatten().max();
    let took = evidence.mail_changed_at.filter(|at| {
        !record.runs_commands()
            && rests_since.is_none_or(|since| since < *at)
            && evidence.now.since(*at) < TAKING_UP_MS
    });
    if took.is_some() && evidence.screen != Some(&ScreenSign::Idle) {
        return works(took, "it has just taken its mail");
    }
    let has_taken = record.is_native() && evidence.mail_changed_at.is_some();
    if has_taken && rests_since.is_some_and(|since| evidence.now.since(since) < NEXT_TURN_MS) {
        return works(since, "its turn has just ended, and mail of that time begins the next one");
    }
    let because = match (says_idle, evidence.screen) {
        (_, Some(ScreenSign::Idle)) => "its screen shows that it rests, and it has taken all mail",
        (true, _) => "the team file says that it is not active, and it has taken all mail",
        (false, _) => "it reported that it rests, and it has taken all mail",
    };
    let not_begun = evidence.given.filter(|_| evidence.task.is_none());
    let not_begun = not_begun.map(|task| format!("has not begun #{task}"));
    Assessment::new(Doing::Idle, rests_since, because).with_reason(not_begun.or(reason))
}

fn untaken(evidence: &Evidence) -> Option<Assessment> {
    let mail = evidence.mail.filter(|mail| mail.count > 0)?;
    let messages = if mail.count == 1 { "message" } else { "messages" };
    let text = format!("{} {messages} on the way to it", mail.count);
    let is_late = mail.since.is_some_and(|since| evidence.now.since(since) >= UNTAKEN_MS);
    let doing = if is_late { Doing::Unresponsive } else { Doing::Working };
    let because = "its mailbox holds what it has not taken";
    Some(Assessment::new(doing, mail.since, because).with_reason(Some(text)))
}

#[cfg(test)]
mod tests;
