//! A restart, a resume or a rename that is killed anywhere leaves the member known, with its
//! session and its mail, and the next one brings it back (CR-20). So does an upgrade that removes
//! the phalanx that leads (CR-21).
#![cfg(debug_assertions)]

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

/// A program that gets the id of its session, and continues it.
const SESSIONS: &str = r#"about = "is told its session"
runs = "native"
reads_mail = true
[launch]
argv = [["sh", "-c", "exec sleep 300", "sh"], ["{new_session}"]]
prompt = "mailbox"
resume = [["sh", "-c", "exec sleep 300", "sh", "{resume}"]]
[ready]
when = "settled"
settle_ms = 100
"#;

/// A member that fails once there is a file `fail`, and that the lead starts again then.
const RESTARTED: &str = r#"[team]
name = "demo"
finish = "manual"
backend = "pty"
[[member]]
name = "ann"
profile = "shell"
restart = "on-failure"
run = ["sh", "-c", "echo run >>runs; until [ -e fail ]; do sleep 0.02; done; exit 3"]
"#;

/// The points of the end of a run, before it is started again.
const ENDS: [&str; 7] = [
    "shutdown.filed",
    "shutdown.asked",
    "stop.ended",
    "remove.ended",
    "remove.left",
    "remove.released",
    "remove.noticed",
];
/// The points of the start.
const STARTS: [&str; 8] = [
    "spawn.intended",
    "spawn.joined",
    "spawn.mailed",
    "spawn.kept",
    "spawn.placed",
    "spawn.noted",
    "spawn.proven",
    "spawn.accepted",
];

/// The states of a member that does not run, or not yet.
const NOT_UP: [&str; 7] =
    ["starting", "stopping", "restarting", "completed", "failed", "killed", "disappeared"];

