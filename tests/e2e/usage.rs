//! Usage, budgets and usage limits. `fixtures/fake-tui` writes transcripts and reaches limits.

use std::fs;
use std::io::Write;

use serde_json::{Value, json};

use crate::harness::{FAKE_TUI, Stage, wait_for};
use crate::reminders::{down, events, texts};

const LIMIT_RULE: &str = r#"[[rule]]
name = "limit"
state = "limited"
area = "last 4"
match = ['^! (?<text>usage limit reached, resets (?<until>.*))', '^= idle', '^>']

[[rule]]
name = "rests""#;

/// A stage whose profile `fake` starts fake-tui with these switches, and reads its transcripts.
fn stage(switches: &str) -> Stage {
    let mut stage = Stage::new();
    stage.set_env("TZ", "UTC");
    stage.set_env("CODEX_HOME", &stage.at("codex").to_string_lossy());
    let log = stage.at("log").to_string_lossy().into_owned();
    let argv = format!("[[\"{FAKE_TUI}\", \"{log}\", {switches}]]");
    stage.fake_tui(|sheet| {
        let sheet = sheet.replace("[[\"{command}\"]]", &argv);
        let sheet = sheet.replace("[[rule]]\nname = \"rests\"", LIMIT_RULE);
        format!("{sheet}\n[usage]\ntranscript = \"codex\"\n")
    });
    stage
}

fn member(stage: &Stage, name: &str) -> Value {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let members = status["members"].as_array().expect("members");
    members.iter().find(|member| member["name"] == name).cloned().unwrap_or(Value::Null)
}

fn turns(stage: &Stage) -> usize {
    fs::read_to_string(stage.at("log")).unwrap_or_default().lines().count()
}

