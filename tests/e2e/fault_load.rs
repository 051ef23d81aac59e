//! A team under load while a fault happens: workers on both hosts, and processes that send messages
//! and create tasks on three hosts. Counts what was lost or done twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fault_stage::FaultStage;
use crate::harness::{NATIVE, PATIENCE, binary, wait_for};

const HOSTS: [&str; 2] = ["h1", "h2"];

/// The members: name and host. `ann` and `bob` are workers, `sam` and `sue` send messages to `rea`.
pub const MEMBERS: [(&str, &str); 5] =
    [("ann", "h1"), ("sam", "h1"), ("bob", "h2"), ("sue", "h2"), ("rea", "h2")];

/// Sends a message, or creates a task, every 0.1 s, and notes each attempt and its result. Pauses
/// while a file exists.
const SPEAKER: &str = r#"#!/bin/sh
# speak NAME
cd DIR || exit 1
n=0
until [ -e stop ]; do
    if [ -e pause ]; then
        echo "idle $1" >>attempts
        while [ -e pause ]; do sleep 0.05; done
    fi
    n=$((n + 1)) text=$1-$n
    echo "try $text" >>attempts
    case $1 in
        job) PHALANX -t demo task create "$text" -- sh -c "echo $text \$(hostname) >>DIR/runs" ;;
        *) PHALANX -t demo send rea "$text" ;;
    esac >>"$1.log" 2>&1 && echo "ok $text" >>attempts || echo "no $text" >>attempts
    sleep 0.1
done
"#;

/// Receives the messages of `rea`.
const READER: &str = r#"#!/bin/sh
cd DIR || exit 1
until [ -e stop ]; do
    PHALANX -t demo inbox --follow --json >>received 2>>reader.log
    sleep 0.1
done
"#;

/// The numbers of a row. `acknowledged` and `created` are those of which phalanx reported success.
#[derive(Debug, Default)]
pub struct Counts {
    sent: usize,
    acknowledged: usize,
    delivered: usize,
    duplicates: usize,
    created: usize,
    runs: usize,
    twice: usize,
}

/// What had been done at one time, by member or host.
#[derive(Debug)]
struct Progress {
    acknowledged: BTreeMap<String, usize>,
    runs: BTreeMap<String, usize>,
    received: usize,
}

impl Progress {
    /// Returns the speakers and hosts that have done nothing since `earlier`, of those that did
    /// anything before.
    fn stuck_since(&self, earlier: &Progress, gone: &[&str]) -> Vec<String> {
        let stuck = |now: &BTreeMap<String, usize>, then: &BTreeMap<String, usize>| {
            let waits = |(name, count): (&String, &usize)| {
                (now.get(name) <= Some(count) && !gone.contains(&name.as_str()))
                    .then(|| name.clone())
            };
            then.iter().filter_map(waits).collect::<Vec<_>>()
        };
        let mut all = stuck(&self.acknowledged, &earlier.acknowledged);
        all.extend(stuck(&self.runs, &earlier.runs));
        all.extend((self.received <= earlier.received).then(|| "rea".to_owned()));
        all
    }
}

impl FaultStage {
    /// Returns a file of the load.
    pub fn file(&self, name: &str) -> PathBuf {
        self.hosts.stage.at("load").join(name)
    }

