//! Tests of files and directories on the real file system, some with several processes.

use super::write::{Temp, exchange_by_renames};
use super::*;
use crate::testing::{helper, run_helper};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

fn dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it exists").mode() & 0o777
}

fn names(path: &Path) -> Vec<String> {
    list(path).expect("readable directory")
}

fn refusal<T: std::fmt::Debug>(result: Result<T, FsError>) -> String {
    match result.expect_err("it must be refused") {
        error @ (FsError::Refused { .. } | FsError::TooLarge { .. }) => error.to_string(),
        error @ FsError::Io { .. } => panic!("refused by the system, not by us: {error:?}"),
    }
}

/// Runs one of the helpers below in a process of its own, under this umask.
fn under_umask(umask: &str, name: &str, dir: &Path) {
    let test = helper(&format!("fs::tests::{name}"));
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]);
    shell.arg(test.get_program()).args(test.get_args()).env("SYS_TEST_DIR", dir);
    run_helper(shell);
}

fn helper_dir() -> PathBuf {
    PathBuf::from(std::env::var_os("SYS_TEST_DIR").expect("helpers are run by a test"))
}

#[test]
fn read_returns_whole_files_and_none_if_missing() {
    let dir = dir();
    let file = dir.path().join("f");
    assert!(read(&file, 10).expect("missing is no error").is_none());
    fs::write(&file, "0123456789").expect("writable");
    assert_eq!(read(&file, 10).expect("readable").as_deref(), Some(b"0123456789".as_slice()));
    assert!(refusal(read(&file, 9)).contains("larger than 9 bytes"));
    assert_eq!(len(&file).expect("readable"), Some(10));
    assert_eq!(len(&dir.path().join("none")).expect("missing is no error"), None);
}

/// A file without a length, such as one of /proc, and one that grows meanwhile are read whole.
#[cfg(target_os = "linux")]
#[test]
fn read_is_whole_at_any_length() {
    let dir = dir();
    let file = dir.path().join("f");
    for len in [0, 1, 1023, 1024, 1025, 5000] {
        let bytes = vec![b'x'; len];
        fs::write(&file, &bytes).expect("writable");
        for limit in [len as u64, len as u64 + 1, 1 << 20] {
            assert_eq!(read(&file, limit).expect("readable").as_ref(), Some(&bytes), "{len}");
        }
        if let Some(less) = (len as u64).checked_sub(1) {
            assert!(refusal(read(&file, less)).contains("larger than"), "{len}");
        }
    }
    let limits = read(Path::new("/proc/self/limits"), 1 << 20).expect("readable").expect("there");
    assert!(limits.ends_with(b"\n") && limits.len() > 1000, "{}", limits.len());
    assert!(refusal(read(Path::new("/proc/self/limits"), 100)).contains("larger than 100 bytes"));
}

#[test]
fn read_refuses_links_directories_and_fifos() {
    let dir = dir();
    let (real, link, fifo) =
        (dir.path().join("real"), dir.path().join("link"), dir.path().join("fifo"));
    fs::write(&real, "secret").expect("writable");
    symlink(&real, &link).expect("writable");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).expect("writable");
    assert!(refusal(read(&link, 100)).contains("symbolic link"));
    assert!(refusal(read(dir.path(), 100)).contains("not a regular file"));
    assert!(refusal(read(&fifo, 100)).contains("not a regular file"));
    assert!(refusal(append_line(&link, b"x")).contains("symbolic link"));
    assert_eq!(fs::read_to_string(&real).expect("untouched"), "secret");
}

#[test]
fn ranges_and_tails_stop_at_the_end_of_the_file() {
    let dir = dir();
    let file = dir.path().join("log");
    assert!(read_range(&file, 3, 4).expect("missing is empty").is_empty());
    fs::write(&file, "0123456789").expect("writable");
    assert_eq!(read_range(&file, 3, 4).expect("readable"), b"3456");
    assert_eq!(read_range(&file, 8, 4).expect("readable"), b"89");
    assert!(read_range(&file, 99, 4).expect("readable").is_empty());
    assert_eq!(read_tail(&file, 3).expect("readable"), b"789");
    assert_eq!(read_tail(&file, 99).expect("readable"), b"0123456789");
}

