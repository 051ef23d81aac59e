//! Tests of the locks: among threads, real processes, and against lock directories of other programs.

mod gate;

use super::disk::{Disk, Real, Seen};
use super::*;
use crate::sys::testing::{Guarded, PATIENCE, helper, run_helper, until};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::SystemTime;

/// The limit of an attempt that must fail.
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
        DirLock::acquire(&self.target(), &self.gate(), Afterwards::Removed, limit)
    }

    /// A lock directory of another program, last stamped `age` ago (negative: in the future).
    fn foreign_lock(&self, age_secs: i64) {
        fs::create_dir(self.lock_dir()).expect("writable");
        stamp(&self.lock_dir(), age_secs);
    }

    /// All there is but the place of the one whose turn is next, which is there once two have met.
    fn names(&self) -> Vec<String> {
        let mut names = crate::sys::fs::list(self.dir.path()).expect("readable");
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
fn a_directory_lock_is_there_and_gone() {
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

/// CR-10: what says that a lock is held is no error and no lock.
#[test]
fn one_at_a_time_among_threads_and_processes() {
    let place = Place::new();
    fs::write(place.target(), "0").expect("writable");
    let others: Vec<_> = (0..2)
        .map(|_| {
            let mut command = helper("sys::lock::tests::helper_counts");
            command.env("SYS_TEST_DIR", place.dir.path());
            thread::spawn(move || run_helper(command))
        })
        .collect();
    thread::scope(|scope| {
        (0..3).for_each(|_| drop(scope.spawn(|| count_up(place.dir.path()))));
    });
    others.into_iter().for_each(|other| drop(other.join().expect("every helper passes")));
    assert_eq!(fs::read_to_string(place.target()).expect("readable"), (5 * ROUNDS).to_string());
    assert_eq!(place.names(), ["box.json", "box.json.lock.released", "gate"]);
}

const ROUNDS: usize = 40;

/// Reads, adds one, writes: every overlap of two holders loses a count.
fn count_up(dir: &Path) {
    let file = dir.join("box.json");
    for _ in 0..ROUNDS {
        let lock = DirLock::acquire(&file, &dir.join("gate"), Afterwards::Kept, PATIENCE)
            .expect("it comes free");
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
fn excludes_a_program_that_knows_only_the_directory() {
    let place = Place::new();
    fs::write(place.target(), "").expect("writable");
    // A peer of the Node kind: mkdir as the lock, no gate.
    let script = "cd \"$1\"; i=0; while [ $i -lt 50 ]; do if mkdir box.json.lock 2>/dev/null; then \
                  [ -e inside ] && echo overlap >> errors; : > inside; rm inside; rmdir box.json.lock; \
                  i=$((i+1)); fi; done; : > finished";
    let mut peer = std::process::Command::new("sh");
    let _peer = Guarded::spawn(peer.args(["-c", script, "sh"]).arg(place.dir.path()));
    let inside = place.dir.path().join("inside");
    until("the peer has had its turns", || {
        let _lock = place.acquire(PATIENCE).expect("it comes free");
        File::create_new(&inside).expect("nobody else is inside");
        thread::yield_now();
        fs::remove_file(&inside).expect("nobody else was inside");
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
fn a_fresh_lock_caught_in_reclaiming_goes_back() {
    let place = Place::new();
    place.foreign_lock(0);
    let aside = place.dir.path().join("box.json.lock.aside");
    fs::rename(place.lock_dir(), &aside).expect("ours in this test");
    assert!(!claim::finish_reclaim(&Real, &place.lock_dir(), &aside).expect("usable"));
    assert_eq!(place.names(), ["box.json.lock"]);
    // And when the place has been taken meanwhile, the newer one stays what it is.
    fs::rename(place.lock_dir(), &aside).expect("ours in this test");
    place.foreign_lock(2);
    let newer = fs::metadata(place.lock_dir()).and_then(|meta| meta.modified()).expect("exists");
    assert!(!claim::finish_reclaim(&Real, &place.lock_dir(), &aside).expect("usable"));
    assert_eq!(place.names(), ["box.json.lock"]);
    assert_eq!(
        fs::metadata(place.lock_dir()).and_then(|meta| meta.modified()).expect("exists"),
        newer
    );
}

#[test]
fn what_is_no_empty_directory_gives_a_clear_error() {
    let place = Place::new();
    place.foreign_lock(0);
    fs::write(place.lock_dir().join("pid"), "1").expect("writable");
    stamp(&place.lock_dir(), 60);
    let error = place.acquire(PATIENCE).expect_err("cannot be removed");
    let LockError::Io { path, source } = &error else { panic!("{error}") };
    assert_eq!((path, source.kind()), (&place.lock_dir(), io::ErrorKind::DirectoryNotEmpty));
    assert_eq!(place.names(), ["box.json.lock", "gate"], "put back");

    let place = Place::new();
    fs::write(place.lock_dir(), "").expect("writable");
    let error = place.acquire(PATIENCE).expect_err("a file is in the way");
    assert!(
        matches!(&error, LockError::Io { source, .. } if source.kind() == io::ErrorKind::NotADirectory)
    );
}

#[test]
fn a_lock_taken_from_us_is_noticed_and_left_alone() {
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
fn a_lock_stamped_by_somebody_else_is_not_ours_to_publish_under() {
    let place = Place::new();
    let lock = place.acquire(PATIENCE).expect("free");
    stamp(&place.lock_dir(), 1);
    assert!(!lock.still_ours());
}

#[test]
fn long_holders_stamp_when_due_and_only_then() {
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

/// The real disk, with another program that acts just before one of our calls.
#[derive(Clone)]
struct Meddled {
    before: &'static str,
    act: std::rc::Rc<dyn Fn()>,
}

impl Meddled {
    fn at(&self, call: &str) -> Real {
        if call == self.before {
            (self.act)();
        }
        Real
    }

    /// Before `never`, nobody meddles, but the disk keeps no modes.
    fn without_modes(&self, seen: Seen) -> Seen {
        Seen { is_marked: seen.is_marked && self.before != "never", ..seen }
    }
}

impl Disk for Meddled {
    type Handle = File;

    fn now(&self) -> SystemTime {
        Real.now()
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        self.at("make").make(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        // The lock's, not the spare's.
        let call = if path.ends_with("box.json.lock") { "open" } else { "open a spare" };
        self.at(call).open(path)
    }

    fn look(&self, path: &Path) -> io::Result<Seen> {
        self.at("look").look(path).map(|seen| self.without_modes(seen))
    }

    fn look_at(&self, dir: &File) -> io::Result<Seen> {
        Real.look_at(dir).map(|seen| self.without_modes(seen))
    }

    fn stamp(&self, dir: &File, time: SystemTime) -> io::Result<()> {
        Real.stamp(dir, time)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.at("rename").rename(from, to)
    }

    /// Before `no such rename`, nobody meddles, but the disk knows none that spares what is there.
    fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self.before {
            "no such rename" => Err(nix::errno::Errno::EINVAL.into()),
            _ => self.at("rename_to_free").rename_to_free(from, to),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.at("remove").remove(path)
    }
}

/// Gives up at once.
struct Hasty;

impl claim::Patience for Hasty {
    fn is_over(&self) -> bool {
        true
    }

    fn pause(&mut self) {}
}

/// A claim while a peer of the Node kind, late in reclaiming what was stale, replaces our lock by its own just
/// before one of our calls.
fn claim_with_peer(place: &Place, before: &'static str) -> Option<claim::Claim<Meddled>> {
    let lock = place.lock_dir();
    let act = std::rc::Rc::new(move || {
        fs::remove_dir(&lock).and_then(|()| fs::create_dir(&lock)).expect("the lock is there");
    });
    claim_of(place, before, act, Afterwards::Removed)
}

fn claim_of(
    place: &Place,
    before: &'static str,
    act: std::rc::Rc<dyn Fn()>,
    afterwards: Afterwards,
) -> Option<claim::Claim<Meddled>> {
    claim::Claim::take(Meddled { before, act }, &place.lock_dir(), afterwards, &mut Hasty)
        .expect("usable")
}

// Found by the model: `a_peer_that_removes_in_place_is_not_taken_for_us`.
#[test]
fn a_lock_that_a_peer_put_in_place_of_ours_is_not_adopted() {
    let place = Place::new();
    assert!(claim_with_peer(&place, "open").is_none());
    assert_eq!(place.names(), ["box.json.lock"], "the peer's lock stays");
}

#[test]
fn a_disk_that_keeps_no_modes_has_locks_all_the_same() {
    let place = Place::new();
    let lock = claim_with_peer(&place, "never").expect("free");
    assert!(lock.still_ours());
    assert_eq!(place.names(), ["box.json.lock"], "the probe is gone");
    drop(lock);
    assert!(place.names().is_empty());
}

// Found by the model: `whoever_was_suspended_in_releasing_leaves_the_next_holders_lock`.
#[test]
fn a_lock_that_a_peer_took_while_we_released_stays() {
    let place = Place::new();
    drop(claim_with_peer(&place, "rename").expect("free"));
    assert_eq!(place.names(), ["box.json.lock"], "the peer's lock stays");
}

#[test]
fn what_a_killed_release_left_is_cleared_by_the_next() {
    let place = Place::new();
    fs::create_dir(place.dir.path().join("box.json.lock.released")).expect("writable");
    drop(place.acquire(PATIENCE).expect("free"));
    assert_eq!(place.names(), ["gate"]);
}

const SPARE: &str = "box.json.lock.released";

fn inode(path: &Path) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&fs::symlink_metadata(path).expect("exists"))
}

#[test]
fn the_directory_that_was_kept_is_the_next_holders_and_as_fresh_as_a_new_one() {
    let place = Place::new();
    let kept =
        || claim_of(&place, "never", std::rc::Rc::new(|| ()), Afterwards::Kept).expect("free");
    // `never` keeps no modes, so nothing lies aside that is known to be ours: it is made anew.
    drop(kept());
    let spare = place.dir.path().join(SPARE);
    let acquire = || {
        DirLock::acquire(&place.target(), &place.gate(), Afterwards::Kept, PATIENCE)
            .expect("it comes free")
    };
    drop(acquire());
    let first = inode(&spare);
    stamp(&spare, 60);
    let lock = acquire();
    assert_eq!(place.names(), ["box.json.lock", "gate"]);
    assert_eq!(inode(&place.lock_dir()), first, "no other was made");
    let age =
        fs::metadata(place.lock_dir()).and_then(|meta| meta.modified()).expect("exists").elapsed();
    assert!(
        age.is_ok_and(|age| age < Duration::from_secs(30)),
        "others would take it for abandoned"
    );
    assert!(lock.still_ours());
    drop(lock);
    assert_eq!((place.names(), inode(&spare)), (vec![SPARE.to_owned(), "gate".to_owned()], first));
}

#[test]
fn a_foreign_lock_that_a_killed_release_moved_aside_is_not_used() {
    let place = Place::new();
    let spare = place.dir.path().join(SPARE);
    fs::create_dir(&spare).expect("writable");
    let foreign = inode(&spare);
    let lock =
        DirLock::acquire(&place.target(), &place.gate(), Afterwards::Kept, PATIENCE).expect("free");
    assert_ne!(inode(&place.lock_dir()), foreign);
    drop(lock);
    assert_ne!(inode(&spare), foreign, "ours has taken its place");
}

#[test]
fn a_peer_that_was_faster_keeps_its_lock_and_we_our_spare() {
    let place = Place::new();
    drop(
        DirLock::acquire(&place.target(), &place.gate(), Afterwards::Kept, PATIENCE).expect("free"),
    );
    let lock = place.lock_dir();
    let act = std::rc::Rc::new(move || fs::create_dir(&lock).expect("free"));
    assert!(claim_of(&place, "rename_to_free", act, Afterwards::Kept).is_none());
    assert_eq!(place.names(), ["box.json.lock", SPARE, "gate"]);
}

#[test]
fn a_disk_without_a_rename_to_a_free_name_makes_a_new_directory_each_time() {
    let place = Place::new();
    let kept = || claim_of(&place, "no such rename", std::rc::Rc::new(|| ()), Afterwards::Kept);
    for _ in 0..3 {
        let lock = kept().expect("free");
        assert!(lock.still_ours());
        drop(lock);
        assert_eq!(place.names(), [SPARE]);
    }
}

#[test]
fn links_lead_to_the_same_lock() {
    let place = Place::new();
    fs::write(place.target(), "").expect("writable");
    let alias = place.dir.path().join("alias.json");
    symlink(place.target(), &alias).expect("writable");
    let _lock =
        DirLock::acquire(&alias, &place.gate(), Afterwards::Removed, PATIENCE).expect("free");
    assert!(place.lock_dir().is_dir(), "the key is the real path, as for Node");
}
