//! A lead stopped by SIGSTOP: status shows it, deadlines hold, and `--force` ends members without
//! it.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Background, Stage, wait_for};

/// Starts a team with a worker, a plain command, and a foreground lead.
fn led(stage: &Stage) -> Background {
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.phalanx(&["spawn", "ben", "--", "sleep", "300"]).expect(0);
    let lead = stage.start(&["lead"]);
    wait_for("the lead", || (state(stage) == "running").then_some(()));
    lead
}

fn state(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["state"].clone()
}

fn stop(stage: &Stage, lead: &Background) {
    wait_for("the lead to be stopped between two writes", || {
        lead.signal("STOP");
        wait_for("its stop", || lead.is_stopped().then_some(()));
        // The lease is one lock. A lead stopped with a second lock would block all other processes.
        let is_writing = locks(lead) > 1;
        if is_writing {
            lead.signal("CONT");
        }
        (!is_writing).then_some(())
    });
    wait_for("the status to show it", || (state(stage) == "stopped").then_some(()));
}

/// The number of file locks that a process holds.
fn locks(process: &Background) -> usize {
    let table = fs::read_to_string("/proc/locks").expect("the table of locks");
    let pid = process.pid();
    table
        .lines()
        .filter(|line| line.contains(" FLOCK ") && line.split_whitespace().any(|word| word == pid))
        .count()
}

/// The number of events of this kind about this member.
fn count(stage: &Stage, event: &str, member: &str) -> usize {
    stage.journal("demo").iter().filter(|e| e["event"] == event && e["member"] == member).count()
}

