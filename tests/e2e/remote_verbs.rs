//! Verbs for members on another host, whose files are not visible here; hosts that do not answer,
//! and two machines with one name.

use std::fs;

use crate::harness::{NATIVE, wait_for};
use crate::remote_stage::RemoteStage;

const TRUST: &str =
    "[[rule]]\nname = \"trust\"\nstate = \"dialog:trust\"\nmatch = ['I trust this folder']\n";
const ASKS: &str = "echo '1. Yes, I trust this folder'; until test -e answered; do sleep 0.1; done; \
                    printf '\\033[2J\\033[H'; echo at work; exec sleep 1000";

#[test]
fn verbs_reach_members_on_another_host() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    stage.hide_files_of_hosts();
    let spawned = stage.phalanx(&["spawn", "ann", "--host", "h1", "--backend", "tmux"]).expect(0);
    let words = " on host h1 (tmux, window phalanx-demo); watch it: phalanx attach ann -t demo\n";
    assert!(spawned.stdout.ends_with(words), "{spawned:?}");
    stage.phalanx(&["spawn", "bob", "--host", "h1", "--backend", "pty"]).expect(0);

    let follower = stage.hosts.stage.start(&["-t", "demo", "logs", "bob", "-f"]);
    follower.wait_for_output("waiting for tasks");
    let task =
        ["task", "create", "name it", "--owner", "bob", "--", "sh", "-c", "echo on-$(hostname)"];
    stage.phalanx(&task).expect(0);
    follower.wait_for_output("on-h1");
    let logs = stage.phalanx(&["logs", "bob", "--since", "10m", "-n", "3"]).expect(0).stdout;
    assert_eq!(logs.lines().count(), 3, "{logs}");
    for name in ["ann", "bob"] {
        stage.phalanx(&["type", name, "typed-here"]).expect(0);
        wait_for("the echo of the terminal", || {
            let screen = stage.phalanx(&["peek", name]).expect(0).stdout;
            screen.contains("typed-here").then_some(())
        });
        let explained = stage.phalanx(&["-v", "explain", name]).expect(0).stdout;
        assert!(explained.contains("alive  ← host h1, asked now"), "{explained}");
        let focused = stage.phalanx(&["focus", name]).expect(4).stderr;
        let why = ["no terminal is attached to the session", "cannot focus a member"];
        assert!(focused.contains(why[usize::from(name == "bob")]), "{focused}");
        assert!(focused.contains(&format!("`phalanx attach {name}`")), "{focused}");
    }
    let status = stage.phalanx(&["status"]).expect(0).stdout;
    let row = status.lines().find(|line| line.starts_with("ann")).expect("a row");
    assert!(row.contains(" h1 ") && row.trim_end().ends_with('?'), "{status}");
    assert_eq!(stage.liveness(), [("ann", "alive"), ("bob", "alive")].map(RemoteStage::pair));

    stage.kill_launcher("h1", "bob");
    assert_eq!(stage.liveness(), [("ann", "alive"), ("bob", "dead")].map(RemoteStage::pair));
    stage.phalanx(&["wait", "bob", "--until", "gone", "--timeout", "60"]).expect(0);
    let found = stage.phalanx(&["doctor", "--json"]).expect(0).json();
    let dead = &found["findings"][0];
    assert_eq!(dead["id"], "dead_member", "{found}");
    assert!(dead["where"].as_str().is_some_and(|place| place.ends_with("on host h1")), "{found}");

    // Its record still says that it runs.
    stage.phalanx(&["resume", "bob"]).expect(0);
    assert_eq!(stage.liveness(), [("ann", "alive"), ("bob", "alive")].map(RemoteStage::pair));
    let taken = stage.phalanx(&["resume", "bob"]).expect(4).stderr;
    assert!(taken.contains("bob runs: there is nothing to resume"), "{taken}");
}

