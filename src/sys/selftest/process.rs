//! Checks of single processes.

use std::ffi::{OsStr, OsString};
use std::thread;
use std::time::{Duration, Instant};

use super::super::exec::{self, ExecCommand};
use super::super::fs::{canonical, create_dir_exclusive};
use super::super::proc::{self, Liveness, Process, liveness, of_this_user, wait_exit};
use super::super::{clock, env, native};
use super::check::{
    CheckFault, CheckResult, HelperRole, PATIENCE, TestChild, TestSite, TestStranger, require,
    shown, wait_for,
};

/// Time between two starts that must differ. The clock of Linux has ticks of 10 ms.
const APART: Duration = Duration::from_millis(50);

/// A start time does not change, tells processes apart, and unmasks a reused pid.
pub(super) fn start_time(site: &TestSite) -> CheckResult {
    let earlier = TestChild::start(site, HelperRole::Wait)?.process;
    clock::sleep(APART);
    let child = TestChild::start(site, HelperRole::Wait)?;
    let Process { pid, start } = child.process;
    require(start > 0, "a child has no start time")?;
    require(start > earlier.start, "a later child has no later start time")?;
    clock::sleep(APART);
    require(Process::of(pid) == Some(child.process), "the start time of a child has changed")?;
    require(liveness(pid, start) == Liveness::Alive, "a running child does not count as alive")?;
    let reused = [earlier.start, start - 1, start + 1].map(|other| liveness(pid, other));
    require(
        reused == [Liveness::Dead; 3],
        "a process that was recorded with another start time does not count as dead",
    )?;
    let text = child.process.start_text();
    let recorded = Process::recorded(pid, &text);
    require(recorded == Some(child.process), format!("{text:?} is read as {recorded:?}"))?;
    if env::os() == "macos" {
        let shown = shown_by_ps(pid)?;
        require(shown == text, format!("`ps` shows {shown:?} instead of {text:?}"))?;
    }
    Ok(format!("stable, later for a later process; Claude Code's form is `{text}`"))
}

