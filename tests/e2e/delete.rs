//! `team delete` decides by the live processes which members are alive, and has no effect when it
//! refuses (SD-04).

use serde_json::{Value, json};

use crate::harness::{Stage, binary, wait_for};

/// A team with one tmux member in the state that `make` sets up.
struct Row {
    state: &'static str,
    make: fn(&Stage),
    /// The exit code of `team delete` without `--force`; 4 means that the error names the member.
    plain: i32,
}

const TABLE: [Row; 6] = [
    Row { state: "alive", make: busy, plain: 4 },
    Row { state: "idle", make: idle, plain: 4 },
    Row { state: "shutting down", make: shutting_down, plain: 4 },
    Row { state: "dead pid", make: dead, plain: 0 },
    Row { state: "missing pane", make: missing, plain: 0 },
    Row { state: "foreign with a living pane", make: foreign, plain: 4 },
];

/// The journaled actions on the team or its member so far.
fn acts(stage: &Stage) -> Vec<String> {
    let acts =
        ["shutdown_requested", "placement_verdict", "member_left", "task_released", "team_deleted"];
    let names =
        stage.journal("alpha").into_iter().filter_map(|e| e["event"].as_str().map(str::to_owned));
    names.filter(|name| acts.contains(&name.as_str())).collect()
}

fn record(stage: &Stage) -> Value {
    let path = stage.root().join("teams/alpha/phalanx/members/ada.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("record")).expect("JSON")
}

fn idle(stage: &Stage) {
    stage.phalanx(&["spawn", "ada", "--backend", "tmux"]).expect(0);
}

/// Its command ends at the end of its grace only, so that the member is asked as long as the test
/// needs.
fn busy(stage: &Stage) {
    idle(stage);
    stage
        .phalanx(&[
            "task",
            "create",
            "Long",
            "--",
            "sh",
            "-c",
            "trap '' TERM; until [ -e go ]; do sleep 0.05; done",
        ])
        .expect(0);
    stage.wait_event("alpha", "task_claimed", "1");
}

fn shutting_down(stage: &Stage) {
    busy(stage);
    // On a busy machine the grace of the command is soon over.
    let pid = record(stage)["start"]["program"]["pid"].to_string();
    assert!(stage.command("kill").args(["-STOP", &pid]).status().expect("kill").success());
    stage.phalanx(&["shutdown", "ada", "--no-wait", "--deadline", "60"]).expect(0);
}

fn dead(stage: &Stage) {
    idle(stage);
    let start = &record(stage)["start"];
    for process in ["program", "launcher"] {
        let pid = start[process]["pid"].to_string();
        let _ = stage.command("kill").args(["-KILL", &pid]).output().expect("kill");
    }
    have_ended(start);
}

/// Waits for the processes of a run to exit. Reads `/proc/PID/stat`, because an exiting process
/// already has an empty command line.
fn have_ended(start: &Value) {
    let has_ended = |process: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", start[process]["pid"]))
            .unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
    };
    wait_for("their end", || ["program", "launcher"].into_iter().all(has_ended).then_some(()));
}

fn missing(stage: &Stage) {
    idle(stage);
    let start = &record(stage)["start"];
    let panes = stage.panes();
    let pane = panes.first().and_then(|pane| pane.split(' ').next()).expect("its pane");
    stage.tmux(&["kill-pane", "-t", pane]).expect("killed");
    have_ended(start);
}

/// Adds a native member that phalanx did not start: a pane and an entry in the team file.
fn foreign(stage: &Stage) {
    stage.tmux(&["new-session", "-d", "-s", "theirs", "sleep 600"]).expect("session");
    let pane =
        stage.tmux(&["list-panes", "-a", "-F", "#{pane_id}"]).expect("panes").trim().to_owned();
    let path = stage.root().join("teams/alpha/config.json");
    let mut file: Value =
        serde_json::from_str(&std::fs::read_to_string(&path).expect("team")).expect("JSON");
    let entry = json!({
        "agentId": "ada@alpha", "name": "ada", "agentType": "general-purpose", "joinedAt": 1, "cwd": "/",
        "tmuxPaneId": pane, "backendType": "tmux", "subscriptions": [], "isActive": false,
    });
    file["members"].as_array_mut().expect("members").push(entry);
    std::fs::write(&path, file.to_string()).expect("team");
}

