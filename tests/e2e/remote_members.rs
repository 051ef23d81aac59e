//! Members on other hosts: a team in PostgreSQL, with members that real sshd and tmux of other hosts
//! run.

use phalanx::testing::TestCluster;
use serde_json::Value;

use crate::harness::{Run, binary, wait_for};
use crate::host_stage::HostStage;

/// Hosts with phalanx, a team in a shared store, and its database.
struct RemoteStage {
    hosts: HostStage,
    _cluster: TestCluster,
}

impl RemoteStage {
    fn start(names: &[&str]) -> Option<RemoteStage> {
        let cluster = TestCluster::start(&[])?;
        let mut hosts = HostStage::start(names)?;
        for name in names {
            hosts.install(name).expect(0);
        }
        // A socket in a file system that all hosts see, so that they need no route to the server.
        let dir = cluster.root().display().to_string().replace('/', "%2F");
        let url = format!("postgres://postgres@{dir}:{}/postgres", cluster.port());
        hosts.stage.set_env("PHALANX_STORE", &url);
        hosts.stage.phalanx(&["store", "init"]).expect(0);
        hosts.stage.phalanx(&["team", "create", "demo"]).expect(0);
        Some(RemoteStage { hosts, _cluster: cluster })
    }

    fn phalanx(&self, args: &[&str]) -> Run {
        self.hosts.stage.phalanx(&[&["-t", "demo"], args].concat())
    }

    /// Attaches to a member from a terminal of this host, until `text` is on its screen.
    fn attaches(&self, name: &str, text: &str) {
        let tmux = |args: &[&str]| self.hosts.stage.tmux(args).expect("tmux runs");
        let line = format!("{} attach {name} -t demo; echo end=$?; exec sh", binary());
        tmux(&["new-session", "-d", "-s", "view", "-x", "120", "-y", "40", &line]);
        let screen = || tmux(&["capture-pane", "-p", "-t", "view:"]);
        let shows = |text: &str| {
            let seen = || screen().contains(text).then_some(());
            wait_for(&format!("{text:?} on the screen of {name}"), seen);
        };
        shows(text);
        // The keys of the tmux server on the member's host: its prefix, then d.
        tmux(&["send-keys", "-t", "view:", "C-b", "d"]);
        shows("end=0");
        tmux(&["kill-session", "-t", "view"]);
    }

    fn member(&self, name: &str) -> Value {
        let status = self.phalanx(&["status", "--json"]).expect(0).json();
        let members = status["members"].as_array().expect("members");
        members.iter().find(|member| member["name"] == name).cloned().unwrap_or_default()
    }
}

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
