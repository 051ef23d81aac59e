//! What ends, ends, and what was found is shown: signals, limits, `down`, `wait`, `report` and the
//! scripts of docs/examples (SD-16, SD-21, TK-19).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{NATIVE, Stage, binary, wait_for};

/// The name of a script, its files, its exit code, and what it prints.
type Example<'e> = (&'e str, &'e [(&'e str, &'e str)], i32, &'e [&'e str]);

/// Ignores what a polite end sends; only SIGKILL ends it.
const STUBBORN: &str = "trap '' TERM HUP; while :; do sleep 0.1; done";

fn stage_for(backend: &str) -> Stage {
    if backend == "tmux" { super::stage() } else { super::stage_without_tmux() }
}

/// A team of two workers and a stubborn program, with two commands that would run for ever.
fn endless(backend: &str, more: &str) -> String {
    format!(
        "[team]\nname = \"alpha\"\nbackend = \"{backend}\"\ngrace = 1\n{more}\
        [[member]]\nname = \"ann\"\n[[member]]\nname = \"ben\"\n\
        [[member]]\nname = \"log\"\nrun = [\"bash\", \"-c\", \"{STUBBORN}\"]\n\
        [[task]]\nsubject = \"sleep\"\nrun = [\"sleep\", \"300\"]\n\
        [[task]]\nsubject = \"trap\"\nrun = [\"bash\", \"-c\", \"trap 'exit 0' TERM; sleep 300 & wait\"]\n"
    )
}

fn await_work(stage: &Stage) {
    wait_for("both commands to run", || {
        let tasks = stage.phalanx(&["task", "list", "--json"]);
        let tasks: Vec<Value> = serde_json::from_str(&tasks.stdout).unwrap_or_default();
        (tasks.iter().filter(|task| task["state"] == "in_progress").count() == 2).then_some(())
    });
}

/// SD-21: one signal, or `down`, ends commands and programs within their grace.
#[test]
fn sd_21_busy_team_ends_within_its_grace() {
    for backend in ["pty", "tmux"] {
        for end in ["INT", "down", "shutdown"] {
            let case = format!("{backend} {end}");
            let stage = stage_for(backend);
            let manifest = stage.file("team.toml", &endless(backend, "finish = \"manual\"\n"));
            let up = stage.start(&["up", &manifest]);
            up.wait_for_message("watch it: ");
            await_work(&stage);
            let began = Instant::now();
            if end == "INT" {
                up.signal("INT");
            } else {
                let all: &[&str] = if end == "down" { &["down"] } else { &["shutdown", "--all"] };
                let ended = stage.phalanx(&[all, &["--json"]].concat()).expect(0).json();
                let outcomes = ended.as_array().expect("a list").iter().map(|one| &one["outcome"]);
                assert!(outcomes.clone().all(|outcome| outcome == "closed"), "{case}: {ended}");
                assert_eq!(outcomes.count(), 3, "{case}");
            }
            if end == "shutdown" {
                let tasks = stage.phalanx(&["task", "list", "--json"]).expect(0).json();
                for task in tasks.as_array().expect("a list") {
                    assert_eq!(task["state"], "pending", "{case}: {task}");
                    let reason = task["reason"].as_str().unwrap_or_default();
                    assert!(reason.starts_with("its command was ended: "), "{case}: {task}");
                }
                stage.phalanx(&["down"]).expect(0);
            }
            let ended = up.end();
            assert!(began.elapsed() < Duration::from_secs(20), "{case}: {:?}", began.elapsed());
            if end == "INT" {
                assert_eq!(ended.code, 130, "{case}: {ended:?}");
                assert_eq!(ended.stdout.matches("given back").count(), 2, "{case}: {ended:?}");
            }
            stage.assert_clean();
        }
    }
}

/// SD-21: force cuts the grace short.
#[test]
fn sd_21_force_cuts_the_grace_short() {
    let stage = super::stage_without_tmux();
    let manifest = endless("pty", "finish = \"manual\"\n").replace("grace = 1", "grace = 600");
    stage.phalanx(&["up", &stage.file("team.toml", &manifest), "--detach"]).expect(0);
    let down = stage.start(&["shutdown", "log", "--deadline", "600"]);
    stage.wait_event("alpha", "shutdown_requested", "log");
    let began = Instant::now();
    stage.phalanx(&["shutdown", "log", "--force"]).expect(0);
    down.end().expect(0);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// TK-19: a late command fails its task with the reason, what depends on it is not begun, and the
/// rest goes on.
#[test]
fn tk_19_late_command_fails_its_task_and_the_rest_goes_on() {
    let stage = super::stage_without_tmux();
    let manifest = "[team]\nname = \"alpha\"\nbackend = \"pty\"\n\
        [[member]]\nname = \"w\"\nscale = { min = 2, max = 2 }\n\
        [[task]]\nsubject = \"Slow\"\nrun = [\"sh\", \"-c\", \"echo begun; exec sleep 300\"]\ntimeout = 1\n\
        [[task]]\nsubject = \"After\"\nrun = [\"true\"]\nafter = [\"Slow\"]\n\
        [[task]]\nsubject = \"Fast\"\nrun = [\"echo\", \"Found 3 bugs\"]\n";
    let run = stage.phalanx(&["up", &stage.file("team.toml", manifest), "--json"]).expect(1).json();
    let tasks = run["tasks"].as_array().expect("tasks");
    let of = |key: &str| {
        let task = tasks.iter().find(|task| task["key"] == key).expect("the task");
        [&task["state"], &task["reason"], &task["tail"]].map(Value::clone)
    };
    let why = "not done within its limit of 1 s";
    assert_eq!(of("Slow"), [json!("failed"), json!(why), json!("begun")]);
    assert_eq!(of("After")[0], "blocked");
    assert_eq!(of("Fast"), [json!("completed"), Value::Null, json!("Found 3 bugs")]);
    stage.assert_clean();
}

/// TK-19: a team ends at its own limit, and at a failure if it is to; `report` knows it later.
#[test]
fn tk_19_team_ends_at_its_limit_or_at_a_failure() {
    let stage = super::stage_without_tmux();
    let fails = "[[member]]\nname = \"cyd\"\n[[task]]\nsubject = \"Fail\"\nrun = [\"false\"]\n";
    for (options, more, code) in [(&["--timeout", "1"][..], "", 5), (&["--fail-fast"], fails, 1)] {
        let manifest = stage.file("team.toml", &(endless("pty", "") + more));
        let began = Instant::now();
        let ended = stage.phalanx(&[&["up", &manifest], options].concat()).expect(code);
        assert!(began.elapsed() < Duration::from_secs(25), "{options:?}: {:?}", began.elapsed());
        assert_eq!(ended.stderr.contains("the time limit of team alpha has passed"), code == 5);
        let report = stage.phalanx(&["report", "alpha"]).expect(code).stdout;
        assert!(report.contains("given back"), "{options:?}: {report}");
        stage.assert_clean();
    }
}

/// SD-16: `down` refuses nothing that can be shown: it prints it, and it can be read afterwards.
#[test]
fn sd_16_down_prints_what_was_found_and_it_stays_readable() {
    for led in [true, false] {
        let stage = super::stage_without_tmux();
        stage.profile("native", NATIVE);
        stage.phalanx(&["team", "create", "alpha", "-q"]).expect(0);
        if led {
            stage.phalanx(&["lead", "--detach"]).expect(0);
        }
        stage.phalanx(&["spawn", "ben", "--profile", "native", "--", "sleep", "300"]).expect(0);
        for subject in ["Look", "Write", "Print"] {
            stage.phalanx(&["task", "create", subject]).expect(0);
        }
        let ben = |words: &[&str]| stage.phalanx(&[&["--as", "ben"], words].concat()).expect(0);
        ben(&["task", "claim", "1"]);
        ben(&["task", "complete", "1", "--result", "Found 3 bugs\nin the lexer"]);
        ben(&["task", "claim", "2"]);
        ben(&["task", "review", "2"]);
        ben(&["send", "team-lead", "Call me"]);
        let down = stage.phalanx(&["down", "--deadline", "0"]).expect(5).stdout;
        let report = stage.phalanx(&["report", "alpha"]).expect(1).stdout;
        for text in [&down, &report] {
            for part in [
                "#2    Write    in review",
                "Print    not begun",
                "#1 Look\n  Found 3 bugs\n  in the lexer",
            ] {
                assert!(text.contains(part), "led: {led}, {part}: {text}");
            }
            let unread = "nobody has read: phalanx inbox -t alpha --ended";
            assert!(text.contains(unread), "led: {led}: {text}");
            assert_eq!(text.matches("not as agreed").count(), 1, "led: {led}: {text}");
        }
        let inbox = stage.phalanx(&["inbox", "-t", "alpha", "--ended"]).expect(0).stdout;
        assert!(inbox.contains("Call me"), "{inbox}");
        stage.assert_clean();
    }
}

/// SD-16: of a command the last lines are in each announcement, of a long result its beginning.
#[test]
fn sd_16_results_are_in_each_announcement() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["spawn", "w"]).expect(0);
    let lines = "printf 'one\\n\\033[31mtwo\\nthree\\nfour\\nfive\\nFound-3-bugs\\n'";
    assert_eq!(
        stage.phalanx(&["task", "create", "Find", "-q", "--", "sh", "-c", lines]).expect(0).stdout,
        "1\n"
    );
    stage.phalanx(&["wait", "--until", "done"]).expect(0);
    stage.phalanx(&["task", "create", "Think"]).expect(0);
    let long = format!("Long story: {}", "x".repeat(200_000));
    let result = stage.file("result", &long);
    let long = fs::read_to_string(result).expect("the result");
    stage.phalanx(&["task", "complete", "2", "--result", &long[..100_000]]).expect(0);
    let inbox = wait_for("the report", || {
        let inbox = stage.phalanx(&["inbox", "--peek", "--all"]).expect(0).stdout;
        inbox.contains("#1 \"Find\"").then_some(inbox)
    });
    assert!(
        inbox.contains("Found-3-bugs") && !inbox.contains("\u{1b}[31m") && !inbox.contains("one\n"),
        "{inbox}"
    );
    let listed = stage.phalanx(&["task", "list", "--all", "-v"]).expect(0).stdout;
    assert!(listed.contains("Found-3-bugs") && listed.contains("Long story: xxx"), "{listed}");
    let events = stage.phalanx(&["events"]).expect(0).stdout;
    assert!(events.contains("completed #1 Find: Found-3-bugs"), "{events}");
    let task = stage.phalanx(&["task", "get", "1", "--json"]).expect(0).json();
    assert_eq!([&task["state"], &task["exit_code"]], [&json!("completed"), &json!(0)]);
    assert!(task["output"].as_str().is_some_and(|output| output.starts_with("one")), "{task}");
    let down = stage.phalanx(&["down"]).expect(0).stdout;
    assert!(down.contains("`phalanx task get 2 --full`") && down.len() < 10_000, "{}", down.len());
    stage.assert_clean();
}

