//! `status`, `ps`, `events` and `inbox` show the past of a team as sentences.

use serde_json::json;

use crate::harness::{Stage, wait_for};

/// A worker whose lead was killed; returns the pid of the lead.
fn orphaned(stage: &Stage) -> String {
    let manifest = stage.file(
        "demo.toml",
        "[team]\nname = \"demo\"\nfinish = \"manual\"\n[[member]]\nname = \"ada\"\n",
    );
    let up = stage.start(&["up", &manifest]);
    stage.wait_event("demo", "member_ready", "ada");
    let pid = up.pid();
    let leads = || stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].to_string();
    wait_for("the lead", || (leads() == pid).then_some(()));
    up.signal("KILL");
    drop(up);
    pid
}

#[test]
fn cr_05_status_and_ps_name_a_dead_lead_and_adopt() {
    let stage = Stage::without_tmux();
    let pid = orphaned(&stage);
    let words = format!("lead {pid} died; `phalanx adopt -t demo`");
    let status = stage.phalanx(&["status"]).expect(0).stdout;
    assert!(status.starts_with(&format!("team demo  {words}\n")), "{status}");
    let ps = stage.phalanx(&["ps"]).expect(0).stdout;
    assert!(ps.contains(&words), "{ps}");
    let document = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(document["lead"], json!(null));
    assert_eq!(document["dead_lead"]["pid"].to_string(), pid);
    stage.phalanx(&["adopt", "--detach"]).expect(0);
    assert!(!stage.phalanx(&["status"]).expect(0).stdout.contains("died"));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sd_04_name_of_a_team_with_a_killed_lead_is_taken_and_up_leads_it_again() {
    let stage = Stage::without_tmux();
    let pid = orphaned(&stage);
    let again = stage.phalanx(&["team", "create", "demo"]).expect(4);
    assert!(
        again.stderr.contains(&format!("its lead {pid} died, its members run on")),
        "{again:?}"
    );
    for way in ["phalanx adopt -t demo", "phalanx down -t demo"] {
        assert!(again.stderr.contains(way), "{again:?}");
    }
    let manifest = stage.at("work/demo.toml").to_string_lossy().into_owned();
    let up = stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    assert!(up.stderr.contains("team demo is as the manifest says"), "{up:?}");
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let lead = status["lead"]["pid"].as_i64().map(|lead| lead.to_string());
    assert!(lead.is_some_and(|lead| lead != pid), "{status}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn tmux_status_lists_members_that_left_until_their_next_run() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let pane = stage.phalanx(&["--json", "spawn", "ada"]).expect(0).json()["tmux_pane_id"].clone();
    stage.phalanx(&["spawn", "bob"]).expect(0);
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    stage.tmux(&["kill-pane", "-t", pane.as_str().expect("a pane")]).expect("closed");
    stage.wait_event("demo", "member_left", "ada");
    let left = stage.phalanx(&["--json", "status"]).expect(0).json()["left"].clone();
    assert_eq!(
        (&left[0]["name"], &left[1]),
        (&json!("ada"), &json!(null)),
        "bob was asked to end: {left}"
    );
    assert_eq!(left[0]["reason"], json!("pane closed from outside"), "{left}");
    let status = stage.phalanx(&["status"]).expect(0).stdout;
    let line = status.lines().find(|line| line.starts_with("ada")).expect("ada's line");
    assert!(
        line.contains("pane closed from outside") && line.ends_with("`phalanx resume ada`"),
        "{status}"
    );
    stage.phalanx(&["resume", "ada"]).expect(0);
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["left"], json!([]));
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn status_lists_few_tasks_and_only_counts_completed_of_many() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    for id in 1..=11 {
        stage.phalanx(&["task", "create", &format!("Do {id}")]).expect(0);
        if id <= 4 {
            stage.phalanx(&["task", "claim", &id.to_string()]).expect(0);
            stage.phalanx(&["task", "complete", &id.to_string()]).expect(0);
        }
        if id == 10 {
            let few = stage.phalanx(&["status"]).expect(0).stdout;
            assert!(few.contains("Do 1\n") || few.contains("Do 1 "), "{few}");
        }
    }
    let many = stage.phalanx(&["status"]).expect(0).stdout;
    assert!(many.contains("4 completed tasks not shown: `phalanx status --all`"), "{many}");
    assert!(!many.contains("#4 ") && many.contains("#11 "), "{many}");
    assert!(stage.phalanx(&["status", "--all"]).expect(0).stdout.contains("#4 "));
    let document = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!(document["task_list"].as_array().map(Vec::len), Some(11));
    stage.phalanx(&["team", "delete"]).expect(0);
}

#[test]
fn events_are_sentences_with_relative_or_absolute_times() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.phalanx(&["task", "create", "Build", "--", "true"]).expect(0);
    stage.wait_event("demo", "task_completed", "1");
    let events = stage.phalanx(&["events"]).expect(0).stdout;
    let words = events.split_whitespace().collect::<Vec<_>>().join(" ");
    for sentence in
        ["team created", "ada is to be started as worker", "ada runs", "ada completed #1 Build ("]
    {
        assert!(words.contains(sentence), "{sentence} in {events}");
    }
    assert!(events.lines().all(|line| line.contains(" ago ") || line.contains("now ")), "{events}");
    assert!(!events.contains('{') && !events.contains("msg_ids"), "{events}");
    let whole = stage.phalanx(&["-v", "events"]).expect(0).stdout;
    assert!(whole.lines().all(|line| line.starts_with("20") && line.contains("Z  ")), "{whole}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn inbox_shows_protocol_messages_as_sentences_with_and_without_a_lead() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    stage.phalanx(&["task", "create", "Build", "--", "true"]).expect(0);
    let inbox = || stage.phalanx(&["inbox", "--peek"]).expect(0).stdout;
    let mail = wait_for("news of the task", || Some(inbox()).filter(|mail| mail.contains("idle")));
    assert!(mail.contains("ada  ") && mail.contains("is idle") && !mail.contains('{'), "{mail}");
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let handled = |mail: &String| !mail.contains("is idle") && mail.contains("1 task completed");
    wait_for("the lead to handle the mail and report", || Some(inbox()).filter(handled));
    stage.phalanx(&["inbox"]).expect(0);
    let none = stage.phalanx(&["inbox"]).expect(0);
    assert!(
        none.stderr.contains("no unread messages") && none.stderr.contains("--since 1h"),
        "{none:?}"
    );
    let past = stage.phalanx(&["inbox", "--since", "1h"]).expect(0).stdout;
    assert!(past.contains("is idle") && !past.contains('{'), "{past}");
    assert_eq!(stage.phalanx(&["inbox", "--since", "2100-01-01T00:00:00Z"]).expect(0).stdout, "");
    stage.phalanx(&["inbox", "--since", "soon"]).expect(2);
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

#[test]
fn ps_names_the_root_and_status_hints_at_teams_of_other_roots() {
    let stage = Stage::without_tmux();
    let none = stage.phalanx(&["ps"]).expect(0).stdout;
    assert!(none.contains(&*stage.root().to_string_lossy()), "{none}");
    let other = stage.at("other").to_string_lossy().into_owned();
    stage.phalanx(&["--config-dir", &other, "team", "create", "far"]).expect(0);
    stage.phalanx(&["--config-dir", &other, "spawn", "zoe"]).expect(0);
    let run = stage.phalanx(&["status", "-t", "far"]).expect(3);
    assert!(run.stderr.contains(&format!("add `--config-dir {other}`")), "{run:?}");
    stage.phalanx(&["--config-dir", &other, "down"]).expect(0);
    assert!(!stage.phalanx(&["status", "-t", "far"]).expect(3).stderr.contains("--config-dir"));
}
