//! Kills a process at every step of every write and checks what the next process finds: valid JSON,
//! each message once, no lock and no temporary file left. `--nocapture` prints the matrix.

use std::collections::BTreeMap;
use std::fs::{self, File, FileTimes};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;
use testing::TestTeam;

const POINTS: [&str; 14] = [
    "lock.made",
    "lock.marked",
    "lock.placed",
    "lock.taken",
    "temp.written",
    "temp.synced",
    "rename.before",
    "rename.after",
    "unlock.before",
    "handed.recorded",
    "archive.appended",
    "journal.appended",
    "batch.committed",
    "batch.published",
];
/// Upper bound on how often an operation passes one point.
const PASSES: u32 = 64;
/// Enough messages to make the mailbox archive those that were read.
const MANY: usize = 70;

/// An operation of the process that dies, repeated by the next one.
type Operation = (&'static str, fn(&TestTeam) -> Result<(), String>);

const OPERATIONS: [Operation; 15] = [
    ("append", |team| {
        for n in 0..3 {
            team.append("bob", "alice", "hello", &format!("new-{n}"))?;
            said(&format!("new-{n}"));
        }
        Ok(())
    }),
    ("acknowledge", |team| acknowledge(team, "bob", 2)),
    ("acknowledge native", |team| acknowledge(team, "ned", 2)),
    ("compact", |team| acknowledge(team, "bob", MANY)),
    ("remove", |team| {
        let ids: Vec<String> = team.unread("bob")?.into_iter().take(2).collect();
        team.remove("bob", &ids)?;
        ids.iter().for_each(|id| said(id));
        Ok(())
    }),
    ("join", |team| match team.join("carol") {
        Err(e) if e.contains("already") => Ok(()),
        other => other,
    }),
    ("leave", |team| team.leave("ned").map(drop)),
    ("claim", |team| team.claim_next("ned").map(drop)),
    ("complete", |team| match team.complete(1, "bob") {
        Err(e) if e.contains("is completed; `complete` needs") => Ok(()),
        other => other,
    }),
    ("review and approve", |team| {
        act(team, 1, "bob", "review", "`review` needs")?;
        act(team, 1, "team-lead", "approve", "is completed")
    }),
    ("fail and retry", |team| {
        act(team, 1, "bob", "fail", "is failed")?;
        act(team, 1, "bob", "retry", "is pending")
    }),
    ("cancel", |team| act(team, 2, "team-lead", "cancel", "is cancelled")),
    ("create tasks", |team| team.add_tasks(3)),
    ("change settings", |team| {
        team.limit_members(7)?;
        team.limit_members(9)
    }),
    ("change record", |team| {
        team.reason("bob", "one")?;
        team.reason("bob", "two")?;
        team.note("changed")
    }),
];

/// Reports to the test, on stdout, that the message with this id is settled.
fn said(id: &str) {
    println!("said {id}");
}

/// Performs an action of the board, unless the process that died has done so.
fn act(team: &TestTeam, id: u64, who: &str, action: &str, done: &str) -> Result<(), String> {
    match team.act(id, who, action) {
        Err(e) if e.contains(done) => Ok(()),
        other => other,
    }
}

fn acknowledge(team: &TestTeam, of: &str, count: usize) -> Result<(), String> {
    let ids: Vec<String> = team.unread(of)?.into_iter().take(count).collect();
    team.acknowledge(of, &ids)?;
    ids.iter().for_each(|id| said(id));
    Ok(())
}

#[test]
#[ignore = "helper process of a_process_may_die_anywhere"]
fn helper_operates() {
    let name = std::env::var("OPERATION").expect("set by the test");
    let root = PathBuf::from(std::env::var_os("ROOT").expect("set by the test"));
    let (_, operate) =
        OPERATIONS.iter().find(|(known, _)| *known == name).expect("a known operation");
    operate(&TestTeam::open(&root, "demo").expect("a team")).expect("it is done");
}

/// A team on disk, in memory if possible: the tests are about processes, not about power loss.
struct Stage {
    dir: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let memory = Path::new("/dev/shm");
        let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let stage = Stage { dir: dir.expect("a temporary directory") };
        let team = TestTeam::create(stage.root(), "demo").expect("a team");
        for name in ["bob", "ned"] {
            team.join(name).expect("joined");
            let entry = |n| json!({"from": "x", "text": "t", "timestamp": "1", "read": false, "msg_id": format!("old-{n}")});
            let entries: Vec<Value> = (0..MANY).map(entry).collect();
            let text = serde_json::to_vec_pretty(&entries).expect("json");
            fs::write(stage.inbox(name), text).expect("writable");
        }
        team.begin("bob").expect("a record");
        team.add_tasks(2).expect("tasks");
        assert_eq!(team.claim_next("bob"), Ok(Some(1)));
        stage
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }

    fn inbox(&self, name: &str) -> PathBuf {
        self.root().join(format!("teams/demo/inboxes/{name}.json"))
    }

    /// Runs `operation` in a process that dies at the `nth` pass of `point`. Returns the ids that
    /// it reported until then, or `None` if it completed.
    fn die(&self, operation: &str, point: &str, nth: u32) -> Option<Vec<String>> {
        let mut command =
            Command::new(std::env::current_exe().expect("a running test has an executable"));
        command.args([
            "failpoints::helper_operates",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ]);
        command.env("OPERATION", operation).env("ROOT", self.root());
        command.env("PHALANX_FAILPOINT", format!("{point}:{nth}")).stdin(Stdio::null());
        let output = command.output().expect("the test binary can be started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            assert!(text.contains("1 passed"), "no such helper: {text}");
            return None;
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(9), "{operation} at {point}: {text}{complaint}");
        // The first line may follow the name of the test on the same line.
        let words = text.lines().filter_map(|line| line.split("said ").nth(1));
        Some(words.map(str::to_owned).collect())
    }

    fn files(&self) -> Vec<PathBuf> {
        let (mut files, mut dirs) = (Vec::new(), vec![self.root().to_owned()]);
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).expect("readable") {
                let path = entry.expect("readable").path();
                if path.is_dir() { dirs.push(path) } else { files.push(path) }
            }
        }
        files
    }

    /// Returns the entries of the directories in which other programs write, too.
    fn entries(&self) -> Vec<PathBuf> {
        let dirs =
            ["teams/demo", "teams/demo/inboxes", "tasks/demo"].map(|dir| self.root().join(dir));
        let entries = dirs.iter().flat_map(|dir| fs::read_dir(dir).expect("readable"));
        entries.map(|entry| entry.expect("readable").path()).collect()
    }

    /// Backdates the temporary files of files that do not exist, since no later write to those
    /// removes them. Locks stay as they are, for the next process to take over (CR-13).
    fn age_what_was_left(&self) {
        let old = FileTimes::new().set_modified(SystemTime::now() - Duration::from_secs(100));
        for path in self.entries().iter().filter(|path| is_orphan(path)) {
            File::open(path).and_then(|file| file.set_times(old)).expect("ours");
        }
    }

    /// Asserts that every JSON file parses, which must hold at any moment.
    fn assert_whole(&self, about: &str) {
        for path in
            self.files().into_iter().filter(|path| path.extension().is_some_and(|e| e == "json"))
        {
            let text = fs::read(&path).expect("readable");
            let sound = serde_json::from_slice::<Value>(&text);
            assert!(
                sound.is_ok(),
                "{about}: {}: {:?}",
                path.display(),
                String::from_utf8_lossy(&text)
            );
        }
    }

    /// Asserts that no lock, temporary or quarantined file is left, which must hold once the
    /// operation was repeated.
    fn assert_tidy(&self, about: &str) {
        // The lock of another file may stay, to be taken over with the next write of that file.
        let is_left = |path: &PathBuf| match path.extension().and_then(|end| end.to_str()) {
            Some("tmp") => true,
            Some("lock") => path.parent().is_some_and(|dir| dir.ends_with("inboxes")),
            Some(_) | None => false,
        };
        let left: Vec<PathBuf> = self.entries().into_iter().filter(is_left).collect();
        assert_eq!(left, Vec::<PathBuf>::new(), "{about}");
        assert!(
            !self
                .root()
                .join("teams/demo/phalanx/quarantine")
                .read_dir()
                .is_ok_and(|mut d| d.next().is_some())
        );
    }

    /// Asserts that each message exists once and that no `settled` one is unread.
    fn assert_mail(&self, team: &TestTeam, operation: &str, settled: &[String], about: &str) {
        for owner in ["bob", "ned"] {
            let unread = team.unread(owner).expect("unread");
            let mut counts = BTreeMap::new();
            for (id, ..) in team.all(owner).expect("all") {
                *counts.entry(id).or_insert(0) += 1;
            }
            assert!(counts.values().all(|count| *count == 1), "{about}: {counts:?}");
            if operation != "remove" {
                let kept = (0..MANY).filter(|n| counts.contains_key(&format!("old-{n}")));
                assert_eq!(kept.count(), MANY, "{about}: lost");
            }
            for id in settled.iter().filter(|_| owner == "bob" || operation == "acknowledge native")
            {
                match operation {
                    "append" => assert!(unread.contains(id), "{about}: {id} was sent and is gone"),
                    "acknowledge native" if owner == "bob" => assert!(unread.contains(id)),
                    _ => assert!(!unread.contains(id), "{about}: {id} is handed over twice"),
                }
            }
        }
    }
}