#[test]
fn atomic_write_replaces_and_leaves_nothing_behind() {
    let dir = dir();
    let file = dir.path().join("f.json");
    write_atomic(&file, b"one").expect("writable");
    write_atomic(&file, b"two").expect("writable");
    assert_eq!(fs::read(&file).expect("readable"), b"two");
    assert!(!replace_if(&file, b"three", Sync::Entry, || false).expect("writable"));
    assert_eq!(fs::read(&file).expect("readable"), b"two");
    let has_temporary = || names(dir.path()).len() == 2;
    assert!(replace_if(&file, b"four", Sync::Bytes, has_temporary).expect("writable"));
    assert_eq!(fs::read(&file).expect("readable"), b"four");
    assert_eq!(names(dir.path()), ["f.json"]);
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_temporary_one() {
    let dir = dir();
    let taken = dir.path().join("taken");
    fs::create_dir(&taken).expect("writable");
    fs::write(taken.join("inner"), "").expect("writable");
    assert!(matches!(write_atomic(&taken, b"x"), Err(FsError::Io { op: "replace", .. })));
    let file = dir.path().join("f");
    let panicking = thread::spawn(move || {
        replace_if(&file, b"x", Sync::Entry, || panic!("the caller's check failed"))
    });
    assert!(panicking.join().is_err());
    assert_eq!(names(dir.path()), ["taken"]);
    assert!(write_atomic(Path::new("/"), b"x").is_err());
}

#[test]
fn atomic_write_replaces_a_link_and_not_its_target() {
    let dir = dir();
    let (real, link) = (dir.path().join("real"), dir.path().join("link"));
    fs::write(&real, "kept").expect("writable");
    symlink(&real, &link).expect("writable");
    write_atomic(&link, b"new").expect("writable");
    assert_eq!(fs::read_to_string(&real).expect("readable"), "kept");
    assert!(fs::symlink_metadata(&link).expect("exists").is_file());
}

/// A process that changes a file sweeps the temporary files of those that were late to create it.
#[test]
fn late_creator_whose_temporary_file_was_swept_creates_nothing() {
    let dir = dir();
    let file = dir.path().join("file");
    let late = Temp::create(&file, b"late", Sync::Nothing).expect("writable");
    assert!(create_new(&file, b"first").expect("writable"));
    write_atomic(&file, b"changed").expect("writable");
    assert!(!late.publish_new(&file).expect("no error"));
    assert_eq!(fs::read(&file).expect("file"), b"changed");
}

#[test]
fn create_new_never_overwrites() {
    let dir = dir();
    let file = dir.path().join("f");
    assert!(create_new(&file, b"first").expect("writable"));
    assert!(!create_new(&file, b"second").expect("writable"));
    assert_eq!(fs::read(&file).expect("readable"), b"first");
    assert_eq!(mode(&file), 0o600);
    symlink(dir.path().join("nowhere"), dir.path().join("dangling")).expect("writable");
    assert!(!create_new(&dir.path().join("dangling"), b"x").expect("a link counts as there"));
}

#[test]
fn append_line_terminates_lines_and_refuses_newlines() {
    let dir = dir();
    let file = dir.path().join("log");
    fs::write(&file, "").expect("writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("own file");
    append_line(&file, b"a").expect("writable");
    append_line(&file, b"").expect("writable");
    assert!(refusal(append_line(&file, b"b\nc")).contains("newline"));
    assert_eq!(fs::read(&file).expect("readable"), b"a\n\n");
    assert_eq!(mode(&file), 0o600);
}

const WRITERS: usize = 4;
const LINES: usize = 200;

#[test]
fn lines_of_several_processes_never_mix() {
    let dir = dir();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let mut command = helper("fs::tests::helper_appends");
            command.env("SYS_TEST_DIR", dir.path()).env("SYS_TEST_WRITER", writer.to_string());
            thread::spawn(move || run_helper(command))
        })
        .collect();
    writers.into_iter().for_each(|writer| drop(writer.join().expect("every helper passes")));
    let text = fs::read_to_string(dir.path().join("log")).expect("written");
    assert_eq!(text.lines().count(), WRITERS * LINES);
    for line in text.lines() {
        let first = &line[..1];
        assert!(
            line.len() == 3000 && line.chars().all(|c| c.to_string() == first),
            "torn: {line:.60}"
        );
    }
}