#[test]
fn doctor_reports_a_stopped_lead() {
    let stage = Stage::new();
    let lead = led(&stage);
    let found = || {
        let report = stage.phalanx(&["--json", "doctor"]).json();
        let findings = report["findings"].as_array().cloned().expect("findings");
        findings.into_iter().find(|finding| finding["id"] == "lead_stopped")
    };
    assert_eq!(found(), None);
    stop(&stage, &lead);
    let finding = found().expect("a finding");
    assert_eq!(finding["fix"], format!("kill -CONT {}", lead.pid()));
    lead.signal("CONT");
    assert_eq!(found(), None);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn stopped_lead_is_shown_and_shutdown_keeps_its_deadline() {
    let stage = Stage::without_tmux();
    let lead = led(&stage);
    stop(&stage, &lead);
    let page = stage.phalanx(&["status"]).expect(0).stdout;
    assert!(page.contains(&format!("led by process {}, stopped", lead.pid())), "{page}");
    let run = stage.phalanx(&["--json", "shutdown", "ada", "--deadline", "1"]).expect(5);
    let hint = format!("kill -CONT {}", lead.pid());
    assert!(run.stderr.contains("is stopped and has not ended the members within 1 s"), "{run:?}");
    assert!(run.stderr.contains(&hint) && run.stderr.contains("--force"), "{run:?}");
    lead.signal("CONT");
    stage.wait_event("demo", "shutdown_ended", "ada");
    stage.phalanx(&["down"]).expect(0);
    lead.end().expect(0);
    stage.assert_clean();
}

#[test]
fn force_ends_a_member_once_despite_a_stopped_lead() {
    let stage = Stage::new();
    let lead = led(&stage);
    stage.phalanx(&["task", "create", "Long", "--owner", "ada", "--", "sleep", "300"]).expect(0);
    stage.wait_event("demo", "task_claimed", "1");
    stop(&stage, &lead);
    let outcome = stage.phalanx(&["--json", "shutdown", "ada", "--force"]).expect(0).json();
    assert_eq!((&outcome[0]["outcome"], &outcome[0]["deviations"]), (&json!("forced"), &json!([])));
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    assert_eq!((&task["status"], &task["owner"]), (&json!("pending"), &json!(null)));
    let names = |stage: &Stage| {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        let members = status["members"].as_array().expect("members").clone();
        members.into_iter().map(|member| member["name"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&stage), [json!("ben")]);
    lead.signal("CONT");
    // The lead processes the changes made while it was stopped before it carries out the next
    // request.
    let outcome = stage.phalanx(&["--json", "shutdown", "ben"]).expect(0).json();
    assert_eq!(outcome[0]["outcome"], json!("closed"));
    for event in ["member_left", "shutdown_requested", "shutdown_ended"] {
        assert_eq!(count(&stage, event, "ada"), 1, "{event}");
    }
    let mail = stage.phalanx(&["--json", "inbox", "--all"]).expect(0).json();
    let notices = mail.as_array().expect("entries").iter().filter(|entry| {
        entry["text"]
            .as_str()
            .is_some_and(|text| text.contains("teammate_terminated") && text.contains("ada"))
    });
    assert_eq!(notices.count(), 1, "{mail}");
    assert_eq!(names(&stage), [""; 0].map(Value::from));
    stage.phalanx(&["down"]).expect(0);
    lead.end().expect(0);
    stage.assert_clean();
}

#[test]
fn force_removes_a_team_whose_lead_is_stopped() {
    let stage = Stage::without_tmux();
    let manifest = stage.file(
        "demo.toml",
        "[team]\nname = \"demo\"\n[[member]]\nname = \"ada\"\n[[task]]\nkey = \"a\"\nsubject = \"Long\"\n\
         run = [\"sleep\", \"300\"]\n",
    );
    let up = stage.start(&["up", &manifest]);
    stage.wait_event("demo", "task_claimed", "1");
    stop(&stage, &up);
    stage.phalanx(&["down", "--deadline", "1"]).expect(5);
    let run = stage.phalanx(&["--json", "down", "--force"]).expect(0);
    assert_eq!(run.json()[0]["outcome"], json!("forced"));
    assert!(
        run.stderr.contains("the team's lead is stopped; ending the members without it"),
        "{run:?}"
    );
    assert!(!stage.root().join("teams/demo").exists());
    up.signal("CONT");
    let end = up.end().expect(1);
    assert!(end.stderr.contains("team demo was deleted while it was led here"), "{end:?}");
    stage.assert_clean();
}

/// The lead has not read anything of its team when that is deleted.
#[test]
fn sd_20_team_that_is_deleted_under_a_beginning_lead_is_reported_as_deleted() {
    for point in ["lead.begun", "lead.announced"] {
        let stage = Stage::without_tmux();
        let text = "[team]\nname = \"demo\"\n[[member]]\nname = \"ada\"\n[[task]]\nkey = \"a\"\n\
                    subject = \"Long\"\nrun = [\"sleep\", \"300\"]\n";
        let manifest = stage.file("demo.toml", text);
        let up = stage.start_and_stop_at(point, &["up", &manifest]);
        stage.phalanx(&["down", "--force"]).expect(0);
        up.signal("CONT");
        let end = up.end().expect(1);
        let said = "team demo was deleted while it was led here";
        assert!(end.stderr.contains(said), "{point}: {end:?}");
        stage.assert_clean();
    }
}

/// The lead is stopped while it holds the roster lock, which every other process needs.
#[test]
fn force_ends_a_team_whose_lead_is_stopped_holding_a_lock() {
    for command in [&["down", "--force"][..], &["shutdown", "ada", "--force"]] {
        let stage = Stage::without_tmux();
        let manifest = stage.file(
            "demo.toml",
            "[team]\nname = \"demo\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n",
        );
        let lead = stage.start_and_stop_at("spawn.intended", &["up", &manifest]);
        wait_for("the lead to stop", || (state(&stage) == "stopped").then_some(()));
        stage.phalanx(&["rules", "deny", "Bash(rm:*)"]).expect(0);
        let began = Instant::now();
        let run = stage.phalanx(command);
        assert!(run.code == 0 || run.code == 3, "its only member has not started yet: {run:?}");
        assert!(
            began.elapsed() < Duration::from_secs(20),
            "it waited for no lock: {:?}",
            began.elapsed()
        );
        assert!(command[0] == "down" || state(&stage) == "stopped", "it is stopped again");
        drop(lead);
        if stage.root().join("teams/demo").exists() {
            stage.phalanx(&["down", "--force"]).expect(0);
        }
        stage.assert_clean();
    }
}

/// A launcher starts after its record was read, and before its run is removed.
#[test]
fn force_ends_a_member_that_starts_meanwhile() {
    let stage = Stage::without_tmux();
    let lead = led(&stage);
    let spawn = ["spawn", "cleo", "--backend", "pty", "--", "sleep", "301"];
    let spawn = stage.start_and_stop_at("spawn.joined", &spawn);
    stop(&stage, &lead);
    let kill = stage.start_and_stop_at("force.read", &["kill", "cleo"]);
    spawn.signal("CONT");
    spawn.end().expect(0);
    let record = stage.root().join("teams/demo/phalanx/members/cleo.json");
    let record: Value = serde_json::from_slice(&fs::read(record).expect("read")).expect("json");
    let run = record["incarnation"].as_str().expect("text");
    let is_running =
        || stage.processes().iter().any(|line| line.contains(run) || line.contains("sleep 301"));
    assert!(is_running());
    kill.signal("CONT");
    kill.end().expect(0);
    assert!(!is_running(), "{:?}", stage.processes());
    stage.phalanx(&["down", "--force"]).expect(0);
    lead.signal("CONT");
    lead.end();
    stage.assert_clean();
}
