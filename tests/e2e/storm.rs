//! Many processes on one team, killed at random points: acknowledged operations took effect exactly
//! once, and readers without a lock see whole files. `PHALANX_LONG=1` makes each storm several
//! times as long.

mod board;
mod death;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use death::Ghost;
use serde_json::Value;
use tempfile::TempDir;
use testing::TestTeam;

use crate::process::{Peer, below, helper, helper_args, lock_of, print_line, wait_for};

fn is_long() -> bool {
    std::env::var_os("PHALANX_LONG").is_some()
}

/// `few`, or five times as many with `PHALANX_LONG`.
fn scaled(few: u64) -> u64 {
    if is_long() { few * 5 } else { few }
}

fn fresh() -> (TempDir, PathBuf, TestTeam) {
    let dir = tempfile::Builder::new().prefix("phxs").tempdir_in("/tmp").expect("tempdir");
    let root = dir.path().join("root");
    let team = TestTeam::create(&root, "storm").expect("team");
    (dir, root, team)
}

fn team_of_args(words: &[String]) -> TestTeam {
    TestTeam::open(Path::new(&words[0]), "storm").expect("team")
}

/// Reads a file about a thousand times a second until `over`. Returns the number of reads, and how
/// many did not parse as JSON.
fn watch(file: &Path, over: &AtomicBool) -> (u64, u64) {
    let (mut reads, mut broken, mut ghost) = (0, 0, Ghost::default());
    while !over.load(Ordering::Relaxed) {
        let bytes = fs::read(file).expect("the file is always there");
        reads += 1;
        broken += u64::from(serde_json::from_slice::<Value>(&bytes).is_err());
        ghost.lay(&lock_of(file));
        thread::park_timeout(Duration::from_millis(1));
    }
    (reads, broken)
}

/// Runs the storm while a reader without a lock polls the file.
fn watched<T>(file: &Path, storm: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| watch(file, &over));
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(storm));
        over.store(true, Ordering::Relaxed);
        let (reads, broken) = reader.join().expect("reader");
        println!("    {}: {reads} reads without a lock, {broken} unparsable", file.display());
        assert_eq!(broken, 0);
        outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[test]
#[ignore = "helper process of id_07_joins_leaves_and_kills"]
fn join_and_leave() {
    let words = helper_args();
    let (team, name, until) =
        (team_of_args(&words), &words[1], Duration::from_secs(words[2].parse().expect("s")));
    let began = Instant::now();
    loop {
        print_line("joins");
        team.join(name).expect("join");
        print_line("in");
        if began.elapsed() > until {
            return;
        }
        print_line("leaves");
        assert!(team.leave(name).expect("leave"), "{name} was on the roster");
        print_line("out");
    }
}

/// ID-07: concurrent joins and leaves, with kills in between.
#[test]
fn id_07_joins_leaves_and_kills() {
    let (_dir, root, team) = fresh();
    let file = root.join("teams/storm/config.json");
    let (count, seconds) = (40, scaled(3));
    let (mut ops, mut killed, mut holding) = (0, 0, 0);
    let expected: BTreeSet<String> = watched(&file, || {
        let start = |n: usize| {
            let (name, seconds) = (format!("m{n}"), seconds.to_string());
            let peer = helper("storm::join_and_leave", &[&root.to_string_lossy(), &name, &seconds]);
            (name, peer)
        };
        let mut peers: Vec<(String, Peer)> = (0..count).map(start).collect();
        let mut victims: BTreeSet<String> = BTreeSet::new();
        let began = Instant::now();
        while victims.len() < count / 3 && began.elapsed() < Duration::from_secs(seconds) {
            // Every other victim is a lock holder, if one can be caught.
            let holder =
                peers.iter().position(|(_, p)| killed % 2 == 1 && p.holds(&lock_of(&file)));
            let any = usize::try_from(below(count as u64)).expect("small");
            let (name, peer) = &mut peers[holder.unwrap_or(any)];
            // The death of a process that has not started proves nothing.
            if victims.contains(name) || peer.printed_lines().len() < 2 || peer.is_over() {
                thread::park_timeout(Duration::from_millis(5));
                continue;
            }
            holding += u32::from(peer.die(&lock_of(&file)));
            victims.insert(name.clone());
            killed += 1;
            let there = team.teammates().expect("roster").contains(name);
            match peer.printed_lines().last().map(String::as_str) {
                Some("in") => assert!(there, "{name} had joined"),
                Some("out") => assert!(!there, "{name} had left"),
                _ => {}
            }
            // As the lead does with a member that vanished.
            team.leave(name).expect("leave");
        }
        for (name, peer) in &mut peers {
            assert!(victims.contains(name) || peer.end(), "{name}: {:?}", peer.printed());
            ops += peer.printed_lines().iter().filter(|s| *s == "in" || *s == "out").count();
        }
        peers.iter().map(|(name, _)| name.clone()).filter(|name| !victims.contains(name)).collect()
    });
    let found: BTreeSet<String> = team.teammates().expect("roster").into_iter().collect();
    println!(
        "    {count} processes, {ops} joins and leaves, {killed} killed, {holding} of them holding the lock"
    );
    assert_eq!(found, expected);
    assert_eq!(team.teammates().expect("roster").len(), found.len(), "nobody is there twice");
}