#[test]
fn host_that_does_not_answer_delays_no_verb_and_judges_no_member() {
    let Some(mut stage) = RemoteStage::start(&["h1", "h2"]) else { return };
    stage.phalanx(&["spawn", "ann", "--host", "h1"]).expect(0);
    stage.phalanx(&["spawn", "bob", "--host", "h2"]).expect(0);
    stage.hosts.perform("drop h2");
    let teams = stage.phalanx(&["ps", "--json"]).expect(0).json();
    let hosts = stage.hosts.stage.at("hosts").display().to_string();
    let is_theirs = |root: &str| root.starts_with(&hosts);
    let mut roots =
        teams.as_array().expect("teams").iter().filter_map(|team| team["root"].as_str());
    assert!(!roots.any(is_theirs), "processes of another host are none of this one: {teams}");
    let silent = &teams[0]["silent_hosts"][0];
    assert_eq!(silent["host"], "h2", "{teams}");
    assert_eq!(stage.liveness(), [("ann", "alive"), ("bob", "unknown")].map(RemoteStage::pair));
    let found = stage.phalanx(&["doctor", "--fix", "--json"]).expect(1).json();
    let ids: Vec<&str> = found["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter_map(|finding| finding["id"].as_str())
        .collect();
    assert_eq!(ids, ["silent_host"], "{found}");
    stage.hosts.perform("accept h2");
    assert_eq!(stage.member("bob")["state"], "idle", "nothing was done to it");
}

/// PM-03: the question of a first start waits for a person, also on another host.
#[test]
fn pm_03_first_question_on_another_host_is_reported() {
    let Some(stage) = RemoteStage::start(&["h1"]) else { return };
    let profile = format!("{NATIVE}{TRUST}");
    stage.hosts.stage.profile("asks", &profile);
    let profiles = stage.hosts.at("h1", "home/.claude/phalanx/profiles");
    fs::create_dir_all(&profiles).expect("profiles");
    fs::write(profiles.join("asks.toml"), profile).expect("profile");
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let spawn = ["spawn", "cid", "--profile", "asks", "--host", "h1", "--backend", "pty", "--"];
    stage.phalanx(&[&spawn[..], &["sh", "-c", ASKS]].concat()).expect(0);
    wait_for("the question", || {
        let member = stage.member("cid");
        let reason = member["reason"].as_str()?.to_owned();
        (member["needs"] == "trust" && reason.contains("trust")).then_some(())
    });
    let status = stage.phalanx(&["status"]).expect(0).stdout;
    assert!(status.contains("waits for you") && status.contains("trust: "), "{status}");
    fs::write(stage.hosts.at("h1", "work/answered"), "").expect("answer");
    wait_for("the reason to end", || stage.member("cid")["reason"].is_null().then_some(()));
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn second_machine_with_the_name_of_a_host_is_refused() {
    let Some(stage) = RemoteStage::start(&["h1", "h2"]) else { return };
    stage.phalanx(&["spawn", "ann", "--host", "h1"]).expect(0);
    let file = stage.hosts.stage.root().join("phalanx/hosts.toml");
    let dir = stage.hosts.at("h2", "work").display().to_string();
    let hosts = format!("[[host]]\nname = \"h1\"\nssh = \"h2\"\ndir = \"{dir}\"\n");
    fs::write(&file, hosts).expect("hosts");

    let refused = stage.phalanx(&["spawn", "bob", "--host", "h1"]).expect(4);
    let text = "host `h1` of team `demo` is another machine than this one";
    assert!(refused.stderr.contains(text), "{refused:?}");
    assert!(refused.stderr.contains("`phalanx host lost h1 -t demo`"), "{refused:?}");
    assert_eq!(stage.liveness(), [RemoteStage::pair(("ann", "unknown"))]);
    assert_eq!(stage.member("ann")["state"], "idle");

    stage.phalanx(&["host", "lost", "h1"]).expect(0);
    stage.phalanx(&["spawn", "bob", "--host", "h1"]).expect(0);
    assert_eq!(stage.liveness(), [RemoteStage::pair(("bob", "alive"))]);
}
