//! A phalanx process is killed at each step of starting, ending and deleting, then another process
//! adopts the team. Nothing keeps running unrecorded, each message arrives once, each task runs
//! once, and `down` succeeds. `--nocapture` prints the matrix of outcomes.
#![cfg(debug_assertions)]

use serde_json::{Value, json};

use crate::harness::{Run, Stage, binary, wait_for};

/// Failpoints of a spawn, and how the adopter resolves each: rolled back, taken over, or nothing to
/// do.
const STARTS: [(&str, &str); 8] = [
    ("spawn.intended", "taken_back"),
    ("spawn.joined", "taken_back"),
    ("spawn.mailed", "taken_back"),
    ("spawn.kept", "taken_back"),
    ("spawn.placed", "taken_back"),
    ("spawn.noted", "taken_in"),
    ("spawn.proven", "taken_in"),
    ("spawn.accepted", "-"),
];
/// Failpoints of ending a member.
const ENDS: [&str; 8] = [
    "shutdown.filed",
    "shutdown.asked",
    "stop.ended",
    "remove.ended",
    "remove.left",
    "task.released",
    "remove.released",
    "remove.noticed",
];
/// Failpoints of assigning a task, and whether the adopter must still notify the owner.
const ASSIGNS: [(&str, bool); 3] =
    [("assign.owned", true), ("assign.noted", true), ("assign.said", false)];
const LEAD: &str = "team-lead";
const PROMPT: &str = "your first words";

fn dies(stage: &Stage, point: &str, args: &[&str]) {
    let mut command = stage.command(binary());
    command.env("PHALANX_FAILPOINT", point).args(args);
    let run = Run::from(command.output().expect("phalanx runs"));
    assert_eq!(run.code, -1, "{args:?} does not pass {point}: {run:?}");
}

fn adopt(stage: &Stage) {
    stage.phalanx(&["adopt", "--detach"]).expect(0);
}

fn events(stage: &Stage, kind: &str) -> Vec<Value> {
    stage.journal("demo").into_iter().filter(|e| e["event"] == kind).collect()
}

/// The detail of the adopter's `recovered` event; null if it repaired nothing.
fn recovered(stage: &Stage) -> Value {
    wait_for("the adopter leads", || {
        let ready = stage.phalanx(&["--json", "status"]).expect(0).json();
        ready["lead"]["pid"].as_i64()
    });
    events(stage, "recovered").first().map(|e| e["detail"].clone()).unwrap_or_default()
}

fn messages(stage: &Stage, of: &str, words: &str) -> usize {
    stage.phalanx(&["--json", "inbox", of, "--all"]).expect(0).stdout.matches(words).count()
}

/// Creates a task; scripts append a line to the file `done`, so that executions can be counted.
fn task(stage: &Stage, script: &str) {
    stage.phalanx(&["task", "create", "Counts", "--", "sh", "-c", script]).expect(0);
}

fn done(stage: &Stage) -> usize {
    std::fs::read_to_string(stage.at("work/done")).unwrap_or_default().lines().count()
}

/// Takes the team down and asserts that nothing is left.
fn down(stage: &Stage) {
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

fn killed_start(stage: &Stage, point: &str, expected: &str) -> String {
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["send", LEAD, "before", "--as", LEAD]).expect(0);
    dies(stage, point, &["spawn", "bob", "--prompt", PROMPT]);
    adopt(stage);
    let of_bob = |part: &Value| part.as_array().is_some_and(|names| names.contains(&json!("bob")));
    if expected == "-" {
        assert_eq!(recovered(stage), Value::Null, "{point}");
    } else {
        wait_for(&format!("{point}: bob is {expected}"), || {
            of_bob(&recovered(stage)[expected]).then_some(())
        });
    }
    if expected == "taken_back" {
        // The name is free again, and the new member gets its prompt once.
        stage.phalanx(&["spawn", "bob", "--prompt", PROMPT]).expect(0);
    }
    assert_eq!(messages(stage, "bob", PROMPT), 1, "{point}");
    assert_eq!(messages(stage, LEAD, "before"), 1, "{point}");
    task(stage, "echo >>done");
    stage.wait_event("demo", "task_completed", "1");
    assert_eq!((done(stage), events(stage, "task_claimed").len()), (1, 1), "{point}");
    down(stage);
    expected.to_owned()
}

