//! The lead: one per team; it notices members that vanish and handles signals.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::fake;
use crate::harness::{Stage, wait_for};

/// Two workers and one task that waits for a file, so that the test decides when it ends.
const WAITING: &str = r#"
[team]
name = "waiting"
[[member]]
name = "ada"
[[member]]
name = "ben"
[[task]]
key = "slow"
subject = "Waits for a file"
run = ["sh", "-c", "until [ -e go ]; do sleep 0.05; done"]
"#;

#[test]
fn tmux_cr_01_task_of_a_killed_pane_is_done_by_another_member() {
    let stage = Stage::new();
    let manifest = stage.file("waiting.toml", WAITING);
    let up = stage.start(&["--json", "up", &manifest]);
    let claimed = stage.wait_event("waiting", "task_claimed", "1");
    let first = claimed["member"].as_str().expect("member").to_owned();
    stage.wait_event("waiting", "member_ready", &first);
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let member = status["members"]
        .as_array()
        .expect("members")
        .iter()
        .find(|m| m["name"] == first.as_str())
        .expect("member");
    let pane = member["pane"].as_str().expect("pane");
    stage.tmux(&["kill-pane", "-t", pane]).expect("killed");
    wait_for("the task is released", || {
        stage.journal("waiting").into_iter().find(|e| e["event"] == "task_released")
    });
    let second = wait_for("another worker takes the task", || {
        stage.journal("waiting").into_iter().filter(|e| e["event"] == "task_claimed").nth(1)
    });
    assert_ne!(second["member"], json!(first));
    std::fs::write(stage.at("work/go"), "").expect("go");
    let report = up.end().expect(0).json();
    assert_eq!(report["tasks"][0]["state"], json!("completed"));
    assert_eq!(report["tasks"][0]["by"], second["member"]);
    stage.assert_clean();
}

#[test]
fn cr_01_launcher_killed_with_sigkill_is_noticed() {
    let stage = Stage::without_tmux();
    let manifest = stage.file("waiting.toml", WAITING);
    let up = stage.start(&["--json", "up", &manifest]);
    let claimed = stage.wait_event("waiting", "task_claimed", "1");
    let first = claimed["member"].as_str().expect("member").to_owned();
    stage.wait_event("waiting", "member_ready", &first);
    let record = std::fs::read_to_string(
        stage.root().join(format!("teams/waiting/phalanx/members/{first}.json")),
    );
    let record: serde_json::Value = serde_json::from_str(&record.expect("record")).expect("json");
    let launcher = record["start"]["launcher"]["pid"].to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &launcher])
            .status()
            .expect("kill")
            .success()
    );
    stage.wait_event("waiting", "member_left", &first);
    std::fs::write(stage.at("work/go"), "").expect("go");
    let report = up.end().expect(0).json();
    assert_eq!(report["tasks"][0]["state"], json!("completed"));
    stage.assert_clean();
}

#[test]
fn second_lead_of_a_team_is_refused() {
    let stage = Stage::without_tmux();
    let manifest = stage.file("waiting.toml", WAITING);
    let up = stage.start(&["up", &manifest]);
    stage.wait_event("waiting", "task_claimed", "1");
    let run = stage.phalanx(&["--json", "lead"]).expect(4);
    assert!(run.stderr.contains(&up.pid()), "{run:?}");
    std::fs::write(stage.at("work/go"), "").expect("go");
    up.end().expect(0);
    stage.assert_clean();
}

#[test]
fn first_interrupt_shuts_down_gracefully_and_second_forces() {
    let stage = Stage::without_tmux();
    let manifest = stage.file("waiting.toml", WAITING);
    let up = stage.start(&["up", &manifest]);
    stage.wait_event("waiting", "task_claimed", "1");
    up.signal("INT");
    wait_for("the shutdown is asked for", || {
        stage.journal("waiting").into_iter().find(|e| e["event"] == "shutdown_requested")
    });
    up.signal("INT");
    up.end().expect(130);
    stage.assert_clean();
}

#[test]
fn interrupted_up_ends_its_idle_team_and_a_terminated_one_keeps_it() {
    for (signal, stays) in [("INT", false), ("TERM", true), ("HUP", true)] {
        let stage = Stage::without_tmux();
        let manifest = stage.file(
            "idle.toml",
            "[team]\nname = \"idle\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n",
        );
        let up = stage.start(&["up", &manifest]);
        stage.wait_event("idle", "member_ready", "ada");
        wait_for("the lead", || {
            stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64()
        });
        up.signal(signal);
        up.end().expect(130);
        if stays {
            stage.phalanx(&["down"]).expect(0);
        }
        stage.assert_clean();
    }
}