#[test]
#[ignore = "helper process of msg_06_writers_markers_removers_and_kills"]
fn write_mail() {
    let words = helper_args();
    let (team, me, count) =
        (team_of_args(&words), &words[1], words[2].parse::<u32>().expect("count"));
    for n in 0..count {
        team.append("bob", me, &n.to_string(), &format!("{me}-{n}")).expect("append");
        print_line(&n.to_string());
    }
}

#[test]
#[ignore = "helper process of msg_06_writers_markers_removers_and_kills"]
fn mark_mail() {
    let team = team_of_args(&helper_args());
    loop {
        let unread = team.entries("bob").expect("entries").into_iter().filter(|e| !e.3);
        let some: Vec<String> = unread.take(100).map(|e| e.0).collect();
        team.mark("bob", &some).expect("mark");
        thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "helper process of msg_06_writers_markers_removers_and_kills"]
fn remove_mail() {
    let team = team_of_args(&helper_args());
    loop {
        let read = team.entries("bob").expect("entries").into_iter().filter(|e| e.3);
        // Some messages stay, so that their order can be checked.
        let some: Vec<String> = read.filter(|e| !e.2.ends_with(['2', '7'])).map(|e| e.0).collect();
        if !some.is_empty() {
            some.iter().for_each(|id| print_line(&format!("removes {id}")));
            team.remove("bob", &some).expect("remove");
            some.iter().for_each(|id| print_line(&format!("removed {id}")));
        }
        thread::park_timeout(Duration::from_millis(20));
    }
}

fn ids(peers: &[Peer], verb: &str) -> BTreeSet<String> {
    let said = peers.iter().flat_map(Peer::printed_lines);
    said.filter_map(|line| line.strip_prefix(verb).map(|id| id.trim().to_owned())).collect()
}

/// MSG-06: each message reported as stored exists once or was removed by the remover, in order per
/// sender.
#[test]
fn msg_06_writers_markers_removers_and_kills() {
    let (_dir, root, team) = fresh();
    team.join("bob").expect("join");
    let file = root.join("teams/storm/inboxes/bob.json");
    let (writers, each) = (16_u64, scaled(100));
    let (mut killed, mut holding, most) = (0, 0, 15);
    let (writing, removers) = watched(&file, || {
        let root = root.to_string_lossy();
        let start = |n| helper("storm::write_mail", &[&root, &format!("w{n}"), &each.to_string()]);
        let mut writing: Vec<Peer> = (0..writers).map(start).collect();
        let mut markers = vec![helper("storm::mark_mail", &[&root])];
        let mut removers = vec![helper("storm::remove_mail", &[&root])];
        while writing.iter_mut().any(|w| !w.is_over()) {
            thread::park_timeout(Duration::from_millis(20 + below(150)));
            let busy = (0..writing.len())
                .rev()
                .find(|n| writing[*n].printed_lines().len() > 2 && !writing[*n].is_over());
            let holder = writing.iter().position(|w| w.holds(&lock_of(&file)));
            let any = holder.or(busy).filter(|_| killed < most).map(|n| &mut writing[n]);
            let (victim, again) = match (killed % 3, any) {
                (0, Some(writer)) => (Some(writer), None),
                (1, _) if killed < most => (markers.last_mut(), Some("storm::mark_mail")),
                (2, _) if killed < most => (removers.last_mut(), Some("storm::remove_mail")),
                _ => continue,
            };
            holding += u32::from(victim.is_some_and(|v| v.die(&lock_of(&file))));
            killed += 1;
            match again {
                Some("storm::mark_mail") => markers.push(helper("storm::mark_mail", &[&root])),
                Some(name) => removers.push(helper(name, &[&root])),
                None => {}
            }
        }
        for peer in markers.iter_mut().chain(removers.last_mut()) {
            if !peer.is_over() {
                peer.die(&lock_of(&file));
            }
        }
        for writer in &mut writing {
            writer.end();
        }
        (writing, removers)
    });
    // Includes the archive, because read messages are moved there.
    let left = team.all("bob").expect("entries");
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    left.iter().for_each(|e| *times.entry(&e.0).or_default() += 1);
    let (begun, done) = (ids(&removers, "removes"), ids(&removers, "removed"));
    let stored: Vec<String> = writing
        .iter()
        .enumerate()
        .flat_map(|(n, w)| w.printed_lines().into_iter().map(move |said| format!("w{n}-{said}")))
        .collect();
    let lost =
        stored.iter().filter(|id| !times.contains_key(id.as_str()) && !begun.contains(*id)).count();
    let twice = times.values().filter(|n| **n > 1).count();
    let undead = done.iter().filter(|id| times.contains_key(id.as_str())).count();
    println!(
        "    {writers} writers x {each}: {} stored, {} left, {} removed, {lost} lost, {twice} duplicated, {undead} back; \
         {killed} killed, {holding} of them holding the lock",
        stored.len(),
        left.len(),
        done.len()
    );
    assert_eq!((lost, twice, undead), (0, 0, 0));
    for writer in 0..writers {
        let sent = left.iter().filter(|e| e.1 == format!("w{writer}"));
        let order: Vec<u32> = sent.map(|e| e.2.parse().expect("number")).collect();
        assert!(order.is_sorted_by(|a, b| a < b), "w{writer}: {order:?}");
    }
    assert!(
        stored.len() as u64 >= (writers - 8) * each,
        "most writers came to their end: {}",
        stored.len()
    );
}

#[test]
#[ignore = "helper process of tk_02_many_claimers"]
fn claim_tasks() {
    let words = helper_args();
    let (team, me) = (team_of_args(&words), &words[1]);
    print_line("ready");
    // All claimers start together, when the parent closes the pipe.
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).expect("pipe");
    while let Some(id) = patiently(|| team.claim_next(me)) {
        print_line(&format!("claimed {id}"));
        patiently(|| team.complete(id, me));
    }
}

