//! Commands that a teammate may run, each with the environment of a spawned member and against a
//! live team.

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};
use crate::speaker::{Env, as_teammate, spawn};

/// Creates team `alpha` with a lead, ann and bob. Returns ann's environment variables.
fn team(stage: &Stage) -> Env {
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    let ann = spawn(stage, "ann");
    stage.phalanx(&["spawn", "bob", "--backend", "pty"]).expect(0);
    stage.phalanx(&["send", "team-lead", "for the lead"]).expect(0);
    ann
}

fn warnings(stage: &Stage) -> Vec<String> {
    let of_ann = |event: &Value| event["event"] == "warning" && event["member"] == "ann";
    let journal = stage.journal("alpha").into_iter().filter(of_ann);
    journal.filter_map(|event| event["detail"]["text"].as_str().map(str::to_owned)).collect()
}

/// Commands reserved for the lead, or for the lead and the member concerned, as ann runs them; each
/// with the action named in the refusal.
const REFUSED: [(&[&str], &str); 45] = [
    (&["shutdown", "bob"], "end `bob`"),
    (&["shutdown", "bob", "--force"], "end `bob`"),
    (&["shutdown", "ann", "bob"], "end `bob`"),
    (&["shutdown", "--all", "--force"], "end all members"),
    (&["kill", "bob"], "end `bob`"),
    (&["restart", "bob"], "restart `bob`"),
    (&["resume", "bob"], "start again `bob`"),
    (&["resume"], "start members again"),
    (&["down"], "end the team"),
    (&["down", "--force"], "end the team"),
    (&["team", "delete"], "delete the team"),
    (&["team", "delete", "--force"], "delete the team"),
    (&["rm", "alpha", "--force"], "delete the team"),
    (&["lead"], "lead the team"),
    (&["lead", "--detach"], "lead the team"),
    (&["adopt"], "adopt the team"),
    (&["mode", "bob", "plan"], "change the mode of `bob`"),
    (&["mode", "ann", "plan"], "change the mode of `ann`"),
    (&["mode", "--all", "plan"], "change the mode of all members"),
    (&["rules", "allow", "Bash(ls)"], "change the rules of the team"),
    (&["team", "set", "max_members", "9"], "change the settings of the team"),
    (&["team", "upgrade"], "change the settings of the team"),
    (&["task", "approve", "1"], "approve or reject the work of others"),
    (&["task", "reject", "1", "--reason", "no"], "approve or reject the work of others"),
    (&["handoff", "put", "beta", "--type", "note", "--body", "{}"], "hand over to another team"),
    (&["worktree", "merge", "bob"], "land the work of `bob`"),
    (&["worktree", "merge", "ann"], "land the work of `ann`"),
    (&["worktree", "merge", "ann", "--squash"], "land the work of `ann`"),
    (&["worktree", "undo"], "take landed work back"),
    (&["review", "check", "ann"], "land the work of `ann`"),
    (&["review", "approve", "ann"], "approve or reject the work of `ann`"),
    (&["review", "drop", "bob"], "approve or reject the work of `bob`"),
    (&["popup"], "see all screens and messages of the team"),
    (&["doctor", "--fix"], "repair the team"),
    (&["inbox", "bob"], "read the mail of `bob`"),
    (&["inbox", "bob", "--peek"], "read the mail of `bob`"),
    (&["inbox", "bob", "--all"], "read the mail of `bob`"),
    (&["inbox", "team-lead", "--consume"], "read the mail of `team-lead`"),
    (&["inbox", "team-lead", "--clear"], "read the mail of `team-lead`"),
    (&["attach", "bob"], "attach to the terminal of `bob`"),
    (&["hide", "bob"], "move the pane of `bob`"),
    (&["show", "bob"], "move the pane of `bob`"),
    (&["focus", "bob"], "move the pane of `bob`"),
    (&["type", "bob", "x"], "type into the terminal of `bob`"),
    (&["keys", "bob", "Enter"], "type into the terminal of `bob`"),
];

