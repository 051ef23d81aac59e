//! Tests of other modules once more, with the teams in PostgreSQL instead of files. Each module asks
//! its parent for a stage: this one, or the root.

use std::fs;

use crate::harness::Stage;

fn stage() -> Stage {
    Stage::new().in_postgres()
}

fn stage_without_tmux() -> Stage {
    Stage::without_tmux().in_postgres()
}

#[path = "answers.rs"]
mod answers;
#[path = "board.rs"]
mod board;
#[path = "endings.rs"]
mod endings;
#[path = "handoffs.rs"]
mod handoffs;
#[path = "handshake.rs"]
mod handshake;
#[path = "lease.rs"]
mod lease;
#[path = "plans.rs"]
mod plans;
#[path = "reconcile.rs"]
mod reconcile;
#[path = "reminders.rs"]
mod reminders;
#[path = "rename.rs"]
mod rename;
#[path = "requests.rs"]
mod requests;
#[path = "results.rs"]
mod results;
#[path = "review.rs"]
mod review;
#[path = "review_decisions.rs"]
mod review_decisions;
#[path = "shutdown.rs"]
mod shutdown;
#[path = "spawn.rs"]
mod spawn;
#[path = "tasks.rs"]
mod tasks;
#[path = "up.rs"]
mod up;

#[test]
fn every_module_asks_its_parent_for_its_stages() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/");
    let read = |name: &str| fs::read_to_string(format!("{folder}{name}")).expect("a module");
    let own = read("postgres.rs");
    let modules: Vec<&str> = own
        .lines()
        .filter_map(|line| line.strip_prefix("#[path = \"")?.strip_suffix("\"]"))
        .collect();
    assert!(modules.len() > 10, "{modules:?}");
    for module in modules {
        let text = read(module);
        assert!(text.contains("super::stage"), "{module} asks nobody for a stage");
        for other in ["Stage::new()", "Stage::without_tmux()", "worktree::stage"] {
            assert!(!text.contains(other), "{module}: {other} is always on files");
        }
    }
}
