//! Soak test: one lead and twenty members that talk, idle, crash, hang, refuse and lie, while tasks
//! come in and processes are killed. No message or task may be lost or handled twice, and nothing
//! may be left behind. Runs for a minute with `--full`; `PHALANX_LONG=1` makes it half an hour,
//! `PHALANX_SOAK_SECONDS` sets the length, and `--nocapture` prints the figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fake;
use crate::gear;
use crate::harness::{Run, Stage, wait_within};

/// Kind of member, count, and the instructions of the fake agent; workers have none.
const CAST: [(&str, u32, &[&str]); 14] = [
    ("worker", 5, &[]),
    ("talks", 2, &["approve", "--says", "1.5", "1"]),
    ("floods", 1, &["approve", "--says", "4", "12"]),
    ("rests", 1, &["approve", "--rests", "0.7"]),
    ("crashes", 2, &["approve", "--lives", "25", "--says", "2", "2"]),
    ("fails", 1, &["approve", "--fails", "40"]),
    ("silent", 1, &["never", "--rests", "3"]),
    ("late", 1, &["late", "5"]),
    ("garbles", 1, &["garbage", "--says", "3", "1"]),
    ("stays", 1, &["stay"]),
    ("refuses", 1, &["reject-then-approve", "--rests", "2"]),
    ("twice", 1, &["twice"]),
    ("asks", 1, &["approve", "--asks", "permission"]),
    ("dies", 1, &["approve", "--die", "asked"]),
];
const NOT_HERE: &str = "the soak runs with --full";
/// Time until the lead has settled and is first measured.
const SETTLED: Duration = Duration::from_secs(10);
/// Number of initial measurements, of which the lowest counts.
const LOOKS: usize = 10;
/// Time within which the lead has run its periodic sweep at least once.
const SWEPT: Duration = Duration::from_secs(90);
/// Pause between two actions on the team.
const PAUSE: Duration = Duration::from_millis(60);
/// Limit for tasks and shutdowns to finish at the end.
const AFTERWARDS: Duration = Duration::from_secs(180);