/// Returns the start time of a process as `ps` prints it.
fn shown_by_ps(pid: i32) -> Result<String, CheckFault> {
    let fixed = [("LC_ALL", "C"), ("TZ", "UTC")].map(|(name, value)| (name.into(), value.into()));
    let command = ExecCommand {
        program: "/bin/ps".into(),
        args: ["-o", "lstart=", "-p", &pid.to_string()].map(OsString::from).into(),
        env: Some(fixed.into()),
        ..ExecCommand::default()
    };
    let output = exec::run(&command, PATIENCE)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A child that has ended counts as dead before it is reaped.
pub(super) fn zombie(site: &TestSite) -> CheckResult {
    let mut child = TestChild::start(site, HelperRole::Exit)?;
    let Process { pid, start } = child.process;
    wait_for("an unreaped child that has ended counts as dead", || {
        liveness(pid, start) == Liveness::Dead
    })?;
    require(native::stat(pid)?.ended, "the system does not show an unreaped child")?;
    require(Process::of(pid).is_none(), "an unreaped child counts as running")?;
    child.reap();
    require(liveness(pid, start) == Liveness::Dead, "a reaped child does not count as dead")?;
    Ok("dead before and after it was reaped".to_owned())
}

/// The wait for the end of a process that is not a child of the waiter.
pub(super) fn exit_notice(site: &TestSite) -> CheckResult {
    let stranger = TestStranger::start(site, &[])?;
    let way = match proc::exit_notice(stranger.process.pid) {
        Some(_) => "by notice",
        None => "by polling",
    };
    let blocking = ended_after(stranger.process, || wait_exit(stranger.process, PATIENCE))?;
    let stranger = TestStranger::start(site, &[])?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let awaited = ended_after(stranger.process, || {
        let ended = proc::exited(stranger.process);
        runtime.block_on(async { tokio::time::timeout(PATIENCE, ended).await.is_ok() })
    })?;
    Ok(format!("{way}: {} after the signal; awaited: {}", shown(blocking), shown(awaited)))
}

/// Ends the process while `wait` waits for that; returns the time between the two.
fn ended_after(process: Process, wait: impl FnOnce() -> bool) -> Result<Duration, CheckFault> {
    let killer = thread::spawn(move || {
        clock::sleep(APART);
        let sent = Instant::now();
        proc::signal(process, libc::SIGTERM).then_some(sent)
    });
    let has_ended = wait();
    let now = Instant::now();
    let sent = killer.join().ok().flatten();
    require(has_ended, "the end of a process was not noticed")?;
    require(sent.is_some_and(|sent| sent <= now), "the wait ended before the process")?;
    Ok(sent.map_or(Duration::ZERO, |sent| now.duration_since(sent)))
}

/// Command line, environment, working directory and executable of a child.
pub(super) fn command_line(site: &TestSite) -> CheckResult {
    const NAME: &str = "SELF_TEST_VALUE";
    let value = OsStr::new("a=b 'c'\nd \u{e4}");
    let dir = site.file("a directory \u{e4}");
    create_dir_exclusive(&dir)?;
    let mut argv = site.helper(HelperRole::Wait);
    // A waiting helper does not use its directory.
    argv[3] = "two words 'x' \u{e4}".into();
    let mut command = TestChild::command(&argv);
    let child = TestChild::spawn(command.current_dir(&dir).env(NAME, value))?;
    let found = of_this_user().into_iter().find(|running| running.process == child.process);
    let found = found.ok_or_else(|| {
        CheckFault::Failed("the list of processes does not have a child".to_owned())
    })?;
    require(found.argv == argv, format!("the command line is shown as {:?}", found.argv))?;
    let exe = canonical(&found.exe)?;
    require(exe == canonical(site.exe())?, format!("the executable is shown as {exe:?}"))?;
    let cwd = found.cwd().map(|cwd| canonical(&cwd)).transpose()?;
    let expected = Some(canonical(&dir)?);
    require(cwd == expected, format!("the working directory is shown as {cwd:?}"))?;
    let seen = found.var(NAME);
    require(seen.as_deref() == Some(value), format!("a variable is shown as {seen:?}"))?;
    Ok("command line, environment, directory and executable are as started".to_owned())
}

/// A signal reaches exactly one process, and none with another start time.
pub(super) fn signal(site: &TestSite) -> CheckResult {
    let bystander = TestChild::start(site, HelperRole::Wait)?;
    let child = TestChild::start(site, HelperRole::Wait)?;
    let process = child.process;
    let namesake = Process { start: process.start + 1, ..process };
    require(
        !proc::signal(namesake, libc::SIGKILL),
        "a signal was sent to a process with another start time",
    )?;
    let is_stopped = || proc::is_stopped(process.pid, process.start);
    require(proc::stop(process), "a child cannot be stopped")?;
    wait_for("a stopped child is shown as stopped", is_stopped)?;
    require(proc::resume(process), "a child cannot be continued")?;
    wait_for("a continued child is shown as running", || !is_stopped())?;
    require(Process::of(process.pid) == Some(process), "a child has ended of no signal")?;
    require(proc::signal(process, libc::SIGTERM), "no signal can be sent to a child")?;
    require(wait_exit(process, PATIENCE), "a child does not end of SIGTERM")?;
    require(
        !proc::signal(process, libc::SIGTERM),
        "a signal was sent to a process that has ended",
    )?;
    let lives = Process::of(bystander.process.pid) == Some(bystander.process);
    require(lives, "another process has ended of the signal")?;
    Ok("sent to one process, refused for another start time".to_owned())
}

/// The id of this boot.
pub(super) fn boot_id(_site: &TestSite) -> CheckResult {
    let id = native::boot_id().unwrap_or_default();
    require(!id.is_empty(), "the system has none")?;
    let again = [native::boot_id().unwrap_or_default(), env::boot_id()];
    require(again.iter().all(|other| *other == id), format!("{id}, then {again:?}"))?;
    Ok(id)
}