#[test]
fn tmux_sd_04_delete_refuses_live_members_without_side_effects() {
    for Row { state, make, plain } in TABLE {
        let stage = Stage::new();
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        make(&stage);
        let asked = acts(&stage);
        let run = stage.phalanx(&["team", "delete"]);
        assert_eq!(run.code, plain, "{state}: {run:?}");
        if plain == 4 {
            assert!(run.stderr.contains("ada"), "{state}: {run:?}");
            assert_eq!(acts(&stage), asked, "{state}: nothing was done before it refused");
            let task = stage.phalanx(&["--json", "task", "list"]).expect(0).json();
            assert!(task[0].is_null() || task[0]["status"] == "in_progress", "{state}: {task}");
        }
        assert_eq!(stage.root().join("teams/alpha").exists(), plain == 4, "{state}");
    }
}

#[test]
fn tmux_sd_04_sd_05_force_delete_leaves_foreign_members_alone() {
    for Row { state, make, .. } in TABLE {
        let stage = Stage::new();
        stage.phalanx(&["team", "create", "alpha"]).expect(0);
        make(&stage);
        let run = stage.phalanx(&["team", "delete", "--force"]).expect(0);
        assert!(!stage.root().join("teams/alpha").exists(), "{state}: {run:?}");
        let foreign = state.starts_with("foreign");
        assert_eq!(stage.panes().len(), usize::from(foreign), "{state}: {:?}", stage.panes());
        assert_eq!(run.stderr.contains("not asked: ada"), foreign, "{state}: {run:?}");
    }
}

/// `down` neither asks a foreign member to exit nor closes its pane; the team stays.
#[test]
fn tmux_sd_04_down_refuses_while_a_foreign_member_lives() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    foreign(&stage);
    stage.phalanx(&["down"]).expect(4);
    assert!(stage.root().join("teams/alpha").exists());
    stage.phalanx(&["down", "--force"]).expect(0);
    assert_eq!(stage.panes().len(), 1);
}

#[test]
fn down_writes_the_report_before_deleting_the_team() {
    let stage = Stage::without_tmux();
    let manifest = "[team]\nname = \"site\"\nfinish = \"manual\"\n[[member]]\nname = \"ann\"\n[[task]]\nkey = \"build\"\n\
                    subject = \"Build the site\"\nrun = [\"sh\", \"-c\", \"echo broken; exit 3\"]\n";
    let manifest = stage.file("site.toml", manifest);
    for (format, args) in [("text", &[][..]), ("json", &["--json"])] {
        stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
        stage.wait_event("site", "task_failed", "1");
        let file = format!("report.{format}");
        let taken = stage.phalanx(&["down", "--report", "site.toml"]).expect(2);
        stage.phalanx(&["down", "--report", "missing/report.md"]).expect(2);
        assert!(
            taken.stderr.contains("exists") && stage.root().join("teams/site").exists(),
            "{taken:?}"
        );
        stage.phalanx(&[args, &["down", "--force", "--report", &file]].concat()).expect(0);
        assert!(!stage.root().join("teams/site").exists());
        let report = std::fs::read_to_string(stage.at("work").join(&file)).expect("a report");
        if format == "json" {
            let report: Value = serde_json::from_str(&report).expect("json");
            assert_eq!((&report["team"], &report["success"]), (&json!("site"), &json!(false)));
            assert_eq!(report["tasks"][0]["tail"], json!("broken"));
        } else {
            assert!(report.contains("Build the site") && report.contains("broken"), "{report}");
            assert!(!report.contains('\u{1b}'), "no colours: {report}");
        }
    }
    stage.assert_clean();
}