/// The length of the soak; `None` if it does not run with this gear.
fn length(full: u64) -> Option<Duration> {
    let set = std::env::var("PHALANX_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let long = std::env::var_os("PHALANX_LONG").map(|_| 1800);
    set.or(long).or(gear::is_full().then_some(full)).map(Duration::from_secs)
}

/// Resources held by the lead.
#[derive(Debug, Clone, Copy)]
struct Holds {
    fds: usize,
    resident_kb: u64,
    cpu_ms: u64,
    members: usize,
}

impl Holds {
    /// File descriptors except one per member, by which the lead watches its process.
    fn of_its_own(&self) -> usize {
        self.fds.saturating_sub(self.members)
    }
}

struct Soak {
    stage: Stage,
    backend: &'static str,
    lead: i64,
    dice: u64,
    did: BTreeMap<&'static str, u32>,
    heard: Vec<String>,
}

impl Soak {
    fn begin(stage: Stage, backend: &'static str) -> Soak {
        let mut text = format!(
            "[team]\nname = \"soak\"\nfinish = \"manual\"\nmax_members = 20\nunresponsive_after = 5\n\
             backend = \"{backend}\"\n"
        );
        for (kind, count, words) in CAST {
            if !words.is_empty() {
                fake::profile(&stage, kind, words);
            }
            for nth in 1..=count {
                text.push_str(&format!(
                    "[[member]]\nname = \"{kind}-{nth}\"\nprofile = \"{kind}\"\nrestart = \"on-failure\"\n"
                ));
            }
        }
        let manifest = stage.file("soak.toml", &text);
        let up = stage.phalanx(&["--json", "up", &manifest, "--detach"]).expect(0).json();
        let lead = up["lead_pid"].as_i64().expect("a lead");
        // `up` starts the whole team or none of it. From here on members may die, even during their
        // start.
        fs::write(stage.at("work/mortal"), "").expect("mortal");
        Soak {
            stage,
            backend,
            lead,
            dice: 0x9e37_79b9_7f4a_7c15,
            did: BTreeMap::new(),
            heard: Vec::new(),
        }
    }

    /// Returns a number below `end` (xorshift). The fixed seed does not make runs repeatable,
    /// because timing differs.
    fn roll(&mut self, end: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        usize::try_from(self.dice % end as u64).expect("small")
    }

    /// Runs a verb that may be refused, because the team changes concurrently. It must not panic or
    /// exit with an unexpected code.
    fn may(&mut self, what: &'static str, args: &[&str]) -> Run {
        let run = self.stage.phalanx(args);
        assert!([0, 1, 3, 4, 5, 6].contains(&run.code), "{args:?}: {run:?}");
        assert!(!run.stderr.contains("panicked"), "{args:?}: {run:?}");
        *self.did.entry(what).or_default() += u32::from(run.code == 0);
        run
    }

    fn status(&mut self) -> Value {
        self.may("status", &["--json", "status"]).expect(0).json()
    }

    fn members(&mut self) -> Vec<Value> {
        self.status()["members"].as_array().cloned().unwrap_or_default()
    }

    /// Reads the mail of the lead as a user does.
    fn read(&mut self) {
        let how = ["--peek", "--consume", "--all"][self.roll(3)];
        let args: &[&str] =
            if how == "--all" { &["--json", "inbox"] } else { &["--json", "inbox", how] };
        let mail = self.may("inbox", args).expect(0).json();
        if how != "--peek" {
            let texts = mail.as_array().expect("a list").iter().filter_map(|m| m["text"].as_str());
            self.heard.extend(texts.filter(|text| text.starts_with("said-")).map(str::to_owned));
        }
    }

    fn work(&mut self) {
        let nth = self.did.get("task").copied().unwrap_or(0);
        let note = format!("echo {nth} >>done");
        let script = match self.roll(6) {
            0 => format!("sleep 1; {note}"),
            1 => format!("{note}; exit 3"),
            2 => format!("(sleep 300 &) ; {note}"),
            _ => note,
        };
        self.may("task", &["task", "create", &nth.to_string(), "--", "sh", "-c", &script])
            .expect(0);
    }

    /// Kills a random member. The pid may be stale, so it is killed only if it still belongs to
    /// this stage.
    fn kill(&mut self) {
        let members = self.members();
        if members.is_empty() {
            return;
        }
        let nth = self.roll(members.len());
        let Some(pid) = members[nth]["pid"].as_i64() else { return };
        let ours = |line: &String| line.split(' ').next() == Some(&pid.to_string());
        if self.stage.processes().iter().any(ours) {
            // The process may have exited in between, which is fine.
            let _ = self.stage.command("kill").args(["-9", &pid.to_string()]).output();
            *self.did.entry("killed").or_default() += 1;
        }
    }

    fn shut_one(&mut self) {
        let (kind, count, _) = CAST[self.roll(CAST.len())];
        let name = format!("{kind}-{}", self.roll(count as usize) + 1);
        let mut args = vec!["shutdown", &name, "--no-wait", "--deadline", "3"];
        if self.roll(4) == 0 {
            args.push("--force");
        }
        self.may("shutdown", &args);
    }

    /// Spawns a missing member; the lead may do the same concurrently.
    fn fill(&mut self) {
        let there = self.members();
        for (kind, count, _) in CAST {
            for name in (1..=count).map(|nth| format!("{kind}-{nth}")) {
                if there.iter().all(|member| member["name"] != name.as_str()) {
                    let args = ["spawn", &name, "--profile", kind, "--backend", self.backend];
                    self.may("spawned", &args);
                    return;
                }
            }
        }
    }

    fn answer(&mut self) {
        let open = self.may("requests", &["--json", "requests"]).expect(0).json();
        for one in open.as_array().expect("a list").iter().filter(|one| one["kind"] == "permission")
        {
            let id = one["request_id"].as_str().expect("an id").to_owned();
            self.may("answered", &["answer", &id, "--approve"]);
        }
    }

    fn act(&mut self) {
        match self.roll(40) {
            0..10 => drop(self.status()),
            10..17 => self.read(),
            17..27 => self.work(),
            27..29 => self.kill(),
            29..32 => self.shut_one(),
            32..37 => self.fill(),
            37 => self.answer(),
            38 => drop(self.may("explain", &["explain", "talks-1"])),
            _ => drop(self.may("broadcast", &["broadcast", "to whom it may concern"])),
        }
    }

    fn holds(&mut self) -> Holds {
        let proc = PathBuf::from(format!("/proc/{}", self.lead));
        let fds = fs::read_dir(proc.join("fd")).expect("the lead lives").count();
        let status = fs::read_to_string(proc.join("status")).expect("the lead lives");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
        let resident_kb = line.trim().trim_end_matches(" kB").parse().expect("a number");
        let stat = fs::read_to_string(proc.join("stat")).expect("the lead lives");
        let fields: Vec<&str> = stat.rsplit(") ").next().expect("fields").split(' ').collect();
        let ticks = |nth: usize| fields[nth].parse::<u64>().expect("ticks");
        Holds {
            fds,
            resident_kb,
            cpu_ms: (ticks(11) + ticks(12)) * 10,
            members: self.members().len(),
        }
    }

    fn tasks(&self) -> Vec<Value> {
        let listed = self.stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
        listed.as_array().expect("a list").clone()
    }
}

fn soak(stage: Stage, backend: &'static str, length: Duration) {
    let mut soak = Soak::begin(stage, backend);
    // A stale lock that no process waits for: only the periodic sweep of the lead removes it, even
    // though the lead is never idle here.
    let stale = soak.stage.root().join("teams/soak/inboxes/nobody.json.lock");
    fs::create_dir(&stale).expect("a lock");
    let began = Instant::now();
    let mut looks = Vec::new();
    while began.elapsed() < length || looks.is_empty() {
        soak.act();
        if began.elapsed() >= SETTLED && looks.len() < LOOKS {
            looks.push(soak.holds());
        }
        std::thread::park_timeout(PAUSE);
    }
    // Descriptors that the lead opens for a moment do not count.
    let first = looks.into_iter().min_by_key(Holds::of_its_own).expect("it settled");
    let back_to = |holds: &Holds| holds.of_its_own() <= first.of_its_own() + 4;
    let last = wait_within(AFTERWARDS, "the descriptors of what is over to be given back", || {
        Some(soak.holds()).filter(back_to)
    });
    assert!(length < SWEPT || !stale.exists(), "a lead that has no rest looks after nothing");
    finish_work(&mut soak);
    part(&mut soak);
    let emptied =
        wait_within(AFTERWARDS, "the descriptors of its members to be given back", || {
            Some(soak.holds()).filter(back_to)
        });
    println!("soak ({backend}, {} s): {:?}", length.as_secs(), soak.did);
    for (when, holds) in
        [("once it has settled", first), ("at the end", last), ("with nobody left", emptied)]
    {
        let Holds { fds, resident_kb, cpu_ms, members } = holds;
        println!(
            "lead {when}: {members} members, {fds} fds, {resident_kb} kB resident, {cpu_ms} ms CPU"
        );
    }
    judge_tasks(&soak);
    judge_mail(&mut soak);
    judge_ends(&soak);
    judge_files(&soak.stage);
    soak.stage.phalanx(&["down", "--force"]).expect(0);
    fs::remove_dir_all(soak.stage.root().join("phalanx")).expect("profiles");
    soak.stage.assert_clean();
}

/// Waits until every task has completed or failed.
fn finish_work(soak: &mut Soak) {
    let over = |task: &Value| {
        task["status"] == "completed" || task["metadata"]["phalanx"]["state"] == "failed"
    };
    wait_within(AFTERWARDS, "all tasks to be over", || {
        soak.fill();
        soak.tasks().iter().all(over).then_some(())
    });
}

/// Shuts down all members, also those that refuse.
fn part(soak: &mut Soak) {
    soak.may("shutdown", &["shutdown", "--all", "--deadline", "4"]);
    wait_within(AFTERWARDS, "all members to be gone", || {
        soak.may("shutdown", &["shutdown", "--all", "--deadline", "4", "--force"]);
        soak.members().is_empty().then_some(())
    });
}

fn count(lines: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    lines.fold(BTreeMap::new(), |mut counts, line| {
        *counts.entry(line).or_default() += 1;
        counts
    })
}

/// TK-01: each task ended once. It ran more than once only if its worker died before it could
/// report.
fn judge_tasks(soak: &Soak) {
    let journal = soak.stage.journal("soak");
    let of = |kind: &str| {
        let found = journal.iter().filter(|e| e["event"] == kind);
        count(found.filter_map(|e| e["task"].as_str().map(str::to_owned)))
    };
    let (claimed, completed, failed) =
        (of("task_claimed"), of("task_completed"), of("task_failed"));
    let done = fs::read_to_string(soak.stage.at("work/done")).expect("done");
    let done = count(done.lines().map(str::to_owned));
    for task in soak.tasks() {
        let id = task["id"].as_str().expect("an id");
        let times = |counts: &BTreeMap<String, usize>| counts.get(id).copied().unwrap_or(0);
        assert_eq!(times(&completed) + times(&failed), 1, "{task}");
        let runs = done[task["subject"].as_str().expect("a subject")];
        assert!((1..=times(&claimed)).contains(&runs), "done {runs} times: {task}");
    }
}

/// MSG-03: each stored message was read once, and handled by the lead once.
fn judge_mail(soak: &mut Soak) {
    let rest = soak.may("inbox", &["--json", "inbox"]).expect(0).json();
    let texts = rest.as_array().expect("a list").iter().filter_map(|m| m["text"].as_str());
    soak.heard.extend(texts.filter(|text| text.starts_with("said-")).map(str::to_owned));
    let said = fs::read_to_string(soak.stage.at("work/said")).expect("said");
    let heard = count(soak.heard.iter().cloned());
    let lost: Vec<&str> = said.lines().filter(|line| !heard.contains_key(*line)).collect();
    assert_eq!(lost, Vec::<&str>::new(), "said and never heard");
    assert!(heard.values().all(|times| *times == 1), "heard twice: {heard:?}");
    let handled = soak.stage.journal("soak").into_iter();
    let handled = handled.filter(|e| e["event"] == "message_handled" && e["member"] == "team-lead");
    let ids: Vec<String> = handled
        .flat_map(|e| e["detail"]["msg_ids"].as_array().cloned().unwrap_or_default())
        .filter_map(|id| id.as_str().map(str::to_owned))
        .collect();
    println!("{} lines said, {} messages handled", said.lines().count(), ids.len());
    let twice: Vec<_> =
        count(ids.into_iter()).into_iter().filter(|(_, times)| *times > 1).collect();
    assert_eq!(twice, [], "handled twice");
}

/// Each run that became ready has left once, and each request has ended once.
fn judge_ends(soak: &Soak) {
    let journal = soak.stage.journal("soak");
    let of = |kind: &str, key: &str| {
        let found = journal.iter().filter(|e| e["event"] == kind);
        count(found.filter_map(|e| e.pointer(key)?.as_str().map(str::to_owned)))
    };
    let (ready, left) = (of("member_ready", "/member"), of("member_left", "/member"));
    println!(
        "{} runs came up, {} left",
        ready.values().sum::<usize>(),
        left.values().sum::<usize>()
    );
    assert_eq!(ready, left);
    let (asked, ended) = (
        of("shutdown_requested", "/detail/request_id"),
        of("shutdown_ended", "/detail/request_id"),
    );
    assert!(ended.values().all(|times| *times == 1), "{ended:?}");
    let open: BTreeSet<_> = asked.keys().filter(|id| !ended.contains_key(*id)).collect();
    assert_eq!(open, BTreeSet::new(), "asked, and never ended");
    let warned = journal
        .iter()
        .filter(|e| e["event"] == "warning")
        .filter_map(|e| e["detail"]["text"].as_str());
    let odd: BTreeSet<String> = warned.map(|text| text.chars().take(90).collect()).collect();
    println!("warnings: {odd:#?}");
}

/// A process that is killed leaves its lock behind; the sweep of the lead removes it.
fn judge_files(stage: &Stage) {
    let began = Instant::now();
    loop {
        let mut found = Vec::new();
        collect_leftovers(&stage.root(), &mut found);
        if found.is_empty() {
            return;
        }
        assert!(began.elapsed() < AFTERWARDS, "left: {found:?}");
        std::thread::park_timeout(PAUSE);
    }
}

/// Collects leftovers below a directory: temporary files, locks, specs, sockets and quarantined
/// files.
fn collect_leftovers(dir: &Path, found: &mut Vec<PathBuf>) {
    let entries = match fs::read_dir(dir) {
        // A lock may be released in between.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return,
        entries => entries.expect("a directory").flatten(),
    };
    let parent =
        dir.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    for path in entries.map(|entry| entry.path()) {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
        let is_dir = fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir());
        let abandoned = ["specs", "sockets", "quarantine"].contains(&parent.as_str());
        if end == "tmp" || (is_dir && end == "lock") || abandoned {
            found.push(path);
        } else if is_dir {
            collect_leftovers(&path, found);
        }
    }
}

#[test]
fn pf_03_soak_of_twenty_members_leaks_and_loses_nothing() {
    let Some(length) = length(60) else { return gear::skip(NOT_HERE) };
    soak(Stage::without_tmux(), "pty", length);
}

#[test]
fn tmux_pf_03_soak_of_twenty_members_leaks_and_loses_nothing() {
    let Some(length) = length(25) else { return gear::skip(NOT_HERE) };
    soak(Stage::new(), "tmux", length);
}