/// Returns whether the path is the temporary file (`.NAME.UUID.tmp`) of a file that does not exist.
fn is_orphan(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name
        .strip_prefix('.')
        .and_then(|rest| rest.strip_suffix(".tmp"))
        .and_then(|rest| rest.rsplit_once('.'));
    stem.is_some_and(|(stem, _uuid)| !path.with_file_name(stem).exists())
}

/// Kills `operation` at each pass of `point`; returns the number of kills.
fn kill_at_each_pass((operation, again): Operation, point: &str) -> u32 {
    for nth in 1..=PASSES {
        let stage = Stage::new();
        let about = format!("{operation} killed at {point}, pass {nth}");
        let Some(settled) = stage.die(operation, point, nth) else { return nth - 1 };
        stage.assert_whole(&about);
        stage.age_what_was_left();
        let team = TestTeam::open(stage.root(), "demo").expect("a team");
        stage.assert_mail(&team, operation, &settled, &about);
        let messages = |team: &TestTeam| team.all("bob").expect("all").len();
        let before = messages(&team);
        again(&team).unwrap_or_else(|e| panic!("{about}: {e}"));
        let (sent, gone) =
            (usize::from(operation == "append") * 3, usize::from(operation == "remove") * 2);
        assert!(messages(&team) + gone >= before + sent, "{about}");
        // Repeating the operation may write nothing; the next append to a mailbox cleans it up.
        for owner in team.teammates().expect("a roster") {
            team.append(&owner, "alice", "and now", "last").expect("the lock is free");
        }
        stage.assert_whole(&about);
        stage.assert_tidy(&about);
        if operation != "append" {
            stage.assert_mail(&team, operation, &settled, &about);
        }
    }
    panic!("{operation} passes {point} more than {PASSES} times")
}

