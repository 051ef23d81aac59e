//! CR-13: lock directories of killed processes, and directories that only look like them.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};

use super::super::{DirLock, LockError};
use super::{Place, SOON};
use crate::clock;
use crate::testing::{Guarded, PATIENCE, helper, until};

/// Less than the time after which a lock is stale.
const BEFORE_STALE: Duration = Duration::from_secs(5);
const ATTRIBUTE: &str = "user.phalanx.gate";

/// Runs a process that acquires the lock and dies at a point, or while it holds the lock.
fn die(place: &Place, point: Option<&str>) {
    let mut command = helper("lock::tests::killed::helper_holds_the_lock");
    command.env("SYS_TEST_DIR", place.dir.path());
    if let Some(point) = point {
        command.env("PHALANX_FAILPOINT", point);
    }
    let mut process = Guarded::spawn(&mut command);
    if point.is_none() {
        until("the helper holds the lock", || place.dir.path().join("held").exists());
        process.0.kill().expect("ours");
        fs::remove_file(place.dir.path().join("held")).expect("exists");
    }
    let status = process.0.wait().expect("ours");
    assert_eq!(status.signal(), Some(9), "{point:?} was not passed");
}

#[test]
#[ignore = "helper process of the tests of killed processes"]
fn helper_holds_the_lock() {
    let dir = PathBuf::from(std::env::var_os("SYS_TEST_DIR").expect("helpers are run by a test"));
    let _lock = DirLock::acquire(&dir.join("box.json"), &dir.join("gate"), PATIENCE).expect("free");
    fs::write(dir.join("held"), "").expect("writable");
    clock::sleep(PATIENCE);
}

#[cfg(debug_assertions)]
#[test]
fn cr_13_lock_of_a_killed_process_is_taken_over_before_it_is_stale() {
    for point in [Some("lock.made"), Some("lock.marked"), Some("lock.placed"), None] {
        let place = Place::new();
        die(&place, point);
        let is_left = place.lock_dir().exists();
        assert_eq!(is_left, matches!(point, Some("lock.placed") | None), "{point:?}");
        let lock = place.acquire(BEFORE_STALE).expect("its holder is dead");
        assert!(lock.still_ours(), "{point:?}");
        assert!(place.acquire(SOON).is_err(), "{point:?}: held");
        drop(lock);
        assert_eq!(place.names(), ["gate"], "{point:?}");
    }
}

/// A killed process is found even if another one was killed while it took over its lock.
#[test]
fn cr_13_locks_of_processes_killed_in_a_row_are_taken_over() {
    let place = Place::new();
    (0..5).for_each(|_| die(&place, None));
    place.acquire(BEFORE_STALE).expect("all holders are dead");
    assert_eq!(place.names(), ["gate"]);
}

fn assert_is_left_alone(place: &Place) {
    let stamp = || fs::metadata(place.lock_dir()).and_then(|found| found.modified()).expect("dir");
    let before = stamp();
    assert!(matches!(place.acquire(SOON), Err(LockError::Timeout { .. })));
    assert_eq!(stamp(), before, "touched");
}

/// Node reclaims a stale lock by rmdir and mkdir; the file system may give the new directory the
/// number of the old one.
#[test]
fn directory_that_replaced_the_lock_of_a_killed_process_is_left_alone() {
    let place = Place::new();
    die(&place, None);
    fs::remove_dir(place.lock_dir()).and_then(|()| fs::create_dir(place.lock_dir())).expect("ours");
    assert_is_left_alone(&place);
}

#[test]
fn lock_of_a_process_behind_another_gate_is_left_alone() {
    let place = Place::new();
    let other = place.dir.path().join("other");
    let _held = DirLock::acquire(&place.target(), &other, PATIENCE).expect("free");
    assert_is_left_alone(&place);
}

/// The gate's file is never deleted by phalanx, but a user may do so while a process is behind it.
#[test]
fn lock_of_a_process_behind_a_deleted_gate_is_left_alone() {
    let place = Place::new();
    let held = place.acquire(PATIENCE).expect("free");
    fs::remove_file(place.gate()).expect("exists");
    assert_is_left_alone(&place);
    assert!(held.still_ours());
}

