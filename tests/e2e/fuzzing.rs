//! Feeds mutated bytes to every parser of foreign files, from a fixed seed: no panic, and every
//! result within a second. It covers the same entry points as the cargo-fuzz targets in
//! `tests/fuzz`, for machines without cargo-fuzz.
//!
//! `PHALANX_FUZZ_SECONDS` sets the total time (6, or 30 in the full gear), `PHALANX_FUZZ_SEED` the seed.

#[path = "../fuzz/mutate.rs"]
mod mutate;

use std::fs;
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mutate::Mutator;
use testing::{self, TestTeam};

use crate::gear;

const LONGEST: usize = 1 << 20;
const SLOW: Duration = Duration::from_secs(1);

type Door = fn(&[u8]) -> bool;

const JSON_DOORS: [(&str, Door); 4] = [
    ("mailbox", testing::parse_mailbox),
    ("team", testing::parse_team),
    ("task", testing::parse_task),
    ("protocol", testing::parse_protocol),
];

/// Parsers of messages between processes, of what configures hosts and of patches, with seeds.
const LINK_DOORS: [(&str, Door, &[&[u8]]); 5] = [
    (
        "hosts",
        testing::parse_hosts,
        &[b"[[host]]\nname = \"build\"\nssh = \"me@build\"\ndir = \"/srv/w\"\ncapacity = 2\nlabels = [\"big\"]\nenv = { A = \"1\" }\n"],
    ),
    (
        "patch",
        testing::parse_patch,
        &[
            b"diff --git a/x b/x\nindex 11..22 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1 @@ f\n-a\n b\n\\ No newline\n",
            b"diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nold mode 100644\nnew mode 100755\n",
        ],
    ),
    (
        "store_url",
        testing::parse_store_url,
        &[
            b"postgres://me:secret@db.example:5433/teams?sslmode=verify-full&sslrootcert=/etc/ca.pem",
            b"postgresql://%2Frun%2Fpostgresql/teams?connect_timeout=3",
        ],
    ),
    (
        "broker",
        testing::parse_broker_message,
        &[
            b"\0\0\0\x20{\"id\":7,\"request\":{\"release\":3}}",
            b"\0\0\0\x14{\"push\":{\"lost\":12}}",
        ],
    ),
    (
        "host_serve",
        testing::parse_host_line,
        &[
            b"{\"release\":\"0.1.0\",\"team\":\"demo\",\"store\":\"postgres://h/d\",\"host\":\"build\",\"dir\":\"/srv\"}",
            b"{\"id\":1,\"request\":{\"runs\":[[\"ann\",\"00000000-0000-4000-8000-000000000000\"]]}}",
        ],
    ),
];

/// The first lines of each recorded agent.
fn acp_seeds() -> Vec<Vec<u8>> {
    let recordings = files("acp").into_iter().filter(|file| file.starts_with(b"{"));
    let output = |recording: Vec<u8>| {
        let entries = recording.split(|byte| *byte == b'\n').filter_map(|line| {
            let entry: serde_json::Value = serde_json::from_slice(line).ok()?;
            (entry["from"] == "agent").then(|| format!("{}\n", entry["line"]))
        });
        entries.take(20).collect::<String>().into_bytes()
    };
    recordings.map(output).collect()
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn files(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(folder);
    let mut paths: Vec<PathBuf> = (fs::read_dir(&folder).expect("the fixtures are there"))
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("readable")).collect()
}

struct Place {
    dir: tempfile::TempDir,
    team: TestTeam,
}

impl Place {
    /// Creates a team with a member that has mail, and two tasks.
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let team = TestTeam::create(&dir.path().join("root"), "fuzz").expect("a new team");
        team.join("bob").expect("a new member");
        team.append("bob", "ann", "{\"type\":\"mode_set_request\",\"mode\":\"plan\"}", "id-1")
            .expect("a member");
        team.create_tasks(&[(vec![], vec![]), (vec![], vec![0])]).expect("a board");
        team.claim_next("bob").expect("a board");
        Place { dir, team }
    }

    fn path(&self, of: &str) -> PathBuf {
        self.dir.path().join("root").join(of)
    }
}

const TEAM_FILE: &str = "teams/fuzz/config.json";
const INBOX: &str = "teams/fuzz/inboxes/bob.json";
const TASK: &str = "tasks/fuzz/1.json";

fn json_seeds() -> Vec<Vec<u8>> {
    let place = Place::new();
    let ours = [TEAM_FILE, INBOX, TASK].map(|name| fs::read(place.path(name)).expect("ours"));
    files("wire").into_iter().chain(ours).collect()
}