#[test]
fn a_process_may_die_anywhere() {
    let mut total = 0;
    println!("{:<20}{}", "", POINTS.map(|point| format!("{point:>18}")).concat());
    for operation in OPERATIONS {
        let row = POINTS.map(|point| match kill_at_each_pass(operation, point) {
            0 => format!("{:>18}", "-"),
            kills => {
                total += kills;
                format!("{:>18}", format!("{kills} survived"))
            }
        });
        println!("{:<20}{}", operation.0, row.concat());
    }
    println!("{total} kills, 0 failures; - : the operation does not pass there");
    assert!(total > 100, "the points are not reached: {total}");
}

#[test]
fn restoring_an_old_mailbox_makes_no_read_message_unread() {
    let stage = Stage::new();
    let team = TestTeam::open(stage.root(), "demo").expect("a team");
    let old = fs::read(stage.inbox("bob")).expect("readable");
    let ids = team.unread("bob").expect("unread");
    team.acknowledge("bob", &ids[..3]).expect("acknowledged");
    fs::write(stage.inbox("bob"), old).expect("writable");
    assert_eq!(team.unread("bob").expect("unread"), ids[3..]);
    team.acknowledge("bob", &ids[3..]).expect("acknowledged");
    assert!(team.unread("bob").expect("unread").is_empty());
    assert_eq!(team.all("bob").expect("all").len(), MANY);
}