#[test]
fn used_up_budget_is_reported_and_ends_and_refuses_members() {
    let stage = stage("\"busy\", \"session={new_session}\"");
    let text = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n\
        budget = { tokens = 1000, on_exceeded = \"end-members\" }\n\
        [team.prices.m]\ninput = 0\noutput = 1000\n\
        [[member]]\nname = \"ada\"\nprofile = \"fake\"\n";
    let lead = stage.start(&["up", &stage.file("team.toml", text)]);
    stage.wait_event("alpha", "member_ready", "ada");
    stage.phalanx(&["send", "ada", "spend 850"]).expect(0);
    let usage = wait_for("the usage", || {
        Some(member(&stage, "ada")["usage"].clone()).filter(|usage| usage["tokens"] == 850)
    });
    assert_eq!((&usage["output"], &usage["cost"]), (&json!(850), &json!(0.85)));
    let shown = stage.phalanx(&["status"]).expect(0).stdout;
    assert!(shown.contains("used: 850 tokens, $0.85"), "{shown}");
    assert!(shown.contains("the team has used 85 % of its budget: 850 of 1.0k tokens"), "{shown}");
    let explained = stage.phalanx(&["-v", "explain", "ada"]).expect(0).stdout;
    assert!(explained.contains("850 tokens, $0.85"), "{explained}");
    wait_for("the warning", || {
        texts(&stage, "team-lead").into_iter().find(|text| text.contains("has used 85 %"))
    });
    stage.phalanx(&["send", "ada", "spend 400"]).expect(0);
    stage.wait_event("alpha", "member_left", "ada");
    let reached: Vec<Value> = events(&stage, "budget_reached")
        .iter()
        .map(|event| event["detail"]["percent"].clone())
        .collect();
    assert_eq!(reached, [85, 125]);
    let refused = stage.phalanx(&["spawn", "bob", "--profile", "fake"]).expect(4);
    assert!(refused.stderr.contains("phalanx team set budget.tokens N"), "{}", refused.stderr);
    stage.phalanx(&["team", "set", "budget.tokens", "5000"]).expect(0);
    stage.phalanx(&["spawn", "bob", "--profile", "fake"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    let report = lead.end().stdout;
    assert!(report.contains("1.2k") && report.contains("$1.25"), "{report}");
    stage.assert_clean();
}

#[test]
fn limited_member_is_asked_to_continue_twice_and_then_reported() {
    let stage = stage("\"slowly\", \"limited\"");
    let text = "[team]\nname = \"alpha\"\nfinish = \"manual\"\nbackend = \"pty\"\n\
        resume_limited = { attempts = 2 }\n\
        [[member]]\nname = \"ada\"\nprofile = \"fake\"\n";
    let lead = stage.start(&["up", &stage.file("team.toml", text)]);
    stage.wait_event("alpha", "member_ready", "ada");
    stage.phalanx(&["send", "ada", "hello"]).expect(0);
    let ada =
        wait_for("the limit", || Some(member(&stage, "ada")).filter(|ada| ada["needs"] == "limit"));
    assert!(ada["limited_until"].is_string(), "{ada}");
    assert!(ada["reason"].as_str().is_some_and(|why| why.starts_with("until ")), "{ada}");
    let said = wait_for("the report", || {
        texts(&stage, "team-lead").into_iter().find(|text| text.contains("at the usage limit"))
    });
    assert!(said.contains("(attempts to continue: 2)"), "{said}");
    assert_eq!(turns(&stage), 3, "the message, and two attempts");
    assert_eq!(member(&stage, "ada")["needs"], "limit");
    let states: Vec<Value> =
        events(&stage, "member_health").iter().map(|e| e["detail"]["state"].clone()).collect();
    assert_eq!(states, ["limited", "limited", "limited"]);
    drop(down(&stage, lead));
}

/// The limit of a native program is read from its transcript.
#[test]
fn native_member_is_limited_until_its_transcript_has_an_answer() {
    let stage = Stage::without_tmux();
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/transcripts/claude.jsonl");
    let script = stage.at("agent");
    stage.script(
        &script,
        &format!(
            "#!/bin/sh\nmkdir -p \"$HOME/.claude/projects/x\"\n\
             cp '{recorded}' \"$HOME/.claude/projects/x/$1.jsonl\"\nexec sleep 600\n"
        ),
    );
    let sheet = format!(
        "about = \"native\"\nruns = \"native\"\n[launch]\nargv = [[\"{}\", \"{{new_session}}\"]]\n\
         prompt = \"mailbox\"\n[ready]\nwhen = \"settled\"\n[usage]\ntranscript = \"claude\"\n",
        script.display()
    );
    stage.profile("agent", &sheet);
    for tool in ["mkdir", "cp"] {
        let found = crate::harness::which(tool, &std::env::var("PATH").expect("PATH"));
        std::os::unix::fs::symlink(found.expect("installed"), stage.at("bin").join(tool))
            .expect("symlink");
    }
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ann", "--profile", "agent", "--backend", "pty"]).expect(0);
    let ann =
        wait_for("the limit", || Some(member(&stage, "ann")).filter(|ann| ann["needs"] == "limit"));
    assert_eq!(ann["usage"]["tokens"], 15);
    assert!(ann["reason"].as_str().is_some_and(|why| why.contains("5-hour limit")), "{ann}");
    let dir = stage.at("home").join(".claude/projects/x");
    let file = fs::read_dir(dir).expect("a directory").flatten().next().expect("a transcript");
    let answer = json!({"type": "assistant", "message": {"id": "msg_2", "model": "claude-opus-5-5",
        "usage": {"input_tokens": 5, "output_tokens": 5}}});
    let mut transcript = fs::OpenOptions::new().append(true).open(file.path()).expect("writable");
    writeln!(transcript, "{answer}").expect("written");
    let ann =
        wait_for("the answer", || Some(member(&stage, "ann")).filter(|ann| ann["state"] == "idle"));
    assert_eq!(ann["usage"]["tokens"], 25);
    stage.phalanx(&["shutdown", "ann", "--force"]).expect(0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
