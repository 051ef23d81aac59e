//! Checks of pseudo-terminals, and of what a program inherits.

#![expect(unsafe_code, reason = "setting the action of a signal")]

use std::fs;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use nix::sys::signal::{self, SigHandler, SigSet, Signal};
use nix::unistd;

use super::super::child::{ChildExit, Program, PtyMaster, spawn_on_pty, wait};
use super::super::native;
use super::super::proc::{self, Process, wait_exit};
use super::check::{CheckFault, CheckResult, HelperRole, PATIENCE, TestSite, require, wait_for};

/// Number of lines that a helper process writes just before it ends.
pub(super) const LAST_LINES: usize = 500;
/// The signal that a helper process raises, which ends it by default.
pub(super) const PROBED: Signal = Signal::SIGUSR1;
/// Bound of the descriptors that a helper process looks for.
pub(super) const DESCRIPTORS: i32 = 64;

/// A program on a terminal of its own. It is killed and reaped on drop.
struct TestTerminal {
    process: Process,
    is_reaped: bool,
    master: PtyMaster,
    shown: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl TestTerminal {
    fn start(program: &Program, rows: u16, cols: u16) -> Result<TestTerminal, CheckFault> {
        let (process, master) = spawn_on_pty(program, rows, cols)?;
        let mut output = master.reader()?;
        let shown = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&shown);
        let reader = thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut piece) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend(&piece[..count]);
            }
        });
        Ok(TestTerminal { process, is_reaped: false, master, shown, reader })
    }

    fn text(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).replace('\r', "")
    }

    /// Waits until the program has written `words`.
    fn wait_text(&self, words: &str) -> Result<(), CheckFault> {
        let waited =
            wait_for(&format!("{words:?} on the terminal"), || self.text().contains(words));
        waited.map(drop).map_err(|fault| match fault {
            CheckFault::Failed(what) => {
                CheckFault::Failed(format!("{what}, which shows {:?}", self.text()))
            }
            skipped @ CheckFault::Skipped(_) => skipped,
        })
    }

    /// Waits until the program has ended and all of its output was read.
    fn finish(&mut self) -> Result<ChildExit, CheckFault> {
        let has_ended = wait_exit(self.process, PATIENCE);
        require(has_ended, format!("the program does not end; it wrote {:?}", self.text()))?;
        self.is_reaped = true;
        let exit = wait(self.process);
        wait_for("the end of the output of a program that has ended", || {
            self.reader.is_finished()
        })?;
        Ok(exit)
    }
}

impl Drop for TestTerminal {
    fn drop(&mut self) {
        if !self.is_reaped {
            proc::signal(self.process, libc::SIGKILL);
            wait(self.process);
        }
    }
}

/// Parent, session and terminal of a process.
pub(super) fn ancestry(site: &TestSite) -> CheckResult {
    let terminal = TestTerminal::start(&site.program(HelperRole::Wait), 24, 80)?;
    let (pid, us) = (terminal.process.pid, unistd::getpid().as_raw());
    let stat = native::stat(pid)?;
    require(stat.ppid == us, format!("the parent is shown as {} instead of {us}", stat.ppid))?;
    require(stat.session == pid, format!("the session is shown as {}", stat.session))?;
    let (name, shown) = (terminal.master.tty_name(), proc::tty_of(pid));
    require(shown.is_some() && shown == name, format!("terminal {name:?} is shown as {shown:?}"))?;
    Ok(format!("child of {us} in its own session on {}", shown.unwrap_or_default()))
}

/// Size, input and complete output of a terminal.
pub(super) fn pty(site: &TestSite) -> CheckResult {
    let mut terminal = TestTerminal::start(&site.program(HelperRole::Draw), 30, 100)?;
    terminal.wait_text("first 30 100\n")?;
    terminal.master.write_all(b"some text\n")?;
    terminal.wait_text("got some text\n")?;
    terminal.master.resize(31, 97)?;
    terminal.wait_text("now 31 97\n")?;
    let exit = terminal.finish()?;
    require(exit.code == Some(7), format!("the program ended with {exit:?}"))?;
    let text = terminal.text();
    let is_complete = (1..=LAST_LINES).all(|n| text.contains(&format!("line {n}\n")));
    require(is_complete, format!("of the last {LAST_LINES} lines, some are missing"))?;
    Ok("30x100, then 31x97; typed text arrived, the output is complete".to_owned())
}

/// The foreground of a terminal and its signals, by the loop of a launcher.
pub(super) fn foreground(site: &TestSite) -> CheckResult {
    let mut terminal = TestTerminal::start(&site.program(HelperRole::Supervise), 24, 80)?;
    terminal.wait_text("ready\n")?;
    // Ctrl-Z: no shell continues the program, so the launcher must.
    terminal.master.write_all(b"\x1a")?;
    terminal.master.write_all(b"some text\n")?;
    terminal.wait_text("got some text\n")?;
    terminal.master.write_all(b"\x03")?;
    terminal.wait_text("interrupted\n")?;
    require(proc::signal(terminal.process, libc::SIGTERM), "no signal to the launcher")?;
    terminal.wait_text("terminated\n")?;
    let exit = terminal.finish()?;
    require(exit.code == Some(5), format!("the launcher ended with {exit:?}"))?;
    Ok("a child in the foreground gets input, Ctrl-Z, Ctrl-C and forwarded signals".to_owned())
}

/// A program that was started inherits neither descriptors nor what is done with signals.
pub(super) fn inheritance(site: &TestSite) -> CheckResult {
    let directory = fs::File::open(site.dir())?;
    // Without the close-on-exec flag, which std sets.
    let leaked = unistd::dup(&directory)?;
    let number = leaked.as_raw_fd();
    require(number < DESCRIPTORS, format!("this process has {number} descriptors"))?;
    let started = {
        let _withheld = WithheldSignal::new(PROBED)?;
        TestTerminal::start(&site.program(HelperRole::Inherit), 24, 80)
    };
    let mut terminal = started?;
    let exit = terminal.finish()?;
    let text = terminal.text();
    let is_clean = text.contains("open [0, 1, 2]\n");
    require(is_clean, format!("the descriptors of a program, with /dev/fd: {text:?}"))?;
    let by_default = exit.signal == Some(PROBED as i32);
    require(by_default, format!("a blocked and ignored signal is so in a program: {exit:?}"))?;
    Ok(format!("a program has 0, 1, 2, and not {number}; its signals have default actions"))
}

/// Blocks and ignores a signal until dropped.
struct WithheldSignal {
    signal: Signal,
    before: SigHandler,
}

impl WithheldSignal {
    fn new(signal: Signal) -> nix::Result<WithheldSignal> {
        SigSet::from(signal).thread_block()?;
        // SAFETY: no handler function is involved.
        let before = unsafe { signal::signal(signal, SigHandler::SigIgn) }?;
        Ok(WithheldSignal { signal, before })
    }
}

impl Drop for WithheldSignal {
    fn drop(&mut self) {
        // SAFETY: restores what was there before.
        let _ = unsafe { signal::signal(self.signal, self.before) };
        let _ = SigSet::from(self.signal).thread_unblock();
    }
}
