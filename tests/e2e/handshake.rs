//! Shutdowns of members that answer in every possible way, played by `fixtures/fake-agent`.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::fake;
use crate::harness::{Stage, wait_for};

fn spawn(stage: &Stage, name: &str, backend: &str, words: &[&str]) {
    let head = ["spawn", name, "--profile", "fake", "--backend", backend, "--"];
    stage.phalanx(&[&head[..], words].concat()).expect(0);
}

fn team(stage: &Stage) {
    fake::install(stage);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
}

fn entry_of<'a>(ended: &'a Value, name: &str) -> &'a Value {
    let found = ended.as_array().expect("a list").iter().find(|one| one["name"] == name);
    found.unwrap_or_else(|| panic!("nothing of {name}: {ended}"))
}

fn kinds(one: &Value) -> Vec<&str> {
    one["deviations"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|d| d["kind"].as_str())
        .collect()
}

/// Name of the member, its instructions, the outcome of its shutdown, and the deviations reported.
const WAYS: [(&str, &[&str], &str, &[&str]); 9] = [
    ("agrees", &["approve"], "closed", &[]),
    ("silent", &["never"], "timed_out", &["timed_out"]),
    ("late", &["late", "8"], "timed_out", &["timed_out"]),
    ("garbler", &["garbage"], "timed_out", &["timed_out"]),
    ("stayer", &["stay"], "closed", &[]),
    ("twice", &["twice"], "closed", &[]),
    ("liar", &["somebody", "silent"], "timed_out", &["timed_out"]),
    ("dying", &["approve", "--die", "asked"], "gone", &[]),
    ("refuser", &["reject-then-approve"], "rejected", &["still_there"]),
];

/// SD-01, SD-02, SD-11: however the members answer, all have ended within the deadline and the
/// grace period, and nothing of them is left.
fn all_ways(stage: &Stage, backend: &str) {
    team(stage);
    for (name, words, _, _) in WAYS {
        spawn(stage, name, backend, words);
    }
    let ended = stage
        .phalanx(&["--json", "shutdown", "--all", "--deadline", "4", "--reason", "phase_complete"])
        .expect(4);
    let ended = ended.json();
    for (name, _, outcome, deviations) in WAYS {
        let one = entry_of(&ended, name);
        assert_eq!(
            (one["outcome"].as_str(), kinds(one)),
            (Some(outcome), deviations.to_vec()),
            "{one}"
        );
    }
    let left: Vec<String> =
        stage.processes().into_iter().filter(|line| line.contains("fake-agent")).collect();
    assert!(left.iter().all(|line| line.ends_with("reject-then-approve ")), "{left:?}");
    let asked = stage
        .journal("alpha")
        .into_iter()
        .find(|e| e["event"] == "shutdown_requested")
        .expect("told");
    assert_eq!(
        (&asked["detail"]["reason"], &asked["detail"]["deadline_seconds"]),
        (&json!("phase_complete"), &json!(4))
    );
    stage.phalanx(&["team", "delete"]).expect(4);
    let second =
        stage.phalanx(&["--json", "shutdown", "refuser", "--deadline", "20"]).expect(0).json();
    assert_eq!(second[0]["outcome"], json!("closed"));
    stage.phalanx(&["team", "delete"]).expect(0);
    std::fs::remove_dir_all(stage.root().join("phalanx")).expect("profiles");
    stage.assert_clean();
}

#[test]
fn sd_01_sd_02_shutdown_ends_in_time_however_members_answer() {
    all_ways(&super::stage_without_tmux(), "pty");
}

#[test]
fn tmux_sd_01_sd_02_shutdown_ends_in_time_and_leaves_no_pane() {
    all_ways(&super::stage(), "tmux");
}

fn git(stage: &Stage, dir: &str, words: &[&str]) {
    let done = stage.command("git").args(["-C", dir]).args(words).output().expect("git");
    assert!(done.status.success(), "{done:?}");
}

