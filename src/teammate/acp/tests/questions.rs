//! Questions of the agent, and their answers.

use super::*;
use model::decisions::question::{DENIED, Typed};

fn call(kind: &str, title: &str, input: Value, more: Value) -> Value {
    let mut call = json!({"toolCallId": "c", "kind": kind, "title": title, "rawInput": input});
    let (Value::Object(call_fields), Value::Object(more)) = (&mut call, more) else {
        panic!("no objects")
    };
    call_fields.extend(more);
    call
}

fn diff(old: Value) -> Value {
    json!({"content": [{"type": "diff", "path": "/work/f", "oldText": old, "newText": "b"}]})
}

/// A plan with the options of claude.
fn plan() -> (Value, [(&'static str, &'static str); 3]) {
    let options = [
        ("exit-plan-auto", "allow_always"),
        ("exit-plan-default", "allow_once"),
        ("reject", "reject_once"),
    ];
    (call("switch_mode", "Approve Plan", json!({"plan": "# Plan"}), json!({})), options)
}

#[test]
fn ac_04_question_is_filed_once_with_the_names_of_claude_code() {
    let none = || json!({});
    let cases = [
        (call("execute", "ls", json!({"command": "ls -l"}), none()), "Bash", json!("ls -l")),
        (
            call("execute", "x", json!({"command": ["bash", "-lc", "ls | wc"]}), none()),
            "Bash",
            json!("ls | wc"),
        ),
        (
            call("execute", "x", json!({"command": ["git", "commit", "-m", "a b"]}), none()),
            "Bash",
            json!("git commit -m 'a b'"),
        ),
        (call("execute", "x", json!({"cmd": "pwd"}), none()), "Bash", json!("pwd")),
        (call("execute", "`touch f`", json!({}), none()), "Bash", json!("touch f")),
        (
            call("edit", "Edit f", json!({}), diff(json!("a"))),
            "Edit",
            json!({"file_path": "/work/f", "old_string": "a", "new_string": "b"}),
        ),
        (
            call("edit", "Write f", json!({}), diff(Value::Null)),
            "Write",
            json!({"file_path": "/work/f", "content": "b"}),
        ),
        (
            call("edit", "Edit f", json!({"file_path": "/own"}), diff(json!("a"))),
            "Edit",
            json!({"file_path": "/own", "old_string": "a", "new_string": "b"}),
        ),
        (
            call("delete", "rm f", json!({}), json!({"locations": [{"path": "/work/f"}]})),
            "Edit",
            json!({"file_path": "/work/f"}),
        ),
        (
            call("read", "Read f", json!({}), json!({"locations": [{"path": "/work/f"}]})),
            "Read",
            json!({"file_path": "/work/f"}),
        ),
        (call("search", "find", json!({"pattern": "x"}), none()), "Grep", json!({"pattern": "x"})),
        (call("fetch", "get", json!({"url": "u"}), none()), "WebFetch", json!({"url": "u"})),
        (
            call("execute", "x", json!({"server": "phx", "tool": "echo"}), none()),
            "mcp__phx__echo",
            json!({"server": "phx", "tool": "echo"}),
        ),
        (call("someday", "phx.echo", json!({"a": 1}), none()), "phx.echo", json!({"a": 1})),
        (call("other", "", json!("text"), none()), "tool", json!({"input": "text"})),
    ];
    for (call, name, expected) in cases {
        let mut stage = Stage::working(false);
        stage.asks(7, &call, &SHELL);
        stage.tick(1000);
        let reports = stage.reports();
        let [Message::PermissionRequest(asked)] = reports[..] else { panic!("{reports:?}") };
        assert_eq!(asked.tool_name, name, "{call}");
        assert_eq!(asked.agent_id.as_deref(), Some("ann"));
        assert_eq!(asked.tool_use_id.as_deref(), Some("c"));
        assert_eq!(asked.answered_by, None, "rules decide it");
        let given = if expected.is_string() { &asked.input["command"] } else { &asked.input };
        assert_eq!(*given, expected, "{call}");
        assert_eq!(stage.answer(7), None, "nothing by default");
    }
}

#[test]
fn ac_04_each_question_has_a_request_of_its_own() {
    let mut stage = Stage::working(false);
    let first = stage.asks_to_run(1);
    let second = stage.asks_to_run(2);
    assert_ne!(first, second);
    stage.permit(LEAD, &second, Ok(()));
    assert_eq!((stage.answer(2).as_deref(), stage.answer(1)), (Some("once"), None));
    stage.permit(LEAD, &first, Err(DENIED));
    assert_eq!(stage.answer(1).as_deref(), Some("cancel"));
}

