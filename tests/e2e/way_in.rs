//! First contact: bare `phalanx`, `init`, and verbs that users expect from other tools.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{NATIVE, Stage, wait_for};

#[test]
fn bare_phalanx_shows_next_steps_and_teams() {
    let stage = Stage::without_tmux();
    let page = stage.phalanx(&[]).expect(0);
    assert!(page.stdout.contains("phalanx init") && page.stderr.is_empty(), "{page:?}");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ann"]).expect(0);
    let page = stage.phalanx(&[]).expect(0);
    let next = ["phalanx status -t demo", "phalanx attach -t demo", "phalanx down -t demo"];
    for words in next {
        assert!(page.stdout.contains(words), "{page:?}");
    }
    assert!(page.stdout.lines().all(|line| line.chars().count() < 80), "{page:?}");
    let document = stage.phalanx(&["--json"]).expect(0).json();
    assert_eq!(document["next"], json!(next));
    assert_eq!(
        document["teams"][0],
        json!({ "name": "demo", "is_foreign": false, "members": 1, "lead": null,
                "stopped": [], "needs": [], "problem": null })
    );
    stage.phalanx(&["down"]).expect(0);
}

/// SP-20: where no team is, `spawn` makes one that is named after the directory, and leads it; a
/// start that fails leaves none behind.
#[test]
fn sp_20_spawn_makes_and_leads_the_team_that_is_missing() {
    let stage = Stage::without_tmux();
    let teams = || stage.phalanx(&["--json", "team", "list"]).expect(0).json();
    stage.phalanx(&["spawn", "ann", "--dry-run", "--", "sleep", "300"]).expect(3);
    stage.phalanx(&["spawn", "ann", "-t", "other", "--", "sleep", "300"]).expect(3);
    stage.phalanx(&["spawn", "ann", "--", "no-such-program"]).expect(1);
    assert_eq!(teams(), json!([]));

    let run = stage.phalanx(&["spawn", "ann", "ben", "--", "sleep", "300"]).expect(0);
    assert!(run.stderr.contains("made team work, which process "), "{run:?}");
    let lead = |status: &serde_json::Value| status["lead"]["pid"].clone();
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["members"].as_array().map(Vec::len), Some(2), "{status}");
    assert!(lead(&status).is_i64(), "{status}");
    let run = stage.phalanx(&["spawn", "cid", "--", "sleep", "300"]).expect(0);
    assert!(!run.stderr.contains("made team"), "{run:?}");
    let later = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!((lead(&later), teams().as_array().map(Vec::len)), (lead(&status), Some(1)));
    stage.phalanx(&["down", "--force"]).expect(0);

    stage.phalanx(&["spawn", "ann", "--no-lead", "--", "sleep", "300"]).expect(0);
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(status["lead"], json!(null), "{status}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn bare_phalanx_works_with_a_broken_team_or_no_home() {
    let stage = Stage::without_tmux();
    let dir = stage.root().join("teams/broken");
    fs::create_dir_all(&dir).expect("dir");
    fs::write(dir.join("config.json"), "{ torn").expect("file");
    let page = stage.phalanx(&[]).expect(0);
    assert!(page.stdout.contains("broken") && page.stdout.contains("phalanx doctor"), "{page:?}");
    let mut command = stage.command(crate::harness::binary());
    command.env_remove("PHALANX_CONFIG_DIR").env("HOME", stage.at("no-home"));
    assert!(command.output().expect("phalanx runs").status.success());
}

#[test]
fn init_writes_a_runnable_manifest_and_never_overwrites_it() {
    let stage = Stage::new();
    let work = stage.at("work/My Site!");
    fs::create_dir(&work).expect("dir");
    let phalanx = |args: &[&str]| {
        let mut command = stage.command(crate::harness::binary());
        crate::harness::Run::from(
            command.current_dir(&work).args(args).output().expect("phalanx runs"),
        )
    };
    let made = phalanx(&["--json", "init"]).expect(0).json();
    assert_eq!(made["file"], json!("team.toml"));
    assert_eq!(made["team_name"], json!("my-site"));
    assert_eq!(made["next"], json!("phalanx up team.toml"));
    let written = fs::read_to_string(work.join("team.toml")).expect("a manifest");
    let again = phalanx(&["--json", "init"]).expect(4);
    assert!(
        again.json()["error"]["hint"]
            .as_str()
            .is_some_and(|hint| hint.contains("phalanx up team.toml"))
    );
    assert_eq!(fs::read_to_string(work.join("team.toml")).expect("kept"), written);
    phalanx(&["init", "other.toml"]).expect(0);
    let page = phalanx(&[]).expect(0);
    assert!(page.stdout.contains("phalanx up team.toml"), "{page:?}");
    let report = phalanx(&["--json", "up", "team.toml", "--backend", "pty"]).expect(0).json();
    assert_eq!(
        (report["team"].as_str(), report["success"].as_bool()),
        (Some("my-site"), Some(true))
    );
    stage.assert_clean();
}

