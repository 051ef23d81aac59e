//! Tools that do what only the command line could, and calls in the words of other team systems.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{NATIVE, Stage, wait_for};
use crate::mcp::Client;

/// Team `demo` with a member that reads its own mail and was not started by phalanx.
fn team() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ann"]);
    stage
}

#[test]
fn tl_04_member_is_started_with_backend_layout_environment_tools_and_scope() {
    let stage = Stage::without_tmux();
    stage.profile("native", NATIVE);
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.call("TeamCreate", json!({"team_name": "demo"}));
    let spawned = lead.call(
        "SpawnTeammate",
        json!({"name": "ann", "backend": "pty", "layout": "windows", "scope": "user=u,chat=c",
            "env": {"COLOUR": "red and blue"}, "command": ["sh", "-c", "echo $COLOUR-$PHALANX_CHAT; exec cat"]}),
    );
    assert_eq!(spawned["backend"], "pty");
    wait_for("the output of ann", || {
        let logs = lead.call("Logs", json!({"names": "ann", "since": "5m"})).to_string();
        logs.contains("red and blue-c").then_some(())
    });
    let plan = lead.call(
        "SpawnTeammate",
        json!({"name": "ben", "profile": "claude", "allowed_tools": ["Read", "Bash(git:*)"],
            "disallowed_tools": "WebFetch", "dry_run": true}),
    );
    let argv = plan["argv"].to_string();
    assert!(argv.contains("Read,Bash") && argv.contains("WebFetch"), "{plan}");
    let members = lead.call("ListMembers", json!({}));
    assert_eq!(members["members"].as_array().map(Vec::len), Some(1), "nothing was started");
    let refused = lead.refused("SpawnTeammate", json!({"name": "x", "backend": "screen"}));
    assert_eq!(refused["message"], "argument `backend`: possible: auto, tmux, iterm2, pty");
    let refused = lead.refused("SpawnTeammate", json!({"name": "x", "profile": "shell"}));
    assert_eq!(
        refused["hint"],
        "in a manifest add `run = [\"CMD\", \"ARG\"]`; for `spawn` add `command`"
    );
    lead.call("Restart", json!({"names": ["ann"], "force": true}));
    lead.call("Type", json!({"name": "ann", "keys": ["C-d"]}));
    let gone = lead.call("WaitFor", json!({"names": ["ann"], "until": "gone"}));
    assert_eq!(gone["reached"], true, "{gone}");
    let events = lead.call("Events", json!({"names": ["ann"], "since": "1h"}));
    assert!(events.to_string().contains("member_exited"), "{events}");
    let last = lead.call("Events", json!({"lines": 1}));
    assert_eq!(last["events"].as_array().map(Vec::len), Some(1));
    lead.call("Shutdown", json!({"all": true, "force": true}));
    lead.call("TeamDelete", json!({}));
    assert_eq!(lead.end(), Some(0));
    stage.assert_clean();
}

