//! Edits and deletions on real files: two-sided edges, ids that are never reused, and permissions.

use crate::board::tasks::batch::TaskBatch;
use crate::tests::{NOW, command, fresh, on_both_stores, who};
use crate::{
    ClaimKind, NewTask, StoreError, TargetStatus, TaskChanges, TaskImport, TaskOwner, TaskRevision,
    TaskStep, TeamStore,
};
use model::board::external_change::{self, ExternalChange};
use model::board::task::{Task, TaskAction, TaskState};
use model::board::{Board, Refusal};
use model::id::{MemberName, TaskId};
use serde_json::Value;
use sys::fs;

/// Creates `count` tasks, each blocked by the one before.
fn chain(team: &TeamStore, count: usize) {
    let task = |n: usize| NewTask {
        after: n.checked_sub(1).into_iter().collect(),
        ..command(&format!("t{n}"))
    };
    let batch: Vec<NewTask> = (0..count).map(task).collect();
    team.create_tasks(&batch, "team-lead", NOW).expect("tasks");
}

fn edges(team: &TeamStore, id: u64) -> (Vec<u64>, Vec<u64>) {
    let task = team.task(TaskId(id)).expect("read").expect("task");
    let plain = |ids: &[TaskId]| ids.iter().map(|id| id.0).collect();
    (plain(&task.blocked_by), plain(&task.blocks))
}

fn lead() -> MemberName {
    MemberName::lead()
}

#[test]
fn tk_07_deletion_removes_edges_and_keeps_the_id_used() {
    on_both_stores(|team| {
        chain(team, 3);
        let before = team.board().expect("board");
        let early = team.delete_task(TaskId(2), &lead(), false);
        assert!(
            matches!(early, Err(StoreError::NotOver { state: TaskState::Pending, .. })),
            "{early:?}"
        );
        team.delete_task(TaskId(2), &lead(), true).expect("delete");
        assert_eq!((edges(team, 1), edges(team, 3)), ((vec![], vec![]), (vec![], vec![])));
        team.delete_task(TaskId(3), &lead(), true).expect("delete");
        let now = team.board().expect("board");
        assert_eq!(now.deleted, [TaskId(2), TaskId(3)].into());
        assert_eq!(
            external_change::between(&before, &now),
            [],
            "what phalanx deletes has not vanished"
        );
        // Another program may remove the file.
        let _ = fs::remove_file(&team.layout.high_water_mark());
        let made = team.create_tasks(&[NewTask::default()], "team-lead", NOW).expect("task");
        assert_eq!(made[0].id, TaskId(4));
        assert!(!fs::exists(&team.layout.tasks().join("2.json.lock")));
    });
}

#[test]
fn tk_06_only_the_owner_and_the_lead_edit_and_delete() {
    on_both_stores(|team| {
        chain(team, 1);
        team.claim(TaskId(1), &who("bob"), false, NOW).expect("claim");
        let renamed = TaskChanges { subject: Some("new".to_owned()), ..TaskChanges::default() };
        for (name, may) in [("ann", false), ("bo", false), ("bob", true), ("team-lead", true)] {
            let name = MemberName::existing(name).expect("name");
            let ended =
                team.step_task(TaskId(1), &who("ann"), &TaskStep::of(TaskAction::Complete), NOW);
            assert!(matches!(ended, Err(StoreError::NotYours { .. })));
            assert_eq!(team.update_task(TaskId(1), &name, &renamed, NOW).is_ok(), may, "{name}");
            let deleted = team.delete_task(TaskId(1), &name, false);
            assert_eq!(
                matches!(deleted, Err(StoreError::NotYours { .. })),
                !may,
                "{name}: {deleted:?}"
            );
            assert!(deleted.is_err());
        }
        team.step_task(TaskId(1), &who("bob"), &TaskStep::of(TaskAction::Complete), NOW)
            .expect("end");
        let moved = TaskChanges { owner: Some(TaskOwner::Nobody), ..TaskChanges::default() };
        assert!(matches!(
            team.update_task(TaskId(1), &lead(), &moved, NOW),
            Err(StoreError::Over { .. })
        ));
        team.update_task(TaskId(1), &lead(), &renamed, NOW)
            .expect("a task that is over can be renamed");
        team.delete_task(TaskId(1), &who("bob"), false).expect("delete");
    });
}

