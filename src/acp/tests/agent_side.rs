//! The agent side, as a client sees it.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::agent_side::{AgentSide, ClientCall};
use crate::report::{
    AgentCommand, AgentFailure, AgentToolCall, Diff, FailureKind, OptionKind, Outcome, PlanEntry,
    PlanState, QuestionOption, SessionReport, ToolContent, ToolKind, ToolStatus,
};

/// Sends a message.
fn send(side: &mut AgentSide, message: &Value) -> Vec<ClientCall> {
    side.receive(format!("{message}\n").as_bytes())
}

fn request(side: &mut AgentSide, id: u64, method: &str, params: Value) -> Vec<ClientCall> {
    send(side, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Returns the messages for the client.
fn output(side: &mut AgentSide) -> Vec<Value> {
    let bytes = side.take_output();
    let text = std::str::from_utf8(&bytes).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn updates(side: &mut AgentSide) -> Vec<Value> {
    output(side).into_iter().map(|message| message["params"]["update"].clone()).collect()
}

/// Returns a side with the session `team`.
fn opened() -> AgentSide {
    let mut side = AgentSide::new("1.0.0");
    request(&mut side, 1, "session/new", json!({"cwd": "/work", "mcpServers": []}));
    side.open("team");
    output(&mut side);
    side
}

fn prompt(side: &mut AgentSide, id: u64, text: &str) -> Vec<ClientCall> {
    let prompt = json!([{"type": "text", "text": text}]);
    request(side, id, "session/prompt", json!({"sessionId": "team", "prompt": prompt}))
}

fn call(status: ToolStatus) -> AgentToolCall {
    AgentToolCall {
        id: "t1".to_owned(),
        title: "ann: Edit".to_owned(),
        kind: ToolKind::Edit,
        status,
        input: json!({"file_path": "/work/a"}),
        content: vec![
            ToolContent::Text("why".to_owned()),
            ToolContent::Diff(Diff {
                path: "/work/a".to_owned(),
                old: Some("one".to_owned()),
                new: "two".to_owned(),
            }),
        ],
        locations: vec!["/work/a".to_owned()],
    }
}

fn options() -> Vec<QuestionOption> {
    [("allow", OptionKind::AllowOnce), ("reject", OptionKind::RejectOnce)]
        .map(|(id, kind)| QuestionOption { id: id.to_owned(), name: id.to_owned(), kind })
        .to_vec()
}

#[test]
fn initialize_says_what_phalanx_can_do() {
    let mut side = AgentSide::new("1.2.3");
    assert!(request(&mut side, 1, "initialize", json!({"protocolVersion": 1})).is_empty());
    let reply = &output(&mut side)[0]["result"];
    assert_eq!(reply["protocolVersion"], 1);
    assert_eq!(reply["agentInfo"]["version"], "1.2.3");
    assert_eq!(reply["agentCapabilities"]["loadSession"], false);
}

#[test]
fn request_for_a_session_is_answered_with_its_id() {
    let mut side = AgentSide::new("1.0.0");
    let open = br#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/work"}}"#;
    let calls = side.receive(&[open, &b"\n"[..]].concat());
    assert_eq!(calls, [ClientCall::Open { cwd: "/work".to_owned() }]);
    side.open("team");
    let sent = String::from_utf8(side.take_output()).expect("text");
    assert!(sent.contains("\"sessionId\":\"team\""), "{sent}");
}

#[test]
fn session_in_a_relative_directory_is_refused() {
    let mut side = AgentSide::new("1.0.0");
    assert!(request(&mut side, 1, "session/new", json!({"cwd": "work"})).is_empty());
    assert_eq!(output(&mut side)[0]["error"]["code"], -32602);
}

#[test]
fn session_that_cannot_begin_is_refused_and_asked_for_again() {
    let mut side = AgentSide::new("1.0.0");
    request(&mut side, 1, "session/new", json!({"cwd": "/work"}));
    let failure = AgentFailure { kind: FailureKind::NeedsLogin, said: "no login".to_owned() };
    side.refuse(&failure);
    assert_eq!(output(&mut side)[0]["error"], json!({"code": -32000, "message": "no login"}));
    let again = request(&mut side, 2, "session/new", json!({"cwd": "/work"}));
    assert_eq!(again, [ClientCall::Open { cwd: "/work".to_owned() }]);
    side.open("team");
    assert_eq!(
        output(&mut side)[0],
        json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "team"}})
    );
}