#[test]
fn journal_of_an_ended_team_is_shown() {
    let stage = Stage::without_tmux();
    let run = |line: &str| stage.phalanx(&line.split(' ').collect::<Vec<_>>());
    let subjects = |line: &str| -> Vec<String> {
        let events = run(line).expect(0).stdout;
        let events = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.filter_map(|e| Some(e["detail"]["subject"].as_str()?.to_owned())).collect()
    };
    let end = |subject: &str, verb: &str| {
        run("team create demo").expect(0);
        run(&format!("task create {subject}")).expect(0);
        run(verb).expect(0);
        let now = run("--json events -t demo --ended").expect(0).stdout;
        assert!(now.lines().last().is_some_and(|line| line.contains("team_deleted")), "{now}");
    };
    let missing = run("events -t demo --ended").expect(3);
    assert!(missing.stderr.contains("no journal of an ended team `demo`"), "{missing:?}");
    end("First", "down --force");
    end("Second", "team delete -t demo");
    assert_eq!(subjects("--json events -t demo --ended"), ["Second"]);
    let none = run("report").expect(3);
    assert!(none.stderr.contains("demo has ended: `phalanx report demo`"), "{none:?}");
    let other = run("events -t other --ended").expect(3);
    assert!(other.stderr.contains("journals are kept for 7 days"), "{other:?}");
    let first = other.stderr.split_once("demo (").and_then(|(_, rest)| rest.split_once(')'));
    let first = first.expect("the time of the first end").0;
    assert_eq!(subjects(&format!("--json events -t demo --ended={first}")), ["First"]);
    assert!(run("events -t demo --ended").expect(0).stdout.contains("team deleted"));

    // The ended team is not listed, and its name is free.
    assert_eq!(run("--json team list").expect(0).json(), json!([]));
    run("events -t demo").expect(3);
    run("events --ended").expect(2);
    run("events -t demo --ended --follow").expect(2);
    let found = run("--json doctor").json()["findings"].clone();
    let mut found = found.as_array().expect("findings").iter();
    assert!(found.all(|finding| finding["id"] == "tmux_missing"));
    // A team that runs has its own journal.
    run("team create demo").expect(0);
    assert_eq!(subjects("--json events -t demo"), Vec::<String>::new());
    assert_eq!(subjects("--json events -t demo --ended"), ["Second"]);
    let mut member = stage.command(binary());
    member.args(["events", "-t", "demo", "--ended"]).env("PHALANX_TOKEN", "x");
    assert_eq!(member.output().expect("phalanx runs").status.code(), Some(4));
    run("team delete -t demo").expect(0);
    stage.assert_clean();
}

/// SD-16: a team that ends with its tasks while nobody looks on leaves its results.
#[test]
fn sd_16_results_of_a_team_that_ended_by_itself_can_be_read() {
    let stage = Stage::without_tmux();
    let manifest = "[team]\nname = \"nightly\"\nbackend = \"pty\"\n[[member]]\nname = \"ann\"\n\
        [[task]]\nkey = \"find\"\nsubject = \"Find\"\nrun = [\"echo\", \"Found 3 bugs\"]\nshow_output = \"all\"\n";
    stage.phalanx(&["up", &stage.file("team.toml", manifest), "--detach"]).expect(0);
    let team = stage.root().join("teams/nightly");
    wait_for("the end of the team", || (!team.exists()).then_some(()));
    let gone = stage.phalanx(&["status", "-t", "nightly"]).expect(3);
    assert!(gone.stderr.contains("`phalanx report nightly` shows how"), "{gone:?}");
    let inbox = ["inbox", "-t", "nightly", "--ended"];
    let read = |more: &[&str]| stage.phalanx(&[&inbox[..], more].concat());
    let report = read(&[]).expect(0).stdout;
    assert!(
        report.contains("#1 \"Find\": completed") && report.contains("Found 3 bugs"),
        "{report}"
    );
    assert!(read(&[]).expect(0).stdout.contains("Found 3 bugs"), "it is not marked");
    let entries = read(&["--json", "--all"]).expect(0).json();
    assert!(entries.as_array().is_some_and(|entries| !entries.is_empty()), "{entries}");
    read(&["--follow"]).expect(2);
    stage.assert_clean();
}
