//! Rolls back failed spawns in reverse order: placement, worktree, spec, mailbox, tasks and roster
//! entry, record. Every step is attempted even if others fail.

use std::fmt;

use super::prepare::MemberStart;
use crate::board::task;
use crate::ending::remove;
use crate::ending::stop::{self, MemberStop};
use crate::members::{account, presence};
use crate::team::worktree;
use crate::{Context, OpsError};
use model::members::record::MemberRecord;
use model::team::event::{EventKind, Note};
use store::TeamStore;

/// A spawn to roll back, and the reason.
pub(super) type FailedStart<'a> = (&'a MemberStart, &'a OpsError);

/// Rolls back the failed spawns, and journals the reason and the steps that failed.
pub(super) fn roll_back(ctx: &Context, team: &TeamStore, failed: &[FailedStart]) {
    if failed.is_empty() {
        return;
    }
    let endings = failed.iter().map(|(one, _)| MemberStop::at_once(latest(team, one)));
    let ended = stop::stop_all(ctx, team, &endings.collect::<Vec<_>>());
    let mut left: Vec<Vec<String>> = failed.iter().map(|_| Vec::new()).collect();
    for (((one, _), ended), left) in failed.iter().zip(ended).zip(&mut left) {
        let run = &one.record.incarnation;
        add_failure(left, "pane or terminal", ended.map(drop));
        worktree::unlock(ctx, team, &one.record.name, run);
        if let Some(made) = &one.new_checkout {
            add_failure(left, "worktree", worktree::abandon(ctx, team, &one.record.name, made));
        }
        add_failure(left, "spec", team.drop_spec(run));
        if one.new_mailbox {
            add_failure(left, "mailbox", team.mailbox(&one.record.name).delete());
        }
    }
    // Set once, because the roster's lock may have to be taken several times.
    let mut released: Vec<Option<Result<(), OpsError>>> = failed.iter().map(|_| None).collect();
    let off = team.change_roster(|roster| {
        for ((one, _), released) in failed.iter().zip(&mut released) {
            // Under this lock: a newer run of the name joins under it before it claims a task, so
            // neither its entry nor its tasks are taken for those of the failed run (TK-02).
            let MemberRecord { name, incarnation, .. } = &one.record;
            if remove::is_latest(team, name, incarnation)? {
                released.get_or_insert_with(|| release(team, one));
                roster.leave(name);
            }
        }
        Ok(())
    });
    if let Err(e) = off {
        left.iter_mut().for_each(|left| left.push(format!("team file: {e}")));
    }
    for (((one, _), released), left) in failed.iter().zip(released).zip(&mut left) {
        add_failure(left, "tasks", released.unwrap_or(Ok(())));
        let MemberRecord { name, incarnation, .. } = &one.record;
        add_failure(left, "record", team.forget_record(name, incarnation));
        add_failure(left, "links", account::unlink(team, &one.record));
    }
    let notes =
        failed.iter().zip(left).map(|((one, failure), left)| failure_note(one, failure, left));
    // Best effort: the caller gets the failures themselves.
    let _ = team.record_all(notes.collect());
}

/// Withdraws the record and returns its latest version, which may hold the launcher's start record.
/// After this the launcher no longer starts a program, so a run without a placement either has a
/// start record or exits by itself.
fn latest(team: &TeamStore, one: &MemberStart) -> MemberRecord {
    let latest = presence::withdraw(team, &one.record.name, &one.record.incarnation).ok().flatten();
    latest.unwrap_or_else(|| one.record.clone())
}

/// Returns a task in progress to the board, since a worker claims one as soon as it is up. Tasks
/// that only wait for this owner stay assigned.
fn release(team: &TeamStore, one: &MemberStart) -> Result<(), OpsError> {
    match team.board()?.work_of(&one.record.name) {
        Some(_) => task::release(team, &one.record.name).map(drop),
        None => Ok(()),
    }
}

fn add_failure(left: &mut Vec<String>, what: &str, result: Result<(), impl fmt::Display>) {
    if let Err(e) = result {
        left.push(format!("{what}: {e}"));
    }
}

fn failure_note(one: &MemberStart, failure: &OpsError, left: Vec<String>) -> Note {
    Note::of(EventKind::MemberStartFailed)
        .because(&one.asked)
        .member(&one.record.name)
        .with("incarnation", one.record.incarnation.as_str())
        .with("reason", failure.to_string())
        .with("left", left)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tempfile::TempDir;

    use super::*;
    use crate::Caller;
    use fixture::sample;
    use model::board::task::TaskState;
    use model::id::{MemberName, TaskId, TeamName};
    use model::team::settings::Settings;
    use model::team::{Member, Team};
    use model::time::Timestamp;
    use profile::Ready;
    use store::{NewTask, Store};

    const AT: Timestamp = Timestamp(1);

    /// Rolls back run `first` of ann, who works on task 1. Her latest run is `latest`.
    fn rolled_back(first: u64, latest: u64) -> (TempDir, TeamStore) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (store, name) = (Store::at(dir.path()), TeamName::new("demo").expect("name"));
        let file = Team::found(&name, "", "team-lead", "session", "/", AT);
        let team = store.create(&name, &file, &Settings::by_hand(8)).expect("a team");
        let entry = json!({"name": "ann", "agentId": "ann@demo"});
        let member = entry.as_object().and_then(Member::read).expect("an entry");
        team.change_roster(|roster| roster.join(&member)).expect("on the roster");
        let [before, after] =
            [first, latest].map(|n| sample::record("ann", sample::run(n), "worker", AT));
        team.begin_record(&after).expect("a record");
        let task = NewTask { subject: "Build".to_owned(), ..NewTask::default() };
        team.create_tasks(&[task], "team-lead", AT).expect("a task");
        team.claim(TaskId(1), &before.name, false, AT).expect("claimed");
        let caller = Caller { env: Vec::new(), cwd: "/".into(), exe: "/x".into() };
        let ctx = Context { store, speaker: MemberName::lead(), caller };
        let start = MemberStart::new(member, before, Ready::Hello, "asked".to_owned());
        let failure = OpsError::Failed { problem: "it did not start".to_owned() };
        roll_back(&ctx, &team, &[(&start, &failure)]);
        let events = team.events().expect("the journal");
        let event = events.iter().find(|event| event.event == EventKind::MemberStartFailed);
        assert_eq!(event.expect("journaled").detail["left"], json!([]));
        (dir, team)
    }

    #[test]
    fn tk_02_failed_start_returns_its_task_and_its_name() {
        let (_dir, team) = rolled_back(1, 1);
        let task = team.task(TaskId(1)).expect("readable").expect("a task");
        assert_eq!((task.state, task.owner), (TaskState::Pending, None));
        let ann = MemberName::new("ann").expect("name");
        assert!(team.team().expect("the team").member(&ann).is_none());
        assert_eq!(team.member_record(&ann).expect("readable"), None);
    }

    /// A newer run of the name may join as soon as the failed one is off the roster.
    #[test]
    fn tk_02_failed_start_leaves_the_task_of_a_newer_run() {
        let (_dir, team) = rolled_back(1, 2);
        let task = team.task(TaskId(1)).expect("readable").expect("a task");
        assert_eq!((task.state, task.owner.as_deref()), (TaskState::InProgress, Some("ann")));
        let ann = MemberName::new("ann").expect("name");
        assert!(team.team().expect("the team").member(&ann).is_some());
        let record = team.member_record(&ann).expect("readable").expect("a record");
        assert_eq!(record.incarnation, sample::run(2));
    }
}
