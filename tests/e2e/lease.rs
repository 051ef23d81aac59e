//! The lease: a lead that another program records in the team file is respected while it may be
//! alive, and leftovers of dead leads do not block a name.

use std::path::PathBuf;
use std::process::Child;

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

fn team_file(stage: &Stage) -> PathBuf {
    stage.root().join("teams/demo/config.json")
}

fn read(stage: &Stage) -> Value {
    serde_json::from_str(&std::fs::read_to_string(team_file(stage)).expect("team file"))
        .expect("json")
}

/// Records process `pid` as the lead in the team file, in the format of Claude Code 2.1.330.
fn claim(stage: &Stage, pid: u32, space: &str, start: Option<&str>) {
    let mut file = read(stage);
    file["leadProcess"] =
        json!({ "pid": pid, "pidSpace": space, "claimedAt": 1_795_214_628_804_u64 });
    if let Some(start) = start {
        file["leadProcess"]["procStart"] = json!(start);
    }
    std::fs::write(team_file(stage), serde_json::to_string_pretty(&file).expect("json"))
        .expect("written");
}

pub fn space() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").expect("host");
    let namespace = std::fs::read_link("/proc/self/ns/pid").expect("namespace");
    format!("{}#{}", host.trim(), namespace.display())
}

fn start_of(pid: u32) -> String {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19)).expect("field 22").to_owned()
}

fn another_program(stage: &Stage) -> Child {
    stage.command("sleep").arg("300").spawn().expect("sleep")
}

fn end(mut program: Child) {
    program.kill().expect("killed");
    program.wait().expect("reaped");
}

#[test]
fn lead_of_another_program_is_respected_until_it_exits() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let program = another_program(&stage);
    let pid = program.id().to_string();
    for start in [Some(start_of(program.id())), None] {
        claim(&stage, program.id(), &space(), start.as_deref());
        for verb in [&["lead", "--detach"][..], &["team", "delete"]] {
            let run = stage.phalanx(&[&["--json"], verb].concat()).expect(4);
            assert!(run.stderr.contains(&pid), "{run:?}");
        }
    }
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["lead"]["pid"], json!(program.id()));
    end(program);
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["lead"], json!(null));
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

#[test]
fn lead_pid_of_another_host_or_process_is_not_trusted() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let program = another_program(&stage);
    // From this host, the process cannot be checked.
    claim(&stage, program.id(), "elsewhere", None);
    let run = stage.phalanx(&["lead", "--detach"]).expect(4);
    assert!(
        run.stderr.contains("is not visible from this host") && run.stderr.contains("adopt"),
        "{run:?}"
    );
    // The pid is reused: the lead was another process.
    claim(&stage, program.id(), &space(), Some("1"));
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    end(program);
    stage.assert_clean();
}

#[test]
fn lead_records_its_process_in_the_team_file() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let lead = stage.phalanx(&["--json", "lead", "--detach"]).expect(0).json();
    let pid = u32::try_from(lead["lead_pid"].as_u64().expect("pid")).expect("pid");
    let claimed = wait_for("the lead says so", || read(&stage).get("leadProcess").cloned());
    assert_eq!(claimed["pid"], json!(pid));
    assert_eq!(claimed["pidSpace"], json!(space()));
    assert_eq!(claimed["procStart"], json!(start_of(pid)));
    assert!(claimed["claimedAt"].is_u64());
    let keys: Vec<&String> = claimed.as_object().expect("object").keys().collect();
    assert_eq!(keys, ["pid", "pidSpace", "claimedAt", "procStart"]);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// The kernel releases the lease of a killed lead a moment before its process is seen to be gone.
#[test]
fn cr_01_dying_lead_is_not_taken_for_another_program() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let dying = another_program(&stage);
    let start = start_of(dying.id());
    let record = stage.root().join("teams/demo/phalanx/lead.json");
    for verb in [&["lead", "--detach"][..], &["adopt", "--detach"], &["team", "delete"]] {
        let lead = stage.start(&["lead"]);
        wait_for("it says that it leads", || read(&stage).get("leadProcess").cloned());
        lead.signal("KILL");
        drop(lead);
        // Stands in for the dead lead: a process that is still alive.
        let mut said: Value =
            serde_json::from_slice(&std::fs::read(&record).expect("record")).expect("json");
        said["process"] =
            json!({ "pid": dying.id(), "start": start.parse::<u64>().expect("ticks") });
        std::fs::write(&record, said.to_string()).expect("written");
        claim(&stage, dying.id(), &space(), Some(&start));
        let run = stage.phalanx(&[&["--json"], verb].concat()).expect(0);
        if let Some(pid) = run.json().get("lead_pid") {
            wait_for("the new one says it", || {
                (read(&stage)["leadProcess"]["pid"] == *pid).then_some(())
            });
            stage.phalanx(&["down"]).expect(0);
            stage.phalanx(&["team", "create", "demo"]).expect(0);
        }
    }
    end(dying);
    stage.assert_clean();
}

#[test]
fn sd_04_creating_an_existing_leaderless_team_suggests_remedies() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let run = stage.phalanx(&["team", "create", "demo"]).expect(4);
    assert!(run.stderr.contains("adopt") && run.stderr.contains("team delete"), "{run:?}");
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let run = stage.phalanx(&["team", "create", "demo"]).expect(4);
    assert!(!run.stderr.contains("adopt") && run.stderr.contains("down -t demo"), "{run:?}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sd_04_interrupted_deletion_is_finished_by_the_next() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["task", "create", "old work"]).expect(0);
    let teams = stage.root().join("teams");
    let aside = teams.join(".deleted-demo@5");
    std::fs::rename(teams.join("demo"), aside).expect("cut short here");
    stage.phalanx(&["team", "delete", "-t", "demo"]).expect(0);
    stage.assert_clean();
    stage.phalanx(&["team", "delete", "-t", "demo"]).expect(3);
}
