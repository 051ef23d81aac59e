//! Tests of the gate alone: exclusion among threads and processes, and fairness.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::super::{Gate, LockError, holds_gate_in};
use super::{Place, SOON};
use crate::clock;
use crate::testing::{Guarded, PATIENCE, helper, until};

#[test]
fn gate_excludes_others_until_dropped() {
    let place = Place::new();
    let held = Gate::open(&place.gate(), Duration::ZERO).expect("free");
    assert!(Gate::try_open(&place.gate()).expect("usable").is_none());
    let error = Gate::open(&place.gate(), SOON).expect_err("held");
    let text = error.to_string();
    assert!(matches!(error, LockError::Timeout { waited_ms: 60.., .. }), "{text}");
    assert!(text.contains(&format!("held by process {}", std::process::id())), "{text}");
    drop(held);
    assert!(Gate::try_open(&place.gate()).expect("usable").is_some());
    assert_eq!(place.names(), ["gate"], "the gate's file stays");
}

/// TK-02: no waiter starves under contention.
#[test]
fn tk_02_immediate_retries_do_not_starve_a_waiter() {
    let place = Place::new();
    let (stop, rounds) = (AtomicBool::new(false), AtomicU32::new(0));
    let mut most = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _gate = Gate::open(&place.gate(), PATIENCE).expect("free at last");
                rounds.fetch_add(1, Ordering::Relaxed);
                let held = Instant::now();
                while held.elapsed() < Duration::from_millis(3) {
                    std::hint::spin_loop();
                }
            }
        });
        until("the greedy one has it", || rounds.load(Ordering::Relaxed) > 0);
        for _ in 0..4 {
            let before = rounds.load(Ordering::Relaxed);
            drop(Gate::open(&place.gate(), PATIENCE).expect("free at last"));
            most = most.max(rounds.load(Ordering::Relaxed) - before);
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert!(most < 1_000, "passed {most} times");
}

#[test]
fn held_gate_is_found_by_the_pid_of_its_holder() {
    let place = Place::new();
    let (dir, elsewhere) = (place.dir.path(), place.dir.path().join("lead"));
    let pid = i32::try_from(std::process::id()).expect("a pid");
    let held = Gate::open(&place.gate(), PATIENCE).expect("free");
    assert!(holds_gate_in(dir, &elsewhere, pid));
    assert!(!holds_gate_in(dir, &place.gate(), pid), "the only gate is excepted");
    assert!(!holds_gate_in(dir, &elsewhere, 1), "another process");
    drop(held);
    assert!(!holds_gate_in(dir, &elsewhere, pid));
}

#[test]
fn gate_refuses_lock_names_links_and_missing_directories() {
    let place = Place::new();
    assert!(Gate::open(&place.dir.path().join("x.lock"), SOON).is_err());
    symlink("/dev/null", place.gate()).expect("writable");
    assert!(Gate::open(&place.gate(), SOON).is_err());
    assert!(Gate::open(&place.dir.path().join("none/gate"), SOON).is_err());
}

#[test]
fn a_gate_frees_when_its_process_is_killed() {
    let place = Place::new();
    let mut command = helper("lock::tests::gate::helper_holds_the_gate");
    let mut other = Guarded::spawn(command.env("SYS_TEST_DIR", place.dir.path()));
    until("the helper holds the gate", || place.names().contains(&"held".to_owned()));
    assert!(Gate::try_open(&place.gate()).expect("usable").is_none());
    other.0.kill().expect("ours");
    Gate::open(&place.gate(), PATIENCE).expect("free after the kill");
}

#[test]
#[ignore = "helper process of a_gate_frees_when_its_process_is_killed"]
fn helper_holds_the_gate() {
    let dir = PathBuf::from(std::env::var_os("SYS_TEST_DIR").expect("helpers are run by a test"));
    let _gate = Gate::open(&dir.join("gate"), PATIENCE).expect("free");
    fs::write(dir.join("held"), "").expect("writable");
    clock::sleep(PATIENCE);
}
