//! Two hosts and their database in one network that can be cut.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use serde_json::Value;
use testing::TestCluster;

use crate::harness::{Background, Run, binary, wait_for};
use crate::host_stage::HostStage;

/// Hosts with a database that they reach over their network.
pub struct FaultStage {
    /// Dropped before the namespace that they listen in.
    clusters: Vec<TestCluster>,
    processes: Vec<Background>,
    /// Panes of other programs, by host.
    pub foreign: BTreeMap<&'static str, Vec<String>>,
    pub hosts: HostStage,
}

impl FaultStage {
    /// Starts the hosts `h1` and `h2`, and a database. Returns `None`, and reports the test as
    /// skipped, where that is not possible.
    pub fn start() -> Option<FaultStage> {
        let mut hosts = HostStage::start(&["h1", "h2"])?;
        let enter = enter(&hosts);
        let enter: Vec<&str> = enter.iter().map(String::as_str).collect();
        let cluster = TestCluster::start_through(&enter, &[])?;
        // All hosts see this file, so that none needs a copy of it.
        let config = hosts.stage.root().join("phalanx/hosts.toml");
        let text = fs::read_to_string(&config).expect("hosts");
        let text = text.replace("ssh = ", &format!("phalanx = \"{}\"\nssh = ", binary()));
        fs::write(&config, text).expect("hosts");
        hosts.stage.set_env("PHALANX_HOST", "here");
        Some(FaultStage {
            clusters: vec![cluster],
            processes: Vec::new(),
            foreign: BTreeMap::new(),
            hosts,
        })
    }

    /// Returns a database, in the order of their starts.
    pub fn cluster(&self, nth: usize) -> &TestCluster {
        &self.clusters[nth]
    }

    /// Starts a standby of the first database, which then waits for it at each commit.
    pub fn start_standby(&mut self) {
        let standby = self.cluster(0).start_standby(&[]);
        self.cluster(0).sql("alter system set synchronous_standby_names = '*'");
        self.cluster(0).sql("select pg_reload_conf()");
        wait_for("the standby to be synchronous", || {
            let state = self.cluster(0).sql("select sync_state from pg_stat_replication");
            (state.trim() == "sync").then_some(())
        });
        self.clusters.push(standby);
    }

    /// Creates the team `demo`. The database is at these ports of the stage's own address.
    pub fn create_team(&mut self, ports: &[u16], options: &str) {
        let places: Vec<String> = ports.iter().map(|port| format!("10.77.0.254:{port}")).collect();
        let places = places.join(",");
        let url = format!("postgres://postgres@{places}/postgres?sslmode=disable{options}");
        self.hosts.stage.set_env("PHALANX_STORE", &url);
        self.phalanx(&["store", "init"]).expect(0);
        self.phalanx(&["team", "create", "demo"]).expect(0);
    }

    /// Returns a command of this machine, which is beside the hosts in their network.
    pub fn command(&self, program: &str) -> Command {
        let mut command = self.hosts.stage.command("nsenter");
        command.args(&enter(&self.hosts)[1..]).arg(program);
        command
    }

    /// Runs phalanx for the team on this machine.
    pub fn phalanx(&self, args: &[&str]) -> Run {
        let team: &[&str] =
            if args[0] == "store" || args[0] == "team" { &[] } else { &["-t", "demo"] };
        let mut command = self.command(binary());
        Run::from(command.args(team).args(args).output().expect("phalanx runs"))
    }

    /// Returns the row of a member in `status`; null if there is none.
    pub fn member(&self, name: &str) -> Value {
        let status = self.phalanx(&["status", "--json"]).expect(0).json();
        let members = status["members"].as_array().expect("members");
        members.iter().find(|member| member["name"] == name).cloned().unwrap_or_default()
    }

    /// Runs a line of shell on a host.
    pub fn on(&self, host: &str, line: &str) -> Run {
        let mut command = self.hosts.stage.command("ssh");
        Run::from(command.args([host, line]).output().expect("ssh runs"))
    }

    /// Starts a process of this machine that ends with the stage.
    pub fn start_here(&mut self, args: &[&str]) {
        let mut command = self.command(args[0]);
        command.args(&args[1..]);
        self.processes.push(Background::start(command));
    }
}

/// Returns the start of a command line that runs in the network of the hosts.
fn enter(hosts: &HostStage) -> Vec<String> {
    let pid = fs::read_to_string(hosts.stage.at("hosts/pid")).expect("the stage has a pid");
    ["nsenter", "-t", pid.trim(), "-n", "--"].map(str::to_owned).into()
}
