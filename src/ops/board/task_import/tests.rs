//! Imports of files into boards in memory: created and changed tasks, refusals.

use super::resolve::{LoadedFile, Resolved, resolve};
use config::task_file::TaskFormat;
use model::board::Board;
use model::board::task::{ShowOutput, Task, TaskState};
use model::id::TaskId;

fn file(name: &str, text: &str) -> LoadedFile {
    let kind = TaskFormat::of(name.as_ref(), text).expect("a known kind");
    let stem = name.split('.').next().unwrap_or_default();
    LoadedFile { name: name.to_owned(), tasks: kind.parse(stem, text).expect("a good file") }
}

/// A plan with tasks of these ids and blockers.
fn plan(id: &str, depends_on: &[&str], tasks: &[(&str, &[&str])]) -> LoadedFile {
    let (phase, number) = id.split_once('-').expect("PHASE-NUMBER");
    let mut lines = vec![format!(r#"{{"p":"{phase}","n":"{number}","d":{depends_on:?}}}"#)];
    lines.extend(
        tasks.iter().map(|(id, td)| format!(r#"{{"id":"{id}","a":"Do {id}","td":{td:?}}}"#)),
    );
    file(&format!("{id}.jsonl"), &lines.join("\n"))
}

/// The plan 03-01 of the example, with T1 to T7.
fn first_plan() -> LoadedFile {
    let none: &[&str] = &[];
    let mut tasks: Vec<(&str, &[&str])> =
        ["T1", "T2", "T3", "T4", "T5", "T6", "T7"].map(|id| (id, none)).to_vec();
    tasks[2].1 = &["T1"];
    plan("03-01", &[], &tasks)
}

fn resolved(files: &[LoadedFile], board: &Board) -> Resolved {
    resolve(files, board).expect("a good import")
}

fn faults(files: &[LoadedFile], board: &Board) -> Vec<String> {
    resolve(files, board).expect_err("a bad import")
}

/// Applies an import to a board in memory, as the store does on disk.
fn apply(files: &[LoadedFile], board: &mut Board) {
    let import = resolved(files, board).import;
    let first = board.tasks.keys().last().map_or(1, |id| id.0 + 1);
    let id_of = |place: &usize| TaskId(first + *place as u64);
    for (place, new) in import.create.iter().enumerate() {
        let mut task = Task::new(id_of(&place), &new.subject, &new.description);
        task.blocked_by =
            new.blocked_by.iter().copied().chain(new.after.iter().map(id_of)).collect();
        task.extra.key.clone_from(&new.key);
        task.extra.after.clone_from(&new.named_blockers);
        new.fields.apply(&mut task);
        board.tasks.insert(task.id, task);
    }
    for revision in &import.revise {
        let task = board.tasks.get_mut(&revision.id).expect("on the board");
        task.blocked_by.retain(|id| !revision.changes.unblock.contains(id));
        task.blocked_by.extend(&revision.changes.blocked_by);
        task.blocked_by.extend(revision.after.iter().map(id_of));
        revision.changes.fields.apply(task);
        let named = &revision.changes.named_blockers;
        named.iter().for_each(|names| task.extra.after.clone_from(names));
    }
}

/// The blockers of the task with this key, by key.
fn edges<'b>(board: &'b Board, key: &str) -> Vec<&'b str> {
    let key_of = |task: &'b Task| task.extra.key.as_deref().unwrap_or_default();
    let task = board.tasks.values().find(|task| key_of(task) == key).expect("a task");
    task.blocked_by.iter().filter_map(|id| board.tasks.get(id)).map(key_of).collect()
}

#[test]
fn every_task_of_a_plan_blocks_every_task_of_a_dependent_plan() {
    let mut board = Board::default();
    // The dependent plan comes first.
    let second = plan("03-02", &["03-01"], &[("T1", &[]), ("T2", &["T1"])]);
    apply(&[second, first_plan()], &mut board);
    let all = ["03-01/T1", "03-01/T2", "03-01/T3", "03-01/T4", "03-01/T5", "03-01/T6", "03-01/T7"];
    assert_eq!(edges(&board, "03-01/T3"), ["03-01/T1"]);
    assert_eq!(edges(&board, "03-02/T1"), all);
    assert_eq!(edges(&board, "03-02/T2"), [&all[..], &["03-02/T1"]].concat());
}

#[test]
fn plans_may_be_on_the_board_already() {
    let mut board = Board::default();
    apply(&[first_plan()], &mut board);
    apply(&[plan("03-02", &["03-01"], &[("T1", &["03-01/T4"])])], &mut board);
    assert_eq!(edges(&board, "03-02/T1").len(), 7);
    // A task that is new in the first plan blocks the second plan when both are imported again.
    let longer = plan("03-01", &[], &[("T1", &[]), ("T8", &[])]);
    apply(&[longer, plan("03-02", &["03-01"], &[("T1", &["03-01/T4"])])], &mut board);
    assert_eq!(edges(&board, "03-02/T1").len(), 8, "what vanished from the file stays");
}

#[test]
fn only_edges_from_files_are_removed_again() {
    let mut board = Board::default();
    apply(&[first_plan()], &mut board);
    // An edge that a person has added.
    let by_hand = board.tasks.keys().copied().nth(5).expect("T6");
    let third = board.tasks.keys().copied().nth(2).expect("T3");
    board.tasks.get_mut(&third).expect("T3").blocked_by.push(by_hand);
    assert_eq!(resolved(&[first_plan()], &board).unchanged, 7);
    apply(&[plan("03-01", &[], &[("T3", &["T2"])])], &mut board);
    assert_eq!(edges(&board, "03-01/T3"), ["03-01/T6", "03-01/T2"]);
}

#[test]
fn finished_tasks_are_left_alone() {
    let mut board = Board::default();
    apply(&[first_plan()], &mut board);
    for (task, state) in board.tasks.values_mut().zip([TaskState::Completed, TaskState::Failed]) {
        task.state = state;
        task.subject = "older".to_owned();
    }
    let got = resolved(&[first_plan()], &board);
    assert_eq!((got.unchanged, got.updated.len(), got.import.create.len()), (7, 0, 0));
    board.tasks.values_mut().for_each(|task| task.subject = "older".to_owned());
    let got = resolved(&[first_plan()], &board);
    assert_eq!((got.unchanged, got.updated.len()), (2, 5));
    assert_eq!(got.updated[0].fields, ["subject"]);
}

#[test]
fn unknown_plans_and_tasks_are_refused_with_their_lines() {
    let bad = plan("03-02", &["03-01", "03-02"], &[("T1", &[]), ("T2", &["T9"]), ("T1", &[])]);
    assert_eq!(
        faults(&[bad], &Board::default()),
        [
            "03-02.jsonl:4:1: two tasks have the key `03-02/T1`; the other one is at 03-02.jsonl:2:1",
            "03-02.jsonl:1:1: plan `03-02` depends on plan `03-01`, which is neither in the files nor on the board",
            "03-02.jsonl:1:1: plan `03-02` depends on itself",
            "03-02.jsonl:3:1: task `03-02/T2` depends on unknown task `03-02/T9`; did you mean `03-02/T1`?",
        ]
    );
}

#[test]
fn cycles_are_named_by_keys() {
    let inside = plan("03-01", &[], &[("T1", &["T3"]), ("T2", &["T1"]), ("T3", &["T2"])]);
    assert_eq!(
        faults(&[inside], &Board::default()),
        [
            "03-01.jsonl:2:1: tasks form a dependency cycle: `03-01/T1` after `03-01/T3` after `03-01/T2` after `03-01/T1`"
        ]
    );
    let alone = plan("03-01", &[], &[("T1", &["T1"])]);
    assert_eq!(
        faults(&[alone], &Board::default()),
        ["03-01.jsonl:2:1: task `03-01/T1` depends on itself"]
    );
    // Through a task on the board that no file names.
    let mut board = Board::default();
    apply(&[plan("03-01", &[], &[("T1", &[]), ("T2", &[])])], &mut board);
    let mut between = Task::new(TaskId(9), "between", "");
    between.blocked_by = vec![TaskId(2)];
    board.tasks.insert(TaskId(9), between);
    board.tasks.get_mut(&TaskId(1)).expect("T1").blocked_by = vec![TaskId(9)];
    let around = plan("03-01", &[], &[("T2", &["T1"])]);
    assert_eq!(
        faults(&[around], &board),
        [
            "03-01.jsonl:2:1: tasks form a dependency cycle: `03-01/T2` after `03-01/T1` after #9 after `03-01/T2`"
        ]
    );
    board.tasks.get_mut(&TaskId(9)).expect("it").state = TaskState::Completed;
    assert_eq!(resolved(&[plan("03-01", &[], &[("T2", &["T1"])])], &board).updated.len(), 1);
}

#[test]
fn done_items_are_skipped_or_left_open() {
    let text = "- [ ] All\n  - [x] Early\n  - [ ] Late\n";
    let mut board = Board::default();
    let got = resolved(&[file("todo.md", text)], &board);
    assert_eq!((got.import.create.len(), got.skipped), (2, 1));
    assert_eq!(got.import.create[0].after, [1], "only the open item blocks");
    apply(&[file("todo.md", &text.replace('x', " "))], &mut board);
    assert_eq!(edges(&board, "todo/all"), ["todo/early", "todo/late"]);
    let got = resolved(&[file("todo.md", text)], &board);
    assert_eq!((got.unchanged, got.skipped, got.updated.len()), (3, 0, 0));
}

#[test]
fn fields_that_a_file_does_not_give_are_kept() {
    let mut board = Board::default();
    apply(&[plan("03-01", &[], &[("T1", &[])])], &mut board);
    let task = board.tasks.get_mut(&TaskId(1)).expect("T1");
    task.extra.role = Some("tester".to_owned());
    task.extra.priority = Some(3);
    task.extra.run = vec!["true".to_owned()];
    let same = plan("03-01", &[], &[("T1", &[])]);
    assert_eq!(resolved(&[same], &board).unchanged, 1);
}

#[test]
fn manifest_that_shows_the_output_of_a_task_changes_it() {
    let manifest = |more: &str| {
        let text = format!("[[task]]\nkey = \"sum\"\nsubject = \"Sum up\"\n{more}");
        file("tasks.toml", &text)
    };
    let mut board = Board::default();
    apply(&[manifest("")], &mut board);
    let shown = manifest("show_output = \"all\"\n");
    assert_eq!(resolved(&[shown], &board).updated[0].fields, ["show_output"]);
    apply(&[manifest("show_output = \"all\"\n")], &mut board);
    assert_eq!(board.tasks[&TaskId(1)].extra.output, ShowOutput::All);
    assert_eq!(resolved(&[manifest("show_output = \"all\"\n")], &board).unchanged, 1);
}

#[test]
fn key_that_is_on_the_board_twice_is_refused() {
    let mut board = Board::default();
    for id in [3, 5] {
        let mut task = Task::new(TaskId(id), "s", "");
        task.extra.key = Some("03-01/T1".to_owned());
        board.tasks.insert(TaskId(id), task);
    }
    assert_eq!(
        faults(&[plan("03-01", &[], &[("T1", &[])])], &board),
        ["03-01.jsonl:2:1: several tasks on the board have the key `03-01/T1`: #3, #5"]
    );
    board.unreadable.insert(TaskId(9));
    assert!(faults(&[plan("03-01", &[], &[])], &board)[0].contains("task 9"));
}

#[test]
fn number_of_edges_is_limited() {
    let ids: Vec<String> = (0..1100).map(|n| format!("T{n}")).collect();
    let tasks: Vec<(&str, &[&str])> = ids.iter().map(|id| (id.as_str(), &[][..])).collect();
    let files = [plan("1-1", &[], &tasks), plan("1-2", &["1-1"], &tasks)];
    let found = faults(&files, &Board::default());
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("more than 1000000 dependencies"), "{found:?}");
}
