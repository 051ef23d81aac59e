//! A network that is cut while a person follows or attaches to a member on the other side.

use std::fs;

use crate::harness::wait_for;
use crate::remote_stage::RemoteStage;

/// A program that prints a line once each of these files is there, and ends with the last one.
const LINES: &str = "echo began; for one in first second end; do \
                     until test -e $one; do sleep 0.05; done; echo got-$one; done";

#[test]
fn followed_logs_go_on_after_a_cut_and_delay_no_other_member() {
    let Some(mut stage) = RemoteStage::start(&["h1", "h2"]) else { return };
    for (name, host) in [("ann", "h1"), ("bob", "h2")] {
        let spawn = ["spawn", name, "--host", host, "--backend", "pty", "--"];
        stage.phalanx(&[&spawn[..], &["sh", "-c", LINES]].concat()).expect(0);
    }
    let touch = |stage: &RemoteStage, host: &str, file: &str| {
        fs::write(stage.hosts.at(host, "work").join(file), "").expect("a file");
    };
    let follower = stage.hosts.stage.start(&["-t", "demo", "logs", "ann", "bob", "-f"]);
    follower.wait_for_output("ann | began");
    follower.wait_for_output("bob | began");

    stage.hosts.perform("drop h1");
    touch(&stage, "h1", "first");
    touch(&stage, "h2", "first");
    follower.wait_for_output("bob | got-first");
    // ssh gives up after 10 s; until then the member of the other host is not held up.
    assert_eq!(follower.messages(), "");
    follower.wait_for_message("ann: the connection to host `h1` was lost; trying again");
    stage.hosts.perform("accept h1");
    follower.wait_for_output("ann | got-first");
    touch(&stage, "h1", "second");
    follower.wait_for_output("ann | got-second");

    stage.hosts.perform("drop h1");
    touch(&stage, "h1", "end");
    touch(&stage, "h2", "second");
    touch(&stage, "h2", "end");
    follower.wait_for_message("ann has ended, and its last output is missing: ");
    let followed = follower.end().expect(6).stdout;
    assert!(followed.contains("bob | got-end"), "{followed}");
    stage.hosts.perform("accept h1");
    let logs = stage.phalanx(&["logs", "ann"]).expect(0).stdout;
    assert!(logs.ends_with("got-end\n"), "{logs}");
}

#[test]
fn attach_reports_a_lost_connection_and_resets_the_terminal() {
    let Some(mut stage) = RemoteStage::start(&["h1"]) else { return };
    stage.phalanx(&["spawn", "ann", "--host", "h1", "--backend", "tmux"]).expect(0);
    stage.begins_to_attach("ann", "waiting for tasks");
    stage.hosts.perform("drop h1");
    let screen = stage.shows("end=6");
    assert!(screen.contains("error: the connection to host `h1` was lost"), "{screen}");
    assert!(screen.starts_with("before"), "the main screen is back: {screen}");
    stage.hosts.perform("accept h1");
    wait_for("the host to answer again", || {
        (stage.liveness() == [RemoteStage::pair(("ann", "alive"))]).then_some(())
    });
}
