//! Processes identified by pid and start time, so that a reused pid is never mistaken for the
//! recorded process.

mod input;
mod process;
mod running;
mod tree;

pub use input::{AwaitedInput, awaited_input};
pub use process::{
    Liveness, Process, become_subreaper, exited, is_stopped, kill, liveness, resume, signal, stop,
    tty_of, wait_exit,
};
pub use running::{RunningProcess, exe, has_open, of_this_user, of_this_user_with};
#[cfg(test)]
pub(crate) use tree::descendants;
pub use tree::{SUPERVISED_END, end_marked, end_supervised, end_tree, end_trees};

pub(super) use process::{exit_notice, ignores};

#[cfg(test)]
mod tests;
