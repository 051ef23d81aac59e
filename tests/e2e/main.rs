//! Whole walks: the real binary, real tmux on a server of the test's own, real processes.

#![allow(clippy::disallowed_methods, reason = "tests drive the real system")]
#![allow(unreachable_pub, reason = "the modules of a test binary are nobody's interface")]

mod adopt;
mod announce;
mod answers;
mod authority;
mod bad_input;
mod brief;
mod broken;
mod cascade;
mod completion;
mod contract;
mod crash;
mod delete;
mod dialogs;
mod doctor;
mod exec_backend;
mod explain;
mod fake;
#[path = "../gear/mod.rs"]
mod gear;
mod handshake;
mod harness;
mod health;
mod hooks;
mod input;
mod iterm2;
mod lead;
mod lease;
mod limits;
mod logs;
mod names;
mod nested;
mod owners;
mod profile;
mod ps;
mod reminders;
mod requests;
mod results;
mod resume;
mod roles;
mod rules;
mod seat;
mod settings;
mod shutdown;
mod soak;
mod spawn;
mod speaker;
mod staff;
mod stopped;
mod task_mode;
mod tasks;
mod tmux;
mod up;
mod up_terminal;
mod visible;
mod waits;
mod walks;
mod watch;
mod way_in;
mod worktree;
mod wrap;
mod wrap_report;
mod wrap_shutdown;
mod wrap_urgent;
