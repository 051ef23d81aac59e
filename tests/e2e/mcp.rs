//! `phalanx mcp`: a client speaks the protocol with the server over pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::gear;
use crate::harness::{NATIVE, PATIENCE, Stage, binary, wait_for};

/// A client of one server.
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// Notifications that arrived while responses were waited for.
    notifications: Vec<Value>,
    /// Responses to other requests than the one waited for.
    responses: Vec<Value>,
    next: u64,
}

impl Client {
    /// Starts a server with these options and shakes hands.
    pub fn start(stage: &Stage, options: &[&str]) -> Client {
        Client::start_silent(stage, options).greeted()
    }

    /// Starts the server that `command` runs, and shakes hands.
    pub fn start_command(command: Command) -> Client {
        Client::of(command).greeted()
    }

    fn greeted(self) -> Client {
        let mut client = self;
        let about = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = client.request("initialize", about);
        assert_eq!(answer["result"]["serverInfo"]["name"], "phalanx", "{answer}");
        client.notify("notifications/initialized", json!({}));
        client
    }

    fn start_silent(stage: &Stage, options: &[&str]) -> Client {
        let mut command = stage.command(binary());
        command.args(options);
        Client::of(command)
    }

    /// Starts the server that `command` runs.
    fn of(mut command: Command) -> Client {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("phalanx starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).expect("each line is a message");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        let (notifications, responses) = (Vec::new(), Vec::new());
        Client { child, stdin, lines, notifications, responses, next: 1 }
    }

    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("open");
        writeln!(stdin, "{line}").and_then(|()| stdin.flush()).expect("the server reads");
    }

    fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.write(
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string(),
        );
        id
    }

    /// Returns the response to a request.
    fn response(&mut self, id: u64) -> Value {
        if let Some(at) = self.responses.iter().position(|response| response["id"] == id) {
            return self.responses.remove(at);
        }
        loop {
            let message = self.lines.recv_timeout(PATIENCE).expect("an answer");
            match message.get("id") {
                Some(found) if *found == json!(id) => return message,
                Some(_) => self.responses.push(message),
                None => self.notifications.push(message),
            }
        }
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.response(id)
    }

    fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        self.send("tools/call", json!({"name": tool, "arguments": arguments}))
    }

    /// Calls a tool that succeeds, and returns its structured result.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments);
        let response = self.response(id);
        let result = &response["result"];
        assert_eq!(result["isError"], false, "{tool}: {response}");
        let text = result["content"][0]["text"].as_str().expect("text");
        let parsed: Value = serde_json::from_str(text).expect("the text is the same document");
        assert_eq!(parsed, result["structuredContent"]);
        parsed
    }

    /// Calls a tool, and returns whether it succeeded, and its structured result.
    pub fn result(&mut self, tool: &str, arguments: Value) -> (bool, Value) {
        let id = self.send_call(tool, arguments);
        let response = self.response(id);
        let result = &response["result"];
        (result["isError"] == false, result["structuredContent"].clone())
    }

    /// Calls a tool that is refused, and returns its structured result.
    pub fn refused(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments);
        let response = self.response(id);
        assert_eq!(response["result"]["isError"], true, "{tool}: {response}");
        response["result"]["structuredContent"].clone()
    }

    pub fn tools(&mut self) -> Vec<String> {
        let list = self.request("tools/list", json!({}));
        let tools = list["result"]["tools"].as_array().expect("tools").clone();
        tools.iter().map(|tool| tool["name"].as_str().expect("name").to_owned()).collect()
    }

    /// Waits for a notification.
    pub fn notification(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notifications.iter().position(|note| note["method"] == method) {
                return self.notifications.remove(at);
            }
            let message = self.lines.recv_timeout(PATIENCE).expect("a notification");
            match message.get("id") {
                Some(_) => self.responses.push(message),
                None => self.notifications.push(message),
            }
        }
    }

    /// Closes stdin and returns the server's exit code.
    pub fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        wait_for("the server to end", || self.child.try_wait().expect("wait")).code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Team `demo` with a member that reads its own mail and was not started by phalanx.
