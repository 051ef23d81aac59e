//! The files of each release: they are read, work goes on with them, and files of a newer release
//! are refused (docs/dev/protocol.md).

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

const TEAM: &str = "teams/demo";
/// The message that bob has not read.
const UNREAD: &str = "unread as yet: grüße";

/// A stage with the team `demo` of a release, as `fixtures/disk/make` left it: the lead and the
/// members ann, bob and srv have died.
fn stage_of(release: &str) -> Stage {
    let stage = Stage::without_tmux();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/disk").join(release);
    copy(&fixture, &stage.root());
    stage
}

/// Copies a directory, with the modes that phalanx gives its files.
fn copy(from: &Path, to: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(to).expect("a directory");
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).expect("a mode");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copy");
            fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).expect("a mode");
        }
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON")
}

fn write(path: &Path, value: &Value) {
    fs::write(path, serde_json::to_vec_pretty(value).expect("text")).expect("written");
}

/// The only file in a directory of the team.
fn only_file(stage: &Stage, dir: &str) -> PathBuf {
    let mut files = fs::read_dir(stage.root().join(TEAM).join(dir)).expect("a directory").flatten();
    let file = files.next().expect("a file").path();
    assert!(files.next().is_none(), "one file in {dir}");
    file
}

#[test]
fn files_of_0_1_0_are_read() {
    let stage = stage_of("0.1.0");
    let text = |args: &[&str]| stage.phalanx(args).expect(0).stdout;

    let team = stage.phalanx(&["--json", "team", "show"]).expect(0).json();
    assert_eq!(team["description"], "A team of phalanx 0.1.0");
    assert_eq!(team["members"].as_array().map(Vec::len), Some(4), "{team}");
    assert!(text(&["team", "set"]).contains("max_members"));
    assert!(text(&["rules"]).contains("Bash(make:*)"));

    let tasks = stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
    let states: Vec<&Value> =
        tasks.as_array().expect("tasks").iter().map(|task| &task["state"]).collect();
    assert_eq!(states, ["in_progress", "blocked", "blocked", "completed"]);
    let task = text(&["task", "get", "1"]);
    for part in ["Write the page", "All of it", "half of it", "with pictures", "page.md", "docs/**"]
    {
        assert!(task.contains(part), "{part}: {task}");
    }
    assert_eq!(text(&["workspace", "read", "page.md"]), "a page\n");

    let unread = stage.phalanx(&["--json", "--as", "bob", "inbox", "--peek"]).expect(0).json();
    assert_eq!(unread[0]["text"], UNREAD);
    assert_eq!(unread.as_array().map(Vec::len), Some(1), "the others are read: {unread}");
    assert!(text(&["inbox", "--all", "--peek"]).contains("half is done"));
    assert!(text(&["handoff", "list"]).contains("neighbour"));
    assert!(text(&["requests", "--all"]).contains("Bash: git push"));

    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    for member in status["members"].as_array().expect("members") {
        assert_eq!(member["state"], "disappeared", "its process is not of this boot: {member}");
    }
    assert!(text(&["events"]).contains("completed #4 Sweep"));
}

