//! `spawn`: the properties of started teammates, and the clean-up after failed starts.

use serde_json::json;

use crate::harness::{Run, SETTLED, Stage, binary, wait_for};

#[test]
fn spawn_returns_the_documented_fields() {
    let stage = super::stage();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let made = stage
        .phalanx(&["--json", "spawn", "ada", "--role", "tester", "--prompt", "hello"])
        .expect(0)
        .json();
    assert_eq!(made["agent_id"], json!("ada@alpha"));
    assert_eq!(made["color"], json!("blue"));
    assert_eq!(made["agent_type"], json!("tester"));
    assert_eq!(made["backend"], json!("tmux"));
    assert!(made["tmux_pane_id"].as_str().is_some_and(|p| p.starts_with('%')), "{made}");
    assert_eq!(
        made["cwd"],
        json!(stage.at("work").canonicalize().expect("path").to_string_lossy())
    );
    let config =
        std::fs::read_to_string(stage.root().join("teams/alpha/config.json")).expect("config");
    let config: serde_json::Value = serde_json::from_str(&config).expect("json");
    assert_eq!(config["members"][1]["tmuxPaneId"], made["tmux_pane_id"]);
    assert_eq!(config["members"][1]["backendType"], json!("tmux"));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn model_is_refused_for_a_program_that_takes_none() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    for more in [&[][..], &["--", "sleep", "300"]] {
        let run = stage.phalanx(&[&["spawn", "ada", "--model", "opus"], more].concat()).expect(2);
        assert!(
            run.stderr.contains("takes no model") && run.stderr.contains("omit `--model`"),
            "{run:?}"
        );
    }
    // A default model applies only to members whose program takes a model.
    let text = "[team]\nname = \"beta\"\n[defaults]\nmodel = \"opus\"\n[[member]]\nname = \"ada\"\n\
                [[task]]\nkey = \"one\"\nsubject = \"One\"\nrun = [\"true\"]\n";
    stage.phalanx(&["up", &stage.file("beta.toml", text)]).expect(0);
}