#[test]
fn tl_04_workspace_is_listed_read_written_and_deleted() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    let mut ann = Client::start(&stage, &["--as", "ann", "mcp"]);
    lead.call("TaskCreate", json!({"subject": "report", "owner": "ann"}));
    ann.call("TaskUpdate", json!({"taskId": 1, "status": "in_progress"}));
    let file = json!({"action": "write", "path": "report.md", "content": "two faults\n"});
    assert_eq!(ann.call("TeamWorkspace", file)["tasks"], json!(["1"]), "linked to its task");
    let listed = lead.call("TeamWorkspace", json!({"action": "list"}));
    assert_eq!(
        (&listed["files"][0]["name"], &listed["files"][0]["by"]),
        (&json!("report.md"), &json!("ann"))
    );
    let read = lead.call("TeamWorkspace", json!({"action": "read", "path": "report.md"}));
    assert_eq!(read["text"], "two faults\n");
    let path = lead.call("TeamWorkspace", json!({"action": "path", "path": "report.md"}));
    let on_disk = fs::read_to_string(path["path"].as_str().expect("a path")).expect("the file");
    assert_eq!(on_disk, "two faults\n");
    lead.call("TeamWorkspace", json!({"action": "write", "path": "own.md", "content": ""}));
    let refused = ann.refused("TeamWorkspace", json!({"action": "delete", "path": "own.md"}));
    assert_eq!(refused["kind"], "refused", "{refused}");
    let outside = json!({"action": "read", "path": "../../config.json"});
    assert_eq!(lead.refused("TeamWorkspace", outside)["kind"], "usage");
    let refused = lead.refused("TeamWorkspace", json!({"action": "write", "path": "x"}));
    assert_eq!(refused["message"], "`content` is missing", "stdin is the protocol's");
    lead.call("TeamWorkspace", json!({"action": "delete", "path": "report.md"}));
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn tl_04_typed_handoffs_go_to_members_and_to_other_teams() {
    let stage = team();
    stage.phalanx(&["team", "create", "front"]).expect(0);
    let mut lead = Client::start(&stage, &["mcp", "-t", "demo"]);
    let mut ann = Client::start(&stage, &["--as", "ann@demo", "mcp"]);
    let types = ann.call("TeamHandoffs", json!({"action": "types"}));
    assert!(types["types"].as_array().is_some_and(|types| types.len() > 5), "{types}");
    let body = json!({"task": "01-01/T3", "plan_id": "01-01", "status": "complete"});
    let send = json!({"action": "send", "name": "team-lead", "type": "dev_progress", "body": body});
    assert_eq!(ann.call("TeamHandoffs", send)["success"], true);
    let mail = lead.call("ReadInbox", json!({}));
    assert!(mail["messages"][0]["text"].as_str().is_some_and(|text| text.contains("01-01/T3")));
    let wrong = json!({"action": "send", "name": "team-lead", "type": "dev_progress", "body": {}});
    let refused = ann.refused("TeamHandoffs", wrong);
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("`task`")), "{refused}");
    let endpoints = json!([{"method": "POST", "path": "/login"}]);
    let contract = json!({"status": "proposed", "endpoints": endpoints});
    let put =
        json!({"action": "put", "to_team": "front", "type": "api_contract", "body": contract});
    let refused = ann.refused("TeamHandoffs", put.clone());
    assert_eq!(refused["kind"], "refused", "only a lead hands over: {refused}");
    let done = lead.call("TeamHandoffs", put);
    let mut front = Client::start(&stage, &["mcp", "-t", "front"]);
    let listed = front.call("TeamHandoffs", json!({"action": "list", "from": "demo"}));
    assert_eq!(listed["handoffs"][0]["id"], done["handoff_id"], "{listed}");
    let get = json!({"action": "get", "handoff_id": done["handoff_id"]});
    assert_eq!(front.call("TeamHandoffs", get)["body"]["status"], "proposed");
    for name in ["demo", "front"] {
        stage.phalanx(&["down", "--force", "-t", name]).expect(0);
    }
}

