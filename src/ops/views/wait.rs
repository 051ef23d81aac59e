//! `wait`: blocks a script until members or a task reach a state.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::decisions::decide;
use crate::members::assess::{self, SCREEN_LINES, TeamEvidence};
use crate::members::status::ShownState;
use crate::members::{output, profiles};
use crate::starting::spawn;
use crate::{Context, OpsError, hosts};
use model::board::Board;
use model::board::task::{Task, TaskState};
use model::board::task_ref::TaskRef;
use model::decisions::question::Question;
use model::id::{Incarnation, MemberName};
use model::members::assessment::{Doing, ScreenSign};
use model::members::lifecycle::MemberState;
use model::members::need::Need;
use model::members::record::MemberRecord;
use model::team::Team;
use model::text;
use store::{TeamChanges, TeamStore};
use sys::clock::Deadline;

/// The state that is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Until {
    /// The member is ready as its profile defines it.
    Ready,
    /// It is idle: it has taken what was sent to it, and its turn has ended.
    Idle,
    /// Its screen has not changed for this time.
    Quiet(Duration),
    /// It has ended.
    Gone,
    /// It is shown in this state, by the word of `status --json`.
    State(String),
    /// The tasks have ended.
    Tasks(Vec<TaskRef>),
    /// All tasks have ended, or wait for one that has not been completed.
    Done,
}

impl Until {
    fn is_about_tasks(&self) -> bool {
        matches!(self, Until::Tasks(_) | Until::Done)
    }
}

/// A member or a task that has reached the state.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Came {
    /// Name of the member, or id of the task.
    pub name: String,
    pub state: String,
    /// The need of a member that waits, and the command that answers it: text for people, partly
    /// foreign.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<String>,
    /// How the program of an ended member, or the command of a task, has exited, and why that is a
    /// failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Came {
    fn new(name: impl ToString, state: &str) -> Came {
        let (name, state) = (name.to_string(), state.to_owned());
        Came { name, state, needs: None, exit_code: None, signal: None, reason: None }
    }

    fn of_task(board: &Board, task: &Task) -> Came {
        let outcome = task.extra.outcome.as_ref();
        Came {
            exit_code: outcome.and_then(|outcome| outcome.exit_code),
            signal: outcome.and_then(|outcome| outcome.signal),
            reason: task.extra.reason.clone(),
            ..Came::new(task.id, board.state(task).as_str())
        }
    }

    /// Returns false for what ended without success, if its end was waited for; for exit codes.
    pub fn is_good(&self, until: &Until) -> bool {
        match until {
            Until::Tasks(_) => self.state == TaskState::Completed.as_str(),
            Until::Done => [TaskState::Completed, TaskState::Cancelled]
                .iter()
                .any(|s| s.as_str() == self.state),
            Until::Gone => {
                let bad = [MemberState::Failed, MemberState::Disappeared];
                // No process has recorded its end yet: only how it has exited is known.
                let has_failed =
                    self.signal.is_some() || self.exit_code.is_some_and(|code| code != 0);
                let is_open = self.state == "gone" && has_failed;
                !is_open && bad.iter().all(|state| state.as_str() != self.state)
            }
            _ => true,
        }
    }
}

/// The poll interval: a process can end without writing anything.
const SWEEP: Duration = Duration::from_millis(500);
/// Interval of reads of the first screens, whose changes are not announced.
const SCREEN_SWEEP: Duration = Duration::from_millis(200);
/// Interval of questions to other hosts: a launcher that was killed there writes nothing.
const HOSTS: Duration = Duration::from_secs(10);

/// A wait until members or a task reach a state. It keeps what other hosts have answered.
pub struct StateWait {
    ctx: Context,
    team: TeamStore,
    names: Vec<MemberName>,
    any: bool,
    until: Until,
    limit: Option<Duration>,
    deadline: Option<Deadline>,
    changes: TeamChanges,
    /// The runs on other hosts that their hosts report as dead.
    dead: Vec<Incarnation>,
    ask_hosts: Deadline,
    /// The screen of each member, and the time for which it has to stay the same.
    screens: BTreeMap<MemberName, (String, Deadline)>,
}

