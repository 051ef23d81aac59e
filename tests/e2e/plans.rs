//! `--plan`, `plan submit` and `ask permission`: members that ask before they act.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{FAKE_TUI, NATIVE, Run, SETTLED, Stage, binary, wait_for};
use crate::speaker::{Env, as_teammate, spawn};

/// Waits for an open request and returns it.
fn open(stage: &Stage) -> Value {
    wait_for("a request", || {
        let open = stage.phalanx(&["--json", "requests"]).expect(0).json();
        open.as_array().is_some_and(|all| !all.is_empty()).then(|| open[0].clone())
    })
}

fn end(stage: &Stage) {
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn worker_waits_for_plan_approval_before_running_a_task() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ann", "--plan"]).expect(0);
    stage.phalanx(&["task", "create", "Make the file", "--", "touch", "made"]).expect(0);
    let plan = open(&stage);
    assert_eq!((&plan["kind"], &plan["from"]), (&json!("plan"), &json!("ann")));
    let id = plan["request_id"].as_str().expect("id");
    let shown = stage.phalanx(&["requests", "show", id]).expect(0).stdout;
    assert!(
        shown.contains("Run task #1: Make the file") && shown.contains("touch made"),
        "{shown}"
    );
    let state =
        stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0]["needs"].clone();
    assert_eq!(state, json!("plan"));
    assert!(!stage.at("work").join("made").exists(), "nothing ran");
    stage.phalanx(&["answer", id, "--approve"]).expect(0);
    stage.wait_event("alpha", "task_completed", "1");
    assert!(stage.at("work").join("made").exists());

    stage.phalanx(&["task", "create", "Remove it", "--", "rm", "made"]).expect(0);
    let second = open(&stage)["request_id"].as_str().expect("id").to_owned();
    stage.phalanx(&["answer", &second, "--reject", "--reason", "keep it"]).expect(0);
    stage.wait_event("alpha", "task_failed", "2");
    let task = stage.phalanx(&["--json", "task", "get", "2"]).expect(0).json();
    let said = task["metadata"]["phalanx"]["outcome"]["tail"].clone();
    assert_eq!(said, json!("the lead rejected the plan: keep it"));
    assert!(stage.at("work").join("made").exists());

    stage.phalanx(&["retry", "2"]).expect(0);
    open(&stage);
    let ended = stage.phalanx(&["--json", "shutdown", "ann"]).expect(0).json();
    assert_eq!(
        ended[0]["outcome"],
        json!("closed"),
        "a worker that waits for approval agrees to end"
    );
    let task = stage.phalanx(&["--json", "task", "get", "2"]).expect(0).json();
    assert_eq!((&task["status"], &task["owner"]), (&json!("pending"), &Value::Null));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn wrapped_program_submits_its_plan_and_gets_the_answer() {
    let stage = super::stage();
    stage.fake_tui(|sheet| sheet.replace("brief = \"none\"", "brief = \"first-message\""));
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let log = stage.at("log");
    let words = ["spawn", "ada", "--profile", "fake", "--plan", "--backend", "pty", "--", FAKE_TUI];
    let run = stage.phalanx(&[&words[..], &[&*log.to_string_lossy()]].concat()).expect(0);
    assert!(run.stderr.contains("`fake` has no mode for planning"), "{run:?}");
    let told = |words: &str| {
        wait_for(words, || std::fs::read_to_string(&log).ok().filter(|text| text.contains(words)))
    };
    told("Your plan first");
    let submit = |text: &str| {
        let mut command = stage.command(binary());
        command.args(["--json", "--as", "ada", "plan", "submit", "-"]).stdin(Stdio::piped());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("phalanx runs");
        child.stdin.take().expect("stdin").write_all(text.as_bytes()).expect("written");
        Run::from(child.wait_with_output().expect("phalanx ends"))
    };
    let sent = submit("# Move the parser\n\n1. read it\n").expect(0).json();
    assert_eq!(sent["state"], json!("pending"));
    let id = sent["request_id"].as_str().expect("id").to_owned();
    let shown = stage.phalanx(&["requests", "show", &id]).expect(0).stdout;
    assert!(shown.contains("Move the parser") && shown.contains("1. read it"), "{shown}");
    stage.phalanx(&["answer", &id, "--reject", "--reason", "leave the schema alone"]).expect(0);
    told("is rejected: leave the schema alone. Change nothing yet");
    let second = submit("# Leave the schema alone\n").expect(0).json();
    stage.phalanx(&["answer", second["request_id"].as_str().expect("id"), "--approve"]).expect(0);
    told("is approved. Carry it out now.");
    assert!(submit(" \n").expect(2).stderr.contains("the plan is empty"));
    stage.phalanx(&["plan", "submit", "no-such-file", "--as", "ada"]).expect(2);
    end(&stage);
}