#[test]
fn tl_04_settings_rules_and_modes_are_the_leads() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    let mut ann = Client::start(&stage, &["--as", "ann", "mcp"]);
    let set = json!({"action": "set", "set": {
        "max_members": 12, "notify": ["notify-send", "two words"], "role.scout.model": "haiku",
        "board": {"list_before_create": true}}});
    assert_eq!(ann.refused("TeamSettings", set.clone())["kind"], "refused");
    lead.call("TeamSettings", set);
    let shown = ann.call("TeamSettings", json!({"action": "show"}));
    let team = &shown["settings"]["team"];
    assert_eq!(team["max_members"], 12, "{shown}");
    assert_eq!(team["notify"], json!(["notify-send", "two words"]));
    assert_eq!(team["board"]["list_before_create"], true);
    lead.call(
        "TeamSettings",
        json!({"action": "set", "unset": ["notify", "board.list_before_create"]}),
    );
    let refused = lead.refused("TeamSettings", json!({"action": "set", "set": {"max_member": 1}}));
    assert_eq!(refused["kind"], "usage", "{refused}");
    let rule =
        |action: &str| json!({"action": action, "list": "deny", "patterns": "Bash(git push:*)"});
    assert_eq!(ann.refused("Rules", rule("add"))["kind"], "refused");
    lead.call("Rules", rule("add"));
    let shown = ann.call("Rules", json!({"action": "show"}));
    assert_eq!(shown["rules"]["team"]["deny"], json!(["Bash(git push:*)"]));
    lead.call("Rules", rule("remove"));
    let changed = lead.call("SetMode", json!({"all": true, "mode": "acceptEdits"}));
    assert_eq!(changed["members"][0]["name"], "ann", "{changed}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn tl_04_tasks_are_imported_exported_scoped_and_deleted() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    fs::write(stage.at("work/TODO.md"), "- [ ] one\n- [ ] two\n").expect("write");
    let import =
        |dry_run: bool| json!({"action": "import", "paths": ["TODO.md"], "dry_run": dry_run});
    lead.call("TeamTasks", import(true));
    assert_eq!(lead.call("TaskList", json!({}))["tasks"], json!([]), "a dry run imports nothing");
    let done = lead.call("TeamTasks", import(false));
    assert_eq!(done["created"].as_array().map(Vec::len), Some(2));
    let key = lead.call("TaskList", json!({}))["tasks"][0]["key"].clone();
    assert_eq!(lead.call("TaskGet", json!({"taskId": key}))["task"]["id"], "1");
    let changes = json!({"taskId": "2", "addBlockedBy": [key]});
    assert_eq!(lead.call("TaskUpdate", changes)["task"]["blockedBy"], json!(["1"]));
    let scoped = json!({"subject": "asked", "scope": "user=u,channel=c", "env": {"A": "b"}});
    let made = lead.call("TaskCreate", scoped);
    assert_eq!(made["task"]["metadata"]["phalanx"]["env"]["A"], "b");
    let listed = lead.call("TaskList", json!({"scope": "user=u"}));
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(1), "{listed}");
    let scopes = lead.call("TeamTasks", json!({"action": "scopes"}));
    assert_eq!(scopes["scopes"][0]["scope"]["channel"], "c");
    let exported = lead.call("TeamTasks", json!({"action": "export"}));
    assert_eq!(exported["tasks"].as_array().map(Vec::len), Some(3));
    let refused = lead.refused("TeamTasks", json!({"action": "delete", "task_id": 1}));
    assert!(
        refused["hint"].as_str().is_some_and(|hint| hint.ends_with("with `force`")),
        "{refused}"
    );
    lead.call("TeamTasks", json!({"action": "delete", "task_id": 1, "force": true}));
    let deleted = lead.call("TaskUpdate", json!({"taskId": "2", "status": "deleted"}));
    assert_eq!(deleted["task"]["id"], "2");
    assert_eq!(lead.refused("TaskGet", json!({"taskId": "2"}))["kind"], "not_found");
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn tl_03_calls_of_claude_codes_newest_tools_are_understood() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    let mut ann = Client::start(&stage, &["--as", "ann", "mcp"]);
    lead.call("SendMessage", json!({"to": "ann", "summary": "s", "message": "first"}));
    lead.call("SendMessage", json!({"to": "*", "message": "second", "team_name": "demo"}));
    let read = ann.call("ReadInbox", json!({}));
    let texts: Vec<_> = read["messages"].as_array().expect("messages").iter().collect();
    assert_eq!((&texts[0]["text"], &texts[1]["text"]), (&json!("first"), &json!("second")));
    let plan = ann.call("SubmitPlan", json!({"plan": "1. write"}));
    let answer = json!({"type": "plan_approval_response", "request_id": plan["request_id"],
        "approve": false, "feedback": "name the tests"});
    lead.call("SendMessage", json!({"to": "ann", "message": answer}));
    assert!(ann.call("ReadInbox", json!({})).to_string().contains("name the tests"));
    let spawned = lead.call(
        "SpawnTeammate",
        json!({"description": "a worker", "name": "ben", "subagent_type": "general-purpose",
            "team_name": "demo", "run_in_background": true}),
    );
    assert_eq!(spawned["name"], "ben");
    let made = lead
        .call("TaskCreate", json!({"subject": "one", "description": "d", "activeForm": "doing"}));
    assert_eq!(made["task"]["activeForm"], "doing");
    lead.call("TaskUpdate", json!({"task_id": 1, "addBlockedBy": [], "owner": "ben"}));
    let both =
        lead.refused("SendMessage", json!({"to": "ann", "recipient": "ben", "content": "x"}));
    assert!(both["message"].as_str().is_some_and(|text| text.contains("\"to\"")), "{both}");
    let elsewhere = lead.call("ListMembers", json!({"team_name": "demo"}));
    assert_eq!(elsewhere["team"], "demo");
    let mut pinned = Client::start(&stage, &["-t", "demo", "mcp"]);
    let refused = pinned.refused("ListMembers", json!({"team_name": "other"}));
    assert_eq!(refused["message"], "this server acts for the team `demo`, not for `other`");
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn tl_03_team_name_chooses_among_several_teams_and_gives_no_rights() {
    let stage = team();
    stage.phalanx(&["team", "create", "other"]).expect(0);
    let mut lead = Client::start(&stage, &["mcp"]);
    let refused = lead.refused("ListMembers", json!({}));
    assert_eq!(refused["hint"], "choose one with `team_name`: demo, other");
    assert_eq!(lead.call("ListMembers", json!({"team_name": "other"}))["team"], "other");
    let mut ann = Client::start(&stage, &["--as", "ann@demo", "mcp"]);
    let refused = ann.refused("TaskList", json!({"team_name": "other"}));
    assert_eq!(refused["kind"], "usage", "{refused}");
    for name in ["demo", "other"] {
        stage.phalanx(&["down", "--force", "-t", name]).expect(0);
    }
}

