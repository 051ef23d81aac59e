//! Programs that wait for input of their terminal.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::sys::termios::{LocalFlags, tcgetattr};

use super::super::native;
use super::super::stat::{InputWait, Wait};
use super::process::Process;

/// The input that a program waits for. Two equal values are one uninterrupted wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AwaitedInput {
    /// A line, in a process with this pid after this number of waits.
    Line { pid: i32, turns: u64 },
    /// A key: the program has turned off the terminal's line editing. Such a program may wake up
    /// without input, so its waits are not counted.
    Key { pid: i32 },
}

impl AwaitedInput {
    /// Returns true if the terminal collects a line for the program.
    pub fn is_line(self) -> bool {
        matches!(self, AwaitedInput::Line { .. })
    }
}

/// Returns the input that the foreground job of the terminal at `tty` waits for; `None` if it does
/// not wait, and on a system that does not show it. `process` has this terminal.
pub fn awaited_input(process: Process, tty: &Path) -> Option<AwaitedInput> {
    let InputWait { pid, turns, wait } =
        native::input_wait(process.pid).filter(|_| process.is_alive())?;
    let flags = libc::O_NOCTTY | libc::O_NONBLOCK;
    let terminal = OpenOptions::new().read(true).custom_flags(flags).open(tty).ok()?;
    let modes = tcgetattr(terminal).ok()?.local_flags;
    let collects_lines = modes.contains(LocalFlags::ICANON);
    match wait {
        Wait::Read if collects_lines => Some(AwaitedInput::Line { pid, turns }),
        // Only a program that reads a password turns off the echo alone.
        Wait::Hidden if collects_lines && !modes.contains(LocalFlags::ECHO) => {
            Some(AwaitedInput::Line { pid, turns })
        }
        Wait::Read | Wait::Event if !collects_lines => Some(AwaitedInput::Key { pid }),
        Wait::Read | Wait::Event | Wait::Hidden => None,
    }
}
