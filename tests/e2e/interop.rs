//! phalanx and Node on the same files, with the unmodified lock package that Claude Code uses.
//! Without the package the tests are reported as skipped, and fail in CI; `scripts/test` installs
//! it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use testing::TestTeam;

use crate::gear;
use crate::process::{
    Peer, age, below, helper, helper_args, helper_command, lock_of, print_line, wait_for,
};

struct Stage {
    _dir: TempDir,
    root: PathBuf,
    team: TestTeam,
}

/// Creates a team with one mailbox; `None` if the package is missing.
fn stage() -> Option<Stage> {
    if !here().join("node_modules/proper-lockfile").is_dir() {
        gear::skip_without(
            "proper-lockfile is missing: `npm ci --prefix tests/interop` installs it",
        );
        return None;
    }
    let dir = tempfile::Builder::new().prefix("phxi").tempdir_in("/tmp").expect("tempdir");
    let root = dir.path().join("root");
    let team = TestTeam::create(&root, "mixed").expect("team");
    team.join("bob").expect("join");
    Some(Stage { _dir: dir, root, team })
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop")
}

fn inbox(root: &Path) -> PathBuf {
    root.join("teams/mixed/inboxes/bob.json")
}

fn roster(root: &Path) -> PathBuf {
    root.join("teams/mixed/config.json")
}

fn node(words: &[&str]) -> Peer {
    Peer::start(Command::new("node").arg(here().join("peer.js")).args(words))
}

fn path(file: &Path) -> &str {
    file.to_str().expect("text")
}

/// Starts a Node process that holds the lock of a file.
fn node_holder(file: &Path) -> Peer {
    let peer = node(&["hold", path(file)]);
    wait_for("Node to hold the lock", || peer.printed().contains(&"held".to_owned()).then_some(()));
    peer
}

/// Starts a helper that stops at the failpoint `point`, and waits until it has stopped.
fn stopping_helper(name: &str, words: &[&str], point: &str) -> Peer {
    let peer = Peer::start(helper_command(name, words).env("PHALANX_STOPPOINT", point));
    let stat = format!("/proc/{}/stat", peer.pid());
    wait_for("a helper to stop", || {
        let stat = fs::read_to_string(&stat).ok()?;
        stat.rsplit_once(") ")?.1.starts_with('T').then_some(())
    });
    peer
}

/// Starts a phalanx process that holds the roster lock to add `name`, stopped there.
fn our_holder(root: &Path, name: &str) -> Peer {
    let peer = stopping_helper("interop::join_the_roster", &[path(root), name], "lock.taken");
    assert!(lock_of(&roster(root)).is_dir());
    peer
}

#[test]
#[ignore = "helper process of the tests that need a holder"]
fn join_the_roster() {
    let words = helper_args();
    let team = TestTeam::open(Path::new(&words[0]), "mixed").expect("team");
    let joined = team.join(&words[1]);
    print_line(&joined.map_or_else(|e| format!("refused: {e}"), |()| "joined".to_owned()));
}

#[test]
#[ignore = "helper process of mixed_writers_lose_nothing"]
fn append_mail() {
    let words = helper_args();
    let team = TestTeam::open(Path::new(&words[0]), "mixed").expect("team");
    for n in 0..words[2].parse::<u32>().expect("count") {
        team.append("bob", &words[1], &n.to_string(), &format!("{}-{n}", words[1]))
            .expect("append");
    }
}

#[test]
#[ignore = "helper process of mixed_writers_lose_nothing"]
fn compact_mail() {
    let words = helper_args();
    let team = TestTeam::open(Path::new(&words[0]), "mixed").expect("team");
    for n in 0..words[1].parse::<u32>().expect("count") {
        let entries = team.entries("bob").expect("entries");
        if n % 2 == 0 {
            // From the front, as Node's marker and compactor do, so that removed messages keep
            // their order.
            let some: Vec<String> = entries.into_iter().take(20).map(|e| e.0).collect();
            team.mark("bob", &some).expect("mark");
            continue;
        }
        let read: Vec<String> = entries.into_iter().filter(|e| e.3).map(|e| e.0).take(5).collect();
        read.iter().for_each(|id| print_line(id));
        team.remove("bob", &read).expect("remove");
    }
}

