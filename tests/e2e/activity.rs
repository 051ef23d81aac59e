//! What members are doing: one decision, the same for every face, and `wait --until idle`, which
//! begins with what was sent before it.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{FAKE_TUI, Stage, wait_for};
use crate::requests;

/// The entry of a member in a list of members.
fn entry<'v>(members: &'v Value, name: &str) -> &'v Value {
    let found = members.as_array().and_then(|all| all.iter().find(|one| one["name"] == name));
    found.unwrap_or(&Value::Null)
}

/// What each face says about a member: state, needs and reason. The faces agree before this
/// returns, because the member may change its state between two reads.
fn agreed(stage: &Stage, name: &str) -> (String, Value, Value) {
    wait_for("the faces to agree", || {
        let read = |args: &[&str]| stage.phalanx(&[&["--json"], args].concat()).expect(0).json();
        let (status, ps, explained) = (read(&["status"]), read(&["ps"]), read(&["explain", name]));
        let team = ps.as_array().expect("teams").iter().find(|team| team["team"] == "alpha");
        let faces = [
            entry(&status["members"], name),
            entry(&team.expect("the team")["members"], name),
            &explained,
        ];
        let said = faces.map(|face| {
            let state = face["state"].as_str().unwrap_or_default().to_owned();
            (state, face["needs"].clone(), face["reason"].clone())
        });
        (said[0] == said[1] && said[1] == said[2]).then(|| said[0].clone())
    })
}

/// ST-01: every face names the same state, whatever the member is and does.
#[test]
fn tmux_st_01_every_face_says_the_same_about_each_kind_of_member() {
    let stage = Stage::new();
    stage.fake_tui(|sheet| sheet);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["spawn", "wes"]).expect(0);
    stage.phalanx(&["spawn", "clock", "--", "sleep", "600"]).expect(0);
    let log = stage.at("log").to_string_lossy().into_owned();
    let tui = ["spawn", "tia", "--profile", "fake", "--", FAKE_TUI, log.as_str()];
    stage.phalanx(&tui).expect(0);
    let modal = stage.at("modal").to_string_lossy().into_owned();
    let spawn = ["spawn", "mia", "--profile", "fake", "--until", "running", "--", FAKE_TUI];
    stage.phalanx(&[&spawn[..], &[modal.as_str(), "modal"]].concat()).expect(0);
    let is = |name: &str, state: &str, needs: Value| {
        wait_for(&format!("{name} to be {state}"), || {
            let (said, needed, _) = agreed(&stage, name);
            (said == state && needed == needs).then_some(())
        });
    };
    is("wes", "idle", Value::Null);
    is("clock", "running", Value::Null);
    is("tia", "idle", Value::Null);
    is("mia", "waiting", json!("trust"));
    assert_eq!(agreed(&stage, "mia").2, json!("Trust this folder?"));
    stage.phalanx(&["task", "create", "Sleep", "--owner", "wes", "--", "sleep", "600"]).expect(0);
    is("wes", "working", Value::Null);
    stage.phalanx(&["send", "tia", "think"]).expect(0);
    is("tia", "working", Value::Null);
    // A long turn: the message was taken, and the screen shows the work.
    wait_for("the message to be taken", || {
        let unread = stage.phalanx(&["--json", "inbox", "tia", "--peek"]).expect(0).json();
        unread.as_array().expect("messages").is_empty().then_some(())
    });
    is("tia", "working", Value::Null);
    let shown = stage.phalanx(&["status"]).expect(0).stdout;
    for words in ["waits for you", "running", "working", "trust"] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ST-01: without a lead, each face files the requests of members before it shows them, whichever
/// face comes first.
#[test]
fn st_01_member_that_asks_without_a_lead_waits_in_every_face() {
    type Member = fn(Value) -> Value;
    let faces: [(&[&str], Member); 4] = [
        (&["status"], |status| status["members"][0].clone()),
        (&["ps"], |teams| teams[0]["members"][0].clone()),
        (&["explain", "ada"], |explained| explained),
        (&["wait", "ada", "--until", "idle", "--timeout", "0.2"], |failed| {
            let said = failed["error"]["message"].as_str().unwrap_or_default();
            let needs = said.contains("ada (waits for you: permission").then_some("permission");
            json!({"state": "waiting", "needs": needs})
        }),
    ];
    for (args, member) in faces {
        let stage = Stage::without_tmux();
        requests::team(&stage);
        requests::send_as_ada(&stage, &requests::permission("id-1", "curl x"));
        let run = stage.phalanx(&[&["--json"], args].concat());
        let seen = member(run.json());
        let known = (&seen["state"], &seen["needs"]);
        assert_eq!(known, (&json!("waiting"), &json!("permission")), "{args:?}: {run:?}");
        stage.phalanx(&["down", "--force"]).expect(0);
        stage.assert_clean();
    }
}