impl StateWait {
    /// Begins a wait until all of `names`, or with `any` one of them, have reached the state. The
    /// limit counts from here.
    ///
    /// # Errors
    /// The team cannot be watched; as [`find`](crate::board::task::find) for a key.
    pub fn begin(
        ctx: &Context,
        team: &TeamStore,
        names: &[MemberName],
        any: bool,
        until: &Until,
        limit: Option<Duration>,
    ) -> Result<StateWait, OpsError> {
        // A shorter wait asks once.
        let first = limit.map_or(HOSTS, |limit| HOSTS.min(limit / 2));
        Ok(StateWait {
            ctx: ctx.clone(),
            team: team.clone(),
            names: names.to_vec(),
            any,
            until: match until {
                Until::Tasks(tasks) => {
                    let ids = crate::board::task::find_all(team, tasks)?;
                    Until::Tasks(ids.into_iter().map(TaskRef::Id).collect())
                }
                other => other.clone(),
            },
            limit,
            deadline: limit.map(Deadline::after),
            changes: team.changes()?,
            dead: Vec::new(),
            ask_hosts: Deadline::after(first),
            screens: BTreeMap::new(),
        })
    }

    pub fn team(&self) -> &TeamStore {
        &self.team
    }

    /// Returns a description of the wait for a person, with the present state of the members, that
    /// can be computed again while the wait goes on.
    pub fn describer(&self) -> impl Fn() -> String + Send + 'static {
        let (ctx, team, names) = (self.ctx.clone(), self.team.clone(), self.names.clone());
        let (any, until, limit) = (self.any, self.until.clone(), self.limit);
        move || words(&states(&ctx, &team, &names), any, &until, limit)
    }

    /// Waits until the state is reached.
    ///
    /// # Errors
    /// [`OpsError::Deadline`] if that takes longer than the limit; those of [`StateWait::step`].
    pub fn finish(mut self) -> Result<Vec<Came>, OpsError> {
        let left = self.deadline.map(|deadline| deadline.remaining());
        let came = self.step(left)?;
        came.ok_or_else(|| OpsError::Deadline {
            what: describe(&states(&self.ctx, &self.team, &self.names), &self.until),
            limit: self.limit.unwrap_or_default(),
        })
    }

    /// Waits for at most `limit`; `None` if the state is not reached by then.
    ///
    /// # Errors
    /// [`OpsError::Failed`] for a member that has ended and so can no longer become ready, idle or
    /// quiet, and for a plain program that is to become idle; [`OpsError::no_such_member`] for an
    /// unknown name.
    pub fn step(&mut self, limit: Option<Duration>) -> Result<Option<Vec<Came>>, OpsError> {
        match self.advance(limit) {
            // A team is only deleted after its members have ended.
            Err(_) if self.until == Until::Gone && !self.team.exists() => {
                Ok(Some(self.names.iter().map(|name| Came::new(name, "gone")).collect()))
            }
            other => other,
        }
    }

    fn advance(&mut self, limit: Option<Duration>) -> Result<Option<Vec<Came>>, OpsError> {
        let slice = limit.map(Deadline::after);
        loop {
            if self.ask_hosts.expired() && !self.until.is_about_tasks() {
                self.dead = self.dead_elsewhere()?;
                self.ask_hosts = Deadline::after(HOSTS);
            }
            let (came, open) = self.check()?;
            if open == 0 || (self.any && !came.is_empty()) {
                return Ok(Some(came));
            }
            let left = slice.map_or(SWEEP, |slice| slice.remaining().min(SWEEP));
            if left.is_zero() {
                return Ok(None);
            }
            self.changes.wait(left);
        }
    }

    /// Returns who has reached the state, and the number of the others.
    fn check(&mut self) -> Result<(Vec<Came>, usize), OpsError> {
        if self.until.is_about_tasks() {
            return self.check_tasks();
        }
        let team = self.team.clone();
        let seen = Seen::read(&self.ctx, &team)?;
        let evidence = seen.evidence(&team);
        let mut came = Vec::new();
        for name in &self.names.clone() {
            if let Some(state) = self.reached(&seen, &evidence, name)? {
                let record = seen.record(name);
                let exit = record.and_then(|record| record.exit.as_ref());
                let exit = exit.filter(|_| self.until == Until::Gone);
                came.push(Came {
                    needs: evidence.needs(name, record),
                    exit_code: exit.and_then(|exit| exit.code),
                    signal: exit.and_then(|exit| exit.signal),
                    reason: exit.and(record).map(MemberRecord::end_reason),
                    ..Came::new(name, &state)
                });
            }
        }
        let open = self.names.len() - came.len();
        Ok((came, open))
    }

    /// Returns the tasks that have ended or cannot go on, and the number of the others.
    fn check_tasks(&self) -> Result<(Vec<Came>, usize), OpsError> {
        let board = self.team.board()?;
        let get = |task: &TaskRef| {
            crate::board::task::get(&self.team, crate::board::task::find(&self.team, task)?)
        };
        let tasks: Vec<Task> = match &self.until {
            Until::Tasks(tasks) => tasks.iter().map(get).collect::<Result<_, _>>()?,
            _ => board.work().cloned().collect(),
        };
        let is_stuck = self.until == Until::Done && !board.can_move();
        let has_ended = |task: &&Task| task.state.is_over() || is_stuck;
        let came: Vec<Came> =
            tasks.iter().filter(has_ended).map(|task| Came::of_task(&board, task)).collect();
        let open = tasks.len() - came.len();
        Ok((came, open))
    }

    /// Returns the word for the state of a member that has reached it.
    fn reached(
        &mut self,
        seen: &Seen,
        evidence: &TeamEvidence,
        name: &MemberName,
    ) -> Result<Option<String>, OpsError> {
        let record = seen.record(name);
        let is_listed = seen.roster.member(name).is_some();
        if record.is_none() && !is_listed {
            if self.until == Until::Gone {
                return Ok(Some("gone".to_owned()));
            }
            return Err(OpsError::no_such_member(&self.team, name, &seen.roster.members));
        }
        let state = seen.assess(&self.ctx, &self.team, evidence, name);
        let is_dead = record.is_some_and(|record| self.dead.contains(&record.incarnation));
        let has_ended = is_dead || matches!(state.doing, Doing::Ended(_) | Doing::Restarting(_));
        if self.until == Until::Gone {
            // No process has recorded its end yet, so the recorded state is stale.
            let is_recorded = record.is_none_or(|record| record.state.is_over());
            let word = if is_recorded { state.doing.as_str() } else { "gone" };
            return Ok(has_ended.then(|| word.to_owned()));
        }
        if matches!(&self.until, Until::State(word) if word == state.doing.as_str()) {
            return Ok(Some(state.doing.as_str().to_owned()));
        }
        if has_ended {
            let how = state.reason.unwrap_or_else(|| "its process is gone".to_owned());
            return Err(OpsError::Failed { problem: format!("`{name}` has ended: {how}") });
        }
        let is_reached = match &self.until {
            Until::Ready => {
                record.is_none_or(|record| record.state.is_up() && is_ready(&self.ctx, record))
            }
            // An agent whose screen is not recognised has that as its reason.
            Until::Idle if state.doing == Doing::Running && state.reason.is_none() => {
                return Err(OpsError::Failed {
                    problem: format!(
                        "`{name}` is a plain program, which is never idle: `--until quiet` waits \
                         until it prints nothing, `--until gone` until it ends"
                    ),
                });
            }
            Until::Idle => state.doing == Doing::Idle,
            Until::Quiet(span) => self.is_quiet(name, *span)?,
            Until::Gone | Until::State(_) | Until::Tasks(_) | Until::Done => false,
        };
        Ok(is_reached.then(|| state.doing.as_str().to_owned()))
    }

    /// Returns true if the screen of a member is the same as `span` ago.
    fn is_quiet(&mut self, name: &MemberName, span: Duration) -> Result<bool, OpsError> {
        let now = output::peek(&self.ctx, &self.team, name, SCREEN_LINES)?;
        match self.screens.get(name) {
            Some((before, quiet)) if *before == now => Ok(quiet.expired()),
            _ => {
                self.screens.insert(name.clone(), (now, Deadline::after(span)));
                Ok(false)
            }
        }
    }

    /// Returns the runs of the members on other hosts that their hosts report as dead. The hosts
    /// have until the end of the whole wait, which can be longer than one step.
    fn dead_elsewhere(&self) -> Result<Vec<Incarnation>, OpsError> {
        let is_named = |record: &MemberRecord| self.names.contains(&record.name);
        let records = self.team.member_records()?;
        let records: Vec<MemberRecord> = records.into_iter().filter(is_named).collect();
        let left = self.deadline.map_or(hosts::HOSTS_ANSWER, |deadline| deadline.remaining());
        let limit = left.min(hosts::HOSTS_ANSWER);
        let dead = hosts::dead_runs(&self.ctx, &self.team, &records, limit);
        Ok(dead.into_iter().map(|run| run.incarnation).collect())
    }
}