#[test]
#[ignore = "helper process of lines_of_several_processes_never_mix"]
fn helper_appends() {
    let writer = std::env::var("SYS_TEST_WRITER").expect("helpers are run by a test");
    let file = helper_dir().join("log");
    for _ in 0..LINES {
        append_line(&file, writer.repeat(3000).as_bytes()).expect("writable");
    }
}

#[test]
fn everything_is_private_under_any_umask() {
    for umask in ["000", "022", "777"] {
        let dir = dir();
        under_umask(umask, "helper_writes_everything", dir.path());
        let tree = dir.path().join("a");
        assert_eq!((mode(&tree), mode(&tree.join("b"))), (0o700, 0o700), "umask {umask}");
        for name in names(&tree.join("b")) {
            assert_eq!(mode(&tree.join("b").join(&name)), 0o600, "{name} under umask {umask}");
        }
        assert_eq!(names(&tree.join("b")).len(), 3);
    }
}

#[test]
#[ignore = "helper process of everything_is_private_under_any_umask"]
fn helper_writes_everything() {
    let dir = helper_dir().join("a/b");
    private_dir(&dir).expect("writable");
    write_atomic(&dir.join("atomic"), b"x").expect("writable");
    create_new(&dir.join("new"), b"x").expect("writable");
    append_line(&dir.join("log"), b"x").expect("writable");
}

#[test]
fn private_dir_restricts_own_mode_and_refuses_links_and_files() {
    let dir = dir();
    let loose = dir.path().join("loose");
    fs::create_dir(&loose).expect("writable");
    fs::set_permissions(&loose, fs::Permissions::from_mode(0o777)).expect("own directory");
    private_dir(&loose).expect("ours");
    private_dir(&loose).expect("again is fine");
    assert_eq!(mode(&loose), 0o700);

    let (link, file) = (dir.path().join("link"), dir.path().join("file"));
    symlink(&loose, &link).expect("writable");
    fs::write(&file, "").expect("writable");
    assert!(refusal(private_dir(&link)).contains("symbolic link"));
    assert!(refusal(private_dir(&link.join(""))).contains("symbolic link"), "trailing slash");
    assert!(refusal(private_dir(&file)).contains("not a directory"));
    assert!(matches!(private_dir(&file.join("below")), Err(FsError::Io { .. })));
}

#[test]
fn private_dir_refuses_another_users_directory() {
    if crate::env::effective_uid() != 0 {
        return; // Only root can give a directory away.
    }
    let dir = dir();
    let foreign = dir.path().join("foreign");
    fs::create_dir(&foreign).expect("writable");
    std::os::unix::fs::chown(&foreign, Some(12345), None).expect("root may");
    assert!(refusal(private_dir(&foreign)).contains("user 12345"));
}

