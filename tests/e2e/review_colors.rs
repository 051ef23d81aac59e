//! The process that finds the words of code for the colours of a review.

use std::fs::{self, File};
use std::process::Stdio;

use crate::harness::{Background, Stage, binary, wait_for};

/// Runs the process with a file of the stage as its input. Returns its exit code and output.
fn highlight(stage: &Stage, language: &str, name: &str) -> (Option<i32>, String) {
    let input = File::open(stage.at("work").join(name)).expect("a file");
    let mut command = stage.command(binary());
    let output = command.args(["highlight", language]).stdin(input).output().expect("it runs");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn words_of_code_are_printed_by_lines() {
    let stage = Stage::without_tmux();
    stage.file("a.rs", "fn f() {\n    \"é\" // x\n}\n");
    let words =
        "[[[0,2,\"keyword\"],[3,4,\"function\"]],[[4,8,\"string\"],[9,13,\"comment\"]],[],[]]";
    assert_eq!(highlight(&stage, "rust", "a.rs"), (Some(0), words.to_owned()));
    assert_eq!(highlight(&stage, "cobol", "a.rs"), (Some(2), String::new()));
}

/// RV-41: what does not fit is refused, and nothing is printed in its place.
#[test]
fn rv_41_large_text_has_no_words() {
    let stage = Stage::without_tmux();
    stage.file("a.js", &"f(1);\n".repeat(200_000));
    assert_eq!(highlight(&stage, "javascript", "a.js"), (Some(2), String::new()));
}

/// RV-40: the process has limits of its own, for the case that phalanx is killed before it.
#[cfg(target_os = "linux")]
#[test]
fn rv_40_process_has_limits_of_its_own() {
    let stage = Stage::without_tmux();
    let mut command = stage.command(binary());
    command.args(["highlight", "rust"]).stdin(Stdio::piped());
    let mut process = Background::start(command);
    let input = process.take_stdin();
    let limits = format!("/proc/{}/limits", process.pid());
    wait_for("limits", || {
        let text = fs::read_to_string(&limits).ok()?;
        let has = |name: &str, limit: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(name));
            lines.any(|line| line.split_whitespace().next() == Some(limit))
        };
        let is_limited = has("Max cpu time", "1") && has("Max address space", "1073741824");
        (is_limited && has("Max core file size", "0")).then_some(())
    });
    drop(input);
    process.end();
}