/// EN-08: a worktree is on record from before its first file, so that nothing is left of one whose
/// making was cut off, whether the member is started again or the team ends.
#[test]
fn en_08_worktree_of_a_killed_start_is_replaced_or_removed() {
    for point in ["worktree.planned", "worktree.built", "spawn.mailed", "spawn.placed"] {
        for again in [true, false] {
            let stage = Stage::new();
            let git = |args: &[&str]| {
                let output = stage.command("git").args(args).output().expect("git runs");
                assert!(output.status.success(), "{args:?}: {output:?}");
                String::from_utf8_lossy(&output.stdout).into_owned()
            };
            git(&["init", "--quiet", "-b", "main"]);
            git(&["config", "user.name", "t"]);
            git(&["config", "user.email", "t@example.org"]);
            git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
            stage.phalanx(&["team", "create", "demo"]).expect(0);
            let spawn = ["spawn", "bob", "--worktree", "--backend", "pty", "--", "sleep", "300"];
            dies(&stage, point, &spawn);
            if again {
                adopt(&stage);
                wait_for("the adopter has taken the start back", || {
                    recovered(&stage)["taken_back"].as_array().map(drop)
                });
                stage.phalanx(&spawn).expect(0);
            }
            down(&stage);
            assert_eq!(git(&["worktree", "list"]).lines().count(), 1, "{point} {again}");
            assert_eq!(git(&["branch", "--list", "demo-*"]), "", "{point} {again}");
            assert!(!stage.at("work/.worktrees/demo-bob").exists(), "{point} {again}");
        }
    }
}

#[test]
fn sd_03_cr_05_adopter_recovers_a_spawn_killed_at_any_point() {
    println!("{:<18} a start that was cut off there is", "killed at");
    for (point, expected) in STARTS {
        let stage = Stage::without_tmux();
        println!("{point:<18} {}", killed_start(&stage, point, expected));
    }
}

#[test]
fn tmux_sd_03_cr_05_adopter_recovers_a_killed_spawn_in_a_pane() {
    for (point, expected) in
        STARTS.into_iter().filter(|(point, _)| point.len() == "spawn.placed".len())
    {
        let stage = Stage::new();
        println!("{point:<18} {}", killed_start(&stage, point, expected));
    }
}

/// The lead ends ada, who is running the task, and dies at `point`.
fn killed_end(stage: &Stage, point: &str) -> String {
    let _printed = stage.printed_if_failed("demo");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    task(stage, "if [ -e go ]; then echo >>done; else sleep 300; fi");
    stage.wait_event("demo", "task_claimed", "1");
    let asks = point.starts_with("shutdown");
    if asks {
        dies(stage, point, &["shutdown", "ada", "--force"]);
    } else {
        lead_dies_ending_ada(stage, point);
    }
    std::fs::write(stage.at("work/go"), "").expect("go");
    adopt(stage);
    wait_for(
        &format!("{point}: ada has left, her task is free, nothing is asked any more"),
        || {
            let status = stage.phalanx(&["--json", "status"]).expect(0).json();
            let free = status["members"] == json!([]) && status["tasks"]["pending"] == json!(1);
            (free && status["requests"] == json!(0)).then_some(())
        },
    );
    // The next member runs the task once.
    stage.phalanx(&["spawn", "bob"]).expect(0);
    stage.wait_event("demo", "task_completed", "1");
    assert_eq!(done(stage), 1, "{point}");
    wait_for(&format!("{point}: the lead's mailbox says so"), || {
        let ends = ["ada has shut down", "ada was killed"].map(|text| messages(stage, LEAD, text));
        (ends.iter().sum::<usize>() == 1).then_some(())
    });
    assert_eq!(events(stage, "member_left").len(), 1, "{point}");
    let put_right =
        recovered(stage).as_object().map(|d| d.keys().cloned().collect::<Vec<_>>().join(", "));
    down(stage);
    put_right.unwrap_or_else(|| "by the loop".to_owned())
}

/// Starts a lead that is killed at `point` while it ends ada.
fn lead_dies_ending_ada(stage: &Stage, point: &str) {
    let mut lead = stage.command(binary());
    let mut lead = lead.env("PHALANX_FAILPOINT", point).arg("lead").spawn().expect("a lead");
    wait_for("it leads", || {
        stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64()
    });
    stage.phalanx(&["shutdown", "ada", "--force", "--no-wait"]).expect(0);
    wait_for(&format!("the lead dies at {point}"), || lead.try_wait().expect("wait"));
}