#[test]
fn prompt_has_its_text_links_and_resources() {
    let mut side = opened();
    let prompt = json!([
        {"type": "text", "text": "look at "},
        {"type": "resource_link", "uri": "file:///work/a.rs", "name": "a.rs"},
        {"type": "resource", "resource": {"uri": "file:///work/b.rs", "text": "fn b() {}"}},
        {"type": "resource", "resource": {"uri": "file:///work/c.bin", "blob": "AA=="}},
    ]);
    let calls =
        request(&mut side, 2, "session/prompt", json!({"sessionId": "team", "prompt": prompt}));
    let text = "look at /work/a.rs\n<file path=\"/work/b.rs\">\nfn b() {}\n</file>\n/work/c.bin";
    assert_eq!(calls, [ClientCall::Prompt(text.to_owned())]);
}

/// AC-25: what is not advertised is refused, and not left out without a word.
#[test]
fn ac_25_prompt_takes_exactly_the_content_that_is_advertised() {
    let mut side = opened();
    request(&mut side, 1, "initialize", json!({"protocolVersion": 1}));
    let reply = output(&mut side).remove(0);
    let offered = &reply["result"]["agentCapabilities"]["promptCapabilities"];
    let contents = [
        ("image", json!({"type": "image", "data": "", "mimeType": "image/png", "uri": "/a.png"})),
        ("audio", json!({"type": "audio", "data": "", "mimeType": "audio/wav"})),
        ("embeddedContext", json!({"type": "resource", "resource": {"uri": "file:///a"}})),
    ];
    for (capability, content) in contents {
        let prompt = json!([{"type": "text", "text": "look at "}, content]);
        let params = json!({"sessionId": "team", "prompt": prompt});
        let is_taken = !request(&mut side, 2, "session/prompt", params).is_empty();
        assert_eq!(offered[capability], is_taken, "{capability}");
        let code = output(&mut side).pop().map(|reply| reply["error"]["code"].clone());
        assert_eq!(code, (!is_taken).then(|| json!(-32602)), "{capability}");
    }
}

#[test]
fn prompts_end_together_with_the_reason_of_the_turn() {
    let ends = [
        (Outcome::Done, json!({"stopReason": "end_turn"})),
        (Outcome::Cancelled, json!({"stopReason": "cancelled"})),
        (Outcome::Stopped("refusal".to_owned()), json!({"stopReason": "refusal"})),
        (Outcome::Stopped("a new one".to_owned()), json!({"stopReason": "end_turn"})),
    ];
    for (outcome, result) in ends {
        let mut side = opened();
        assert!(!side.is_prompted());
        prompt(&mut side, 2, "one");
        prompt(&mut side, 3, "two");
        assert!(side.is_prompted());
        side.end_prompts(&outcome);
        side.end_prompts(&outcome);
        let replies = output(&mut side);
        let ids: Vec<&Value> = replies.iter().map(|reply| &reply["id"]).collect();
        assert_eq!(ids, [&json!(2), &json!(3)], "each once");
        assert_eq!(replies[0]["result"], result, "{outcome:?}");
    }
    let mut side = opened();
    prompt(&mut side, 2, "one");
    let failure = AgentFailure { kind: FailureKind::Other, said: "no quota".to_owned() };
    side.end_prompts(&Outcome::Failed(failure));
    assert_eq!(output(&mut side)[0]["error"], json!({"code": -32603, "message": "no quota"}));
}

