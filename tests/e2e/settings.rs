//! Settings of a team made without a manifest: read from a file, changed, shown, and applied by a
//! running lead.

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

fn team() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage
}

fn settings(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "team", "show"]).expect(0).json()["settings"].clone()
}

#[test]
fn settings_are_changed_shown_and_journaled() {
    let stage = team();
    let pairs = [
        "max_members",
        "12",
        "followup_interval_minutes",
        "0.5",
        "notify",
        r#"["sh", "-c", "true"]"#,
    ];
    let more =
        ["env.deny", r#"["AWS_*"]"#, "role.scout.prompt", "Look first", "finish", "tasks-done"];
    let told = stage.phalanx(&[&["team", "set"], &pairs[..], &more].concat()).expect(0);
    assert!(
        told.stdout.starts_with("team demo: max_members = 12\nteam demo: followup_"),
        "{told:?}"
    );
    let now = settings(&stage);
    let of_team = &now["team"];
    assert_eq!(
        (&of_team["max_members"], &of_team["followup_max_reminders"]),
        (&12.into(), &3.into())
    );
    assert_eq!(
        (&of_team["notify"], &of_team["finish"]),
        (&json!(["sh", "-c", "true"]), &"tasks-done".into())
    );
    assert_eq!(now["role"]["scout"]["prompt"], "Look first");
    assert_eq!(now["env"]["deny"], json!(["AWS_*"]));
    let shown = stage.phalanx(&["team", "show"]).expect(0).stdout;
    assert!(
        shown.contains("max_members") && !shown.contains("max_depth"),
        "only what differs: {shown}"
    );
    let listed = stage.phalanx(&["team", "set"]).expect(0).stdout;
    assert!(listed.contains("max_depth") && listed.contains("role.scout.prompt"), "{listed}");
    let changed = stage
        .journal("demo")
        .into_iter()
        .find(|e| e["event"] == "settings_changed")
        .expect("an event");
    assert_eq!(
        (&changed["detail"]["by"], &changed["detail"]["keys"][0]),
        (&"team-lead".into(), &"max_members".into())
    );
    let unset = [
        "--unset",
        "followup_interval_minutes",
        "--unset",
        "followup_max_reminders",
        "--unset",
        "escalation_mode",
    ];
    stage.phalanx(&[&["team", "set"], &unset[..], &["--unset", "role.scout"]].concat()).expect(0);
    assert_eq!(
        (settings(&stage)["team"].get("escalation_mode"), settings(&stage).get("role")),
        (None, None)
    );
    stage.phalanx(&["spawn", "ada", "--role", "scout"]).expect(2);
}

#[test]
fn invalid_setting_is_refused_without_effect() {
    let stage = team();
    let before = settings(&stage);
    let refused = |args: &[&str], code: i32, said: &str| {
        let run = stage.phalanx(&[&["team", "set"], args].concat()).expect(code);
        assert!(run.stderr.contains(said), "{said}: {run:?}");
        assert_eq!(settings(&stage), before, "{args:?}");
    };
    refused(
        &["finish", "tasks-done", "max_member", "3"],
        2,
        "unknown key `max_member` in [team]; did you mean `max_members`?",
    );
    refused(
        &["max_depth", "2", "max_members", "0"],
        2,
        "`max_members` in [team] must be at least 1",
    );
    refused(
        &["followup_max_reminders", "3"],
        2,
        "has no effect without `followup_interval_minutes`",
    );
    refused(&["notify", "beep"], 2, "must be a list of strings");
    refused(&["max_members=3"], 2, "hint: write it as `phalanx team set max_members 3`");
    refused(&["name", "other"], 2, "`name` of a team is fixed when it is made");
    refused(&["defaults.model", "m"], 2, "only matters in a manifest");
    refused(&["a b", "1"], 2, "`a b` is not a key");
    refused(&["--unset", "role.scout"], 2, "`role.scout` is not set");
    refused(&["member.dev.model", "m"], 2, "hint: give it `scale`");
    refused(&["member.dev.scale", "{ min = 3, max = 2 }"], 2, "less than `min`");
    refused(&["layout", "x\u{1b}[31m"], 2, "unknown layout");
}

#[test]
fn settings_file_is_validated_like_a_manifest() {
    let stage = Stage::without_tmux();
    let text = "[team]\ndescription = \"from the file\"\nmax_members = 4\nlayout = \"windows\"\n[rules]\ndeny = [\"Bash(rm:*)\"]\n\
        [defaults]\nmodel = \"m\"\n[[member]]\nname = \"dev\"\nprofile = \"codex\"\nscale = { max = 2 }\n";
    let good = stage.file("good.toml", text);
    let bad = stage.file("bad.toml", "[team]\nmax_member = 4\n");
    let named =
        stage.file("named.toml", "[team]\nname = \"x\"\n[[task]]\nkey = \"a\"\nsubject = \"b\"\n");
    let refused = stage.phalanx(&["team", "create", "demo", "--settings", &bad]).expect(2);
    assert!(
        refused.stderr.contains(
            "bad.toml:2:1: unknown key `max_member` in [team]\nhint: did you mean `max_members`?"
        ),
        "{refused:?}"
    );
    let refused = stage.phalanx(&["team", "create", "demo", "--settings", &named]).expect(2);
    assert!(refused.stderr.contains("named.toml:2:1: unknown key `name`"), "{refused:?}");
    stage.phalanx(&["team", "create", "demo", "--settings", "/no/such/file"]).expect(2);
    assert_eq!(stage.phalanx(&["--json", "team", "list"]).expect(0).json(), json!([]));
    stage.phalanx(&["team", "create", "demo", "--settings", &good]).expect(0);
    let shown = stage.phalanx(&["--json", "team", "show"]).expect(0).json();
    assert_eq!(shown["description"], "from the file");
    let settings = &shown["settings"];
    assert_eq!(
        (&settings["team"]["max_members"], &settings["team"]["layout"]),
        (&4.into(), &"windows".into())
    );
    assert_eq!(settings["team"]["finish"], "manual");
    assert_eq!(settings["rules"]["deny"], json!(["Bash(rm:*)"]));
    let dev = &settings["member"]["dev"];
    assert_eq!((&dev["scale"]["max"], &dev["model"]), (&2.into(), &"m".into()));
    assert_eq!(dev["cwd"], stage.at("work").to_string_lossy().as_ref());
}

#[test]
fn running_lead_applies_changed_scale_and_finish() {
    let stage = team();
    stage.phalanx(&["task", "create", "T", "--role", "dev", "--", "true"]).expect(0);
    let lead = stage.start(&["lead"]);
    wait_for("the lead", || {
        stage.journal("demo").into_iter().find(|e| e["event"] == "lead_started")
    });
    let scaled =
        ["role.dev.description", "x", "member.dev.role", "dev", "member.dev.scale", "{ max = 2 }"];
    stage.phalanx(&[&["team", "set", "backend", "pty"], &scaled[..]].concat()).expect(0);
    stage.wait_event("demo", "task_completed", "1");
    stage.phalanx(&["team", "set", "finish", "tasks-done"]).expect(0);
    lead.end().expect(0);
    let made: Vec<Value> =
        stage.journal("demo").into_iter().filter(|e| e["event"] == "member_ready").collect();
    assert!(
        made.iter().all(|e| e["member"].as_str().is_some_and(|name| name.starts_with("dev-"))),
        "{made:?}"
    );
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

#[test]
fn team_without_tasks_is_not_ended_by_its_new_finish() {
    let stage = team();
    let lead = stage.start(&["lead"]);
    wait_for("the lead", || {
        stage.journal("demo").into_iter().find(|e| e["event"] == "lead_started")
    });
    let staff = ["backend", "pty", "role.dev.description", "x", "member.dev.role", "dev"];
    let scale = ["member.dev.scale", "{ min = 1, max = 1 }", "finish", "tasks-done"];
    stage.phalanx(&[&["team", "set"], &staff[..], &scale[..]].concat()).expect(0);
    // The lead starts it by the same change.
    stage.wait_event("demo", "member_ready", "dev-1");
    stage.phalanx(&["task", "create", "T", "--", "true"]).expect(0);
    stage.wait_event("demo", "task_completed", "1");
    lead.end().expect(0);
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// The setting is changed between the lead's first read of it and its first look at the team.
#[test]
fn finish_that_changes_while_the_lead_starts_applies() {
    let stage = team();
    let lead = stage.start_and_stop_at("lead.announced", &["lead"]);
    stage.phalanx(&["team", "set", "finish", "tasks-done"]).expect(0);
    lead.signal("CONT");
    stage.phalanx(&["spawn", "ada", "--backend", "pty"]).expect(0);
    stage.phalanx(&["task", "create", "T", "--", "true"]).expect(0);
    lead.end().expect(0);
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

#[test]
fn running_member_gets_a_restart_policy_from_settings() {
    let stage = team();
    let lead = stage.start(&["lead"]);
    stage
        .phalanx(&["spawn", "log", "--backend", "pty", "--env", "MARK=1", "--", "sleep", "1000"])
        .expect(0);
    stage.phalanx(&["team", "set", "member.log.restart", "on-failure"]).expect(0);
    let log = &settings(&stage)["member"]["log"];
    assert_eq!((&log["run"], &log["env"]["MARK"]), (&json!(["sleep", "1000"]), &"1".into()));
    let pid = || {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        status["members"].as_array()?.iter().find(|m| m["name"] == "log")?["pid"].as_i64()
    };
    let first = pid().expect("a process");
    stage.command("kill").args(["-9", &first.to_string()]).status().expect("kill");
    wait_for("another run", || pid().filter(|next| *next != first));
    stage.phalanx(&["team", "set", "--unset", "member.log"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    lead.end().expect(0);
    stage.assert_clean();
}

#[test]
fn changed_limits_apply_immediately() {
    let stage = team();
    stage.phalanx(&["spawn", "ada", "--backend", "pty"]).expect(0);
    stage.phalanx(&["team", "set", "max_members", "1", "max_per_link", "1"]).expect(0);
    let full = stage.phalanx(&["spawn", "ben"]).expect(4);
    assert!(
        full.stderr.contains(
            "hint: shut a member down first, or raise it: `phalanx team set max_members N`"
        ),
        "{full:?}"
    );
    stage.phalanx(&["task", "create", "one", "--owner", "ada"]).expect(0);
    let full = stage.phalanx(&["task", "create", "two", "--owner", "ada"]).expect(4);
    assert!(full.stderr.contains("`phalanx team set max_per_link N`"), "{full:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
}
