//! The index against the task files: it saves reads, and never changes what is read.

use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;
use crate::tests::fresh;
use sys::clock::now_ms;

/// A team with a large board, whose tasks all have the subject `from disk`.
fn large() -> (TempDir, TeamStore, Vec<TaskId>) {
    let (dir, team) = fresh();
    // A few more, so that the board stays large when tasks are removed.
    let ids: Vec<TaskId> = (1..=LARGE_BOARD as u64 + 8).map(TaskId).collect();
    for id in &ids {
        put(&team, *id, "from disk");
    }
    (dir, team, ids)
}

fn put(team: &TeamStore, id: TaskId, subject: &str) {
    let text = format!(r#"{{"id":"{id}","subject":"{subject}","status":"pending"}}"#);
    let written = fs::replace_if(&team.layout.task(id), text.as_bytes(), Sync::Nothing, || true);
    assert!(written.expect("write"));
}

/// Returns the index after a read at a time when all files count as settled.
fn indexed(team: &TeamStore, ids: &[TaskId]) -> Vec<u8> {
    team.read_tasks(ids, BoardScope::All, later()).expect("board");
    fs::read(&team.layout.board_index(), MAX_INDEX).expect("read").expect("an index")
}

/// A time when all files count as settled.
fn later() -> u64 {
    now_ms() + 2 * SETTLED_MS
}

fn put_index(team: &TeamStore, index: &[u8]) {
    let path = team.layout.board_index();
    assert!(fs::replace_if(&path, index, Sync::Nothing, || true).expect("write"));
}

/// Replaces a text in the index by another one of the same length.
fn tamper(index: &[u8]) -> Vec<u8> {
    let mut index = index.to_vec();
    let (from, to) = (b"from disk", b"the index");
    for at in 0..index.len() - from.len() {
        if index[at..].starts_with(from) {
            index[at..at + to.len()].copy_from_slice(to);
        }
    }
    index
}

/// Returns the number of tasks whose text comes from a tampered index.
fn from_index(team: &TeamStore, ids: &[TaskId], now_ms: u64) -> usize {
    let board = team.read_tasks(ids, BoardScope::All, now_ms).expect("board");
    board.tasks.values().filter(|task| task.subject == "the index").count()
}

#[test]
fn only_changed_files_are_read() {
    let (_dir, team, ids) = large();
    put_index(&team, &tamper(&indexed(&team, &ids)));
    assert_eq!(from_index(&team, &ids, later()), ids.len());
    put(&team, TaskId(3), "is changed now");
    fs::remove_file(&team.layout.task(TaskId(4))).expect("remove");
    let rest: Vec<TaskId> = ids.iter().copied().filter(|id| id.0 != 4).collect();
    assert_eq!(from_index(&team, &rest, later()), ids.len() - 2);
}

#[test]
fn recently_changed_files_are_neither_trusted_nor_indexed() {
    // Before the files were written, which can take longer than they need to settle.
    let started = now_ms();
    let (_dir, team, ids) = large();
    team.read_tasks(&ids, BoardScope::All, started).expect("board");
    assert!(!fs::exists(&team.layout.board_index()));
    put_index(&team, &tamper(&indexed(&team, &ids)));
    assert_eq!(from_index(&team, &ids, started), 0);
}

#[test]
fn index_is_written_again_only_after_many_changes() {
    let (_dir, team, ids) = large();
    let first = indexed(&team, &ids);
    put(&team, TaskId(1), "changed");
    assert!(indexed(&team, &ids) == first, "one change is cheaper to read than to write");
    for id in &ids[..100] {
        put(&team, *id, "changed");
    }
    let second = indexed(&team, &ids);
    assert!(second != first && parse(&second, &header()).len() == ids.len());
}

#[test]
fn open_board_is_the_board_without_closed_tasks() {
    let (_dir, team, ids) = large();
    let close = |id: u64, status: &str| {
        let text = format!(r#"{{"subject":"from disk","status":"{status}"}}"#);
        let path = team.layout.task(TaskId(id));
        fs::replace_if(&path, text.as_bytes(), Sync::Nothing, || true).expect("write");
    };
    (1..=400).for_each(|id| close(id, "completed"));
    indexed(&team, &ids);
    (200..=300).for_each(|id| close(id, "in_progress"));
    close(401, "completed");
    for now in [later(), now_ms()] {
        let mut board = team.read_tasks(&ids, BoardScope::All, now).expect("board");
        let open = team.read_tasks(&ids, BoardScope::Open, now).expect("board");
        board.tasks.retain(|_, task| !task.state.frees_dependants());
        assert_eq!((open.tasks.len(), open == board), (ids.len() - 300, true));
    }
}

#[test]
fn unusual_and_unreadable_files_are_not_indexed() {
    let (_dir, team, ids) = large();
    let write = |id: u64, text: &[u8]| {
        fs::replace_if(&team.layout.task(TaskId(id)), text, Sync::Nothing, || true).expect("write");
    };
    write(1, br#"{"subject":["unusual"],"status":"completed"}"#);
    write(2, b"torn {");
    let index = indexed(&team, &ids);
    let board = team.read_tasks(&ids, BoardScope::All, later()).expect("board");
    assert_eq!((board.tasks.len(), board.unreadable), (ids.len() - 1, [TaskId(2)].into()));
    let entries = parse(&index, &header());
    assert_eq!((entries.len(), entries[0].id), (ids.len() - 2, TaskId(3)));
}

#[test]
fn damaged_index_never_changes_the_board() {
    let (_dir, team, ids) = large();
    let index = indexed(&team, &ids);
    let board = team.read_tasks(&ids, BoardScope::All, later()).expect("board");
    let body = header().len();
    let mut damaged: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![b'x'; 1000],
        index[1..].to_vec(),
        [index.as_slice(), b"more"].concat(),
        [&index[..body], &index[body..], &index[body..]].concat(),
        [&index[..body], &[0xff; 560]].concat(),
        [&index[..body], &[0; 560]].concat(),
        [&b"phalanx board 1 of-another-boot\n"[..], &tamper(&index)[body..]].concat(),
    ];
    damaged.extend((0..index.len()).step_by(997).map(|end| index[..end].to_vec()));
    for file in damaged {
        put_index(&team, &file);
        assert!(
            team.read_tasks(&ids, BoardScope::All, later()).expect("board") == board,
            "{} bytes",
            file.len()
        );
    }
    for at in (0..body + 200).step_by(7).chain((body + 200..index.len()).step_by(997)) {
        let mut file = index.clone();
        file[at] ^= 0x55;
        put_index(&team, &file);
        let read = team.read_tasks(&ids, BoardScope::All, later()).expect("board");
        assert_eq!(read.tasks.len(), ids.len(), "byte {at}");
    }
}

#[test]
fn index_behind_a_link_is_neither_read_nor_written() {
    let (dir, team, ids) = large();
    let index = tamper(&indexed(&team, &ids));
    let outside = dir.path().join("outside");
    fs::create_dir_exclusive(&outside).expect("directory");
    fs::remove_dir_all(&team.layout.board()).expect("remove");
    symlink(&outside, team.layout.board()).expect("link");
    assert_eq!(from_index(&team, &ids, later()), 0);
    assert!(fs::list(&outside).expect("list").is_empty());
    fs::remove_file(&team.layout.board()).expect("remove");
    fs::create_dir_exclusive(&team.layout.board()).expect("directory");
    let target = outside.join("index");
    assert!(fs::replace_if(&target, &index, Sync::Nothing, || true).expect("write"));
    symlink(&target, team.layout.board_index()).expect("link");
    assert_eq!(from_index(&team, &ids, later()), 0);
    assert!(fs::read(&target, MAX_INDEX).expect("read").is_some_and(|kept| kept == index));
}
