//! `phalanx acp`: a team in an editor. The test is the editor; `fixtures/acp/faulty.py` plays the
//! agent that leads, and the members.

use std::fs;
use std::io::Write;
use std::process::{ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::harness::{Background, Run, Stage, binary, wait_for};

const AGENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/acp/faulty.py");

/// An editor with a running `phalanx acp`.
struct Editor {
    agent: Background,
    /// `None` once it is closed.
    stdin: Option<ChildStdin>,
    last_id: u64,
    session: String,
}

impl Editor {
    fn start(stage: &Stage, args: &[&str]) -> Editor {
        let mut command = stage.command(binary());
        command.arg("acp").args(args).stdin(Stdio::piped());
        let mut agent = Background::start(command);
        let stdin = Some(agent.take_stdin());
        let mut editor = Editor { agent, stdin, last_id: 0, session: String::new() };
        let known = editor.call("initialize", json!({"protocolVersion": 1}));
        assert_eq!(editor.reply(known)["result"]["agentInfo"]["name"], "phalanx");
        editor
    }

    /// Starts it with an agent that has this fault, and opens a session.
    fn open(stage: &Stage, options: &[&str], fault: &[&str]) -> Editor {
        let program = ["--profile", "acp", "--", "python3", AGENT];
        let mut editor = Editor::start(stage, &[options, &program[..], fault].concat());
        let opened = editor.new_session(stage);
        editor.session = opened["result"]["sessionId"].as_str().expect("a session").to_owned();
        editor
    }

    fn new_session(&mut self, stage: &Stage) -> Value {
        let params = json!({"cwd": stage.at("work"), "mcpServers": []});
        let opened = self.call("session/new", params);
        self.reply(opened)
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{message}").expect("phalanx reads");
    }

    fn call(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn prompt(&mut self, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        self.call("session/prompt", params)
    }

    /// Returns all messages so far. Nothing but messages is on stdout.
    fn messages(&self) -> Vec<Value> {
        let output = self.agent.output();
        let whole = output.rfind('\n').map_or("", |end| &output[..end]);
        whole.lines().map(|line| serde_json::from_str(line).expect("a message")).collect()
    }

    /// Waits for the first message of this form.
    fn wait(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        wait_for(what, || self.messages().into_iter().find(|message| is_it(message)))
    }

    fn reply(&self, id: u64) -> Value {
        self.wait("a reply", |message| message["id"] == id && message.get("method").is_none())
    }

    fn has_ended(&self, id: u64) -> bool {
        self.messages().iter().any(|message| message["id"] == id && message.get("method").is_none())
    }

    fn stop_reason(&self, id: u64) -> String {
        let reply = self.reply(id);
        reply["result"]["stopReason"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    /// Waits for the permission of this number.
    fn asked(&self, nth: usize) -> Value {
        wait_for("a question", || {
            let asked = |message: &Value| message["method"] == "session/request_permission";
            self.messages().into_iter().filter(asked).nth(nth)
        })
    }

    fn answer(&mut self, question: &Value, option: &str) {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        self.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
    }

    /// Waits for an update that contains this text.
    fn wait_for_update(&self, text: &str) -> Value {
        let is_it = |message: &Value| {
            message["method"] == "session/update" && message.to_string().contains(text)
        };
        self.wait(text, is_it)["params"]["update"].clone()
    }

    /// Waits for the end of this tool call, and returns its text.
    fn end_of_call(&self, id: &Value) -> (String, String) {
        let ended = self.wait("the end of the tool call", |message| {
            let update = &message["params"]["update"];
            update["toolCallId"] == *id
                && (update["status"] == "completed" || update["status"] == "failed")
        });
        let update = &ended["params"]["update"];
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (word(&update["status"]), word(&update["content"][0]["content"]["text"]))
    }

    fn close(mut self) -> Run {
        self.stdin = None;
        self.agent.end()
    }
}

/// Returns the title of a question and the ids of its options.
fn described(question: &Value) -> (String, Vec<String>) {
    let options = question["params"]["options"].as_array().expect("options").iter();
    let ids = options.map(|option| option["optionId"].as_str().expect("an id").to_owned());
    let title = question["params"]["toolCall"]["title"].as_str().expect("a title");
    (title.to_owned(), ids.collect())
}

fn spawn_ann(stage: &Stage, fault: &str) {
    let words = ["spawn", "ann", "--profile", "acp", "--backend", "pty", "--", "python3", AGENT];
    stage.phalanx(&[&words[..], &[fault]].concat()).expect(0);
}

/// The team is named after the directory, is led while the editor is open, and stays.
#[test]
fn editor_leads_a_team_of_its_directory_until_it_closes() {
    let stage = Stage::new();
    let mut editor = Editor::open(&stage, &[], &["plain"]);
    assert_eq!(editor.session, "work");
    let first = editor.prompt("hello there");
    editor.wait_for_update("You said: hello there");
    assert_eq!(editor.stop_reason(first), "end_turn");
    editor.wait_for_update("You are `team-lead`");
    // The turn of the briefing is not run together with this one, whichever comes first.
    let said: Vec<Value> = editor.messages();
    let texts = said.iter().map(|message| &message["params"]["update"]["content"]["text"]);
    let texts: String = texts.filter_map(Value::as_str).collect();
    let apart = ["\n\nYou said: hello there", "You said: hello there\n\n"];
    assert!(apart.iter().any(|words| texts.contains(words)), "{texts}");
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert!(status["lead"]["pid"].is_number(), "{status}");
    editor.close().expect(0);
    let status = stage.phalanx(&["--json", "status"]).expect(0).json();
    assert_eq!((&status["team"], &status["lead"]), (&json!("work"), &Value::Null));
    // The team that exists is led again.
    let mut again = Editor::open(&stage, &[], &["plain"]);
    let prompt = again.prompt("hello again");
    assert_eq!(again.stop_reason(prompt), "end_turn");
    again.close().expect(0);
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// A prompt lasts until the members rest, and their requests are questions of the session.
#[test]
fn editor_is_asked_what_members_ask_and_sees_what_they_do() {
    let stage = Stage::new();
    let mut editor = Editor::open(&stage, &["--on-exit", "stop"], &["plain"]);
    spawn_ann(&stage, "asks");
    let prompt = editor.prompt("go on");
    let first = editor.asked(0);
    let (title, options) = described(&first);
    assert_eq!(title, "ann: Bash: touch made.txt");
    assert_eq!(options, ["allow", "always", "reject"]);
    assert_eq!(first["params"]["toolCall"]["rawInput"]["command"], "touch made.txt");
    assert!(!editor.has_ended(prompt), "ann works");
    editor.answer(&first, "allow");
    let (status, words) = editor.end_of_call(&first["params"]["toolCall"]["toolCallId"]);
    assert_eq!((status.as_str(), words.as_str()), ("completed", "allowed by team-lead"));
    wait_for("the file", || stage.at("work/made.txt").exists().then_some(()));
    assert_eq!(editor.stop_reason(prompt), "end_turn");
    editor.wait_for_update("ann: works");
    editor.wait_for_update("Result of my turn: Asked.");

    fs::remove_file(stage.at("work/made.txt")).expect("it was made");
    stage.phalanx(&["send", "ann", "once more"]).expect(0);
    let second = editor.asked(1);
    editor.answer(&second, "reject");
    let (status, words) = editor.end_of_call(&second["params"]["toolCall"]["toolCallId"]);
    assert_eq!((status.as_str(), words.as_str()), ("failed", "denied by team-lead"));
    stage.phalanx(&["wait", "--until", "idle", "ann"]).expect(0);
    assert!(!stage.at("work/made.txt").exists());
    let closed = editor.close().expect(0);
    assert_eq!(closed.stdout.lines().filter(|line| !line.starts_with('{')).count(), 0);
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// The first answer counts: the editor's question is taken back, and an answer to it has no effect.
#[test]
fn pm_12_question_that_is_answered_elsewhere_is_taken_back() {
    let stage = Stage::new();
    let mut editor = Editor::open(&stage, &[], &["plain"]);
    spawn_ann(&stage, "asks");
    let question = editor.asked(0);
    let request = question["params"]["toolCall"]["toolCallId"].as_str().expect("an id").to_owned();
    stage.phalanx(&["answer", &request, "--reject"]).expect(0);
    let withdrawn = editor.wait("the end", |message| message["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    let (status, words) = editor.end_of_call(&json!(request));
    assert_eq!((status.as_str(), words.as_str()), ("failed", "denied by team-lead"));
    editor.answer(&question, "allow");
    stage.phalanx(&["wait", "--until", "idle", "ann"]).expect(0);
    assert!(!stage.at("work/made.txt").exists());
    editor.close();
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// AC-20: what the editor cancels does not run, also if it has not begun.
#[test]
fn ac_20_cancel_ends_all_prompts_and_drops_those_that_wait() {
    let stage = Stage::new();
    let mut editor = Editor::open(&stage, &[], &["slow"]);
    let (running, waiting) = (editor.prompt("first"), editor.prompt("never sent"));
    editor.wait_for_update("word3");
    editor.send(&json!({
        "jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": editor.session},
    }));
    assert_eq!(editor.stop_reason(running), "cancelled");
    assert_eq!(editor.stop_reason(waiting), "cancelled");
    let next = editor.prompt("the next one");
    let kept = || {
        let files = fs::read_dir(stage.at("work/.faulty-sessions")).expect("sessions");
        files
            .map(|file| fs::read_to_string(file.expect("a file").path()).expect("text"))
            .collect::<String>()
    };
    wait_for("the next prompt", || kept().contains("the next one").then_some(()));
    assert!(!kept().contains("never sent"));
    assert!(!editor.has_ended(next));
    editor.close();
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// The reason why no session begins is its error, with what to type, and the editor may try again.
#[test]
fn editor_learns_why_no_session_begins() {
    let stage = Stage::new();
    stage.phalanx(&["team", "create", "work"]).expect(0);
    stage.phalanx(&["lead", "--detach"]).expect(0);
    let rows: [(&[&str], &str); 4] = [
        (&["--profile", "acp", "--", "python3", AGENT, "plain"], "phalanx down"),
        (&["--profile", "worker"], "over ACP"),
        (&["--profile", "acp"], "after `--`"),
        (&["--profile", "none"], "none"),
    ];
    for (args, part) in rows {
        let mut editor = Editor::start(&stage, args);
        for _ in 0..2 {
            let refused = editor.new_session(&stage);
            let said = refused["error"]["message"].as_str().unwrap_or_default();
            assert!(said.contains(part), "{args:?}: {refused}");
        }
        editor.close().expect(0);
    }
    stage.phalanx(&["down"]).expect(0);
    stage.assert_clean();
}

/// AC-20: the prompt of an agent that dies fails, and so does the program.
#[test]
fn ac_20_agent_that_dies_fails_its_prompt() {
    let stage = Stage::new();
    let mut editor = Editor::open(&stage, &[], &["dies", "2"]);
    // Its first turn is the one of its briefing.
    editor.wait_for_update("You are `team-lead`");
    let prompt = editor.prompt("hello");
    let reply = editor.reply(prompt);
    assert!(
        reply["error"]["message"].as_str().is_some_and(|said| said.contains("agent")),
        "{reply}"
    );
    let ended = editor.close();
    assert_eq!(ended.code, 3, "{ended:?}");
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// A second session of the editor goes on with the same lead; the first one is over.
#[test]
fn ac_20_session_takes_the_place_of_the_one_before() {
    let stage = Stage::new();
    let mut editor = Editor::open(&stage, &[], &["plain"]);
    let opened = editor.new_session(&stage);
    assert_eq!(opened["result"]["sessionId"], "work-2");
    let old = editor.prompt("to the old one");
    assert_eq!(editor.reply(old)["error"]["code"], -32602);
    editor.session = "work-2".to_owned();
    let new = editor.prompt("to the new one");
    assert_eq!(editor.stop_reason(new), "end_turn");
    let elsewhere = editor.call("session/new", json!({"cwd": "/", "mcpServers": []}));
    let refused = editor.reply(elsewhere);
    assert!(refused["error"]["message"].as_str().is_some_and(|said| said.contains("team work")));
    editor.close().expect(0);
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// AC-21: what the lead starts with its tools has its environment, although the agent passes no
/// variable on.
#[test]
fn ac_21_tools_of_the_lead_pass_its_environment_on() {
    let mut stage = Stage::new();
    stage.set_env("KEY", "of the lead");
    let mut editor = Editor::open(&stage, &[], &["tools"]);
    let prompt = editor.prompt(
        r#"use SpawnTeammate {"name": "eve", "command": ["sh", "-c", "echo KEY $KEY; exec sleep 1000"], "backend": "pty"}"#,
    );
    assert_eq!(editor.stop_reason(prompt), "end_turn");
    wait_for("its environment", || {
        stage.phalanx(&["peek", "eve"]).expect(0).stdout.contains("KEY of the lead").then_some(())
    });
    stage.phalanx(&["shutdown", "eve", "--force"]).expect(0);
    editor.close();
    stage.phalanx(&["team", "delete"]).expect(0);
    stage.assert_clean();
}

/// AC-23: a team that was made for an agent does not stay if the agent cannot be started, and the
/// error says how to install it.
#[test]
fn ac_23_agent_that_cannot_start_leaves_no_team() {
    let stage = Stage::without_tmux();
    let rows: [(&[&str], &str); 3] = [
        (
            &["--profile", "codex-acp"],
            "; install it: `npm install -g @agentclientprotocol/codex-acp`",
        ),
        (&["--profile", "acp", "--", "no-such-agent"], "cannot find the program no-such-agent"),
        (&["--profile", "acp"], "after `--`"),
    ];
    for (args, part) in rows {
        let mut editor = Editor::start(&stage, args);
        let refused = editor.new_session(&stage);
        let said = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(said.contains(part), "{args:?}: {refused}");
        assert_eq!(stage.phalanx(&["--json", "team", "list"]).expect(0).json(), json!([]));
        editor.close().expect(0);
    }
    stage.assert_clean();
}