#[test]
fn run_ls_ps_stop_kill_and_rm_do_what_users_expect() {
    let stage = Stage::without_tmux();
    let manifest =
        stage.file("t.toml", "[team]\nname = \"t\"\n[[task]]\nkey = \"a\"\nsubject = \"a\"\nrun = [\"true\"]\n[[member]]\nname = \"x\"\n");
    stage.phalanx(&["run", &manifest]).expect(0);
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ann"]).expect(0);
    stage.phalanx(&["spawn", "ben"]).expect(0);
    assert!(stage.phalanx(&["ls"]).expect(0).stdout.contains("demo"));
    assert!(stage.phalanx(&["ps"]).expect(0).stdout.contains("demo"));
    let stopped = stage.phalanx(&["--json", "stop", "ann"]).expect(0).json();
    assert_eq!(stopped[0]["outcome"], json!("closed"));
    let killed = stage.phalanx(&["--json", "kill", "ben"]).expect(0).json();
    assert_eq!(killed[0]["outcome"], json!("forced"));
    stage.phalanx(&["restart", "ann"]).expect(0);
    stage.phalanx(&["rm", "demo"]).expect(4);
    let removed = stage.phalanx(&["--json", "rm", "demo", "--force"]).expect(0).json();
    assert_eq!(removed["team_name"], json!("demo"));
    let version = stage.phalanx(&["--json", "version"]).expect(0).json();
    let shown = stage.phalanx(&["--version"]).expect(0).stdout;
    assert_eq!(
        shown.trim(),
        format!("phalanx {}", version["version"].as_str().expect("a version"))
    );
    assert_eq!(stage.phalanx(&["version"]).expect(0).stdout, shown);
    stage.assert_clean();
}

#[test]
fn restart_gives_a_member_a_new_process_with_the_same_command() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let before = stage.phalanx(&["--json", "spawn", "ann", "--", "sleep", "600"]).expect(0).json();
    let after = stage.phalanx(&["--json", "restart", "ann"]).expect(0).json();
    assert_ne!(after[0]["started"]["pid"], before["pid"]);
    let running = stage.processes();
    assert_eq!(running.iter().filter(|line| line.contains("sleep 600")).count(), 1, "{running:?}");
    stage.phalanx(&["restart", "nobody"]).expect(3);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn restart_skips_a_member_that_refuses_and_restarts_the_rest() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.profile("native", NATIVE);
    stage.phalanx(&["spawn", "ann", "--profile", "native", "--", "sleep", "300"]).expect(0);
    stage.phalanx(&["spawn", "ben"]).expect(0);
    let refuse = |names: &[&str]| {
        let earlier = stage.journal("demo").len();
        let run = stage.start(&[&["--json", "restart", "--deadline", "60"], names].concat());
        let id = wait_for("the request", || {
            let is_it =
                |event: &&Value| event["event"] == "shutdown_requested" && event["member"] == "ann";
            let id = stage.journal("demo")[earlier..].iter().find(is_it)?["detail"]["request_id"]
                .clone();
            id.as_str().map(str::to_owned)
        });
        let reason = ["answer", &id, "--reject", "--reason", "half of it is written"];
        stage.phalanx(&[&["--as", "ann"], &reason[..]].concat()).expect(0);
        run.end().expect(4)
    };
    let run = refuse(&["ann", "ben"]);
    let rows = run.json();
    assert_eq!((rows[0]["name"].as_str(), rows[1].as_str()), (Some("ben"), None), "{rows}");
    assert!(
        run.stderr.contains("`ann` still runs: half") && run.stderr.contains("restart --force ann"),
        "{run:?}"
    );
    assert_eq!(refuse(&["ann"]).json(), json!([]));
    stage.phalanx(&["restart", "ann", "--force"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn unknown_verb_suggests_the_nearest_ones() {
    let stage = Stage::without_tmux();
    let error = stage.phalanx(&["--json", "spwan"]).expect(2).json();
    assert_eq!(error["error"]["message"], json!("unknown command `spwan`"));
    assert_eq!(error["error"]["hint"], json!("did you mean `spawn` or `plan`?"));
}