/// Polls the lock directory until `over`. Returns how often it saw the lock, and how often the
/// directory had content.
fn look_into(lock: &Path, over: &AtomicBool) -> (u64, u64) {
    let (mut seen, mut filled) = (0, 0);
    while !over.load(Ordering::Relaxed) {
        if let Ok(inside) = fs::read_dir(lock) {
            seen += 1;
            filled += u64::from(inside.count() > 0);
        }
        thread::park_timeout(Duration::from_micros(300));
    }
    (seen, filled)
}

/// Runs all writers, markers and compactors of one mailbox concurrently. Returns the names of the
/// writers and the removed messages, in order.
fn mixed_storm(root: &Path, each: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let file = inbox(root);
    let (mut writers, mut names) = (Vec::new(), Vec::new());
    for n in 0..4 {
        let (js, rs) = (format!("node{n}"), format!("rust{n}"));
        writers.push(node(&["append", path(&file), &js, each]));
        writers.push(helper("interop::append_mail", &[path(root), &rs, each]));
        names.extend([js, rs]);
    }
    let mut others = vec![
        node(&["mark", path(&file), "40"]),
        node(&["compact", path(&file), "40"]),
        helper("interop::compact_mail", &[path(root), "40"]),
    ];
    for peer in writers.iter_mut().chain(&mut others) {
        assert!(peer.end(), "{:?}", peer.printed());
    }
    let node_took = others[1].printed();
    (names, vec![node_took, others[2].printed_lines()])
}

/// MSG-06, CR-09: writers, markers and compactors of both kinds share one mailbox.
#[test]
fn mixed_writers_lose_nothing() {
    let Some(stage) = stage() else { return };
    // `PHALANX_LONG=1` takes a minute and a half. The time grows with the square: 3 takes more than
    // ten minutes.
    let long = std::env::var("PHALANX_LONG").ok().map(|times| times.parse().unwrap_or(1));
    let each = long.map_or(50, |times: u64| 1000 * times);
    let lock = lock_of(&inbox(&stage.root));
    let over = AtomicBool::new(false);
    let began = Instant::now();
    let ((names, taken), (seen, filled)) = thread::scope(|scope| {
        let watcher = scope.spawn(|| look_into(&lock, &over));
        let storm = scope.spawn(|| mixed_storm(&stage.root, &each.to_string())).join();
        over.store(true, Ordering::Relaxed);
        (storm.expect("storm"), watcher.join().expect("watcher"))
    });
    // Includes what phalanx has archived.
    let left: Vec<String> =
        stage.team.all("bob").expect("entries").into_iter().map(|e| e.0).collect();
    let count = |lists: &[&Vec<String>]| {
        let mut times: BTreeMap<String, u32> = BTreeMap::new();
        lists
            .iter()
            .flat_map(|list| list.iter())
            .for_each(|id| *times.entry(id.clone()).or_default() += 1);
        times
    };
    let expected: Vec<String> =
        names.iter().flat_map(|w| (0..each).map(move |n| format!("{w}-{n}"))).collect();
    let times = count(&[&taken[0], &taken[1], &left]);
    let lost = expected.iter().filter(|id| !times.contains_key(id.as_str())).count();
    // phalanx removes by id; a message that Node removed first is in both lists, which is fine.
    let twice = count(&[&taken[0], &left])
        .values()
        .chain(count(&[&taken[1], &left]).values())
        .filter(|n| **n > 1)
        .count();
    println!(
        "    {} writers x {each}: {} left, {:?} taken out (Node, phalanx), {lost} lost, {twice} duplicated, in {:?}; \
         lock seen {seen} times, {filled} times with something in it",
        names.len(),
        left.len(),
        taken.iter().map(Vec::len).collect::<Vec<_>>(),
        began.elapsed()
    );
    assert_eq!((lost, twice, filled), (0, 0, 0));
    assert_eq!(times.len(), expected.len(), "nothing that nobody wrote");
    for (list, name) in
        taken.iter().chain([&left]).flat_map(|list| names.iter().map(move |name| (list, name)))
    {
        let of = |id: &String| id.strip_prefix(&format!("{name}-"))?.parse::<u32>().ok();
        let order: Vec<u32> = list.iter().filter_map(of).collect();
        assert!(order.is_sorted_by(|a, b| a < b), "{name}: {order:?}");
    }
    assert!(!lock.exists());
}