/// A wait for tasks and for the end of members has the exit code of what was waited for.
#[test]
fn wait_has_the_exit_code_of_what_was_waited_for() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "w", "--backend", "pty"]).expect(0);
    for (nth, command) in ["true", "exit 3", "true"].into_iter().enumerate() {
        let id = stage.phalanx(&["task", "create", "t", "-q", "--", "sh", "-c", command]).expect(0);
        assert_eq!(id.stdout, format!("{}\n", nth + 1));
    }
    let wait = |until: &[&str], code| {
        stage.phalanx(&[&["wait", "--timeout", "60"], until].concat()).expect(code)
    };
    let done = wait(&["--until", "done", "--json"], 1).json();
    assert_eq!(done[1], json!({ "name": "2", "state": "failed", "exit_code": 3 }));
    wait(&["--until", "task=1,3"], 0);
    wait(&["--until", "task=1", "--until", "task=2"], 1);
    wait(&["--until", "idle", "--until", "gone"], 2);
    wait(&["--until", "never"], 2);
    // One outcome, ten of ten: it has begun.
    for nth in 0..10 {
        let name = format!("x{nth}");
        stage.phalanx(&["spawn", &name, "--backend", "pty", "--", "sh", "-c", "exit 3"]).expect(0);
    }
    let gone = wait(&["x0", "x9", "--until", "gone", "--json"], 1).json();
    assert_eq!((&gone[0]["exit_code"], &gone[1]["exit_code"]), (&json!(3), &json!(3)), "{gone}");
    wait(&["w", "--until", "idle"], 0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// A second `up` waits for the first and has its exit code; two that begin at once are one team.
#[test]
fn second_up_waits_for_the_first() {
    let stage = super::stage_without_tmux();
    let manifest = "[team]\nname = \"alpha\"\nbackend = \"pty\"\n[[member]]\nname = \"w\"\n\
        [[task]]\nsubject = \"Run\"\nrun = [\"sh\", \"-c\", \"until test -e go; do sleep 0.05; done; echo found; exit 3\"]\n";
    let manifest = stage.file("team.toml", manifest);
    let first = stage.start(&["up", &manifest]);
    let second = stage.start(&["up", &manifest]);
    await_claim(&stage);
    // Members run before it: the third could lead them.
    wait_for("the lead", || {
        stage.journal("alpha").into_iter().find(|e| e["event"] == "lead_started")
    });
    let third = stage.start(&["up", &manifest]);
    third.wait_for_message("waiting for its end");
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    fs::write(stage.at("work/go"), "").expect("a file");
    for up in [first, second, third] {
        let ended = up.end();
        assert_eq!(ended.code, 1, "{ended:?}");
        assert!(ended.stdout.contains("failed with exit code 3"), "{ended:?}");
    }
    stage.assert_clean();
}

fn await_claim(stage: &Stage) {
    wait_for("the command to run", || {
        let tasks = stage.phalanx(&["task", "list", "--json"]).stdout;
        tasks.contains("in_progress").then_some(())
    });
}

/// The scripts of docs/examples, each with the programs that it names. None has a pause, a loop or
/// force, and none is longer than eight lines.
#[test]
fn examples_do_what_they_say() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples");
    let checks = "[team]\nname = \"checks\"\nbackend = \"pty\"\n[[member]]\nname = \"w\"\n\
        [[task]]\nkey = \"test\"\nsubject = \"Test\"\nrun = [\"sh\", \"-c\", \"echo oops; exit 3\"]\n";
    let nightly = checks.replace("checks", "nightly").replace("; exit 3", "");
    let table: [Example; 10] = [
        (
            "shards",
            &[("shard.sh", "echo shard $1; test $1 != 3")],
            1,
            &["shard 2", "failed, exit 1"],
        ),
        (
            "pipeline",
            &[("build.sh", "true"), ("test.sh", "exit 4"), ("publish.sh", "touch published")],
            1,
            &["3 blocked"],
        ),
        ("cron", &[("nightly.toml", &nightly)], 0, &["1 completed"]),
        ("timeout", &[], 1, &["not done within its limit of 1 s", "1 completed"]),
        ("without-terminal", &[("checks.toml", checks)], 0, &["#1 Test failed with exit code 3"]),
        ("nested", &[("checks.toml", checks)], 1, &["1 failed"]),
        ("json", &[("checks.toml", checks)], 0, &[r#"{"key":"test","exit_code":3,"tail":"oops"}"#]),
        (
            "results",
            &[("version.sh", "echo 1.2.3"), ("publish.sh", "echo published $1")],
            0,
            &["published 1.2.3"],
        ),
        (
            "retry",
            &[("flaky.sh", "test -e once || { touch once; exit 1; }; echo works")],
            0,
            &["works"],
        ),
        (
            "fan-out",
            &[("list.txt", "red\ngreen\nblue\nplaid\n"), ("check.sh", "echo $1 is fine")],
            0,
            &["plaid is fine", "4 completed"],
        ),
    ];
    let scripts = fs::read_dir(&dir).expect("the directory").count();
    assert_eq!(scripts, table.len(), "each script is in the table");
    for (name, files, code, parts) in table {
        let path = dir.join(format!("{name}.sh"));
        let text = fs::read_to_string(&path).expect("the script");
        let code_lines: String = text.lines().filter(|line| !line.starts_with('#')).collect();
        let is_bad = ["sleep 0", "while ", "for ", "until test", "--force"]
            .iter()
            .any(|bad| code_lines.contains(bad));
        assert!(text.lines().count() <= 8 && !is_bad, "{name}");
        let stage = super::stage();
        for (file, text) in files {
            let at = PathBuf::from(stage.file(file, text));
            if file.ends_with(".sh") {
                stage.script(&at, &format!("#!/bin/sh\n{text}\n"));
            }
        }
        let bin = Path::new(binary()).parent().expect("a directory").display();
        let all = format!("{bin}:{}", std::env::var("PATH").expect("PATH"));
        let ran = stage.command("sh").arg(&path).env("PATH", all).output().expect("sh");
        let out = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(code), "{name}: {out}");
        for part in parts {
            assert!(out.contains(part), "{name}, {part}: {out}");
        }
        assert!(!stage.at("published").exists(), "{name}");
        stage.assert_clean();
    }
}

/// `send --wait` prints the answer, which counts as read then.
#[test]
fn send_waits_for_the_answer_of_an_agent() {
    let stage = super::stage_without_tmux();
    stage.profile("native", NATIVE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ben", "--profile", "native", "--", "sleep", "300"]).expect(0);
    stage.phalanx(&["spawn", "w", "--backend", "pty"]).expect(0);
    let ask = ["send", "ben", "is it green?", "--wait"];
    stage.phalanx(&["--as", "ben", "send", "team-lead", "an earlier message"]).expect(0);
    let asked = stage.start(&ask);
    wait_for("the question", || {
        let mail = stage.phalanx(&["inbox", "ben", "--peek"]).stdout;
        mail.contains("is it green?").then_some(())
    });
    stage.phalanx(&["--as", "ben", "send", "team-lead", "yes,\nall of it"]).expect(0);
    assert_eq!(asked.end().expect(0).stdout, "yes,\nall of it\n");
    let rest = stage.phalanx(&["inbox"]).expect(0).stdout;
    assert!(rest.contains("an earlier message") && !rest.contains("all of it"), "{rest}");
    stage.phalanx(&[&ask[..], &["--timeout", "0.2"]].concat()).expect(5);
    // One that says nothing else ends its turn with its last words.
    for (result, code, stdout) in [(r#","result":"All green.""#, 0, "All green.\n"), ("", 1, "")] {
        stage.phalanx(&["inbox", "ben"]).expect(0);
        let asked = stage.start(&ask);
        asked.wait_for_message("waiting for ben");
        stage.phalanx(&["--as", "ben", "inbox"]).expect(0);
        let rests = format!(r#"{{"type":"idle_notification","from":"ben"{result}}}"#);
        stage.phalanx(&["--as", "ben", "send", "team-lead", &rests]).expect(0);
        let asked = asked.end();
        assert_eq!((asked.code, asked.stdout.as_str()), (code, stdout), "{asked:?}");
    }
    // A turn can be too short for a notification; the hook of the program reports its last words.
    let asked = stage.start(&ask);
    asked.wait_for_message("waiting for ben");
    stage.phalanx(&["--as", "ben", "inbox"]).expect(0);
    let shown = stage.phalanx(&["--json", "status"]).expect(0).json();
    let environ = fs::read_to_string(format!("/proc/{}/environ", shown["members"][0]["pid"]));
    let environ = environ.expect("it runs");
    let run = environ.split('\0').find_map(|entry| entry.strip_prefix("PHALANX_INCARNATION="));
    let said = json!({"type": "agent-turn-complete", "last-assistant-message": "All is well."});
    let mut hook = stage.command(binary());
    hook.args(["hook", &said.to_string()]).env("PHALANX_TEAM", "alpha");
    hook.env("PHALANX_AGENT_NAME", "ben");
    hook.env("PHALANX_INCARNATION", run.expect("a run"));
    assert!(hook.output().expect("phalanx runs").status.success());
    assert_eq!(asked.end().expect(0).stdout, "All is well.\n");
    let mute = stage.phalanx(&["send", "w", "hello", "--wait"]).expect(4).stderr;
    assert!(mute.contains("answers no messages"), "{mute}");
    let asked = stage.start(&ask);
    asked.wait_for_message("waiting for ben");
    stage.phalanx(&["shutdown", "ben", "--force"]).expect(0);
    assert_eq!(asked.end().code, 1);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// Tables are whole in a pipe, and as wide as `COLUMNS` says.
#[test]
fn tables_in_a_pipe_are_not_cut() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let subject = format!("Find the word {} in a very long subject", "x".repeat(120));
    stage.phalanx(&["task", "create", &subject]).expect(0);
    let status = |columns: Option<&str>| {
        let mut status = stage.command(binary());
        status.arg("status").envs(columns.map(|columns| ("COLUMNS", columns)));
        String::from_utf8(status.output().expect("it runs").stdout).expect("text")
    };
    assert!(status(None).contains("in a very long subject"), "{}", status(None));
    let narrow = status(Some("60"));
    let widest = narrow.lines().map(|line| line.chars().count()).max();
    assert!(widest.is_some_and(|widest| widest <= 60), "{narrow}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
