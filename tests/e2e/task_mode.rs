//! Task mode: each task is one run of the one-shot form of a program, without standing members.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::gear;
use crate::harness::{Run, Stage, binary, wait_for};

/// A program that records its prompt, waits for the file `go`, and fails if its task contains
/// `fails`. Its background child would outlive it if phalanx did not end it.
const ASKER: &str = r#"
about = "answers"
runs = "native"
reads_mail = false
[launch]
argv = [["sh", "-c", "exec sleep 300", "asker"], ["{prompt}"]]
prompt = "argv"
once = [["sh", "-c", "echo \"$1\" >>begun; setsid sleep 300 & until [ -e go ]; do sleep 0.05; done; echo \"done: $1\"; case $1 in *fails*) exit 3;; esac", "asker", "{prompt}"]]
[ready]
when = "settled"
settle_ms = 10
"#;

/// A stage with this profile installed.
fn stage() -> Stage {
    let stage = Stage::without_tmux();
    // Without a subreaper a child with a session of its own is lost once its parent has exited.
    let is_portable = gear::portable().is_some();
    let asker = if is_portable { ASKER.replace("setsid ", "") } else { ASKER.to_owned() };
    stage.profile("asker", &asker);
    stage
}

/// Writes the manifest of a team in task mode with at most two concurrent runs and a task for each
/// subject.
fn manifest(stage: &Stage, finish: &str, subjects: &[&str]) -> String {
    let mut text = format!(
        "[team]\nname = \"alpha\"\nmode = \"task\"\nfinish = \"{finish}\"\n\
         [[member]]\nname = \"dev\"\nprofile = \"asker\"\nprompt = \"Be short.\"\nscale = {{ max = 2 }}\n"
    );
    for (nth, subject) in subjects.iter().enumerate() {
        text.push_str(&format!("[[task]]\nkey = \"t{nth}\"\nsubject = \"{subject}\"\n"));
    }
    stage.file("team.toml", &text)
}

/// The task lines of the prompts of all runs, sorted.
fn begun(stage: &Stage) -> Vec<String> {
    let text = fs::read_to_string(stage.at("work/begun")).unwrap_or_default();
    let mut tasks: Vec<String> =
        text.lines().filter(|line| line.starts_with("Task #")).map(str::to_owned).collect();
    tasks.sort();
    tasks
}

fn go(stage: &Stage) {
    fs::write(stage.at("work/go"), "").expect("go");
}

fn count(stage: &Stage, event: &str) -> usize {
    stage.journal("alpha").iter().filter(|e| e["event"] == event).count()
}

/// Waits until two runs are in progress, and asserts that no third one is.
fn two_at_work(stage: &Stage) {
    wait_for("two runs", || (begun(stage).len() == 2).then_some(()));
    wait_for("both on the team", || (count(stage, "member_ready") == 2).then_some(()));
    assert_eq!(count(stage, "task_claimed"), 2, "no more than two at once");
}

fn task(stage: &Stage, id: &str) -> Value {
    stage.phalanx(&["--json", "task", "get", id]).expect(0).json()
}

