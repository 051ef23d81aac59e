//! Ends whole process trees, including processes that tried to detach themselves by setsid, nohup
//! or ignored hang-ups, and signals no process outside the tree.
//!
//! A tree consists of the root's descendants and of every process in a session whose leader belongs
//! to the tree. A process can only join a session by descending from its leader, so this finds
//! orphans whose parent has already exited, and never matches an unrelated process. If the root is
//! gone, a mark in the environment identifies the members: only descendants inherit it, provided
//! that no other process knows it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::super::clock::{self, Deadline};
use super::super::stat::Stat;
use super::super::{env, native};
use super::process::{Process, ignores, is_subreaper, kill, signal, wait_exit};

/// Time between the TERM to a supervisor and the KILL to its tree.
pub const SUPERVISED_END: Duration = Duration::from_secs(5);
/// The last part of [`SUPERVISED_END`]: the grace time of the tree, from its own TERM.
const TREE_GRACE: Duration = Duration::from_secs(1);
/// Time limit for killed processes to vanish.
const KILLED_WITHIN: Duration = Duration::from_secs(2);
/// Interval of scanning the whole process table for new members during a wait.
const RESCAN: Duration = Duration::from_millis(50);
/// Maximum rounds of stopping all members and scanning for new ones before the kill, so that a fork
/// bomb cannot delay it without end.
const FREEZE_ROUNDS: usize = 10;

/// Returns the live descendants of `pid`, parents before their children, without `pid` itself.
#[cfg(test)]
pub(crate) fn descendants(pid: i32) -> Vec<Process> {
    let table = native::stats();
    let root = table.iter().find(|stat| stat.pid == pid);
    root.map(|root| below(&[process(root)], &table)).unwrap_or_default()
}

/// Ends all descendants of `root`, and `root` itself if `include_root` is set. Sends TERM and CONT
/// first, and HUP at once to processes that ignore TERM, as interactive shells do. Sends HUP to all
/// after half of `grace`, and KILL after `grace`. Returns the processes that still exist two
/// seconds later. Never signals the calling process.
///
/// If `root` is the calling process, all of its dead children are reaped as well, so no other
/// thread may be waiting for a child.
pub fn end_tree(root: Process, include_root: bool, grace: Duration) -> Vec<Process> {
    if root.pid == Pid::this().as_raw() && !include_root && is_subreaper() && reap_children() {
        // Orphaned descendants become children of a subreaper: without children it has no
        // descendants.
        return Vec::new();
    }
    Tree::new(&[root], include_root, &[]).end(grace)
}

/// Ends all of these trees with their roots, as [`end_tree`] does. They share the scans of the
/// process table, which cost more than everything else here.
pub fn end_trees(roots: &[Process], grace: Duration) -> Vec<Process> {
    if roots.is_empty() { Vec::new() } else { Tree::new(roots, true, &[]).end(grace) }
}

/// Ends processes that end their own trees on TERM, as [`crate::child::Supervisor::supervise`]
/// does. Sends TERM to all of them, waits, and ends the trees of those that still run. `programs`
/// are processes below them, which a supervisor that was killed could not end.
pub fn end_supervised(supervisors: &[Process], programs: &[Process]) {
    for supervisor in supervisors {
        signal(*supervisor, libc::SIGTERM);
    }
    let deadline = Deadline::after(SUPERVISED_END - TREE_GRACE);
    for supervisor in supervisors {
        wait_exit(*supervisor, deadline.remaining());
    }
    let left = supervisors.iter().chain(programs).copied();
    let left: Vec<Process> = left.filter(|process| process.is_alive()).collect();
    end_trees(&left, TREE_GRACE);
}

/// Ends every process of this user that has one of `marks` (`NAME=value`) in its environment, and
/// all of their descendants, as [`end_tree`] does. For a tree whose root was killed.
pub fn end_marked(marks: &[String], grace: Duration) -> Vec<Process> {
    if marks.is_empty() {
        return Vec::new();
    }
    Tree::new(&[], false, marks).end(grace)
}