/// The files of a team that say what its members are doing.
struct Seen {
    roster: Team,
    records: Vec<MemberRecord>,
    board: Board,
    questions: Vec<Question>,
    is_led: bool,
}

impl Seen {
    fn read(ctx: &Context, team: &TeamStore) -> Result<Seen, OpsError> {
        let is_led = decide::process_if_not_led(ctx, team)?;
        // The roster first, because a member has its record before it joins.
        Ok(Seen {
            roster: team.team()?,
            records: team.member_records()?,
            board: team.board()?,
            questions: team.questions()?,
            is_led,
        })
    }

    fn record(&self, name: &MemberName) -> Option<&MemberRecord> {
        self.records.iter().find(|record| record.name == *name)
    }

    fn evidence<'s>(&'s self, team: &'s TeamStore) -> TeamEvidence<'s> {
        let Seen { roster, records, board, questions, is_led } = self;
        TeamEvidence::gather(team, roster, board, records, questions, *is_led)
    }

    /// Decides what a member is doing. The screen of a native program that seems idle is read, too.
    fn assess(
        &self,
        ctx: &Context,
        team: &TeamStore,
        evidence: &TeamEvidence,
        name: &MemberName,
    ) -> ShownState {
        let record = self.record(name);
        let found = evidence.assess(name, record, None);
        let screen = record
            .filter(|record| record.is_native() && found.doing == Doing::Idle)
            .and_then(|record| assess::read_screen(ctx, team, record));
        match screen {
            Some(screen) => ShownState::from(evidence.assess(name, record, Some(&screen))),
            None => ShownState::from(found),
        }
    }
}