/// A new session of the editor takes the place of the one before, whose prompts end.
#[test]
fn ac_20_prompt_of_a_replaced_session_is_refused() {
    let mut side = opened();
    side.report(&SessionReport::Commands(vec![AgentCommand {
        name: "plan".to_owned(),
        about: "Plans".to_owned(),
    }]));
    prompt(&mut side, 2, "one");
    output(&mut side);
    request(&mut side, 3, "session/new", json!({"cwd": "/work"}));
    side.open("team");
    let replies = output(&mut side);
    assert_eq!(replies[0]["result"]["stopReason"], "cancelled");
    assert_eq!(replies[1]["result"]["sessionId"], "team-2");
    assert_eq!(replies[2]["params"]["sessionId"], "team-2");
    assert_eq!(replies[2]["params"]["update"]["availableCommands"][0]["name"], "plan");
    assert!(prompt(&mut side, 4, "to the old one").is_empty());
    assert_eq!(output(&mut side)[0]["error"]["code"], -32602);
}

#[test]
fn ac_20_messages_that_are_not_of_the_protocol_are_answered() {
    let mut side = opened();
    let rows: [(&[u8], i64); 3] = [
        (b"no JSON\n", -32700),
        (br#"{"jsonrpc":"2.0","id":7,"method":"session/load","params":{}}"#, -32601),
        (br#"{"jsonrpc":"2.0","id":8,"method":"session/prompt","params":5}"#, -32602),
    ];
    for (line, code) in rows {
        assert!(side.receive(line).is_empty());
        assert!(side.receive(b"\n").is_empty());
        assert_eq!(output(&mut side)[0]["error"]["code"], code);
    }
    for line in ["", "{}", r#"{"jsonrpc":"2.0","method":"session/odd"}"#, r#"{"id":9,"result":{}}"#]
    {
        assert!(side.receive(format!("{line}\n").as_bytes()).is_empty(), "{line}");
        assert!(output(&mut side).is_empty(), "{line}");
    }
}

#[test]
fn tool_call_is_new_once_and_then_an_update() {
    let mut side = opened();
    for status in [ToolStatus::Pending, ToolStatus::InProgress, ToolStatus::Completed] {
        side.tool(&call(status));
    }
    let kinds = updates(&mut side);
    let kinds: Vec<&Value> = kinds.iter().map(|update| &update["sessionUpdate"]).collect();
    assert_eq!(kinds, ["tool_call", "tool_call_update", "tool_call_update"]);
    side.tool(&call(ToolStatus::Pending));
    let update = &updates(&mut side)[0];
    assert_eq!(
        update["content"],
        json!([
            {"type": "content", "content": {"type": "text", "text": "why"}},
            {"type": "diff", "path": "/work/a", "oldText": "one", "newText": "two"},
        ])
    );
    assert_eq!(
        (&update["kind"], &update["locations"]),
        (&json!("edit"), &json!([{"path": "/work/a"}]))
    );
}

#[test]
fn question_is_answered_once_with_its_key() {
    let mut side = opened();
    side.ask("perm-1", &call(ToolStatus::Pending), &options());
    let asked = output(&mut side);
    assert_eq!(asked[0]["params"]["update"]["sessionUpdate"], "tool_call");
    assert_eq!(asked[1]["method"], "session/request_permission");
    let options = &asked[1]["params"]["options"];
    assert_eq!(options[0], json!({"optionId": "allow", "name": "allow", "kind": "allow_once"}));
    assert_eq!(side.asked(), ["perm-1"]);
    let selected = json!({"outcome": {"outcome": "selected", "optionId": "allow"}});
    let answer = json!({"jsonrpc": "2.0", "id": asked[1]["id"], "result": selected});
    let (key, option) = ("perm-1".to_owned(), Some("allow".to_owned()));
    assert_eq!(send(&mut side, &answer), [ClientCall::Answered { key, option }]);
    assert!(send(&mut side, &answer).is_empty(), "a second answer");
    side.settle("t1", ToolStatus::Completed, "allowed");
    assert_eq!(updates(&mut side)[0]["status"], "completed");
}

/// A client answers all questions so when it cancels, and may refuse to answer at all.
#[test]
fn question_that_the_client_takes_back_has_no_option() {
    for answer in [json!({"result": {"outcome": {"outcome": "cancelled"}}}), json!({"error": {}})] {
        let mut side = opened();
        side.ask("perm-1", &call(ToolStatus::Pending), &options());
        let mut reply = json!({"jsonrpc": "2.0", "id": 1});
        reply.as_object_mut().expect("an object").extend(answer.as_object().cloned().expect("one"));
        let key = "perm-1".to_owned();
        assert_eq!(send(&mut side, &reply), [ClientCall::Answered { key, option: None }]);
    }
}

#[test]
fn question_that_is_answered_elsewhere_is_withdrawn() {
    let mut side = opened();
    side.ask("perm-1", &call(ToolStatus::Pending), &options());
    output(&mut side);
    side.withdraw("perm-2");
    assert!(output(&mut side).is_empty(), "it was not asked");
    side.withdraw("perm-1");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}});
    assert_eq!(output(&mut side), [cancelled]);
    let late = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
    assert!(send(&mut side, &late).is_empty());
}

