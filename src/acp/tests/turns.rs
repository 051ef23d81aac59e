//! Turns: prompts, updates, steering, cancelling, usage and ends.

use serde_json::{Value, json};

use super::fake::{FakeAgent, SESSION, chunk, ended, said, start};
use crate::{
    AgentTraits, FailureKind, Outcome, PlanEntry, PlanState, SessionReport, SessionStart,
    TokenUsage, ToolStatus, UsageBasis,
};

fn ready() -> FakeAgent {
    FakeAgent::ready(AgentTraits::default())
}

/// Returns an agent with a turn that runs, of the prompt `t`.
fn running() -> FakeAgent {
    let mut agent = ready();
    assert!(agent.session.prompt("t", "text"));
    agent
}

fn received() -> SessionReport {
    SessionReport::Received { tag: "t".to_owned() }
}

fn text(text: &str) -> SessionReport {
    SessionReport::Text { message: None, text: text.to_owned() }
}

fn call(id: &str, status: &str) -> Value {
    json!({"sessionUpdate": "tool_call", "toolCallId": id, "title": "ls", "status": status})
}

#[test]
fn one_prompt_runs_at_a_time() {
    let mut agent = running();
    assert_eq!(agent.session.turn.as_ref().expect("a turn").tag, "t");
    assert!(!agent.session.is_free() && agent.session.is_ready());
    assert!(!agent.session.prompt("u", "more"));
    let sent = agent.take_sent();
    assert_eq!(sent.len(), 1);
    let prompt = json!([{"type": "text", "text": "text"}]);
    assert_eq!(sent[0]["params"], json!({"sessionId": SESSION, "prompt": prompt}));
    let reports = agent.feed(&json!({"id": sent[0]["id"], "result": {"stopReason": "end_turn"}}));
    let end = ended(&reports);
    assert_eq!((&*end.tag, end.outcome, end.usage), ("t", Outcome::Done, None));
    assert!(agent.session.is_free() && agent.session.turn.is_none());
    assert!(agent.session.prompt("u", "more"));
}

#[test]
fn prompt_before_ready_has_no_effect() {
    let mut agent = FakeAgent::new(start());
    assert!(!agent.session.prompt("t", "x") && !agent.session.cancel());
    assert!(!agent.session.steer("t", "x"));
    assert_eq!(agent.take_sent().len(), 1);
}

#[test]
fn first_update_of_the_turn_confirms_the_prompt() {
    let quiet = [
        json!({"sessionUpdate": "available_commands_update", "availableCommands": []}),
        json!({"sessionUpdate": "session_info_update", "title": "T"}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2}),
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "m"}),
        json!({"sessionUpdate": "config_option_update", "configOptions": []}),
        json!({"sessionUpdate": "someday"}),
    ];
    let mut agent = running();
    for update in quiet {
        let reports = agent.update(update);
        assert!(!reports.contains(&received()), "{reports:?}");
    }
    assert_eq!(agent.text("a"), [received(), text("a")]);
    assert_eq!(agent.text("b"), [text("b")]);
    let done = agent.reply("session/prompt", json!({"stopReason": "end_turn"}));
    assert!(matches!(done[..], [SessionReport::Ended(_)]));
}

#[test]
fn silent_turn_confirms_the_prompt_at_its_end() {
    let mut agent = running();
    let reports = agent.reply("session/prompt", json!({"stopReason": "end_turn"}));
    assert!(matches!(&reports[..], [first, SessionReport::Ended(_)] if *first == received()));
    let mut agent = running();
    let error = json!({"code": -32603, "message": "x"});
    let reports = agent.reply_error("session/prompt", error);
    assert!(matches!(reports[..], [SessionReport::Ended(_)]));
}