/// Requests an orderly exit. HUP is only for processes that ignore TERM: one that cleans up on TERM
/// but does not handle HUP would die of the HUP.
fn request_exit(process: Process) {
    signal(process, libc::SIGTERM);
    if ignores(process.pid, libc::SIGTERM) {
        signal(process, libc::SIGHUP);
    }
    signal(process, libc::SIGCONT);
}

fn hang_up(process: Process) {
    signal(process, libc::SIGHUP);
    signal(process, libc::SIGCONT);
}

fn stop(process: Process) {
    signal(process, libc::SIGSTOP);
}

/// Processes that are ended together: the trees below some roots, or all that have a mark.
struct Tree<'a> {
    /// Empty if only the marks identify the members.
    roots: &'a [Process],
    include_roots: bool,
    marks: &'a [String],
    caller: i32,
    /// Every process that ever belonged to the tree, in order of discovery. Dead ones stay, because
    /// they may be the parents of children found later.
    known: Vec<Process>,
    /// Members that lead a session.
    leaders: HashSet<Process>,
    /// Members that were sent the signals of the current phase.
    signalled: HashSet<Process>,
}

impl<'a> Tree<'a> {
    fn new(roots: &'a [Process], include_roots: bool, marks: &'a [String]) -> Tree<'a> {
        let (caller, known) = (Pid::this().as_raw(), roots.to_vec());
        Tree {
            roots,
            include_roots,
            marks,
            caller,
            known,
            leaders: HashSet::new(),
            signalled: HashSet::new(),
        }
    }

    /// Runs the whole sequence and returns the survivors.
    fn end(mut self, grace: Duration) -> Vec<Process> {
        let deadline = Deadline::after(grace);
        if !self.grow() && self.roots.is_empty() {
            return Vec::new();
        }
        let ended = self.pursue(Deadline::after(grace / 2), request_exit)
            || self.pursue(Deadline::after(deadline.remaining()), hang_up);
        if !ended {
            self.freeze();
            self.pursue(Deadline::after(KILLED_WITHIN), kill);
        }
        self.reap();
        self.living()
    }

    /// Scans the process table and adds new members; returns true if there were any.
    fn grow(&mut self) -> bool {
        let table = native::stats();
        let before = self.known.len();
        loop {
            let mut found = below(&self.known, &table);
            found.extend(self.in_led_sessions(&table));
            found.extend(self.marked(&table));
            found.retain(|process| process.pid != self.caller);
            let members = self.known.len();
            for process in found {
                if !self.known.contains(&process) {
                    self.known.push(process);
                }
            }
            if self.known.len() == members {
                return members > before;
            }
        }
    }

    fn in_led_sessions(&mut self, table: &[Stat]) -> Vec<Process> {
        let leads = |stat: &&Stat| stat.session == stat.pid && self.known.contains(&process(stat));
        let leaders: Vec<Process> = table.iter().filter(leads).map(process).collect();
        self.leaders.extend(leaders);
        // The kernel does not reuse a dead leader's pid while its session exists. A leader whose
        // pid belongs to another process has no session left.
        let taken: HashMap<i32, u64> = table.iter().map(|stat| (stat.pid, stat.start)).collect();
        self.leaders
            .retain(|leader| taken.get(&leader.pid).is_none_or(|start| *start == leader.start));
        let sessions: HashSet<i32> = self.leaders.iter().map(|leader| leader.pid).collect();
        table
            .iter()
            .filter(|stat| !stat.ended && sessions.contains(&stat.session))
            .map(process)
            .collect()
    }

    fn marked(&self, table: &[Stat]) -> Vec<Process> {
        if self.marks.is_empty() {
            return Vec::new();
        }
        let is_new = |stat: &&Stat| !stat.ended && !self.known.contains(&process(stat));
        let marked = table.iter().filter(is_new).filter(|stat| has_word(stat.pid, self.marks));
        marked.map(process).collect()
    }

    /// Returns the processes to end, dead or alive.
    fn targets(&self) -> impl Iterator<Item = Process> {
        let spared = |process: &Process| {
            process.pid == self.caller || (!self.include_roots && self.roots.contains(process))
        };
        self.known.iter().copied().filter(move |process| !spared(process))
    }

    fn living(&self) -> Vec<Process> {
        self.targets().filter(|process| process.is_alive()).collect()
    }

    /// Applies `act` to every member that has not had it in this phase.
    fn signal_new_members(&mut self, act: fn(Process)) {
        let new: Vec<Process> =
            self.targets().filter(|process| !self.signalled.contains(process)).collect();
        for process in new {
            act(process);
            self.signalled.insert(process);
        }
    }

    /// Stops all members until no new one appears, so that none forks between the scan and the
    /// kill.
    fn freeze(&mut self) {
        self.signalled.clear();
        for _ in 0..FREEZE_ROUNDS {
            self.signal_new_members(stop);
            if !self.grow() {
                return;
            }
        }
    }

    /// Applies `act` to all members, including new ones, and waits until none is left. Returns
    /// false at the deadline.
    fn pursue(&mut self, deadline: Deadline, act: fn(Process)) -> bool {
        self.signalled.clear();
        self.signal_new_members(act);
        let mut step = Duration::from_millis(2);
        let mut next_scan = Deadline::after(RESCAN);
        loop {
            let all_gone = self.living().is_empty();
            // Dying members may have left children, so the tree is gone only if a scan of the whole
            // table finds no new member.
            if all_gone || next_scan.expired() {
                let grown = self.grow();
                self.signal_new_members(act);
                next_scan = Deadline::after(RESCAN);
                if all_gone && !grown {
                    return true;
                }
            }
            self.reap();
            if deadline.expired() {
                return false;
            }
            clock::sleep(step.min(deadline.remaining()));
            step = (step * 2).min(Duration::from_millis(20));
        }
    }

    /// Reaps the caller's zombies if the caller is a root, since then all of its children are being
    /// ended. Zombies of other parents are left to them.
    fn reap(&self) {
        if self.roots.iter().any(|root| root.pid == self.caller) {
            reap_children();
        }
    }
}

