//! `host check`: reports whether members could run on a host, and what to do if they cannot.

use std::path::Path;

use serde::Serialize;

use crate::OpsError;
use model::causes::error_chain;
use model::team::host::HostConfig;
use model::text;
use remote::{ClockOffset, HostConnection, HostError, HostFacts, clock_offset, facts, timed};

/// Clock difference beyond which times in the team's files would mislead. Milliseconds.
const CLOCK_LIMIT_MS: u64 = 60_000;
/// First line of this program's `--version`.
const OWN_VERSION: &str = concat!("phalanx ", env!("CARGO_PKG_VERSION"));

/// The state of a host. Facts are missing if the host could not be asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HostReport {
    pub name: String,
    pub ssh: String,
    pub dir: String,
    pub reachable: bool,
    /// Time to connect; a few milliseconds if the connection existed.
    pub connect_ms: Option<u64>,
    /// Operating system and architecture.
    pub system: Option<String>,
    /// Path and version of phalanx there.
    pub phalanx_path: Option<String>,
    pub phalanx: Option<String>,
    pub tmux: Option<String>,
    pub git: Option<String>,
    /// Clock of the host minus clock of this machine.
    pub clock_offset_ms: Option<i64>,
    /// Largest error of the offset.
    pub clock_error_ms: Option<u64>,
    /// The host reaches the shared store of the selected team; `None` if there is no such team, or
    /// the host has another problem.
    pub store: Option<bool>,
    /// Empty if members could run there.
    pub problems: Vec<HostProblem>,
}

/// A reason why members cannot run on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostProblem {
    pub problem: String,
    /// The next step for the user.
    pub fix: Option<String>,
}

impl HostReport {
    /// Returns true if the only problem is phalanx, which could be installed.
    pub fn needs_program(&self) -> bool {
        self.system.is_some() && self.phalanx.as_deref() != Some(OWN_VERSION)
    }
}

/// Checks one host. Creates its work directory if it is missing.
pub fn check(host: &HostConfig, control_dir: &Path) -> HostReport {
    let mut report = HostReport {
        name: host.name.to_string(),
        ssh: host.ssh.clone(),
        dir: host.dir.clone(),
        ..HostReport::default()
    };
    let (opened, time) = timed(|| HostConnection::open(host, control_dir));
    let asked = opened.and_then(|connection| {
        report.reachable = true;
        report.connect_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        Ok((facts(&connection)?, clock_offset(&connection)?))
    });
    match asked {
        Ok((found, clock)) => report.add_facts(host, found, clock),
        Err(e) => report.problems.push(failure(&e)),
    }
    report
}

fn failure(error: &HostError) -> HostProblem {
    HostProblem { problem: error_chain(error), fix: error.hint() }
}

impl HostReport {
    /// Adds whether the host reaches the store of a team.
    pub fn add_store(&mut self, reached: Result<(), OpsError>) {
        self.store = Some(reached.is_ok());
        if let Err(e) = reached {
            let (problem, fix) = (error_chain(&e), e.hint());
            self.problems.push(HostProblem { problem, fix });
        }
    }

    fn add_facts(&mut self, host: &HostConfig, found: HostFacts, clock: Option<ClockOffset>) {
        self.problems = problems(host, &found, clock);
        let line = |text: String| text::line(&text);
        self.system = Some(line(found.system));
        self.phalanx_path = found.phalanx.map(line);
        self.phalanx = found.phalanx_version.map(line);
        self.tmux = found.tmux.map(line);
        self.git = found.git.map(line);
        self.clock_offset_ms = clock.map(|clock| clock.offset_ms);
        self.clock_error_ms = clock.map(|clock| clock.error_ms);
    }
}

