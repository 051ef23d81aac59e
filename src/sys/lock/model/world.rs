//! A file system in memory with a clock of its own, on shuttle's locks: every call is a point where the scheduler may
//! run somebody else, and time passes only while everybody sleeps. Inode numbers are given out again as soon as
//! nobody pins them, as ext4 does.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};

use crate::sys::lock::disk::{Disk, Seen};

/// What everybody shares.
pub(super) struct World {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct State {
    /// Milliseconds.
    pub(super) now: u64,
    names: BTreeMap<PathBuf, u64>,
    stamps: BTreeMap<u64, u64>,
    marked: BTreeSet<u64>,
    pins: BTreeMap<u64, usize>,
    alive: usize,
    sleeping: BTreeMap<usize, u64>,
    sleeps: usize,
    gate: bool,
    alone: Option<usize>,
    /// The file that the lock protects, and how many writes of it were made.
    pub(super) value: u64,
    pub(super) written: u64,
    pub(super) refused: u64,
    pub(super) compromised: u64,
    pub(super) longest_wait: u64,
}

impl State {
    fn inode(&self, path: &Path) -> io::Result<u64> {
        self.names.get(path).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn seen(&self, inode: u64) -> Seen {
        let stamp = UNIX_EPOCH
            + Duration::from_millis(self.stamps.get(&inode).copied().unwrap_or_default());
        Seen { is_dir: true, id: (1, inode), stamp, is_marked: self.marked.contains(&inode) }
    }

    fn make(&mut self, path: &Path, marked: bool) -> io::Result<()> {
        if self.names.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let taken = |n: &u64| self.names.values().any(|i| i == n) || self.pins.contains_key(n);
        let inode = (1..).find(|n| !taken(n)).expect("numbers do not run out");
        self.names.insert(path.to_owned(), inode);
        self.stamps.insert(inode, self.now);
        self.marked.remove(&inode);
        if marked {
            self.marked.insert(inode);
        }
        Ok(())
    }

    fn unpin(&mut self, inode: u64) {
        let left = self.pins.remove(&inode).unwrap_or_default();
        if left > 1 {
            self.pins.insert(inode, left - 1);
        }
    }
}

impl World {
    /// A world for so many actors, all of whom must come.
    pub(super) fn of(actors: usize) -> Arc<World> {
        let state = State { alive: actors, now: 1_000_000_000, ..State::default() };
        Arc::new(World { state: Mutex::new(state), changed: Condvar::new() })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics in here")
    }

    fn wait<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).expect("nobody panics in here")
    }

    /// A directory that somebody left there `age` milliseconds ago; one of us, where it is marked.
    pub(super) fn leave(&self, path: &Path, age: u64, marked: bool) {
        let mut state = self.state();
        state.make(path, marked).expect("an empty world");
        let inode = state.names[path];
        let stamp = state.now - age;
        state.stamps.insert(inode, stamp);
    }

    /// Everything that is there.
    pub(super) fn names(&self) -> Vec<PathBuf> {
        self.state().names.keys().cloned().collect()
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.state().now
    }

    /// Lets this actor sleep; the last one to fall asleep moves the clock to the first one to wake up.
    pub(super) fn sleep(&self, ms: u64) {
        let mut state = self.state();
        let (me, wake) = (state.sleeps, state.now + ms);
        state.sleeps += 1;
        state.sleeping.insert(me, wake);
        while state.now < wake {
            let first = state.sleeping.values().min().copied().unwrap_or(wake);
            if state.sleeping.len() == state.alive && first > state.now {
                state.now = first;
                self.changed.notify_all();
            } else {
                state = self.wait(state);
            }
        }
        state.sleeping.remove(&me);
    }

    /// One more actor.
    pub(super) fn arrives(&self) {
        self.state().alive += 1;
    }

    /// An actor has gone home.
    pub(super) fn leaves(&self) {
        self.state().alive -= 1;
        self.changed.notify_all();
    }
}

/// One process.
#[derive(Clone)]
pub(super) struct Actor {
    pub(super) world: Arc<World>,
    id: usize,
    /// How often it may still be suspended past the stale time, at any of its calls.
    suspensions: Arc<AtomicU32>,
    is_mortal: Arc<AtomicBool>,
    dead: Arc<AtomicBool>,
}

impl Actor {
    pub(super) fn new(world: &Arc<World>, id: usize, suspensions: u32) -> Actor {
        let flag = || Arc::new(AtomicBool::new(false));
        let suspensions = Arc::new(AtomicU32::new(suspensions));
        Actor { world: world.clone(), id, suspensions, is_mortal: flag(), dead: flag() }
    }

