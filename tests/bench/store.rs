//! Benchmarks the store against Node with the lock library that Claude Code uses: `cargo bench
//! --bench store`. Writers are separate processes: this binary again, or `tests/interop/peer.js`.
//! Slow figures do not fail the run; a lost or duplicated message does.

#![allow(clippy::disallowed_methods, reason = "benches drive the real system")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use testing::TestTeam;

const ROUNDS: usize = 3;
const BODY: &str = "a message of ordinary length, as agents send them to each other all day";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["append", root, sender, count] => append(Path::new(root), sender, number(count)),
        ["claim", root, who] => claim(Path::new(root), who),
        ["claim-next", root, who] => claim_next(Path::new(root), who),
        ["read"] => read_row(),
        ["board"] => large_board_rows(),
        _ => table(),
    }
}

fn number(text: &str) -> usize {
    text.parse().expect("a number")
}

/// Blocks until the parent releases all children at once, so that start-up is not measured.
fn barrier() {
    println!("ready");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("stdin");
}

fn append(root: &Path, sender: &str, count: usize) {
    let team = TestTeam::open(root, "bench").expect("team");
    barrier();
    for n in 0..count {
        team.append("bob", sender, BODY, &format!("{sender}-{n}")).expect("append");
    }
}

fn claim(root: &Path, who: &str) {
    let team = TestTeam::open(root, "bench").expect("team");
    barrier();
    let mut claimed = Vec::new();
    while let Some(id) = team.claim_next(who).expect("claim") {
        team.complete(id, who).expect("complete");
        claimed.push(id.to_string());
    }
    println!("{}", claimed.join(" "));
}

fn claim_next(root: &Path, who: &str) {
    let team = TestTeam::open(root, "bench").expect("team");
    assert!(team.claim_next(who).expect("claim").is_some());
}

struct Stage {
    _dir: tempfile::TempDir,
    root: PathBuf,
    team: TestTeam,
}

impl Stage {
    fn new(filled: usize) -> Stage {
        let dir = tempfile::tempdir().expect("tempdir");
        let root = dir.path().join("root");
        let team = TestTeam::create(&root, "bench").expect("team");
        team.join("bob").expect("join");
        for n in 0..filled {
            team.append("bob", "old", BODY, &format!("old-{n}")).expect("append");
        }
        Stage { _dir: dir, root, team }
    }

    fn inbox(&self) -> PathBuf {
        self.root.join("teams/bench/inboxes/bob.json")
    }
}

fn ours(args: &[&str]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("exe"));
    command.args(args);
    command
}

fn node(args: &[&str]) -> Command {
    let mut command = Command::new("node");
    command
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interop/peer.js"))
        .args(args)
        .env("PEER_BARRIER", "1");
    command
}

/// Starts all commands, waits until each is ready and releases them. Returns the seconds until the
/// last one exited, and each one's output after the release.
fn race(commands: Vec<Command>) -> (f64, Vec<String>) {
    let start = |mut command: Command| {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("child");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("ready");
        assert_eq!(line.trim(), "ready");
        (child, out)
    };
    let mut children: Vec<(Child, BufReader<_>)> = commands.into_iter().map(start).collect();
    let began = Instant::now();
    for (child, _) in &mut children {
        child.stdin.take().expect("piped").write_all(b"\n").expect("go");
    }
    let mut said = Vec::new();
    for (child, out) in &mut children {
        assert!(child.wait().expect("end").success());
        said.push(out.lines().map_while(Result::ok).collect::<Vec<_>>().join(" "));
    }
    (began.elapsed().as_secs_f64(), said)
}

/// Returns the appends per second of `writers` concurrent writers, after checking that every
/// message arrived once and in order per sender.
fn appends(filled: usize, writers: usize, total: usize, peer: bool) -> f64 {
    let stage = Stage::new(filled);
    let (root, inbox) =
        (stage.root.to_string_lossy().into_owned(), stage.inbox().to_string_lossy().into_owned());
    let each = (total / writers).to_string();
    let command = |n: usize| {
        let sender = format!("w{n}");
        if peer {
            node(&["append", &inbox, &sender, &each])
        } else {
            ours(&["append", &root, &sender, &each])
        }
    };
    let (seconds, _) = race((0..writers).map(command).collect());
    check(&stage, filled, writers, total / writers);
    total as f64 / seconds
}