#[test]
fn tools_of_the_command_line_reach_the_program_and_the_team_file() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.profile("held", HELD);
    let words = [
        "spawn",
        "ada",
        "--profile",
        "held",
        "--allowed-tools",
        "Read,Bash(git:*)",
        "--allowed-tools",
    ];
    stage.phalanx(&[&words[..], &["Grep", "--disallowed-tools", "WebFetch"]].concat()).expect(0);
    let file = stage.at("work").join("argv");
    let written = || std::fs::read_to_string(&file).ok().filter(|text| text.ends_with('\n'));
    let argv = wait_for("its arguments", written);
    assert_eq!(argv, "--tools Read,Bash,Grep --disallowedTools WebFetch\n");
    let config =
        std::fs::read_to_string(stage.root().join("teams/alpha/config.json")).expect("config");
    let config: serde_json::Value = serde_json::from_str(&config).expect("json");
    let entry = &config["members"][1];
    assert_eq!(entry["allowedTools"], json!(["Read", "Bash(git:*)", "Grep"]));
    assert_eq!(entry["disallowedTools"], json!(["WebFetch"]));
    let run = stage.phalanx(&["spawn", "bob", "--allowed-tools", "Bash(("]).expect(2);
    assert!(run.stderr.contains("Bash(("), "{run:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// A profile that takes tool lists; its program writes its arguments to a file.
const HELD: &str = "about = \"takes lists of tools\"\nruns = \"native\"\nreads_mail = false\n[launch]\n\
    argv = [[\"sh\", \"-c\", 'echo \"$@\" >argv; exec sleep 300', \"sh\"], \
    [\"--tools\", \"{allowed_tools}\"], [\"--disallowedTools\", \"{disallowed_tools}\"]]\n\
    prompt = \"mailbox\"\n[ready]\nwhen = \"running\"\n";

/// Asserts that the team has no member and no files of one.
fn assert_nobody(stage: &Stage, backend: &str) {
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
    for part in ["inboxes", "phalanx/members", "phalanx/specs"] {
        let dir = stage.root().join("teams/alpha").join(part);
        let left: Vec<String> = std::fs::read_dir(dir)
            .expect("dir")
            .flatten()
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .filter(|n| n != "team-lead.json")
            .collect();
        assert_eq!(left, Vec::<String>::new(), "{backend}: {part}");
    }
}

/// SP-09: a missing program, a missing directory, and a program that exits before it has settled.
#[test]
fn sp_09_failed_spawn_leaves_nothing_behind() {
    for (backend, stage) in [("tmux", super::stage()), ("pty", super::stage_without_tmux())] {
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        stage.profile("settled", SETTLED);
        let settled =
            ["spawn", "bob", "--backend", backend, "--profile", "settled", "--", "sh", "-c"];
        let scripts = [
            "echo first words; exit 7",
            "echo words; sleep 0.05; exit 7",
            "echo words; sleep 0.5; exit 7",
        ];
        for script in scripts {
            let run = stage.phalanx(&[&settled[..], &[script]].concat()).expect(1);
            assert!(run.stderr.contains("exit code 7"), "{backend} {script}: {run:?}");
            assert!(
                run.stderr.contains("words"),
                "the last lines of the screen: {backend} {script}: {run:?}"
            );
        }
        let run = stage
            .phalanx(&["spawn", "bob", "--backend", backend, "--", "no-such-program", "x"])
            .expect(1);
        assert!(run.stderr.contains("no-such-program"), "{run:?}");
        let run = stage
            .phalanx(&["spawn", "bob", "--backend", backend, "--cwd", "/no/such/dir"])
            .expect(1);
        assert!(run.stderr.contains("/no/such/dir"), "{run:?}");
        assert_nobody(&stage, backend);
        stage.phalanx(&["team", "delete"]).expect(0);
        stage.assert_clean();
    }
}

/// SP-09: a program that was executed has started, however soon it exits; status, journal and `wait`
/// report that.
#[test]
fn sp_09_early_exit_is_reported_by_status_and_wait() {
    for (backend, stage) in [("tmux", super::stage()), ("pty", super::stage_without_tmux())] {
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        let scripts = [
            "echo words; exit 7",
            "echo words; sleep 0.05; exit 7",
            "echo words; sleep 0.5; exit 7",
            "while ! [ -e go ]; do sleep 0.02; done; exit 7",
        ];
        let go = stage.at("work/go");
        for script in scripts {
            let run =
                stage.phalanx(&["spawn", "bob", "--backend", backend, "--", "sh", "-c", script]);
            std::fs::write(&go, "").expect("go");
            run.expect(0);
            check_reported(&stage, 7);
            stage.phalanx(&["shutdown", "bob"]).expect(0);
            assert_nobody_left(&stage);
            std::fs::remove_file(&go).expect("go");
        }
        stage.phalanx(&["team", "delete"]).expect(0);
        stage.assert_clean();
    }
}

/// Asserts that status, journal and `wait` report the end of `bob`.
fn check_reported(stage: &Stage, code: i64) {
    let wait = ["wait", "bob", "--until", "gone", "--timeout", "20"];
    stage.phalanx(&wait).expect(i32::from(code != 0));
    let member = &stage.phalanx(&["--json", "status"]).expect(0).json()["members"][0];
    assert_eq!(member["state"], json!(if code == 0 { "completed" } else { "failed" }), "{member}");
    let words = format!("exited with code {code} after ");
    assert!(member["reason"].as_str().is_some_and(|why| why.starts_with(&words)), "{member}");
    for until in ["idle", "ready"] {
        let run = stage.phalanx(&["wait", "bob", "--until", until]).expect(1);
        assert!(run.stderr.contains(&words), "{run:?}");
    }
    let event = stage.wait_event("alpha", "member_exited", "bob");
    assert_eq!(event["detail"]["exit_code"], json!(code), "{event}");
    let events = stage.phalanx(&["--json", "events"]).expect(0).stdout;
    assert!(events.lines().any(|line| line.contains("member_exited")), "{events}");
}

fn assert_nobody_left(stage: &Stage) {
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
}

#[test]
fn command_that_exits_0_early_counts_as_started() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "bob", "--", "true"]).expect(0);
    check_reported(&stage, 0);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// CR-01: under a lead, a member that exits leaves the team, and the journal records its exit code.
#[test]
fn lead_removes_a_command_that_exits_early() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let script = "while ! [ -e go ]; do sleep 0.02; done; exit 7";
    stage.phalanx(&["spawn", "bob", "--", "sh", "-c", script]).expect(0);
    std::fs::write(stage.at("work/go"), "").expect("go");
    assert_eq!(stage.wait_event("alpha", "member_exited", "bob")["detail"]["exit_code"], json!(7));
    assert_eq!(
        stage.wait_event("alpha", "member_left", "bob")["detail"]["reason"],
        json!("exit code 7")
    );
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

