//! User hooks: every form of configuration, every kind of failure, and a lead that is not delayed
//! by them.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

/// Returns the journaled hook runs as `event outcome`.
fn ran(stage: &Stage, team: &str) -> Vec<String> {
    let word = |e: &Value, key: &str| e["detail"][key].as_str().unwrap_or("?").to_owned();
    let events = stage.journal(team).into_iter().filter(|e| e["event"] == "hook_ran");
    events.map(|e| format!("{} {}", word(&e, "hook"), word(&e, "outcome"))).collect()
}

fn settings(event: &str, command: &str) -> String {
    json!({"hooks": {event: [{"matcher": "*", "hooks": [{"type": "command", "command": command}]}]}})
        .to_string()
}

#[test]
fn hooks_from_every_source_run() {
    let stage = Stage::without_tmux();
    let own = format!(
        "trusted = [\"{}\"]\n[[hook]]\nevent = \"TeammateIdle\"\nrun = [\"sh\", \"-c\", \"echo again >&2; exit 2\"]\n",
        stage.at("work").display()
    );
    fs::create_dir_all(stage.root().join("phalanx")).expect("dir");
    fs::create_dir(stage.at("work/.claude")).expect("dir");
    fs::write(stage.root().join("phalanx/hooks.toml"), own).expect("file");
    fs::write(stage.root().join("settings.json"), settings("SubagentStart", "echo welcome"))
        .expect("file");
    let local = settings("SubagentStop", "cat > \"$CLAUDE_PROJECT_DIR\"/stopped");
    fs::write(stage.at("work/.claude/settings.local.json"), local).expect("file");
    let manifest = stage.file(
        "forms.toml",
        "[team]\nname = \"forms\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\nrole = \"tester\"\n\
         [[hook]]\nevent = \"TaskCompleted\"\nrun = [\"touch\", \"asked\"]\n\
         [[task]]\nkey = \"a\"\nsubject = \"A\"\nrun = [\"true\"]\n",
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    stage.wait_event("forms", "task_completed", "1");
    assert!(stage.at("work/asked").exists(), "asked before it was written");
    let found = stage.phalanx(&["--json", "doctor"]).json()["findings"]
        .as_array()
        .cloned()
        .expect("findings");
    let listed = found.iter().filter(|f| f["id"] == "hook").filter_map(|f| f["what"].as_str());
    assert_eq!(listed.filter(|what| what.contains(" runs `")).count(), 4, "{found:?}");
    stage.phalanx(&["task", "create", "B", "--", "true"]).expect(0);
    let inbox = stage.root().join("teams/forms/inboxes/ada.json");
    wait_for("both messages of hooks", || {
        let mail = fs::read_to_string(&inbox).unwrap_or_default();
        (mail.contains("Hook SubagentStart: welcome") && mail.contains("Hook TeammateIdle: again"))
            .then_some(())
    });
    stage.phalanx(&["shutdown", "ada"]).expect(0);
    wait_for("the hook of its end", || {
        ran(&stage, "forms").contains(&"SubagentStop done".to_owned()).then_some(())
    });
    let told: Value =
        serde_json::from_slice(&fs::read(stage.at("work/stopped")).expect("it ran")).expect("json");
    assert_eq!((&told["agent_id"], &told["agent_type"]), (&json!("ada@forms"), &json!("tester")));
    assert!(
        told["agent_transcript_path"].as_str().is_some_and(|path| path.ends_with("ada.log")),
        "{told}"
    );
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Hooks that hang, flood the pipe, die, cannot be run or leave daemons behind. Each is reported
/// with its outcome, the lead keeps working, and nothing is left.
#[test]
fn misbehaving_hooks_are_reported_and_do_not_delay_the_lead() {
    let stage = Stage::new();
    let hook = |event: &str, run: &str| {
        format!("[[hook]]\nevent = \"{event}\"\nrun = {run}\ntimeout = 15\n")
    };
    let mut text =
        "[team]\nname = \"bad\"\nbackend = \"pty\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n"
            .to_owned();
    for run in [
        r#"["sh", "-c", "kill -9 $$"]"#,
        r#"["no-such-program"]"#,
        r#"["./plain"]"#,
        r#"["sh", "-c", "echo '{\"decision\":'; printf '\\377\\376'; exit 7"]"#,
        r#"["sh", "-c", "trap '' TERM; setsid sleep 600 & yes"]"#,
    ] {
        text.push_str(&hook("SubagentStart", run));
    }
    stage.file("plain", "not executable");
    let manifest = stage.file("bad.toml", &text);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    wait_for("the first four", || (ran(&stage, "bad").len() == 4).then_some(()));
    // The fifth hook floods its pipe and hangs; the lead carries out a shutdown meanwhile.
    stage.phalanx(&["shutdown", "ada"]).expect(0);
    assert_eq!(ran(&stage, "bad").len(), 4, "the hook still runs");
    wait_for("the fifth", || (ran(&stage, "bad").len() == 5).then_some(()));
    let expected = ["failed", "not_run", "not_run", "failed", "timed_out"];
    assert_eq!(ran(&stage, "bad"), expected.map(|outcome| format!("SubagentStart {outcome}")));
    let warnings: Vec<String> = stage
        .journal("bad")
        .iter()
        .filter(|e| e["event"] == "warning")
        .map(|e| e["detail"]["text"].to_string())
        .collect();
    for said in [
        "signal 9",
        "cannot find the program no-such-program",
        "./plain",
        "exit code 7",
        "not done after 15 s",
    ] {
        assert!(warnings.iter().any(|text| text.contains(said)), "{said}: {warnings:?}");
    }
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// A finishing `up` waits for the last hooks, with a limit.
#[test]
fn up_waits_for_the_last_hooks() {
    let stage = Stage::without_tmux();
    let manifest = stage.file(
        "last.toml",
        "[team]\nname = \"last\"\n[[member]]\nname = \"ada\"\n[[hook]]\nevent = \"SubagentStop\"\n\
         run = [\"sh\", \"-c\", \"sleep 0.3; touch stopped; echo no >&2; exit 1\"]\n\
         [[task]]\nkey = \"a\"\nsubject = \"A\"\nrun = [\"true\"]\n",
    );
    let run = stage.phalanx(&["up", &manifest]).expect(0);
    assert!(stage.at("work/stopped").exists());
    assert!(run.stderr.contains("hook SubagentStop of the manifest: exit code 1: no"), "{run:?}");
    stage.assert_clean();
}

#[test]
fn worker_agrees_to_end_once_a_hook_has_decided() {
    let stage = Stage::without_tmux();
    let manifest = stage.file(
        "think.toml",
        "[team]\nname = \"think\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n[[hook]]\nevent = \"TaskCompleted\"\n\
         run = [\"sh\", \"-c\", \"touch thinking; until [ -e go ]; do sleep 0.05; done; echo 'no tests' >&2; exit 2\"]\n\
         [[task]]\nkey = \"a\"\nsubject = \"A\"\nrun = [\"true\"]\n",
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    wait_for("the hook to think", || stage.at("work/thinking").exists().then_some(()));
    let shutdown = stage.start(&["--json", "shutdown", "ada", "--deadline", "60"]);
    stage.wait_event("think", "shutdown_requested", "ada");
    fs::write(stage.at("work/go"), "").expect("go");
    let ended = shutdown.end().expect(0).json();
    assert_eq!(ended[0]["outcome"], "closed", "{ended}");
    stage.wait_event("think", "task_failed", "1");
    let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    let tail = task["metadata"]["phalanx"]["outcome"]["tail"].as_str().unwrap_or_default();
    assert_eq!(tail, "task 1 was not completed; a hook rejected it: no tests");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Without a lead, a rejection by a hook is an exit code and a message; a failing hook is a warning
/// on stderr.
#[test]
fn hook_rejection_of_a_manual_completion_is_shown() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    fs::create_dir_all(stage.root().join("phalanx")).expect("dir");
    let hooks = stage.root().join("phalanx/hooks.toml");
    let with = |script: &str| {
        fs::write(
            &hooks,
            format!(
                "[[hook]]\nevent = \"TaskCompleted\"\ntimeout = 1\nrun = [\"sh\", \"-c\", \"{script}\"]\n"
            ),
        )
        .expect("file");
    };
    stage.phalanx(&["task", "create", "A"]).expect(0);
    stage.phalanx(&["task", "claim", "1"]).expect(0);
    with("echo 'the tests fail' >&2; exit 2");
    let refused = stage.phalanx(&["task", "complete", "1"]).expect(4);
    let expected = "error: task 1 was not completed; a hook rejected it: the tests fail\n\
                    hint: fix what the hook reports, then run `phalanx task complete 1` again\n";
    assert_eq!(refused.stderr, expected);
    assert_eq!(stage.phalanx(&["--json", "task", "get", "1"]).json()["status"], "in_progress");
    // A hook that completes the task itself is not run recursively.
    let runs = stage.at("runs");
    let complete = format!("'{}' task complete 1 --as team-lead", crate::harness::binary());
    with(&format!("echo run >> '{}'; {complete}", runs.display()));
    stage.phalanx(&["task", "complete", "1"]).expect(4);
    assert_eq!(fs::read_to_string(runs).expect("the hook ran"), "run\n");
    assert_eq!(stage.phalanx(&["--json", "task", "get", "1"]).json()["status"], "completed");
    stage.phalanx(&["task", "create", "B"]).expect(0);
    stage.phalanx(&["task", "claim", "2"]).expect(0);
    with("sleep 60");
    let done = stage.phalanx(&["task", "complete", "2"]).expect(0);
    assert!(
        done.stderr.contains("hook TaskCompleted of") && done.stderr.contains("not done after 1 s"),
        "{done:?}"
    );
    fs::write(&hooks, "[[hook]]\nevnt = 1\n").expect("file");
    stage.phalanx(&["task", "create", "C"]).expect(0);
    stage.phalanx(&["task", "claim", "3"]).expect(0);
    let done = stage.phalanx(&["task", "complete", "3"]).expect(0);
    assert!(done.stderr.contains("hooks.toml:2:1: unknown key `evnt`"), "{done:?}");
}

/// A process that is interrupted while hooks run ends them, including their daemons.
#[test]
fn signal_ends_running_hooks_and_their_daemons() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    fs::create_dir_all(stage.root().join("phalanx")).expect("dir");
    let script = "[\"sh\", \"-c\", \"setsid sleep 600 & touch begun; sleep 600\"]";
    let hook = |event: &str| format!("[[hook]]\nevent = \"{event}\"\nrun = {script}\n");
    fs::write(
        stage.root().join("phalanx/hooks.toml"),
        hook("TaskCompleted") + &hook("SubagentStart"),
    )
    .expect("file");
    stage.phalanx(&["task", "create", "A"]).expect(0);
    stage.phalanx(&["task", "claim", "1"]).expect(0);
    let completing = stage.start(&["task", "complete", "1"]);
    wait_for("the hook to begin", || stage.at("work/begun").exists().then_some(()));
    completing.signal("INT");
    let run = completing.end().expect(130);
    assert!(run.stderr.contains("interrupted while hooks were asked"), "{run:?}");
    assert_eq!(stage.processes(), Vec::<String>::new());
    assert_eq!(stage.phalanx(&["--json", "task", "get", "1"]).json()["status"], "in_progress");
    fs::remove_file(stage.at("work/begun")).expect("was there");
    stage.phalanx(&["spawn", "ada", "--backend", "pty"]).expect(0);
    let lead = stage.start(&["lead", "--on-exit", "detach"]);
    wait_for("the start is made up for", || stage.at("work/begun").exists().then_some(()));
    // The first signal makes the lead leave; the second makes it stop waiting for hooks.
    lead.signal("INT");
    wait_for("the lead to have heard", || {
        lead.signal("INT");
        stage.processes().iter().all(|line| !line.contains("sleep 600")).then_some(())
    });
    lead.end().expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
