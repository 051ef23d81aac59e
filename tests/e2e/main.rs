//! Whole walks: the real binary, real tmux on a server of the test's own, real processes.

#![allow(clippy::disallowed_methods, reason = "tests drive the real system")]
#![allow(unreachable_pub, reason = "the modules of a test binary are nobody's interface")]

mod bad_input;
mod cascade;
mod doctor;
mod exec_backend;
mod explain;
mod harness;
mod health;
mod iterm2;
mod lead;
mod lease;
mod profile;
mod ps;
mod shutdown;
mod spawn;
mod staff;
mod tasks;
mod tmux;
mod up;
mod watch;
