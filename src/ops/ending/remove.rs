//! Removes runs that are over: takes the members off the roster, releases their tasks, and
//! notifies the lead and the journal. Every step is idempotent.

use std::collections::BTreeMap;

use crate::board::task;
use crate::ending::stop;
use crate::hosts::stop_mode::StopMode;
use crate::mail::post::{Post, send_all};
use crate::members::{account, lead, presence};
use crate::team::worktree;
use crate::{Context, OpsError};
use model::board::Board;
use model::board::task::Task;
use model::id::{Incarnation, MemberName};
use model::mail::protocol::{Message, TeammateTerminated};
use model::members::lifecycle::Cause;
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use model::text;
use store::{StoreError, TeamStore};
use sys::failpoint;

/// Upper bound of the time between the last action of a process and its exit.
const LAST_WORDS_MS: u64 = 10_000;

/// Number of tasks that a notice names, and the characters of each subject.
const TASKS_NAMED: usize = 5;
const SUBJECT: usize = 80;

/// A run that leaves the roster.
struct LeavingRun<'a> {
    run: &'a MemberRemoval,
    /// Its record, if it has one.
    record: Option<MemberRecord>,
    /// It was on the roster until now.
    was_on: bool,
}

/// The tasks that ended runs held.
#[derive(Default)]
struct ReleasedRuns<'a> {
    tasks: BTreeMap<&'a Incarnation, Result<Vec<Task>, OpsError>>,
    /// The board before they were released.
    board: Board,
    /// The failure of several runs at once, which are not among `tasks`.
    failure: Option<OpsError>,
}

impl<'a> ReleasedRuns<'a> {
    /// Releases what these runs held, under one lock of the board; a run that was released before is
    /// skipped, because the roster's lock may have to be taken several times.
    fn release(&mut self, team: &TeamStore, leaving: &[LeavingRun<'a>]) {
        let due = leaving.iter().map(|one| one.run);
        let due = due.filter(|run| !self.tasks.contains_key(&run.incarnation));
        let (runs, names): (Vec<_>, Vec<_>) = due.map(|run| (&run.incarnation, &run.name)).unzip();
        if runs.is_empty() {
            return;
        }
        match task::release_all(team, &names) {
            Ok((tasks, board)) => {
                self.tasks.extend(runs.into_iter().zip(tasks));
                (self.board, self.failure) = (board, None);
            }
            Err(e) => self.failure = Some(e),
        }
    }
}

/// A run that has left the team, and the tasks that it gave back.
#[derive(Debug, Clone)]
pub struct RemovedMember<'a> {
    pub run: &'a MemberRemoval,
    pub released: Vec<Task>,
    /// It was started for one task.
    pub(crate) is_task_run: bool,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberRemoval {
    pub name: MemberName,
    pub incarnation: Incarnation,
    pub cause: Cause,
    pub reason: String,
}

impl MemberRemoval {
    pub(crate) fn of(record: &MemberRecord, cause: Cause, reason: String) -> MemberRemoval {
        let (name, incarnation) = (record.name.clone(), record.incarnation.clone());
        MemberRemoval { name, incarnation, cause, reason }
    }