#[test]
fn list_is_sorted_and_removal_does_not_follow_links() {
    let dir = dir();
    assert!(names(&dir.path().join("none")).is_empty());
    let (tree, outside) = (dir.path().join("tree"), dir.path().join("outside"));
    fs::create_dir_all(tree.join("deep/er")).expect("writable");
    fs::create_dir(&outside).expect("writable");
    fs::write(outside.join("precious"), "").expect("writable");
    fs::write(tree.join("b"), "").expect("writable");
    symlink(&outside, tree.join("a")).expect("writable");
    let odd = std::os::unix::ffi::OsStrExt::from_bytes(b"\xff\xfe");
    fs::write(tree.join::<&std::ffi::OsStr>(odd), "").expect("writable");
    assert_eq!(names(&tree), ["a", "b", "deep"]);

    assert!(remove_dir_all(&tree).expect("ours"));
    assert!(!remove_dir_all(&tree).expect("absent is no error"));
    symlink(&outside, &tree).expect("writable");
    assert!(remove_dir_all(&tree).expect("the link goes"));
    assert_eq!(names(&outside), ["precious"]);
    assert!(!exists(&tree));
    assert!(remove_file(&outside.join("precious")).expect("ours"));
    assert!(!remove_file(&outside.join("precious")).expect("absent is no error"));
}

#[test]
fn paths_are_checked_resolved_and_renamed() {
    let dir = dir();
    let (file, link) = (dir.path().join("f"), dir.path().join("dangling"));
    fs::write(&file, "").expect("writable");
    symlink(dir.path().join("nowhere"), &link).expect("writable");
    assert!(exists(&link) && exists(&file) && !exists(&dir.path().join("none")));
    assert!(is_dir(dir.path()) && !is_dir(&file));
    assert!(canonical(&link).is_err());
    assert_eq!(canonical(&dir.path().join("./f")).ok(), fs::canonicalize(&file).ok());
    rename(&file, &dir.path().join("g")).expect("ours");
    assert!(!exists(&file) && exists(&dir.path().join("g")));
    let error = rename(&file, &dir.path().join("h")).expect_err("gone");
    assert!(error.to_string().starts_with("cannot rename /"), "{error}");
}

#[test]
fn exchange_swaps_a_file_with_a_directory() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (path, other) = (dir.path().join("config.json"), dir.path().join("other"));
    fs::create_dir(&path).expect("writable");
    fs::write(path.join("inside"), "").expect("writable");
    fs::write(&other, "whole").expect("writable");
    exchange(&path, &other).expect("one file system");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "whole");
    assert!(exists(&other.join("inside")));
}

#[test]
fn exchange_by_renames_is_undone_after_a_failure() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (path, other) = (dir.path().join("config.json"), dir.path().join("other"));
    fs::write(&path, "old").expect("writable");
    exchange_by_renames(&path, &other).expect_err("the other path is missing");
    assert_eq!(names(dir.path()), ["config.json"]);
    fs::write(&other, "new").expect("writable");
    exchange_by_renames(&path, &other).expect("both exist");
    assert_eq!(names(dir.path()), ["config.json", "other"]);
    assert_eq!(fs::read_to_string(&path).expect("readable"), "new");
}

#[test]
fn make_private_restores_the_owners_access() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (file, sub, link) = (dir.path().join("f"), dir.path().join("d"), dir.path().join("l"));
    fs::write(&file, "").expect("writable");
    fs::create_dir(&sub).expect("writable");
    symlink(&file, &link).expect("writable");
    for path in [&file, &sub] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("own file");
        assert!(make_private(path).expect("own file"));
    }
    assert_eq!((mode(&file), mode(&sub)), (0o600, 0o700));
    assert!(!make_private(&link).expect("a link is left alone"));
}

#[test]
fn copy_has_the_contents_and_the_time_of_the_file() {
    let dir = dir();
    let (from, to) = (dir.path().join("from"), dir.path().join("to"));
    assert!(!copy_new(&from, &to).expect("no file"));
    assert!(!to.exists());
    fs::write(&from, "text").expect("a file");
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_nanos(1_000_000_000_000_000_123);
    fs::File::options().write(true).open(&from).expect("it").set_modified(time).expect("a time");
    assert!(copy_new(&from, &to).expect("copied"));
    assert_eq!(fs::read(&to).expect("readable"), b"text");
    assert_eq!(fs::metadata(&to).expect("it").modified().expect("a time"), time);
    assert_eq!(mode(&to), 0o600);
    assert!(copy_new(&from, &to).is_err(), "an existing file is not replaced");
}
