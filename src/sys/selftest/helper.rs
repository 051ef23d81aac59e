//! Helper processes of the checks. Each ends by itself after a minute.

#![expect(unsafe_code, reason = "setting the action of a signal")]

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process;
use std::time::Duration;

use nix::sys::signal::{self, SigHandler, SigSet, Signal};

use super::super::child::{Forward, LoopHandle, Program, Supervisor, own_size, spawn_foreground};
use super::super::exec::spawn_detached;
use super::super::lock::DirLock;
use super::super::signal::SignalQueue;
use super::super::{clock, env, tty};
use super::check::{CheckFault, HelperRole, TestChild, helper_argv, require};
use super::files::{GATE, HELD, LOCKED};
use super::terminal::{DESCRIPTORS, LAST_LINES, PROBED};
use super::tree::{ESCAPED, IGNORING};

/// Life of a helper process that is not ended.
const LIFE: Duration = Duration::from_secs(60);
/// Time between a forwarded SIGTERM and SIGKILL.
const KILL_AFTER: Duration = Duration::from_secs(5);

/// Runs as a helper process; returns its exit code. Must be called in a process with one thread.
pub fn run_helper(role: HelperRole, dir: &Path) -> u8 {
    let done = match role {
        HelperRole::Wait => {
            clock::sleep(LIFE);
            Ok(0)
        }
        HelperRole::Exit => Ok(0),
        HelperRole::Hold => hold(dir),
        HelperRole::Ignore => ignore(dir),
        HelperRole::Tree => grow(dir),
        HelperRole::Supervise => supervise(dir),
        HelperRole::Interact => interact(),
        HelperRole::Draw => draw(),
        HelperRole::Inherit => inherit(),
    };
    done.unwrap_or(1)
}

fn hold(dir: &Path) -> Result<u8, CheckFault> {
    let lock = DirLock::acquire(&dir.join(LOCKED), &dir.join(GATE), LIFE)?;
    fs::write(dir.join(HELD), "")?;
    clock::sleep(LIFE);
    drop(lock);
    Ok(0)
}

fn ignore(dir: &Path) -> Result<u8, CheckFault> {
    for signal in [Signal::SIGHUP, Signal::SIGTERM] {
        // SAFETY: no handler function is involved.
        unsafe { signal::signal(signal, SigHandler::SigIgn) }?;
    }
    fs::write(dir.join(IGNORING), format!("{}\n", process::id()))?;
    clock::sleep(LIFE);
    Ok(0)
}

fn grow(dir: &Path) -> Result<u8, CheckFault> {
    let exe = env::current_exe()?;
    let argv = helper_argv(&exe, HelperRole::Ignore, dir);
    let mut ignoring = TestChild::spawn(&mut TestChild::command(&argv))?;
    let waiting = helper_argv(&exe, HelperRole::Wait, dir);
    let escaped = spawn_detached(&waiting[0], &waiting[1..], None, dir, None)?;
    fs::write(dir.join(ESCAPED), format!("{escaped}\n"))?;
    ignoring.reap();
    Ok(0)
}

fn supervise(dir: &Path) -> Result<u8, CheckFault> {
    let supervisor = Supervisor::new()?;
    let exe = env::current_exe()?;
    let argv = helper_argv(&exe, HelperRole::Interact, dir);
    let program = Program { path: exe, argv, cwd: dir.to_owned(), env: env::vars() };
    let child = spawn_foreground(&program)?;
    let (_handle, jobs) = LoopHandle::new();
    let exit = supervisor.supervise(child, &mut |_| Forward::Pass, &jobs, KILL_AFTER);
    Ok(exit.code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

fn interact() -> Result<u8, CheckFault> {
    let expected = [(Signal::SIGINT, "interrupted"), (Signal::SIGTERM, "terminated")];
    let signals = SignalQueue::new(&expected.iter().map(|(signal, _)| *signal).collect())?;
    // Before it reads: the launcher would mend that for a child that is stopped by SIGTTIN.
    print(if tty::is_background() { "in the background" } else { "ready" })?;
    print(&format!("got {}", read_line()?))?;
    for (signal, word) in expected {
        require(signals.next(LIFE)? == Some(signal as i32), "another signal")?;
        print(word)?;
    }
    Ok(5)
}

fn draw() -> Result<u8, CheckFault> {
    let resized = SignalQueue::new(&SigSet::from(Signal::SIGWINCH))?;
    print(&format!("first {}", size()))?;
    print(&format!("got {}", read_line()?))?;
    require(resized.next(LIFE)? == Some(libc::SIGWINCH), "no signal")?;
    print(&format!("now {}", size()))?;
    for line in 1..=LAST_LINES {
        print(&format!("line {line}"))?;
    }
    Ok(7)
}

fn inherit() -> Result<u8, CheckFault> {
    let is_open = |number: &i32| Path::new(&format!("/dev/fd/{number}")).exists();
    let open: Vec<i32> = (0..DESCRIPTORS).filter(is_open).collect();
    print(&format!("open {open:?}"))?;
    signal::raise(PROBED)?;
    Ok(1)
}

fn size() -> String {
    let (rows, columns) = own_size().unwrap_or_default();
    format!("{rows} {columns}")
}

fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

fn print(words: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{words}")
}