fn record(stage: &Stage, name: &str) -> Value {
    let path = stage.root().join(format!("teams/demo/phalanx/members/{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).expect("a record")).expect("JSON")
}

fn dies(stage: &Stage, point: &str, args: &[&str]) {
    let mut command = stage.command(binary());
    command.env("PHALANX_FAILPOINT", point).args(args);
    let run = Run::from(command.output().expect("phalanx runs"));
    assert_eq!(run.code, -1, "{args:?} does not pass {point}: {run:?}");
}

/// Returns the names of the members that run, and of those that `resume` can start.
fn known(stage: &Stage) -> Vec<String> {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let all = ["members", "left"].map(|part| status[part].as_array().cloned().unwrap_or_default());
    all.concat().iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

fn is_up(stage: &Stage, name: &str) -> bool {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let members = status["members"].as_array().cloned().unwrap_or_default();
    let is_up = |state: &str| !NOT_UP.contains(&state);
    members.iter().any(|one| one["name"] == name && one["state"].as_str().is_some_and(is_up))
}

/// Returns the number of runs of a member that counts them.
fn runs(stage: &Stage) -> usize {
    fs::read_to_string(stage.at("work/runs")).unwrap_or_default().lines().count()
}

/// Returns true once this run of ann has ended, also if the next one begins.
fn has_ended(stage: &Stage, nth: usize) -> bool {
    let record = record(stage, "ann");
    record["exit"].is_object() || record["before"].is_object() || runs(stage) > nth
}

/// Creates a team with ann, who has a session and an unread message. Returns the session.
fn ann() -> (Stage, String) {
    let stage = Stage::without_tmux();
    stage.profile("sessions", SESSIONS);
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ann", "--profile", "sessions"]).expect(0);
    stage.phalanx(&["send", "ann", "a word for you"]).expect(0);
    let session = record(&stage, "ann")["session"].as_str().expect("a session").to_owned();
    (stage, session)
}

/// Asserts that `name` runs, in its session and with its message, and takes the team down.
fn assert_kept(stage: &Stage, name: &str, session: &str, about: &str) {
    wait_for(&format!("{about}: {name} runs"), || is_up(stage, name).then_some(()));
    assert_eq!(record(stage, name)["session"], json!(session), "{about}");
    let mail = stage.phalanx(&["--json", "inbox", name, "--all", "--peek"]).expect(0).stdout;
    assert_eq!(mail.matches("a word for you").count(), 1, "{about}: {mail}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Brings ann back after `about`: by `resume`, unless she still runs or runs again, which `restart`
/// must cope with.
fn bring_back(stage: &Stage, about: &str) {
    assert!(known(stage).contains(&"ann".to_owned()), "{about}: {:?}", known(stage));
    let resumed = stage.phalanx(&["resume", "ann"]);
    if resumed.code != 0 {
        assert!(resumed.stderr.contains("ann runs"), "{about}: {resumed:?}");
        stage.phalanx(&["restart", "ann", "--force"]).expect(0);
    }
}

#[test]
fn crash_cr_20_killed_restart_leaves_the_member_its_session_and_its_mail() {
    for point in ENDS.into_iter().chain(STARTS) {
        let (stage, session) = ann();
        let about = format!("restart killed at {point}");
        dies(&stage, point, &["restart", "ann", "--force"]);
        bring_back(&stage, &about);
        assert_kept(&stage, "ann", &session, &about);
    }
}

#[test]
fn crash_cr_20_killed_resume_leaves_the_member_its_session_and_its_mail() {
    for point in STARTS {
        let (stage, session) = ann();
        let about = format!("resume killed at {point}");
        stage.phalanx(&["shutdown", "ann", "--force"]).expect(0);
        stage.phalanx(&["spawn", "ann", "--profile", "sessions"]).expect(0);
        let newer = record(&stage, "ann")["session"].as_str().expect("a session").to_owned();
        assert_ne!(newer, session);
        let pid = record(&stage, "ann")["start"]["program"]["pid"].to_string();
        assert!(stage.command("kill").args(["-9", &pid]).status().expect("kill").success());
        wait_for("her end", || record(&stage, "ann").get("exit").is_some().then_some(()));
        // The second one finds the start that the first one has left.
        dies(&stage, point, &["resume", "ann"]);
        if !is_up(&stage, "ann") && point < "spawn.n" {
            dies(&stage, point, &["resume", "ann"]);
        }
        bring_back(&stage, &about);
        assert_kept(&stage, "ann", &newer, &about);
    }
}

/// The old name can be resumed until the new one runs; then the rename is completed by another one.
#[test]
fn crash_cr_20_killed_rename_leaves_the_member_its_session_and_its_mail() {
    let renames = ["rename.stopped", "rename.settled"];
    for point in ENDS.into_iter().chain(renames).chain(STARTS) {
        let (stage, session) = ann();
        let about = format!("rename killed at {point}");
        dies(&stage, point, &["rename", "ann", "parser", "--force"]);
        if ["spawn.noted", "spawn.proven", "spawn.accepted"].contains(&point) {
            stage.phalanx(&["rename", "ann", "parser", "--force"]).expect(0);
            assert_eq!(known(&stage), ["parser"], "{about}");
            assert_kept(&stage, "parser", &session, &about);
        } else {
            bring_back(&stage, &about);
            assert_kept(&stage, "ann", &session, &about);
        }
    }
}

/// CR-20: the next lead goes on with the policy `restart`.
#[test]
fn crash_cr_20_policy_restart_goes_on_after_a_lead_killed_in_a_start() {
    for point in STARTS {
        let stage = Stage::without_tmux();
        let manifest = stage.file("demo.toml", RESTARTED);
        stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
        let leads =
            || stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64();
        wait_for("the first run", || (runs(&stage) == 1).then_some(()));
        let first = wait_for("a lead", leads).to_string();
        assert!(stage.command("kill").args(["-9", &first]).status().expect("kill").success());
        wait_for("it is gone", || leads().is_none().then_some(()));
        let mut lead = stage.command(binary());
        let mut lead = lead.env("PHALANX_FAILPOINT", point).arg("lead").spawn().expect("a lead");
        wait_for("it leads", leads);
        fs::write(stage.at("work/fail"), "").expect("fail");
        wait_for("her end", || has_ended(&stage, 1).then_some(()));
        fs::remove_file(stage.at("work/fail")).expect("well again");
        wait_for(&format!("the lead dies at {point}"), || lead.try_wait().expect("wait"));
        assert!(known(&stage).contains(&"ann".to_owned()), "{point}: {:?}", known(&stage));
        stage.phalanx(&["adopt", "--detach"]).expect(0);
        wait_for(&format!("{point}: ann runs"), || {
            (runs(&stage) >= 2 && is_up(&stage, "ann")).then_some(())
        });
        stage.phalanx(&["down", "--force"]).expect(0);
        stage.assert_clean();
    }
}

/// CR-20: nothing is ended that cannot be started again.
#[test]
fn cr_20_restart_and_rename_are_refused_before_anything_is_ended() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.profile("sessions", SESSIONS);
    let agent = stage.at("agent");
    stage.script(&agent, "#!/bin/sh\nexec sleep 300\n");
    stage.phalanx(&["spawn", "ann", "--", &agent.display().to_string()]).expect(0);
    stage.phalanx(&["spawn", "ben", "--profile", "sessions"]).expect(0);
    fs::remove_file(&agent).expect("removed");
    fs::remove_file(stage.root().join("phalanx/profiles/sessions.toml")).expect("removed");
    let runs = |name: &str| record(&stage, name)["start"]["program"].clone();
    let before = ["ann", "ben"].map(runs);
    for (args, said) in [
        (&["restart", "--force", "ann"][..], "is not found"),
        (&["rename", "--force", "ann", "dev"], "is not found"),
        (&["restart", "--force", "ben"], "sessions"),
        (&["rename", "--force", "ben", "dev"], "sessions"),
    ] {
        let run = stage.phalanx(args);
        assert!(run.code > 0 && run.stderr.contains(said), "{args:?}: {run:?}");
        assert!(is_up(&stage, "ann") && is_up(&stage, "ben"), "{args:?}");
    }
    assert_eq!(["ann", "ben"].map(runs), before);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Puts a phalanx at this place.
fn install(at: &Path) {
    fs::create_dir_all(at.parent().expect("a directory")).expect("made");
    fs::hard_link(binary(), at).or_else(|_| fs::copy(binary(), at).map(drop)).expect("installed");
}

/// CR-21: a package manager puts a version beside the old one, moves the link to it, and removes
/// the old one. Without any version left, the lead gets one message.
#[test]
fn cr_21_member_is_restarted_after_its_lead_was_upgraded() {
    let mut stage = Stage::without_tmux();
    let (bin, link) = (stage.at("linked"), stage.at("linked/phalanx"));
    fs::create_dir(&bin).expect("made");
    stage.prepend_path(&bin);
    let link_to = |version: &str| {
        install(&stage.at(version).join("phalanx"));
        drop(fs::remove_file(&link));
        std::os::unix::fs::symlink(stage.at(version).join("phalanx"), &link).expect("linked");
    };
    link_to("v1");
    let manifest = stage.file("demo.toml", RESTARTED);
    let mut up = stage.command(&link.display().to_string());
    Run::from(up.args(["up", &manifest, "--detach"]).output().expect("it runs")).expect(0);
    let fail = |nth: usize| {
        wait_for("a run", || (runs(&stage) == nth).then_some(()));
        wait_for("ann is up", || is_up(&stage, "ann").then_some(()));
        fs::write(stage.at("work/fail"), "").expect("fail");
        wait_for("her end", || has_ended(&stage, nth).then_some(()));
        fs::remove_file(stage.at("work/fail")).expect("well again");
    };
    let said = || {
        let mail = ["--json", "inbox", "team-lead", "--all", "--peek"];
        stage.phalanx(&mail).expect(0).stdout.matches("no member can be started").count()
    };
    link_to("v2");
    fs::remove_dir_all(stage.at("v1")).expect("removed");
    fail(1);
    wait_for("the run by the new version", || (runs(&stage) == 2).then_some(()));
    assert_eq!(said(), 0);
    fs::remove_dir_all(stage.at("v2")).expect("removed");
    fail(2);
    wait_for("the message", || (said() > 0).then_some(()));
    link_to("v3");
    wait_for("the run by what was installed again", || (runs(&stage) == 3).then_some(()));
    assert_eq!(said(), 1);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}