fn problems(host: &HostConfig, found: &HostFacts, clock: Option<ClockOffset>) -> Vec<HostProblem> {
    let (name, dir, ssh) = (&host.name, &host.dir, &host.ssh);
    let install = format!("phalanx host check {name} --install");
    let mut problems = Vec::new();
    let mut add = |problem: String, fix: String| {
        problems.push(HostProblem { problem, fix: Some(fix) });
    };
    match (found.has_dir, found.is_writable && found.is_own, found.mode) {
        (false, ..) => add(
            format!("the work directory {dir} cannot be created"),
            format!("create it there for your user, or change `dir` of host `{name}`"),
        ),
        (true, false, _) => add(
            format!("the work directory {dir} is not yours, or not writable"),
            format!("change its owner there, or `dir` of host `{name}`"),
        ),
        (true, true, Some(mode)) if mode & 0o077 != 0 => add(
            format!("other users can enter the work directory {dir}: its mode is {mode:o}"),
            format!("ssh {ssh} chmod 700 {dir}"),
        ),
        (true, true, _) => {}
    }
    match (&found.phalanx, &found.phalanx_version, &host.phalanx) {
        (Some(_), Some(version), _) if version == OWN_VERSION => {}
        (Some(path), version, _) => {
            let version = version.as_deref().map(text::line).unwrap_or_default();
            let problem = format!("{path} is {version:?}, and this program is {OWN_VERSION}");
            add(problem, install);
        }
        (None, _, Some(path)) => add(
            format!("there is no program {path}"),
            format!("put phalanx there, or remove `phalanx` from host `{name}`"),
        ),
        (None, _, None) => add("phalanx is not installed".to_owned(), install),
    }
    for (program, version) in [("tmux", &found.tmux), ("git", &found.git)] {
        if version.is_none() {
            let fix = format!("install it there: `apt-get install {program}`");
            add(format!("{program} is not installed"), fix);
        }
    }
    let set_clock =
        || "set the clock there, for example with `timedatectl set-ntp true`".to_owned();
    match clock {
        Some(ClockOffset { offset_ms, error_ms })
            if offset_ms.unsigned_abs().saturating_sub(error_ms) > CLOCK_LIMIT_MS =>
        {
            let side = if offset_ms > 0 { "ahead of" } else { "behind" };
            let seconds = offset_ms.unsigned_abs() / 1000;
            add(format!("its clock is {seconds} s {side} this machine's"), set_clock());
        }
        Some(_) => {}
        None => add("its `date` prints no time".to_owned(), set_clock()),
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::hosts::parse_hosts;

    fn host() -> HostConfig {
        let text = "[[host]]\nname = \"build\"\nssh = \"b\"\ndir = \"/w\"\n";
        parse_hosts(text).expect("a host").remove(0)
    }

    fn good() -> HostFacts {
        HostFacts {
            system: "Linux x86_64".to_owned(),
            has_dir: true,
            is_writable: true,
            is_own: true,
            mode: Some(0o700),
            phalanx: Some("/w/bin/phalanx".to_owned()),
            phalanx_version: Some(OWN_VERSION.to_owned()),
            tmux: Some("tmux 3.3a".to_owned()),
            git: Some("git version 2".to_owned()),
        }
    }

    fn clock(offset_ms: i64) -> Option<ClockOffset> {
        Some(ClockOffset { offset_ms, error_ms: 50 })
    }

    fn found(facts: HostFacts, clock: Option<ClockOffset>) -> Vec<String> {
        problems(&host(), &facts, clock).into_iter().map(|found| found.problem).collect()
    }

    #[test]
    fn host_in_order_has_no_problems() {
        for offset in [0, 60_050, -60_050] {
            assert_eq!(found(good(), clock(offset)), Vec::<String>::new(), "{offset}");
        }
    }

    #[test]
    fn each_fault_is_a_problem_with_a_next_step() {
        let none = HostFacts { has_dir: false, phalanx: None, tmux: None, git: None, ..good() };
        assert_eq!(
            found(none, clock(-90_000)),
            [
                "the work directory /w cannot be created",
                "phalanx is not installed",
                "tmux is not installed",
                "git is not installed",
                "its clock is 90 s behind this machine's",
            ]
        );
        let foreign = HostFacts {
            is_own: false,
            phalanx_version: Some("phalanx 0.0.1\u{1b}".to_owned()),
            ..good()
        };
        let problems = found(foreign, None);
        assert_eq!(problems[0], "the work directory /w is not yours, or not writable");
        assert!(problems[1].contains("is \"phalanx 0.0.1\u{241b}\""), "{problems:?}");
        assert_eq!(problems[2], "its `date` prints no time");
        let open = HostFacts { mode: Some(0o755), ..good() };
        let problems = super::problems(&host(), &open, clock(0));
        assert_eq!(problems[0].fix.as_deref(), Some("ssh b chmod 700 /w"));
    }
}