#[test]
fn ac_04_answer_of_the_lead_never_allows_for_good() {
    type Options = &'static [(&'static str, &'static str)];
    let cases: [(Options, &str, &str); 4] = [
        (&SHELL, "once", "cancel"),
        (&[("all", "allow_always"), ("never", "reject_always")], "cancelled", "never"),
        (&[("all", "allow_always"), ("someday", "allow_later")], "cancelled", "cancelled"),
        (&[("a", "allow_once"), ("b", "allow_once")], "a", "cancelled"),
    ];
    for (options, allowed, denied) in cases {
        for (verdict, expected) in [(Ok(()), allowed), (Err(DENIED), denied)] {
            let mut stage = Stage::working(false);
            stage.asks(1, &json!({"toolCallId": "c", "kind": "execute"}), options);
            let request = stage.filed();
            stage.take_ops();
            stage.permit(LEAD, &request, verdict);
            assert_eq!(stage.answer(1).as_deref(), Some(expected), "{options:?} {verdict:?}");
            let is_rejected = verdict.is_ok() && expected == "cancelled";
            let typed = if is_rejected { Typed::Rejected } else { Typed::Taken };
            assert_eq!(stage.take_ops(), [OutboundOp::Typed(request, typed)]);
            assert_eq!(stage.acknowledged, ["answer-1"]);
        }
    }
}

#[test]
fn ac_04_answer_in_the_pane_withdraws_the_request() {
    for (option, allowed) in [("once", true), ("always", true), ("cancel", false)] {
        let mut stage = Stage::working(false);
        let request = stage.asks_to_run(1);
        stage.take_ops();
        let question = stage.open_question();
        stage.chooses(question, option);
        assert_eq!(stage.answer(1).as_deref(), Some(option));
        assert_eq!(stage.take_ops(), [OutboundOp::Withdraw(request.clone(), Some(allowed))]);
        stage.permit(LEAD, &request, Err("use rm -i"));
        assert_eq!(stage.take_ops(), [], "the withdrawal has replaced this answer");
        stage.stops("end_turn");
        assert_eq!(stage.answer(1), None, "the first answer counts");
        assert!(!stage.has_prompt());
    }
}

#[test]
fn ac_04_answer_in_the_pane_after_that_of_the_lead_has_no_effect() {
    let mut stage = Stage::working(false);
    let request = stage.asks_to_run(1);
    let question = stage.open_question();
    stage.permit(LEAD, &request, Err(DENIED));
    assert_eq!(stage.answer(1).as_deref(), Some("cancel"));
    stage.take_ops();
    stage.chooses(question, "once");
    stage.chooses(question, "unknown");
    assert_eq!((stage.answer(1), stage.take_ops()), (None, Vec::new()));
}

#[test]
fn ac_04_option_of_unknown_kind_withdraws_without_a_decision() {
    let mut stage = Stage::working(false);
    stage.asks(1, &json!({"toolCallId": "c"}), &[("session", "allow_session")]);
    let request = stage.filed();
    stage.take_ops();
    let question = stage.open_question();
    stage.chooses(question, "other");
    assert_eq!((stage.answer(1), stage.take_ops()), (None, Vec::new()), "no such option");
    stage.chooses(question, "session");
    assert_eq!(stage.answer(1).as_deref(), Some("session"));
    assert_eq!(stage.take_ops(), [OutboundOp::Withdraw(request, None)]);
}

#[test]
fn ac_04_withdrawn_question_ends_its_request() {
    type End = fn(&mut Stage);
    let ends: [End; 3] = [
        |stage| stage.withdraws(1),
        |stage| stage.at(0, Event::Person(ConversationAction::Cancel)),
        |stage| stage.stops("end_turn"),
    ];
    for end in ends {
        let mut stage = Stage::working(false);
        let request = stage.asks_to_run(1);
        stage.take_ops();
        end(&mut stage);
        let ops = stage.take_ops();
        assert_eq!(ops[0], OutboundOp::Withdraw(request.clone(), None));
        assert!(stage.state.filed.is_empty());
        stage.sent.clear();
        stage.permit(LEAD, &request, Ok(()));
        assert_eq!(stage.take_ops(), [], "the withdrawal has replaced this answer");
        assert_eq!((stage.answer(1), stage.has_prompt()), (None, false));
    }
}

#[test]
fn ac_04_answer_to_a_request_of_an_earlier_run_is_told_in_words() {
    let mut stage = Stage::ready();
    let request = RequestId::parse("perm-1-0a1b2c3d-1").expect("id");
    stage.permit(LEAD, &request, Ok(()));
    assert!(stage.prompt().contains("Your request `perm-1-0a1b2c3d-1` is allowed."));
}

#[test]
fn ac_05_plan_is_a_request_for_approval() {
    for (approved, option) in [(true, "exit-plan-default"), (false, "reject")] {
        let mut stage = Stage::working(false);
        let (call, options) = plan();
        stage.asks(1, &call, &options);
        let reports = stage.reports();
        let [Message::PlanApprovalRequest(asked)] = reports[..] else { panic!("{reports:?}") };
        assert_eq!(asked.plan_content.as_deref(), Some("# Plan"));
        assert_eq!(asked.from.as_deref(), Some("ann"));
        let request = stage.filed();
        stage.decide_plan(&request, approved, None);
        assert_eq!(stage.answer(1).as_deref(), Some(option));
        stage.stops("end_turn");
        assert!(!stage.has_prompt(), "no words without feedback");
    }
}