fn names(list: &serde_json::Value) -> Vec<&str> {
    let list = list.as_array().map(Vec::as_slice).unwrap_or_default();
    list.iter().filter_map(|one| one["name"].as_str()).collect()
}

#[test]
fn spawn_of_several_names_shares_the_options() {
    for (backend, stage) in [("tmux", super::stage()), ("pty", super::stage_without_tmux())] {
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        let script = "echo $PHALANX_AGENT_NAME >>names; exec sleep 300";
        let words = [
            "--json",
            "spawn",
            "ann",
            "ben",
            "cleo",
            "--backend",
            backend,
            "--",
            "sh",
            "-c",
            script,
        ];
        let made = stage.phalanx(&words).expect(0).json();
        assert_eq!(names(&made), ["ann", "ben", "cleo"]);
        assert!(
            made.as_array().is_some_and(|all| all.iter().all(|one| one["backend"] == backend)),
            "{made}"
        );
        wait_for("each has run the command", || {
            let said = std::fs::read_to_string(stage.at("work/names")).unwrap_or_default();
            let mut said: Vec<&str> = said.lines().collect();
            said.sort_unstable();
            (said == ["ann", "ben", "cleo"]).then_some(())
        });
        let plans = stage.phalanx(&["--json", "spawn", "dan", "eve", "--dry-run"]).expect(0).json();
        assert_eq!(names(&plans), ["dan", "eve"]);
        let shown = stage.phalanx(&["spawn", "dan", "eve"]).expect(0);
        assert_eq!(shown.stdout.lines().count(), 2, "{shown:?}");
        let twins =
            stage.phalanx(&["--json", "spawn", "dan", "fay", "fay", "--unique"]).expect(0).json();
        assert_eq!(names(&twins), ["dan-2", "fay", "fay-2"]);
        stage.phalanx(&["down", "--force"]).expect(0);
        stage.assert_clean();
    }
}

