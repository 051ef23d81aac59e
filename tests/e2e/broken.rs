//! Teams with broken files: a FIFO, a directory, truncated or missing content. `--force` still ends
//! them, and `doctor` names each broken file with a command that repairs it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Run, Stage, wait_for, which};

const FORCED: [&[&str]; 2] = [&["down", "--force"], &["team", "delete", "--force"]];

/// A kind of damage to a path.
#[derive(Debug, Clone, Copy)]
enum Damage {
    Fifo,
    Directory,
    Cut,
    Empty,
}

impl Damage {
    fn inflict(self, path: &Path) {
        let text = fs::read(path).unwrap_or_default();
        match self {
            Damage::Cut => return fs::write(path, &text[..text.len() / 2]).expect("cut"),
            Damage::Empty => return fs::write(path, "").expect("emptied"),
            Damage::Fifo | Damage::Directory => {}
        }
        // A living lead may write a file again that is removed first.
        let made = path.with_extension("made");
        match self {
            Damage::Directory => fs::create_dir(&made).expect("directory"),
            _ => mkfifo(&made),
        }
        if path.is_dir() {
            fs::remove_dir_all(path).expect("removed");
        } else if path.exists() && made.is_dir() {
            fs::remove_file(path).expect("removed");
        }
        fs::rename(made, path).expect("renamed");
    }
}

fn mkfifo(path: &Path) {
    let program = which("mkfifo", &std::env::var("PATH").expect("PATH")).expect("mkfifo");
    assert!(Command::new(program).arg(path).status().expect("mkfifo").success());
}

/// Creates team `alpha` with one long-running member.
fn team() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--", "sleep", "600"]).expect(0);
    stage
}

fn alpha(stage: &Stage, path: &str) -> PathBuf {
    match path.split_once('/') {
        Some(("tasks", file)) => stage.root().join("tasks/alpha").join(file),
        _ if path == "tasks" => stage.root().join("tasks/alpha"),
        _ => stage.root().join("teams/alpha").join(path),
    }
}

fn unreadable(run: &Run) -> Vec<Value> {
    let findings = run.json()["findings"].as_array().cloned().expect("findings");
    findings.into_iter().filter(|finding| finding["id"] == "unreadable").collect()
}

/// All combinations of path and damage under test.
fn damages() -> Vec<(&'static str, Damage)> {
    use Damage::{Cut, Directory, Empty, Fifo};
    let mut all = Vec::new();
    for damage in [Fifo, Directory, Cut, Empty] {
        all.extend(
            ["config.json", "inboxes/ada.json", "phalanx/members/ada.json"]
                .map(|path| (path, damage)),
        );
    }
    for damage in [Fifo, Directory] {
        let files = [
            "inboxes/team-lead.json",
            "phalanx/journal.jsonl",
            "phalanx/team.json",
            "tasks/1.json",
        ];
        all.extend(files.map(|path| (path, damage)));
    }
    let dirs = [
        "inboxes",
        "phalanx",
        "phalanx/members",
        "phalanx/quarantine",
        "phalanx/requests",
        "tasks",
    ];
    all.extend(dirs.map(|path| (path, Fifo)));
    all
}

#[test]
fn force_ends_team_with_any_broken_file_and_names_the_file() {
    for verb in FORCED {
        for (path, damage) in damages() {
            let stage = team();
            let broken = alpha(&stage, path);
            damage.inflict(&broken);
            let run = stage.phalanx(verb);
            assert_eq!(run.code, 0, "{verb:?} {path} {damage:?}: {run:?}");
            assert!(
                run.stderr.contains(&*broken.to_string_lossy()),
                "{verb:?} {path} {damage:?}: {run:?}"
            );
            stage.assert_clean();
        }
    }
}