#[test]
fn sd_08_members_outlive_a_killed_lead_and_down_ends_them() {
    let stage = Stage::without_tmux();
    let manifest = stage.file("waiting.toml", WAITING);
    let up = stage.start(&["up", &manifest]);
    stage.wait_event("waiting", "task_claimed", "1");
    up.signal("KILL");
    drop(up);
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["lead"], json!(null));
    assert_eq!(status["members"].as_array().map(Vec::len), Some(2));
    std::fs::write(stage.at("work/go"), "").expect("go");
    stage.phalanx(&["wait", "--until", "task=1", "--timeout", "20"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// Claude Code 2.1.34 writes its team file in place, so the lead must survive an unreadable file.
#[test]
fn lead_survives_a_temporarily_broken_team_file() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let ada = stage.phalanx(&["--json", "spawn", "ada"]).expect(0).json();
    stage.phalanx(&["spawn", "ben"]).expect(0);
    let lead = stage.start(&["lead"]);
    // An unsolicited answer: the warning about it shows that the lead is running.
    let stray = r#"{"type":"shutdown_approved","requestId":"shutdown-1@ben","from":"ben"}"#;
    stage.phalanx(&["--as", "ben", "send", "team-lead", stray]).expect(0);
    stage.wait_event("alpha", "warning", "ben");
    let file = stage.root().join("teams/alpha/config.json");
    let whole = fs::read(&file).expect("read");
    fs::write(&file, "not json").expect("write");
    // The end of ada makes the lead read the roster.
    Command::new("kill").args(["-KILL", &ada["pid"].to_string()]).status().expect("kill");
    let about = |e: &serde_json::Value| {
        e["detail"]["text"].as_str().is_some_and(|t| t.contains("config.json"))
    };
    wait_for("the lead to say so", || stage.journal("alpha").iter().any(about).then_some(()));
    fs::write(&file, whole).expect("write");
    stage.phalanx(&["task", "create", "One", "--", "true"]).expect(0);
    stage.wait_event("alpha", "task_completed", "1");
    lead.signal("TERM");
    lead.end().expect(130);
}

/// An operation that the lead cannot perform now delays no other and is retried: without its
/// mailbox it cannot read the last messages of a dead member, but it still carries out a shutdown.
#[test]
fn failed_lead_operation_is_retried_and_delays_no_other() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let ada = stage.phalanx(&["--json", "spawn", "ada"]).expect(0).json();
    stage.phalanx(&["spawn", "ben", "--", "sleep", "300"]).expect(0);
    let lead = stage.start(&["lead"]);
    wait_for("the lead", || {
        stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64()
    });
    let inbox = stage.root().join("teams/alpha/inboxes/team-lead.json");
    let aside = stage.at("aside.json");
    let had = fs::rename(&inbox, &aside).is_ok();
    fs::create_dir(&inbox).expect("something that is no mailbox");
    Command::new("kill").args(["-KILL", &ada["pid"].to_string()]).status().expect("kill");
    let about = |e: &serde_json::Value| {
        e["event"] == "warning"
            && e["detail"]["text"].as_str().is_some_and(|t| t.contains("team-lead.json"))
    };
    wait_for("the lead to say so", || stage.journal("alpha").iter().any(about).then_some(()));
    stage.phalanx(&["shutdown", "ben", "--force", "--no-wait"]).expect(0);
    stage.wait_event("alpha", "shutdown_ended", "ben");
    let left = |name: &str| {
        stage.journal("alpha").iter().any(|e| e["event"] == "member_left" && e["member"] == name)
    };
    assert!(!left("ada"), "it could not be heard of yet");
    fs::remove_dir(&inbox).expect("removed");
    if had {
        fs::rename(&aside, &inbox).expect("put back");
    }
    stage.wait_event("alpha", "member_left", "ada");
    lead.signal("TERM");
    lead.end().expect(130);
}

/// SD-02, MSG-03: a user who reads the lead's mail does not take an answer away from its event
/// loop.
#[test]
fn sd_02_answer_that_the_user_read_first_still_counts() {
    let stage = Stage::without_tmux();
    fake::install(&stage);
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let lead = stage.start(&["lead"]);
    wait_for("the lead", || {
        stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64()
    });
    for (name, how) in [("ann", "--consume"), ("ben", "--clear"), ("cid", "--quiet")] {
        stage.phalanx(&["spawn", name, "--profile", "fake", "--", "stay"]).expect(0);
        lead.signal("STOP");
        stage.phalanx(&["shutdown", name, "--no-wait", "--deadline", "60"]).expect(0);
        stage.phalanx(&["send", "team-lead", "a text"]).expect(0);
        // Only this member's answer: the lead may be stopped before it marks the previous one.
        let unread = || {
            let mail = stage.phalanx(&["--json", "inbox", "--all", "--peek"]).expect(0).json();
            let is_awaited = |m: &&serde_json::Value| {
                m["read"] == false && (m["from"] == name || m["text"] == "a text")
            };
            let unread = mail.as_array().expect("messages").iter().filter(is_awaited);
            unread.map(serde_json::Value::to_string).collect::<String>()
        };
        wait_for("its answer", || unread().contains("shutdown_approved").then_some(()));
        stage.phalanx(&["inbox", how]).expect(0);
        let left = unread();
        assert!(left.contains("shutdown_approved") && !left.contains("a text"), "{how}: {left}");
        lead.signal("CONT");
        let ended = stage.wait_event("demo", "shutdown_ended", name);
        assert_eq!(ended["detail"]["outcome"], "closed", "{how}");
    }
    stage.phalanx(&["down"]).expect(0);
    lead.end().expect(0);
}