#[test]
fn sp_11_one_bad_name_refuses_the_whole_batch() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let before = stage.processes();
    let many: Vec<String> = (0..300).map(|n| format!("m{n}")).collect();
    let full: Vec<&str> = many.iter().map(String::as_str).collect();
    for (words, code, said) in [
        (&["ann", "Ann"][..], 2, "given twice"),
        (&["ann", "../x"], 2, "../x"),
        (&["ann", "ben", "ADA"], 4, "`ada`"),
        (&["ann", "ben", "--worktree=feat/x"], 2, "feat/x"),
        (&full, 4, "is full"),
    ] {
        let run = stage.phalanx(&[&["spawn"], words].concat()).expect(code);
        assert!(run.stderr.contains(said), "{run:?}");
        assert_eq!(
            names(&stage.phalanx(&["--json", "status"]).expect(0).json()["members"]),
            ["ada"]
        );
    }
    assert_eq!(stage.processes(), before);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sp_10_failed_member_does_not_affect_the_rest_of_the_batch() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.profile("settled", SETTLED);
    let script = "[ $PHALANX_AGENT_NAME != ben ] || { echo last words; exit 7; }; exec sleep 300";
    let words =
        ["--json", "spawn", "ann", "ben", "cleo", "--profile", "settled", "--", "sh", "-c", script];
    let run = stage.phalanx(&words).expect(1);
    let made = run.json();
    assert_eq!(names(&made), ["ann", "ben", "cleo"]);
    assert!(made[0]["pid"].is_i64() && made[2]["pid"].is_i64(), "{made}");
    assert_eq!(made[1]["error"]["kind"], json!("failed"));
    assert!(
        made[1]["error"]["message"].as_str().is_some_and(|said| said.contains("exit code 7")),
        "{made}"
    );
    assert!(run.stderr.contains("error: `ben` did not start: exit code 7"), "{run:?}");
    assert!(run.stderr.contains("last words"), "{run:?}");
    assert_eq!(
        names(&stage.phalanx(&["--json", "status"]).expect(0).json()["members"]),
        ["ann", "cleo"]
    );
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn id_03_until_running_returns_before_the_program_is_ready() {
    let stage = super::stage_without_tmux();
    let slow = "about = \"is ready after a minute\"\nruns = \"native\"\nreads_mail = true\n[launch]\n\
                argv = [[\"sleep\", \"300\"]]\nprompt = \"mailbox\"\n[ready]\n";
    stage.profile("slow", &format!("{slow}when = \"settled\"\nsettle_ms = 60000\n"));
    stage.profile("mute", &format!("{slow}when = \"hello\"\n"));
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    for profile in ["slow", "mute"] {
        let words = ["--json", "spawn", profile, "--profile", profile, "--until", "running"];
        assert!(stage.phalanx(&words).expect(0).json()["pid"].is_i64());
        let run =
            stage.phalanx(&["wait", profile, "--until", "ready", "--timeout", "0.2"]).expect(5);
        assert!(run.stderr.contains("did not become ready"), "{run:?}");
        stage.phalanx(&["send", profile, "hello"]).expect(0);
    }
    stage.phalanx(&["spawn", "ada", "--until", "running"]).expect(0);
    stage.phalanx(&["wait", "ada", "--until", "ready", "--timeout", "20"]).expect(0);
    stage.phalanx(&["spawn", "gone", "--until", "running", "--", "no-such-program"]).expect(1);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// ID-03: a program that must report readiness and does not fails to spawn, even if it keeps
/// running. A report counts only for the run that sent it.
#[test]
fn id_03_program_that_never_reports_ready_fails_to_spawn() {
    let stage = super::stage_without_tmux();
    let mute = "about = \"never finds its mailbox\"\nruns = \"native\"\nreads_mail = true\n[launch]\n\
                argv = [[\"sleep\", \"300\"]]\nprompt = \"mailbox\"\n[ready]\nwhen = \"hello\"\n";
    stage.profile("mute", mute);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let run = stage.phalanx(&["spawn", "bob", "--profile", "mute", "--deadline", "1"]).expect(5);
    assert!(run.stderr.contains("`bob` did not start within"), "{run:?}");
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
    let ada = stage.phalanx(&["--json", "spawn", "ada"]).expect(0).json();
    let record =
        std::fs::read(stage.root().join("teams/alpha/phalanx/members/ada.json")).expect("a record");
    let record: serde_json::Value = serde_json::from_slice(&record).expect("json");
    let environ = std::fs::read(format!("/proc/{}/environ", ada["pid"])).expect("it runs");
    let environ = String::from_utf8_lossy(&environ).replace('\0', "\n");
    let run = record["incarnation"].as_str().expect("a run");
    for line in
        ["PHALANX_TEAM=alpha", "PHALANX_AGENT_NAME=ada", &format!("PHALANX_INCARNATION={run}")]
    {
        assert!(environ.lines().any(|had| had == line), "{line} in {environ}");
    }
    assert!(record["ready_at"].is_u64(), "{record}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// EN-01, EN-03, EN-04, SP-12: a teammate gets the environment of the caller without session
/// markers, plus its identity.
#[test]
fn en_01_teammate_gets_the_callers_environment_and_its_identity() {
    let stage = super::stage();
    // The tmux server is started with a different environment from the caller.
    stage.tmux(&["new-session", "-d", "-s", "old", "sleep", "300"]).expect("session");
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let script = "env >env.txt; t=no; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && t=yes; echo tty=$t >tty.new; mv tty.new tty.txt; exec sleep 300";
    let mut command = stage.command(crate::harness::binary());
    command
        .env("API_KEY", "from-the-leader")
        .env("CLAUDECODE", "1")
        .env("ITERM_SESSION_ID", "w0t0p0")
        .env("PHALANX_AGENT_NAME", "team-lead")
        .env("TERM_PROGRAM", "iTerm.app")
        .args(["spawn", "bob", "--env", "EXTRA=a b", "--", "sh", "-c", script]);
    let output = command.output().expect("phalanx");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tty = wait_for("the program has looked", || {
        std::fs::read_to_string(stage.at("work/tty.txt")).ok()
    });
    assert!(tty.contains("tty=yes"), "{tty}");
    let env = std::fs::read_to_string(stage.at("work/env.txt")).expect("env");
    let has = |line: &str| env.lines().any(|l| l == line);
    for line in [
        "API_KEY=from-the-leader",
        "EXTRA=a b",
        "PHALANX_TEAM=alpha",
        "PHALANX_AGENT_NAME=bob",
        "PHALANX_AGENT_ID=bob@alpha",
    ] {
        assert!(has(line), "{line} is missing in\n{env}");
    }
    for name in ["CLAUDECODE=", "ITERM_SESSION_ID=", "TERM_PROGRAM="] {
        assert!(!env.lines().any(|l| l.starts_with(name)), "{name} is there");
    }
    for name in ["TMUX=", "TMUX_PANE=%", "TERM=tmux", "PHALANX_INCARNATION=", "PHALANX_TOKEN="] {
        assert!(env.lines().any(|l| l.starts_with(name)), "{name} is missing");
    }
    stage.phalanx(&["down"]).expect(0);
}

#[test]
fn sec_06_secrets_stay_out_of_command_lines() {
    let stage = super::stage();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let canary = format!("canary-{}", std::process::id());
    let mut command = stage.command(crate::harness::binary());
    command.env("SECRET", &canary).args(["spawn", "bob", "--", "sleep", "300"]);
    assert!(command.output().expect("phalanx").status.success());
    let starts = stage.tmux(&["list-panes", "-a", "-F", "#{pane_start_command}"]).expect("server");
    assert!(!starts.contains(&canary), "{starts}");
    for line in stage.processes() {
        assert!(!line.contains(&canary), "{line}");
    }
    let specs =
        std::fs::read_dir(stage.root().join("teams/alpha/phalanx/specs")).expect("dir").count();
    assert_eq!(specs, 0, "the spec is unlinked once read");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sd_09_grandchildren_end_with_their_teammate() {
    for backend in ["tmux", "pty"] {
        let stage = super::stage();
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        let script = "setsid sleep 301 & nohup sleep 302 >/dev/null 2>&1 & (trap '' HUP TERM; sleep 303) & touch up; wait";
        stage.phalanx(&["spawn", "bob", "--backend", backend, "--", "sh", "-c", script]).expect(0);
        wait_for("the program to be up", || stage.at("work/up").exists().then_some(()));
        let mut bystander = stage.command("sleep").arg("304").spawn().expect("bystander");
        stage.phalanx(&["shutdown", "bob"]).expect(0);
        let left: Vec<String> =
            stage.processes().into_iter().filter(|l| !l.contains("sleep 304")).collect();
        assert_eq!(left, Vec::<String>::new(), "{backend}");
        assert!(bystander.try_wait().expect("wait").is_none(), "the bystander lives");
        bystander.kill().expect("kill");
        bystander.wait().expect("wait");
        stage.phalanx(&["team", "delete"]).expect(0);
        stage.assert_clean();
    }
}

#[test]
fn sd_09_shutdown_ends_the_processes_of_a_killed_launcher() {
    let stage = super::stage();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let script = "(setsid sh -c 'trap \"\" HUP TERM; while :; do sleep 305; done' &) ; \
                  (setsid nohup sleep 306 >/dev/null 2>&1 &) ; (trap '' HUP TERM; sleep 307) & touch up; wait";
    let spawned =
        stage.phalanx(&["spawn", "bob", "--backend", "pty", "--json", "--", "sh", "-c", script]);
    spawned.expect(0);
    let mut bystander = stage.command("sleep").arg("304").spawn().expect("bystander");
    let escaped = || stage.processes().into_iter().filter(|l| l.contains("sleep 30")).count();
    wait_for("all to be up", || (stage.at("work/up").exists() && escaped() >= 4).then_some(()));
    let record = stage.root().join("teams/alpha/phalanx/members/bob.json");
    let record: serde_json::Value =
        serde_json::from_slice(&std::fs::read(record).expect("a record")).expect("json");
    let launcher = record["start"]["launcher"]["pid"].to_string();
    let killed = std::process::Command::new("kill").args(["-9", &launcher]).status();
    assert!(killed.expect("kill is there").success());
    assert!(escaped() >= 2, "the test is worth something only if they outlive it");
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    let left: Vec<String> =
        stage.processes().into_iter().filter(|l| !l.contains("sleep 304")).collect();
    assert_eq!(left, Vec::<String>::new());
    assert!(bystander.try_wait().expect("wait").is_none(), "the bystander lives");
    bystander.kill().expect("kill");
    bystander.wait().expect("wait");
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// SP-12: the standard streams of a program are a terminal on every backend, whatever those of
/// `spawn` are.
#[test]
fn tmux_sp_12_programs_get_a_terminal_when_spawn_runs_on_pipes() {
    for backend in ["tmux", "pty"] {
        let stage = super::stage();
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        let script =
            "for fd in 0 1 2; do test -t $fd && echo $fd >> up; done; echo end >> up; read x";
        let mut command = stage.command(binary());
        command.args(["spawn", "bob", "--backend", backend, "--", "sh", "-c", script]);
        let pipe = std::process::Stdio::piped;
        let spawned =
            command.stdin(pipe()).stdout(pipe()).stderr(pipe()).output().expect("phalanx runs");
        assert!(spawned.status.success(), "{spawned:?}");
        let said = wait_for("the program's word", || {
            let said = std::fs::read_to_string(stage.at("work/up")).unwrap_or_default();
            said.ends_with("end\n").then_some(said)
        });
        assert_eq!(said, "0\n1\n2\nend\n", "{backend}");
        stage.phalanx(&["shutdown", "bob"]).expect(0);
        stage.phalanx(&["team", "delete"]).expect(0);
        stage.assert_clean();
    }
}

#[test]
fn msg_16_messages_to_a_plain_command_are_refused() {
    let stage = super::stage_without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "log", "--", "sleep", "300"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.phalanx(&["send", "log", "hello"]).expect(4);
    let all = stage.phalanx(&["--json", "broadcast", "hello"]).expect(0).json();
    assert_eq!(all["recipients"], json!(["ada"]));
    let sent =
        stage.phalanx(&["--json", "send", "ada", "hi", "--summary", "greeting"]).expect(0).json();
    assert_eq!(sent["routing"]["target"], json!("ada"));
    wait_for("the worker has read it", || {
        let inbox = stage.phalanx(&["--json", "inbox", "ada", "--peek"]).expect(0).json();
        inbox.as_array().is_some_and(Vec::is_empty).then_some(())
    });
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// SP-13: launchers and workers run the binary that started them, not the `phalanx` on `PATH`.
#[test]
fn sp_13_members_run_the_binary_that_started_them() {
    let mut stage = super::stage_without_tmux();
    stage.shadow("phalanx", "#!/bin/sh\ntouch ../shadowed\nexit 1\n");
    let link = stage.at("another name");
    std::os::unix::fs::symlink(binary(), &link).expect("symlink");
    let run = |args: &[&str]| {
        let mut command = stage.command(&link.to_string_lossy());
        Run::from(command.args(args).output().expect("phalanx runs")).expect(0)
    };
    run(&["team", "create", "demo"]);
    let made = run(&["--json", "spawn", "ada"]).json();
    let program = std::fs::read_link(format!("/proc/{}/exe", made["pid"])).expect("it runs");
    assert_eq!(program, std::fs::canonicalize(binary()).expect("binary"));
    run(&["down"]);
    assert!(!stage.at("shadowed").exists());
    stage.assert_clean();
}

/// SP-11: of repeated or concurrent spawns with one name, exactly one succeeds; a spawn into an
/// unknown team fails.
#[test]
fn sp_11_concurrent_spawns_of_one_name_make_one_member() {
    let stage = super::stage_without_tmux();
    assert!(stage.phalanx(&["spawn", "ada", "-t", "nowhere"]).expect(3).stderr.contains("nowhere"));
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    let before = stage.processes();
    for again in ["ada", "Ada"] {
        let run = stage.phalanx(&["spawn", again]).expect(4);
        assert!(
            run.stderr.contains("`ada`") && run.stderr.contains("phalanx shutdown ada"),
            "{run:?}"
        );
    }
    let many: Vec<_> = (0..8).map(|_| stage.start(&["spawn", "ben"])).collect();
    let codes: Vec<i32> = many.into_iter().map(|run| run.end().code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert!(codes.iter().all(|code| [0, 4].contains(code)), "{codes:?}");
    assert_eq!(stage.processes().len(), 2 * before.len(), "{:?}", stage.processes());
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// MSG-13: a worker that got a prompt is idle in the team file; an agent that starts with a prompt
/// is active.
#[test]
fn msg_13_worker_with_a_prompt_but_no_task_is_idle() {
    let stage = super::stage_without_tmux();
    crate::fake::install(&stage);
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--prompt", "good luck"]).expect(0);
    stage
        .phalanx(&["spawn", "ben", "--profile", "fake", "--prompt", "begin", "--", "approve"])
        .expect(0);
    let shown = stage.phalanx(&["--json", "team", "show"]).expect(0).json();
    let active = |name: &str| {
        let members = shown["members"].as_array().expect("a list");
        members.iter().find(|m| m["name"] == name).map(|m| m["isActive"].clone())
    };
    assert_eq!((active("ada"), active("ben")), (Some(false.into()), Some(true.into())));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
