//! Members whose runs ended without being asked to are started again.

use serde_json::{Value, json};

use crate::harness::{Stage, wait_for};

fn record(stage: &Stage, name: &str) -> Value {
    let path = stage.root().join(format!("teams/demo/phalanx/members/{name}.json"));
    serde_json::from_str(&std::fs::read_to_string(path).expect("record")).expect("json")
}

fn is_gone(pid: &Value) -> bool {
    !std::path::Path::new(&format!("/proc/{pid}")).exists()
}

/// Ends a member's processes as a machine that goes down does: nobody writes a last word.
fn fell(stage: &Stage, name: &str) {
    let start = record(stage, name)["start"].clone();
    for process in ["launcher", "program"] {
        let pid = &start[process]["pid"];
        let _ = std::process::Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
        wait_for("it is gone", || is_gone(pid).then_some(()));
    }
}

#[test]
fn cr_05_whoever_failed_or_vanished_is_started_again_as_it_was() {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    assert_eq!(stage.phalanx(&["--json", "resume"]).expect(0).json(), json!([]));
    let script = "echo $WORD >>words; until [ -e fail ]; do sleep 0.05; done; exit 3";
    stage.phalanx(&["spawn", "log", "--env", "WORD=kept", "--", "sh", "-c", script]).expect(0);
    stage.phalanx(&["spawn", "ada", "--prompt", "look after the tests", "--role", "tester"]).expect(0);
    stage.phalanx(&["spawn", "ben"]).expect(0);
    stage.phalanx(&["spawn", "cleo"]).expect(0);
    stage.phalanx(&["task", "create", "Waits", "--", "sleep", "300"]).expect(0);
    stage.phalanx(&["shutdown", "ben", "--force"]).expect(0);
    // If it was ben who had begun it, somebody else has it now.
    let worker = wait_for("a worker", || {
        let claimed = stage.journal("demo").into_iter().rfind(|e| e["event"] == "task_claimed")?;
        claimed["member"].as_str().filter(|name| *name != "ben").map(str::to_owned)
    });
    std::fs::write(stage.at("work/fail"), "").expect("fail");
    wait_for("log ends", || record(&stage, "log").get("exit").is_some().then_some(()));
    std::fs::remove_file(stage.at("work/fail")).expect("well again");
    fell(&stage, "ada");

    let again = stage.phalanx(&["--json", "resume"]).expect(0).json();
    let names: Vec<&str> =
        again.as_array().expect("rows").iter().filter_map(|r| r["name"].as_str()).collect();
    assert_eq!(names, ["ada", "log"], "neither who runs nor who was asked to end: {again}");
    assert_eq!(std::fs::read_to_string(stage.at("work/words")).expect("words"), "kept\nkept\n");
    assert_eq!(record(&stage, "ada")["wish"]["role"], json!("tester"));
    let mail = stage.phalanx(&["--json", "inbox", "ada", "--all"]).expect(0).stdout;
    assert!(mail.contains("look after the tests\\n\\nYou are started again. Your last run ended"), "{mail}");
    assert!(mail.contains("Your last run ended: its process is gone."), "{mail}");
    assert_eq!(mail.contains("began #1 Waits"), worker == "ada", "its own events: {mail}");

    // A second time the summary is that of the last run alone.
    fell(&stage, "ada");
    stage.phalanx(&["resume", "ada"]).expect(0);
    let wish = record(&stage, "ada")["wish"]["prompt"].as_str().expect("prompt").to_owned();
    assert_eq!(
        (wish.matches("look after").count(), wish.matches("You are started again").count()),
        (1, 1),
        "{wish}"
    );

    stage.phalanx(&["resume", "cleo"]).expect(4);
    stage.phalanx(&["resume", "nobody"]).expect(3);
    stage.phalanx(&["resume", "ada", "--session", "x"]).expect(4);
    stage.phalanx(&["resume", "ben"]).expect(0);
    stage.phalanx(&["down", "--force"]).expect(0);
    stage.assert_clean();
}

#[test]
fn a_program_that_can_goes_on_with_its_session() {
    let stage = Stage::without_tmux();
    let profiles = stage.root().join("phalanx/profiles");
    std::fs::create_dir_all(&profiles).expect("dir");
    let profile = "about = \"keeps sessions\"\nruns = \"native\"\nreads_mail = false\n[launch]\n\
        argv = [[\"sh\", \"-c\", \"echo fresh; exec sleep 300\"]]\nprompt = \"mailbox\"\n\
        resume = [[\"sh\", \"-c\", \"echo session=$1.; exec sleep 300\", \"sh\", \"{resume}\"]]\n\
        [ready]\nwhen = \"settled\"\nsettle_ms = 100\n";
    std::fs::write(profiles.join("keeps.toml"), profile).expect("profile");
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.phalanx(&["spawn", "ada", "--profile", "keeps"]).expect(0);
    fell(&stage, "ada");
    stage.phalanx(&["resume", "ada", "--session", "s-17"]).expect(0);
    let printed = wait_for("it says so", || {
        let logs = stage.phalanx(&["logs", "ada"]).expect(0).stdout;
        logs.contains("session").then_some(logs)
    });
    assert!(printed.contains("session=s-17.") && !printed.contains("fresh"), "{printed}");
    // Without one it starts anew.
    fell(&stage, "ada");
    stage.phalanx(&["resume"]).expect(0);
    wait_for("fresh", || stage.phalanx(&["logs", "ada"]).expect(0).stdout.contains("fresh").then_some(()));
    let none = stage.phalanx(&["resume", "ada", "--session", "s-17"]).expect(4);
    assert!(none.stderr.contains("ada"), "{none:?}");
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}
