//! Bad input is refused with the rule and a remedy, and leaves nothing behind.

use std::fs;

use serde_json::json;

use crate::harness::Stage;

#[test]
fn sec_02_sec_08_hostile_names_are_refused_without_side_effects() {
    let stage = Stage::new();
    let long = "a".repeat(65);
    let canary = stage.at("canary");
    let run_it = format!("#(touch {})", canary.display());
    let names = [
        "a/b",
        "..",
        "a b",
        "a'b",
        "a\"b",
        &run_it,
        "$(touch x)",
        "a;b",
        "a;",
        "a\nb",
        "a\u{1b}[2J",
        &long,
        "",
    ];
    for name in names {
        let run = stage.phalanx(&["--json", "team", "create", "--", name]).expect(2);
        assert_eq!(run.json()["error"]["kind"], json!("usage"), "{name:?}");
        assert!(!run.stderr.contains('\u{1b}'), "{run:?}");
    }
    stage.phalanx(&["team", "create", "-x"]).expect(2);
    stage.phalanx(&["team", "create", "ok"]).expect(0);
    for name in names {
        stage.phalanx(&["spawn", "--backend", "pty", "--", name]).expect(2);
    }
    for name in ["team-lead", "lead", "System", "-x"] {
        stage.phalanx(&["spawn", name]).expect(2);
    }
    let members = fs::read_dir(stage.root().join("teams/ok/phalanx/members")).expect("dir").count();
    assert_eq!(members, 0);
    assert!(!canary.exists());
    assert!(stage.panes().is_empty());
}

#[test]
fn taken_name_is_refused_whatever_its_case() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "Alpha"]).expect(0);
    let run = stage.phalanx(&["--json", "team", "create", "ALPHA"]).expect(4);
    assert_eq!(run.json()["error"]["kind"], json!("refused"));
    assert!(run.stderr.contains("hint:"), "{run:?}");
    let unique = stage.phalanx(&["--json", "team", "create", "alpha", "--unique"]).expect(0).json();
    assert_eq!(unique["team_name"], json!("alpha-2"));
    stage.phalanx(&["spawn", "Bob", "-t", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "bOB", "-t", "alpha"]).expect(4);
    stage.phalanx(&["down", "-t", "alpha"]).expect(0);
    stage.phalanx(&["team", "delete", "-t", "alpha-2"]).expect(0);
    stage.assert_clean();
}

#[test]
fn manifest_error_names_file_line_column_and_nearest_key() {
    let stage = Stage::new();
    let manifest = stage.file("bad.toml", "[team]\nname = \"x\"\n\n[[member]]\nnaem = \"ada\"\n");
    let run = stage.phalanx(&["up", &manifest]).expect(2);
    assert!(run.stderr.contains("bad.toml:5:1"), "{run:?}");
    assert!(run.stderr.contains("`name`"), "{run:?}");
    stage.phalanx(&["up", "no-such-file.toml"]).expect(2);
    assert!(!stage.root().join("teams/x").exists());
}

#[test]
fn msg_05_message_to_unknown_member_lists_the_roster() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "bob"]).expect(0);
    for to in ["bobb", "BO", "nobody"] {
        let run = stage.phalanx(&["--json", "send", to, "hello"]).expect(3);
        assert_eq!(run.json()["error"]["kind"], json!("not_found"));
        assert!(run.stderr.contains("bob") && run.stderr.contains("team-lead"), "{run:?}");
        assert!(!stage.root().join(format!("teams/alpha/inboxes/{to}.json")).exists());
    }
    stage.phalanx(&["send", "bob", "hello", "-t", "beta"]).expect(3);
    stage.phalanx(&["down"]).expect(0);
}

#[test]
fn uncreatable_config_root_exits_6() {
    let stage = Stage::new();
    let file = stage.file("file", "not a directory");
    let run = stage
        .phalanx(&["--config-dir", &format!("{file}/root"), "team", "create", "alpha"])
        .expect(6);
    assert!(run.stderr.contains(&file), "{run:?}");
}

#[test]
fn sp_07_explicit_backend_never_falls_back() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let run = stage.phalanx(&["--json", "spawn", "bob", "--backend", "tmux"]).expect(6);
    assert_eq!(run.json()["error"]["kind"], json!("backend"));
    assert!(run.stderr.contains("apt-get install tmux"), "{run:?}");
    let members = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(members["members"], json!([]));
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn usage_errors_exit_2_with_and_without_json() {
    let stage = Stage::new();
    assert!(stage.phalanx(&["frobnicate"]).expect(2).stderr.contains("frobnicate"));
    assert_eq!(
        stage.phalanx(&["--json", "send"]).expect(2).json()["error"]["kind"],
        json!("usage")
    );
    stage.phalanx(&["status"]).expect(3);
    stage.phalanx(&["status", "-t", "nope"]).expect(3);
}
