//! Teams in iTerm2, emulated by `fixtures/osascript`: sessions are real programs on real terminals,
//! and the lead runs in one of them. Not verified against a real iTerm2 (docs/backends.md).

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

/// `O_NOCTTY`: opening a terminal must not make it the controlling terminal of the test.
const O_NOCTTY: i32 = 0o400;

struct Mac {
    stage: Stage,
    leader: Value,
}

impl Mac {
    /// Starts an emulated iTerm2 with one window that runs `program`.
    fn running(program: &[&str]) -> Mac {
        let mut stage = Stage::new();
        fs::create_dir(stage.at("iterm")).expect("dir");
        let osascript = stage.at("iterm/osascript");
        symlink(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/osascript/osascript"), &osascript)
            .expect("symlink");
        stage.shadow("osascript", &format!("#!/bin/sh\nexec '{}' \"$@\"\n", osascript.display()));
        let started =
            stage.command(&osascript.to_string_lossy()).arg("--emulate").output().expect("python3");
        assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
        let mut mac = Mac { stage, leader: Value::Null };
        mac.leader = mac.op("open", program);
        mac
    }

    fn new() -> Mac {
        Mac::running(&["sleep", "600"])
    }

    /// Sends a control operation to the emulator; see its `control`.
    fn op(&self, op: &str, args: &[&str]) -> Value {
        let mut stream = UnixStream::connect(self.stage.at("iterm/s")).expect("the emulator runs");
        writeln!(stream, "{}", json!({ "op": op, "args": args })).expect("it listens");
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("json");
        answer.get("value").cloned().unwrap_or_else(|| panic!("{op} {args:?}: {answer}"))
    }

    fn fail(&self, verb: &str, mode: &str, times: u32) {
        self.op("fail", &[&json!({ verb: [mode, times] }).to_string()]);
    }

    fn sessions(&self) -> Vec<Value> {
        self.op("sessions", &[]).as_array().expect("a list").clone()
    }

    fn leader_id(&self) -> String {
        self.leader["id"].as_str().expect("an id").to_owned()
    }

    /// The scripts that have run so far: verb and arguments.
    fn calls(&self) -> Vec<(String, Vec<String>)> {
        let log = fs::read_to_string(self.stage.at("iterm/log")).unwrap_or_default();
        let calls = log.lines().map(|line| serde_json::from_str::<Value>(line).expect("json"));
        let pair = |call: Value| {
            let args = serde_json::from_value(call["args"].clone()).expect("words");
            (call["verb"].as_str().expect("a verb").to_owned(), args)
        };
        calls.map(pair).collect()
    }

    /// Returns a phalanx command on the lead's terminal, with the environment that iTerm2 gives its
    /// sessions.
    fn command(&self, args: &[&str]) -> Command {
        let tty = self.leader["tty"].as_str().expect("a terminal");
        let tty: File = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(O_NOCTTY)
            .open(tty)
            .expect("a terminal");
        let mut command = self.stage.command(binary());
        command
            .env("TERM_PROGRAM", "iTerm.app")
            .env("LC_TERMINAL", "iTerm2")
            .env("ITERM_SESSION_ID", format!("w0t0p0:{}", self.leader_id()))
            .stdin(Stdio::from(tty))
            .args(args);
        command
    }

    fn phalanx(&self, args: &[&str]) -> Run {
        Run::from(self.command(args).output().expect("phalanx runs"))
    }

    /// Asserts that only `expected` sessions are left, then quits the emulator and asserts that
    /// nothing else is.
    fn assert_clean(self, expected: usize) {
        let left = self.sessions();
        assert_eq!(left.len(), expected, "{left:?}");
        self.op("quit", &[]);
        self.stage.assert_clean();
    }
}

/// A full lifecycle on the lead's own terminal: team created, iTerm2 chosen by `auto`, mail sent,
/// screen read, member shut down, team deleted.
#[test]
fn iterm2_full_lifecycle_inside_a_session() {
    let mac = Mac::running(&["sleep", "600"]);
    let script = mac.stage.at("life.sh");
    let text = format!(
        "export PHALANX_CONFIG_DIR='{root}'\ncd '{work}'\n\
         run() {{ '{phalanx}' \"$@\" </dev/null >>out 2>>err; echo \"$1 $?\" >>codes; }}\n\
         run team create alpha\nrun spawn ada --role tester --prompt hello\n\
         run --json spawn bob -- sh -c 'echo bob is here; exec sleep 300'\n\
         run send ada hi\nrun peek bob\nrun shutdown ada\nrun down\necho yes >over.new; mv over.new over\nexec sleep 600\n",
        root = mac.stage.root().display(),
        work = mac.stage.at("work").display(),
        phalanx = binary(),
    );
    mac.stage.script(&script, &text);
    let shell = mac.op("open", &["sh", &script.to_string_lossy()]);
    let read = |name: &str| fs::read_to_string(mac.stage.at("work").join(name)).unwrap_or_default();
    wait_for("the end of the script", || mac.stage.at("work/over").exists().then_some(()));
    let (codes, out, err) = (read("codes"), read("out"), read("err"));
    assert!(
        codes.lines().count() == 7 && codes.lines().all(|line| line.ends_with(" 0")),
        "{codes}\n{out}\n{err}"
    );
    assert!(
        format!("{out}{err}").contains("backend iterm2: this terminal is an iTerm2 session"),
        "{out}\n{err}"
    );
    assert!(out.contains("bob is here"), "{out}");
    let placed: Vec<Vec<String>> =
        mac.calls().into_iter().filter(|(verb, _)| verb == "place").map(|(_, args)| args).collect();
    assert_eq!(
        (&placed[0][0], placed[0][1].as_str()),
        (&shell["id"].as_str().expect("an id").to_owned(), "right")
    );
    assert_eq!(placed[1][1], "below");
    mac.op("end", &[shell["id"].as_str().expect("an id")]);
    mac.assert_clean(1);
}

/// The record and the team file name the session.
#[test]
fn iterm2_placement_is_the_session_of_the_split() {
    let mac = Mac::new();
    mac.phalanx(&["team", "create", "alpha"]).expect(0);
    let mut spawn = mac.command(&["--json", "spawn", "ada", "--backend", "iterm2"]);
    // PT-03: a stale variable of a session that is gone; the terminal decides.
    spawn.env("ITERM_SESSION_ID", "w9t9p9:00000000-0000-0000-0000-000000000000");
    let made = Run::from(spawn.output().expect("phalanx runs")).expect(0).json();
    let placed = mac.calls().into_iter().find(|(verb, _)| verb == "place").expect("a split");
    assert_eq!(placed.1[0], mac.leader_id());
    assert_eq!(made["backend"], json!("iterm2"));
    let sessions = mac.sessions();
    let ada = sessions.iter().find(|s| is_named(s, "ada")).expect("a session of that name");
    let config =
        fs::read_to_string(mac.stage.root().join("teams/alpha/config.json")).expect("config");
    let config: Value = serde_json::from_str(&config).expect("json");
    assert_eq!(config["members"][1]["tmuxPaneId"], ada["id"]);
    assert_eq!(config["members"][1]["backendType"], json!("iterm2"));
    let record = fs::read_to_string(mac.stage.root().join("teams/alpha/phalanx/members/ada.json"))
        .expect("record");
    let record: Value = serde_json::from_str(&record).expect("json");
    assert_eq!(record["start"]["tty"], ada["tty"]);
    assert_eq!(record["placement"]["iterm2"], json!({"session_id": ada["id"], "tty": ada["tty"]}));
    mac.phalanx(&["down"]).expect(0);
    mac.assert_clean(1);
}

/// Returns whether the session is named after the member; role and state may follow.
fn is_named(session: &Value, member: &str) -> bool {
    let name = session["name"].as_str().unwrap_or_default();
    name == member || name.starts_with(&format!("{member} · "))
}

/// SP-07, PT-03: an explicit choice is carried out or refused with a hint, never replaced.
/// Environment variables alone are not trusted.
#[test]
fn iterm2_sp_07_pt_03_explicit_choice_is_never_replaced() {
    let mac = Mac::new();
    mac.phalanx(&["team", "create", "alpha"]).expect(0);
    let refused = |change: &[(&str, Option<&str>)], because: &str| {
        let mut command = mac.command(&["spawn", "ada", "--backend", "iterm2"]);
        for (name, value) in change {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let run = Run::from(command.output().expect("phalanx runs")).expect(6);
        assert!(run.stderr.contains(because), "{because}: {run:?}");
        assert!(run.stderr.contains("hint: "), "{run:?}");
    };
    let bare = [("TERM_PROGRAM", None), ("LC_TERMINAL", None), ("ITERM_SESSION_ID", None)];
    refused(&[("SSH_CONNECTION", Some("1 2 3 4"))], "this is an SSH session");
    refused(&[("TMUX", Some("/tmp/x,1,0"))], "this terminal is in tmux");
    refused(&[("TERM_PROGRAM", Some("vscode"))], "vscode");
    refused(&bare, "not iTerm2");
    refused(&[("PATH", Some("/nowhere"))], "`osascript` is not on PATH");
    assert_eq!(mac.calls(), [], "none of these is worth a question");
    mac.fail("survey", "-1743", 1);
    refused(&[], "Automation");
    mac.fail("*", "-600", 1);
    refused(&[], "start iTerm2");
    // The environment is iTerm2's, but the terminal is not.
    let mut elsewhere = mac.stage.command("python3");
    let on_a_terminal =
        "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    elsewhere
        .args(["-c", on_a_terminal, binary(), "spawn", "ada", "--backend", "iterm2"])
        .env("TERM_PROGRAM", "iTerm.app")
        .env("ITERM_SESSION_ID", format!("w0t0p0:{}", mac.leader_id()));
    let run = Run::from(elsewhere.output().expect("python3 runs")).expect(6);
    assert!(run.stdout.contains("is no session of iTerm2"), "{run:?}");
    mac.op("stop", &[]);
    // None of the refused spawns had an effect.
    assert_eq!(mac.stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
    mac.stage.phalanx(&["team", "delete"]).expect(0);
    mac.assert_clean(0);
}

/// SP-07, PT-03: over SSH, `auto` does not query iTerm2.
#[test]
fn iterm2_tmux_pt_03_auto_ignores_iterm2_variables_over_ssh() {
    let mac = Mac::new();
    mac.phalanx(&["team", "create", "alpha"]).expect(0);
    let mut over_ssh = mac.command(&["--json", "spawn", "ada"]);
    let run = Run::from(over_ssh.env("SSH_CONNECTION", "1 2 3 4").output().expect("phalanx runs"))
        .expect(0);
    assert_eq!(run.json()["backend"], json!("tmux"));
    assert_eq!(mac.calls(), []);
    mac.phalanx(&["down"]).expect(0);
    mac.assert_clean(1);
}

/// LY-08: after the lead's session is closed, the next spawn splits a session of a member. Without
/// any, it falls back and reports that.
#[test]
fn iterm2_ly_08_spawn_recovers_from_a_closed_lead_session() {
    let mac = Mac::new();
    mac.phalanx(&["team", "create", "alpha"]).expect(0);
    mac.phalanx(&["spawn", "ada"]).expect(0);
    mac.op("end", &[&mac.leader_id()]);
    mac.stage.phalanx(&["spawn", "ben"]).expect(0);
    assert_eq!(mac.sessions().len(), 2);
    for session in mac.sessions() {
        mac.op("end", &[session["id"].as_str().expect("an id")]);
    }
    let run = mac.stage.phalanx(&["spawn", "cem"]).expect(0);
    assert!(run.stderr.contains("neither this terminal nor any member"), "{run:?}");
    assert!(run.stderr.contains("iterm2 → pty for cem"), "nobody asked for iTerm2: {run:?}");
    mac.stage.phalanx(&["down", "--force"]);
    mac.assert_clean(0);
}

/// LY-09: the terminal exposes the id of another session, and that session is left alone.
#[test]
fn iterm2_ly_09_id_of_another_session_is_detected() {
    let mac = Mac::new();
    mac.phalanx(&["team", "create", "alpha"]).expect(0);
    mac.fail("place", "wrong-id", 1);
    let run = mac.phalanx(&["spawn", "ada", "--backend", "iterm2"]).expect(1);
    assert!(run.stderr.contains("it runs on /dev/pts/"), "{run:?}");
    wait_for("the right session has ended with its launcher", || {
        (mac.sessions().len() == 1).then_some(())
    });
    assert_eq!(mac.sessions()[0]["id"], mac.leader["id"]);
    mac.phalanx(&["team", "delete"]).expect(0);
    mac.assert_clean(1);
}

#[test]
fn iterm2_typed_input_reaches_only_our_session() {
    let mac = Mac::new();
    mac.phalanx(&["team", "create", "alpha"]).expect(0);
    let got = mac.stage.at("work/got");
    let script = format!("stty raw -echo; printf ready; exec cat >>'{}'", got.display());
    mac.phalanx(&["spawn", "raw", "--", "sh", "-c", &script]).expect(0);
    wait_for("the reader to be ready", || {
        mac.phalanx(&["peek", "raw"]).stdout.contains("ready").then_some(())
    });
    mac.phalanx(&["type", "raw", "\\(x) \"ü\";", "--enter"]).expect(0);
    mac.phalanx(&["keys", "raw", "C-c", "Up"]).expect(0);
    let expected = "\\(x) \"ü\";\r\u{3}\u{1b}[A";
    wait_for("the input to arrive", || {
        fs::read_to_string(&got).is_ok_and(|text| text == expected).then_some(())
    });
    let raw = mac.sessions().into_iter().find(|s| is_named(s, "raw")).expect("a session");
    mac.op("forget", &[raw["id"].as_str().expect("an id")]);
    let refused = mac.phalanx(&["type", "raw", "more"]).expect(4);
    assert!(refused.stderr.contains("is not touched"), "{refused:?}");
    assert_eq!(fs::read_to_string(&got).expect("a file"), expected);
    mac.op("end", &[raw["id"].as_str().expect("an id")]);
    mac.phalanx(&["down", "--force"]).expect(0);
    mac.assert_clean(1);
}

/// LY-09: each refusal of iTerm2 becomes a hint with the exit code of a backend failure, and
/// nothing is left.
#[test]
fn iterm2_ly_09_refusals_come_with_a_hint() {
    let mac = Mac::new();
    mac.phalanx(&["team", "create", "alpha"]).expect(0);
    for (mode, hint) in
        [("-1708", "hint: update iTerm2"), ("-1712", "hint: check whether iTerm2 or macOS shows")]
    {
        mac.fail("place", mode, 1);
        let run = mac.phalanx(&["spawn", "ada", "--backend", "iterm2"]).expect(6);
        assert!(run.stderr.contains(mode) && run.stderr.contains(hint), "{run:?}");
    }
    assert_eq!(mac.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
    mac.phalanx(&["team", "delete"]).expect(0);
    mac.assert_clean(1);
}

#[test]
fn iterm2_ly_10_sessions_that_do_not_close_are_reported() {
    let mac = Mac::new();
    mac.op("keep", &[]);
    mac.phalanx(&["team", "create", "alpha"]).expect(0);
    mac.phalanx(&["spawn", "ada", "--", "sleep", "300"]).expect(0);
    let ada = mac.sessions().into_iter().find(|s| is_named(s, "ada")).expect("a session");
    mac.fail("close", "ignored", 100);
    let run = mac.phalanx(&["shutdown", "ada", "--force"]);
    assert_ne!(run.code, 0, "{run:?}");
    let told = format!("{}{}", run.stdout, run.stderr);
    assert!(told.contains(ada["id"].as_str().expect("an id")), "{run:?}");
    mac.fail("close", "none", 0);
    mac.phalanx(&["down", "--force"]).expect(0);
    mac.assert_clean(1);
}

/// SEC-09, SEC-02: hostile directory names, roles and arguments arrive unchanged, and nothing in
/// them is evaluated.
#[test]
fn iterm2_sec_09_hostile_names_arrive_unchanged_and_unevaluated() {
    let mac = Mac::new();
    let canary = mac.stage.at("canary");
    let odd =
        "it's a \"dir\" $(touch canary) `touch canary` #(touch canary) $$x$$ ü 🙂; touch canary;"
            .to_owned();
    let work = mac.stage.at("work").join(&odd);
    fs::create_dir(&work).expect("dir");
    let root = mac.stage.at("root").join(&odd);
    let role = format!("\\(x) \u{1b}[2J\" & do shell script \"touch {}\" & \"", canary.display());
    let agents = root.join("agents");
    fs::create_dir_all(&agents).expect("dir");
    let named = serde_json::to_string(&role).expect("a text");
    fs::write(agents.join("odd.md"), format!("---\nname: {named}\ndescription: odd\n---\n"))
        .expect("role");
    let run = |args: &[&str]| {
        let mut command = mac.command(args);
        Run::from(
            command
                .env("PHALANX_CONFIG_DIR", &root)
                .current_dir(&work)
                .output()
                .expect("phalanx runs"),
        )
    };
    run(&["team", "create", "alpha"]).expect(0);
    let script = "printf '%s\\037' \"$PWD\" \"$@\" >said.new; mv said.new said; exec sleep 300";
    let words = [odd.as_str(), "-e", "", "line\nbreak", "back\\slash \\(x)"];
    let mut args = vec![
        "spawn",
        "ada",
        "--role",
        &role,
        "--prompt",
        &role,
        "--backend",
        "iterm2",
        "--",
        "sh",
        "-c",
        script,
        "sh",
    ];
    args.extend(words);
    run(&args).expect(0);
    let said = wait_for("the program's words", || fs::read_to_string(work.join("said")).ok());
    let said: Vec<&str> = said.split_terminator('\u{1f}').collect();
    assert_eq!(said[0], work.canonicalize().expect("path").to_string_lossy());
    assert_eq!(said[1..], words);
    run(&["down"]).expect(0);
    for dir in ["", "work", "iterm"] {
        assert!(!mac.stage.at(dir).join("canary").exists(), "in {dir:?}");
    }
    assert!(!work.join("canary").exists());
    // The role appears only in the session's name, passed as an argument to a constant script.
    for (_, args) in mac.calls().into_iter().filter(|(verb, _)| verb != "name") {
        assert!(!args.iter().any(|word| word.contains("do shell script")), "{args:?}");
    }
    mac.assert_clean(1);
}