#[test]
fn stop_reasons_become_outcomes() {
    let cases = [
        ("end_turn", Outcome::Done),
        ("cancelled", Outcome::Cancelled),
        ("max_tokens", Outcome::Stopped("max_tokens".to_owned())),
        ("refusal", Outcome::Stopped("refusal".to_owned())),
        ("someday", Outcome::Stopped("someday".to_owned())),
    ];
    for (reason, outcome) in cases {
        assert_eq!(running().end_turn(reason).outcome, outcome);
    }
    for result in [json!(null), json!({}), json!([1]), json!({"stopReason": 7})] {
        let end = running().reply_prompt(result);
        assert_eq!(said(&end.outcome), "the agent's reply has no stop reason");
    }
}

#[test]
fn cancelled_turn_ends_as_cancelled_whatever_the_reply() {
    for reason in ["cancelled", "end_turn", "max_tokens"] {
        let mut agent = running();
        assert!(agent.session.cancel());
        let sent = agent.request("session/cancel");
        assert_eq!(sent["params"], json!({"sessionId": SESSION}));
        assert!(sent.get("id").is_none());
        assert!(!agent.session.is_free());
        assert_eq!(agent.end_turn(reason).outcome, Outcome::Cancelled);
        assert!(agent.session.is_free() && !agent.session.cancel());
    }
    let mut agent = running();
    agent.session.cancel();
    let error = json!({"code": -32603, "message": "Request was aborted.", "data": {}});
    let reports = agent.reply_error("session/prompt", error);
    assert_eq!(ended(&reports).outcome, Outcome::Cancelled);
}

#[test]
fn next_turn_is_not_cancelled() {
    let mut agent = running();
    agent.session.cancel();
    agent.end_turn("cancelled");
    agent.session.prompt("u", "x");
    assert_eq!(agent.end_turn("end_turn").outcome, Outcome::Done);
}

#[test]
fn text_goes_into_the_running_turn() {
    let results = [
        (json!({"outcome": "injected"}), None),
        (json!({"outcome": "promptRequired"}), Some("the turn has ended")),
        (json!({"outcome": "failed"}), Some("the agent has answered failed")),
        (json!(null), Some("the agent does not say whether it has taken the text")),
    ];
    for (reply, why) in results {
        let mut agent = running();
        assert!(agent.session.steer("u", "also this"));
        let sent = agent.request("_session/steering");
        assert_eq!(sent["params"]["prompt"], json!([{"type": "text", "text": "also this"}]));
        assert_eq!(sent["params"]["_meta"]["steering"]["idleBehavior"], "promptRequired");
        let reports = agent.feed(&json!({"id": sent["id"], "result": reply}));
        let result = why.map_or(Ok(()), |why| Err(why.to_owned()));
        assert_eq!(reports, [SessionReport::Steered { tag: "u".to_owned(), result }]);
        assert_eq!(agent.session.turn.as_ref().expect("a turn").tag, "t");
    }
    let mut agent = running();
    agent.session.steer("u", "x");
    let reports = agent.reply_error("_session/steering", json!({"code": 1, "message": "no"}));
    let result = Err("no".to_owned());
    assert_eq!(reports, [SessionReport::Steered { tag: "u".to_owned(), result }]);
}

#[test]
fn text_is_not_sent_where_it_would_begin_a_turn() {
    let mut agent = ready();
    assert!(!agent.session.steer("u", "x"));
    agent.session.prompt("t", "x");
    agent.session.cancel();
    assert!(!agent.session.steer("u", "x"));
    let mut agent = FakeAgent::new(start());
    agent.initialize(json!({}));
    agent.reply("session/new", json!({"sessionId": SESSION}));
    agent.session.prompt("t", "x");
    assert!(!agent.session.steer("u", "x"));
}