    pub fn lines(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.file(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Starts the lead, the members and the load, and opens a pane of another program on each host.
    pub fn start_load(&mut self) {
        let dir = self.hosts.stage.at("load");
        fs::create_dir(&dir).expect("dir");
        for (name, script) in [("speak", SPEAKER), ("read", READER)] {
            let text = script.replace("DIR", &dir.to_string_lossy()).replace("PHALANX", binary());
            self.hosts.stage.script(&dir.join(name), &text);
        }
        let (speak, read) = (self.file("speak"), self.file("read"));
        let (speak, read) = (speak.to_string_lossy(), read.to_string_lossy());
        let profiles = self.hosts.at("h2", "home/.claude/phalanx/profiles");
        fs::create_dir_all(&profiles).expect("dir");
        fs::write(profiles.join("reader.toml"), NATIVE).expect("profile");
        self.start_here(&[binary(), "-t", "demo", "lead"]);
        wait_for("the lead", || {
            let status = self.phalanx(&["status", "--json"]).expect(0).json();
            (status["lead"]["state"] == "running").then_some(())
        });
        thread::scope(|scope| {
            for (name, host) in MEMBERS {
                let program = match name {
                    "rea" => vec!["--profile", "reader", "--", "sh", &*read],
                    "sam" | "sue" => vec!["--", "sh", &*speak, name],
                    _ => vec![],
                };
                let stage = &*self;
                scope.spawn(move || {
                    let args = [&["spawn", name, "--host", host], &program[..]].concat();
                    stage.phalanx(&args).expect(0);
                });
            }
        });
        for host in HOSTS {
            self.open_foreign_panes(host);
        }
        for name in ["here", "job"] {
            self.start_here(&["sh", &speak, name]);
        }
        let start = Progress {
            acknowledged: ["sam", "sue", "here", "job"].map(|name| (name.to_owned(), 2)).into(),
            runs: ["h1", "h2"].map(|host| (host.to_owned(), 2)).into(),
            received: 2,
        };
        self.wait_for_progress(&start, &[]);
    }

    /// Creates tasks that the workers can start at the same time.
    pub fn create_backlog(&self, count: usize) {
        let run = |args: &[&str]| self.phalanx(&[&["--json", "task"], args].concat()).expect(0);
        let gate = run(&["create", "gate"]).json();
        let gate = gate["id"].as_str().expect("an id");
        let mut attempts = String::new();
        for n in 1..=count {
            let subject = format!("job-{gate}.{n}");
            let line = format!("echo {subject} $(hostname) >>{}", self.file("runs").display());
            run(&["create", &subject, "--blocked-by", gate, "--", "sh", "-c", &line]);
            attempts.push_str(&format!("try {subject}\nok {subject}\n"));
        }
        let file = fs::OpenOptions::new().append(true).open(self.file("attempts"));
        file.and_then(|mut file| file.write_all(attempts.as_bytes())).expect("writable");
        run(&["complete", gate]);
    }

    /// Opens panes of another program on the tmux server of a host: in a session of its own, and in
    /// a window of the team if it has one.
    pub fn open_foreign_panes(&mut self, host: &'static str) {
        let line = "tmux new-session -d -s foreign 'exec sleep 100000'
            team=$(tmux list-panes -a -F '#{session_name} #{pane_id}' | grep -v ^foreign | head -1)
            [ -z \"$team\" ] || tmux split-window -d -t \"${team#* }\" 'exec sleep 100000'";
        self.on(host, line).expect(0);
        let panes = self.list_foreign_panes(host);
        assert!(!panes.is_empty());
        self.foreign.insert(host, panes);
    }

    /// Returns the number of hosts on which panes of other programs are not as they were opened.
    pub fn touched_hosts(&self) -> usize {
        let is_touched =
            |(host, panes): &(&&str, &Vec<String>)| self.list_foreign_panes(host) != **panes;
        self.foreign.iter().filter(is_touched).count()
    }

    /// Returns id and pid of the panes of other programs on a host.
    fn list_foreign_panes(&self, host: &str) -> Vec<String> {
        let line = "tmux list-panes -a -F '#{pane_id} #{pane_pid} #{pane_start_command}'";
        let panes = self.on(host, line).expect(0).stdout;
        let foreign = panes.lines().filter(|line| line.contains("100000"));
        foreign.map(|line| format!("{host} {line}")).collect()
    }

    fn progress(&self) -> Progress {
        let mut acknowledged = BTreeMap::new();
        for line in self.lines("attempts") {
            if let Some((name, _)) = line.strip_prefix("ok ").and_then(|text| text.rsplit_once('-'))
            {
                *acknowledged.entry(name.to_owned()).or_default() += 1;
            }
        }
        let mut runs = BTreeMap::new();
        for line in self.lines("runs") {
            if let Some((_, host)) = line.split_once(' ') {
                *runs.entry(host.to_owned()).or_default() += 1;
            }
        }
        Progress { acknowledged, runs, received: self.lines("received").len() }
    }

    /// Waits until each speaker, worker and reader has done more than at an earlier time.
    fn wait_for_progress(&self, earlier: &Progress, gone: &[&str]) {
        let began = Instant::now();
        loop {
            let stuck = self.progress().stuck_since(earlier, gone);
            if stuck.is_empty() {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{stuck:?} do nothing; {}", self.evidence());
            thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// What can explain a failure.
    fn evidence(&self) -> String {
        let status = self.phalanx(&["status"]).stdout;
        let screens = ["ann", "bob"].map(|name| self.phalanx(&["peek", name]).stdout);
        let last = |name: &str| {
            let lines = self.lines(name);
            lines[lines.len().saturating_sub(12)..].join("\n")
        };
        let logs = ["sam.log", "here.log", "job.log", "reader.log", "attempts"].map(last);
        let events = self.phalanx(&["events"]).stdout;
        let events: Vec<&str> = events.lines().filter(|line| !line.contains("task")).collect();
        let events = events[events.len().saturating_sub(40)..].join("\n");
        format!("{status}\n{screens:#?}\n{logs:#?}\n{events}")
    }

    /// Runs `fault` under load, checks that nothing is lost or done twice, and prints a row.
    /// Returns with the load paused.
    pub fn survives(&mut self, name: &str, fault: impl FnOnce(&mut FaultStage)) {
        self.survives_without(name, &[], fault);
    }

    /// As [`FaultStage::survives`], where the speakers and hosts `gone` do not come back.
    pub fn survives_without(
        &mut self,
        name: &str,
        gone: &[&str],
        fault: impl FnOnce(&mut FaultStage),
    ) {
        let _ = fs::remove_file(self.file("pause"));
        let from = self.lines("attempts").len();
        self.wait_for_progress(&self.progress(), gone);
        fault(self);
        let ended = Instant::now();
        self.wait_for_progress(&self.progress(), gone);
        let recovery = ended.elapsed();
        self.drain(gone);
        let counts = self.counts(from);
        let touched = self.touched_hosts();
        println!("{}", row(name, &counts, touched, recovery));
        let twice = (counts.duplicates, counts.twice, touched);
        assert_eq!(twice, (0, 0, 0), "{}", self.evidence());
        self.check_status(gone);
    }

    /// Pauses the load, and waits until all of it is received and done.
    fn drain(&self, gone: &[&str]) {
        let idle = |name: &&str| {
            let line = format!("idle {name}");
            self.lines("attempts").iter().filter(|found| **found == line).count()
        };
        let speakers: Vec<&str> =
            ["sam", "sue", "here", "job"].into_iter().filter(|name| !gone.contains(name)).collect();
        let before: Vec<usize> = speakers.iter().map(idle).collect();
        fs::write(self.file("pause"), "").expect("writable");
        let waits = |what: &str, done: &dyn Fn() -> bool| {
            let began = Instant::now();
            while !done() {
                assert!(began.elapsed() < PATIENCE, "waited for {what}; {}", self.evidence());
                thread::park_timeout(Duration::from_millis(50));
            }
        };
        waits("the speakers to pause", &|| {
            speakers.iter().zip(&before).all(|(name, before)| idle(name) > *before)
        });
        waits("all tasks to end", &|| {
            let tasks = self.tasks();
            tasks.iter().all(|task| task["state"] == "completed")
        });
        waits("all messages to be received", &|| {
            let received = self.received();
            self.results("ok")
                .iter()
                .all(|text| text.starts_with("job-") || received.contains(text))
        });
    }

    /// Returns the texts of the attempts with a result: `ok`, `no`, or `try` for all.
    pub fn results(&self, result: &str) -> Vec<String> {
        let of = |line: String| {
            line.strip_prefix(result).and_then(|rest| rest.strip_prefix(' ')).map(str::to_owned)
        };
        self.lines("attempts").into_iter().filter_map(of).collect()
    }

    /// Waits until the reader has received all messages that are stored now.
    pub fn wait_for_reader(&self) {
        let of_here = |text: &String| text.starts_with("here-");
        let begun = self.results("try").into_iter().filter(of_here).count();
        // Messages are received in their order.
        let next = format!("here-{}", begun + 1);
        wait_for("a later message", || self.received().contains(&next).then_some(()));
    }

    /// Returns the texts of the messages that the reader has received.
    pub fn received(&self) -> Vec<String> {
        let text = |line: String| {
            let entry: Value = serde_json::from_str(&line).ok()?;
            entry["text"].as_str().map(str::to_owned)
        };
        self.lines("received").into_iter().filter_map(text).collect()
    }

    fn tasks(&self) -> Vec<Value> {
        let tasks = self.phalanx(&["task", "list", "--all", "--json"]).expect(0).json();
        tasks.as_array().expect("tasks").clone()
    }

    /// Counts what happened since line `from` of the attempts, and checks that nothing is missing.
    fn counts(&self, from: usize) -> Counts {
        let attempts = &self.lines("attempts")[from..];
        let with = |result: &str| -> BTreeSet<&str> {
            let texts = attempts.iter().filter_map(|line| line.strip_prefix(result));
            texts.collect()
        };
        let tried = with("try ");
        let done: BTreeSet<&str> = with("ok ").intersection(&tried).copied().collect();
        let is_job = |text: &&&str| text.starts_with("job-");
        let mut received: BTreeMap<String, usize> = BTreeMap::new();
        for text in self.received() {
            *received.entry(text).or_default() += 1;
        }
        let mut runs: BTreeMap<String, usize> = BTreeMap::new();
        for line in self.lines("runs") {
            let (subject, _) = line.split_once(' ').expect("subject and host");
            *runs.entry(subject.to_owned()).or_default() += 1;
        }
        let mut subjects: BTreeMap<String, usize> = BTreeMap::new();
        for task in self.tasks() {
            let subject = task["subject"].as_str().expect("a subject");
            if subject.starts_with("job-") {
                *subjects.entry(subject.to_owned()).or_default() += 1;
            }
        }
        let lost: Vec<&&str> =
            done.iter().filter(|text| !is_job(text) && !received.contains_key(**text)).collect();
        let never: Vec<&&str> = done
            .iter()
            .filter(|text| {
                is_job(text) && !(runs.contains_key(**text) && subjects.contains_key(**text))
            })
            .collect();
        assert!(lost.is_empty() && never.is_empty(), "lost {lost:?}, not run {never:?}");
        let doubled: Vec<_> = subjects.iter().filter(|(_, count)| **count > 1).collect();
        assert!(doubled.is_empty(), "created twice: {doubled:?}");
        self.check_notices();
        let among = |counts: &BTreeMap<String, usize>, least: usize| {
            tried.iter().filter(|text| counts.get(**text).is_some_and(|n| *n >= least)).count()
        };
        let received_here: usize = tried.iter().filter_map(|text| received.get(*text)).sum();
        Counts {
            sent: tried.iter().filter(|text| !is_job(text)).count(),
            acknowledged: done.iter().filter(|text| !is_job(text)).count(),
            delivered: among(&received, 1),
            duplicates: received_here - among(&received, 1),
            created: done.iter().filter(is_job).count(),
            runs: tried.iter().filter_map(|text| runs.get(*text)).sum(),
            twice: among(&runs, 2),
        }
    }

    /// Checks that the lead got one notice of each completed task.
    fn check_notices(&self) {
        let mail = self.phalanx(&["inbox", "team-lead", "--all", "--peek", "--json"]).expect(0);
        let mut notices: BTreeMap<String, usize> = BTreeMap::new();
        for entry in mail.json().as_array().expect("messages") {
            let notice: Value = serde_json::from_str(entry["text"].as_str().unwrap_or_default())
                .unwrap_or_default();
            if notice["type"] == "task_completed" {
                *notices.entry(notice["taskId"].to_string()).or_default() += 1;
            }
        }
        let doubled: Vec<_> = notices.iter().filter(|(_, count)| **count > 1).collect();
        assert!(doubled.is_empty() && !notices.is_empty(), "{doubled:?} of {}", notices.len());
    }

    /// Checks that `status` shows the lead and each member where it runs.
    fn check_status(&self, gone: &[&str]) {
        let status = self.phalanx(&["status", "--json"]).expect(0).json();
        assert_eq!(status["lead"]["state"], "running", "{status}");
        let members = status["members"].as_array().expect("members");
        let shown: BTreeMap<&str, (&str, bool)> = members
            .iter()
            .map(|member| {
                let text = |key: &str| member[key].as_str().unwrap_or_default();
                let is_up = ["running", "idle", "working"].contains(&text("state"));
                (text("name"), (text("host"), is_up))
            })
            .collect();
        let expected = MEMBERS.iter().filter(|(_, host)| !gone.contains(host));
        let expected: BTreeMap<&str, (&str, bool)> =
            expected.map(|(name, host)| (*name, (*host, true))).collect();
        assert_eq!(shown, expected, "{status}");
    }
}

/// Formats a row of the table in `docs/dev/measurements.md`, "Faults of hosts and of the database".
pub fn row(name: &str, counts: &Counts, touched: usize, recovery: Duration) -> String {
    let Counts { sent, acknowledged, delivered, duplicates, created, runs, twice } = counts;
    format!(
        "fault {name} | messages {sent}/{acknowledged}/{delivered}/{duplicates} | \
         tasks {created}/{runs}/{twice} | foreign panes touched {touched} | recovery {:.1} s",
        recovery.as_secs_f64()
    )
}
