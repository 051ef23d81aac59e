//! Health of members: an unresponsive member is reported, and ended only if `on_hang` asks for it.

use serde_json::{Value, json};

use std::fs;
use std::time::Instant;

use crate::harness::{Stage, binary, wait_for};
use crate::requests;

const QUICK: &str = "[team]\nname = \"quick\"\nfinish = \"manual\"\nunresponsive_after = 1\n[[member]]\nname = \"ada\"\n\
                     profile = \"mute\"\n";

/// A program that never reads its mail.
const MUTE: &str = r#"
about = "says nothing"
runs = "native"
[launch]
argv = [["sh", "-c", "echo thinking hard; exec sleep 300"]]
prompt = "mailbox"
[ready]
when = "settled"
settle_ms = 100
"#;

fn ada(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0].clone()
}

/// CR-02, CR-07: a hanging program is reported as unresponsive and keeps running. It recovers once
/// its task is taken away, because it then owes no answer.
#[test]
fn cr_02_unresponsive_member_is_reported_and_keeps_running() {
    let stage = Stage::without_tmux();
    stage.profile("mute", MUTE);
    let manifest = stage.file("quick.toml", QUICK);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let pid = ada(&stage)["pid"].clone();
    stage.phalanx(&["task", "create", "Look", "--owner", "ada", "--", "true"]).expect(0);
    let told = stage.wait_event("quick", "member_health", "ada");
    assert_eq!(
        (
            &told["detail"]["state"],
            &told["detail"]["prev_state"],
            &told["detail"]["timeout_triggered"]
        ),
        (&json!("unresponsive"), &json!("idle"), &json!(true))
    );
    assert_eq!(told["task"], json!("1"));
    let shown = ada(&stage);
    assert_eq!((&shown["state"], &shown["pid"]), (&json!("unresponsive"), &pid));
    let reason = shown["reason"].as_str().expect("a reason");
    assert!(
        reason.starts_with("task #1 was assigned to it ")
            && reason.contains("has not taken the message")
            && reason.ends_with("its screen ends with: thinking hard"),
        "{reason}"
    );
    let mail = wait_for("the lead is told", || {
        let mail = stage.phalanx(&["--json", "inbox", "--peek"]).expect(0).json();
        let mine =
            |m: &&Value| m["text"].as_str().is_some_and(|t| t.starts_with("ada is unresponsive: "));
        Some(mail.as_array()?.iter().filter(mine).count()).filter(|n| *n > 0)
    });
    assert_eq!(mail, 1);
    stage.phalanx(&["task", "update", "1", "--no-owner"]).expect(0);
    let well = wait_for("it is well again", || {
        stage.journal("quick").into_iter().filter(|e| e["event"] == "member_health").nth(1)
    });
    assert_eq!(well["detail"]["prev_state"], json!("unresponsive"));
    // The assignment is still in its mailbox, so it is not idle.
    let shown =
        wait_for("status to follow", || Some(ada(&stage)).filter(|ada| ada["state"] == "working"));
    assert!(shown["reason"].as_str().is_some_and(|why| why.contains("on the way")), "{shown}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// A program that only reads its mail.
const READER: &str = r#"
about = "reads and rests"
runs = "native"
[launch]
argv = [["sh", "-c", "while :; do \"$BIN\" inbox >/dev/null; sleep 0.1; done"]]
prompt = "mailbox"
[ready]
when = "settled"
settle_ms = 100
"#;

/// ST-06: a member that has taken its mail and rests is idle, however long its task is not begun.
/// `status`, `explain` and the board say so; a wait for it ends, and the lead gets no mail.
#[test]
fn st_06_member_that_rests_before_its_task_is_idle_and_not_unresponsive() {
    let stage = Stage::without_tmux();
    stage.profile("reader", READER);
    let member = format!("profile = \"reader\"\nenv = {{ BIN = {:?} }}", binary());
    let manifest = QUICK.replace("profile = \"mute\"", &member);
    stage.phalanx(&["up", &stage.file("quick.toml", &manifest), "--detach"]).expect(0);
    stage.phalanx(&["task", "create", "Look", "--owner", "ada", "--", "true"]).expect(0);
    let given = Instant::now();
    let shown = wait_for("it has taken its mail", || {
        Some(ada(&stage)).filter(|ada| ada["state"] == "idle")
    });
    assert_eq!(shown["reason"], json!("has not begun #1"));
    // Long after the time of `unresponsive_after`, and after two checks.
    wait_for("three seconds", || (given.elapsed().as_secs() >= 3).then_some(()));
    let shown = ada(&stage);
    assert_eq!((&shown["state"], &shown["reason"]), (&json!("idle"), &json!("has not begun #1")));
    stage.phalanx(&["wait", "ada", "--until", "idle", "--timeout", "5"]).expect(0);
    let told = stage.phalanx(&["explain", "ada"]).expect(0).stdout;
    assert!(told.contains("`phalanx task complete 1`"), "{told}");
    let board = stage.phalanx(&["status"]).expect(0).stdout;
    assert!(board.contains("owner has not begun it"), "{board}");
    assert_eq!(stage.journal("quick").iter().filter(|e| e["event"] == "member_health").count(), 0);
    assert_eq!(stage.phalanx(&["--json", "inbox", "--peek"]).expect(0).json(), json!([]));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Programs that never report their state: ann is idle while a hint line changes, bob shows a busy
/// line, and cid shows an idle screen but keeps printing.
const SILENT: &str = r#"
about = "says nothing of what it does"
runs = "native"
reads_mail = true
[launch]
argv = [["sh", "-c", '''
test "$PHALANX_AGENT_NAME" = bob && echo busy
echo ">"
while n=$((n + 1)); do
    case $PHALANX_AGENT_NAME in ann) printf '\r  hint %s' $n ;; cid) printf 'step %s\n>\n' $n ;; esac
    sleep 0.3
done''']]
prompt = "mailbox"
[ready]
when = "settled"
settle_ms = 100
[[rule]]
name = "busy"
state = "working"
match = ['^busy']
[composer]
line = '^>(?<text>.*)$'
[[rule]]
name = "composer"
state = "idle"
match = ['^>$']
"#;

/// A native member that never reports idle is treated as idle once its screen shows it (observed:
/// Claude Code 2.1.34 that did not find its team at start-up). A working member is left alone.
#[test]
fn tmux_msg_13_native_member_without_idle_reports_is_polled_by_screen() {
    let stage = Stage::new();
    stage.profile("silent", SILENT);
    stage.phalanx(&["team", "create", "quick"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    for name in ["bob", "cid", "ann"] {
        stage.phalanx(&["spawn", name, "--profile", "silent"]).expect(0);
        let id = format!("plan-1-{name}");
        let asks = json!({"type": "plan_approval_request", "from": name, "requestId": id, "planContent": "# x"});
        stage.phalanx(&["--as", name, "send", "team-lead", &asks.to_string()]).expect(0);
        wait_for("the request", || {
            (stage.phalanx(&["answer", &id, "--approve"]).code == 0).then_some(())
        });
    }
    let states = |name: &str| -> Vec<Value> {
        let of = |e: &Value| e["member"] == name && e["event"] == "member_state";
        stage.journal("quick").into_iter().filter(of).map(|e| e["detail"].clone()).collect()
    };
    let rests = json!({"state": "idle", "reason": "its screen shows that it rests"});
    wait_for("ann to rest", || states("ann").contains(&rests).then_some(()));
    // Both were polled before ann, because they were asked to work first.
    for name in ["bob", "cid"] {
        assert!(!states(name).contains(&rests), "{:?}", states(name));
        assert_eq!(states(name).last().expect("it works")["state"], "working");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// PM-16: a native program does not report that it no longer waits for a permission, as after
/// Escape in its pane. The lead finds it by its screen, and `answer` does also without a lead.
#[test]
fn tmux_pm_16_permission_of_a_native_program_at_rest_is_withdrawn() {
    for (backend, is_led) in [("tmux", true), ("pty", true), ("pty", false)] {
        let stage = Stage::new();
        stage.profile("silent", SILENT);
        stage.phalanx(&["team", "create", "quick"]).expect(0);
        if is_led {
            stage.phalanx(&["lead", "--detach"]).expect(0);
        }
        for name in ["bob", "cid", "ann"] {
            let spawn = ["spawn", name, "--profile", "silent", "--backend", backend];
            stage.phalanx(&spawn).expect(0);
            let asks = requests::permission(&format!("perm-{name}"), "curl x").to_string();
            stage.phalanx(&["--as", name, "send", "team-lead", &asks]).expect(0);
        }
        let state = |name| requests::request(&stage, &format!("perm-{name}"))["state"].clone();
        if is_led {
            wait_for("the end of the request", || (state("ann") == "withdrawn").then_some(()));
        }
        let refused = stage.phalanx(&["answer", "perm-ann", "--approve"]).expect(4).stderr;
        assert!(refused.contains("or withdrawn"), "{refused}");
        // One shows work, and the screen of the other changes.
        assert_eq!(["ann", "bob", "cid"].map(state), ["withdrawn", "pending", "pending"]);
        let rests = json!({"state": "idle", "reason": "its turn has ended"});
        wait_for("ann to rest", || {
            let mut journal = stage.journal("quick").into_iter();
            journal.find(|event| event["member"] == "ann" && event["detail"] == rests)
        });
        stage.phalanx(&["answer", "perm-bob", "--approve"]).expect(0);
        stage.phalanx(&["down", "--force"]).expect(0);
        stage.assert_clean();
    }
}

/// Two concurrent writers have torn the team file. The lead restores it.
#[test]
fn id_07_lead_repairs_a_torn_team_file() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "quick"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let file = stage.root().join("teams/quick/config.json");
    wait_for("its lead", || fs::read_to_string(&file).ok()?.contains("leadProcess").then_some(()));
    let whole = fs::read_to_string(&file).expect("the team file");
    fs::write(&file, format!("{whole}e\n    }}\n  ]\n}}")).expect("torn");
    wait_for("the mended file", || (fs::read_to_string(&file).ok()? == whole).then_some(()));
    wait_for("what is said of it", || {
        stage.journal("quick").into_iter().find(|e| e["event"] == "file_quarantined")
    });
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ID-07: a program that takes no lock writes back the team file as it was before a member joined.
#[test]
fn id_07_lead_restores_a_member_that_another_program_dropped() {
    for known in [true, false] {
        let stage = Stage::without_tmux();
        stage.phalanx(&["team", "create", "quick"]).expect(0);
        stage.phalanx(&["lead", "--detach"]).expect(0);
        let file = stage.root().join("teams/quick/config.json");
        let entry = || -> Option<Value> {
            let team: Value = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
            team["members"].as_array()?.iter().find(|member| member["name"] == "ada").cloned()
        };
        stage.phalanx(&["spawn", "ada", "--role", "tester"]).expect(0);
        let whole = wait_for("it to rest", || entry().filter(|entry| entry["isActive"] == false));
        let mut before: Value =
            serde_json::from_slice(&fs::read(&file).expect("the team")).expect("json");
        before["members"].as_array_mut().expect("members").retain(|member| member["name"] != "ada");
        if !known {
            // As if phalanx had written the file in between, so that its last copy lacks the entry.
            let last = stage.root().join("teams/quick/phalanx/config.last.json");
            fs::write(last, before.to_string()).expect("written");
        }
        fs::write(&file, serde_json::to_string_pretty(&before).expect("json")).expect("written");
        let mut back = wait_for("its entry", entry);
        if !known {
            // The join time is not in the member record; the lead uses the time of the spawn
            // request.
            back["joinedAt"] = whole["joinedAt"].clone();
        }
        assert_eq!(back, whole, "known: {known}");
        stage.wait_event("quick", "warning", "ada");
        // A member that was shut down is not restored.
        stage.phalanx(&["shutdown", "ada"]).expect(0);
        stage.wait_event("quick", "member_left", "ada");
        stage.phalanx(&["down"]).expect(0);
        stage.assert_clean();
    }
}

/// A worker whose task prints nothing for long, with the given `on_hang` policy.
fn hanging(on_hang: &str) -> String {
    format!(
        "[team]\nname = \"quick\"\nfinish = \"manual\"\nbackend = \"pty\"\nhang_after = 1\non_hang = \"{on_hang}\"\n\
         [[member]]\nname = \"ada\"\n[[task]]\nkey = \"long\"\nsubject = \"Wait\"\n\
         run = [\"sh\", \"-c\", \"echo begun >>begun; until [ -e go ]; do sleep 0.05; done\"]\n"
    )
}

fn begun(stage: &Stage) -> usize {
    fs::read_to_string(stage.at("work").join("begun")).unwrap_or_default().lines().count()
}

#[test]
fn cr_02_hanging_member_is_reported_with_its_task() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["up", &stage.file("quick.toml", &hanging("report")), "--detach"]).expect(0);
    let told = stage.wait_event("quick", "member_health", "ada");
    let reason = told["detail"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("task #1 is in progress, and for "), "{reason}");
    let pid = ada(&stage)["pid"].clone();
    stage.file("go", "");
    stage.wait_event("quick", "task_completed", "1");
    assert_eq!((&ada(&stage)["pid"], begun(&stage)), (&pid, 1), "nothing was done to it");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn cr_02_hanging_member_is_killed_and_restarted() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["up", &stage.file("quick.toml", &hanging("restart")), "--detach"]).expect(0);
    wait_for("the first run", || (begun(&stage) == 1).then_some(()));
    let first = ada(&stage)["pid"].clone();
    wait_for("the second run", || (begun(&stage) == 2).then_some(()));
    stage.file("go", "");
    stage.wait_event("quick", "task_completed", "1");
    assert_ne!(ada(&stage)["pid"], first);
    let left = stage.wait_event("quick", "member_left", "ada");
    let reason = left["detail"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("it showed no activity for "), "{reason}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn cr_02_task_of_a_hanging_member_goes_to_another() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["up", &stage.file("quick.toml", &hanging("release")), "--detach"]).expect(0);
    wait_for("the first run", || (begun(&stage) == 1).then_some(()));
    stage.phalanx(&["spawn", "bob", "--backend", "pty"]).expect(0);
    let released = stage.wait_event("quick", "task_released", "1");
    assert_eq!(released["member"], json!("ada"));
    wait_for("the second run", || (begun(&stage) >= 2).then_some(()));
    stage.file("go", "");
    stage.wait_event("quick", "task_completed", "1");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