#[test]
fn tk_06_members_take_free_tasks_and_edit_their_own_creations() {
    on_both_stores(|team| {
        team.create_tasks(&[command("one"), command("two")], "ann", NOW).expect("tasks");
        let (ann, bob) = (who("ann"), who("bob"));
        let renamed = TaskChanges { subject: Some("new".to_owned()), ..TaskChanges::default() };
        let taken = |by: &MemberName| TaskChanges {
            owner: Some(TaskOwner::Member(by.clone())),
            ..TaskChanges::default()
        };
        let is_refused = |result| matches!(result, Err(StoreError::NotYours { .. }));
        team.update_task(TaskId(1), &ann, &renamed, NOW).expect("its creator renames it");
        assert!(is_refused(team.update_task(TaskId(1), &bob, &renamed, NOW)));
        assert!(
            is_refused(team.update_task(TaskId(1), &bob, &taken(&who("eve")), NOW)),
            "only for itself"
        );
        let done = TaskChanges { status: Some(TargetStatus::Completed), ..TaskChanges::default() };
        assert!(is_refused(team.update_task(TaskId(1), &ann, &done, NOW)), "it does not own it");
        let started = TaskChanges { status: Some(TargetStatus::InProgress), ..taken(&bob) };
        let task = team.update_task(TaskId(1), &bob, &started, NOW).expect("bob takes it").task;
        assert_eq!((task.owner.as_deref(), task.state), (Some("bob"), TaskState::InProgress));
        for changes in [&renamed, &taken(&ann)] {
            assert!(is_refused(team.update_task(TaskId(1), &ann, changes, NOW)), "bob works on it");
        }
        let deleted = team.delete_task(TaskId(1), &ann, true);
        assert!(matches!(deleted, Err(StoreError::NotYours { .. })), "{deleted:?}");
        team.delete_task(TaskId(2), &ann, true).expect("its creator deletes a free one");
    });
}

#[test]
fn tk_03_a_task_with_open_blockers_is_not_completed() {
    on_both_stores(|team| {
        chain(team, 2);
        team.update_task(
            TaskId(2),
            &lead(),
            &TaskChanges { owner: Some(TaskOwner::Member(who("bob"))), ..TaskChanges::default() },
            NOW,
        )
        .expect("owner");
        let done = TaskChanges { status: Some(TargetStatus::Completed), ..TaskChanges::default() };
        let is_blocked = |error: Option<StoreError>| match error {
            Some(StoreError::Refused(Refusal::Blocked { id, by })) => {
                (id, by) == (TaskId(2), vec![TaskId(1)])
            }
            _ => false,
        };
        assert!(is_blocked(team.update_task(TaskId(2), &lead(), &done, NOW).err()));
        assert!(is_blocked(
            team.task_before(TaskId(2), &who("bob"), &TaskStep::of(TaskAction::Complete)).err()
        ));
        assert!(is_blocked(
            team.step_task(TaskId(2), &who("bob"), &TaskStep::of(TaskAction::Complete), NOW).err()
        ));
        team.step_task(TaskId(1), &lead(), &TaskStep::of(TaskAction::Complete), NOW).expect("end");
        team.step_task(TaskId(2), &who("bob"), &TaskStep::of(TaskAction::Complete), NOW)
            .expect("end");
    });
}

#[test]
fn tk_03_edges_are_two_sided_and_cycles_are_refused() {
    on_both_stores(|team| {
        chain(team, 4);
        let blocked = |by: &[u64], unblock: &[u64]| TaskChanges {
            blocked_by: by.iter().map(|id| TaskId(*id)).collect(),
            unblock: unblock.iter().map(|id| TaskId(*id)).collect(),
            ..TaskChanges::default()
        };
        let refused = team.update_task(TaskId(1), &lead(), &blocked(&[3], &[]), NOW);
        let Err(StoreError::Circle { path, .. }) = &refused else { panic!("{refused:?}") };
        assert_eq!(path, &[TaskId(1), TaskId(2), TaskId(3)]);
        let words = refused.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(words.contains("1 → 2 → 3 → 1"), "{words}");
        assert_eq!(edges(team, 1), (vec![], vec![2]));
        team.update_task(TaskId(4), &lead(), &blocked(&[1], &[3]), NOW).expect("update");
        assert_eq!(edges(team, 4), (vec![1], vec![]));
        assert_eq!((edges(team, 1), edges(team, 3)), ((vec![], vec![2, 4]), (vec![2], vec![])));
        let missing = team.update_task(TaskId(4), &lead(), &blocked(&[9], &[]), NOW);
        assert!(matches!(missing, Err(StoreError::Refused(_))));
        // Edges that the same edit removes do not count towards a cycle.
        team.update_task(TaskId(2), &lead(), &blocked(&[4], &[1]), NOW).expect("update");
        assert_eq!(edges(team, 2), (vec![4], vec![3]));
    });
}

