//! What a check needs: its result, a directory of its own, helper processes, waits with a limit.

use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::super::child::Program;
use super::super::clock::{self, Deadline};
use super::super::exec::spawn_detached;
use super::super::fs::{FsError, canonical, private_dir, remove_dir_all};
use super::super::proc::{self, Process};
use super::super::{env, rand};

/// Time limit of everything that a check waits for.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The hidden verb of phalanx that runs a [`HelperRole`].
const HELPER_VERB: &str = "self-test-helper";

/// A check of one function of the operating system.
#[derive(Debug, Clone, Copy)]
pub struct SystemCheck {
    pub name: &'static str,
    pub run: fn(&TestSite) -> CheckResult,
}

/// What a check has found out, for people.
pub type CheckResult = Result<String, CheckFault>;

/// The reason why a check did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckFault {
    /// The system does not do what phalanx relies on.
    Failed(String),
    /// The check does not apply here.
    Skipped(String),
}

impl<E: Error> From<E> for CheckFault {
    fn from(error: E) -> CheckFault {
        let mut words = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            words = format!("{words}: {cause}");
            source = cause.source();
        }
        CheckFault::Failed(words)
    }
}

/// Fails the check with `what` unless `holds`.
pub(super) fn require(holds: bool, what: impl Into<String>) -> Result<(), CheckFault> {
    if holds { Ok(()) } else { Err(CheckFault::Failed(what.into())) }
}

/// Waits until `condition` holds; returns the time that this took.
pub(super) fn wait_for(
    what: &str,
    mut condition: impl FnMut() -> bool,
) -> Result<Duration, CheckFault> {
    let deadline = Deadline::after(PATIENCE);
    while !condition() {
        let limit = PATIENCE.as_secs();
        require(!deadline.expired(), format!("not seen within {limit} s: {what}"))?;
        clock::sleep(Duration::from_millis(2));
    }
    Ok(deadline.elapsed())
}

/// Formats a latency, as `0.4 ms`.
pub(super) fn shown(latency: Duration) -> String {
    format!("{:.1} ms", latency.as_secs_f64() * 1000.0)
}

/// The task of a helper process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum HelperRole {
    /// Sleeps for a minute.
    Wait,
    /// Ends at once.
    Exit,
    /// Holds a lock in the directory.
    Hold,
    /// Ignores SIGHUP and SIGTERM.
    Ignore,
    /// Starts a child that ignores signals and one that leaves the session.
    Tree,
    /// Supervises a child in the foreground of its terminal, as a launcher does.
    Supervise,
    /// Reads a line, then waits for the signals of [`HelperRole::Supervise`].
    Interact,
    /// Prints the size of its terminal, a line that it reads, and many lines.
    Draw,
    /// Prints its open descriptors, then raises a signal.
    Inherit,
}

/// A temporary directory for the checks, removed on drop, and the executable of phalanx.
#[derive(Debug)]
pub struct TestSite {
    dir: PathBuf,
    exe: PathBuf,
}

impl TestSite {
    /// Creates the directory, which only this user can enter, in `$TMPDIR` or `/tmp`.
    pub fn create(exe: &Path) -> Result<TestSite, FsError> {
        // Short, because it also holds sockets.
        let name = format!("phalanx-{}", &rand::token()[..8]);
        // Resolved, because the system reports directories without symbolic links: on macOS,
        // `/var` is one.
        let dir = canonical(&std::env::temp_dir())?.join(name);
        private_dir(&dir)?;
        Ok(TestSite { dir, exe: exe.to_owned() })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the command line of a helper process that waits, for a place of a backend.
    pub fn waiting_helper(&self) -> Vec<OsString> {
        self.helper(HelperRole::Wait)
    }

    /// Returns the command line of a helper process. Helpers run phalanx itself, because macOS
    /// hides the environment of its own programs, such as `/bin/sh`.
    pub(super) fn helper(&self, role: HelperRole) -> Vec<OsString> {
        helper_argv(&self.exe, role, &self.dir)
    }

    pub(super) fn exe(&self) -> &Path {
        &self.exe
    }

    /// Returns a helper process as a program with the environment of this process.
    pub(super) fn program(&self, role: HelperRole) -> Program {
        Program {
            path: self.exe.clone(),
            argv: self.helper(role),
            cwd: self.dir.clone(),
            env: env::vars(),
        }
    }

    /// Waits until a helper process has written a pid and a newline to a file.
    pub(super) fn pid_in(&self, name: &str) -> Result<i32, CheckFault> {
        let mut pid = None;
        wait_for(&format!("a process that writes its pid to the file `{name}`"), || {
            let text = fs::read_to_string(self.file(name)).unwrap_or_default();
            pid = text.strip_suffix('\n').and_then(|line| line.parse().ok());
            pid.is_some()
        })?;
        pid.ok_or_else(|| CheckFault::Failed("no pid".to_owned()))
    }
}

/// Returns the command line of a helper process that works in `dir`.
pub(super) fn helper_argv(exe: &Path, role: HelperRole, dir: &Path) -> Vec<OsString> {
    let role: &'static str = role.into();
    vec![exe.into(), HELPER_VERB.into(), role.into(), dir.into()]
}

impl Drop for TestSite {
    fn drop(&mut self) {
        // A failure leaves files in the directory for temporary files.
        let _ = remove_dir_all(&self.dir);
    }
}

/// A child of this process, killed and reaped on drop.
#[derive(Debug)]
pub(super) struct TestChild {
    pub(super) process: Process,
    child: Child,
}

impl TestChild {
    /// Starts a helper process.
    pub(super) fn start(site: &TestSite, role: HelperRole) -> Result<TestChild, CheckFault> {
        TestChild::spawn(&mut TestChild::command(&site.helper(role)))
    }

    /// Returns the command of a helper process. Its standard streams are `/dev/null`.
    pub(super) fn command(argv: &[OsString]) -> Command {
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    pub(super) fn spawn(command: &mut Command) -> Result<TestChild, CheckFault> {
        let mut child = command.spawn()?;
        let Some(process) = i32::try_from(child.id()).ok().and_then(Process::of_child) else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(CheckFault::Failed("the system does not show a new child".to_owned()));
        };
        Ok(TestChild { process, child })
    }

    pub(super) fn reap(&mut self) {
        // Fails if another part of the check has reaped it.
        let _ = self.child.wait();
    }
}

impl Drop for TestChild {
    fn drop(&mut self) {
        proc::signal(self.process, libc::SIGKILL);
        self.reap();
    }
}

/// A helper process that is no child of this one, killed on drop.
#[derive(Debug)]
pub(super) struct TestStranger {
    pub(super) process: Process,
}

impl TestStranger {
    /// Starts a helper process that waits, with these variables in addition to those of this
    /// process.
    pub(super) fn start(
        site: &TestSite,
        variables: &[(OsString, OsString)],
    ) -> Result<TestStranger, CheckFault> {
        let argv = site.waiting_helper();
        let env: Vec<_> = env::vars().into_iter().chain(variables.iter().cloned()).collect();
        let pid = spawn_detached(&argv[0], &argv[1..], Some(&env), site.dir(), None)?;
        let process = Process::of(pid)
            .ok_or_else(|| CheckFault::Failed("a detached process has ended".to_owned()))?;
        Ok(TestStranger { process })
    }
}

impl Drop for TestStranger {
    fn drop(&mut self) {
        proc::signal(self.process, libc::SIGKILL);
    }
}
