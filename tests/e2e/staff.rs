//! Scaling: members are started for pending tasks and shut down when idle.

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

fn about<'a>(journal: &'a [Value], event: &str) -> Vec<&'a str> {
    let found = journal.iter().filter(|e| e["event"] == event);
    let mut names: Vec<&str> = found.filter_map(|e| e["member"].as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn team_scales_up_with_pending_tasks_and_down_when_idle() {
    let stage = Stage::without_tmux();
    let mut text = "[team]\nname = \"grow\"\nfinish = \"manual\"\n\
        [[member]]\nname = \"dev\"\nscale = { min = 1, max = 3 }\n\
        [[member]]\nname = \"qa\"\nrole = \"tester\"\nstart = \"when-needed\"\n"
        .to_owned();
    for n in 1..=4 {
        text.push_str(&format!(
            "[[task]]\nkey = \"t{n}\"\nsubject = \"Waits\"\nrun = [\"sh\", \"-c\", \"until [ -e go ]; do sleep 0.05; done\"]\n"
        ));
    }
    text.push_str("[[task]]\nkey = \"check\"\nsubject = \"Checks\"\nrole = \"tester\"\nrun = [\"true\"]\nafter = [\"t1\"]\n");
    let manifest = stage.file("grow.toml", &text);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    wait_for("three at work", || {
        (about(&stage.journal("grow"), "task_claimed") == ["dev-1", "dev-2", "dev-3"]).then_some(())
    });
    assert_eq!(
        about(&stage.journal("grow"), "member_ready"),
        ["dev-1", "dev-2", "dev-3"],
        "and no tester yet"
    );
    std::fs::write(stage.at("work/go"), "").expect("go");
    let check = stage.wait_event("grow", "task_completed", "5");
    assert_eq!(check["member"], json!("qa"));
    wait_for("all but the least number leave", || {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        let names: Vec<&str> =
            status["members"].as_array()?.iter().filter_map(|m| m["name"].as_str()).collect();
        (names.len() == 1 && names[0].starts_with("dev-")).then_some(())
    });
    let asked = stage.journal("grow");
    assert!(
        asked
            .iter()
            .filter(|e| e["event"] == "shutdown_ended")
            .all(|e| e["detail"]["outcome"] == "closed")
    );
    stage.phalanx(&["task", "create", "One more", "--", "true"]).expect(0);
    stage.wait_event("grow", "task_completed", "6");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn failed_member_is_restarted_after_a_back_off() {
    let stage = Stage::without_tmux();
    let manifest = stage.file(
        "again.toml",
        "[team]\nname = \"again\"\nfinish = \"manual\"\n[[member]]\nname = \"log\"\nrestart = \"on-failure\"\n\
         run = [\"sh\", \"-c\", \"until [ -e fail ]; do sleep 0.05; done; exit 3\"]\n",
    );
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    std::fs::write(stage.at("work/fail"), "").expect("fail");
    wait_for("its first end", || {
        (about(&stage.journal("again"), "member_left") == ["log"]).then_some(())
    });
    let explained = stage.phalanx(&["-v", "explain", "log"]).expect(0).stdout;
    assert!(
        explained.contains("consecutive failures: 1; the pause before the next start is 1.0s"),
        "{explained}"
    );
    std::fs::remove_file(stage.at("work/fail")).expect("well again");
    wait_for("its second start", || {
        (about(&stage.journal("again"), "member_ready") == ["log", "log"]).then_some(())
    });
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