#[test]
fn tk_08_reassigned_task_starts_over() {
    on_both_stores(|team| {
        chain(team, 1);
        team.claim(TaskId(1), &who("bob"), false, NOW).expect("claim");
        let to_ann =
            TaskChanges { owner: Some(TaskOwner::Member(who("ann"))), ..TaskChanges::default() };
        let given = team.update_task(TaskId(1), &lead(), &to_ann, NOW).expect("update").task;
        assert_eq!(
            (given.state, given.owner.as_deref(), given.extra.released),
            (TaskState::Pending, Some("ann"), 1)
        );
        let late = team.step_task(TaskId(1), &who("bob"), &TaskStep::of(TaskAction::Complete), NOW);
        assert!(matches!(late, Err(StoreError::NotYours { .. })));
        assert_eq!(
            team.claim_next(&who("bob"), None, ClaimKind::Command, NOW).expect("readable"),
            None
        );
        assert_eq!(
            team.claim_next(&who("ann"), None, ClaimKind::Command, NOW)
                .expect("claim")
                .map(|t| t.id),
            Some(TaskId(1))
        );
    });
}

/// Another program rewrites and deletes task files.
#[test]
fn tk_07_changes_by_other_programs_are_detected() {
    let (_dir, team) = fresh();
    chain(&team, 3);
    let before = team.board().expect("board");
    let edit = |id: u64, key: &str, value: &str| {
        let path = team.layout.task(TaskId(id));
        let bytes = fs::read(&path, 1 << 20).expect("read").expect("file");
        let mut file: Value = serde_json::from_slice(&bytes).expect("json");
        file[key] = Value::from(value);
        fs::write_atomic(&path, file.to_string().as_bytes()).expect("write");
    };
    edit(1, "status", "completed");
    edit(2, "description", "mine now");
    fs::remove_file(&team.layout.task(TaskId(3))).expect("remove");
    let now = team.board().expect("board");
    let kinds: Vec<String> = external_change::between(&before, &now)
        .iter()
        .map(|d| match d {
            ExternalChange::Vanished { id, .. } => format!("{id} vanished"),
            ExternalChange::Changed { id, status, .. } => {
                format!("{id} {}", status.as_deref().unwrap_or("?"))
            }
            ExternalChange::Rewritten { id, fields, .. } => format!("{id} {fields:?}"),
        })
        .collect();
    assert_eq!(kinds, ["1 completed", r#"2 ["description"]"#, "3 vanished"]);
    assert_eq!(external_change::between(&now, &team.board().expect("board")), []);
    // A later change by phalanx seals the task again.
    team.claim(TaskId(2), &who("bob"), false, NOW).expect("claim");
    assert_eq!(team.task(TaskId(2)).expect("read").and_then(|t| t.seal_holds()), Some(true));
    let made = team.create_tasks(&[NewTask::default()], "team-lead", NOW).expect("task");
    assert_eq!(made[0].id, TaskId(4), "the vanished id is not given again");
}

#[test]
fn tk_07_a_task_file_at_or_beyond_the_id_limit_does_not_block_creation() {
    let (_dir, team) = fresh();
    chain(&team, 2);
    for name in ["9007199254740991", "18446744073709551615", "99999999999999999999"] {
        let path = team.layout.tasks().join(format!("{name}.json"));
        fs::write_atomic(&path, br#"{"subject":"theirs","status":"pending"}"#)
            .expect("a foreign hand");
    }
    let made = team
        .create_tasks(&[NewTask::default(), NewTask::default()], "team-lead", NOW)
        .expect("tasks");
    assert_eq!(made.iter().map(|task| task.id.0).collect::<Vec<_>>(), [3, 4]);
    let board = team.board().expect("board");
    assert_eq!(board.tasks.keys().map(|id| id.0).collect::<Vec<_>>(), [1, 2, 3, 4, TaskId::MAX.0]);
    // Claude Code raises the mark to the largest id that it finds.
    fs::write_atomic(&team.layout.high_water_mark(), b"9007199254740991").expect("a foreign hand");
    let made = team.create_tasks(&[NewTask::default()], "team-lead", NOW).expect("task");
    assert_eq!(made[0].id, TaskId(5));
}

#[test]
fn tk_03_import_changes_both_sides_of_edges_and_frees_tasks() {
    on_both_stores(|team| {
        chain(team, 3);
        let decide = |board: &Board| -> Result<TaskImport, StoreError> {
            assert_eq!(board.tasks.len(), 3);
            let new = NewTask { blocked_by: vec![TaskId(1)], ..command("new") };
            let third = TaskChanges { unblock: vec![TaskId(2)], ..TaskChanges::default() };
            let second = TaskChanges { unblock: vec![TaskId(1)], ..TaskChanges::default() };
            Ok(TaskImport {
                create: vec![new],
                revise: vec![
                    TaskRevision { id: TaskId(3), changes: third, after: vec![0] },
                    TaskRevision { id: TaskId(2), changes: second, after: vec![] },
                ],
            })
        };
        let done = team.import_tasks(&lead(), NOW, decide).expect("import");
        assert_eq!((done.created[0].id, done.unblocked), (TaskId(4), vec![TaskId(2)]));
        let all = [1, 2, 3, 4].map(|id| edges(team, id));
        assert_eq!(
            all,
            [(vec![], vec![4]), (vec![], vec![]), (vec![4], vec![]), (vec![1], vec![3])]
        );
        // Without the right to edit one of the tasks, nothing is created.
        team.claim(TaskId(2), &who("bob"), false, NOW).expect("claim");
        let decide = |_: &Board| -> Result<TaskImport, StoreError> {
            let changes = TaskChanges { subject: Some("x".to_owned()), ..TaskChanges::default() };
            let revision = TaskRevision { id: TaskId(2), changes, after: vec![] };
            Ok(TaskImport { create: vec![command("more")], revise: vec![revision] })
        };
        let refused = team.import_tasks(&who("ann"), NOW, decide);
        assert!(matches!(refused, Err(StoreError::NotYours { .. })), "{refused:?}");
        assert_eq!(team.board().expect("board").tasks.len(), 4);
    });
}

/// Another program creates a task with the id of one of the batch at the last moment.
#[test]
fn tk_07_batch_that_meets_a_foreign_file_leaves_only_that_file() {
    let (_dir, team) = fresh();
    chain(&team, 0);
    let tasks: Vec<Task> = [(1, 3), (2, 0), (3, 2)]
        .into_iter()
        .map(|(id, blocker)| {
            let mut task = Task::new(TaskId(id), "ours", "");
            task.blocked_by = vec![TaskId(blocker)].into_iter().filter(|id| id.0 > 0).collect();
            task
        })
        .collect();
    fs::write_atomic(&team.layout.task(TaskId(3)), br#"{"subject":"theirs"}"#).expect("write");
    let list = team.lock_list().expect("free");
    let refused = team.write_batch(&list, &TaskBatch { create: tasks, ..TaskBatch::default() });
    assert!(matches!(refused, Err(StoreError::Contended { .. })), "{refused:?}");
    let board = team.board().expect("board");
    assert_eq!(board.tasks.keys().map(|id| id.0).collect::<Vec<_>>(), [3]);
    assert_eq!(board.tasks[&TaskId(3)].subject, "theirs");
    assert_eq!(
        fs::list(&team.layout.tasks())
            .expect("list")
            .iter()
            .filter(|n| n.ends_with(".tmp"))
            .count(),
        0
    );
}

/// Returns the number of reads that this process has made.
#[cfg(target_os = "linux")]
fn reads() -> u64 {
    let io =
        fs::read(std::path::Path::new("/proc/self/io"), 4096).expect("read").expect("on Linux");
    let text = String::from_utf8_lossy(&io).into_owned();
    let count = text.lines().find_map(|line| line.strip_prefix("syscr: "));
    count.and_then(|count| count.parse().ok()).expect("a count")
}

#[cfg(target_os = "linux")]
#[test]
fn pf_13_reads_for_a_change_of_one_task_do_not_grow_with_the_board() {
    type Change = fn(&TeamStore, TaskId);
    let table: [(&str, Change); 4] = [
        ("create", |team, _| {
            team.create_tasks(&[NewTask::default()], "team-lead", NOW).expect("task");
        }),
        ("create behind another", |team, id| {
            let new = NewTask { blocked_by: vec![id], ..NewTask::default() };
            team.create_tasks(&[new], "team-lead", NOW).expect("task");
        }),
        ("claim", |team, id| {
            team.claim(id, &who("bob"), false, NOW).expect("claimed");
        }),
        ("complete", |team, id| {
            team.step_task(id, &lead(), &TaskStep::of(TaskAction::Complete), NOW).expect("ended");
        }),
    ];
    for (name, change) in table {
        let counts = [20, 400].map(|tasks| {
            let (_dir, team) = fresh();
            let batch = vec![NewTask::default(); tasks];
            team.create_tasks(&batch, "team-lead", NOW).expect("tasks");
            let before = reads();
            change(&team, TaskId(7));
            reads() - before
        });
        assert!(counts[1] <= counts[0] + 2, "{name}: {counts:?}");
    }
}
