//! The check of the end of a process tree.

use std::ffi::OsString;
use std::time::Duration;

use super::super::native;
use super::super::proc::{Process, become_subreaper, end_marked, end_tree};
use super::check::{
    CheckFault, CheckResult, HelperRole, TestChild, TestSite, TestStranger, require,
};

/// The files with the pids of the children.
pub(super) const IGNORING: &str = "ignoring";
pub(super) const ESCAPED: &str = "escaped";
/// Variable that marks the processes of the tree.
const MARK: &str = "SELF_TEST_MARK";
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(400);

/// Ends a tree with a child that ignores signals and one that has left its session, and no other
/// process.
pub(super) fn process_tree(site: &TestSite) -> CheckResult {
    let value = site.dir().as_os_str().to_owned();
    let mut other = value.clone();
    other.push("x");
    let bystander = TestStranger::start(site, &[(OsString::from(MARK), other)])?;
    // Stays in force, so that orphans of the tree do not become children of another process.
    let adopts = become_subreaper();
    let mut command = TestChild::command(&site.helper(HelperRole::Tree));
    let root = TestChild::spawn(command.env(MARK, &value))?;
    let ignoring = running(site.pid_in(IGNORING)?)?;
    let escaped = running(site.pid_in(ESCAPED)?)?;
    let stat = native::stat(escaped.pid)?;
    require(
        stat.session == escaped.pid && stat.ppid != root.process.pid,
        "a detached process has not left the tree",
    )?;
    let mut left = end_tree(root.process, true, GRACE);
    let way = if adopts {
        left.extend(end_tree(Process::current(), false, GRACE));
        "as an adopted child"
    } else {
        let mark = format!("{MARK}={}", site.dir().display());
        left.extend(end_marked(&[mark], GRACE));
        "by its mark"
    };
    let mut survivors = [root.process, ignoring, escaped]
        .into_iter()
        .filter(|process| left.contains(process) || Process::of(process.pid) == Some(*process));
    if let Some(survivor) = survivors.next() {
        let name = match survivor {
            survivor if survivor == escaped => "a child that left its session",
            survivor if survivor == ignoring => "a child that ignores HUP and TERM",
            _ => "the root of a tree",
        };
        return Err(CheckFault::Failed(format!("{name} still runs")));
    }
    let lives = Process::of(bystander.process.pid) == Some(bystander.process);
    require(lives, "a process outside the tree was ended")?;
    Ok(format!("ended; the child that left its session was found {way}"))
}

fn running(pid: i32) -> Result<Process, CheckFault> {
    Process::of(pid).ok_or_else(|| CheckFault::Failed(format!("process {pid} has ended")))
}