#[test]
fn ac_05_mode_of_an_approval_is_set_after_the_plan_is_left() {
    let set_mode = json!({"sessionId": SESSION, "modeId": "autoEdit"});
    let set_option = json!({"sessionId": SESSION, "configId": "approval", "value": "never"});
    let unknown = "ignored the mode `auto`: its profile has no such mode";
    let cases = [
        (true, Some("acceptEdits"), Some(set_mode), None),
        (true, Some("bypassPermissions"), Some(set_option), None),
        (true, Some("auto"), None, Some(unknown)),
        (true, None, None, None),
        (false, Some("acceptEdits"), None, None),
    ];
    for (approved, mode, expected, warning) in cases {
        let mut stage = Stage::working(false);
        let (call, options) = plan();
        stage.asks(1, &call, &options);
        let request = stage.filed();
        stage.decide_plan_with_mode(&request, approved, None, mode);
        let answer = stage.sent.remove(0);
        let option = if approved { "exit-plan-default" } else { "reject" };
        assert_eq!(answer["result"]["outcome"]["optionId"], option, "first, {mode:?}");
        let params = stage.sent.first().map(|message| message["params"].clone());
        assert_eq!(params, expected, "{mode:?}");
        assert_eq!(stage.warnings, Vec::from_iter(warning));
    }
}

#[test]
fn ac_05_mode_of_an_approval_that_allows_nothing_is_not_set() {
    // The question is over, or has no option that allows once.
    let mut gone = Stage::working(false);
    let (call, options) = plan();
    gone.asks(1, &call, &options);
    gone.withdraws(1);
    let mut permanent = Stage::working(false);
    permanent.asks(1, &call, &options[..1]);
    // Without modes, an agent is left in its own, without a warning.
    let mut modeless = Stage::working(false);
    modeless.state.facts.modes.clear();
    modeless.asks(1, &call, &options);
    for mut stage in [gone, permanent, modeless] {
        let request = stage.filed();
        stage.decide_plan_with_mode(&request, true, None, Some("acceptEdits"));
        assert_eq!(stage.find("session/set_mode"), None);
        assert_eq!(stage.warnings, [""; 0]);
    }
}

#[test]
fn ac_05_feedback_of_a_rejection_is_the_next_prompt() {
    let mut stage = Stage::working(false);
    let (call, options) = plan();
    stage.asks(1, &call, &options);
    let request = stage.filed();
    stage.mail("bob", "meanwhile", "m2");
    stage.decide_plan(&request, false, Some("use the other crate"));
    assert_eq!(stage.answer(1).as_deref(), Some("reject"));
    assert!(!stage.has_prompt(), "the turn still runs");
    stage.stops("end_turn");
    assert_eq!(stage.prompt(), "your plan was denied by the lead: use the other crate");
}

#[test]
fn ac_05_reason_of_a_denial_is_the_next_prompt() {
    let reasons =
        [("use rm -i", Some("your request was denied by the lead: use rm -i")), (DENIED, None)];
    for (reason, expected) in reasons.into_iter().chain([("", None), (" \n", None)]) {
        let mut stage = Stage::working(false);
        let request = stage.asks_to_run(1);
        stage.permit(LEAD, &request, Err(reason));
        assert_eq!(stage.answer(1).as_deref(), Some("cancel"));
        stage.stops("end_turn");
        let prompt = stage.find("session/prompt").map(|prompt| text_of(&prompt));
        assert_eq!(prompt.as_deref(), expected);
    }
}

#[test]
fn ac_05_plan_exit_without_a_plan_is_a_permission() {
    let mut stage = Stage::working(false);
    stage.asks(1, &call("switch_mode", "Leave plan mode", json!({}), json!({})), &SHELL);
    let reports = stage.reports();
    let [Message::PermissionRequest(asked)] = reports[..] else { panic!("{reports:?}") };
    assert_eq!(asked.tool_name, "Leave plan mode");
}

#[test]
fn ac_04_other_input_of_the_lead_is_not_run_as_the_agents_own() {
    let mut stage = Stage::working(false);
    let request = stage.asks_to_run(1);
    let reports = stage.reports();
    let Some(Message::PermissionRequest(asked)) = reports.last() else { panic!("{reports:?}") };
    let own = asked.input.clone();
    let allow = |input: Value| {
        let verdict = PermissionVerdict::Allowed {
            updated_input: Some(input),
            permission_updates: Vec::new(),
        };
        let request_id = request.to_string();
        Message::PermissionResponse(PermissionResponse { request_id, verdict }).to_text()
    };
    let (other, same) = (allow(json!({"command": "true"})), allow(own));
    stage.mail(LEAD, &other, "other");
    assert_eq!(stage.answer(1).as_deref(), Some("cancel"));
    let rejected = OutboundOp::Typed(request.clone(), Typed::Rejected);
    assert_eq!(stage.take_ops().last(), Some(&rejected));
    stage.stops("end_turn");
    assert!(stage.prompt().contains(r#"use this input instead: {"command":"true"}"#));

    let mut stage = Stage::working(false);
    stage.asks_to_run(1);
    stage.mail(LEAD, &same, "same");
    assert_eq!(stage.answer(1).as_deref(), Some("once"));
}