fn check(stage: &Stage, filled: usize, writers: usize, each: usize) {
    let mut by_sender: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, from, _, _) in stage.team.entries("bob").expect("entries") {
        by_sender.entry(from).or_default().push(id);
    }
    let old = by_sender.remove("old").unwrap_or_default();
    assert_eq!(old.len(), filled, "messages lost");
    assert_eq!(by_sender.len(), writers);
    for (sender, ids) in by_sender {
        let wanted: Vec<String> = (0..each).map(|n| format!("{sender}-{n}")).collect();
        assert_eq!(ids, wanted, "messages of {sender} lost, doubled or out of order");
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn append_rows() {
    println!(
        "appends/s, every message counted (Node: proper-lockfile 4.1.2, read, parse, push, write)"
    );
    println!("  box          writers   Node   phalanx   ratio   at least");
    for (filled, total, least) in [(0, 960, 1.1), (1000, 480, 1.1)] {
        for writers in [1, 4, 16] {
            let (mut theirs, mut our) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                theirs.push(appends(filled, writers, total, true));
                our.push(appends(filled, writers, total, false));
            }
            let (theirs, our) = (median(theirs), median(our));
            let ratio = our / theirs;
            let what = if filled == 0 { "empty" } else { "1000 entries" };
            println!(
                "  {what:<12} {writers:>7} {theirs:>6.0} {our:>9.0} {ratio:>6.2} ×   {least} ×"
            );
        }
    }
}

fn per_append(stage: &Stage, tag: &str) -> f64 {
    let began = Instant::now();
    for n in 0..200 {
        stage.team.append("bob", "new", BODY, &format!("{tag}-{n}")).expect("append");
        stage.team.acknowledge("bob", &[format!("{tag}-{n}")]).expect("acknowledge");
    }
    began.elapsed().as_secs_f64() / 200.0
}

fn read_row() {
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let fresh = Stage::new(0);
        let full = Stage::new(10_000);
        // phalanx compacts only the mailboxes of members that it has a record of.
        for stage in [&fresh, &full] {
            stage.team.begin("bob").expect("record");
        }
        let ids: Vec<String> =
            full.team.entries("bob").expect("entries").into_iter().map(|e| e.0).collect();
        full.team.acknowledge("bob", &ids).expect("acknowledge");
        ratios.push(per_append(&full, "b") / per_append(&fresh, "a"));
    }
    println!(
        "append to a box whose 10000 entries phalanx has read: {:.2} × of an empty box (at most 1.3 ×)",
        median(ratios)
    );
}

/// Measures the delay from a foreign rename of a mailbox until a follower reads the new entry.
fn wake_row() {
    let stage = Stage::new(0);
    let mut follower = stage.team.follow().expect("follow");
    let mut figures = Vec::new();
    for n in 0..300 {
        let id = format!("wake-{n}");
        let text = format!(
            r#"[{{"from":"ann","text":"x","timestamp":"t","read":false,"msg_id":"{id}"}}]"#
        );
        let temp = stage.root.join("teams/bench/inboxes/.foreign.tmp");
        std::fs::write(&temp, text).expect("write");
        while follower.wait(Duration::ZERO) {}
        std::thread::scope(|scope| {
            let (follower, stage, id) = (&mut follower, &stage, &id);
            let reader = scope.spawn(move || {
                loop {
                    assert!(follower.wait(Duration::from_secs(10)), "no notification");
                    if stage.team.entries("bob").expect("entries").iter().any(|e| e.0 == *id) {
                        return Instant::now();
                    }
                }
            });
            let renamed = Instant::now();
            std::fs::rename(&temp, stage.inbox()).expect("rename");
            let had = reader.join().expect("reader");
            figures.push(had.duration_since(renamed).as_secs_f64() * 1000.0);
        });
    }
    figures.sort_by(f64::total_cmp);
    let (middle, high) = (figures[figures.len() / 2], figures[figures.len() * 99 / 100]);
    println!(
        "rename of the file → reader has the entry: p50 {middle:.2} ms, p99 {high:.2} ms (at most 2 / 20 ms)"
    );
}

fn unlocked_row() {
    let stage = Stage::new(0);
    let (done, inbox) = (AtomicBool::new(false), stage.inbox());
    let root = stage.root.to_string_lossy().into_owned();
    let (reads, broken) = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut reads, mut broken) = (0_u64, 0_u64);
            while !done.load(Ordering::Relaxed) {
                let bytes = std::fs::read(&inbox).expect("read");
                reads += 1;
                broken += u64::from(serde_json::from_slice::<serde_json::Value>(&bytes).is_err());
            }
            (reads, broken)
        });
        race((0..4).map(|n| ours(&["append", &root, &format!("w{n}"), "500"])).collect());
        done.store(true, Ordering::Relaxed);
        reader.join().expect("reader")
    });
    println!(
        "unlocked foreign reader during 2000 appends: {broken} of {reads} reads did not parse (at most 0)"
    );
}

