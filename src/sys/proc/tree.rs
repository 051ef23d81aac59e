//! Ends whole process trees, those included that tried to get away (setsid, nohup, ignored hang-ups), and nothing
//! outside. Refuses to know why.
//!
//! A tree is what descends from its root by parent, plus every process in a session whose leader belongs to the
//! tree: one joins a session only by descending from its leader, so that this finds orphans whose parent died before
//! we looked, and never a stranger. Where the root has gone, a mark in the environment (which only descent can give,
//! when nobody else knows it) says who belongs to the tree.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::super::clock::{self, Deadline};
use super::table::{self, Stat};
use super::{Process, is_subreaper, signal};

/// How long killed processes may take to vanish.
const KILLED_WITHIN: Duration = Duration::from_secs(2);
/// How often the whole process table is read for new members while waiting.
const RESCAN: Duration = Duration::from_millis(50);
/// Rounds of "stop all, look for new ones" before the kill; a fork bomb must not hold us for ever.
const FREEZE_ROUNDS: usize = 10;

/// The live processes below `pid`, the whole tree without `pid` itself, parents before their children.
#[cfg(test)]
pub(crate) fn descendants(pid: i32) -> Vec<Process> {
    let table = table::all();
    let root = table.iter().find(|stat| stat.pid == pid);
    root.map(|root| below(&[process(root)], &table)).unwrap_or_default()
}

/// Ends everything below `root` (and `root` itself on demand): TERM and CONT first, HUP at once to whoever ignores TERM
/// (interactive shells do) and after half of `grace` to all, KILL after `grace`. Returns those that are still there
/// two seconds later. Never signals the calling process. When `root` is the calling process, its dead children are
/// reaped as well, all of them: then no other thread may be waiting for a child of its own.
pub(crate) fn end_tree(root: Process, include_root: bool, grace: Duration) -> Vec<Process> {
    if root.pid == Pid::this().as_raw() && !include_root && is_subreaper() && reap_children() {
        // What loses its parent becomes our child: without children there is nothing below us.
        return Vec::new();
    }
    Tree::new(Some(root), include_root, &[]).end(grace)
}

/// Ends every process of our user with one of the words `marks` (`NAME=value`) in its environment and all below these,
/// like [`end_tree`] does. For when the root that held them together was killed.
pub(crate) fn end_marked(marks: &[String], grace: Duration) -> Vec<Process> {
    if marks.is_empty() {
        return Vec::new();
    }
    Tree::new(None, false, marks).end(grace)
}

/// Not with a HUP for all: one who cleans up on TERM but does not handle HUP would die of the latter.
fn ask(process: Process) {
    signal(process, libc::SIGTERM);
    if table::ignores(process.pid, libc::SIGTERM) {
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

fn kill(process: Process) {
    signal(process, libc::SIGKILL);
}

struct Tree<'a> {
    /// None where only the marks hold the tree together.
    root: Option<Process>,
    include_root: bool,
    marks: &'a [String],
    caller: i32,
    /// Everything that ever belonged to the tree, in order of discovery. The dead stay: children may point to them.
    known: Vec<Process>,
    /// Members that lead a session of their own.
    leaders: HashSet<Process>,
    /// Who has been sent the signals of this phase.
    told: HashSet<Process>,
}

impl<'a> Tree<'a> {
    fn new(root: Option<Process>, include_root: bool, marks: &'a [String]) -> Tree<'a> {
        let (caller, known) = (Pid::this().as_raw(), root.into_iter().collect());
        Tree {
            root,
            include_root,
            marks,
            caller,
            known,
            leaders: HashSet::new(),
            told: HashSet::new(),
        }
    }

    /// The whole sequence; gives those that are still there.
    fn end(mut self, grace: Duration) -> Vec<Process> {
        let deadline = Deadline::after(grace);
        self.grow();
        let ended = self.pursue(Deadline::after(grace / 2), ask)
            || self.pursue(Deadline::after(deadline.remaining()), hang_up);
        if !ended {
            self.freeze();
            self.pursue(Deadline::after(KILLED_WITHIN), kill);
        }
        self.reap();
        self.living()
    }

    /// Reads the process table and adds what has come to belong to the tree; true when there was something.
    fn grow(&mut self) -> bool {
        let table = table::all();
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
        // A dead leader's number stays taken while its session lives; once another process has it, forget it.
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
        let marked =
            table.iter().filter(is_new).filter(|stat| table::has_word(stat.pid, self.marks));
        marked.map(process).collect()
    }

    /// Whom we are to end, dead or alive.
    fn targets(&self) -> impl Iterator<Item = Process> {
        let spared = |process: &Process| {
            process.pid == self.caller || (Some(*process) == self.root && !self.include_root)
        };
        self.known.iter().copied().filter(move |process| !spared(process))
    }

    fn living(&self) -> Vec<Process> {
        self.targets().filter(|process| process.is_alive()).collect()
    }

    /// Does `act` to everyone to whom this phase has not done it yet.
    fn tell_new_ones(&mut self, act: fn(Process)) {
        let new: Vec<Process> =
            self.targets().filter(|process| !self.told.contains(process)).collect();
        for process in new {
            act(process);
            self.told.insert(process);
        }
    }

    /// Stops everyone until no new one turns up, so that nobody forks between our look and our kill.
    fn freeze(&mut self) {
        self.told.clear();
        for _ in 0..FREEZE_ROUNDS {
            self.tell_new_ones(stop);
            if !self.grow() {
                return;
            }
        }
    }

    /// Does `act` to everyone, latecomers included, and waits until nobody is left; false at the deadline.
    fn pursue(&mut self, deadline: Deadline, act: fn(Process)) -> bool {
        self.told.clear();
        self.tell_new_ones(act);
        let mut step = Duration::from_millis(2);
        let mut next_scan = Deadline::after(RESCAN);
        loop {
            let all_gone = self.living().is_empty();
            // The dying may have left children: "all gone" counts only when a look at the whole table agrees.
            if all_gone || next_scan.expired() {
                let grown = self.grow();
                self.tell_new_ones(act);
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

    /// Zombies of a foreign parent are that parent's business; those of the caller are ours, when all of its
    /// children are being ended anyway.
    fn reap(&self) {
        if self.root.is_some_and(|root| root.pid == self.caller) {
            reap_children();
        }
    }
}

/// Takes leave of all dead children of this process; true when it has no children any more.
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

/// The live processes below any of `roots` (which have to be in the table to count), breadth first, without them.
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
            // Nobody is older than its parent; who seems to be got here through a reused pid.
            if !child.ended && child.start >= parent.start && seen.insert(process(child)) {
                found.push(process(child));
            }
        }
    }
    found.split_off(given)
}
