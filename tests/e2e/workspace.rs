//! The workspace of a team: files by conversation, their writers and tasks, limits and hostile
//! paths.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

fn team() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage
}

fn dir(stage: &Stage) -> PathBuf {
    stage.root().join("teams/demo/phalanx/workspace/default")
}

fn listed(stage: &Stage) -> Value {
    stage.phalanx(&["--json", "workspace", "list"]).expect(0).json()
}

#[test]
fn written_file_is_listed_with_its_writer_and_task() {
    let stage = team();
    stage.add_native("demo", &["ann", "bob"]);
    let source = stage.file("report.md", "all is well\n");
    stage.phalanx(&["task", "create", "Report"]).expect(0);
    stage.phalanx(&["--as", "ann", "task", "claim", "1"]).expect(0);
    let write = ["--as", "ann", "workspace", "write", "out/report.md", &source];
    let wrote = stage.phalanx(&write).expect(0);
    assert_eq!(wrote.stdout, "wrote out/report.md (12 bytes), linked to task #1\n");
    assert_eq!(stage.phalanx(&["workspace", "read", "out/report.md"]).stdout, "all is well\n");
    let list = listed(&stage);
    let file = &list["files"][0];
    assert_eq!((&file["by"], &file["tasks"]), (&json!("ann"), &json!(["1"])), "{list}");
    assert_eq!(file["path"], "default/out/report.md");
    let page = stage.phalanx(&["task", "get", "1"]).expect(0).stdout;
    assert!(page.contains("files\n  default/out/report.md in the workspace (12 bytes)"), "{page}");
    let page = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    assert_eq!(page["files"][0]["path"], file["path"], "{page}");
    let path = stage.phalanx(&["workspace", "path", "out/report.md"]).expect(0);
    assert_eq!(path.stdout.trim(), dir(&stage).join("out/report.md").to_string_lossy());
    let mode = |path: PathBuf| fs::metadata(path).expect("exists").permissions().mode() & 0o777;
    assert_eq!((mode(dir(&stage)), mode(dir(&stage).join("out/report.md"))), (0o700, 0o600));
    let read =
        |chat: &[&str]| stage.phalanx(&[&["workspace", "read", "out/report.md"], chat].concat());
    let missing = read(&["--chat", "other"]).expect(3);
    assert!(missing.stderr.contains("phalanx workspace list"), "{missing:?}");
    stage.phalanx(&["team", "set", "workspace.scope", "shared"]).expect(0);
    let all = listed(&stage);
    assert_eq!(
        (&all["chat"], &all["files"][0]["name"]),
        (&Value::Null, &json!("default/out/report.md"))
    );
}

#[test]
fn only_the_writer_and_the_lead_delete_a_file() {
    let stage = team();
    stage.add_native("demo", &["ann", "bob"]);
    let source = stage.file("x", "x");
    for name in ["a", "b"] {
        stage.phalanx(&["--as", "ann", "workspace", "write", name, &source]).expect(0);
    }
    let refused = stage.phalanx(&["--as", "bob", "workspace", "delete", "a"]).expect(4);
    assert!(refused.stderr.contains("`bob` may not delete files of `ann`"), "{refused:?}");
    stage.phalanx(&["--as", "ann", "workspace", "delete", "a"]).expect(0);
    stage.phalanx(&["workspace", "delete", "b"]).expect(0);
    stage.phalanx(&["workspace", "delete", "b"]).expect(3);
    fs::write(dir(&stage).join("direct"), "by a program").expect("a file");
    stage.phalanx(&["--as", "ann", "workspace", "delete", "direct"]).expect(4);
    stage.phalanx(&["workspace", "delete", "direct"]).expect(0);
    assert_eq!(listed(&stage)["files"], json!([]));
}

#[test]
fn limits_refuse_writes_and_report_files_of_programs() {
    let stage = team();
    let limits =
        ["workspace.max_file_mb", "1", "workspace.max_files", "2", "workspace.quota_mb", "1"];
    stage.phalanx(&[&["team", "set"], &limits[..]].concat()).expect(0);
    let (small, large) = (stage.file("small", "x"), stage.file("large", &"x".repeat(1 << 20)));
    let write = |name: &str, source: &str| stage.phalanx(&["workspace", "write", name, source]);
    let larger = stage.file("larger", &"x".repeat((1 << 20) + 1));
    let refused = write("a", &larger).expect(4);
    assert!(refused.stderr.contains("`a` is larger than 1 MB"), "{refused:?}");
    write("a", &small).expect(0);
    let full = write("b", &large).expect(4);
    assert!(full.stderr.contains("phalanx team set workspace.quota_mb N"), "{full:?}");
    write("a", &large).expect(0);
    write("a", &small).expect(0);
    write("b", &small).expect(0);
    let many = write("c", &small).expect(4);
    assert!(many.stderr.contains("maximum of 2 files"), "{many:?}");
    fs::write(dir(&stage).join("c"), "x".repeat((1 << 20) + 1)).expect("a file");
    let problems = listed(&stage)["problems"].to_string();
    for problem in ["c is larger than 1 MB", "3 files; the limit is 2", "the limit is 1 MB"] {
        assert!(problems.contains(problem), "{problem}: {problems}");
    }
    assert!(
        stage.phalanx(&["workspace", "list"]).expect(0).stderr.contains("warning: c is larger")
    );
}