#[test]
fn work_goes_on_with_files_of_0_1_0() {
    let stage = stage_of("0.1.0");
    stage.phalanx(&["--as", "bob", "task", "complete", "1", "--summary", "written"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["spawn", "dan", "--backend", "pty"]).expect(0);
    stage.phalanx(&["send", "dan", "go on"]).expect(0);
    stage.phalanx(&["--as", "dan", "task", "claim", "2"]).expect(0);
    stage.phalanx(&["--as", "dan", "task", "complete", "2"]).expect(0);
    let created = stage.phalanx(&["--json", "task", "create", "Another"]).expect(0);
    assert!(created.stdout.contains('5'), "the ids go on: {}", created.stdout);
    let task = stage.phalanx(&["--json", "task", "get", "3"]).expect(0).json();
    assert_eq!(task["state"], "pending", "its blockers are completed");

    let ended = stage.phalanx(&["--json", "shutdown", "dan", "--deadline", "20"]).expect(0);
    assert!(ended.stdout.contains(r#""outcome":"closed""#), "{}", ended.stdout);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn unknown_fields_of_each_file_survive_a_change() {
    let stage = stage_of("0.1.0");
    let at = |file: &str| stage.root().join(file);
    let changed = [
        at("teams/demo/config.json"),
        at("teams/demo/phalanx/team.json"),
        at("teams/demo/phalanx/members/bob.json"),
        only_file(&stage, "phalanx/requests"),
        at("tasks/demo/1.json"),
    ];
    let future = json!({"x": [1.50, null]});
    for path in &changed {
        let mut value = read(path);
        value["future"] = future.clone();
        write(path, &value);
    }
    let inbox = at("teams/demo/inboxes/bob.json");
    let mut entries = read(&inbox);
    for entry in entries.as_array_mut().expect("entries") {
        entry["future"] = future.clone();
    }
    write(&inbox, &entries);
    let before: Vec<Value> = changed.iter().map(|path| read(path)).collect();

    stage.phalanx(&["team", "set", "max_members", "9"]).expect(0);
    stage.phalanx(&["--as", "bob", "task", "progress", "1", "75"]).expect(0);
    stage.phalanx(&["send", "bob", "hello"]).expect(0);
    stage.phalanx(&["--as", "bob", "inbox"]).expect(0);
    let entries = read(&inbox);
    // The new lead removes members that have died from the team, and ends their requests.
    stage.phalanx(&["lead", "--detach"]).expect(0);
    for (path, before) in changed.iter().zip(&before) {
        let now = wait_for(&format!("a change of {}", path.display()), || {
            Some(read(path)).filter(|now| now != before)
        });
        assert_eq!(now["future"], future, "{}", path.display());
    }
    let entry = entries.as_array().and_then(|all| all.iter().find(|e| e["text"] == UNREAD));
    let entry = entry.expect("the message is still there");
    assert_eq!((&entry["future"], &entry["read"]), (&future, &json!(true)));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// A file with a format number, and commands that need it.
struct Numbered {
    file: fn(&Stage) -> PathBuf,
    commands: [&'static [&'static str]; 2],
}

#[test]
fn newer_format_of_each_file_is_refused_and_left_alone() {
    let numbered = [
        Numbered {
            file: |stage| stage.root().join("teams/demo/phalanx/team.json"),
            commands: [&["team", "set", "max_members", "9"], &["status"]],
        },
        Numbered {
            file: |stage| stage.root().join("teams/demo/phalanx/members/bob.json"),
            commands: [&["status"], &["kill", "bob"]],
        },
        Numbered {
            file: |stage| stage.root().join("teams/demo/phalanx/lead.json"),
            commands: [&["lead"], &["status"]],
        },
        Numbered {
            file: |stage| only_file(stage, "phalanx/requests"),
            commands: [&["requests"], &["doctor", "--fix"]],
        },
    ];
    for Numbered { file, commands } in numbered {
        let stage = stage_of("0.1.0");
        let path = file(&stage);
        let mut value = read(&path);
        assert_eq!(value["format"], 1, "{}", path.display());
        value["format"] = json!(2);
        // A form that this release cannot read at all.
        value.as_object_mut().expect("an object").retain(|key, _| key == "format");
        write(&path, &value);
        for command in commands {
            let run = stage.phalanx(command);
            if command[0] != "doctor" {
                assert_eq!(run.code, 4, "{command:?}: {}{}", run.stdout, run.stderr);
                let named = path.to_str().expect("utf-8");
                assert!(run.stderr.contains(named), "{command:?}: {}", run.stderr);
                for part in ["has format version 2; this phalanx supports version 1", "newer one"] {
                    assert!(run.stderr.contains(part), "{command:?}: {}", run.stderr);
                }
            }
            assert_eq!(read(&path), value, "{command:?} leaves {}", path.display());
        }
    }
}

#[test]
fn newer_store_address_is_refused() {
    let stage = stage_of("0.1.0");
    let path = stage.root().join("teams/demo/phalanx/store");
    write(&path, &json!({"format": 2, "where": "elsewhere"}));
    let run = stage.phalanx(&["status", "-t", "demo"]).expect(4);
    assert!(run.stderr.contains("phalanx/store has format version 2"), "{}", run.stderr);
}