/// Returns each member with what it is doing, in words. Only the name, if the team cannot be read.
fn states(ctx: &Context, team: &TeamStore, names: &[MemberName]) -> Vec<String> {
    let Ok(seen) = Seen::read(ctx, team) else {
        return names.iter().map(|n| n.to_string()).collect();
    };
    let evidence = seen.evidence(team);
    let is_known =
        |name: &MemberName| seen.record(name).is_some() || seen.roster.member(name).is_some();
    let state = |name: &MemberName| {
        if is_known(name) {
            let state = seen.assess(ctx, team, &evidence, name);
            format!("{name} ({})", text::short(&state.describe(), 80))
        } else {
            name.to_string()
        }
    };
    names.iter().map(state).collect()
}

/// See [`StateWait::describer`].
fn words(states: &[String], any: bool, until: &Until, limit: Option<Duration>) -> String {
    let all = states.join(", ");
    let who = if any && states.len() > 1 { format!("one of {all}") } else { all };
    let what = match until {
        Until::Ready => format!("{who} to be ready"),
        Until::Idle => format!("{who} to be idle"),
        Until::Quiet(span) => format!("{who} to be quiet for {} s", span.as_secs_f64()),
        Until::Gone => format!("{who} to end"),
        Until::State(word) => format!("{who} to be {word}"),
        Until::Tasks(tasks) => format!("{} to end", listed(tasks)),
        Until::Done => "all tasks to end".to_owned(),
    };
    match limit {
        Some(limit) => format!("waiting for {what}, at most {} s", limit.as_secs_f64()),
        None => format!("waiting for {what}, without a limit (`--timeout S` sets one)"),
    }
}

