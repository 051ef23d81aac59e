//! Permissions: options, answers, and questions that end without one.

use serde_json::{Value, json};

use super::fake::{FakeAgent, SESSION, start};
use crate::{
    AgentQuestion, AgentTraits, OptionKind, Outcome, QuestionId, SessionReport, SessionStart,
    ToolContent, ToolKind,
};

/// Options of a shell command, in the order of qwen.
const SHELL: [(&str, &str); 3] =
    [("always", "allow_always"), ("once", "allow_once"), ("cancel", "reject_once")];

fn running() -> FakeAgent {
    let mut agent = FakeAgent::ready(AgentTraits::default());
    agent.session.prompt("t", "x");
    agent.take_sent();
    agent
}

fn call(id: &str) -> Value {
    json!({"toolCallId": id, "title": "touch f", "kind": "execute"})
}

fn answers(agent: &mut FakeAgent) -> Vec<(Value, Value)> {
    let answers = agent.take_sent().into_iter().filter(|message| message.get("method").is_none());
    let outcome = |message: &Value| match message.get("error") {
        Some(error) => error["code"].clone(),
        None => message["result"]["outcome"].clone(),
    };
    answers.map(|message| (message["id"].clone(), outcome(&message))).collect()
}

fn cancelled() -> Value {
    json!({"outcome": "cancelled"})
}

fn chosen(question: &AgentQuestion) -> (Option<&str>, Option<&str>) {
    let id = |allow| question.choose(allow).map(|option| &*option.id);
    (id(true), id(false))
}

#[test]
fn options_are_chosen_by_kind() {
    type Options = &'static [(&'static str, &'static str)];
    let cases: [(Options, Option<&str>, Option<&str>); 6] = [
        (&SHELL, Some("once"), Some("cancel")),
        (
            &[("never", "reject_always"), ("no", "reject_once"), ("yes", "allow_once")],
            Some("yes"),
            Some("no"),
        ),
        (&[("all", "allow_always"), ("never", "reject_always")], None, Some("never")),
        // Plan exits of qwen and claude.
        (
            &[("restore_previous", "allow_once"), ("proceed_once", "allow_once")],
            Some("restore_previous"),
            None,
        ),
        (
            &[
                ("exit-plan-auto", "allow_always"),
                ("exit-plan-default", "allow_once"),
                ("reject", "reject_once"),
            ],
            Some("exit-plan-default"),
            Some("reject"),
        ),
        (&[("odd", "allow_someday"), ("none", "")], None, None),
    ];
    for (options, allow, reject) in cases {
        let question = running().ask(json!(1), call("a"), options);
        assert_eq!(chosen(&question), (allow, reject), "{options:?}");
    }
}

#[test]
fn answer_has_the_id_of_the_request() {
    for id in [json!(7), json!("7f-uuid"), json!(1.5), json!(123_456_789_012_345_678_u64)] {
        let mut agent = running();
        let question = agent.ask(id.clone(), call("a"), &SHELL);
        assert_eq!(agent.session.questions().collect::<Vec<_>>(), [&question]);
        assert!(!agent.session.answer(question.id, Some("other")));
        assert!(agent.session.answer(question.id, Some("once")));
        assert!(!agent.session.answer(question.id, Some("once")));
        assert_eq!(agent.session.questions().count(), 0);
        let outcome = json!({"outcome": "selected", "optionId": "once"});
        assert_eq!(answers(&mut agent), [(id, outcome)]);
        assert!(!agent.session.is_free());
    }
    assert!(!running().session.answer(QuestionId(5), None));
}

#[test]
fn question_can_be_cancelled_alone() {
    let mut agent = running();
    let question = agent.ask(json!(1), call("a"), &SHELL);
    assert!(agent.session.answer(question.id, None));
    assert_eq!(answers(&mut agent), [(json!(1), cancelled())]);
}