#[test]
fn reports_of_the_lead_are_updates() {
    let mut side = opened();
    let text = SessionReport::Text { message: Some("m1".to_owned()), text: "hello".to_owned() };
    let plan = PlanEntry { text: "one".to_owned(), state: PlanState::InProgress };
    let reports = [
        text,
        SessionReport::Thought("hm".to_owned()),
        SessionReport::Plan(vec![plan]),
        SessionReport::Title("A title".to_owned()),
        SessionReport::Context { used: 5, size: 10 },
        SessionReport::Model("sonnet".to_owned()),
    ];
    reports.iter().for_each(|report| side.report(report));
    let words = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        updates(&mut side),
        [
            json!({"sessionUpdate": "agent_message_chunk", "content": words("hello"), "messageId": "m1"}),
            json!({"sessionUpdate": "agent_thought_chunk", "content": words("hm")}),
            json!({
                "sessionUpdate": "plan",
                "entries": [{"content": "one", "priority": "medium", "status": "in_progress"}],
            }),
            json!({"sessionUpdate": "session_info_update", "title": "A title"}),
            json!({"sessionUpdate": "usage_update", "used": 5, "size": 10}),
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// For any input, each line of the output is JSON, and the result does not depend on the pieces
    /// in which the input arrives.
    #[test]
    fn ac_20_no_input_breaks_the_output(
        lines in prop::collection::vec(prop_oneof![
            Just(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#.to_owned()),
            Just(r#"{"jsonrpc":"2.0","id":"x","method":"session/new","params":{"cwd":"/w"}}"#.to_owned()),
            Just(r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"team","prompt":[{"text":"a"}]}}"#.to_owned()),
            Just(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{}}"#.to_owned()),
            Just(r#"{"jsonrpc":"2.0","id":1,"result":{"outcome":{"outcome":"selected","optionId":"\ud800"}}}"#.to_owned()),
            "\\PC{0,40}",
        ], 0..12),
        cut in 1_usize..40,
    ) {
        let bytes = lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes();
        let mut whole = opened();
        let calls = whole.receive(&bytes);
        let mut pieces = opened();
        let in_pieces: Vec<ClientCall> =
            bytes.chunks(cut).flat_map(|piece| pieces.receive(piece)).collect();
        prop_assert_eq!(calls, in_pieces);
        prop_assert_eq!(output(&mut whole), output(&mut pieces));
    }
}