/// phalanx writes nothing through a symlink, and the target directory keeps its content.
#[test]
fn sec_07_symlinked_directory_is_refused_and_force_ends_the_team() {
    for path in ["inboxes", "tasks", "phalanx/requests"] {
        let stage = team();
        let (dir, elsewhere) = (alpha(&stage, path), stage.at("elsewhere"));
        fs::rename(&dir, &elsewhere).expect("moved");
        symlink(&elsewhere, &dir).expect("linked");
        let before = contents(&elsewhere);
        for verb in [
            &["send", "team-lead", "hello"][..],
            &["task", "create", "One"],
            &["shutdown", "ada", "--no-wait"],
        ] {
            let run = stage.phalanx(verb);
            assert!(
                run.code == 0 || run.stderr.contains("it is a symbolic link"),
                "{path} {verb:?}: {run:?}"
            );
        }
        assert_eq!(contents(&elsewhere), before, "{path}");
        let run = stage.phalanx(&["down", "--force"]).expect(0);
        assert!(run.stderr.contains(&*dir.to_string_lossy()), "{path}: {run:?}");
        assert_eq!(contents(&elsewhere), before, "{path}");
        stage.assert_clean();
    }
}

fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(dir).expect("a directory").flatten();
    let files = entries.filter(|entry| entry.path().is_file());
    files
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                fs::read(entry.path()).expect("a file"),
            )
        })
        .collect()
}

/// Both copies of the roster and all records are unreadable; only the processes remain as evidence.
#[test]
fn force_ends_team_without_readable_state() {
    for verb in FORCED {
        let stage = team();
        for path in
            ["config.json", "phalanx/config.last.json", "phalanx/members", "phalanx/lead.json"]
        {
            Damage::Fifo.inflict(&alpha(&stage, path));
        }
        stage.phalanx(verb).expect(0);
        stage.assert_clean();
    }
}

