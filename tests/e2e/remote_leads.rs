//! A team whose lead runs on another host than some of its members.

use crate::remote_stage::RemoteStage;

#[test]
fn lead_on_another_host_ends_members_that_it_cannot_reach() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    stage.phalanx(&["spawn", "ann", "--backend", "pty"]).expect(0);
    stage.phalanx_on("h1", "lead --detach").expect(0);
    let status = stage.phalanx(&["status"]).expect(0).stdout;
    assert!(
        status.lines().next().is_some_and(|line| line.contains(" on host h1 for ")),
        "{status}"
    );
    let refused = stage.phalanx(&["lead"]).expect(4).stderr;
    assert!(refused.contains(" on host h1\n"), "{refused}");
    let host = stage.member("ann")["host"].as_str().expect("a host").to_owned();

    let peeked = stage.phalanx_on("h1", "peek ann").expect(3).stderr;
    assert!(peeked.contains(&format!("host `{host}` is not configured")), "{peeked}");
    let killed = stage.phalanx_on("h1", "kill ann").expect(1).stdout;
    assert!(killed.contains("could not be stopped"), "{killed}");
    assert_eq!(stage.member("ann")["state"], "idle", "it lives, and nothing says otherwise");
    // It agrees, and its launcher records the exit.
    stage.phalanx_on("h1", "down").expect(0);
    stage.phalanx(&["status"]).expect(3);
}