/// TK-02: the tasks of an ended run are released before its name is free. Otherwise those that the
/// next run of the name has claimed would be released, and would run twice.
#[test]
fn tk_02_tasks_of_an_ended_run_are_free_before_its_name() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada"]).expect(0);
    task(&stage, "sleep 300");
    stage.wait_event("demo", "task_claimed", "1");
    lead_dies_ending_ada(&stage, "task.released");
    let team = std::fs::read_to_string(stage.root().join("teams/demo/config.json")).expect("team");
    let team: Value = serde_json::from_str(&team).expect("JSON");
    let members = team["members"].as_array().expect("members");
    assert!(members.iter().any(|member| member["name"] == "ada"), "{team}");
    let first = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
    assert_eq!((&first["status"], &first["owner"]), (&json!("pending"), &Value::Null), "{first}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn sd_03_cr_05_adopter_completes_a_shutdown_killed_at_any_point() {
    println!("{:<18} put right", "killed at");
    for point in ENDS {
        let stage = Stage::without_tmux();
        println!("{point:<18} {}", killed_end(&stage, point));
    }
}

#[test]
fn tmux_sd_03_cr_05_adopter_completes_a_killed_shutdown_in_a_pane() {
    for point in ["stop.ended", "remove.left"] {
        let stage = Stage::new();
        println!("{point:<18} {}", killed_end(&stage, point));
    }
}

/// A lead that scales up for pending work dies at `point`.
fn killed_staff(stage: &Stage, point: &str) -> String {
    let text = "[team]\nname = \"demo\"\nfinish = \"manual\"\n[[member]]\nname = \"dev\"\nscale = { max = 1 }\n";
    let manifest = stage.file("demo.toml", text);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let leads = || stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64();
    let first = wait_for("a lead", leads).to_string();
    assert!(stage.command("kill").args(["-9", &first]).status().expect("kill").success());
    wait_for("it is gone", || leads().is_none().then_some(()));
    let mut lead = stage.command(binary());
    let mut lead = lead.env("PHALANX_FAILPOINT", point).arg("lead").spawn().expect("a lead");
    wait_for("it leads", leads);
    task(stage, "echo >>done");
    wait_for(&format!("the lead dies at {point}"), || lead.try_wait().expect("wait"));
    adopt(stage);
    stage.wait_event("demo", "task_completed", "1");
    assert_eq!((done(stage), events(stage, "task_claimed").len()), (1, 1), "{point}");
    let put_right =
        recovered(stage).as_object().map(|d| d.keys().cloned().collect::<Vec<_>>().join(", "));
    down(stage);
    put_right.unwrap_or_else(|| "by the loop".to_owned())
}

#[test]
fn sd_03_cr_05_adopter_recovers_a_lead_killed_while_scaling_up() {
    println!("{:<18} put right", "killed at");
    for (point, _) in STARTS {
        let stage = Stage::without_tmux();
        println!("{point:<18} {}", killed_staff(&stage, point));
    }
}

#[test]
fn msg_03_cr_05_owner_is_notified_once_if_the_assigner_dies() {
    println!("{:<18} told by", "killed at");
    for (point, untold) in ASSIGNS {
        let stage = Stage::without_tmux();
        stage.phalanx(&["team", "create", "demo"]).expect(0);
        stage.phalanx(&["spawn", "bob"]).expect(0);
        // A task without a command waits for its owner.
        stage.phalanx(&["task", "create", "Think"]).expect(0);
        dies(&stage, point, &["task", "update", "1", "--owner", "bob"]);
        assert_eq!(messages(&stage, "bob", "task_assignment"), usize::from(!untold), "{point}");
        adopt(&stage);
        wait_for(&format!("{point}: bob is told"), || {
            (messages(&stage, "bob", "task_assignment") == 1).then_some(())
        });
        // The journal is written a moment after the mailbox.
        let told = if untold { json!(["1"]) } else { Value::Null };
        wait_for(&format!("{point}: the journal to say who told him"), || {
            (recovered(&stage)["assigned"] == told).then_some(())
        });
        wait_for(&format!("{point}: it is noted that he was told"), || {
            let task = stage.phalanx(&["--json", "task", "get", "1"]).expect(0).json();
            task["metadata"]["phalanx"]["untold"].is_null().then_some(())
        });
        stage.phalanx(&["task", "update", "1", "--owner", "bob"]).expect(0);
        assert_eq!(messages(&stage, "bob", "task_assignment"), 1, "{point}: it is theirs already");
        println!("{point:<18} {}", if untold { "the adopter" } else { "whoever died" });
        down(&stage);
    }
}

