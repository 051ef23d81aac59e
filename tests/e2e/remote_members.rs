//! Members on other hosts: a team in PostgreSQL, with members that real sshd and tmux of other
//! hosts run.

use serde_json::Value;
use testing::TestDatabase;

use crate::harness::{Run, Stage, binary, wait_for};
use crate::remote_stage::RemoteStage;

#[test]
fn members_on_two_hosts_work_on_one_board_and_end() {
    let Some(stage) = RemoteStage::start(&["h1", "h2"]) else { return };
    let reports = stage.phalanx(&["host", "check", "--json"]).expect(0).json();
    let reports = reports.as_array().expect("reports");
    assert!(reports.iter().all(|report| report["store"] == true), "{reports:?}");
    for (name, host) in [("ann", "h1"), ("bob", "h2")] {
        stage.phalanx(&["spawn", name, "--host", host]).expect(0);
    }
    for (name, host) in [("ann", "h1"), ("bob", "h2")] {
        let subject = format!("on {host}");
        stage.phalanx(&["task", "create", &subject, "--owner", name, "--", "hostname"]).expect(0);
    }
    wait_for("both tasks to end", || {
        let tasks = stage.phalanx(&["task", "list", "--all", "--json"]).expect(0).json();
        let tasks = tasks.as_array().expect("tasks").clone();
        tasks
            .iter()
            .all(|task| task["state"] != "pending" && task["state"] != "in_progress")
            .then_some(())
    });
    for (id, host) in [("1", "h1"), ("2", "h2")] {
        let task = stage.phalanx(&["task", "get", id, "--json"]).expect(0);
        assert_eq!(task.json()["state"], "completed", "{}", task.stdout);
        assert!(task.stdout.contains(host), "{}", task.stdout);
    }
    for (name, host) in [("ann", "h1"), ("bob", "h2")] {
        let member = stage.member(name);
        assert_eq!((&member["host"], &member["backend"]), (&host.into(), &"tmux".into()));
    }
    let screen = stage.phalanx(&["peek", "ann"]).expect(0);
    assert!(screen.stdout.contains("hostname"), "{}", screen.stdout);
    stage.attaches("bob", "on h2");
    stage.phalanx(&["restart", "bob"]).expect(0);
    assert_eq!(stage.member("bob")["host"], "h2");
    stage.phalanx(&["shutdown", "ann", "bob"]).expect(0);
    assert_eq!(stage.member("ann"), Value::Null);
}

#[test]
fn host_that_knows_only_the_address_of_the_store_can_start_members() {
    let Some(database) = TestDatabase::create() else { return };
    let mut stage = Stage::without_tmux();
    stage.set_env("PHALANX_STORE", &database.url());
    stage.set_env("PHALANX_TEAM", "demo");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    let other = |args: &[&str]| {
        let mut command = stage.command(binary());
        command.env("PHALANX_CONFIG_DIR", stage.at("other")).env("PHALANX_HOST", "other");
        Run::from(command.args(args).output().expect("phalanx runs"))
    };
    other(&["spawn", "ann", "--backend", "pty"]).expect(0);
    stage.phalanx(&["task", "create", "say hello", "--owner", "ann", "--", "true"]).expect(0);
    wait_for("the task to end", || {
        let task = stage.phalanx(&["task", "get", "1"]).expect(0).stdout;
        task.contains("completed").then_some(())
    });
    let status = stage.phalanx(&["status", "--json"]).expect(0).json();
    assert_eq!(status["members"][0]["host"], "other", "{status}");
    other(&["shutdown", "--all"]).expect(0);
    stage.phalanx(&["team", "delete"]).expect(0);
}

/// A member over ACP on another host: mail, a permission that is answered here, and its end.
#[test]
fn agent_over_acp_works_on_another_host() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    let agent = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/acp/faulty.py");
    let words = ["spawn", "ann", "--host", "h1", "--profile", "acp", "--", "python3"];
    stage.phalanx(&[&words[..], &[agent, "plain"]].concat()).expect(0);
    assert_eq!(stage.member("ann")["host"], "h1");
    stage.phalanx(&["send", "ann", "please touch it"]).expect(0);
    let id = wait_for("a request", || {
        let requests = stage.phalanx(&["--json", "requests"]).expect(0).json();
        Some(requests.as_array()?.first()?["request_id"].as_str()?.to_owned())
    });
    stage.phalanx(&["answer", "--approve", &id]).expect(0);
    let made = stage.hosts.at("h1", "work/made.txt");
    wait_for("the file", || made.exists().then_some(()));
    wait_for("the answer", || {
        let screen = stage.phalanx(&["peek", "ann", "-n", "2000"]).expect(0).stdout;
        screen.contains("You said").then_some(())
    });
    stage.phalanx(&["down"]).expect(0);
    let ended = stage.on_host("h1", "pgrep -f [f]aulty.py").output().expect("ssh runs");
    assert!(ended.stdout.is_empty(), "{ended:?}");
}