#[test]
fn updates_become_reports() {
    let mut agent = running();
    agent.text("");
    let mut message = chunk("agent_message_chunk", "a");
    message["messageId"] = json!("m1");
    agent.update(message);
    agent.update(json!({"sessionUpdate": "agent_message_chunk",
        "content": {"type": "resource_link", "name": "notes", "uri": "file:///n"}}));
    agent.update(json!({"sessionUpdate": "plan", "entries": [
        {"content": "one", "priority": "high", "status": "in_progress"},
        {"content": "two", "status": "someday"}, {}]}));
    agent.update(json!({"sessionUpdate": "session_info_update", "title": "T"}));
    agent.update(json!({"sessionUpdate": "usage_update", "used": 5, "size": 10, "cost": null}));
    let entry = |text: &str, state| PlanEntry { text: text.to_owned(), state };
    let expected = [
        received(),
        SessionReport::Text { message: Some("m1".to_owned()), text: "a".to_owned() },
        text("notes"),
        SessionReport::Plan(vec![
            entry("one", PlanState::InProgress),
            entry("two", PlanState::Pending),
        ]),
        SessionReport::Title("T".to_owned()),
        SessionReport::Context { used: 5, size: 10 },
    ];
    assert_eq!(agent.reports, expected);
}

#[test]
fn tool_calls_are_merged_and_reported_whole() {
    let mut agent = running();
    agent.update(call("a", "pending"));
    agent.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "a",
        "status": "completed", "rawInput": {"command": "ls"}}));
    agent.update(json!({"sessionUpdate": "tool_call_update", "toolCallId": "unseen"}));
    let calls = agent.reports.iter().filter_map(|report| match report {
        SessionReport::Tool(call) => Some((&*call.id, &*call.title, call.status, &call.input)),
        _ => None,
    });
    let input = json!({"command": "ls"});
    let expected = [
        ("a", "ls", ToolStatus::Pending, &Value::Null),
        ("a", "ls", ToolStatus::Completed, &input),
        ("unseen", "", ToolStatus::Pending, &Value::Null),
    ];
    assert_eq!(calls.collect::<Vec<_>>(), expected);
}

#[test]
fn tool_calls_are_kept_for_one_turn() {
    let mut agent = running();
    for number in 0..300 {
        agent.update(call(&number.to_string(), "completed"));
    }
    assert!(agent.session.calls.len() <= 256);
    agent.end_turn("end_turn");
    agent.session.prompt("u", "x");
    assert_eq!(agent.session.calls.len(), 0);
}

#[test]
fn mode_in_a_text_is_a_mode() {
    let modes = json!({"currentModeId": "default",
        "availableModes": [{"id": "default", "name": "D"}, {"id": "plan", "name": "P"}]});
    let mut agent = FakeAgent::ready_with(start(), json!({"modes": modes}));
    agent.session.prompt("t", "x");
    let reports = agent.text("[MODE_UPDATE] plan");
    assert!(matches!(&reports[..], [SessionReport::Mode { current, .. }] if current == "plan"));
    // The model quotes it.
    let quoted = "[MODE_UPDATE] is a mark";
    assert_eq!(agent.text(quoted), [received(), text(quoted)]);
}

#[test]
fn mode_and_model_are_reported_when_they_change() {
    let options = |mode: &str, model: &str| {
        let option = |id: &str, current: &str, other: &str| {
            json!({"id": id, "name": id, "type": "select", "currentValue": current,
                "options": [{"value": current}, {"value": other}]})
        };
        json!([option("mode", mode, "x"), option("model", model, "y")])
    };
    let mut agent = FakeAgent::ready_with(start(), json!({"configOptions": options("a", "m")}));
    let update =
        |options| json!({"sessionUpdate": "config_option_update", "configOptions": options});
    assert_eq!(agent.update(update(options("a", "m"))), []);
    let reports = agent.update(update(options("b", "n")));
    assert!(matches!(&reports[0], SessionReport::Mode { current, .. } if current == "b"));
    assert_eq!(reports[1..], [SessionReport::Model("n".to_owned())]);
}

#[test]
fn usage_of_the_reply_is_read_by_its_count() {
    let usage = json!({"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 3,
        "cachedWriteTokens": 2, "totalTokens": 20});
    let reply = json!({"stopReason": "end_turn", "usage": usage});
    let whole = TokenUsage { input: 10, output: 5, cached_input: 3, cache_write: 2, cost: None };
    let cases = [
        (UsageBasis::Turn, whole),
        (UsageBasis::Request, whole),
        (UsageBasis::Session, TokenUsage::default()),
    ];
    for (usage, second) in cases {
        let mut agent = FakeAgent::ready(AgentTraits { usage, failure_prefix: None });
        for expected in [whole, second] {
            agent.session.prompt("t", "x");
            assert_eq!(agent.reply_prompt(reply.clone()).usage, Some(expected));
        }
    }
    let end = running().reply_prompt(json!({"stopReason": "end_turn", "usage": null}));
    assert_eq!(end.usage, None);
}

