//! Hosts on this machine, in namespaces of their own (`fixtures/hosts`), beside a [`Stage`] whose
//! `ssh` reaches them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::gear;
use crate::harness::{Run, Stage, binary, which};

const STAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/hosts/stage");

/// Programs that the hosts consist of, with their packages.
const NEEDED: [(&str, &str); 6] = [
    ("sshd", "openssh-server"),
    ("ssh", "openssh-client"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
];

/// A stage with hosts. They end with it, also if the test is killed.
pub struct HostStage {
    pub stage: Stage,
    child: Child,
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl HostStage {
    /// Starts the hosts, given as NAME or NAME=SHELL, and configures them for the stage's user.
    /// Returns `None`, and reports the test as skipped, where that is not possible.
    pub fn start(hosts: &[&str]) -> Option<HostStage> {
        if let Some(missing) = missing() {
            gear::skip_without(&missing);
            return None;
        }
        let mut stage = Stage::new();
        let dir = stage.at("hosts");
        fs::create_dir(&dir).expect("dir");
        let mut command = Command::new("unshare");
        command
            .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", STAGE])
            .arg(&dir)
            .args(hosts)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().expect("unshare runs");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let commands = child.stdin.take();
        // The stage's ssh stands before the real one, which its script names by its path.
        stage.prepend_path(&dir.join("bin"));
        let mut hosts_stage = HostStage { stage, child, commands, answers };
        assert_eq!(hosts_stage.answer(), "ready", "{}", hosts_stage.logs(hosts));
        let pid = hosts_stage.child.id();
        let first = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("proc");
        fs::write(dir.join("pid"), first.trim()).expect("pid");
        let names: Vec<&str> = hosts.iter().filter_map(|host| host.split('=').next()).collect();
        hosts_stage.configure(&names);
        Some(hosts_stage)
    }

    /// Returns a path below the directory of a host.
    pub fn at(&self, host: &str, sub: &str) -> PathBuf {
        self.stage.at("hosts").join(host).join(sub)
    }

    /// Performs a command of `fixtures/hosts/stage`.
    pub fn perform(&mut self, command: &str) {
        let commands = self.commands.as_mut().expect("open until the drop");
        writeln!(commands, "{command}").expect("the stage runs");
        assert_eq!(self.answer(), "ok", "{command}");
    }

    /// Returns the number of connections that a host has accepted.
    pub fn logins(&self, host: &str) -> usize {
        let log = fs::read_to_string(self.at(host, "sshd.log")).expect("a log");
        log.matches("Accepted publickey").count()
    }

    /// Puts a script first on the PATH of a host.
    pub fn shadow(&self, host: &str, program: &str, script: &str) {
        self.stage.script(&self.at(host, "bin").join(program), script);
    }

    /// Installs this build of phalanx on a host.
    pub fn install(&self, host: &str) -> Run {
        let args = ["host", "check", host, "--install", "--yes", "--from", binary(), "--json"];
        self.stage.phalanx(&args)
    }

    fn configure(&self, names: &[&str]) {
        let table = |name: &&str| {
            let dir = self.at(name, "work");
            format!("[[host]]\nname = \"{name}\"\nssh = \"{name}\"\ndir = \"{}\"\n", dir.display())
        };
        let dir = self.stage.root().join("phalanx");
        fs::create_dir_all(&dir).expect("dir");
        let text: String = names.iter().map(table).collect();
        fs::write(dir.join("hosts.toml"), text).expect("hosts");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("the stage answers");
        line.trim_end().to_owned()
    }

    fn logs(&self, hosts: &[&str]) -> String {
        let log = |host: &&str| fs::read_to_string(self.at(host, "host.log")).unwrap_or_default();
        hosts.iter().map(log).collect()
    }
}

impl Drop for HostStage {
    fn drop(&mut self) {
        // The script ends with its input, and its process table with it.
        drop(self.commands.take());
        let _ = self.child.wait();
    }
}

/// Returns the first thing that the hosts need and this machine lacks.
fn missing() -> Option<String> {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let absent = NEEDED.iter().find(|(program, _)| which(program, &path).is_none());
    if let Some((_, package)) = absent {
        return Some((*package).to_owned());
    }
    let made = Command::new("unshare").args(["--net", "--pid", "--fork", "true"]).output();
    let works = made.is_ok_and(|output| output.status.success());
    (!works || !Path::new("/proc/self/ns/net").exists())
        .then(|| "namespaces, which need root".to_owned())
}