/// Compares what members report about their work with the state of their git repositories.
#[test]
fn shutdown_verifies_reported_work_against_git() {
    let stage = super::stage();
    team(&stage);
    let at = |name: &str| stage.at("work").join(name).to_string_lossy().into_owned();
    for dir in ["clean", "dirty", "plain"] {
        std::fs::create_dir(at(dir)).expect("dir");
    }
    git(&stage, &at("clean"), &["init", "-q"]);
    git(&stage, &at("dirty"), &["init", "-q"]);
    std::fs::write(at("dirty/new.txt"), "x").expect("file");
    let says =
        |words: &[&str]| words.iter().map(|word| format!("--answer={word}")).collect::<Vec<_>>();
    let unfinished = ["--status", "in_progress", "--pending", "the tests", "--pending", "the docs"];
    for (name, dir, words) in [
        ("tidy", "clean", says(&["--committed"])),
        ("messy", "dirty", says(&["--committed"])),
        ("nogit", "plain", says(&["--committed"])),
        ("early", "clean", says(&unfinished)),
        ("broken", "clean", says(&["--status", "error", "--uncommitted"])),
    ] {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let head =
            ["spawn", name, "--profile", "fake", "--backend", "pty", "--cwd", dir, "--", "approve"];
        stage.phalanx(&[&head[..], &words].concat()).expect(0);
    }
    let ended = stage.phalanx(&["--json", "shutdown", "--all"]).expect(0).json();
    for (name, deviations) in [
        ("tidy", vec![]),
        ("messy", vec!["uncommitted"]),
        ("nogit", vec!["unchecked"]),
        ("early", vec!["in_progress"]),
        ("broken", vec!["error", "uncommitted"]),
    ] {
        assert_eq!(kinds(entry_of(&ended, name)), deviations, "{ended}");
    }
    let early = entry_of(&ended, "early");
    let said = (&early["status"], &early["pending_work"], &early["artifacts_committed"]);
    assert_eq!(said, (&json!("in_progress"), &json!(["the tests", "the docs"]), &json!(null)));
    let text =
        entry_of(&ended, "messy")["deviations"][0]["text"].as_str().expect("text").to_owned();
    assert!(text.contains("new.txt"), "{text}");
    let journal = stage.journal("alpha");
    let told =
        |event: &str| journal.iter().filter(|e| e["event"] == event).cloned().collect::<Vec<_>>();
    assert_eq!(told("shutdown_verified").len(), 1);
    assert_eq!(
        told("shutdown_verified")[0]["detail"]["deviations"].as_array().map(Vec::len),
        Some(5)
    );
    let of_early =
        told("shutdown_ended").into_iter().find(|e| e["member"] == "early").expect("told");
    assert_eq!(of_early["detail"]["pending_work"], json!(["the tests", "the docs"]));
    stage.phalanx(&["down"]).expect(0);
}

/// PM-07: a member with an open question is shown as waiting; an answer from the lead ends that,
/// and a shutdown works meanwhile.
#[test]
fn pm_07_members_that_await_answers_can_be_shut_down() {
    let stage = super::stage_without_tmux();
    team(&stage);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    for (name, asks) in [("ann", "plan"), ("ben", "permission"), ("cid", "host")] {
        spawn(&stage, name, "pty", &["approve", "--asks", asks]);
    }
    let face = |name: &str, key: &str| {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        entry_of(&status["members"], name)[key].as_str().unwrap_or_default().to_owned()
    };
    for (name, waits) in [("ann", "plan"), ("ben", "permission"), ("cid", "permission")] {
        wait_for(&format!("{name} waits"), || (face(name, "needs") == waits).then_some(()));
    }
    stage.phalanx(&["wait", "ann", "--until", "idle", "--timeout", "0.3"]).expect(5);
    let shown = stage.phalanx(&["--json", "team", "show"]).expect(0).json();
    assert_eq!(entry_of(&shown["members"], "ann")["isActive"], json!(true));
    let open = stage.phalanx(&["--json", "requests"]).expect(0).json();
    let mut open: Vec<_> = open
        .as_array()
        .expect("list")
        .iter()
        .map(|r| r["request_id"].as_str().expect("id"))
        .collect();
    open.sort_unstable();
    assert_eq!(open, ["host-1", "perm-1", "plan-1"], "they are still to be decided");
    let answer = r#"{"type":"plan_approval_response","requestId":"plan-1","approved":true}"#;
    stage.phalanx(&["--as", "ben", "send", "ann", answer]).expect(0);
    stage.phalanx(&["send", "ann", answer]).expect(0);
    wait_for("ann works", || (face("ann", "state") == "working").then_some(()));
    // A state is stored before it is journaled.
    let moves = wait_for("the event", || {
        let is_move = |e: &Value| e["member"] == "ann" && e["event"] == "member_state";
        let moves = stage.journal("alpha").into_iter().filter(is_move);
        let moves: Vec<Value> = moves.map(|e| e["detail"]["state"].clone()).collect();
        (moves.len() > 1).then_some(moves)
    });
    assert_eq!(moves, ["awaiting_plan", "working"]);
    let ended =
        stage.phalanx(&["--json", "shutdown", "--all", "--deadline", "20"]).expect(0).json();
    for name in ["ann", "ben", "cid"] {
        assert_eq!(entry_of(&ended, name)["outcome"], json!("closed"), "{ended}");
    }
    stage.phalanx(&["down"]).expect(0);
}

