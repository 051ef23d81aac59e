//! No wait is silent: `status` says why a task waits, and a waiting verb says on stderr what it
//! waits for.

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

#[test]
fn up_refuses_a_task_that_no_member_can_do_and_names_its_line() {
    let stage = Stage::without_tmux();
    let head = "[team]\nname = \"demo\"\n[[member]]\nname = \"ada\"\n[[task]]\nkey = \"t\"\nsubject = \"T\"\n";
    let table = [
        ("", ":6:7: no member can do task `t`: it has no `run`, and workers only run commands"),
        (
            "run = [\"true\"]\nrole = \"tester\"\n",
            ":9:8: task `t` is for the role `tester`, which no member has",
        ),
        ("owner = \"ada\"\n", ":8:9: task `t` has no `run`, and its owner `ada` is a worker"),
    ];
    for (rest, words) in table {
        let run =
            stage.phalanx(&["up", &stage.file("team.toml", &format!("{head}{rest}"))]).expect(2);
        assert!(run.stderr.contains(&format!("team.toml{words}")), "{run:?}");
    }
    stage.assert_clean();
}

/// The reasons why tasks wait, in order of their ids.
fn reasons(stage: &Stage) -> Vec<Value> {
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let tasks = status["task_list"].as_array().expect("tasks").clone();
    tasks.into_iter().map(|task| task["waits_for"]["text"].clone()).collect()
}

#[test]
fn status_says_why_each_task_waits() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let until_go = ["--", "sh", "-c", "until [ -e go ]; do sleep 0.05; done"];
    let create = |args: &[&str]| stage.phalanx(&[&["task", "create"], args].concat()).expect(0);
    create(&[&["Waits for a file"][..], &until_go].concat());
    assert_eq!(reasons(&stage), [json!("the team has no members")]);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.wait_event("demo", "task_claimed", "1");
    create(&["Follows", "--blocked-by", "1", "--", "true"]);
    create(&["Is free", "--", "true"]);
    create(&["Is hers", "--owner", "ada", "--", "true"]);
    create(&["Has no command"]);
    let got = reasons(&stage);
    assert_eq!(got[..3], [json!(null), json!("blocked by #1"), json!("no free member")]);
    let owner = got[3].as_str().expect("a reason");
    assert!(owner.starts_with("owner is busy with #1 for "), "{owner}");
    assert_eq!(got[4], json!("no command, only workers here"));
    let shown = stage.phalanx(&["status"]).expect(0).stdout;
    for words in [
        "blocked by #1",
        "no free member",
        "owner is busy with #1",
        "no command, only workers here",
    ] {
        assert!(shown.contains(words), "{words} in {shown}");
    }
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    fs::write(stage.at("work/go"), "").expect("go");
    stage.wait_event("demo", "task_completed", "4");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn waiting_for_a_stale_lock_is_reported() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let lock = stage.root().join("teams/demo/inboxes/team-lead.json.lock");
    let send = |args: &[&str]| {
        fs::create_dir(&lock).expect("a lock");
        // The lock becomes stale four seconds from now.
        let stamped = SystemTime::now() - Duration::from_secs(6);
        let file = fs::File::open(&lock).expect("the lock");
        file.set_times(fs::FileTimes::new().set_modified(stamped)).expect("stamped");
        stage.phalanx(&[args, &["send", "team-lead", "hello"]].concat()).expect(0).stderr
    };
    let said = send(&[]);
    assert_eq!(
        said.matches("waiting for a lock that no live process holds, at most 10 s").count(),
        1,
        "{said}"
    );
    assert_eq!(send(&["-q"]), "");
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn wait_reports_its_condition_and_timeout() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["task", "create", "Never done"]).expect(0);
    let wait = |args: &[&str]| {
        stage
            .phalanx(&[args, &["wait", "--until", "task=1", "--timeout", "3"]].concat())
            .expect(5)
            .stderr
    };
    assert!(wait(&[]).contains("waiting for task #1 to end, at most 3 s"));
    assert!(!wait(&["-q"]).contains("waiting for"));
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn down_names_the_busy_members_that_it_waits_for() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ann"]).expect(0);
    let run = [
        "task",
        "create",
        "Run the tests",
        "--",
        "sh",
        "-c",
        "until [ -e go ]; do sleep 0.05; done",
    ];
    stage.phalanx(&run).expect(0);
    stage.wait_event("demo", "task_claimed", "1");
    // A stopped launcher and worker do not answer.
    for line in stage.processes() {
        let pid = line.split(' ').next().expect("a pid");
        if line.contains(" exec ") || line.ends_with(" worker ") {
            assert!(stage.command("kill").args(["-STOP", pid]).status().expect("kill").success());
        }
    }
    let down = stage.phalanx(&["down", "--deadline", "4"]).expect(5);
    let words = "waiting for ann (running #1 Run the tests) to end, up to 4 s";
    assert_eq!(down.stderr.matches(words).count(), 1, "{down:?}");
    stage.assert_clean();
}

#[test]
fn interrupted_up_reports_the_members_and_the_deadline() {
    let stage = Stage::without_tmux();
    let member = |name: &str| format!("[[member]]\nname = \"{name}\"\n");
    let text =
        format!("[team]\nname = \"demo\"\nfinish = \"manual\"\n{}{}", member("ada"), member("bob"));
    let up = stage.start(&["up", &stage.file("demo.toml", &text)]);
    stage.wait_event("demo", "member_ready", "ada");
    stage.wait_event("demo", "member_ready", "bob");
    wait_for("the lead", || {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        (status["lead"]["pid"].as_u64() == up.pid().parse().ok()).then_some(())
    });
    up.signal("INT");
    let said = up.end().expect(130).stderr;
    assert!(said.contains("asking 2 members to stop, up to 30 s; Ctrl-C again to force"), "{said}");
    stage.assert_clean();
}
