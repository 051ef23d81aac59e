//! Tests of the locks among threads and processes, and against lock directories of other programs.

mod gate;
mod killed;

use super::*;
use crate::testing::{Guarded, PATIENCE, helper, run_helper, until};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

/// Timeout of an attempt that must fail.
const SOON: Duration = Duration::from_millis(60);

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        Place { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    fn target(&self) -> PathBuf {
        self.dir.path().join("box.json")
    }

    fn lock_dir(&self) -> PathBuf {
        fs::canonicalize(self.dir.path()).expect("exists").join("box.json.lock")
    }

    fn gate(&self) -> PathBuf {
        self.dir.path().join("gate")
    }

    fn acquire(&self, limit: Duration) -> Result<DirLock, LockError> {
        DirLock::acquire(&self.target(), &self.gate(), limit)
    }

    /// Makes a lock directory of another program, last stamped `age_secs` ago (negative: in the
    /// future).
    fn foreign_lock(&self, age_secs: i64) {
        fs::create_dir(self.lock_dir()).expect("writable");
        stamp(&self.lock_dir(), age_secs);
    }

    /// Returns the names in the directory, without the file of the waiter that claims the next
    /// turn, which exists only once a wait was long.
    fn names(&self) -> Vec<String> {
        let mut names = crate::fs::list(self.dir.path()).expect("readable");
        names.retain(|name| name != "gate.next");
        names
    }
}

fn stamp(dir: &Path, age_secs: i64) {
    let (now, offset) = (SystemTime::now(), Duration::from_secs(age_secs.unsigned_abs()));
    let time = if age_secs < 0 { now + offset } else { now - offset };
    File::open(dir).and_then(|dir| dir.set_modified(time)).expect("own directory");
}

#[test]
fn directory_lock_exists_while_it_is_held() {
    let place = Place::new();
    let lock = place.acquire(PATIENCE).expect("free");
    assert!(place.lock_dir().is_dir());
    assert!(
        fs::read_dir(place.lock_dir()).expect("readable").next().is_none(),
        "must stay empty for Node"
    );
    assert!(lock.still_ours());
    let error = place.acquire(SOON).expect_err("held");
    assert!(error.to_string().contains("gate"), "{error}");
    drop(lock);
    assert_eq!(place.names(), ["gate"]);
}

/// CR-10: an error that means "held" is neither reported nor taken for an acquired lock.
#[test]
fn one_at_a_time_among_threads_and_processes() {
    let place = Place::new();
    fs::write(place.target(), "0").expect("writable");
    let others: Vec<_> = (0..2)
        .map(|_| {
            let mut command = helper("lock::tests::helper_counts");
            command.env("SYS_TEST_DIR", place.dir.path());
            thread::spawn(move || run_helper(command))
        })
        .collect();
    thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(|| count_up(place.dir.path()))));
    });
    others.into_iter().for_each(|other| drop(other.join().expect("every helper passes")));
    assert_eq!(fs::read_to_string(place.target()).expect("readable"), (5 * ROUNDS).to_string());
    assert_eq!(place.names(), ["box.json", "gate"]);
}

const ROUNDS: usize = 40;

/// Increments the number in a file. If two holders overlapped, an increment would be lost.
fn count_up(dir: &Path) {
    let file = dir.join("box.json");
    for _ in 0..ROUNDS {
        let lock = DirLock::acquire(&file, &dir.join("gate"), PATIENCE).expect("it comes free");
        let count: usize = fs::read_to_string(&file).expect("readable").parse().expect("a number");
        thread::yield_now();
        fs::write(&file, (count + 1).to_string()).expect("writable");
        assert!(lock.still_ours());
    }
}

#[test]
#[ignore = "helper process of one_at_a_time_among_threads_and_processes"]
fn helper_counts() {
    count_up(&PathBuf::from(std::env::var_os("SYS_TEST_DIR").expect("helpers are run by a test")));
}

#[test]
fn excludes_a_program_that_does_not_use_the_gate() {
    let place = Place::new();
    fs::write(place.target(), "").expect("writable");
    // A peer that locks like a Node program: by mkdir, without the gate.
    let script = "cd \"$1\"; i=0; while [ $i -lt 50 ]; do if mkdir box.json.lock 2>/dev/null; then \
                  [ -e inside ] && echo overlap >> errors; : > inside; rm inside; rmdir box.json.lock; \
                  i=$((i+1)); fi; done; : > finished";
    let mut peer = std::process::Command::new("sh");
    let _peer = Guarded::spawn(peer.args(["-c", script, "sh"]).arg(place.dir.path()));
    let inside = place.dir.path().join("inside");
    until("the peer has had its turns", || {
        let _lock = place.acquire(PATIENCE).expect("it comes free");
        File::create_new(&inside).expect("no other holder is inside");
        thread::yield_now();
        fs::remove_file(&inside).expect("no other holder was inside");
        place.dir.path().join("finished").exists()
    });
    assert_eq!(place.names(), ["box.json", "finished", "gate"]);
}