fn team() -> Stage {
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "demo"]).expect(0);
    stage.add_native("demo", &["ann"]);
    stage
}

#[test]
fn lead_runs_a_whole_team_through_tools() {
    let stage = Stage::without_tmux();
    let mut lead = Client::start(&stage, &["mcp"]);
    let made = lead.call("TeamCreate", json!({"team_name": "demo", "description": "try"}));
    assert_eq!(
        (&made["team_name"], &made["lead_agent_id"]),
        (&json!("demo"), &json!("team-lead@demo"))
    );
    let refused = lead.refused("TeamCreate", json!({"team_name": "other"}));
    assert_eq!(refused["message"], "this session leads the team `demo` already");
    for name in ["ann", "ben"] {
        let spawned = lead.call("SpawnTeammate", json!({"name": name}));
        assert_eq!(
            (&spawned["status"], &spawned["name"]),
            (&json!("teammate_spawned"), &json!(name))
        );
    }
    let first = lead.call("TaskCreate", json!({"subject": "one", "run": ["true"]}));
    assert_eq!(first["task"]["id"], "1");
    let second = json!({"subject": "two", "run": ["true"], "blockedBy": [1]});
    assert_eq!(lead.call("TaskCreate", second)["task"]["id"], "2");
    let came = lead.call("WaitFor", json!({"until": "task=2", "timeout": 600}));
    assert_eq!(
        (&came["reached"], &came["states"][0]["state"]),
        (&json!(true), &json!("completed"))
    );
    let listed = lead.call("TaskList", json!({"filter": "completed"}));
    let states: Vec<_> =
        listed["tasks"].as_array().expect("tasks").iter().map(|t| &t["state"]).collect();
    assert_eq!(states, ["completed", "completed"]);
    let members = lead.call("ListMembers", json!({}));
    assert_eq!(members["members"].as_array().map(Vec::len), Some(2));
    let refused = lead.refused("TeamDelete", json!({}));
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("ann")), "{refused}");
    let ended = lead.call("Shutdown", json!({"all": true}));
    let outcomes: Vec<_> =
        ended["members"].as_array().expect("members").iter().map(|m| &m["outcome"]).collect();
    assert_eq!(outcomes, ["closed", "closed"]);
    assert_eq!(lead.call("TeamDelete", json!({}))["success"], true);
    assert_eq!(lead.end(), Some(0));
    stage.assert_clean();
}