/// A record of another form must not hide the other members.
#[test]
fn status_shows_all_members_beside_a_broken_record() {
    let stage = team();
    stage.phalanx(&["spawn", "ben", "--", "sleep", "600"]).expect(0);
    let file = alpha(&stage, "phalanx/members/ada.json");
    let record = fs::read(&file).expect("a record");
    fs::write(&file, br#"{"format":1,"name":7}"#).expect("writable");
    let status: Value =
        serde_json::from_str(&stage.phalanx(&["status", "--json"]).expect(0).stdout).expect("JSON");
    let names: Vec<&str> = status["members"]
        .as_array()
        .expect("members")
        .iter()
        .filter_map(|m| m["name"].as_str())
        .collect();
    assert_eq!(names, ["ada", "ben"], "{status}");
    fs::write(&file, record).expect("writable");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn unrecorded_run_blocks_down_and_is_ended_by_force() {
    let stage = team();
    // Decoy: the command line of a launcher is not proof of ownership.
    let spec = alpha(&stage, "phalanx/specs/00000000-0000-4000-8000-000000000000.json");
    let script = format!("exec -a {} tee exec {}", crate::harness::binary(), spec.display());
    let mut bystander = Command::new("bash");
    bystander.args(["-c", &script]).current_dir(stage.at("work")).stdin(Stdio::piped());
    let mut bystander = bystander.spawn().expect("bash");
    wait_for("the bystander", || spec.exists().then_some(()));
    fs::remove_dir_all(alpha(&stage, "phalanx/members")).expect("removed");
    for verb in [&["down"][..], &["team", "delete"]] {
        let run = stage.phalanx(verb).expect(1);
        assert!(run.stderr.contains("phalanx down --force -t alpha"), "{run:?}");
    }
    assert!(
        stage.processes().iter().any(|line| line.contains("sleep 600")),
        "{:?}",
        stage.processes()
    );
    let run = stage.phalanx(&["down", "--force"]).expect(0);
    assert!(run.stderr.contains("which no record names"), "{run:?}");
    assert_eq!(bystander.try_wait().expect("wait"), None, "nothing proves that it is ours");
    bystander.kill().and_then(|()| bystander.wait()).expect("ended");
    stage.assert_clean();
}

/// SD-05: the pane of the unrecorded run is closed; the user's own pane stays.
#[test]
fn tmux_sd_05_force_ends_unrecorded_run_and_closes_its_pane() {
    let stage = Stage::new();
    stage.tmux(&["new-session", "-d", "-s", "mine", "sleep", "300"]).expect("session");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--", "sleep", "600"]).expect(0);
    assert_eq!(stage.panes().len(), 2);
    fs::remove_dir_all(alpha(&stage, "phalanx/members")).expect("removed");
    stage.phalanx(&["down", "--force"]).expect(0);
    assert_eq!(stage.panes().len(), 1);
    assert!(
        !stage.processes().iter().any(|line| line.contains("sleep 600")),
        "{:?}",
        stage.processes()
    );
}

#[test]
fn force_ends_team_with_live_lead_and_broken_files() {
    for path in [
        "config.json",
        "inboxes/team-lead.json",
        "phalanx/journal.jsonl",
        "phalanx/members/ada.json",
    ] {
        let stage = team();
        let lead = stage.start(&["lead"]);
        wait_for("the lead", || {
            stage.journal("alpha").into_iter().find(|e| e["event"] == "lead_started")
        });
        Damage::Fifo.inflict(&alpha(&stage, path));
        stage.phalanx(&["down", "--force"]).expect(0);
        lead.end();
        stage.assert_clean();
    }
}

/// Each piece of advice is a command that resolves its finding.
#[test]
fn doctor_names_every_broken_file_and_its_advice_repairs_it() {
    for (path, damage) in damages() {
        let stage = team();
        let broken = alpha(&stage, path);
        damage.inflict(&broken);
        let found = unreadable(&stage.phalanx(&["--json", "doctor"]).expect(1));
        let finding =
            found.iter().find(|finding| finding["where"] == json!(broken.to_string_lossy()));
        let finding = finding.unwrap_or_else(|| panic!("{path} {damage:?}: {found:?}"));
        let advice =
            finding["fix"].as_str().expect("advice").strip_prefix("phalanx ").expect("a command");
        let run = stage.phalanx(&advice.split(' ').collect::<Vec<_>>());
        assert!(run.code == 0, "{path} {damage:?}: {advice}: {run:?}");
        assert_eq!(
            unreadable(&stage.phalanx(&["--json", "doctor"])),
            Vec::<Value>::new(),
            "{path} {damage:?}"
        );
        if stage.root().join("teams/alpha").exists() {
            assert!(
                stage.processes().iter().any(|line| line.contains("sleep 600")),
                "{path}: ada runs on"
            );
            stage.phalanx(&["down", "--force"]).expect(0);
        }
        stage.assert_clean();
    }
}

#[test]
fn doctor_reports_a_teams_directory_that_cannot_be_listed() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let teams = stage.root().join("teams");
    let kept = stage.root().join("kept");
    fs::rename(&teams, &kept).expect("moved");
    fs::write(&teams, "").expect("a file in its place");
    let found = unreadable(&stage.phalanx(&["--json", "doctor"]).expect(1));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0]["where"], json!(teams.to_string_lossy()));
    let advice = found[0]["fix"].as_str().expect("advice");
    assert!(Command::new("sh").args(["-c", advice]).status().expect("sh").success(), "{advice}");
    fs::rename(&kept, &teams).expect("moved back");
    assert_eq!(unreadable(&stage.phalanx(&["--json", "doctor"]).expect(0)), Vec::<Value>::new());
    stage.phalanx(&["down"]).expect(0);
}