/// Feeds mutants to one entry point until the time is over. Returns how many, and how many of them
/// parsed.
fn feed(name: &str, door: Door, seeds: &[Vec<u8>], time: Duration, seed: u64) -> (u64, u64) {
    let mut mutator = Mutator::new(seed, LONGEST);
    let begun = Instant::now();
    let (mut fed, mut right) = (0, 0);
    for whole in seeds {
        right += u64::from(try_one(name, door, whole, seed, fed));
        fed += 1;
    }
    while begun.elapsed() < time {
        let input = mutator.mutant(seeds);
        right += u64::from(try_one(name, door, &input, seed, fed));
        fed += 1;
    }
    (fed, right)
}

/// The CPU time of this thread; wall-clock time would make a parser look slow on a busy machine.
fn time_on_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    Duration::from_nanos(
        stat.split(' ').next().and_then(|ns| ns.parse().ok()).expect("nanoseconds"),
    )
}

fn try_one(name: &str, door: Door, input: &[u8], seed: u64, number: u64) -> bool {
    // One slow attempt may be the machine; three are the parser.
    for attempt in 0..3 {
        let begun = time_on_cpu();
        let answer = panic::catch_unwind(AssertUnwindSafe(|| door(input)));
        let took = time_on_cpu().saturating_sub(begun);
        let head = String::from_utf8_lossy(&input[..input.len().min(200)]);
        let at = format!("{name}, seed {seed}, input {number} of {} bytes: {head}", input.len());
        let answer = answer.unwrap_or_else(|_| panic!("panicked: {at}"));
        if took < SLOW {
            return answer;
        }
        assert!(attempt < 2, "took {took:?}: {at}");
    }
    false
}

#[test]
fn hostile_bytes_neither_panic_nor_hang() {
    let seed = setting("PHALANX_FUZZ_SEED", 20_261_121);
    let time = Duration::from_secs(setting("PHALANX_FUZZ_SECONDS", gear::sized(6, 30))) / 10;
    println!("fuzz: seed {seed}, {time:?} for each target");
    let (json, toml) = (json_seeds(), [files("manifests"), files("teams")].concat());
    let doors = JSON_DOORS.into_iter().map(|(name, door)| (name, door, json.clone()));
    let links = LINK_DOORS
        .into_iter()
        .map(|(name, door, seeds)| (name, door, seeds.iter().map(|seed| seed.to_vec()).collect()));
    let manifest = [("manifest", testing::parse_manifest as Door, toml)];
    let acp = [("acp", testing::parse_agent_output as Door, acp_seeds())];
    for (name, door, seeds) in doors.chain(manifest).chain(links).chain(acp) {
        let (fed, right) = feed(name, door, &seeds, time, seed);
        println!("fuzz: {name}: {fed} executions, {right} of them read as right");
        assert!(right > 0, "{name}: not even a seed was read");
    }
}

#[test]
fn one_mebibyte_of_a_repeated_fragment_is_parsed_in_time() {
    let toml = ["a={", "[[", "[a.", "a.", "\"", "'''", "a=1\n", "[a]\n", "x=[", "#", "\\u0041"];
    for unit in mutate::BOMBS.iter().chain(&toml).step_by(gear::sized(3, 1)) {
        let bomb = unit.repeat(LONGEST / unit.len());
        for (number, (name, door)) in JSON_DOORS
            .into_iter()
            .chain([
                ("manifest", testing::parse_manifest as Door),
                ("acp", testing::parse_agent_output as Door),
            ])
            .chain(LINK_DOORS.map(|(name, door, _)| (name, door)))
            .enumerate()
        {
            try_one(name, door, bomb.as_bytes(), 0, number as u64);
        }
    }
}

/// Writes a 100 MB file that repeats one byte between head and tail.
fn write_huge(path: &Path, head: &str, unit: u8, tail: &str) {
    let mut file = fs::File::create(path).expect("writable");
    file.write_all(head.as_bytes()).expect("room");
    let piece = vec![unit; 1_000_000];
    (0..100).for_each(|_| file.write_all(&piece).expect("room"));
    file.write_all(tail.as_bytes()).expect("room");
}

#[test]
fn msg_07_huge_files_are_refused_and_left_in_place() {
    let place = Place::new();
    write_huge(&place.path(INBOX), "[{\"from\":\"a\",\"text\":\"", b'x', "\"}]");
    assert!(place.team.entries("bob").is_err_and(|error| error.contains("larger than")));
    write_huge(&place.path(TASK), "", b'[', "");
    let (rows, _) = place.team.board().expect("the other task is readable");
    assert_eq!(rows.len(), 1);
    write_huge(&place.path(TEAM_FILE), "{\"name\": \"", 0, "\"}");
    assert!(place.team.teammates().is_err_and(|error| error.contains("config.json")));
    for name in [INBOX, TASK, TEAM_FILE] {
        assert!(
            fs::metadata(place.path(name)).expect("still there").len() >= 100_000_000,
            "{name}"
        );
    }
}