#[test]
fn plan_flag_is_refused_for_profiles_that_cannot_enforce_it() {
    let stage = super::stage_without_tmux();
    stage.profile("native", NATIVE);
    stage.profile("settled", SETTLED);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    for profile in ["shell", "native", "settled"] {
        let words = ["spawn", "ada", "--plan", "--profile", profile, "--", "sleep", "300"];
        let run = stage.phalanx(&words).expect(2);
        assert!(
            run.stderr.contains("cannot be held to a plan") && run.stderr.contains("omit `--plan`"),
            "{run:?}"
        );
    }
    let run = stage
        .phalanx(&["spawn", "ada", "--plan", "--profile", "codex", "--mode", "acceptEdits"])
        .expect(2);
    assert!(run.stderr.contains("plans in a mode of its own"), "{run:?}");
    let line = stage
        .phalanx(&["--json", "spawn", "ada", "--plan", "--profile", "codex", "--dry-run"])
        .expect(0);
    let argv = line.json()["argv"].to_string();
    assert!(argv.contains(r#""--sandbox","read-only""#), "{argv}");
    end(&stage);
}

#[test]
fn ask_permission_blocks_a_plain_command_until_answered() {
    let stage = super::stage();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let env: Env = spawn(&stage, "deployer");
    let ask = |args: &[&str]| {
        let mut command = stage.command(binary());
        command.envs(env.iter().map(|(name, value)| (name, value))).args([
            "--json",
            "ask",
            "permission",
        ]);
        command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("phalanx runs")
    };
    let over =
        |child: std::process::Child| Run::from(child.wait_with_output().expect("phalanx ends"));
    for (answer, code) in [
        (&["--approve"][..], 0),
        (&["--approve", "--input", r#"{"command": "make -n deploy"}"#], 0),
        (&["--reject", "--reason", "not today"], 4),
    ] {
        let waiting = ask(&["make deploy", "--reason", "the release is tested"]);
        let request = open(&stage);
        assert_eq!(
            (&request["kind"], &request["summary"]),
            (&json!("permission"), &json!("Bash: make deploy"))
        );
        let id = request["request_id"].as_str().expect("id");
        stage.phalanx(&[&["answer", id], answer].concat()).expect(0);
        let run = over(waiting).expect(code);
        match answer {
            ["--approve"] => assert_eq!(
                (run.json()["state"].as_str(), &run.json()["input"]),
                (Some("allowed"), &Value::Null)
            ),
            ["--approve", ..] => {
                assert_eq!(run.json()["input"], json!({"command": "make -n deploy"}))
            }
            _ => assert!(run.stderr.contains("was denied: not today"), "{run:?}"),
        }
    }
    // A rule decides without an answer of the lead.
    stage.phalanx(&["rules", "deny", "Bash(git push:*)"]).expect(0);
    let run = over(ask(&["git push origin"])).expect(4);
    assert!(run.stderr.contains("was denied"), "{run:?}");
    let run = stage.phalanx(&["ask", "permission", "make"]).expect(2);
    assert!(run.stderr.contains("the lead has nobody to ask"), "{run:?}");
    end(&stage);
}

#[test]
fn member_that_reads_mail_gets_the_answer_as_a_message() {
    let stage = super::stage_without_tmux();
    stage.profile("native", NATIVE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--profile", "native", "--", "sleep", "300"]).expect(0);
    let ask = [
        "--json",
        "--as",
        "ada",
        "ask",
        "permission",
        "--tool",
        "Edit",
        "--input",
        r#"{"file_path": "/x"}"#,
    ];
    let sent = stage.phalanx(&ask).expect(0).json();
    assert_eq!(sent["state"], json!("pending"));
    let id = sent["request_id"].as_str().expect("id");
    // The lead may read the request as a message first.
    let mail = stage.phalanx(&["inbox"]).expect(0).stdout;
    assert!(mail.contains(id), "{mail}");
    stage.phalanx(&["answer", id, "--approve"]).expect(0);
    let inbox = stage.phalanx(&["--json", "inbox", "ada", "--all"]).expect(0).stdout;
    assert!(inbox.contains("permission_response") && inbox.contains(id), "{inbox}");
    end(&stage);
}

#[test]
fn sec_04_teammate_asks_only_in_its_own_name() {
    let stage = super::stage();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let env = spawn(&stage, "ann");
    stage.phalanx(&["spawn", "bob", "--backend", "pty", "--", "sleep", "300"]).expect(0);
    let run = as_teammate(&stage, &env, &["--as", "bob", "ask", "permission", "make"]).expect(4);
    assert!(run.stderr.contains("ann"), "{run:?}");
    assert_eq!(stage.phalanx(&["--json", "requests", "--all"]).expect(0).json(), json!([]));
    end(&stage);
}