#[test]
fn teammate_reports_through_tools_of_its_own() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    let mut ann = Client::start(&stage, &["--as", "ann", "mcp"]);
    let tools = ann.tools();
    assert!(tools.contains(&"SubmitPlan".to_owned()), "{tools:?}");
    for name in ["TeamDelete", "SpawnTeammate", "Shutdown", "Answer"] {
        assert!(!tools.contains(&name.to_owned()), "{name}");
        let id = ann.send_call(name, json!({}));
        assert_eq!(ann.response(id)["error"]["code"], -32602, "{name}");
    }
    lead.call(
        "SendMessage",
        json!({"type": "message", "recipient": "ann", "content": "hello", "summary": "hi"}),
    );
    let read = ann.call("ReadInbox", json!({}));
    assert_eq!(
        (&read["messages"][0]["from"], &read["messages"][0]["text"]),
        (&json!("team-lead"), &json!("hello"))
    );
    wait_for("the mark", || {
        (ann.call("ReadInbox", json!({}))["messages"] == json!([])).then_some(())
    });
    lead.call("TaskCreate", json!({"subject": "Write"}));
    let claimed = ann.call("TaskUpdate", json!({"taskId": 1, "status": "in_progress"}));
    assert_eq!(claimed["task"]["owner"], "ann");
    ann.call(
        "TeamTasks",
        json!({"action": "progress", "task_id": "#1", "percent": 40, "step": "tests"}),
    );
    ann.call(
        "TeamTasks",
        json!({"action": "complete", "task_id": "1", "result": "all tests pass"}),
    );
    let edit = json!({"action": "update", "task_id": 1, "subject": "Write it"});
    assert_eq!(lead.call("TeamTasks", edit)["task"]["subject"], "Write it");
    let found = lead.call("TeamTasks", json!({"action": "search", "query": "write"}));
    assert_eq!(found["tasks"][0]["id"], "1", "{found}");
    let task = lead.call("TaskGet", json!({"taskId": "1"}));
    assert_eq!(task["task"]["metadata"]["phalanx"]["result"], "all tests pass");
    ann.call("TeamMessage", json!({"action": "send", "to": "team-lead", "text": "done"}));
    let mail = lead.call("ReadInbox", json!({}));
    assert!(mail.to_string().contains("\"done\""), "{mail}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn plan_is_rejected_revised_and_approved() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    let mut ann = Client::start(&stage, &["--as", "ann", "mcp"]);
    for (approve, words) in [(false, "name the tests"), (true, "go")] {
        let filed = ann.call("SubmitPlan", json!({"plan": "1. write\n2. test"}));
        let id = filed["request_id"].clone();
        let open = lead.call("Requests", json!({}));
        assert_eq!(open["requests"][0]["request_id"], id);
        let shown = lead.call("Requests", json!({"request_id": id}));
        assert!(shown.to_string().contains("2. test"), "{shown}");
        let answer = json!({"type": "plan_approval_response", "request_id": id, "approve": approve, "content": words});
        assert_eq!(lead.call("SendMessage", answer)["success"], true);
        let reply = ann.call("ReadInbox", json!({"wait": 60}));
        let text = reply["messages"][0]["text"].as_str().expect("text");
        let reply: Value = serde_json::from_str(text).expect("a protocol message");
        assert_eq!(
            (&reply["type"], &reply["approved"]),
            (&json!("plan_approval_response"), &json!(approve))
        );
        wait_for("the mark", || {
            (ann.call("ReadInbox", json!({}))["messages"] == json!([])).then_some(())
        });
    }
    let filed = ann.call("AskPermission", json!({"command": "make deploy", "reason": "tested"}));
    // Reading the request as a message does not take it away.
    let mail = lead.call("ReadInbox", json!({})).to_string();
    assert!(mail.contains("make deploy"), "{mail}");
    let answer = json!({"request_id": filed["request_id"], "approve": true});
    assert_eq!(lead.call("Answer", answer)["state"], "allowed");
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn observer_and_delegating_lead_have_fewer_tools() {
    let stage = team();
    let mut observer = Client::start(&stage, &["mcp"]);
    assert!(observer.tools().contains(&"Type".to_owned()));
    let file = stage.root().join("teams/demo/config.json");
    let text = std::fs::read_to_string(&file).expect("read");
    let mut config: Value = serde_json::from_str(&text).expect("json");
    config["members"][0]["mode"] = json!("delegate");
    std::fs::write(&file, config.to_string()).expect("write");
    assert!(!observer.tools().contains(&"Type".to_owned()));
    drop(observer);
    let mut observer = Client::start(&stage, &["mcp", "--read-only"]);
    let tools = observer.tools();
    assert!(tools.contains(&"Status".to_owned()) && tools.len() == 17, "{tools:?}");
    let id = observer.send_call("TaskCreate", json!({"subject": "no"}));
    assert_eq!(observer.response(id)["error"]["code"], -32602);
    let silent = Client::start_silent(&stage, &["mcp"]);
    assert_eq!(silent.end(), Some(0), "a client that says nothing");
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// The client cancels a wait: it ends, nothing is answered, and later mail stays unread.
#[test]
fn waits_report_progress_and_can_be_cancelled() {
    let stage = team();
    let mut ann = Client::start(&stage, &["--as", "ann", "mcp"]);
    let params = json!({
        "name": "ReadInbox", "arguments": {"wait": 60}, "_meta": {"progressToken": "wait"},
    });
    let id = ann.send("tools/call", params);
    let progress = ann.notification("notifications/progress");
    assert_eq!(progress["params"]["progressToken"], "wait");
    ann.notify("notifications/cancelled", json!({"requestId": id, "reason": "enough"}));
    ann.call("TaskCreate", json!({"subject": "later"}));
    let ended = ann.call("WaitFor", json!({"until": "task=1", "timeout": 2}));
    assert_eq!(ended["reached"], false, "{ended}");
    stage.phalanx(&["send", "ann", "later"]).expect(0);
    let read = ann.call("ReadInbox", json!({"wait": 60}));
    assert_eq!(read["messages"][0]["text"], "later");
    assert!(ann.responses.is_empty(), "{:?}", ann.responses);
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// Messages count as read only after their result was written: a client that never reads gets none.
#[test]
fn mail_of_a_client_that_reads_nothing_stays_unread() {
    let stage = team();
    let mut command = stage.command(binary());
    let command = command.args(["--as", "ann", "mcp"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::null()).spawn().expect("phalanx starts");
    let mut stdin = child.stdin.take().expect("piped");
    let mut say = |message: Value| writeln!(stdin, "{message}").expect("the server reads");
    say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    // More than a pipe holds.
    stage.phalanx(&["send", "ann", &"x".repeat(120_000)]).expect(0);
    say(
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "ReadInbox"}}),
    );
    let mut stdout = BufReader::new(child.stdout.take().expect("piped"));
    stdout.read_line(&mut String::new()).expect("the handshake");
    stdout.read_exact(&mut [0; 1000]).expect("the beginning of the messages");
    child.kill().expect("kill");
    child.wait().expect("wait");
    let unread = stage.phalanx(&["--json", "--as", "ann", "inbox", "--peek"]).expect(0).json();
    assert_eq!(unread.as_array().map(Vec::len), Some(1));
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn resources_are_read_and_watched() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    let list = lead.request("resources/list", json!({}));
    let uris: Vec<_> = list["result"]["resources"]
        .as_array()
        .expect("list")
        .iter()
        .map(|r| r["uri"].clone())
        .collect();
    assert_eq!(uris, ["team://status", "team://tasks", "team://inbox", "team://requests"]);
    let read = |lead: &mut Client, uri: &str| {
        let answer = lead.request("resources/read", json!({"uri": uri}));
        let text =
            answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        serde_json::from_str::<Value>(text).expect("json")
    };
    assert_eq!(read(&mut lead, "team://status")["team"], "demo");
    for uri in ["team://inbox", "team://requests"] {
        lead.request("resources/subscribe", json!({"uri": uri}));
    }
    stage.phalanx(&["--as", "ann", "send", "team-lead", "news"]).expect(0);
    let changed = lead.notification("notifications/resources/updated");
    assert_eq!(changed["params"]["uri"], "team://inbox");
    assert_eq!(read(&mut lead, "team://inbox")["messages"][0]["text"], "news");
    stage.phalanx(&["--as", "ann", "ask", "permission", "make deploy"]).expect(0);
    wait_for("the request", || {
        let changed = lead.notification("notifications/resources/updated");
        (changed["params"]["uri"] == "team://requests").then_some(())
    });
    let unknown = lead.request("resources/read", json!({"uri": "team://nothing"}));
    assert!(unknown["error"]["code"].is_i64(), "{unknown}");
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn hostile_and_large_input_is_answered() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.write("this is not JSON");
    lead.write("{\"jsonrpc\": \"2.0\", \"id\": 77}");
    let id = lead.send_call("NoSuchTool", json!({}));
    assert_eq!(lead.response(id)["error"]["code"], -32602);
    let wrong = lead.refused("TaskGet", json!({"taskId": {"a": 1}}));
    assert_eq!(wrong["kind"], "usage", "{wrong}");
    let huge = "x".repeat(10 * 1024 * 1024);
    let made = lead.call("TaskCreate", json!({"subject": "huge", "description": huge}));
    assert_eq!(made["task"]["descriptionIsCut"], true);
    assert!(lead.call("TaskGet", json!({"taskId": 1})).to_string().len() < 100_000);
    let missing = lead
        .refused("SendMessage", json!({"type": "message", "recipient": "zoe", "content": "hi"}));
    let text = missing.to_string();
    assert!(text.contains("ann") && !text.contains(&*stage.root().to_string_lossy()), "{text}");
    let dash =
        lead.call("SendMessage", json!({"type": "message", "recipient": "ann", "content": "-"}));
    assert_eq!(dash["routing"]["content"], "-", "stdin is the protocol's");
    let ids: Vec<u64> = (0..100)
        .map(|nth| lead.send_call("TaskCreate", json!({"subject": format!("task {nth}")})))
        .collect();
    for id in ids {
        assert_eq!(lead.response(id)["result"]["isError"], false);
    }
    let listed = lead.call("TaskList", json!({"page": 4}));
    assert_eq!(listed["tasks"].as_array().map(Vec::len), Some(11));
    stage.phalanx(&["down", "--force"]).expect(0);
    let gone = lead.refused("Status", json!({}));
    assert_eq!(gone["kind"], "not_found", "{gone}");
    assert_eq!(lead.end(), Some(0));
}

/// A member is started for one prompt, and gives back its result; the second time it is there.
#[test]
fn handoff_returns_the_result_of_its_member() {
    let stage = Stage::without_tmux();
    let script = format!(
        "#!/bin/sh\nuntil '{}' task complete 2 --result \"no faults\" >/dev/null 2>&1; do sleep 0.1; done\nexec sleep 300\n",
        binary()
    );
    stage.script(&stage.at("work/agent"), &script);
    let profile = NATIVE
        .replace("[[\"{command}\"]]", &format!("[[\"{}\"]]", stage.at("work/agent").display()));
    stage.profile("agent", &profile);
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.call("TeamCreate", json!({"team_name": "demo"}));
    let refused = lead.refused("Handoff", json!({"name": "cleo", "prompt": "Review"}));
    assert!(refused["hint"].as_str().is_some_and(|hint| hint.contains("`profile`")), "{refused}");
    assert_eq!(
        lead.call("TaskList", json!({"filter": "all"}))["tasks"],
        json!([]),
        "no task is left"
    );
    // The refused handoff had the first id.
    let done = lead.call(
        "Handoff",
        json!({"name": "cleo", "prompt": "Review", "profile": "agent", "timeout": 600}),
    );
    assert_eq!(
        (&done["task_id"], &done["state"], &done["result"]),
        (&json!("2"), &json!("completed"), &json!("no faults"))
    );
    lead.call("Shutdown", json!({"all": true, "force": true}));
    lead.call("TeamDelete", json!({}));
    assert_eq!(lead.end(), Some(0));
    stage.assert_clean();
}

#[test]
fn tl_09_waits_leave_calls_for_other_tools() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.call("TaskCreate", json!({"subject": "later"}));
    let wait = json!({"until": "task=1", "timeout": 600});
    let waits: Vec<u64> = (0..256).map(|_| lead.send_call("WaitFor", wait.clone())).collect();
    assert_eq!(lead.call("Status", json!({}))["team"], "demo");
    let last = lead.response(waits[255]);
    let refused = &last["result"]["structuredContent"];
    assert_eq!(refused["message"], "64 other calls wait already", "{last}");
    assert_eq!(lead.end(), Some(0));
    stage.phalanx(&["down", "--force"]).expect(0);
}