/// Root can read files of any mode, so nothing is reported as root.
#[test]
fn doctor_fix_makes_unreadable_files_readable() {
    let stage = team();
    let paths = ["inboxes/ada.json", "phalanx/journal.jsonl", "phalanx/members", "config.json"];
    let paths = paths.map(|path| alpha(&stage, path));
    for path in &paths {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("own file");
    }
    let is_root = fs::read(&paths[0]).is_ok();
    let found = unreadable(&stage.phalanx(&["--json", "doctor"]));
    assert_eq!(found.len(), if is_root { 0 } else { paths.len() }, "{found:?}");
    let fixed = unreadable(&stage.phalanx(&["--json", "doctor", "--fix"]).expect(0));
    assert!(fixed.iter().all(|finding| finding["fixed"] == true), "{fixed:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// TK-07: an id above the limit does not block new tasks, is reported, and can be quarantined.
#[test]
fn tk_07_task_file_beyond_id_limit_is_reported_and_blocks_nothing() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let names = ["18446744073709551615.json", "99999999999999999999.json"];
    for name in names {
        fs::write(alpha(&stage, &format!("tasks/{name}")), r#"{"subject":"x","status":"pending"}"#)
            .expect("file");
    }
    let made = stage.phalanx(&["--json", "task", "create", "first"]).expect(0);
    assert!(
        made.stdout.contains(r#""id":"1""#) || made.stdout.contains(r#""id": "1""#),
        "{made:?}"
    );
    let shown = stage.phalanx(&["task", "get", "99999999999999999999"]).expect(2);
    assert!(shown.stderr.contains("9007199254740991"), "{shown:?}");
    let found = unreadable(&stage.phalanx(&["--json", "doctor"]).expect(1));
    assert_eq!(found.len(), names.len(), "{found:?}");
    stage.phalanx(&["doctor", "--fix"]).expect(0);
    assert_eq!(unreadable(&stage.phalanx(&["--json", "doctor"]).expect(0)), Vec::<Value>::new());
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// A dying writer can leave the team file truncated. A writer that stops while it holds the file
/// open triggers no close notification.
#[test]
fn live_lead_restores_a_torn_team_file() {
    let stage = team();
    let lead = stage.start(&["lead"]);
    let file = alpha(&stage, "config.json");
    let whole = || {
        let text = fs::read(&file).unwrap_or_default();
        serde_json::from_slice::<Value>(&text).ok().filter(|team| team["leadProcess"].is_object())
    };
    let before = wait_for("the lead's entry in the team file", whole);
    for length in [0, 1, 200] {
        let _open = {
            let open = fs::OpenOptions::new().write(true).open(&file).expect("there");
            open.set_len(length).expect("cut");
            open
        };
        let after = crate::harness::wait_within(Duration::from_secs(5), "a whole team file", whole);
        assert_eq!(after, before);
    }
    let repaired =
        || stage.journal("alpha").iter().filter(|e| e["event"] == "repaired").count() == 3;
    wait_for("the journal to say so", || repaired().then_some(()));
    stage.phalanx(&["down", "--force"]).expect(0);
    lead.end();
    stage.assert_clean();
}

#[test]
fn doctor_names_team_without_team_file_and_force_ends_it() {
    for command in FORCED {
        let stage = team();
        // A team for which something runs is ended at once (tests/e2e/ending.rs).
        stage.phalanx(&["kill", "ada"]).expect(0);
        let dir = stage.root().join("teams/alpha");
        fs::remove_file(dir.join("config.json")).expect("removed");
        stage.phalanx(&[&["-t", "alpha"], command].concat()).expect(3);
        // A directory without a team file counts as being created while it is young.
        let old = fs::FileTimes::new()
            .set_modified(std::time::SystemTime::now() - Duration::from_secs(60));
        fs::File::open(&dir).and_then(|file| file.set_times(old)).expect("ours");
        let named = stage.phalanx(&["doctor"]).expect(1).stdout;
        assert!(
            named.contains("the team file is missing")
                && named.contains("phalanx down --force -t alpha"),
            "{named}"
        );
        let taken = stage.phalanx(&["team", "create", "alpha"]).expect(4);
        assert!(taken.stderr.contains("`--force` if its files are broken"), "{taken:?}");
        let run = stage.phalanx(&[&["-t", "alpha"], command].concat()).expect(0);
        assert!(run.stderr.contains("it was missing; restored to end the team"), "{run:?}");
        stage.assert_clean();
    }
}