#[test]
fn usage_beside_the_reply_is_found() {
    let quota = json!({"quota": {"token_count": {"input_tokens": 7, "output_tokens": 2}}});
    let end = running().reply_prompt(json!({"stopReason": "end_turn", "_meta": quota}));
    let used = |input, output| TokenUsage { input, output, ..TokenUsage::default() };
    assert_eq!(end.usage, Some(used(7, 2)));
    let mut agent = running();
    for _ in 0..2 {
        let mut update = chunk("agent_message_chunk", "");
        update["_meta"] = json!({"usage": {"inputTokens": 4, "outputTokens": 1}});
        agent.update(update);
    }
    assert_eq!(agent.end_turn("end_turn").usage, Some(used(8, 2)));
    agent.session.prompt("u", "x");
    assert_eq!(agent.end_turn("end_turn").usage, None);
}

#[test]
fn cost_of_the_session_becomes_the_cost_of_the_turn() {
    let mut agent = ready();
    for (total, cost) in [(0.5, 0.5), (0.75, 0.25), (0.75, 0.0)] {
        agent.session.prompt("t", "x");
        agent.update(json!({"sessionUpdate": "usage_update", "used": 1, "size": 2,
            "cost": {"amount": total, "currency": "USD"}}));
        let usage = agent.end_turn("end_turn").usage.unwrap();
        assert_eq!(usage.cost, Some(cost));
    }
}

#[test]
fn updates_after_the_turn_are_reported() {
    let mut agent = running();
    agent.end_turn("end_turn");
    assert_eq!(agent.text("late"), [text("late")]);
}

#[test]
fn missing_login_is_a_notice() {
    let mut agent = ready();
    let status = |kind: &str, label: &str| {
        json!({"method": "_auth/status_update",
            "params": {"authStatus": {"kind": kind, "label": label}}})
    };
    assert_eq!(agent.feed(&status("apiKey", "API key")), []);
    assert_eq!(agent.feed(&status("none", "Gone")), [SessionReport::Notice("Gone".to_owned())]);
}

#[test]
fn exit_ends_everything_that_is_open() {
    let mut agent = running();
    agent.session.steer("u", "x");
    let question = agent.ask(json!(9), json!({"toolCallId": "a"}), &[("y", "allow_once")]);
    let reports = agent.session.end();
    let why = "the agent has exited";
    let steered = SessionReport::Steered { tag: "u".to_owned(), result: Err(why.to_owned()) };
    assert_eq!(reports[..2], [steered, SessionReport::Withdrawn { id: question.id }]);
    let end = ended(&reports);
    assert_eq!((&*end.tag, said(&end.outcome)), ("t", why));
    assert!(!agent.session.is_ready() && !agent.session.prompt("v", "x"));
    assert_eq!(agent.text("x"), []);
    assert_eq!(agent.session.take_output(), b"");
}

#[test]
fn failure_has_the_kind_of_its_error() {
    let cases = [
        (json!({"code": 429, "message": "x"}), FailureKind::Other),
        (json!({"code": 429, "message": "no quota"}), FailureKind::Limited),
        (json!({"code": 401, "message": "x"}), FailureKind::NeedsLogin),
        (json!({"code": "odd"}), FailureKind::Other),
        (json!("prompt is too long"), FailureKind::Other),
    ];
    for (error, kind) in cases {
        let mut agent = FakeAgent::ready_with(SessionStart { ..start() }, json!({}));
        agent.session.prompt("t", "x");
        let end = ended(&agent.reply_error("session/prompt", error));
        assert!(matches!(end.outcome, Outcome::Failed(failure) if failure.kind == kind));
    }
}