/// A client that is killed leaves no server behind.
#[test]
fn server_ends_with_its_client() {
    let stage = team();
    let mut lead = Client::start(&stage, &["mcp"]);
    lead.call("TaskCreate", json!({"subject": "later"}));
    lead.send_call("WaitFor", json!({"until": "task=1", "timeout": 600}));
    let began = Instant::now();
    assert_eq!(lead.end(), Some(0));
    assert!(began.elapsed() < Duration::from_secs(60), "the wait is cancelled");
    let mut lead = Client::start(&stage, &["mcp"]);
    assert_eq!(lead.tools().len(), 31);
    let stopped = stage.command("kill").arg(lead.child.id().to_string()).status();
    assert!(stopped.expect("kill").success());
    // With stdin still open: its end would be a reason of its own.
    let ended = wait_for("the server to end", || lead.child.try_wait().expect("wait"));
    assert_eq!(ended.code(), Some(130));
    stage.phalanx(&["down", "--force"]).expect(0);
}

#[test]
fn configuration_of_each_program_is_written_and_undone() {
    let stage = Stage::without_tmux();
    for (program, file) in [
        ("claude", "work/.mcp.json"),
        ("codex", "home/.codex/config.toml"),
        ("gemini", "work/.gemini/settings.json"),
        ("opencode", "work/opencode.json"),
        ("qwen", "work/.qwen/settings.json"),
        ("copilot", "home/.copilot/mcp-config.json"),
        ("cursor", "work/.cursor/mcp.json"),
        ("vscode", "work/.vscode/mcp.json"),
    ] {
        let file = stage.at(file);
        let printed = stage.phalanx(&["mcp", "install", "--for", program, "--print"]).expect(0);
        assert!(!file.exists(), "{program}: --print writes nothing");
        stage.phalanx(&["mcp", "install", "--for", program]).expect(0);
        assert_eq!(std::fs::read_to_string(&file).expect("written"), printed.stdout, "{program}");
        let again = stage.phalanx(&["--json", "mcp", "install", "--for", program]).expect(0).json();
        assert_eq!(again["changed"], false, "{program}");
        stage.phalanx(&["mcp", "install", "--for", program, "--undo"]).expect(0);
        assert!(!file.exists(), "{program}: nothing is left");
    }
    let config = stage.at("work/.mcp.json");
    let commented = "{\n  // mine\n  \"mcpServers\": {}\n}\n";
    std::fs::write(&config, commented).expect("write");
    stage.phalanx(&["mcp", "install", "--for", "claude"]).expect(0);
    assert!(std::fs::read_to_string(&config).expect("read").contains("// mine\n"));
    stage.phalanx(&["mcp", "install", "--for", "claude", "--undo"]).expect(0);
    assert!(std::fs::read_to_string(&config).expect("read").contains("// mine\n"));
    std::fs::write(&config, "{ mine }").expect("write");
    let refused = stage.phalanx(&["mcp", "install", "--for", "claude"]).expect(4);
    assert!(refused.stderr.contains("is left as it is: not JSON"), "{refused:?}");
}

