//! `doctor --self-test`: checks the functions of the system that phalanx relies on, without a team.

use std::time::Duration;

use serde::Serialize;

use crate::members::backends;
use crate::{Caller, OpsError};
use backend::tmux::{self, PrivateServer, Tmux};
use backend::{Backend, CloseOutcome, Label, Mark, PlacementRequest, iterm2};
use model::id::MemberName;
use model::members::placement::Verdict;
use sys::clock::Deadline;
use sys::selftest::{CHECKS, CheckFault, CheckResult, TestSite};
use sys::{env, rand};

/// The name of the team and of the member in a pane.
const PROBE: &str = "self-test";

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, strum::IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CheckVerdict {
    Pass,
    Fail,
    /// The check does not apply here.
    Skip,
}

/// A check that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    pub check: &'static str,
    pub result: CheckVerdict,
    /// The finding of a check that passed, otherwise the reason.
    pub detail: String,
    /// Duration of the check in milliseconds.
    pub ms: u64,
}

/// Runs all checks in a temporary directory. Ends all descendants of this process.
///
/// # Errors
/// The temporary directory cannot be created.
pub fn self_test(caller: &Caller) -> Result<Vec<CheckReport>, OpsError> {
    let site = TestSite::create(&caller.exe)?;
    let mut reports: Vec<CheckReport> =
        CHECKS.iter().map(|check| timed(check.name, || (check.run)(&site))).collect();
    reports.push(timed("tmux", || check_tmux(caller, &site)));
    reports.push(timed("osascript", || check_osascript(caller)));
    Ok(reports)
}

fn timed(check: &'static str, run: impl FnOnce() -> CheckResult) -> CheckReport {
    let begun = Deadline::after(Duration::ZERO);
    let (result, detail) = match run() {
        Ok(detail) => (CheckVerdict::Pass, detail),
        Err(CheckFault::Failed(reason)) => (CheckVerdict::Fail, reason),
        Err(CheckFault::Skipped(reason)) => (CheckVerdict::Skip, reason),
    };
    let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    CheckReport { check, result, detail, ms }
}

/// Places a helper process in a pane of a private server, verifies the pane and closes it.
fn check_tmux(caller: &Caller, site: &TestSite) -> CheckResult {
    let program = backends::program(caller, "tmux").map_err(CheckFault::Skipped)?;
    tmux::probe(&program).map_err(CheckFault::Failed)?;
    let socket = site.file("tmux");
    let server = PrivateServer::start(&program, &socket)?;
    let backend = Tmux::new(server.home(PROBE));
    let token = rand::token();
    let request = PlacementRequest {
        member: MemberName::new(PROBE)?,
        token: token.clone(),
        argv: site.waiting_helper(),
        label: Label { name: PROBE.to_owned(), ..Label::default() },
    };
    let placed = backend.place(&[request]).pop();
    let placement =
        placed.ok_or_else(|| CheckFault::Failed("tmux placed nothing".to_owned()))??;
    let version = tmux::census(&program, &socket)?.map(|census| census.version);
    let found = backend.verify(Mark::new(&placement, &token));
    if found != Verdict::Owned {
        return Err(CheckFault::Failed(format!("a new pane is judged {found}")));
    }
    let found = backend.verify(Mark::new(&placement, "other"));
    if !matches!(found, Verdict::Foreign { .. }) {
        return Err(CheckFault::Failed(format!("a pane with another token is judged {found}")));
    }
    match backend.close(Mark::new(&placement, &token)) {
        CloseOutcome::Closed => (),
        other => return Err(CheckFault::Failed(format!("a pane was not closed: {other:?}"))),
    }
    let found = backend.verify(Mark::new(&placement, &token));
    if found != Verdict::Gone {
        return Err(CheckFault::Failed(format!("a closed pane is judged {found}")));
    }
    let version = version.unwrap_or_default();
    Ok(format!("tmux {version}: a pane was placed, verified and closed"))
}

/// Asks iTerm2 for its sessions. Does not start iTerm2.
fn check_osascript(caller: &Caller) -> CheckResult {
    if env::os() != "macos" {
        return Err(CheckFault::Skipped("only macOS has AppleScript".to_owned()));
    }
    let program = backends::program(caller, "osascript").map_err(CheckFault::Failed)?;
    match iterm2::count_sessions(program).map_err(CheckFault::Failed)? {
        Some(count) => Ok(format!("iTerm2 runs, with {count} sessions")),
        None => Err(CheckFault::Skipped("osascript works, but iTerm2 is not running".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_outcome_of_a_check_becomes_its_verdict() {
        let run = |result: CheckResult| {
            let report = timed("x", || result);
            (report.result, report.detail)
        };
        assert_eq!(run(Ok("well".to_owned())), (CheckVerdict::Pass, "well".to_owned()));
        let failed = run(Err(CheckFault::Failed("broken".to_owned())));
        assert_eq!(failed, (CheckVerdict::Fail, "broken".to_owned()));
        let skipped = run(Err(CheckFault::Skipped("absent".to_owned())));
        assert_eq!(skipped, (CheckVerdict::Skip, "absent".to_owned()));
    }

    #[test]
    fn a_missing_tmux_is_skipped() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let env = vec![("PATH".into(), dir.path().into())];
        let caller = Caller { env, cwd: "/".into(), exe: "/bin/phalanx".into() };
        let site = TestSite::create(&caller.exe).expect("writable");
        let skipped = check_tmux(&caller, &site).expect_err("there is none");
        assert_eq!(skipped, CheckFault::Skipped("`tmux` is not on PATH".to_owned()));
    }
}