/// CR-08, CR-09: while a stopped holder of ours is presumed dead, writes of others stay, and the
/// holder is refused when it continues.
#[test]
fn stopped_phalanx_holder_overwrites_nothing() {
    let Some(stage) = stage() else { return };
    let (file, lock) = (roster(&stage.root), lock_of(&roster(&stage.root)));
    let mut ours = our_holder(&stage.root, "ann");
    assert!(age(&lock));
    let mut theirs = node_holder(&file);
    let mut config: Value = serde_json::from_slice(&fs::read(&file).expect("read")).expect("json");
    config["description"] = Value::from("theirs");
    let written = serde_json::to_string_pretty(&config).expect("text");
    fs::write(&file, &written).expect("write");
    ours.signal(Signal::SIGCONT);
    assert!(ours.end(), "{:?}", ours.printed());
    assert!(
        ours.printed_lines().iter().any(|s| s.starts_with("refused: the lock of")),
        "{:?}",
        ours.printed()
    );
    assert_eq!(fs::read_to_string(&file).expect("read"), written);
    assert!(lock.is_dir(), "Node still holds its lock");
    assert!(theirs.end(), "{:?}", theirs.printed());
    assert!(!lock.exists());
    stage.team.join("ann").expect("again");
}

/// MSG-06: Claude Code 2.1.34 tries once for a lock. A phalanx process that waits for its disk must
/// not hold it, and must keep what Claude Code writes meanwhile.
#[test]
fn msg_06_phalanx_writer_holds_no_lock_before_it_publishes() {
    let Some(stage) = stage() else { return };
    let file = inbox(&stage.root);
    stage.team.append("bob", "ann", "first", "0").expect("append");
    for point in ["temp.written", "temp.synced"] {
        let mut ours =
            stopping_helper("interop::append_mail", &[path(&stage.root), "ann", "1"], point);
        let mut theirs = node_holder(&file);
        let mut mail: Vec<Value> =
            serde_json::from_slice(&fs::read(&file).expect("read")).expect("json");
        mail.push(
            json!({"from": "theirs", "text": point, "timestamp": "2026-11-20T22:43:51.440Z", "read": false}),
        );
        fs::write(&file, serde_json::to_string_pretty(&mail).expect("text")).expect("write");
        assert!(theirs.end(), "{:?}", theirs.printed());
        ours.signal(Signal::SIGCONT);
        assert!(ours.end(), "{:?}", ours.printed());
        let texts: Vec<String> =
            stage.team.entries("bob").expect("entries").into_iter().map(|entry| entry.2).collect();
        assert!(texts.ends_with(&[point.to_owned(), "0".to_owned()]), "{texts:?}");
    }
}