    /// Returns the removal of a run that ended by itself: its program has exited or vanished.
    pub fn of_exited(record: &MemberRecord) -> MemberRemoval {
        let ended = record.exit.as_ref().map(|exit| Cause::Ended { code: exit.code });
        MemberRemoval::of(record, ended.unwrap_or(Cause::Vanished), record.end_reason())
    }
}

/// Removes members whose placements are proven gone.
///
/// # Errors
/// The first error. The members that it does not concern are removed all the same.
pub fn remove(ctx: &Context, team: &TeamStore, removals: &[MemberRemoval]) -> Result<(), OpsError> {
    let mut first_error = Ok(());
    let (mut events, mut ended) = (Vec::new(), Vec::new());
    for one in removals {
        // Before the next run of the name can join and lock it.
        worktree::unlock(ctx, team, &one.name, &one.incarnation);
        match end(team, one) {
            Ok(note) => {
                events.extend(note);
                ended.push(one);
            }
            Err(e) => first_error = first_error.and(Err(e)),
        }
    }
    team.record_all(events)?;
    failpoint::hit("remove.ended");
    let mut released = ReleasedRuns::default();
    let leaving = team.change_roster(|roster| {
        // Under this lock: a newer run of the name joins under it before it claims a task, so
        // neither its entry nor its tasks are taken for those of the ended run (SD-10, TK-02).
        let mut leaving = Vec::new();
        for run in &ended {
            let record = team.member_record(&run.name)?;
            if record.as_ref().is_none_or(|record| record.is(&run.incarnation)) {
                leaving.push(LeavingRun { run, record, was_on: false });
            }
        }
        released.release(team, &leaving);
        for one in &mut leaving {
            one.was_on = roster.leave(&one.run.name);
        }
        Ok(leaving)
    })?;
    failpoint::hit("remove.left");
    first_error = first_error.and(released.failure.map_or(Ok(()), Err));
    let mut removed = Vec::new();
    for leaving in leaving {
        let Some(tasks) = released.tasks.remove(&leaving.run.incarnation) else { continue };
        let conclude = |tasks| conclude(team, &leaving, &released.board).map(|()| tasks);
        match tasks.and_then(conclude) {
            Ok(released) if leaving.was_on => {
                let is_task_run =
                    leaving.record.is_some_and(|record| record.request.task.is_some());
                removed.push(RemovedMember { run: leaving.run, released, is_task_run });
            }
            Ok(_) => {}
            Err(e) => first_error = first_error.and(Err(e)),
        }
    }
    failpoint::hit("remove.released");
    first_error.and(announce(team, &removed))
}

/// Announces the tasks that the member ended without announcing them, and removes the links that
/// only it needed. `board` is that before its tasks were released.
fn conclude(team: &TeamStore, leaving: &LeavingRun<'_>, board: &Board) -> Result<(), OpsError> {
    let Some(record) = &leaving.record else { return Ok(()) };
    // A process exits soon after the action that ended a task.
    let exit = record.exit.as_ref();
    let since = exit.map_or(record.asked_at, |exit| exit.at.minus_ms(LAST_WORDS_MS));
    let ended = task::ended_by(board, &leaving.run.name, since);
    if let Some(first) = ended.iter().filter_map(|task| task.extra.ended_at).min() {
        task::journal_ends(team, &ended, &team.events_since(first)?)?;
    }
    Ok(account::unlink(team, record)?)
}

/// Removes a run whose processes are gone. Its placement is closed first, if it is proven ours.
pub(crate) fn stop_and_remove(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
) -> Result<(), OpsError> {
    stop::stop(ctx, team, record, StopMode::Immediate)?;
    remove(ctx, team, &[MemberRemoval::of_exited(record)])
}

/// Ends the run's record. Returns the journal entry, if the state changed.
fn end(team: &TeamStore, one: &MemberRemoval) -> Result<Option<Note>, OpsError> {
    let next = presence::end(team, &one.name, &one.incarnation, one.cause, &one.reason)?;
    Ok(next.map(|state| presence::news(&one.name, state, Some(&one.reason))))
}

/// Returns true if no newer run of the name has begun. Call it under the roster's lock, under which
/// a newer run joins.
pub(crate) fn is_latest(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<bool, StoreError> {
    Ok(team.member_record(name)?.is_none_or(|record| record.is(incarnation)))
}

/// Sends the notices to the lead's mailbox, in the form that Claude Code uses, and to the journal.
pub fn announce(team: &TeamStore, removed: &[RemovedMember<'_>]) -> Result<(), OpsError> {
    notify(team, removed)?;
    failpoint::hit("remove.noticed");
    journal_removed(team, removed)
}

/// Sends the notices to the lead's mailbox. A run leaves once, so its notice and its event have the
/// incarnation as id; recovery finds by that id a notice that was sent before a crash. A task run
/// that has ended its task needs no notice: the report of the task has its end. Nor does a member
/// that the lead starts again; a message follows if it gives up.
pub fn notify(team: &TeamStore, removed: &[RemovedMember<'_>]) -> Result<(), OpsError> {
    if removed.is_empty() {
        return Ok(());
    }
    let settings = if lead::is_led(team)? { team.settings()? } else { None };
    let templates = settings.map(|settings| settings.templates).unwrap_or_default();
    let is_restarted = |one: &MemberRemoval| {
        let template = templates.iter().find(|template| template.makes(&one.name));
        template.is_some_and(|of| of.is_single() && of.demand.restarts(one.cause))
    };
    let post = |one: &RemovedMember<'_>| {
        let notice = notice(one.run, &one.released);
        let post = Post::new(&MemberName::system(), &MemberName::lead(), notice);
        post.for_event(one.run.incarnation.as_str())
    };
    let is_noticed = |one: &&RemovedMember<'_>| {
        !is_restarted(one.run) && (!one.is_task_run || !one.released.is_empty())
    };
    let posts: Vec<Post> = removed.iter().filter(is_noticed).map(post).collect();
    send_all(team, &posts)
}

/// Journals that the members have left.
pub(crate) fn journal_removed(
    team: &TeamStore,
    removed: &[RemovedMember<'_>],
) -> Result<(), OpsError> {
    let left = removed.iter().map(|RemovedMember { run: one, released, .. }| {
        let given_back = released.iter().map(|task| task.id.to_string()).collect::<Vec<_>>();
        let note =
            Note { id: Some(one.incarnation.to_string()), ..Note::of(EventKind::MemberLeft) };
        note.member(&one.name).with("reason", one.reason.as_str()).with("released", given_back)
    });
    team.record_all(left.collect())?;
    Ok(())
}

/// Returns the notice of a run that is over: the reason, the released tasks, and what the lead can
/// do.
fn notice(one: &MemberRemoval, released: &[Task]) -> Message {
    let MemberRemoval { name, cause, reason, .. } = one;
    let was_ended = matches!(cause, Cause::Released | Cause::Forced);
    let mut message = match cause {
        Cause::Released => format!("{name} has shut down."),
        Cause::Forced => format!("{name} was killed."),
        _ => format!("{name} has exited: {reason}."),
    };
    let mut advice = Vec::new();
    if let Some(first) = released.first() {
        let subject =
            |task: &Task| format!("#{} \"{}\"", task.id, text::short(&task.subject, SUBJECT));
        let mut subjects: Vec<String> = released.iter().take(TASKS_NAMED).map(subject).collect();
        if released.len() > TASKS_NAMED {
            subjects.push(format!("{} more", released.len() - TASKS_NAMED));
        }
        message.push_str(&format!(" Its tasks are free again: {}.", subjects.join(", ")));
        advice.push(format!(
            "give them to another member (`phalanx task update {} --owner NAME`)",
            first.id
        ));
    }
    if !was_ended {
        advice.insert(0, format!("start it again (`phalanx resume {name}`)"));
    }
    if !advice.is_empty() {
        message.push_str(&format!(" You can {}.", advice.join(", or ")));
    }
    Message::TeammateTerminated(TeammateTerminated { message })
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::Caller;
    use fixture::sample;
    use model::id::{TaskId, TeamName};
    use model::team::settings::Settings;
    use model::team::{Member, Team};
    use model::time::Timestamp;
    use store::{NewTask, Store};

    const AT: Timestamp = Timestamp(1);

    fn gone(cause: Cause) -> MemberRemoval {
        let record = sample::record("ann", sample::run(1), "worker", AT);
        let reason = "exited with code 7".to_owned();
        MemberRemoval { name: record.name, incarnation: record.incarnation, cause, reason }
    }

    fn stage() -> (TempDir, TeamStore) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let name = TeamName::new("demo").expect("name");
        let file = Team::found(&name, "", "team-lead", "session", "/", AT);
        let team = Store::at(dir.path()).create(&name, &file, &Settings::by_hand(8));
        (dir, team.expect("a team"))
    }

    fn context(team: &TeamStore) -> Context {
        let caller = Caller { env: Vec::new(), cwd: "/".into(), exe: "/x".into() };
        Context { store: Store::at(team.root()), speaker: MemberName::lead(), caller }
    }

    /// Puts a run on the roster, with its record.
    fn join(team: &TeamStore, name: &str, run: &Incarnation) -> MemberRecord {
        let entry = json!({"name": name, "agentId": format!("{name}@demo")});
        let member = entry.as_object().and_then(Member::read).expect("an entry");
        team.change_roster(|roster| roster.join(&member)).expect("on the roster");
        let record = sample::record(name, run.clone(), "worker", AT);
        team.begin_record(&record).expect("a record");
        record
    }

    fn vanished(record: &MemberRecord) -> MemberRemoval {
        MemberRemoval {
            name: record.name.clone(),
            incarnation: record.incarnation.clone(),
            cause: Cause::Vanished,
            reason: "its process is gone".to_owned(),
        }
    }

    #[test]
    fn notice_names_released_tasks_and_next_steps() {
        let tasks: Vec<Task> = (1..=7).map(|id| Task::new(TaskId(id), "Build\nit", "")).collect();
        let said = |one: &MemberRemoval, tasks: &[Task]| match notice(one, tasks) {
            Message::TeammateTerminated(news) => news.message,
            other => panic!("{other:?}"),
        };
        let lost = gone(Cause::Ended { code: Some(7) });
        assert_eq!(
            said(&lost, &tasks[..1]),
            "ann has exited: exited with code 7. Its tasks are free again: #1 \"Build␊it\". You can start it again \
             (`phalanx resume ann`), or give them to another member (`phalanx task update 1 --owner NAME`)."
        );
        assert_eq!(
            said(&lost, &[]),
            "ann has exited: exited with code 7. You can start it again (`phalanx resume ann`)."
        );
        assert_eq!(said(&gone(Cause::Released), &[]), "ann has shut down.");
        assert!(said(&gone(Cause::Forced), &tasks).contains("#5 \"Build␊it\", 2 more."));
    }

    /// SD-10: of runs that leave together each gives back its own tasks, and one that a newer run
    /// has followed gives back none.
    #[test]
    fn sd_10_runs_that_leave_together_give_back_their_own_tasks() {
        let (_dir, team) = stage();
        let names = ["ann", "bob", "cyd"];
        let runs = [1, 2, 3].map(sample::run);
        for (name, run) in names.iter().zip(&runs) {
            let record = join(&team, name, run);
            let task = NewTask { subject: format!("of {name}"), ..NewTask::default() };
            let task = team.create_tasks(&[task], "team-lead", AT).expect("a task").remove(0);
            team.claim(task.id, &record.name, false, AT).expect("claimed");
        }
        team.begin_record(&sample::record("bob", sample::run(4), "worker", AT)).expect("newer");
        let gone: Vec<MemberRemoval> = names
            .iter()
            .zip(&runs)
            .map(|(name, run)| vanished(&sample::record(name, run.clone(), "worker", AT)))
            .collect();
        remove(&context(&team), &team, &gone).expect("removed");
        let left = team.events().expect("the journal").into_iter();
        let left = left.filter(|event| event.event == EventKind::MemberLeft);
        let left: Vec<_> =
            left.map(|event| (event.member, event.detail["released"].clone())).collect();
        let of = |name: &str, task: &str| (MemberName::new(name).ok(), json!([task]));
        assert_eq!(left, [of("ann", "1"), of("cyd", "3")]);
        let owners = team.board().expect("readable").tasks.into_values().map(|task| task.owner);
        assert_eq!(owners.collect::<Vec<_>>(), [None, Some("bob".to_owned()), None]);
    }

    /// SD-10: a run that begins while an earlier run of the name is removed stays on the roster.
    #[test]
    fn sd_10_run_begun_during_retirement_stays_on_the_roster() {
        let (_dir, team) = stage();
        let before = join(&team, "ann", &sample::run(1));
        let after = sample::record("ann", sample::run(2), "worker", AT);
        let gone = vanished(&before);
        let changes = team.changes().expect("a watch");
        let begins = |team: &TeamStore| {
            let is_told = || !team.events().expect("the journal").is_empty();
            while !is_told() {
                assert!(
                    !changes.wait(Duration::from_secs(20)).is_empty(),
                    "the first run was not brought to its end"
                );
            }
            team.begin_record(&after)
        };
        let (held, is_held) = std::sync::mpsc::channel();
        let (store, gone) = (&team, &[gone]);
        thread::scope(|scope| {
            let removing = scope.spawn(move || {
                is_held.recv().expect("the roster is held");
                remove(&context(store), store, gone)
            });
            let begun = team.change_roster(|_| {
                held.send(()).expect("it waits for it");
                begins(&team)
            });
            begun.expect("the next run begins");
            removing.join().expect("no panic").expect("removed");
        });
        assert!(team.team().expect("the team").member(&after.name).is_some());
        assert_eq!(team.member_record(&after.name).expect("readable"), Some(after));
    }
}