#[test]
fn a_live_foreign_lock_is_waited_for_and_named() {
    let place = Place::new();
    place.foreign_lock(3);
    let text = place.acquire(SOON).expect_err("held").to_string();
    assert!(text.contains("box.json.lock after") && text.contains("another program"), "{text}");
    assert!(place.lock_dir().is_dir(), "not ours to remove");
    thread::scope(|scope| {
        let waiter = scope.spawn(|| place.acquire(PATIENCE).map(drop));
        fs::remove_dir(place.lock_dir()).expect("ours in this test");
        waiter.join().expect("no panic").expect("free now");
    });
}

#[test]
fn a_stamp_in_the_future_is_not_stale() {
    let place = Place::new();
    place.foreign_lock(-3600);
    assert!(matches!(place.acquire(SOON), Err(LockError::Timeout { .. })));
    assert!(place.lock_dir().is_dir());
}

#[test]
fn a_stale_lock_is_reclaimed_by_one_at_a_time() {
    for _ in 0..20 {
        let place = Place::new();
        place.foreign_lock(60);
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let lock = place.acquire(PATIENCE).expect("stale, then free");
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    assert!(lock.still_ours());
                    inside.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        assert_eq!(place.names(), ["gate"]);
    }
}

#[test]
fn non_empty_directory_or_file_in_place_of_a_lock_is_an_error() {
    let place = Place::new();
    place.foreign_lock(0);
    fs::write(place.lock_dir().join("pid"), "1").expect("writable");
    stamp(&place.lock_dir(), 60);
    let error = place.acquire(PATIENCE).expect_err("cannot be removed");
    let LockError::Io { path, source } = &error else { panic!("{error}") };
    assert_eq!((path, source.kind()), (&place.lock_dir(), io::ErrorKind::DirectoryNotEmpty));
    assert_eq!(place.names(), ["box.json.lock", "gate"]);

    let place = Place::new();
    fs::write(place.lock_dir(), "").expect("writable");
    let error = place.acquire(PATIENCE).expect_err("a file is in the way");
    assert!(
        matches!(&error, LockError::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    );
}

#[test]
fn lock_lost_to_another_program_is_detected_and_not_removed() {
    let place = Place::new();
    let lock = place.acquire(PATIENCE).expect("free");
    fs::remove_dir(place.lock_dir()).expect("ours in this test");
    assert!(!lock.still_ours());
    place.foreign_lock(0);
    assert!(!lock.still_ours());
    drop(lock);
    assert!(place.lock_dir().is_dir(), "the new holder's lock stays");
}

#[test]
fn lock_stamped_by_another_program_is_no_longer_ours() {
    let place = Place::new();
    let lock = place.acquire(PATIENCE).expect("free");
    stamp(&place.lock_dir(), 1);
    assert!(!lock.still_ours());
}

#[test]
fn holder_renews_its_stamp_only_when_due() {
    let place = Place::new();
    let lock = place.acquire(PATIENCE).expect("free");
    let stamped =
        || fs::metadata(place.lock_dir()).and_then(|meta| meta.modified()).expect("exists");
    let fresh = stamped();
    assert!(lock.still_ours());
    assert_eq!(stamped(), fresh);
    lock.pretend_stamped(SystemTime::now() - Duration::from_secs(7));
    let old = stamped();
    assert!(old < fresh);
    assert!(lock.still_ours());
    assert!(stamped() > old);
    assert!(lock.still_ours());
}

#[test]
fn drop_does_not_remove_a_lock_that_replaced_ours() {
    let place = Place::new();
    let lock = place.acquire(PATIENCE).expect("free");
    fs::remove_dir(place.lock_dir()).and_then(|()| fs::create_dir(place.lock_dir())).expect("ours");
    assert!(!lock.still_ours());
    drop(lock);
    assert_eq!(place.names(), ["box.json.lock", "gate"]);
}

#[test]
fn symbolic_link_and_its_target_share_one_lock() {
    let place = Place::new();
    fs::write(place.target(), "").expect("writable");
    let alias = place.dir.path().join("alias.json");
    symlink(place.target(), &alias).expect("writable");
    let _lock = DirLock::acquire(&alias, &place.gate(), PATIENCE).expect("free");
    assert!(place.lock_dir().is_dir(), "the key is the real path, as for Node");
}