#[test]
fn cancel_answers_every_open_question() {
    let mut agent = running();
    let first = agent.ask(json!(1), call("a"), &SHELL);
    let second = agent.ask(json!(2), call("b"), &SHELL);
    assert!(agent.session.cancel());
    let sent = agent.sent();
    assert_eq!(sent[0]["method"], "session/cancel");
    let both = [(json!(1), cancelled()), (json!(2), cancelled())];
    let mut expected = vec![json!("session/cancel")];
    expected.extend([Value::Null, Value::Null]);
    let methods: Vec<Value> = sent.iter().map(|sent| sent["method"].clone()).collect();
    assert_eq!(methods, expected);
    sent.remove(0);
    assert_eq!(answers(&mut agent), both);
    let withdrawn = [first.id, second.id].map(|id| SessionReport::Withdrawn { id });
    assert_eq!(agent.session.receive(b""), withdrawn);
    // A cancelled turn asks nothing.
    let reports = agent.request_permission(json!(3), call("c"), &SHELL);
    assert!(!reports.iter().any(|report| matches!(report, SessionReport::Asked(_))));
    assert_eq!(answers(&mut agent), [(json!(3), cancelled())]);
}

/// AC-24: the tool of the question has run, or was refused, long ago.
#[test]
fn ac_24_question_of_a_replayed_conversation_is_not_asked() {
    let mut agent = FakeAgent::new(SessionStart { load: Some(SESSION.to_owned()), ..start() });
    agent.initialize(json!({"agentCapabilities": {"loadSession": true}}));
    let load = agent.request("session/load");
    let reports = agent.request_permission(json!("old"), call("a"), &SHELL);
    assert!(!reports.iter().any(|report| matches!(report, SessionReport::Asked(_))));
    assert_eq!(answers(&mut agent), [(json!("old"), cancelled())]);
    assert_eq!(agent.session.questions().count(), 0);
    agent.feed(&json!({"id": load["id"], "result": {}}));
    agent.session.prompt("t", "x");
    agent.ask(json!("new"), call("a"), &SHELL);
}

#[test]
fn agent_withdraws_its_question() {
    let mut agent = running();
    let question = agent.ask(json!("q"), call("a"), &SHELL);
    let withdraw = |id| json!({"method": "$/cancel_request", "params": {"requestId": id}});
    assert_eq!(agent.feed(&withdraw(json!("other"))), []);
    let reports = agent.feed(&withdraw(json!("q")));
    assert_eq!(reports, [SessionReport::Withdrawn { id: question.id }]);
    assert_eq!(answers(&mut agent), [(json!("q"), json!(-32800))]);
    assert!(!agent.session.answer(question.id, Some("once")));
}

#[test]
fn end_of_the_turn_withdraws_questions() {
    let mut agent = FakeAgent::ready(AgentTraits::default());
    agent.session.prompt("t", "x");
    let question = agent.ask(json!(1), call("a"), &SHELL);
    let reports = agent.reply("session/prompt", json!({"stopReason": "end_turn"}));
    assert_eq!(reports[0], SessionReport::Withdrawn { id: question.id });
    assert!(matches!(&reports[1], SessionReport::Ended(end) if end.outcome == Outcome::Done));
    assert_eq!(answers(&mut agent), [(json!(1), cancelled())]);
}

#[test]
fn call_of_a_question_has_all_earlier_parts() {
    let mut agent = running();
    agent.update(json!({"sessionUpdate": "tool_call", "toolCallId": "m", "kind": "execute",
        "title": "mcp.phx.team_echo", "rawInput": {"text": "hi"}}));
    let part = json!({"toolCallId": "m", "title": null, "status": "pending"});
    let question = agent.ask(json!(1), part, &SHELL);
    assert_eq!(question.tool.title, "mcp.phx.team_echo");
    assert_eq!(question.tool.input, json!({"text": "hi"}));
    assert_eq!(question.plan, None);
}

