//! The task board, apart from claims.

use serde_json::json;

use super::*;
use crate::TaskScope;

fn ids(stage: &Stage, scope: &TaskScope) -> Vec<u64> {
    stage.db.tasks(TEAM, scope).unwrap().tasks.into_iter().map(|task| task.id).collect()
}

#[test]
fn tasks_are_written_all_or_none_at_their_versions() {
    let Some(stage) = stage() else { return };
    let put = |tasks: &[TaskWrite], mark| stage.db.put_tasks(TEAM, tasks, mark).unwrap();
    let versions = put(&[new_task(2), new_task(1)], 2).expect("new");
    assert!(versions[0] < versions[1], "in the order given");
    assert_eq!(put(&[new_task(3), new_task(1)], 9), None, "task 1 exists");
    let all = stage.db.tasks(TEAM, &TaskScope::All).unwrap();
    assert_eq!((all.tasks.len(), all.mark), (2, 2));
    let replace =
        |id, expected| TaskWrite { expected: Some(expected), state: "completed", ..new_task(id) };
    assert_eq!(put(&[replace(1, versions[1]), replace(2, versions[1])], 0), None);
    let next = put(&[replace(1, versions[1]), new_task(3)], 3).expect("the version is right");
    assert_eq!(put(&[replace(1, versions[1])], 0), None, "it has changed");
    assert_eq!(put(&[replace(7, 1)], 0), None, "it does not exist");
    assert_eq!(ids(&stage, &TaskScope::Open), [2, 3]);
    assert_eq!(stage.db.tasks(TEAM, &TaskScope::All).unwrap().mark, 3, "it never sinks");
    assert!(!stage.db.delete_task(TEAM, 1, versions[1]).unwrap());
    assert!(stage.db.delete_task(TEAM, 1, next[0]).unwrap());
    assert!(!stage.db.delete_task(TEAM, 1, next[0]).unwrap());
    let left = stage.db.tasks(TEAM, &TaskScope::All).unwrap();
    assert_eq!((left.tasks.len(), left.deleted), (2, vec![1]));
    assert_eq!(put(&[], 12), Some(Vec::new()));
    assert_eq!(stage.db.tasks(TEAM, &TaskScope::Open).unwrap().mark, 12);
}

#[test]
fn tasks_are_read_with_their_direct_blockers() {
    let Some(stage) = stage() else { return };
    let blocked = |id, by: &[u64]| TaskWrite { blocked_by: by.to_vec(), ..new_task(id) };
    let batch = [blocked(1, &[]), blocked(2, &[1, 99]), blocked(3, &[2]), blocked(4, &[])];
    stage.db.put_tasks(TEAM, &batch, 4).unwrap().expect("new");
    assert_eq!(ids(&stage, &TaskScope::WithBlockers(vec![2])), [1, 2]);
    assert_eq!(ids(&stage, &TaskScope::WithBlockers(vec![3, 4, 50])), [2, 3, 4]);
    assert!(ids(&stage, &TaskScope::WithBlockers(Vec::new())).is_empty());
}

#[test]
fn repeated_writes_of_tasks_have_one_effect_and_the_same_reply() {
    let Some(stage) = stage() else { return };
    let put = |expected: Option<i64>, write: &str| {
        json!({ "team": TEAM, "mark": 1, "write": write,
                "tasks": [TaskWrite { expected, ..new_task(1) }] })
    };
    let first = stage.raw("put_tasks", &put(None, "w1"));
    let second = stage.raw("put_tasks", &put(first[0].as_i64(), "w2"));
    assert_eq!(stage.raw("put_tasks", &put(None, "w1")), first);
    assert_eq!(stage.raw("put_tasks", &put(first[0].as_i64(), "w2")), second);
    let delete = json!({ "team": TEAM, "id": 1, "expected": second[0], "write": "w3" });
    assert_eq!(stage.raw("delete_task", &delete), true);
    assert_eq!(stage.raw("delete_task", &delete), true);
    assert!(ids(&stage, &TaskScope::All).is_empty());
}

#[test]
fn two_creators_of_one_id_do_not_both_succeed() {
    let Some(stage) = stage() else { return };
    let other = connect(&stage.database);
    for id in 1..30 {
        let both = std::thread::scope(|scope| {
            let theirs = scope.spawn(|| other.put_tasks(TEAM, &[new_task(id)], id).unwrap());
            let ours = stage.db.put_tasks(TEAM, &[new_task(id)], id).unwrap();
            [ours, theirs.join().unwrap()]
        });
        assert_eq!(both.iter().flatten().count(), 1);
    }
}