/// Writes task files of a large board as another program does, because phalanx syncs each one. One
/// task in `share` is open.
fn fill_board(stage: &Stage, count: usize, share: usize) {
    let words = "parser cache index board claim mailbox lease retry timeout journal review release";
    let words: Vec<&str> = words.split(' ').collect();
    for id in 1..=count {
        let subject = [0, 3, 5, 7].map(|n| words[(id * 31 + id / 7 + n) % words.len()]).join(" ");
        let status = if id % share == 0 { "pending" } else { "completed" };
        let description = (0..40).map(|n| words[(id + n * n) % words.len()]).collect::<Vec<_>>();
        let text = format!(
            "{{\n  \"id\": \"{id}\",\n  \"subject\": \"{subject}\",\n  \"description\": \"{}\",\n  \
             \"status\": \"{status}\",\n  \"blocks\": [],\n  \"blockedBy\": [],\n  \"metadata\": {{\n    \
             \"phalanx\": {{\n      \"state\": \"{status}\",\n      \"run\": [\n        \"true\"\n      ],\n      \
             \"created_by\": \"team-lead\",\n      \"created_at\": 1795214628804\n    }}\n  }}\n}}",
            description.join(" ")
        );
        std::fs::write(stage.root.join(format!("tasks/bench/{id}.json")), text).expect("write");
    }
}

/// Returns the median time of 7 runs in milliseconds.
fn time_runs(mut command: impl FnMut() -> Command) -> f64 {
    let mut figures = Vec::new();
    for _ in 0..7 {
        let began = Instant::now();
        assert!(
            command().stdout(Stdio::null()).stderr(Stdio::null()).status().expect("run").success()
        );
        figures.push(began.elapsed().as_secs_f64() * 1000.0);
    }
    median(figures)
}

/// Measures whole processes on a large board: without its index, and with it.
fn large_board_rows() {
    println!("whole processes on a large board, ms (in brackets: at most)");
    println!("   tasks     open   first list        list  next claim      search   graph");
    for (count, share, scale) in
        [(10_000, 10, 1), (10_000, 1, 1), (100_000, 10, 12), (100_000, 1, 12)]
    {
        let stage = Stage::new(0);
        fill_board(&stage, count, share);
        let phalanx = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_phalanx"));
            command.args(["task"]).args(words).args(["-t", "bench"]);
            command.env("PHALANX_CONFIG_DIR", &stage.root);
            command
        };
        let index = stage.root.join("teams/bench/phalanx/board/index");
        let first = time_runs(|| {
            let _ = std::fs::remove_file(&index);
            phalanx(&["list"])
        });
        // The index takes in only files that have not changed for three seconds.
        std::thread::sleep(Duration::from_secs(4));
        let _ = std::fs::remove_file(&index);
        assert!(phalanx(&["list"]).stdout(Stdio::null()).status().expect("run").success());
        assert!(index.exists(), "no index was written");
        let list = time_runs(|| phalanx(&["list"]));
        let root = stage.root.to_string_lossy().into_owned();
        let mut claimers = 0;
        let claim = time_runs(|| {
            claimers += 1;
            ours(&["claim-next", &root, &format!("c{claimers}")])
        });
        let search = time_runs(|| phalanx(&["search", "journal", "cache"]));
        let graph = time_runs(|| phalanx(&["graph", "--format", "dot"]));
        let limited = |ms: f64, limit: usize| format!("{ms:.0} ({})", limit * scale);
        println!(
            "  {count:>6} {:>8} {first:>12.0} {:>11} {:>11} {:>11} {graph:>7.0}",
            count / share,
            limited(list, 60),
            limited(claim, 30),
            limited(search, 100)
        );
    }
}

fn claim_row() {
    let stage = Stage::new(0);
    stage.team.add_tasks(1000).expect("tasks");
    let root = stage.root.to_string_lossy().into_owned();
    let (seconds, said) =
        race((0..64).map(|n| ours(&["claim", &root, &format!("c{n}")])).collect());
    let mut claimed: Vec<u64> =
        said.iter().flat_map(|l| l.split_whitespace()).map(|id| id.parse().expect("id")).collect();
    claimed.sort_unstable();
    assert_eq!(claimed, (1..=1000).collect::<Vec<_>>(), "a task was claimed twice or not at all");
    println!("64 claimers, 1000 tasks claimed and completed: each once, in {seconds:.1} s");
}

fn table() {
    append_rows();
    read_row();
    wake_row();
    unlocked_row();
    large_board_rows();
    claim_row();
}