#[test]
fn hostile_paths_are_refused_without_effect() {
    let stage = team();
    let source = stage.file("x", "x");
    stage.phalanx(&["workspace", "path"]).expect(0);
    let secret = stage.at("secret");
    fs::write(&secret, "secret").expect("a file");
    symlink(&secret, dir(&stage).join("link")).expect("a link");
    symlink(stage.at(""), dir(&stage).join("up")).expect("a link");
    let fifo = dir(&stage).join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    let long = "x".repeat(2000);
    let secret_path = secret.to_string_lossy().into_owned();
    let hostile = [
        ("../secret", 2),
        ("a/../../secret", 2),
        (&secret_path, 2),
        ("", 2),
        (".", 2),
        ("a//b", 2),
        ("a\nb", 2),
        ("\u{1b}[2J", 2),
        (&long, 2),
        ("link", 4),
        ("up/secret", 4),
        ("fifo", 4),
    ];
    for (name, code) in hostile {
        let read = stage.phalanx(&["workspace", "read", name]).expect(code);
        assert!(!read.stdout.contains("secret") && !read.stderr.contains('\u{1b}'), "{read:?}");
        stage.phalanx(&["workspace", "write", name, &source]).expect(code);
    }
    for name in ["../secret", "up/secret"] {
        assert_ne!(stage.phalanx(&["workspace", "delete", name]).code, 0, "{name}");
    }
    for chat in ["..", "a/b", ".x", "", "a b"] {
        stage.phalanx(&["workspace", "list", &format!("--chat={chat}")]).expect(2);
    }
    assert_eq!(fs::read_to_string(&secret).expect("still there"), "secret");
    assert_eq!(listed(&stage)["problems"].as_array().map(Vec::len), Some(3), "link, up, fifo");
}

#[test]
fn member_gets_directory_of_its_conversation_in_environment() {
    let stage = team();
    let seen = stage.at("work").join("seen");
    let script = format!(
        "echo made > \"$PHALANX_WORKSPACE/direct\"; echo \"$PHALANX_CHAT $PHALANX_WORKSPACE\" > {0}.new; \
         echo done > {0}; exec sleep 600",
        seen.display()
    );
    let mut spawn = vec!["spawn", "ann", "--backend", "pty", "--scope", "user=u,chat=-100:7"];
    spawn.extend(["--", "bash", "-c", &script]);
    stage.phalanx(&spawn).expect(0);
    wait_for("the member to write", || seen.exists().then_some(()));
    let said = fs::read_to_string(seen.with_extension("new")).expect("written before");
    let dir = stage.root().join("teams/demo/phalanx/workspace/-100:7");
    assert_eq!(said.trim(), format!("-100:7 {}", dir.display()));
    let list = stage.phalanx(&["--json", "workspace", "list", "--chat", "-100:7"]).expect(0).json();
    assert_eq!(list["files"][0]["name"], "direct");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Files that programs write are linked to the task that works in their directory, also while
/// another task is in progress.
#[test]
fn file_of_a_program_is_linked_by_its_directory() {
    let stage = team();
    for name in ["ann", "ben"] {
        stage.phalanx(&["spawn", name, "--backend", "pty"]).expect(0);
    }
    for (chat, other) in [("x", "y"), ("y", "x")] {
        let script = format!(
            "echo {chat} > \"$PHALANX_WORKSPACE/out\"; touch {chat}; until [ -e {other} ]; do sleep 0.05; done"
        );
        let scope = format!("chat={chat}");
        let create = ["task", "create", chat, "--scope", &scope, "--", "bash", "-c", &script];
        stage.phalanx(&create).expect(0);
    }
    for id in ["1", "2"] {
        stage.wait_event("demo", "task_completed", id);
    }
    for (id, path) in [("1", "x/out"), ("2", "y/out")] {
        let page = stage.phalanx(&["--json", "task", "get", id]).expect(0).json();
        let files: Vec<&Value> = page["files"].as_array().expect("files").iter().collect();
        assert_eq!((files.len(), &files[0]["path"]), (1, &json!(path)), "{page}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
}
