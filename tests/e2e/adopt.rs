//! Adoption of a team whose lead is gone: exactly one adopter wins, a live lead is never replaced,
//! and no mail is lost or delivered twice.

use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

const LEAD: &str = "team-lead";

fn lead_of(stage: &Stage) -> Option<i64> {
    stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64()
}

/// A team with an idle worker, and a lead that was killed.
fn orphaned(stage: &Stage) {
    let manifest = stage.file(
        "demo.toml",
        "[team]\nname = \"demo\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n",
    );
    let up = stage.start(&["up", &manifest]);
    stage.wait_event("demo", "member_ready", "ada");
    wait_for("the lead", || lead_of(stage));
    up.signal("KILL");
    drop(up);
    assert_eq!(lead_of(stage), None);
}

#[test]
fn cr_05_team_of_killed_lead_is_adopted_and_continues() {
    let stage = Stage::without_tmux();
    orphaned(&stage);
    stage.phalanx(&["send", LEAD, "are you there?", "--as", "ada"]).expect(0);
    let adopted = stage.phalanx(&["--json", "adopt", "--detach"]).expect(0).json();
    assert_eq!(adopted["lead_pid"].as_i64(), lead_of(&stage));
    let run = stage.phalanx(&["adopt"]).expect(4);
    assert!(
        run.stderr.contains(&adopted["lead_pid"].to_string()),
        "a live one is respected: {run:?}"
    );
    stage.phalanx(&["task", "create", "Works", "--", "true"]).expect(0);
    stage.wait_event("demo", "task_completed", "1");
    let mail = stage.phalanx(&["--json", "inbox"]).expect(0).stdout;
    assert_eq!(mail.matches("are you there?").count(), 1, "{mail}");
    assert!(!stage.phalanx(&["--json", "inbox"]).expect(0).stdout.contains("are you there?"));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn cr_05_exactly_one_concurrent_adopter_wins() {
    let stage = Stage::without_tmux();
    orphaned(&stage);
    let start = || {
        let mut command = stage.command(binary());
        command.args(["--json", "adopt", "--detach"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("phalanx starts")
    };
    let adopters: Vec<_> = (0..6).map(|_| start()).collect();
    let runs: Vec<Run> = adopters
        .into_iter()
        .map(|child| Run::from(child.wait_with_output().expect("it ends")))
        .collect();
    let codes: Vec<i32> = runs.iter().map(|run| run.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{runs:?}");
    assert_eq!(codes.iter().filter(|code| **code == 4).count(), 5, "{runs:?}");
    let winner = runs.iter().find(|run| run.code == 0).expect("one").json();
    assert_eq!(winner["lead_pid"].as_i64(), lead_of(&stage));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// The lead's session id, unique to this test so that no other test's process has it on its command
/// line.
fn session_of(stage: &Stage) -> String {
    format!("session of {}", stage.root().display())
}

/// Writes a team as Claude Code 2.1.330 leaves it when killed, without any phalanx files. With
/// `lead` null there is no `leadProcess`, as in version 2.1.34.
fn of_claude(stage: &Stage, lead: &Value) {
    let team = stage.root().join("teams/demo");
    std::fs::create_dir_all(team.join("inboxes")).expect("dir");
    std::fs::create_dir_all(stage.root().join("tasks/demo")).expect("dir");
    let mut file = json!({
        "name": "demo", "description": "d", "createdAt": 1, "leadAgentId": "team-lead@demo", "leadSessionId": session_of(stage),
        "leadProcess": lead,
        "members": [{ "agentId": "team-lead@demo", "name": LEAD, "agentType": LEAD, "model": "", "joinedAt": 1,
            "tmuxPaneId": "", "cwd": "/", "subscriptions": [] }],
    });
    if lead.is_null() {
        file.as_object_mut().expect("an object").remove("leadProcess");
    }
    std::fs::write(team.join("config.json"), serde_json::to_string_pretty(&file).expect("json"))
        .expect("written");
    let mail = json!([{ "from": "researcher", "text": "the answer is 42", "timestamp": "2026-01-01T00:00:00.000Z",
        "read": false }]);
    std::fs::write(team.join("inboxes/team-lead.json"), mail.to_string()).expect("written");
}

#[test]
fn cr_04_claude_code_team_is_adopted_and_its_mail_arrives_once() {
    let stage = Stage::without_tmux();
    // A process on another host cannot be checked; `--force` is the user's assertion that it has
    // ended.
    of_claude(&stage, &json!({ "pid": 1, "pidSpace": "elsewhere", "claimedAt": 1 }));
    for verb in ["lead", "adopt"] {
        let run = stage.phalanx(&[verb, "--detach"]).expect(4);
        assert!(run.stderr.contains("phalanx adopt --force"), "{run:?}");
    }
    let run = stage.phalanx(&["adopt", "--force", "--detach"]).expect(0);
    assert!(run.stderr.contains("on another host is not visible from here"), "{run:?}");
    stage.phalanx(&["spawn", "bob"]).expect(0);
    let mail = stage.phalanx(&["--json", "inbox"]).expect(0).stdout;
    assert_eq!(mail.matches("the answer is 42").count(), 1, "{mail}");
    let again = stage.phalanx(&["--json", "inbox"]).expect(0).stdout;
    assert!(!again.contains("the answer is 42"), "{again}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn cr_05_live_lead_of_another_program_is_not_replaced() {
    let stage = Stage::without_tmux();
    let mut program = stage.command("sleep").arg("300").spawn().expect("sleep");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("host");
    let space = std::fs::read_link("/proc/self/ns/pid").expect("namespace");
    let space = format!("{}#{}", host.trim(), space.display());
    of_claude(&stage, &json!({ "pid": program.id(), "pidSpace": space, "claimedAt": 1 }));
    stage.phalanx(&["adopt", "--detach"]).expect(4);
    stage.phalanx(&["adopt", "--force", "--detach"]).expect(4);
    program.kill().expect("killed");
    program.wait().expect("reaped");
    stage.phalanx(&["adopt", "--detach"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// Backdates the team file and the lead mailbox by an hour.
fn age(stage: &Stage) {
    let then = SystemTime::now() - Duration::from_secs(3600);
    let team = stage.root().join("teams/demo");
    for path in [team.join("config.json"), team.join("inboxes/team-lead.json")] {
        std::fs::File::open(path).expect("file").set_modified(then).expect("time");
    }
}

fn lead_mail(stage: &Stage) -> String {
    std::fs::read_to_string(stage.root().join("teams/demo/inboxes/team-lead.json")).expect("mail")
}

#[test]
fn cr_04_unrecorded_lead_is_not_replaced_while_it_may_be_alive() {
    let stage = Stage::without_tmux();
    of_claude(&stage, &Value::Null);
    let mail = lead_mail(&stage);
    let refused = |args: &[&str], sign: &str| {
        let run = stage.phalanx(args).expect(4);
        assert!(run.stderr.contains(sign) && run.stderr.contains("phalanx adopt"), "{run:?}");
        assert_eq!(lead_mail(&stage), mail, "nothing was read");
    };
    refused(&["adopt", "--detach"], ".json was written");
    age(&stage);
    let mut command = stage.command("sleep");
    command.arg0("claude").arg("300").current_dir("/").env("CLAUDE_CONFIG_DIR", stage.root());
    let mut claude = command.spawn().expect("sleep");
    let sign = format!("process {} runs claude in /", claude.id());
    for args in [&["lead", "--detach"][..], &["adopt", "--detach"], &["lead", "--", "true"]] {
        refused(args, &sign);
    }
    // SD-17: nor are its files removed.
    for args in [
        &["down", "-t", "demo"][..],
        &["down", "--force", "-t", "demo"],
        &["team", "delete", "-t", "demo"],
        &["rm", "demo", "--force"],
    ] {
        refused(args, &sign);
    }
    claude.kill().expect("killed");
    claude.wait().expect("reaped");
    let mut session =
        stage.command("sleep").arg0(session_of(&stage)).arg("300").spawn().expect("sleep");
    refused(&["adopt", "--detach"], &format!("process {} has its session", session.id()));
    session.kill().expect("killed");
    session.wait().expect("reaped");
    refused(&["lead", "--detach"], "does not record its process");
    let run = stage.phalanx(&["adopt", "--detach"]).expect(0);
    assert!(run.stderr.contains("not visible from here"), "{run:?}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn cr_04_unrelated_claude_processes_do_not_block_adoption() {
    let stage = Stage::without_tmux();
    of_claude(&stage, &Value::Null);
    age(&stage);
    let claude = |args: &[&str], dir: &str, root: std::path::PathBuf| {
        let mut command = stage.command("sleep");
        command.arg0("claude").args(args).current_dir(dir).env("CLAUDE_CONFIG_DIR", root);
        command.spawn().expect("sleep")
    };
    let mut others =
        [claude(&["300"], "/tmp", stage.root()), claude(&["300"], "/", stage.at("other"))];
    let lead = stage.start(&["adopt", "--on-exit", "detach"]);
    wait_for("the lead", || lead_of(&stage));
    lead.signal("INT");
    lead.end().expect(0);
    // An adopted team belongs to phalanx, even after the adopting lead has detached.
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    for other in &mut others {
        other.kill().expect("killed");
        other.wait().expect("reaped");
    }
    stage.assert_clean();
}

#[test]
fn cr_04_force_adopts_team_whose_lead_may_be_alive() {
    let stage = Stage::without_tmux();
    of_claude(&stage, &Value::Null);
    stage.phalanx(&["adopt", "--detach"]).expect(4);
    stage.phalanx(&["adopt", "--force", "--detach"]).expect(0);
    // The lead journals the adoption after it has acquired the lease, which is all that `--detach`
    // waits for.
    let adopted = wait_for("the adoption on record", || {
        stage.journal("demo").into_iter().find(|event| event["event"] == "lead_adopted")
    });
    assert_eq!(adopted["detail"]["pid"].as_i64(), lead_of(&stage));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn cr_04_open_pane_of_the_lead_blocks_adoption() {
    let stage = Stage::new();
    stage.tmux(&["-f", "/dev/null", "new-session", "-d", "sleep 300"]).expect("a session");
    let pane =
        stage.tmux(&["list-panes", "-a", "-F", "#{pane_id}"]).expect("a pane").trim().to_owned();
    of_claude(&stage, &Value::Null);
    let path = stage.root().join("teams/demo/config.json");
    let mut file: Value =
        serde_json::from_slice(&std::fs::read(&path).expect("file")).expect("json");
    file["members"][0]["tmuxPaneId"] = json!(pane);
    std::fs::write(&path, file.to_string()).expect("written");
    age(&stage);
    let run = stage.phalanx(&["adopt", "--detach"]).expect(4);
    assert!(run.stderr.contains(&format!("its pane {pane} is open")), "{run:?}");
    stage.tmux(&["kill-server"]).expect("ended");
    stage.phalanx(&["adopt", "--detach"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sd_12_lead_on_exit_detaches_refuses_or_stops() {
    let stage = Stage::without_tmux();
    for signal in ["INT", "HUP"] {
        orphaned(&stage);
        let lead = stage.start(&["--json", "lead", "--on-exit", "detach"]);
        wait_for("the lead", || lead_of(&stage));
        lead.signal(signal);
        assert_eq!(lead.end().expect(0).json(), json!({ "team_name": "demo", "lead_pid": null }));
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        assert_eq!(
            (&status["lead"], status["members"].as_array().map(Vec::len)),
            (&json!(null), Some(1))
        );

        let lead = stage.start(&["lead", "--on-exit", "refuse"]);
        wait_for("the lead", || lead_of(&stage));
        lead.signal(signal);
        lead.signal(signal);
        stage.phalanx(&["send", "ada", "still here"]).expect(0);
        assert_eq!(lead_of(&stage).map(|pid| pid.to_string()), Some(lead.pid()));
        stage.phalanx(&["shutdown", "ada"]).expect(0);
        lead.signal(signal);
        assert!(lead.end().expect(130).stderr.contains("members live"));
        stage.assert_clean();

        orphaned(&stage);
        let lead = stage.start(&["lead", "--on-exit", "stop"]);
        wait_for("the lead", || lead_of(&stage));
        lead.signal(signal);
        lead.end().expect(130);
        // CR-19: the team stays when its terminal is closed.
        if signal == "HUP" {
            stage.phalanx(&["down"]).expect(0);
        }
        stage.assert_clean();
    }
}

/// SD-17: the default team is the only one that phalanx made; a team of another program is ended
/// only by its name.
#[test]
fn sd_17_team_of_another_program_is_ended_only_by_its_name() {
    let stage = Stage::without_tmux();
    of_claude(&stage, &Value::Null);
    let team_of = || stage.phalanx(&["--json", "status"]).expect(0).json()["team"].clone();
    assert_eq!(team_of(), "demo", "the only team");
    for args in [&["down"][..], &["down", "--force"], &["team", "delete"]] {
        let run = stage.phalanx(args).expect(4);
        assert!(
            run.stderr.contains("made by another program") && run.stderr.contains("-t demo"),
            "{run:?}"
        );
    }
    stage.phalanx(&["team", "create", "mine"]).expect(0);
    assert_eq!(team_of(), "mine");
    stage.phalanx(&["down"]).expect(0);
    assert!(stage.root().join("teams/demo").exists());
    stage.phalanx(&["down", "-t", "demo"]).expect(0);
    stage.assert_clean();
}
