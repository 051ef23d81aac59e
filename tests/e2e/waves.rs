//! The story of a team with two waves of tasks: a worker runs commands, an agent works and is
//! reviewed, the lead sends work back and retries a failed command. Both agents act over MCP.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{NATIVE, Stage, wait_for};
use crate::mcp::Client;

/// Reads new mail until a message contains the text, and returns that message. Adds all to `seen`.
fn hear(client: &mut Client, seen: &mut String, text: &str) -> String {
    wait_for(&format!("a message with `{text}`"), || {
        let read = client.call("ReadInbox", json!({"wait": 1}));
        let messages = read["messages"].as_array().expect("messages");
        let texts = messages.iter().filter_map(|message| message["text"].as_str());
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        texts.iter().for_each(|said| seen.push_str(&format!("{said}\n")));
        texts.into_iter().find(|said| said.contains(text))
    })
}

fn state(client: &mut Client, id: &str) -> String {
    let task = client.call("TaskGet", json!({"taskId": id}));
    task["task"]["state"].as_str().unwrap_or_else(|| panic!("{task}")).to_owned()
}

/// MSG-17, TK-04, TK-12, TK-13.
#[test]
fn two_waves_run_with_a_rejection_and_a_retry() {
    let stage = Stage::without_tmux();
    stage.profile("native", NATIVE);
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.call("SpawnTeammate", json!({"name": "wil", "backend": "pty"}));
    let agent =
        json!({"name": "ada", "profile": "native", "backend": "pty", "command": ["sleep", "300"]});
    lead.call("SpawnTeammate", agent);
    let mut ada = Client::start(&stage, &["--as", "ada", "mcp"]);
    let run = |name: &str, more: &str| json!(["sh", "-c", format!("{more} echo {name} >>log")]);
    let tasks = [
        json!({"subject": "Build", "description": "", "run": run("build", "")}),
        json!({"subject": "Write the page", "description": "", "owner": "ada"}),
        json!({"subject": "Test", "description": "", "blockedBy": ["1", "2"],
               "run": run("test", "test -e fixed || { echo not fixed; exit 3; };")}),
        json!({"subject": "Announce it", "description": "", "blockedBy": ["3"]}),
    ];
    for task in tasks {
        lead.call("TaskCreate", task);
    }
    let (mut of_lead, mut of_ada) = (String::new(), String::new());
    let board = |client: &mut Client, action: Value| client.call("TeamTasks", action);

    // The first wave: the worker builds, ada's page is sent back once.
    hear(&mut ada, &mut of_ada, "Write the page");
    ada.call("TaskUpdate", json!({"taskId": "2", "status": "in_progress", "owner": "ada"}));
    board(&mut ada, json!({"action": "review", "task_id": "2", "result": "a draft"}));
    hear(&mut lead, &mut of_lead, "waits for approval");
    wait_for("the build", || (state(&mut lead, "1") == "completed").then_some(()));
    let reason = "the title is missing";
    board(&mut lead, json!({"action": "reject", "task_id": "2", "reason": reason}));
    let sent_back = hear(&mut ada, &mut of_ada, reason);
    assert!(sent_back.contains("was sent back to you by team-lead"), "{sent_back}");
    let log = || fs::read_to_string(stage.at("work/log")).unwrap_or_default();
    assert_eq!(
        (state(&mut lead, "2"), state(&mut lead, "3")),
        ("in_progress".into(), "blocked".into())
    );
    assert_eq!(log(), "build\n", "what waits for the page has not begun");
    board(&mut ada, json!({"action": "review", "task_id": "2", "result": "with a title"}));
    hear(&mut lead, &mut of_lead, "waits for approval");
    board(&mut lead, json!({"action": "approve", "task_id": "2"}));
    hear(&mut ada, &mut of_ada, "was approved by team-lead");

    // The second wave: the test fails, is retried once the cause is mended, and frees the last
    // task.
    let failure = hear(&mut lead, &mut of_lead, "exit code 3");
    assert!(failure.contains("not fixed") && failure.contains("tell the person"), "{failure}");
    fs::write(stage.at("work/fixed"), "").expect("fixed");
    board(&mut lead, json!({"action": "retry", "task_id": "3"}));
    let offer = hear(&mut ada, &mut of_ada, "Announce it");
    assert!(offer.contains("is free, and you are idle"), "{offer}");
    assert_eq!(log(), "build\ntest\n");
    ada.call("TaskUpdate", json!({"taskId": "4", "status": "in_progress", "owner": "ada"}));
    board(&mut ada, json!({"action": "complete", "task_id": "4", "result": "it is out"}));
    let end = hear(&mut lead, &mut of_lead, "it is out");
    assert!(end.contains("All tasks have ended"), "{end}");

    let page = lead.call("TaskGet", json!({"taskId": "2"}));
    assert_eq!(page["task"]["metadata"]["phalanx"]["rounds"], 1, "{page}");
    for once in ["with a title", "not fixed", "it is out"] {
        assert_eq!(of_lead.matches(once).count(), 1, "{once}: {of_lead}");
    }
    for once in [reason, "was approved", "Announce it"] {
        assert_eq!(of_ada.matches(once).count(), 1, "{once}: {of_ada}");
    }
    drop((lead, ada));
    stage.phalanx(&["kill", "ada"]).expect(0);
    // The lead may report the end of a command after that of a later task.
    wait_for("all reports to be read", || {
        stage.phalanx(&["inbox"]).expect(0);
        (stage.phalanx(&["down"]).code == 0).then_some(())
    });
    stage.assert_clean();
}