/// ST-01: three lines that are true of a plain program: it runs, why that is known, what to type.
#[test]
fn st_01_explain_says_three_true_lines() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["spawn", "clock", "--", "sleep", "600"]).expect(0);
    let lines: Vec<String> =
        stage.phalanx(&["explain", "clock"]).expect(0).stdout.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("clock: running, for "), "{lines:?}");
    assert!(lines[1].starts_with("because ") && lines[1].ends_with("its process is alive"));
    assert!(lines[2].contains("`phalanx logs clock`"), "{lines:?}");
    let all = stage.phalanx(&["-v", "explain", "clock"]).expect(0).stdout;
    assert!(all.starts_with(&lines[0][..14]) && all.contains("launcher"), "{all}");
    assert!(!all.contains("is gone"), "{all}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ST-03: a turn that ended with an error waits for a person, in every face, until the next turn.
#[test]
fn tmux_st_03_error_on_the_screen_is_shown_until_the_next_turn() {
    let stage = Stage::new();
    stage.fake_tui(|sheet| sheet);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let log = stage.at("log").to_string_lossy().into_owned();
    let tui = ["spawn", "tia", "--profile", "fake", "--", FAKE_TUI, log.as_str(), "busy"];
    stage.phalanx(&tui).expect(0);
    let said = |state: &str| {
        wait_for(&format!("tia to be {state}"), || {
            Some(agreed(&stage, "tia")).filter(|(said, _, _)| said == state)
        })
    };
    said("idle");
    stage.phalanx(&["send", "tia", "go wrong"]).expect(0);
    let (_, needs, reason) = said("waiting");
    assert_eq!((needs, reason), (json!("error"), json!("the key is refused")));
    let explained = stage.phalanx(&["explain", "tia"]).expect(0).stdout;
    assert!(explained.contains("`phalanx send tia TEXT` asks it to continue"), "{explained}");
    let told = wait_for("the report", || {
        let mail = stage.phalanx(&["inbox", "team-lead", "--all", "--peek"]).expect(0).stdout;
        mail.contains("the key is refused").then_some(mail)
    });
    assert!(told.contains("tia"), "{told}");

    stage.phalanx(&["send", "tia", "once more"]).expect(0);
    let (_, needs, reason) = said("idle");
    assert_eq!((needs, reason), (Value::Null, Value::Null));
    let turns = fs::read_to_string(stage.at("log")).expect("the log");
    assert!(turns.contains("once more"), "the error keeps no message back: {turns}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ST-02: what was sent before the wait has been worked on when it returns.
#[test]
fn tmux_st_02_wait_for_idle_begins_with_what_was_sent_before() {
    let stage = Stage::new();
    stage.fake_tui(|sheet| sheet);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let log = stage.at("log").to_string_lossy().into_owned();
    let tui = ["spawn", "tia", "--profile", "fake", "--", FAKE_TUI, log.as_str(), "slowly"];
    stage.phalanx(&tui).expect(0);
    for round in 1..=3 {
        stage.phalanx(&["send", "tia", &format!("round {round}")]).expect(0);
        stage.phalanx(&["wait", "tia", "--until", "idle"]).expect(0);
        let turns = fs::read_to_string(&log).expect("a log");
        assert!(turns.contains(&format!("round {round}")), "round {round} in {turns}");
        let screen = stage.phalanx(&["peek", "tia"]).expect(0).stdout;
        assert!(screen.trim_end().ends_with("= idle\n>"), "round {round}: {screen}");
    }
    stage.phalanx(&["spawn", "wes"]).expect(0);
    for round in 1..=3 {
        let made = stage.at("work").join(format!("made-{round}"));
        let command = format!("sleep 0.3; touch '{}'", made.display());
        let owner = if round == 2 { &["--owner", "wes"][..] } else { &[] };
        let create = [&["task", "create", "Make"], owner, &["--", "sh", "-c", &command]].concat();
        stage.phalanx(&create).expect(0);
        stage.phalanx(&["wait", "wes", "--until", "idle"]).expect(0);
        assert!(made.exists(), "round {round}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ST-02: a plain program is never idle; `quiet` is for it, on each backend.
#[test]
fn tmux_st_02_plain_program_is_quiet_and_never_idle() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    for backend in ["pty", "tmux"] {
        let name = format!("on-{backend}");
        let spawn = ["spawn", &name, "--backend", backend, "--", "sh", "-c"];
        let prints = "until [ -e stop ]; do echo line; sleep 0.05; done; echo end; sleep 600";
        stage.phalanx(&[&spawn[..], &[prints]].concat()).expect(0);
        let refused = stage.phalanx(&["wait", &name, "--until", "idle"]).expect(1);
        assert!(refused.stderr.contains("--until quiet"), "{refused:?}");
        let over = stage.phalanx(&["wait", &name, "--until", "quiet=0.7", "--timeout", "1.5"]);
        let over = over.expect(5);
        assert!(over.stderr.contains(&format!("{name} (running) was not quiet")), "{over:?}");
        fs::write(stage.at("work/stop"), "").expect("written");
        stage.phalanx(&["wait", &name, "--until", "quiet=0.7"]).expect(0);
        let screen = stage.phalanx(&["peek", &name]).expect(0).stdout;
        assert!(screen.trim_end().ends_with("end"), "{screen}");
        fs::remove_file(stage.at("work/stop")).expect("removed");
    }
    stage.phalanx(&["wait", "--until", "idle"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ST-01: a failed member is shown as restarting while the lead waits to start it again, and the
/// wait says what it waits for.
#[test]
fn st_01_restart_is_shown_until_it_happens() {
    let stage = Stage::without_tmux();
    let text = "[team]\nname = \"alpha\"\nfinish = \"manual\"\n\
                [[member]]\nname = \"falls\"\nrun = [\"sh\", \"-c\", \"sleep 1; exit 3\"]\n\
                restart = \"on-failure\"\n";
    let lead = stage.start(&["up", &stage.file("team.toml", text)]);
    let left = wait_for("a pause before a start", || {
        let run = stage.phalanx(&["--json", "status"]);
        let status: Value = serde_json::from_str(&run.stdout).ok()?;
        Some(entry(&status["left"], "falls").clone()).filter(|left| left["state"] == "restarting")
    });
    assert_eq!(left["resumable"], json!(false), "the lead starts it: {left}");
    let reason = left["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("in ") && reason.contains("exit code 3"), "{left}");
    stage.phalanx(&["down", "--force"]).expect(0);
    drop(lead.end());
    stage.assert_clean();
}