#[test]
fn cr_14_waits_poll_when_no_inotify_instance_is_left() {
    let limited = r#"echo 0 >/proc/sys/user/max_inotify_instances && exec "$@""#;
    let unshare = ["-Ur", "sh", "-c", limited, "sh"];
    let namespaces = Command::new("unshare").args(unshare).arg("true").status();
    if !namespaces.is_ok_and(|status| status.success()) {
        return gear::skip_without("unshare with user namespaces");
    }
    let stage = Stage::without_tmux();
    stage.phalanx(&["team", "create", "alpha"]).expect(0);
    stage.phalanx(&["spawn", "ann", "--backend", "pty", "--", "cat"]).expect(0);
    let mut command = stage.command("unshare");
    command.env("PATH", std::env::var("PATH").expect("PATH"));
    command.args(unshare).arg(binary()).args(["mcp", "-t", "alpha"]);
    let mut client = Client::start_command(command);
    let arguments = json!({"wait": 60});
    let waiting = client.send("tools/call", json!({"name": "ReadInbox", "arguments": arguments}));
    stage.phalanx(&["send", "team-lead", "hello"]).expect(0);
    let read = client.response(waiting);
    assert!(read.to_string().contains("hello"), "{read}");
    let ended = client.call("Shutdown", json!({"names": ["ann"], "force": true}));
    assert!(!ended.to_string().contains("inotify"), "{ended}");
    let doctor = {
        let mut command = stage.command("unshare");
        command.env("PATH", std::env::var("PATH").expect("PATH"));
        command.args(unshare).arg(binary()).args(["--json", "doctor"]).output().expect("it runs")
    };
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("watch_limit"), "{doctor:?}");
    drop(client);
    stage.phalanx(&["down", "--force"]).expect(0);
}
