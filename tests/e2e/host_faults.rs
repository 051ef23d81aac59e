//! Faults of the network and the database while members on two hosts work. Each prints a row of the
//! table in `docs/dev/measurements.md` ("Faults of hosts and of the database").

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use testing::TestCluster;

use crate::fault_stage::FaultStage;
use crate::gear;

/// The port of the relay to the database, in the network of the hosts.
const RELAY: u16 = 6432;

/// Starts the stage with its team and load.
fn loaded() -> Option<FaultStage> {
    let mut stage = FaultStage::start()?;
    let port = stage.cluster(0).port();
    stage.create_team(&[port], "");
    stage.start_load();
    Some(stage)
}

/// Cuts the network of a host: `drop` and `accept`, or `down` and `up`.
fn cut(stage: &mut FaultStage, host: &str, [begin, end]: [&str; 2], seconds: u64) {
    stage.hosts.perform(&format!("{begin} {host}"));
    thread::sleep(Duration::from_secs(seconds));
    stage.hosts.perform(&format!("{end} {host}"));
}

#[test]
fn short_cuts_and_restarts_lose_nothing() {
    let Some(mut stage) = loaded() else { return };
    stage.survives("network of a host cut for 1 s", |stage| {
        cut(stage, "h1", ["drop", "accept"], 1);
    });
    stage.survives("link of a host down for 1 s", |stage| cut(stage, "h1", ["down", "up"], 1));
    stage.survives("database restarted", |stage| {
        stage.cluster(0).stop("fast");
        stage.cluster(0).start_again();
    });
    stage.survives("database killed and restarted", |stage| {
        stage.cluster(0).stop("immediate");
        stage.cluster(0).start_again();
    });
}

/// Starts the stage with a relay before the database, which delays each reply by the first number
/// of milliseconds and loses every n-th reply, by the second (`fixtures/hosts/relay`).
fn behind_relay() -> Option<FaultStage> {
    let mut stage = FaultStage::start()?;
    relay(&stage, "0 0");
    let (port, file) = (stage.cluster(0).port(), stage.hosts.stage.at("relay"));
    stage.hosts.perform(&format!("relay {RELAY} {port} {}", file.display()));
    stage.create_team(&[RELAY], "");
    stage.start_load();
    Some(stage)
}

fn relay(stage: &FaultStage, numbers: &str) {
    let (file, new) = (stage.hosts.stage.at("relay"), stage.hosts.stage.at("relay.new"));
    fs::write(&new, numbers).expect("writable");
    fs::rename(new, file).expect("writable");
}

#[test]
fn lost_and_slow_replies_repeat_nothing() {
    let Some(mut stage) = behind_relay() else { return };
    stage.survives("every 7th reply lost after its commit, for 5 s", |stage| {
        relay(stage, "0 7");
        thread::sleep(Duration::from_secs(5));
        relay(stage, "0 0");
    });
    stage.survives("replies of the database slow (500 ms), for 10 s", |stage| {
        relay(stage, "500 0");
        thread::sleep(Duration::from_secs(10));
        relay(stage, "0 0");
    });
}

#[test]
fn replies_lost_for_longer_than_a_call_is_tried_repeat_nothing() {
    if !gear::is_full() {
        return gear::skip("outages of 40 s run with --full");
    }
    let Some(mut stage) = behind_relay() else { return };
    // The first such request is carried out, and the worker that sent it does not learn it.
    for (what, word) in [("claim", "phalanx.claim("), ("notice", "task_completed")] {
        let name = format!("reply to a {what} of a worker lost, then no reply for 40 s");
        stage.survives(&name, |stage| {
            stage.create_backlog(20);
            relay(stage, &format!("0 0 {word}"));
            thread::sleep(Duration::from_secs(40));
            relay(stage, "0 0");
        });
    }
}

#[test]
fn failover_to_a_standby_loses_nothing() {
    let Some(mut stage) = FaultStage::start() else { return };
    stage.start_standby();
    let ports = [stage.cluster(0).port(), stage.cluster(1).port()];
    stage.create_team(&ports, "&target_session_attrs=read-write");
    stage.start_load();
    stage.survives("failover to a synchronous standby", |stage| {
        stage.cluster(0).stop("immediate");
        stage.cluster(1).promote();
    });
}

/// A database directory of 256 MB, unmounted at the end.
struct SmallDisk {
    dir: PathBuf,
}

impl SmallDisk {
    /// Moves the data of a server that does not run.
    fn under(cluster: &TestCluster) -> SmallDisk {
        let dir = cluster.root().join("data");
        let script = "mv $0 $0.moved && mkdir $0 && mount -t tmpfs -o size=256m tmpfs $0 &&
            chown postgres: $0 && chmod 700 $0 && cp -a $0.moved/. $0 && rm -r $0.moved";
        let made = Command::new("sh").args(["-c", script]).arg(&dir).output().expect("sh");
        assert!(made.status.success(), "{made:?}");
        SmallDisk { dir }
    }

    /// Fills the disk. Returns the file that has to be removed for space.
    fn fill(&self) -> PathBuf {
        let ballast = self.dir.join("ballast");
        let mut file = fs::File::create(&ballast).expect("a new file");
        let chunk = vec![0; 4096];
        while file.write_all(&chunk).is_ok() {}
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server first, also after a failure: a directory in use cannot be unmounted.
        let script = "pid=$(head -1 $0/postmaster.pid) && kill -QUIT $pid &&
            for n in $(seq 200); do umount $0 && break; sleep 0.05; done";
        let _ = Command::new("sh").args(["-c", script]).arg(&self.dir).output();
    }
}

#[test]
fn full_disk_of_the_database_is_reported_and_recovered_from() {
    let Some(mut stage) = FaultStage::start() else { return };
    stage.cluster(0).stop("fast");
    let disk = SmallDisk::under(stage.cluster(0));
    stage.cluster(0).start_again();
    let port = stage.cluster(0).port();
    stage.create_team(&[port], "");
    stage.start_load();
    let mut reports = Vec::new();
    stage.survives("disk of the database full for 5 s", |stage| {
        let ballast = disk.fill();
        let text = "x".repeat(100_000);
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(5) {
            let run = stage.phalanx(&["send", "rea", &text]);
            reports.extend((run.code != 0).then_some(run.stderr));
        }
        fs::remove_file(ballast).expect("removable");
    });
    assert!(reports.iter().any(|text| text.contains("No space left")), "{reports:?}");
}

#[test]
fn cuts_of_half_a_minute_lose_nothing() {
    if !gear::is_full() {
        return gear::skip("cuts of half a minute run with --full");
    }
    let Some(mut stage) = loaded() else { return };
    stage.survives("network of a host cut for 30 s", |stage| {
        cut(stage, "h1", ["drop", "accept"], 30);
    });
    // The last request of each process is carried out, and its reply is lost for longer than the
    // process waits.
    stage.survives("packets to a host lost for 45 s, its requests arrive", |stage| {
        cut(stage, "h1", ["mute", "unmute"], 45);
    });
}

#[test]
fn soak_cut_of_ten_minutes_loses_nothing() {
    if std::env::var_os("PHALANX_LONG").is_none() {
        return gear::skip("the cut of ten minutes runs with PHALANX_LONG=1");
    }
    let Some(mut stage) = loaded() else { return };
    stage.survives("network of a host cut for 10 min", |stage| {
        cut(stage, "h1", ["drop", "accept"], 600);
    });
}
