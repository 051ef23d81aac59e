//! Hosts of a team whose clocks differ by a minute. The second host has a config root and a clock
//! of its own, and shares the database.

use testing::TestDatabase;

use crate::harness::{Run, Stage, binary, wait_for};

/// Differences of the clock in milliseconds.
const OFFSETS: [i64; 2] = [60_000, -60_000];

fn stage() -> Option<(Stage, TestDatabase)> {
    let database = TestDatabase::create()?;
    let mut stage = Stage::without_tmux();
    stage.set_env("PHALANX_STORE", &database.url());
    stage.set_env("PHALANX_TEAM", "demo");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    Some((stage, database))
}

/// Runs a verb on the host with the other clock.
fn on_other(stage: &Stage, offset_ms: i64, args: &[&str]) -> Run {
    let mut command = stage.command(binary());
    command
        .env("PHALANX_CONFIG_DIR", stage.at("other"))
        .env("PHALANX_HOST", "other")
        .env("TEST_CLOCK_MS", offset_ms.to_string());
    Run::from(command.args(args).output().expect("phalanx runs"))
}

/// SD-03: the deadline of a request is set on one host and observed by the lead on another.
#[test]
fn sd_03_deadline_from_a_host_with_another_clock_is_kept() {
    for offset in OFFSETS {
        let Some((stage, _database)) = stage() else { return };
        on_other(&stage, offset, &["lead", "--detach"]).expect(0);
        on_other(&stage, offset, &["spawn", "ann", "--backend", "pty"]).expect(0);
        stage.phalanx(&["task", "create", "wait", "--owner", "ann", "--", "sleep", "2"]).expect(0);
        wait_for("the task to run", || {
            let task = stage.phalanx(&["task", "get", "1", "--json"]).expect(0).json();
            (task["state"] == "in_progress").then_some(())
        });
        // It agrees once its task is done: too late, if the deadline had passed when it was set.
        let ended = stage.phalanx(&["shutdown", "ann", "--deadline", "30", "--json"]);
        assert!(ended.stdout.contains("\"outcome\":\"closed\""), "{offset}: {ended:?}");
        on_other(&stage, offset, &["down", "--force"]).expect(0);
    }
}

#[test]
fn times_from_hosts_with_other_clocks_are_comparable() {
    for offset in OFFSETS {
        let Some((stage, _database)) = stage() else { return };
        stage.phalanx(&["spawn", "bob", "--backend", "pty"]).expect(0);
        on_other(&stage, offset, &["spawn", "ann", "--backend", "pty"]).expect(0);
        on_other(&stage, offset, &["send", "bob", "hello"]).expect(0);
        stage.phalanx(&["wait", "ann", "--until", "ready", "--timeout", "30"]).expect(0);

        let status = stage.phalanx(&["status", "--json"]).expect(0).json();
        for member in status["members"].as_array().expect("members") {
            let idle = member["idle_ms"].as_u64().expect("idle");
            assert!(idle < 50_000, "{offset}: {status}");
        }
        let events = stage.phalanx(&["events", "--json"]).expect(0).stdout;
        let at = |line: &str| {
            let event: serde_json::Value = serde_json::from_str(line).expect("an event");
            event["at"].as_u64().expect("a time")
        };
        let times: Vec<u64> = events.lines().map(at).collect();
        let (first, last) = (times.iter().min(), times.iter().max());
        let span = last.expect("events") - first.expect("events");
        assert!(span < 50_000, "{offset}: {events}");
        on_other(&stage, offset, &["shutdown", "ann"]).expect(0);
        stage.phalanx(&["shutdown", "bob"]).expect(0);
    }
}