/// Retries after a lock timeout, which one of many claimers can hit on a busy machine.
fn patiently<T>(mut act: impl FnMut() -> Result<T, String>) -> T {
    loop {
        match act() {
            Err(e) if e.starts_with("gave up waiting") => {}
            done => return done.expect("a step of a claimer"),
        }
    }
}

/// TK-02: each task is claimed by exactly one of the racing claimers.
#[test]
fn tk_02_many_claimers() {
    let (_dir, root, team) = fresh();
    let (claimers, tasks) = (64, usize::try_from(scaled(200)).expect("small"));
    team.add_tasks(tasks).expect("tasks");
    let start =
        |n: usize| helper("storm::claim_tasks", &[&root.to_string_lossy(), &format!("c{n}")]);
    let mut peers: Vec<Peer> = (0..claimers).map(start).collect();
    wait_for("all claimers", || peers.iter().all(|p| !p.printed_lines().is_empty()).then_some(()));
    let began = Instant::now();
    // Releases all pipes before waiting for any process, so that none starts late.
    peers.iter_mut().for_each(Peer::release);
    for peer in &mut peers {
        assert!(peer.end(), "{:?}", peer.printed());
    }
    let took = began.elapsed();
    let claims = |peer: &Peer| {
        peer.printed_lines()
            .iter()
            .filter_map(|s| s.strip_prefix("claimed ")?.parse().ok())
            .collect()
    };
    let per: Vec<Vec<u64>> = peers.iter().map(claims).collect();
    let mut all: Vec<u64> = per.iter().flatten().copied().collect();
    let winners = per.iter().filter(|p| !p.is_empty()).count();
    all.sort_unstable();
    println!(
        "    {claimers} claimers, {tasks} tasks: {} claims by {winners} of them in {took:?}",
        all.len()
    );
    assert_eq!(all, (1..=tasks as u64).collect::<Vec<_>>(), "each task is claimed exactly once");
    for (id, state, owner, ..) in team.board().expect("tasks").0 {
        let claimer = per.iter().position(|p| p.contains(&id)).map(|n| format!("c{n}"));
        assert_eq!((state, owner), ("completed", claimer), "task {id}");
    }
}

#[test]
#[ignore = "helper process of sec_07_no_umask_opens_the_tree"]
fn all_under_an_umask() {
    let words = helper_args();
    // Of 32 bits on Linux and 16 on macOS.
    let bits = nix::libc::mode_t::from_str_radix(&words[1], 8).expect("octal");
    nix::sys::stat::umask(nix::sys::stat::Mode::from_bits_truncate(bits));
    let team = TestTeam::create(&Path::new(&words[0]).join("deep/root"), "storm").expect("team");
    team.join("bob").expect("join");
    team.append("bob", "team-lead", "hi", "1").expect("append");
    team.mark("bob", &["1".to_owned()]).expect("mark");
    team.add_tasks(3).expect("tasks");
    let id = team.claim_next("bob").expect("claim").expect("task");
    team.complete(id, "bob").expect("complete");
    team.delete_task(id).expect("delete");
}

/// SEC-07: whatever the umask, no other user can read anything.
#[test]
fn sec_07_no_umask_opens_the_tree() {
    for umask in ["000", "022", "077"] {
        let dir = tempfile::Builder::new().prefix("phxs").tempdir_in("/tmp").expect("tempdir");
        let mut peer = helper("storm::all_under_an_umask", &[&dir.path().to_string_lossy(), umask]);
        assert!(peer.end(), "{:?}", peer.printed());
        let (mut open, mut seen) = (vec![dir.path().join("deep")], 0);
        while let Some(path) = open.pop() {
            let meta = fs::symlink_metadata(&path).expect("look");
            let wanted = if meta.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(
                meta.permissions().mode() & 0o7777,
                wanted,
                "{} under umask {umask}",
                path.display()
            );
            seen += 1;
            if meta.is_dir() {
                open.extend(
                    fs::read_dir(&path).expect("list").map(|entry| entry.expect("entry").path()),
                );
            }
        }
        println!("    umask {umask}: {seen} files and directories, all 0600 and 0700");
        assert!(seen > 15);
    }
}