/// TK-05, MSG-18: each task is claimed for its own run and ends with the exit code of that run. One
/// message to the lead has the output of all.
#[test]
fn tk_05_each_task_is_one_run_and_ends_with_its_exit_code() {
    let stage = stage();
    fs::create_dir(stage.at("work/.git")).expect("a checkout");
    let manifest = manifest(&stage, "manual", &["one", "two", "fails", "four"]);
    let up = stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    assert!(up.stderr.lines().any(|line| line == "mode task: as requested"), "{up:?}");
    assert!(up.stderr.contains("runs of `dev` work in one checkout, "), "TK-09: {up:?}");
    two_at_work(&stage);
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    let seen =
        |n: usize| (status["members"][n]["state"].clone(), status["members"][n]["task"].clone());
    assert_eq!(
        [seen(0), seen(1)],
        [(json!("working"), json!("1")), (json!("working"), json!("2"))]
    );
    go(&stage);
    wait_for("all to be over", || {
        (count(&stage, "task_completed") == 3 && count(&stage, "task_failed") == 1).then_some(())
    });
    assert_eq!(begun(&stage), ["Task #1: one", "Task #2: two", "Task #3: fails", "Task #4: four"]);
    assert_eq!(count(&stage, "task_claimed"), 4);
    let failed = &task(&stage, "3")["metadata"]["phalanx"];
    assert_eq!((&failed["state"], &failed["outcome"]["exit_code"]), (&json!("failed"), &json!(3)));
    assert!(
        failed["outcome"]["tail"].as_str().is_some_and(|tail| tail.contains("Task #3: fails")),
        "{failed}"
    );
    wait_for("all to have left", || (count(&stage, "member_left") == 4).then_some(()));
    let mail = wait_for("the report", || {
        let mail = stage.phalanx(&["--json", "inbox", "--peek"]).expect(0).json();
        mail.to_string().contains("4 tasks ended: 3 completed, 1 failed").then_some(mail)
    });
    assert_eq!(mail.as_array().map(Vec::len), Some(1), "{mail}");
    let text = mail[0]["text"].as_str().expect("a text");
    for answer in ["Task #1: one", "Task #2: two", "Task #3: fails", "Task #4: four"] {
        assert_eq!(text.matches(answer).count(), 1, "{answer}: {text}");
    }
    for id in 1..=4 {
        let log = fs::read_to_string(
            stage.root().join(format!("teams/alpha/phalanx/logs/task.{id}.log")),
        );
        assert!(log.expect("each run's own").contains(&format!("done: Be short.\n\nTask #{id}: ")));
    }
    assert_eq!(stage.phalanx(&["--json", "status"]).expect(0).json()["members"], json!([]));
    // A task created later gets a run too, and its owner may be a member that is not running.
    stage.phalanx(&["task", "create", "five", "--owner", "dev-2"]).expect(0);
    assert_eq!(stage.wait_event("alpha", "task_completed", "5")["member"], "dev-2");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// CR-05: the lead is killed during runs; the next lead neither restarts nor loses them.
#[test]
fn cr_05_runs_outlive_their_lead_and_are_not_repeated() {
    let stage = stage();
    let manifest = manifest(&stage, "tasks-done", &["one", "two", "three"]);
    let up = stage.phalanx(&["--json", "up", &manifest, "--detach", "--keep"]).expect(0).json();
    two_at_work(&stage);
    let pid = up["lead_pid"].to_string();
    assert!(
        std::process::Command::new("kill").args(["-9", &pid]).status().expect("kill").success()
    );
    // It holds its lease until the kernel has ended it.
    wait_for("its end", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
    let lead = stage.start(&["adopt"]);
    wait_for("the next lead", || {
        let seen = stage.phalanx(&["--json", "status"]).expect(0).json()["lead"]["pid"].to_string();
        (seen == lead.pid()).then_some(())
    });
    assert_eq!(begun(&stage).len(), 2);
    go(&stage);
    lead.end().expect(0);
    assert_eq!(begun(&stage), ["Task #1: one", "Task #2: two", "Task #3: three"]);
    assert_eq!((count(&stage, "task_claimed"), count(&stage, "task_completed")), (3, 3));
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// SD-03, CR-05: the process that starts a run dies at each step; the task still completes once.
#[test]
#[cfg(debug_assertions)]
fn cr_05_task_completes_once_if_the_starter_of_its_run_dies() {
    for point in [
        "spawn.kept",
        "spawn.claimed",
        "spawn.placed",
        "spawn.noted",
        "spawn.proven",
        "spawn.accepted",
    ] {
        let stage = stage();
        go(&stage);
        let manifest = manifest(&stage, "tasks-done", &["one"]);
        let mut command = stage.command(binary());
        let run =
            command.env("PHALANX_FAILPOINT", point).args(["up", &manifest, "--keep"]).output();
        let run = Run::from(run.expect("phalanx runs"));
        assert_eq!(run.code, -1, "up does not pass {point}: {run:?}");
        stage.phalanx(&["adopt"]).expect(0);
        let done = stage.journal("alpha").iter().filter(|e| e["event"] == "task_completed").count();
        assert_eq!(done, 1, "{point}");
        let begun = begun(&stage).len();
        // If the launcher has not yet recorded its identity, the run is ended and the task run
        // again.
        assert!(begun == 1 || begun == 2 && point == "spawn.placed", "{point}: {begun}");
        stage.phalanx(&["team", "delete"]).expect(0);
        stage.assert_clean();
    }
}

/// SD-01: runs end with all processes that they started, and their tasks become pending.
#[test]
fn sd_01_shutdown_ends_runs_and_releases_their_tasks() {
    let stage = stage();
    let manifest = manifest(&stage, "manual", &["one", "two", "three"]);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    two_at_work(&stage);
    let ended = stage.phalanx(&["--json", "shutdown", "dev-1"]).expect(0).json();
    assert_eq!(ended[0]["outcome"], "closed", "{ended}");
    stage.wait_event("alpha", "member_left", "dev-1");
    let free = stage.wait_event("alpha", "task_released", "dev-1");
    let (id, status) = (free["task"].as_str().expect("id"), |task: Value| task["status"].clone());
    assert_eq!(status(task(&stage, id)), "pending", "nobody comes in its place unasked");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// CR-01, TK-05: a run whose launcher is killed is ended as a whole, and a new run does its task.
#[test]
fn cr_01_task_of_a_killed_run_is_done_by_another_run() {
    let stage = stage();
    let manifest = manifest(&stage, "manual", &["one"]);
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    stage.wait_event("alpha", "member_ready", "dev-1");
    wait_for("the first run", || (begun(&stage).len() == 1).then_some(()));
    let record =
        fs::read(stage.root().join("teams/alpha/phalanx/members/dev-1.json")).expect("record");
    let record: Value = serde_json::from_slice(&record).expect("json");
    let launcher = record["start"]["launcher"]["pid"].to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-9", &launcher])
            .status()
            .expect("kill")
            .success()
    );
    stage.wait_event("alpha", "task_released", "1");
    wait_for("the second run", || (begun(&stage).len() == 2).then_some(()));
    // A forked child has the command line of the program until it executes another.
    let programs =
        || stage.processes().iter().filter(|line| line.contains("until [ -e go ]")).count();
    wait_for("the end of the first run", || (programs() == 1).then_some(()));
    go(&stage);
    stage.wait_event("alpha", "task_completed", "1");
    assert_eq!((begun(&stage).len(), count(&stage, "task_claimed")), (2, 2));
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// A hook can reject a completion even though the run has already ended.
#[test]
fn hook_rejection_fails_the_task_of_a_run() {
    let stage = stage();
    go(&stage);
    let manifest = manifest(&stage, "manual", &["one"]);
    let hook = "[[hook]]\nevent = \"TaskCompleted\"\nrun = [\"sh\", \"-c\", \"echo not good >&2; exit 2\"]\n";
    let text = fs::read_to_string(&manifest).expect("manifest") + hook;
    fs::write(&manifest, text).expect("manifest");
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    stage.wait_event("alpha", "task_failed", "1");
    let ours = task(&stage, "1")["metadata"]["phalanx"].clone();
    assert_eq!((&ours["state"], &ours["outcome"]["exit_code"]), (&json!("failed"), &json!(0)));
    let tail = ours["outcome"]["tail"].as_str().expect("tail");
    assert!(tail.ends_with("Task #1: one\na hook refuses it: not good"), "{tail}");
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// `auto` picks the mode and reports it with the reason.
#[test]
fn sp_08_auto_mode_is_task_when_no_backend_is_available() {
    for (backend, line) in [
        ("tmux", "mode task: no backend for standing members: `tmux` is not on PATH"),
        ("pty", "mode teammate: pty, as requested"),
    ] {
        let stage = stage();
        go(&stage);
        let text = format!(
            "[team]\nname = \"alpha\"\nmode = \"auto\"\nbackend = \"{backend}\"\nfinish = \"manual\"\n\
             [[member]]\nname = \"dev\"\nprofile = \"asker\"\n[[task]]\nkey = \"t\"\nsubject = \"one\"\n"
        );
        let manifest = stage.file("auto.toml", &text);
        let up = stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
        assert!(up.stderr.lines().any(|said| said == line), "{up:?}");
        if backend != "pty" {
            assert_eq!(stage.wait_event("alpha", "task_completed", "1")["member"], "dev");
        } else {
            let members = stage.phalanx(&["--json", "status"]).expect(0).json()["members"].clone();
            assert_eq!((&members[0]["name"], count(&stage, "task_claimed")), (&json!("dev"), 0));
        }
        stage.phalanx(&["down", "--force"]).expect(0);
        stage.assert_clean();
    }
}

/// Task-only roles and members in a team with standing members; a task's own command runs as given.
#[test]
fn task_only_members_run_only_for_their_tasks() {
    let stage = stage();
    go(&stage);
    let manifest = stage.file(
        "mixed.toml",
        "[team]\nname = \"alpha\"\nfinish = \"manual\"\n[role.scout]\ntask_only = true\nprompt = \"Look.\"\n\
         [[member]]\nname = \"ada\"\n[[member]]\nname = \"bob\"\ntask_only = true\nscale = { max = 3 }\n\
         [[member]]\nname = \"eve\"\nrole = \"scout\"\nprofile = \"asker\"\n\
         [[task]]\nkey = \"run\"\nsubject = \"Runs\"\nrun = [\"sh\", \"-c\", \"echo in $PWD as $A; exit 4\"]\n\
         owner = \"bob-1\"\nenv = { A = \"b\" }\ncwd = \"sub\"\n\
         [[task]]\nkey = \"look\"\nsubject = \"Looks\"\nrole = \"scout\"\n",
    );
    fs::create_dir(stage.at("work/sub")).expect("dir");
    stage.phalanx(&["up", &manifest, "--detach"]).expect(0);
    let failed = stage.wait_event("alpha", "task_failed", "1");
    assert_eq!((&failed["member"], &failed["detail"]["exit_code"]), (&json!("bob-1"), &json!(4)));
    let tail = task(&stage, "1")["metadata"]["phalanx"]["outcome"]["tail"].clone();
    assert_eq!(tail, format!("in {} as b", stage.at("work/sub").display()));
    assert_eq!(stage.wait_event("alpha", "task_completed", "2")["member"], "eve");
    assert_eq!(
        fs::read_to_string(stage.at("work/begun")).expect("begun"),
        "Look.\n\nTask #2: Looks\n"
    );
    let refused =
        stage.phalanx(&["spawn", "max", "--role", "scout", "--profile", "asker"]).expect(2);
    assert!(refused.stderr.contains("role `scout` is task-only"), "{refused:?}");
    wait_for("only ada stands", || {
        let status = stage.phalanx(&["--json", "status"]).expect(0).json();
        (status["members"].as_array()?.len() == 1 && status["members"][0]["name"] == "ada")
            .then_some(())
    });
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

/// Members that task mode cannot run are refused before anything is created.
#[test]
fn task_mode_refuses_members_that_cannot_run_one_shot() {
    let stage = stage();
    let table = [
        (
            "profile = \"asker\"\nplan = true",
            "member `dev` must have a plan approved, and in task mode nobody stands",
        ),
        (
            "run = [\"sleep\", \"9\"]",
            "member `dev` has a command line of its own, and in task mode nobody stands",
        ),
        ("profile = \"mute\"", "profile `mute` has no one-shot form"),
        ("profile = \"asker\"\ntask_only = true\nstart = \"now\"", "both `task_only` and `start`"),
    ];
    let mute =
        ASKER.lines().filter(|line| !line.starts_with("once")).collect::<Vec<_>>().join("\n");
    stage.profile("mute", &mute);
    for (member, expected) in table {
        let text = format!(
            "[team]\nname = \"alpha\"\nmode = \"task\"\n[[member]]\nname = \"dev\"\n{member}\n"
        );
        let run = stage.phalanx(&["up", &stage.file("bad.toml", &text)]).expect(2);
        assert!(run.stderr.contains(expected), "{run:?}");
    }
    stage.assert_clean();
}