fn describe(states: &[String], until: &Until) -> String {
    let who = states.join(", ");
    match until {
        Until::Ready => format!("{who} did not become ready"),
        Until::Idle => format!("{who} did not become idle"),
        Until::Quiet(span) => format!("{who} was not quiet for {} s", span.as_secs_f64()),
        Until::Gone => format!("{who} did not end"),
        Until::State(word) => format!("{who} was not {word}"),
        Until::Tasks(tasks) => format!("{} did not end", listed(tasks)),
        Until::Done => "the tasks did not end".to_owned(),
    }
}

fn listed(tasks: &[TaskRef]) -> String {
    let ids: Vec<String> = tasks.iter().map(|task| format!("#{task}")).collect();
    format!("{} {}", if ids.len() == 1 { "task" } else { "tasks" }, ids.join(", "))
}

/// Returns what these members ask on their first screens, if they do so within
/// `limit`, each with the command that answers it.
///
/// # Errors
/// A team that cannot be read.
pub fn first_needs(
    ctx: &Context,
    team: &TeamStore,
    names: &[MemberName],
    limit: Duration,
) -> Result<Vec<(MemberName, String)>, OpsError> {
    let deadline = Deadline::after(limit);
    let changes = team.changes()?;
    let mut open: Vec<MemberName> = names.to_vec();
    let mut found = Vec::new();
    loop {
        let seen = Seen::read(ctx, team)?;
        let evidence = seen.evidence(team);
        let is_last = deadline.expired();
        open.retain(|name| {
            let asks = |record: &&MemberRecord| {
                let profile = profiles::find(ctx, &record.request.profile);
                profile.is_ok_and(|profile| !profile.answers.is_empty())
            };
            let Some(record) = seen.record(name).filter(asks) else { return false };
            let doing = evidence.assess(name, Some(record), None).doing;
            let is_filed_soon = doing.need() == Some(Need::Trust) && !evidence.has_request(name);
            let needs = evidence.needs(name, Some(record));
            if let Some(needs) = needs.filter(|_| is_last || !is_filed_soon) {
                found.push((name.clone(), needs));
                return false;
            }
            // Its question is not filed yet, or its screen is still empty.
            let screen = record.is_native().then(|| assess::read_screen(ctx, team, record));
            match screen {
                Some(screen) => matches!(screen, None | Some(ScreenSign::Waits(..))),
                None => is_filed_soon || doing == Doing::Starting,
            }
        });
        if open.is_empty() || is_last {
            return Ok(found);
        }
        changes.wait(deadline.remaining().min(SCREEN_SWEEP));
    }
}

/// Returns the members that can become idle: all but plain programs.
pub fn who_can_be_idle(team: &TeamStore) -> Result<Vec<MemberName>, OpsError> {
    let (roster, records) = (team.team()?, team.member_records()?);
    let is_plain = |name: &MemberName| {
        let record = records.iter().find(|record| record.name == *name);
        record.is_some_and(|record| !record.reads_mail() && record.request.task.is_none())
    };
    let names = roster.teammates().map(|member| member.name.clone());
    Ok(names.filter(|name| !is_plain(name)).collect())
}

/// Returns true for a run that is ready as its profile defines it. `spawn --until running` accepts
/// a member before that.
fn is_ready(ctx: &Context, record: &MemberRecord) -> bool {
    let Ok(profile) = profiles::find(ctx, &record.request.profile) else { return true };
    // A one-shot run reports nothing until it ends.
    let once = profile.reads_mail && !record.reads_mail();
    once || spawn::left_until_ready(record, profile.ready).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_message_names_the_goal_and_the_limit() {
        let states = ["ann (working)".to_owned(), "bob (idle)".to_owned()];
        let half = Some(Duration::from_millis(2500));
        assert_eq!(
            words(&states, false, &Until::Idle, half),
            "waiting for ann (working), bob (idle) to be idle, at most 2.5 s"
        );
        assert_eq!(
            words(&states, true, &Until::Gone, None),
            "waiting for one of ann (working), bob (idle) to end, without a limit \
             (`--timeout S` sets one)"
        );
        let task = Until::Tasks(vec![TaskRef::Id(model::id::TaskId(3))]);
        assert_eq!(words(&[], false, &task, half), "waiting for task #3 to end, at most 2.5 s");
    }
}
