//! A team in PostgreSQL, beside hosts that can run its members.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use testing::TestCluster;

use crate::harness::{Run, binary, wait_for};
use crate::host_stage::HostStage;

/// Hosts with phalanx, a team in a shared store, and its database.
pub struct RemoteStage {
    pub hosts: HostStage,
    url: String,
    _cluster: TestCluster,
}

impl RemoteStage {
    /// Starts the hosts and the database, and creates the team `demo`. Returns `None`, and reports
    /// the test as skipped, where that is not possible.
    pub fn start(names: &[&str]) -> Option<RemoteStage> {
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
        Some(RemoteStage { hosts, url, _cluster: cluster })
    }

    /// Runs a verb on the team, on the host without a namespace.
    pub fn phalanx(&self, args: &[&str]) -> Run {
        self.hosts.stage.phalanx(&[&["-t", "demo"], args].concat())
    }

    /// Returns a command line of a person's shell on a host.
    pub fn on_host(&self, host: &str, line: &str) -> Command {
        let mut command = self.hosts.stage.command("ssh");
        command.args([host, line]).stdin(Stdio::null());
        command
    }

    /// Runs a verb on the team, by a person on a host that is configured nowhere else.
    pub fn phalanx_on(&self, host: &str, args: &str) -> Run {
        let program = self.hosts.at(host, "work/bin/phalanx");
        let line = format!("PHALANX_STORE={} {} -t demo {args}", self.url, program.display());
        Run::from(self.on_host(host, &line).output().expect("ssh runs"))
    }

    /// Moves the config roots of the hosts to where only they see them.
    pub fn hide_files_of_hosts(&self) {
        let path = self.hosts.stage.root().join("phalanx/hosts.toml");
        let hosts = fs::read_to_string(&path).expect("hosts");
        let line = "env = { PHALANX_CONFIG_DIR = \"/run/phalanx\" }\n";
        fs::write(&path, hosts.replace("[[host]]\n", &format!("[[host]]\n{line}"))).expect("hosts");
    }

    /// Returns the members that `ps` lists, with the liveness that their hosts report.
    pub fn liveness(&self) -> Vec<(String, String)> {
        let teams = self.phalanx(&["ps", "--json"]).expect(0).json();
        let members = teams[0]["members"].as_array().cloned().expect("members");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut seen: Vec<(String, String)> =
            members.iter().map(|member| (text(&member["name"]), text(&member["alive"]))).collect();
        seen.sort();
        seen
    }

    pub fn pair((name, alive): (&str, &str)) -> (String, String) {
        (name.to_owned(), alive.to_owned())
    }

    /// Kills the launcher of a member, as if by `kill -9` on its host.
    pub fn kill_launcher(&self, host: &str, name: &str) {
        let program = self.member(name)["pid"].as_i64().expect("a pid");
        let line = format!("kill -9 $(ps -o ppid= -p {program})");
        let killed = self.on_host(host, &line).status();
        assert!(killed.expect("ssh runs").success());
    }

    /// Attaches to a member from a terminal of this host, until `text` is on its screen.
    pub fn attaches(&self, name: &str, text: &str) {
        self.begins_to_attach(name, text);
        // The keys of the tmux server on the member's host: its prefix, then d.
        self.presses(&["C-b", "d"]);
        self.shows("end=0");
        self.tmux(&["kill-session", "-t", "view"]);
    }

    /// As [`RemoteStage::attaches`], without an end.
    pub fn begins_to_attach(&self, name: &str, text: &str) {
        self.opens(&format!("attach {name}"));
        self.shows(text);
    }

    /// Runs a verb on the team in a terminal of this host.
    pub fn opens(&self, verb: &str) {
        let line = format!("echo before; {} {verb} -t demo; echo end=$?; exec sh", binary());
        self.tmux(&["new-session", "-d", "-s", "view", "-x", "120", "-y", "40", &line]);
    }

    /// Presses keys in the terminal of this host.
    pub fn presses(&self, keys: &[&str]) {
        self.tmux(&[&["send-keys", "-t", "view:"], keys].concat());
    }

    /// Waits until the terminal of this host shows a text, and returns all of it.
    pub fn shows(&self, text: &str) -> String {
        wait_for(&format!("{text:?} on the terminal"), || {
            let screen = self.tmux(&["capture-pane", "-p", "-t", "view:"]);
            screen.contains(text).then_some(screen)
        })
    }

    fn tmux(&self, args: &[&str]) -> String {
        self.hosts.stage.tmux(args).expect("tmux runs")
    }

    /// Returns the row of a member in `status`; null if there is none.
    pub fn member(&self, name: &str) -> Value {
        let status = self.phalanx(&["status", "--json"]).expect(0).json();
        let members = status["members"].as_array().expect("members");
        members.iter().find(|member| member["name"] == name).cloned().unwrap_or_default()
    }
}