/// Reaps all dead children of this process; returns true if no children are left.
fn reap_children() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return false,
            Ok(_) | Err(Errno::EINTR) => {}
            Err(errno) => return errno == Errno::ECHILD,
        }
    }
}

fn process(stat: &Stat) -> Process {
    Process { pid: stat.pid, start: stat.start }
}

/// Returns the live descendants of `roots`, breadth first, without the roots. Ignores roots that
/// are not in the table.
fn below(roots: &[Process], table: &[Stat]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<&Stat>> = HashMap::new();
    for stat in table {
        children.entry(stat.ppid).or_default().push(stat);
    }
    let present: HashSet<Process> = table.iter().map(process).collect();
    let mut found: Vec<Process> =
        roots.iter().copied().filter(|root| present.contains(root)).collect();
    let mut seen: HashSet<Process> = found.iter().copied().collect();
    let given = found.len();
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        for child in children.get(&parent.pid).into_iter().flatten() {
            // A child cannot be older than its parent. One that seems older is the child of an
            // earlier process with the same pid.
            if !child.ended && child.start >= parent.start && seen.insert(process(child)) {
                found.push(process(child));
            }
        }
    }
    found.split_off(given)
}

/// Returns true if the process belongs to this user and was started with one of `words`
/// (`NAME=value`) in its environment. Misses a process that has overwritten its environment.
fn has_word(pid: i32, words: &[String]) -> bool {
    native::owner(pid) == Some(env::effective_uid())
        && native::environment(pid)
            .unwrap_or_default()
            .iter()
            .any(|found| words.iter().any(|word| found == word.as_bytes()))
}