/// SD-10, SD-11: an answer from a member that was not asked, or from another run, is refused and
/// not sent.
#[test]
fn sd_10_sd_11_only_the_asked_run_can_answer_a_shutdown() {
    let stage = super::stage_without_tmux();
    team(&stage);
    spawn(&stage, "ann", "pty", &["never"]);
    let asked = stage
        .phalanx(&["--json", "shutdown", "ann", "--no-wait", "--deadline", "60"])
        .expect(0)
        .json();
    let id = asked[0]["request_id"].as_str().expect("id").to_owned();
    stage.phalanx(&["answer", &id, "--approve"]).expect(4);
    stage.phalanx(&["--as", "ann", "answer", &id, "--reject"]).expect(2);
    stage.phalanx(&["--as", "ann", "answer", &id, "--reject", "--reason", " "]).expect(2);
    stage.phalanx(&["--as", "ann", "answer", "shutdown-1@ann", "--approve"]).expect(3);
    let mut other = stage.command(crate::harness::binary());
    other.env("PHALANX_INCARNATION", "00000000-0000-4000-8000-000000000000");
    let other = other.args(["--as", "ann", "answer", &id, "--approve"]).output().expect("runs");
    assert_eq!(other.status.code(), Some(4), "{other:?}");
    let sent = stage
        .journal("alpha")
        .into_iter()
        .filter(|e| e["detail"]["kind"] == "shutdown_approved")
        .count();
    assert_eq!(sent, 0, "what is refused is not sent");
    let team = fs::read_to_string(stage.root().join("teams/alpha/config.json")).expect("team file");
    assert!(team.contains("\"tmuxPaneId\": \"in-process\""), "{team}");
    stage.phalanx(&["--as", "ann", "answer", &id, "--approve"]).expect(0);
    let mail = fs::read_to_string(stage.root().join("teams/alpha/inboxes/team-lead.json"))
        .expect("mailbox");
    let place = r#"\"paneId\":\"in-process\",\"backendType\":\"in-process\""#;
    assert!(mail.contains(place), "{mail}");
    assert_eq!(
        stage.phalanx(&["--json", "shutdown", "ann"]).expect(0).json()[0]["outcome"],
        json!("closed")
    );
    stage.phalanx(&["--as", "ann", "answer", &id, "--approve"]).expect(3);
    stage.phalanx(&["down"]).expect(0);
}

/// PM-04, SD-11: an answer after the deadline is refused and ends no member, not even the next run
/// with the same name.
#[test]
fn pm_04_sd_11_late_answer_to_a_shutdown_is_refused() {
    let stage = super::stage_without_tmux();
    team(&stage);
    spawn(&stage, "ann", "pty", &["never"]);
    let ended = stage.phalanx(&["--json", "shutdown", "ann", "--deadline", "1"]).expect(5).json();
    assert_eq!(ended[0]["outcome"], json!("timed_out"));
    let id = ended[0]["request_id"].as_str().expect("id");
    spawn(&stage, "ann", "pty", &["never"]);
    let late = stage.phalanx(&["--as", "ann", "answer", id, "--approve"]).expect(4);
    assert!(late.stderr.contains("it ended as timed_out"), "{late:?}");
    let sent = |e: &Value| e["detail"]["kind"] == "shutdown_approved";
    assert_eq!(
        stage.journal("alpha").into_iter().filter(sent).count(),
        0,
        "what is refused is not sent"
    );
    let all = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
    assert_eq!(
        (all[0]["kind"].as_str(), all[0]["state"].as_str()),
        (Some("shutdown"), Some("timed_out"))
    );
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_ne!(entry_of(&status["members"], "ann")["state"], json!("stopping"));
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn up_reports_shutdown_deviations() {
    let stage = super::stage_without_tmux();
    fake::install(&stage);
    let manifest = stage.file(
        "one.toml",
        "[team]\nname = \"one\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n",
    );
    let up = stage.start(&["--json", "up", &manifest]);
    stage.wait_event("one", "member_ready", "ada");
    let head = ["spawn", "early", "-t", "one", "--profile", "fake", "--", "approve"];
    let words =
        ["--answer=--status", "--answer=in_progress", "--answer=--pending", "--answer=the tests"];
    stage.phalanx(&[&head[..], &words].concat()).expect(0);
    up.signal("INT");
    let report = up.end().expect(130).json();
    assert_eq!(report["deviations"][0]["name"], json!("early"), "{report}");
    assert_eq!(entry_of(&report["members"], "early")["pending_work"], json!(["the tests"]));
    assert_eq!(entry_of(&report["members"], "ada")["status"], json!("clean"));
}

/// MSG-03: Claude Code 2.1.34 tries once for the lock of the lead's mailbox, then gives up, and
/// often writes again right after a message. The lead therefore acts on a message at once, but
/// takes the lock to mark it read only later.
#[test]
fn msg_03_lead_does_not_lock_its_mailbox_right_after_a_message() {
    let stage = super::stage_without_tmux();
    team(&stage);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    spawn(&stage, "ann", "pty", &["approve"]);
    let file = stage.root().join("teams/alpha/inboxes/team-lead.json");
    let rests = json!({"type": "idle_notification", "from": "ann", "timestamp": "2026-01-01T00:00:00.000Z"});
    let sent = SystemTime::now();
    stage.phalanx(&["--as", "ann", "send", "team-lead", &rests.to_string()]).expect(0);
    let handled = |e: &Value| e["event"] == "message_handled" && e["member"] == "team-lead";
    wait_for("it to be handled", || stage.journal("alpha").into_iter().find(handled));
    let marked = wait_for("it to be marked", || {
        // The time is read after the content, so that it is never the time of the append.
        let entries: Value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
        let all = entries.as_array()?.iter().all(|entry| entry["read"] == true);
        if all { fs::metadata(&file).ok()?.modified().ok() } else { None }
    });
    assert!(
        marked >= sent + Duration::from_millis(900),
        "{:?} after it was sent",
        marked.duration_since(sent)
    );
    stage.phalanx(&["down"]).expect(0);
}