#[test]
fn tl_05_shutdown_request_to_an_ended_member_is_refused() {
    let stage = Stage::without_tmux();
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.call("TeamCreate", json!({"team_name": "demo"}));
    lead.call("SpawnTeammate", json!({"name": "ann"}));
    lead.call("Shutdown", json!({"names": ["ann"], "force": true}));
    let refused =
        lead.refused("SendMessage", json!({"type": "shutdown_request", "recipient": "ann"}));
    assert_eq!(refused["message"], "ann was not asked to end: it is gone");
    lead.call("SpawnTeammate", json!({"name": "ben"}));
    let asked = lead.call("SendMessage", json!({"type": "shutdown_request", "recipient": "ben"}));
    assert_eq!(asked["message"], "Shutdown request sent to ben");
    let gone = lead.call("WaitFor", json!({"names": ["ben"], "until": "gone"}));
    assert_eq!(gone["reached"], true);
    lead.call("TeamDelete", json!({}));
    assert_eq!(lead.end(), Some(0));
    stage.assert_clean();
}

#[test]
fn tl_03_shutdown_is_answered_with_the_state_of_the_work() {
    let stage = Stage::without_tmux();
    stage.profile("native", NATIVE);
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.call("TeamCreate", json!({"team_name": "demo"}));
    let spawn = json!({"name": "cleo", "profile": "native", "command": ["sleep", "600"]});
    lead.call("SpawnTeammate", spawn);
    let mut cleo = Client::start(&stage, &["--as", "cleo", "mcp"]);
    let asked =
        lead.call("SendMessage", json!({"to": "cleo", "message": {"type": "shutdown_request"}}));
    let answer = json!({"type": "shutdown_response", "request_id": asked["request_id"], "approve": true,
        "status": "in_progress", "pending_work": ["the tests"], "artifacts_committed": false});
    cleo.call("SendMessage", json!({"to": "team-lead", "message": answer}));
    let gone = lead.call("WaitFor", json!({"names": ["cleo"], "until": "gone"}));
    assert_eq!(gone["reached"], true);
    let mail = lead.call("ReadInbox", json!({"all": true, "since": "1h"})).to_string();
    for part in ["shutdown_approved", "in_progress", "the tests"] {
        assert!(mail.contains(part), "{part}: {mail}");
    }
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// The board demands owners: the task of a member that is still to be started has one, too.
#[test]
fn tl_06_handoff_works_on_a_board_that_demands_owners() {
    let stage = Stage::without_tmux();
    let script = format!(
        "#!/bin/sh\nuntil '{}' task complete 1 --result done >/dev/null 2>&1; do sleep 0.1; done\nexec sleep 300\n",
        crate::harness::binary()
    );
    stage.script(&stage.at("work/agent"), &script);
    let agent = format!("[[\"{}\"]]", stage.at("work/agent").display());
    stage.profile("agent", &NATIVE.replace("[[\"{command}\"]]", &agent));
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.call("TeamCreate", json!({"team_name": "demo"}));
    lead.call("TeamSettings", json!({"action": "set", "set": {"board.assignee": true}}));
    let refused = lead.refused("TaskCreate", json!({"subject": "no owner"}));
    let hint = refused["hint"].as_str().unwrap_or_default();
    assert!(hint.starts_with("give it one with `owner`"), "{refused}");
    let given = json!({"name": "cleo", "prompt": "Review", "profile": "agent", "timeout": 600});
    let done = lead.call("Handoff", given);
    assert_eq!((&done["state"], &done["result"]), (&json!("completed"), &json!("done")));
    let again = lead.call("Handoff", json!({"name": "cleo", "prompt": "Again", "timeout": 0.1}));
    let task = lead.call("TaskGet", json!({"taskId": again["task_id"]}));
    assert_eq!(task["task"]["owner"], "cleo");
    lead.call("Shutdown", json!({"all": true, "force": true}));
    lead.call("TeamDelete", json!({}));
    assert_eq!(lead.end(), Some(0));
    stage.assert_clean();
}

#[test]
fn delegating_lead_has_no_tools_for_work() {
    let stage = team();
    let file = stage.root().join("teams/demo/config.json");
    let text = fs::read_to_string(&file).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("json");
    config["members"][0]["mode"] = json!("delegate");
    fs::write(&file, config.to_string()).expect("write");
    let mut lead = Client::start(&stage, &["mcp"]);
    assert!(!lead.tools().contains(&"Type".to_owned()));
    lead.call("TaskCreate", json!({"subject": "for ann"}));
    lead.call("TeamTasks", json!({"action": "assign", "task_id": 1, "assignee": "ann"}));
    let refused = lead.refused("TeamTasks", json!({"action": "complete", "task_id": 1}));
    assert_eq!(refused["message"], "there is no action \"complete\"");
    let write = json!({"action": "write", "path": "x", "content": "y"});
    assert_eq!(lead.refused("TeamWorkspace", write)["kind"], "usage");
    lead.call("TeamWorkspace", json!({"action": "list"}));
    stage.phalanx(&["down", "--force"]).expect(0);
}
