//! Tests with the real binary, real processes, and a tmux server per test, and tests of the store.
//! They are one binary, because each binary links the whole program again.

#![allow(clippy::disallowed_methods, reason = "tests drive the real system")]
#![allow(unreachable_pub, reason = "the modules of a test binary are nobody's interface")]
#![expect(clippy::duplicate_mod, reason = "the tests of some modules run with two kinds of stores")]

mod access;
mod acp;
mod activity;
mod adopt;
mod agent_lead;
mod announce;
mod answers;
mod authority;
mod bad_input;
mod board;
mod board_crash;
mod brief;
mod broken;
mod cascade;
mod claude_settings;
mod client;
mod clocks;
mod completion;
mod contract;
mod costs;
mod crash;
mod cut_restarts;
mod dashboard;
mod dashboard_keys;
mod delete;
mod dialogs;
mod doctor;
mod editor;
mod ending;
mod endings;
mod environment;
mod explain;
#[cfg(debug_assertions)]
mod failpoints;
mod fake;
mod fault_load;
mod fault_stage;
mod foreign;
mod formats;
mod fuzzing;
mod gear;
mod guide;
mod handoffs;
mod handshake;
mod harness;
mod health;
mod help;
mod hooks;
mod host_faults;
mod host_outages;
mod host_stage;
mod hosts;
mod ids;
mod init;
mod input;
mod install;
mod interop;
mod interrupted;
mod iterm2;
mod joints;
mod landing_crash;
mod launcher;
mod lead;
mod learn;
mod lease;
mod limits;
mod logs;
mod mcp;
mod mcp_clients;
mod mcp_tools;
mod model;
mod names;
mod native;
mod needs;
mod nested;
mod news;
mod offers;
mod owners;
mod plans;
mod planted;
mod popup;
mod postgres;
mod process;
mod profile;
mod prompts;
mod ps;
mod pull_requests;
mod quiet;
mod reconcile;
mod reminders;
mod remote_cuts;
mod remote_leads;
mod remote_members;
mod remote_native;
mod remote_stage;
mod remote_tools;
mod remote_verbs;
mod remote_worktrees;
mod rename;
mod requests;
mod results;
mod resume;
mod review;
mod review_colors;
mod review_decisions;
mod roles;
mod rules;
mod self_test;
mod services;
mod settings;
mod shutdown;
mod soak;
mod spawn;
mod speaker;
mod staff;
mod stale;
mod status_line;
mod stopped;
mod storm;
mod submodules;
mod task_import;
mod task_mode;
mod task_reminders;
mod task_stop;
mod task_views;
mod tasks;
mod templates;
mod tmux;
mod tokens;
mod transfer;
mod up;
mod up_terminal;
mod usage;
mod visible;
mod waits;
mod walks;
mod watch;
mod waves;
mod way_in;
mod workspace;
mod worktree;
mod worktree_records;
mod wrap;
mod wrap_report;
mod wrap_shutdown;
mod wrap_urgent;

use harness::Stage;

/// The stage of a module that is also a module of `postgres`, where teams are in a database.
fn stage() -> Stage {
    Stage::new()
}

fn stage_without_tmux() -> Stage {
    Stage::without_tmux()
}
