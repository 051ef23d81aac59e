//! Starts a lead in the background.

use std::ffi::OsString;
use std::time::Duration;

use crate::fail::Failure;
use crate::notice::WaitNotice;
use crate::setup::Setup;
use model::text;
use ops::{self, Kind, TeamStore};
use sys::clock::Deadline;
use sys::exec::spawn_detached;
use sys::fs;
use sys::proc::Process;

/// Time limit for a background lead to acquire the lease.
const TAKEOVER_LIMIT: Duration = Duration::from_secs(5);
/// Interval of checks for its exit, which need not change any file.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of bytes of its log that are searched for its last lines.
const LOG_TAIL: u64 = 4096;

/// Starts a lead in the background, waits until it holds the lease, and returns its process id.
///
/// # Errors
/// Returns [`LedByAnother`](ops::OpsError::LedByAnother) if another process acquired the
/// lease first, a failure with the log's last lines if the lead exits, and a timeout after
/// [`TAKEOVER_LIMIT`].
pub(crate) fn start_background_lead(
    setup: &Setup,
    team: &TeamStore,
    verb: &[&str],
) -> Result<i32, Failure> {
    let ctx = &setup.ctx;
    // The log is in a directory of the team, which a host has once it has joined.
    team.join_host()?;
    let log = team.lead_log();
    let global_options: [OsString; 4] =
        ["--config-dir".into(), team.root().into(), "--team".into(), team.name().as_str().into()];
    let verb = verb.iter().map(OsString::from);
    let args: Vec<OsString> = global_options.into_iter().chain(verb).collect();
    let changes = team.changes()?;
    let program = ctx.caller.program()?;
    let pid = spawn_detached(program.as_os_str(), &args, None, &ctx.caller.cwd, Some(&log))?;
    let deadline = Deadline::after(TAKEOVER_LIMIT);
    let seconds = TAKEOVER_LIMIT.as_secs();
    let _notice = WaitNotice::fixed(
        &setup.out,
        format!("waiting for process {pid} to take over, up to {seconds} s"),
    );
    loop {
        // A short run can be over before the lease was seen.
        // A team that it adopts is ready once its members are recorded.
        let leads = || -> Result<bool, Failure> {
            Ok(ops::members::lead::holder(team)? == Some(pid)
                && !ops::team::lease::is_foreign(team))
        };
        if !team.exists() || leads()? {
            return Ok(pid);
        }
        if Process::of(pid).is_none() && team.exists() {
            ops::team::lease::must_be_unheld(team)?;
            let output = fs::read_tail(&log, LOG_TAIL).unwrap_or_default();
            let output = text::last_lines(&String::from_utf8_lossy(&output), 10);
            let hint = format!(
                "lead it here with `phalanx lead -t {0}`, or end it with `phalanx down -t {0}`",
                team.name()
            );
            return Err(Failure::new(
                Kind::Failed,
                format!("the lead in the background has ended\n{output}"),
                Some(hint),
            ));
        }
        if deadline.expired() {
            let what = format!(
                "process {pid} did not take over the lead of team {} within {seconds} s",
                team.name()
            );
            return Err(Failure::new(
                Kind::Deadline,
                what,
                Some(format!("look into {}", log.display())),
            ));
        }
        changes.wait(POLL_INTERVAL.min(deadline.remaining()));
    }
}
