//! Checks of the functions of the operating system that phalanx relies on, for
//! `phalanx doctor --self-test`. They run one after the other in a process without other threads
//! and children, because [`tree`] ends all descendants of the process.

mod check;
mod files;
mod helper;
mod process;
mod terminal;
mod tree;

pub(crate) use check::SystemCheck;
pub use check::{CheckFault, CheckResult, HelperRole, TestSite};
pub use helper::run_helper;

/// All checks, in the order in which they run.
pub const CHECKS: [SystemCheck; 15] = [
    SystemCheck { name: "start-time", run: process::start_time },
    SystemCheck { name: "zombie", run: process::zombie },
    SystemCheck { name: "exit-notice", run: process::exit_notice },
    SystemCheck { name: "command-line", run: process::command_line },
    SystemCheck { name: "ancestry", run: terminal::ancestry },
    SystemCheck { name: "signal", run: process::signal },
    SystemCheck { name: "socket", run: files::socket },
    SystemCheck { name: "boot-id", run: process::boot_id },
    SystemCheck { name: "watch", run: files::watch },
    SystemCheck { name: "rename", run: files::rename },
    SystemCheck { name: "flock", run: files::flock },
    SystemCheck { name: "pty", run: terminal::pty },
    SystemCheck { name: "foreground", run: terminal::foreground },
    SystemCheck { name: "inheritance", run: terminal::inheritance },
    SystemCheck { name: "process-tree", run: tree::process_tree },
];

#[cfg(test)]
mod tests;