/// TK-01, TK-04: a worker dies after its task ended and before anyone was notified. The running
/// lead announces the completion, or else the next one does.
#[test]
fn tk_01_tk_04_cr_05_task_end_is_announced_once_if_the_worker_dies() {
    for led in [true, false] {
        let stage = Stage::without_tmux();
        stage.phalanx(&["team", "create", "demo"]).expect(0);
        if led {
            stage.phalanx(&["lead", "--detach"]).expect(0);
        }
        stage.phalanx(&["spawn", "ada", "--env", "MEMBER_FAILPOINT=task.ended"]).expect(0);
        stage.phalanx(&["spawn", "bob"]).expect(0);
        let counts = "until [ -e go ]; do sleep 0.02; done; echo >>done";
        stage
            .phalanx(&["task", "create", "Counts", "--owner", "ada", "--", "sh", "-c", counts])
            .expect(0);
        // A task without a command waits for its owner.
        stage.phalanx(&["task", "create", "Think"]).expect(0);
        stage.phalanx(&["task", "update", "2", "--owner", "bob", "--blocked-by", "1"]).expect(0);
        std::fs::write(stage.at("work/go"), "").expect("go");
        if !led {
            let record = stage.root().join("teams/demo/phalanx/members/ada.json");
            wait_for("ada to die", || {
                let record: Value = serde_json::from_slice(&std::fs::read(&record).ok()?).ok()?;
                record["exit"].is_object().then_some(())
            });
            assert_eq!(events(&stage, "task_completed"), Vec::<Value>::new());
            adopt(&stage);
        }
        let ended = stage.wait_event("demo", "task_completed", "1");
        assert_eq!((&ended["member"], &ended["detail"]["freed"]), (&json!("ada"), &json!(["2"])));
        wait_for("bob to be told", || {
            (messages(&stage, "bob", "you can start it now") == 1).then_some(())
        });
        stage.wait_event("demo", "member_left", "ada");
        adopt_again(&stage);
        assert_eq!((done(&stage), events(&stage, "task_completed").len()), (1, 1), "led: {led}");
        assert_eq!(messages(&stage, "bob", "you can start it now"), 1, "led: {led}");
        down(&stage);
    }
}

/// Replaces the lead once more; repairs are not repeated.
fn adopt_again(stage: &Stage) {
    let lead = || stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].as_i64();
    let first = wait_for("a lead", lead).to_string();
    assert!(stage.command("kill").args(["-9", &first]).status().expect("kill").success());
    wait_for("it is gone", || lead().is_none().then_some(()));
    adopt(stage);
    wait_for("the next lead", lead);
}

#[test]
fn cr_05_task_runs_once_if_the_assigner_dies() {
    for point in ["assign.noted", "assign.said"] {
        let stage = Stage::without_tmux();
        stage.phalanx(&["team", "create", "demo"]).expect(0);
        stage.phalanx(&["spawn", "bob"]).expect(0);
        dies(
            &stage,
            point,
            &["task", "create", "Counts", "--owner", "bob", "--", "sh", "-c", "echo >>done"],
        );
        adopt(&stage);
        stage.wait_event("demo", "task_completed", "1");
        assert_eq!((done(&stage), events(&stage, "task_claimed").len()), (1, 1), "{point}");
        assert!(messages(&stage, "bob", "task_assignment") <= 1, "{point}");
        down(&stage);
    }
}

#[test]
fn sd_04_next_delete_finishes_a_killed_delete() {
    for point in ["delete.moved", "delete.moved:2"] {
        let stage = Stage::without_tmux();
        stage.phalanx(&["team", "create", "demo"]).expect(0);
        task(&stage, "true");
        dies(&stage, point, &["team", "delete"]);
        stage.phalanx(&["team", "delete", "-t", "demo"]).expect(0);
        stage.assert_clean();
        println!("{point:<18} finished by the next deletion");
    }
}