/// A Node holder that was stopped too long loses its lock to phalanx, and does no harm when it
/// continues.
#[test]
fn stopped_node_holder_loses_its_lock_when_stale() {
    let Some(stage) = stage() else { return };
    let (file, lock) = (inbox(&stage.root), lock_of(&inbox(&stage.root)));
    let mut theirs = node_holder(&file);
    theirs.signal(Signal::SIGSTOP);
    assert!(age(&lock));
    stage.team.append("bob", "ann", "one", "1").expect("append");
    theirs.signal(Signal::SIGCONT);
    theirs.end();
    stage.team.append("bob", "ann", "two", "2").expect("append");
    assert_eq!(stage.team.entries("bob").expect("entries").len(), 2);
    // When it continues while phalanx holds the lock, proper-lockfile removes the lock, and phalanx
    // must notice.
    let mut theirs = node_holder(&roster(&stage.root));
    theirs.signal(Signal::SIGSTOP);
    assert!(age(&lock_of(&roster(&stage.root))));
    let mut ours = our_holder(&stage.root, "ann");
    theirs.signal(Signal::SIGCONT);
    theirs.end();
    let removed = !lock_of(&roster(&stage.root)).exists();
    ours.signal(Signal::SIGCONT);
    assert!(ours.end(), "{:?}", ours.printed());
    let joined = ours.printed_lines().contains(&"joined".to_owned());
    println!("    the woken Node holder removed our lock: {removed}; we wrote: {joined}");
    assert_eq!(joined, !removed, "{:?}", ours.printed());
    assert_eq!(stage.team.teammates().expect("roster").contains(&"ann".to_owned()), joined);
}

/// Appends in a thread and asserts that nothing is written before `free` has been called.
fn waits_until(team: &TestTeam, id: &str, free: impl FnOnce()) {
    let has = |id: &str| team.entries("bob").expect("entries").iter().any(|e| e.0 == id);
    thread::scope(|scope| {
        let append = scope.spawn(|| team.append("bob", "ann", "x", id));
        let began = Instant::now();
        wait_for("a while in which nothing is written", || {
            assert!(!has(id), "{id} was written although the lock was held");
            (began.elapsed() > Duration::from_millis(150)).then_some(())
        });
        free();
        append.join().expect("thread").expect("append");
    });
    assert!(has(id));
}

/// Each side takes over a lock of a killed holder of the other side, but only once it is stale;
/// Node treats a directory with phalanx's mark like any other.
#[test]
fn locks_of_dead_holders_are_taken_over_only_when_stale() {
    let Some(stage) = stage() else { return };
    let lock = lock_of(&inbox(&stage.root));
    let dead = node_holder(&inbox(&stage.root));
    dead.signal(Signal::SIGKILL);
    waits_until(&stage.team, "1", || assert!(age(&lock)));
    let lock = lock_of(&roster(&stage.root));
    let mut dead = our_holder(&stage.root, "ann");
    dead.signal(Signal::SIGKILL);
    dead.end();
    assert!(lock.is_dir());
    let mut refused = node(&["hold", path(&roster(&stage.root))]);
    assert!(
        !refused.end() && refused.printed().iter().any(|l| l.contains("ELOCKED")),
        "{:?}",
        refused.printed()
    );
    assert!(age(&lock));
    assert!(node_holder(&roster(&stage.root)).end());
    stage.team.join("ann").expect("join");
}

/// CR-09: locks exclude each other also through a symlink to the config root, in all four
/// combinations.
#[test]
fn locks_exclude_each_other_through_a_symlinked_root() {
    let Some(stage) = stage() else { return };
    let link = stage.root.with_file_name("link");
    std::os::unix::fs::symlink(&stage.root, &link).expect("symlink");
    for (n, (ours, theirs)) in [(&stage.root, &link), (&link, &stage.root)].into_iter().enumerate()
    {
        let team = TestTeam::open(ours, "mixed").expect("team");
        let mut holder = node_holder(&inbox(theirs));
        waits_until(&team, &n.to_string(), || assert!(holder.end()));
        let mut holder = our_holder(ours, &format!("ann{n}"));
        let mut refused = node(&["hold", path(&roster(theirs))]);
        assert!(!refused.end() && refused.printed().iter().any(|l| l.contains("ELOCKED")));
        holder.signal(Signal::SIGCONT);
        assert!(
            holder.end() && holder.printed_lines().contains(&"joined".to_owned()),
            "{:?}",
            holder.printed()
        );
    }
}