    /// From now on it may be suspended so often.
    pub(super) fn may_be_suspended(&self, times: u32) {
        self.suspensions.store(times, Ordering::Relaxed);
    }

    /// kill -9: the kernel closes its descriptors, and nothing else happens.
    pub(super) fn dies(&self) {
        self.dead.store(true, Ordering::Relaxed);
    }

    /// From now on it may die before any of its calls.
    pub(super) fn may_die(&self) {
        self.is_mortal.store(true, Ordering::Relaxed);
    }

    /// A call: perhaps suspended before it, and never while somebody is alone.
    pub(super) fn call(&self) -> io::Result<MutexGuard<'_, State>> {
        if self.is_mortal.load(Ordering::Relaxed) && thread_rng().gen_range(0..8) == 0 {
            self.dies();
        }
        if self.dead.load(Ordering::Relaxed) {
            return Err(ErrorKind::BrokenPipe.into());
        }
        self.perhaps_suspended();
        let mut state = self.world.state();
        while state.alone.is_some_and(|id| id != self.id) {
            state = self.world.wait(state);
        }
        Ok(state)
    }

    fn perhaps_suspended(&self) {
        let left = self.suspensions.load(Ordering::Relaxed);
        if left == 0
            || self.world.state().alone == Some(self.id)
            || thread_rng().gen_range(0..6) != 0
        {
            return;
        }
        self.suspensions.store(left - 1, Ordering::Relaxed);
        self.world.sleep([4_000, 7_000, 11_000, 14_000][thread_rng().gen_range(0..4)]);
    }

    /// Runs `what` in one step for all others.
    pub(super) fn alone<T>(&self, what: impl FnOnce() -> T) -> T {
        self.call().expect("alive").alone = Some(self.id);
        let answer = what();
        self.world.state().alone = None;
        self.world.changed.notify_all();
        answer
    }

    /// mkdir(2) as other programs call it.
    pub(super) fn make_plain(&self, path: &Path) -> io::Result<()> {
        self.call()?.make(path, false)
    }

    /// utimes(2) by path, as Node does.
    pub(super) fn touch(&self, path: &Path, ms: u64) -> io::Result<()> {
        let mut state = self.call()?;
        let inode = state.inode(path)?;
        state.stamps.insert(inode, ms);
        Ok(())
    }

    /// The gate, waited for in steps; none when it stayed shut.
    pub(super) fn gate(&self, limit: u64, step: u64) -> Option<Open> {
        let begun = self.world.now_ms();
        loop {
            {
                let mut state = self.call().ok()?;
                if !state.gate {
                    state.gate = true;
                    return Some(Open(self.world.clone()));
                }
                if state.now - begun >= limit {
                    return None;
                }
            }
            self.world.sleep(step);
        }
    }
}

/// The gate, held; the kernel opens it when its holder dies.
pub(super) struct Open(Arc<World>);

impl Drop for Open {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.0.state().gate = false;
        }
    }
}

/// An open directory.
pub(super) struct Pin {
    world: Arc<World>,
    inode: u64,
}

impl Drop for Pin {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.world.state().unpin(self.inode);
        }
    }
}

impl Disk for Actor {
    type Handle = Pin;

    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(self.world.now_ms())
    }

    fn make(&self, path: &Path) -> io::Result<()> {
        self.call()?.make(path, true)
    }

    fn open(&self, path: &Path) -> io::Result<Pin> {
        let mut state = self.call()?;
        let inode = state.inode(path)?;
        *state.pins.entry(inode).or_default() += 1;
        Ok(Pin { world: self.world.clone(), inode })
    }

    fn look(&self, path: &Path) -> io::Result<Seen> {
        let state = self.call()?;
        Ok(state.seen(state.inode(path)?))
    }

    fn look_at(&self, dir: &Pin) -> io::Result<Seen> {
        Ok(self.call()?.seen(dir.inode))
    }

    fn stamp(&self, dir: &Pin, time: SystemTime) -> io::Result<()> {
        let ms = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        let mut state = self.call()?;
        state.stamps.insert(dir.inode, u64::try_from(ms).expect("a time of the model"));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.call()?;
        let inode = state.inode(from)?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn rename_to_free(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.call()?;
        let inode = state.inode(from)?;
        if state.names.contains_key(to) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        state.names.remove(from);
        state.names.insert(to.to_owned(), inode);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.call()?;
        state.inode(path)?;
        state.names.remove(path);
        Ok(())
    }
}
