//! Tests of batches that are committed and not published, as a killed process leaves them.

use serde_json::{Value, json};

use super::{CHANGES, TaskBatch, difference, merge};
use crate::tests::{NOW, command, fresh};
use crate::{StoreError, TeamStore};
use model::board::task::Task;
use model::id::TaskId;
use model::wire::Object;
use sys::fs;

fn object(value: Value) -> Object {
    value.as_object().expect("an object").clone()
}

#[test]
fn patch_makes_one_object_into_the_other() {
    let cases = [
        (json!({"a": 1, "b": {"c": 2, "d": [3]}}), json!({"a": 1, "b": {"c": 5, "d": [3, 4]}})),
        (json!({"a": {"b": 1}, "c": 2}), json!({"a": {}, "c": {"d": {"e": 1}}})),
        (json!({"a": {"b": 1}}), json!({"a": "text"})),
        (json!({}), json!({"a": [], "b": ""})),
        (json!({"a": 1}), json!({})),
    ];
    for (before, after) in cases {
        let (before, after) = (object(before), object(after));
        let patch = difference(&before, &after);
        let mut merged = before.clone();
        merge(&mut merged, patch.clone());
        assert_eq!(merged, after);
        merge(&mut merged, patch);
        assert_eq!(merged, after, "applied twice");
        assert_eq!(difference(&after, &after), Object::new());
    }
}

/// A team with task 1, and a committed batch that creates task 2 and makes it a blocker of task 1.
fn committed() -> (tempfile::TempDir, TeamStore) {
    let (dir, team) = fresh();
    team.create_tasks(&[command("one")], "team-lead", NOW).expect("a task");
    let list = team.lock_list().expect("free");
    let mut new = Task::new(TaskId(2), "two", "");
    new.blocks = vec![TaskId(1)];
    let mut batch = TaskBatch { create: Vec::new(), ..TaskBatch::default() };
    batch.edit(TaskId(1), |task| {
        "changed".clone_into(&mut task.subject);
        task.blocked_by.push(TaskId(2));
        Ok(())
    });
    let (_, changes) = team.plan_edits(&batch).expect("readable");
    team.commit(&list, &[&new], &changes).expect("writable");
    (dir, team)
}

/// Returns the file of task 1.
fn file(team: &TeamStore) -> Object {
    let text = fs::read(&team.layout.task(TaskId(1)), 10_000).expect("readable");
    serde_json::from_slice(&text.expect("a file")).expect("json")
}

/// Changes a field of task 1 as another program does.
fn rewrite(team: &TeamStore, key: &str, value: &str) {
    let mut file = file(team);
    file.insert(key.to_owned(), value.into());
    let text = serde_json::to_vec(&Value::Object(file)).expect("json");
    fs::write_atomic(&team.layout.task(TaskId(1)), &text).expect("writable");
}

fn assert_finished(team: &TeamStore) {
    for path in [team.layout.committed_batch(), team.layout.staged_batch()] {
        assert!(!fs::exists(&path), "{}", path.display());
    }
}

#[test]
fn tk_10_reader_finishes_the_batch_of_a_killed_process() {
    let (_dir, team) = committed();
    let board = team.board().expect("board");
    assert_eq!(board.tasks[&TaskId(1)].blocked_by, [TaskId(2)]);
    assert_eq!(board.tasks[&TaskId(2)].blocks, [TaskId(1)]);
    assert_finished(&team);
}

#[test]
fn reader_does_not_wait_for_a_process_that_publishes_a_batch() {
    let (_dir, team) = committed();
    // Not by `lock_list`, which would finish the batch.
    let list = team.try_lock_list().expect("usable").expect("free");
    assert!(!team.board().expect("board").tasks.contains_key(&TaskId(2)));
    assert!(team.leftovers().expect("readable").is_empty(), "a living process is at work");
    drop(list);
    assert!(team.task(TaskId(2)).expect("readable").is_some());
}

#[test]
fn change_of_another_program_survives_the_end_of_a_batch() {
    let (_dir, team) = committed();
    rewrite(&team, "description", "theirs");
    rewrite(&team, "foreign", "kept");
    drop(team.lock_list().expect("free"));
    let found = file(&team);
    let got = (&found["subject"], &found["description"], &found["foreign"], &found["blockedBy"]);
    assert_eq!(got, (&json!("changed"), &json!("theirs"), &json!("kept"), &json!(["2"])));
    let task = team.task(TaskId(1)).expect("readable").expect("a task");
    assert_eq!(task.seal_holds(), Some(true));
    assert_finished(&team);
}

/// A process that was killed after it had published a change leaves it to be published again.
#[test]
fn change_that_was_published_is_not_published_twice() {
    let (_dir, team) = committed();
    let changes = team.layout.committed_batch().join(CHANGES);
    let text = fs::read(&changes, 10_000).expect("readable").expect("a file");
    drop(team.lock_list().expect("free"));
    rewrite(&team, "subject", "theirs");
    fs::private_dir(&team.layout.committed_batch()).expect("writable");
    fs::write_atomic(&changes, &text).expect("writable");
    drop(team.lock_list().expect("free"));
    assert_eq!(file(&team)["subject"], "theirs");
    assert_finished(&team);
}

/// TK-07: neither the file of another program nor the task of the batch is lost.
#[test]
fn tk_07_foreign_file_with_the_id_of_a_committed_task_stays() {
    let (_dir, team) = committed();
    let path = team.layout.task(TaskId(2));
    fs::write_atomic(&path, br#"{"subject":"theirs"}"#).expect("writable");
    let board = team.board().expect("board");
    assert_eq!(board.tasks[&TaskId(2)].subject, "theirs");
    let copies = fs::list(&team.layout.quarantine()).expect("readable");
    assert!(matches!(copies.as_slice(), [copy] if copy.contains("-2.json.")), "{copies:?}");
    assert_finished(&team);
}

#[test]
fn batch_goes_on_if_a_task_is_gone_or_cannot_be_read() {
    for content in [None, Some("{")] {
        let (_dir, team) = committed();
        let path = team.layout.task(TaskId(1));
        fs::remove_file(&path).expect("writable");
        if let Some(content) = content {
            fs::write_atomic(&path, content.as_bytes()).expect("writable");
        }
        drop(team.lock_list().expect("the rest is published"));
        assert!(team.task(TaskId(2)).expect("readable").is_some());
        assert_finished(&team);
    }
}

#[test]
fn uncommitted_batch_is_removed_by_the_next_change() {
    let (_dir, team) = committed();
    fs::rename(&team.layout.committed_batch(), &team.layout.staged_batch()).expect("ours");
    assert_eq!(team.board().expect("board").tasks.len(), 1);
    let left = team.leftovers().expect("readable");
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(team.clear(&left[0]).expect("writable"));
    assert_eq!(team.board().expect("board").tasks.len(), 1);
    assert_finished(&team);
}

#[test]
fn edit_of_a_missing_task_writes_nothing() {
    let (_dir, team) = fresh();
    let list = team.lock_list().expect("free");
    let create = vec![Task::new(TaskId(1), "new", "")];
    let mut batch = TaskBatch { create, ..TaskBatch::default() };
    batch.edit(TaskId(7), |_| Ok(()));
    assert!(matches!(team.write_batch(&list, &batch), Err(StoreError::Refused(_))));
    assert!(team.board().expect("board").tasks.is_empty());
    assert_finished(&team);
}
