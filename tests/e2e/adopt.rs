//! A lead that is gone is replaced: by one adopter, without pushing anybody aside, and nothing that was said is lost or
//! heard twice.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

const LEAD: &str = "team-lead";

fn lead_of(stage: &Stage) -> Option<i64> {
    stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64()
}

/// A team with an idle worker, and a lead that was killed.
fn orphaned(stage: &Stage) {
    let manifest =
        stage.file("demo.toml", "[team]\nname = \"demo\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n");
    let up = stage.start(&["up", &manifest]);
    stage.wait_event("demo", "member_ready", "ada");
    wait_for("the lead", || lead_of(stage));
    up.signal("KILL");
    drop(up);
    assert_eq!(lead_of(stage), None);
}

#[test]
fn cr_05_a_team_whose_lead_was_killed_is_adopted_and_goes_on() {
    let stage = Stage::without_tmux();
    orphaned(&stage);
    stage.phalanx(&["send", LEAD, "are you there?", "--as", "ada"]).expect(0);
    let adopted = stage.phalanx(&["--json", "adopt", "--detach"]).expect(0).json();
    assert_eq!(adopted["lead_pid"].as_i64(), lead_of(&stage));
    let run = stage.phalanx(&["adopt"]).expect(4);
    assert!(run.stderr.contains(&adopted["lead_pid"].to_string()), "a live one is respected: {run:?}");
    stage.phalanx(&["task", "create", "Works", "--", "true"]).expect(0);
    stage.wait_event("demo", "task_completed", "1");
    let mail = stage.phalanx(&["--json", "inbox"]).expect(0).stdout;
    assert_eq!(mail.matches("are you there?").count(), 1, "{mail}");
    assert!(!stage.phalanx(&["--json", "inbox"]).expect(0).stdout.contains("are you there?"));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn cr_05_of_two_adopters_one_wins() {
    let stage = Stage::without_tmux();
    orphaned(&stage);
    let start = || {
        let mut command = stage.command(binary());
        command.args(["--json", "adopt", "--detach"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("phalanx starts")
    };
    let adopters: Vec<_> = (0..6).map(|_| start()).collect();
    let runs: Vec<Run> =
        adopters.into_iter().map(|child| Run::from(child.wait_with_output().expect("it ends"))).collect();
    let codes: Vec<i32> = runs.iter().map(|run| run.code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{runs:?}");
    assert_eq!(codes.iter().filter(|code| **code == 4).count(), 5, "{runs:?}");
    let winner = runs.iter().find(|run| run.code == 0).expect("one").json();
    assert_eq!(winner["lead_pid"].as_i64(), lead_of(&stage));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// A team as Claude Code 2.1.330 leaves it when it is killed: no files of phalanx.
fn of_claude(stage: &Stage, lead: &Value) {
    let team = stage.root().join("teams/demo");
    std::fs::create_dir_all(team.join("inboxes")).expect("dir");
    std::fs::create_dir_all(stage.root().join("tasks/demo")).expect("dir");
    let file = json!({
        "name": "demo", "description": "d", "createdAt": 1, "leadAgentId": "team-lead@demo", "leadSessionId": "s",
        "leadProcess": lead,
        "members": [{ "agentId": "team-lead@demo", "name": LEAD, "agentType": LEAD, "model": "", "joinedAt": 1,
            "tmuxPaneId": "", "cwd": "/", "subscriptions": [] }],
    });
    std::fs::write(team.join("config.json"), serde_json::to_string_pretty(&file).expect("json"))
        .expect("written");
    let mail = json!([{ "from": "researcher", "text": "the answer is 42", "timestamp": "2026-01-01T00:00:00.000Z",
        "read": false }]);
    std::fs::write(team.join("inboxes/team-lead.json"), mail.to_string()).expect("written");
}

#[test]
fn cr_04_a_team_that_claude_code_made_is_adopted_and_its_mail_arrives_once() {
    let stage = Stage::without_tmux();
    // Another host's process: `lead` respects it, `adopt` is a person's word that it is gone.
    of_claude(&stage, &json!({ "pid": 1, "pidSpace": "elsewhere", "claimedAt": 1 }));
    stage.phalanx(&["lead", "--detach"]).expect(4);
    stage.phalanx(&["adopt", "--detach"]).expect(0);
    stage.phalanx(&["spawn", "bob"]).expect(0);
    let mail = stage.phalanx(&["--json", "inbox"]).expect(0).stdout;
    assert_eq!(mail.matches("the answer is 42").count(), 1, "{mail}");
    let again = stage.phalanx(&["--json", "inbox"]).expect(0).stdout;
    assert!(!again.contains("the answer is 42"), "{again}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn cr_05_another_programs_living_lead_is_not_pushed_aside() {
    let stage = Stage::without_tmux();
    let mut program = stage.command("sleep").arg("300").spawn().expect("sleep");
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("host");
    let space = std::fs::read_link("/proc/self/ns/pid").expect("namespace");
    let space = format!("{}#{}", host.trim(), space.display());
    of_claude(&stage, &json!({ "pid": program.id(), "pidSpace": space, "claimedAt": 1 }));
    stage.phalanx(&["adopt", "--detach"]).expect(4);
    program.kill().expect("killed");
    program.wait().expect("reaped");
    stage.phalanx(&["adopt", "--detach"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sd_12_a_lead_detaches_stops_or_refuses_as_it_was_told() {
    let stage = Stage::without_tmux();
    for signal in ["INT", "HUP"] {
        orphaned(&stage);
        let lead = stage.start(&["--json", "lead", "--on-exit", "detach"]);
        wait_for("the lead", || lead_of(&stage));
        lead.signal(signal);
        assert_eq!(lead.end().expect(0).json(), json!({ "team_name": "demo", "lead_pid": null }));
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        assert_eq!((&status["lead"], status["members"].as_array().map(Vec::len)), (&json!(null), Some(1)));

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
        stage.assert_clean();
    }
}