/// On a network file system the same gate may be held by processes of two machines.
#[test]
fn lock_of_another_machine_is_left_alone() {
    let place = Place::new();
    die(&place, None);
    let dir = File::open(place.lock_dir()).expect("exists");
    let mut mark = vec![0; 200];
    let len = fgetxattr(&dir, ATTRIBUTE, &mut mark).expect("marked");
    // Another digit in the id of the boot.
    mark[0] = if mark[0] == b'0' { b'1' } else { b'0' };
    fsetxattr(&dir, ATTRIBUTE, &mark[..len], XattrFlags::empty()).expect("ours");
    assert_is_left_alone(&place);
}

/// As on a file system without extended attributes: here, the name of the spare is too long.
#[test]
fn lock_that_cannot_be_marked_excludes_all_the_same() {
    let place = Place::new();
    let target = place.dir.path().join("x".repeat(248));
    let acquire = |limit| DirLock::acquire(&target, &place.gate(), limit);
    let lock = acquire(PATIENCE).expect("free");
    let path = place.names().into_iter().find(|name| name.ends_with(".lock")).expect("made");
    let dir = File::open(place.dir.path().join(&path)).expect("exists");
    assert!(fgetxattr(&dir, ATTRIBUTE, &mut [0; 200]).is_err(), "not marked");
    assert!(lock.still_ours());
    assert!(acquire(SOON).is_err());
    drop(lock);
    assert_eq!(place.names(), ["gate"]);
}

/// Kills holders all the time, beside others and a program that locks as Node does. Each holder
/// leaves its pid inside; a pid of a living process there means two holders.
#[test]
fn cr_13_killed_holders_admit_no_two_holders() {
    const KILLS: usize = 60;
    let place = Place::new();
    let script = "cd \"$1\"; while [ ! -e over ]; do if mkdir box.json.lock 2>/dev/null; then \
                  [ -s inside ] && kill -0 $(cat inside) 2>/dev/null && echo overlap >> errors; \
                  echo $$ > inside; : > inside; rmdir box.json.lock; \
                  echo x >> turns; fi; done";
    let mut peer = std::process::Command::new("sh");
    let mut peer = Guarded::spawn(peer.args(["-c", script, "sh"]).arg(place.dir.path()));
    let mut command = helper("lock::tests::killed::helper_takes_turns");
    command.env("SYS_TEST_DIR", place.dir.path()).stdout(std::process::Stdio::null());
    let mut workers = [Guarded::spawn(&mut command), Guarded::spawn(&mut command)];
    let turns = || fs::read(place.dir.path().join("turns")).map_or(0, |turns| turns.len());
    for nth in 0..KILLS {
        let before = turns();
        until("some turns", || turns() > before + nth % 7);
        workers[nth % 2] = Guarded::spawn(&mut command);
    }
    fs::write(place.dir.path().join("over"), "").expect("writable");
    peer.0.wait().expect("ours");
    drop(workers);
    let errors = fs::read_to_string(place.dir.path().join("errors")).unwrap_or_default();
    assert_eq!(errors, "");
    assert!(place.acquire(BEFORE_STALE).expect("no holder is left").still_ours());
}

#[test]
#[ignore = "helper process of cr_13_killed_holders_admit_no_two_holders"]
fn helper_takes_turns() {
    let dir = PathBuf::from(std::env::var_os("SYS_TEST_DIR").expect("helpers are run by a test"));
    let (inside, append) = (dir.join("inside"), |name: &str| {
        let file = fs::OpenOptions::new().append(true).create(true).open(dir.join(name));
        std::io::Write::write_all(&mut file.expect("writable"), b"x\n").expect("writable");
    });
    loop {
        let acquired = DirLock::acquire(&dir.join("box.json"), &dir.join("gate"), BEFORE_STALE);
        let Ok(lock) = acquired else { return append("errors") };
        let other = fs::read_to_string(&inside).unwrap_or_default();
        if other.trim().parse().is_ok_and(|pid: i32| !crate::testing::is_dead(pid)) {
            append("errors");
        }
        fs::write(&inside, format!("{}\n", std::process::id())).expect("writable");
        std::thread::yield_now();
        if !lock.still_ours() {
            append("errors");
        }
        fs::write(Path::new(&inside), "").expect("writable");
        append("turns");
    }
}