/// CR-09: phalanx never compromises the lock of a live Node holder that refreshes it.
#[test]
fn live_node_holder_keeps_its_lock() {
    let Some(stage) = stage() else { return };
    let lock = lock_of(&inbox(&stage.root));
    let stamp =
        || fs::metadata(&lock).and_then(|meta| meta.modified()).expect("Node holds the lock");
    let mut holder = node_holder(&inbox(&stage.root));
    let first = stamp();
    let waiting: Vec<Peer> = (0..4)
        .map(|n| helper("interop::append_mail", &[path(&stage.root), &format!("w{n}"), "3"]))
        .collect();
    let refreshed =
        wait_for("Node to refresh its lock", || Some(stamp()).filter(|now| *now != first));
    // The lock counts as fresh as of its stamp, which may be slightly ahead of the clock.
    assert!(refreshed < SystemTime::now() + Duration::from_secs(2));
    // Time for some more attempts of phalanx.
    let began = Instant::now();
    let some = Duration::from_millis(200 + below(200));
    wait_for("some more tries", || (began.elapsed() > some).then_some(()));
    assert!(stage.team.entries("bob").expect("entries").is_empty());
    assert!(holder.end(), "{:?}", holder.printed());
    assert!(!holder.printed().iter().any(|l| l.contains("ECOMPROMISED")), "{:?}", holder.printed());
    for mut peer in waiting {
        assert!(peer.end(), "{:?}", peer.printed());
    }
    assert_eq!(stage.team.entries("bob").expect("entries").len(), 12);
}

fn phalanx(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_phalanx"));
    let home = root.parent().expect("the stage");
    command.env_clear().envs(gear::portable()).env("HOME", home);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("PHALANX_CONFIG_DIR", root).current_dir(home).args(args);
    command
}

/// ID-07: the lead repairs the team file, and readers neither fail on nor report a write in
/// progress.
#[test]
fn id_07_torn_team_file_is_repaired() {
    let Some(stage) = stage() else { return };
    let root = &stage.root;
    let mut lead = Peer::start(&mut phalanx(root, &["lead", "-t", "mixed"]));
    let leads = || fs::read_to_string(roster(root)).is_ok_and(|text| text.contains("leadProcess"));
    wait_for("the lead", || leads().then_some(()));
    let (count, every) = (1000, 50);
    let over = AtomicBool::new(false);
    let torn = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let run = phalanx(root, &["status", "-t", "mixed"]).output().expect("phalanx");
                assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
            }
        });
        let mut node = node(&["tear", path(&roster(root)), &count.to_string(), &every.to_string()]);
        let status = loop {
            if let Some(status) = node.child.try_wait().expect("wait") {
                break status;
            }
            thread::park_timeout(Duration::from_millis(20));
        };
        over.store(true, Ordering::Relaxed);
        reader.join().expect("every reader got a team");
        assert!(status.success() && node.end(), "{:?}", node.printed());
        node.printed()
    });
    // One line for each file that was torn for good and repaired.
    let torn: Vec<u64> = torn.iter().filter_map(|line| line.parse().ok()).collect();
    assert_eq!(torn.len(), count / every);
    let journal =
        fs::read_to_string(root.join("teams/mixed/phalanx/journal.jsonl")).expect("journal");
    let events =
        |kind: &str| journal.lines().filter(|line| line.contains(&format!("\"{kind}\""))).count();
    assert_eq!(events("repaired"), torn.len());
    assert!(events("file_quarantined") <= torn.len(), "a write under way is no reason for a copy");
    assert!(
        phalanx(root, &["down", "-t", "mixed", "--force"]).status().expect("phalanx").success()
    );
    assert!(lead.end());
}