#[test]
fn call_that_is_seen_first_in_a_question_is_reported() {
    let mut agent = running();
    let reports = agent.request_permission(json!(1), call("new"), &SHELL);
    match &reports[..] {
        [
            SessionReport::Received { .. },
            SessionReport::Tool(tool),
            SessionReport::Asked(question),
        ] => {
            assert_eq!(*tool, question.tool);
            assert_eq!(tool.kind, ToolKind::Execute);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn plan_comes_from_the_update_before_its_question() {
    let inputs = [
        json!({"rawInput": {"plan": "# Plan"}}),
        json!({"content": [{"type": "content", "content": {"type": "text", "text": "# Plan"}}]}),
    ];
    for input in inputs {
        let mut agent = running();
        let mut update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "p"});
        update.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
        agent.update(update);
        let part = json!({"toolCallId": "p", "title": "Approve Plan", "kind": "switch_mode",
            "rawInput": {}, "content": []});
        let question = agent.ask(json!(1), part, &[("exit-plan-default", "allow_once")]);
        assert_eq!(question.plan.as_deref(), Some("# Plan"));
        assert_eq!(question.tool.title, "Approve Plan");
    }
}

#[test]
fn plan_of_gemini_is_the_file_that_its_turn_has_written() {
    let write = |id: &str, status: &str, path: &str, text: &str| {
        json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "kind": "edit", "status": status,
            "content": [{"type": "diff", "path": path, "oldText": "", "newText": text}],
        })
    };
    let mut agent = running();
    agent.update(write("write_file__1", "completed", "/p/plan.md", "# Draft"));
    agent.update(write("write_file__2", "completed", "/p/plan.md", "# Plan"));
    agent.update(write("write_file__3", "completed", "/p/other.md", "# Other"));
    agent.update(write("write_file__4", "failed", "/p/plan.md", "# Refused"));
    let exit = |title: &str| json!({"toolCallId": "exit_plan_mode__1", "title": title});
    let unknown = "Requesting plan approval for: /p/unseen.md";
    let cases = [
        (exit("Requesting plan approval for: /p/plan.md"), Some("# Plan")),
        (exit(unknown), Some(unknown)),
        // Either sign alone is none.
        (exit("Leave plan mode"), None),
        (json!({"toolCallId": "c", "title": "Requesting plan approval for: /p/plan.md"}), None),
    ];
    let options = [("proceed_once", "allow_once"), ("cancel", "reject_once")];
    for (number, (part, plan)) in cases.into_iter().enumerate() {
        let question = agent.ask(json!(number), part.clone(), &options);
        assert_eq!(question.plan.as_deref(), plan, "{part}");
    }
}

#[test]
fn unified_diff_is_shown_with_the_question() {
    let part = json!({"toolCallId": "e", "kind": "edit", "rawInput": {"diff": "-a\n+b"}});
    let question = running().ask(json!(1), part, &SHELL);
    assert_eq!(question.tool.content, [ToolContent::Text("-a\n+b".to_owned())]);
}

#[test]
fn unknown_kind_of_an_option_is_kept() {
    let question = running().ask(json!(1), call("a"), &[("x", "allow_session"), ("y", "")]);
    assert!(question.options.iter().all(|option| option.kind == OptionKind::Other));
}

#[test]
fn unanswerable_requests_are_answered_at_once() {
    let mut agent = running();
    let reports = agent.request_permission(json!(1), call("a"), &[]);
    assert!(matches!(reports.last(), Some(SessionReport::Fault(_))));
    assert_eq!(answers(&mut agent), [(json!(1), cancelled())]);
    let params = [
        json!(null),
        json!([]),
        json!({"sessionId": SESSION}),
        json!({"sessionId": "other", "toolCall": {"toolCallId": "a"}, "options": []}),
        json!({"sessionId": SESSION, "toolCall": {}, "options": [{"optionId": "a"}]}),
    ];
    for params in params {
        let reports = agent.feed(&json!({"id": "r", "method": "session/request_permission",
            "params": params}));
        assert!(matches!(reports[..], [SessionReport::Fault(_)]));
        assert_eq!(answers(&mut agent), [(json!("r"), json!(-32602))]);
    }
    assert_eq!(agent.session.questions().count(), 0);
}

#[test]
fn flood_of_questions_is_bounded() {
    let mut agent = running();
    for number in 0..300 {
        agent.request_permission(json!(number), call("a"), &SHELL);
    }
    assert_eq!(agent.session.questions().count(), 256);
    assert_eq!(answers(&mut agent).len(), 44);
}

#[test]
fn unknown_requests_are_refused() {
    let methods = [
        "craft/drainMidTurnQueue",
        "fs/write_text_file",
        "fs/read_text_file",
        "terminal/create",
        "someday",
    ];
    let mut agent = running();
    for method in methods {
        let request = json!({"id": method, "method": method, "params": {"sessionId": SESSION}});
        assert_eq!(agent.feed(&request), []);
        assert_eq!(answers(&mut agent), [(json!(method), json!(-32601))]);
    }
    assert!(agent.session.is_ready());
}