#[test]
fn sec_04_teammate_is_refused_commands_on_the_team_or_other_members() {
    let stage = Stage::new();
    let ann = team(&stage);
    for (args, deed) in REFUSED {
        let run = as_teammate(&stage, &ann, args).expect(4);
        let said = format!("`ann` may not {deed}; only the lead may");
        assert!(run.stderr.contains(&said), "{args:?}: {run:?}");
        assert_eq!(warnings(&stage).last(), Some(&said), "{args:?}");
    }
    assert_eq!(warnings(&stage).len(), REFUSED.len());
    // None of the refused commands had an effect.
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let states =
        status["members"].as_array().expect("members").iter().map(|m| (&m["name"], &m["state"]));
    let (ann_is, bob_is) = ((&json!("ann"), &json!("running")), (&json!("bob"), &json!("idle")));
    assert_eq!(states.collect::<Vec<_>>(), [ann_is, bob_is], "{status}");
    let mail = stage.phalanx(&["--json", "inbox", "--peek"]).expect(0).json();
    assert!(
        mail.as_array().expect("mail").iter().any(|one| one["text"] == "for the lead"),
        "{mail}"
    );
    let requests = stage.phalanx(&["--json", "requests", "--all"]).expect(0).json();
    assert_eq!(requests, json!([]));
    // A user without a member token may run all of them.
    stage.phalanx(&["shutdown", "bob"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sec_04_teammate_may_inspect_send_and_work_on_tasks() {
    let stage = Stage::new();
    let ann = team(&stage);
    let allowed: [&[&str]; 15] = [
        &["status"],
        &["events"],
        &["explain", "bob"],
        &["requests"],
        &["rules"],
        &["team", "set"],
        &["team", "show"],
        &["peek", "bob"],
        &["logs", "bob"],
        &["inbox"],
        &["inbox", "ann", "--all"],
        &["send", "bob", "hello"],
        &["task", "create", "One"],
        &["task", "update", "1", "--subject", "First"],
        &["task", "claim", "1"],
    ];
    for args in allowed {
        as_teammate(&stage, &ann, args).expect(0);
    }
    assert_eq!(warnings(&stage), Vec::<String>::new());
    stage.phalanx(&["team", "set", "privacy", "own"]).expect(0);
    for args in [["logs", "bob"], ["peek", "bob"]] {
        let run = as_teammate(&stage, &ann, &args).expect(4);
        assert!(run.stderr.contains("`ann` may not read the output of `bob`"), "{run:?}");
    }
    as_teammate(&stage, &ann, &["logs", "ann"]).expect(0);
    stage.phalanx(&["logs", "bob"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// A member's shutdown of itself is recorded under its own name; no message claims to come from the
/// lead.
#[test]
fn sec_04_teammate_may_shut_itself_down() {
    let stage = Stage::new();
    team(&stage);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    stage.phalanx(&["--as", "bob", "shutdown", "bob", "--reason", "done"]).expect(0);
    let asked = stage.wait_event("alpha", "shutdown_requested", "bob");
    assert_eq!((&asked["detail"]["by"], &asked["detail"]["asked"]), (&json!("bob"), &json!(false)));
    let mail = stage.phalanx(&["--json", "inbox", "bob", "--all"]);
    assert!(!mail.stdout.contains("shutdown_request"), "{mail:?}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn id_08_name_not_on_the_roster_is_refused_and_writes_nothing() {
    let stage = Stage::new();
    team(&stage);
    stage.phalanx(&["task", "create", "One"]).expect(0);
    for args in [
        &["task", "claim", "1"][..],
        &["send", "bob", "hello"],
        &["task", "create", "Two"],
        &["inbox"],
    ] {
        let run = stage.phalanx(&[&["--as", "ghost"], args].concat()).expect(3);
        assert!(run.stderr.contains("ghost"), "{run:?}");
    }
    let tasks = stage.phalanx(&["--json", "task", "list", "--all"]).expect(0).json();
    assert_eq!(tasks.as_array().map(Vec::len), Some(1), "{tasks}");
    assert_eq!((&tasks[0]["status"], &tasks[0]["owner"]), (&json!("pending"), &Value::Null));
    assert!(!stage.root().join("teams/alpha/inboxes/ghost.json").exists());
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Starts an agent lead and returns its environment variables.
pub(crate) fn agent_lead(stage: &Stage) -> Env {
    let file = stage.at("work").join("lead.env");
    let script = "env | grep ^PHALANX_ >lead.new; mv lead.new lead.env; exec sleep 300";
    let line = format!("{} -t alpha lead -- sh -c '{script}'", binary());
    stage.tmux(&["new-session", "-d", "-s", "lead", &line]).expect("a terminal");
    let text = wait_for("its variables", || std::fs::read_to_string(&file).ok());
    std::fs::remove_file(&file).expect("removed");
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Runs the same commands as the program of `lead -- CMD`. Each command that ends the team gets a
/// team of its own.
#[test]
fn tmux_sec_04_agent_lead_may_run_every_lead_command() {
    let (last, first): (Vec<_>, Vec<_>) = REFUSED
        .iter()
        .map(|(args, _)| *args)
        .partition(|args| ["down", "team", "rm"].contains(&args[0]));
    let is_permitted = |run: &Run| !run.stderr.contains("only the lead may");
    let stage = Stage::new();
    team(&stage);
    let lead = agent_lead(&stage);
    for args in first {
        let run = as_teammate(&stage, &lead, args);
        assert!(is_permitted(&run), "{args:?}: {run:?}");
    }
    stage.phalanx(&["-t", "alpha", "down", "--force"]).expect(0);
    for args in last {
        let stage = Stage::new();
        team(&stage);
        let lead = agent_lead(&stage);
        let run = as_teammate(&stage, &lead, args);
        assert!(is_permitted(&run), "{args:?}: {run:?}");
        if stage.root().join("teams/alpha").exists() {
            stage.phalanx(&["-t", "alpha", "down", "--force"]).expect(0);
        }
    }
}
