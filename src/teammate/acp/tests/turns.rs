//! Reports of turns: their ends, their failures and their silence.

use super::*;
use model::members::lifecycle::Cause;

/// The remark after 30 s.
fn is_silence(op: &OutboundOp) -> bool {
    matches!(op, OutboundOp::Remark(Some(reason)) if reason.starts_with("silent since "))
}

fn remarks(stage: &mut Stage) -> Vec<Option<String>> {
    let ops = stage.take_ops().into_iter();
    let remark = |op| match op {
        OutboundOp::Remark(reason) => Some(reason),
        _ => None,
    };
    ops.filter_map(remark).collect()
}

/// The reason of the idle notification, and its failure.
fn idle_report(op: &OutboundOp) -> Option<(&str, Option<&str>)> {
    let OutboundOp::Send(message) = op else { return None };
    let Message::IdleNotification(notice) = &**message else { return None };
    Some((notice.idle_reason.as_deref()?, notice.failure_reason.as_deref()))
}

#[test]
fn each_turn_is_reported_with_its_begin_and_end() {
    let mut stage = Stage::ready();
    stage.mail("bob", "hello", "m1");
    assert_eq!(stage.take_ops(), [OutboundOp::MoveOn(Cause::Work, None)]);
    stage.says("Hi");
    assert_eq!(stage.take_ops(), []);
    stage.stops("end_turn");
    let ops = stage.take_ops();
    assert_eq!(ops[0], OutboundOp::MoveOn(Cause::Rest, None));
    assert_eq!(idle_report(&ops[1]), Some(("available", None)));
    assert_eq!(ops.len(), 2);
    assert_eq!(stage.sleep(), None, "rest costs nothing");
}

#[test]
fn ac_06_failed_turn_is_reported_as_failed() {
    let cases = [
        (-32000, "Authentication required", "failed:login: Authentication required"),
        (401, "invalid key", "failed:login: invalid key"),
        (-32603, "Connection error.", "failed: Connection error."),
        (400, "context length exceeded", "failed: context length exceeded"),
    ];
    for (code, text, remark) in cases {
        let mut stage = Stage::working(false);
        stage.fails(code, text);
        let ops = stage.take_ops();
        let expected = OutboundOp::Remark(Some(remark.to_owned()));
        assert_eq!(ops[..2], [OutboundOp::MoveOn(Cause::Rest, None), expected]);
        assert_eq!(idle_report(&ops[2]), Some(("failed", Some(text))));
        assert_eq!(stage.sleep(), None, "rest costs nothing");
        // The next turn clears it.
        stage.mail("bob", "again", "m2");
        let expected = [OutboundOp::Remark(None), OutboundOp::MoveOn(Cause::Work, None)];
        assert_eq!(stage.take_ops(), expected);
        stage.stops("end_turn");
        assert_eq!(idle_report(&stage.take_ops()[1]), Some(("available", None)));
    }
}

#[test]
fn ac_06_turn_that_stops_early_is_reported_as_failed() {
    let mut stage = Stage::working(false);
    stage.stops("max_tokens");
    let ops = stage.take_ops();
    assert_eq!(idle_report(&ops[2]), Some(("failed", Some("stopped: max_tokens"))));
}

#[test]
fn ac_06_cancelled_turn_is_not_reported_as_failed() {
    let mut stage = Stage::working(false);
    stage.at(0, Event::Person(ConversationAction::Cancel));
    stage.take("session/cancel");
    // qwen answers so.
    stage.fails(-32603, "Request was aborted.");
    let ops = stage.take_ops();
    assert_eq!(idle_report(&ops[1]), Some(("available", None)));
}

#[test]
fn ac_06_limit_is_reported_and_holds_mail_back_until_it_ends() {
    let mut stage = Stage::working(false);
    stage.fails(429, "usage limit reached");
    let ops = stage.take_ops();
    let OutboundOp::Limit(Some(hit)) = &ops[0] else { panic!("{ops:?}") };
    assert_eq!((hit.said.as_str(), hit.until), ("usage limit reached", None));
    assert_eq!(ops[1], OutboundOp::MoveOn(Cause::Rest, None));
    assert_eq!(idle_report(&ops[2]), Some(("failed", Some("usage limit reached"))));
    assert_eq!(stage.sleep(), None, "nothing waits for its end");
    // ST-09: without an end, it is tried soon, and after each refusal later.
    for (minutes, mail) in [(1, "m2"), (5, "m3"), (15, "m4"), (30, "m5"), (30, "m6")] {
        stage.mail("bob", "hello", mail);
        stage.tick(minutes * 60_000 - 1);
        assert!(!stage.has_prompt() && stage.is_waiting(mail), "{mail}");
        assert_eq!(stage.sleep(), Some(1), "{mail}");
        assert!(stage.prompt().contains("hello"), "{mail}");
        stage.fails(429, "usage limit reached");
    }
    stage.types("now");
    stage.prompt();
    stage.take_ops();
    stage.stops("end_turn");
    assert_eq!(stage.take_ops()[0], OutboundOp::Limit(None), "it is over");
}

/// ST-08: the words of codex 0.171.0 while it repeats a request.
#[test]
fn st_08_repeated_request_is_on_record_until_the_next_output() {
    let mut stage = Stage::working(false);
    stage.take_ops();
    let error = json!({
        "message": "Reconnecting... 1/2",
        "additionalDetails": "We are overloaded.",
        "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": null}},
        "willRetry": true,
    });
    let info =
        json!({"sessionUpdate": "session_info_update", "_meta": {"codex": {"error": error}}});
    stage.update(info);
    let said = "retrying: Reconnecting... 1/2 · We are overloaded.";
    assert_eq!(remarks(&mut stage), [Some(said.to_owned())]);
    stage.tick(30_000);
    assert_eq!(remarks(&mut stage), [], "a silence says less");
    stage.says("Hi");
    assert_eq!(remarks(&mut stage), [None]);
    stage.stops("end_turn");
}

/// ST-09: too many requests at a time are no usage limit.
#[test]
fn ac_06_st_09_plain_429_fails_the_turn_and_holds_no_mail_back() {
    let mut stage = Stage::working(false);
    stage.fails(429, "exceeded retry limit, last status: 429 Too Many Requests");
    let ops = stage.take_ops();
    assert!(!ops.iter().any(|op| matches!(op, OutboundOp::Limit(_))), "{ops:?}");
    stage.mail("bob", "hello", "m2");
    assert!(stage.prompt().contains("hello"));
}

#[test]
fn ac_06_limit_ends_when_the_agent_says() {
    let mut stage = Stage::working(false);
    stage.fails(429, "usage limit reached, try again at 12:20 am (UTC)");
    stage.mail("bob", "hello", "m2");
    // The stage begins on 12 January 1970 at 13:46:40.
    let until = Timestamp(1_038_000_000);
    assert_eq!(stage.state.next_tick(stage.now), Some(until));
    let OutboundOp::Limit(Some(hit)) = &stage.ops[0] else { panic!("{:?}", stage.ops) };
    assert_eq!(hit.until, Some(until));
    stage.sleep();
    assert!(stage.has_prompt());
}

#[test]
fn ac_06_prompt_of_a_person_is_sent_during_a_limit() {
    let mut stage = Stage::working(false);
    stage.fails(429, "usage limit reached");
    stage.mail("bob", "hello", "m2");
    stage.types("try now");
    assert_eq!(stage.prompt(), "try now");
    stage.stops("end_turn");
    assert!(stage.prompt().contains("hello"), "the turn has shown that the limit is over");
}

#[test]
fn ac_08_silent_turn_is_remarked_once_and_cleared_when_heard() {
    let mut stage = Stage::working(false);
    assert_eq!(stage.sleep(), Some(30_000));
    let ops = stage.take_ops();
    assert!(matches!(&ops[..], [op] if is_silence(op)), "{ops:?}");
    assert!(stage.state.shown.silent_since.is_some());
    assert_eq!(stage.sleep(), None, "once");
    stage.tick(3_600_000);
    assert_eq!(stage.take_ops(), []);
    stage.says("back");
    assert_eq!(remarks(&mut stage), [None]);
    assert_eq!(stage.state.shown.silent_since, None);
    stage.says("again");
    assert_eq!(remarks(&mut stage), []);
    stage.tick(29_999);
    assert_eq!(remarks(&mut stage), []);
    stage.tick(1);
    assert_eq!(remarks(&mut stage).len(), 1, "a second silence");
    stage.stops("end_turn");
    assert_eq!(remarks(&mut stage), [None]);
}

#[test]
fn ac_08_output_without_a_report_ends_the_silence_and_is_no_receipt() {
    let update = |update: Value| {
        let params = json!({"sessionId": SESSION, "update": update});
        json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
    };
    let outputs = [
        update(json!({"sessionUpdate": "someday"})),
        update(json!({"sessionUpdate": "session_info_update"})),
        json!({"jsonrpc": "2.0", "method": "vendor/notify", "params": {}}),
        json!({"jsonrpc": "2.0", "method": "vendor/request", "id": 9, "params": {}}),
    ];
    for output in outputs {
        let mut stage = Stage::ready();
        stage.mail("bob", "begin", "m1");
        for _ in 0..3 {
            stage.tick(20_000);
            stage.line(&output);
        }
        assert_eq!(remarks(&mut stage), [], "{output}");
        assert_eq!(stage.state.shown.silent_since, None, "{output}");
        assert_eq!(stage.acknowledged, [""; 0], "{output}");
        assert_eq!(stage.sleep(), Some(30_000));
        assert_eq!(remarks(&mut stage).len(), 1, "{output}");
        stage.line(&output);
        assert_eq!(remarks(&mut stage), [None], "{output}");
    }
}

#[test]
fn ac_08_call_of_this_side_does_not_end_the_silence() {
    let mut stage = Stage::working(false);
    stage.sleep();
    assert_eq!(remarks(&mut stage).len(), 1);
    stage.at(0, Event::Person(ConversationAction::Cancel));
    stage.mail(LEAD, r#"{"type":"mode_set_request","mode":"plan"}"#, "mode");
    assert_eq!(remarks(&mut stage), []);
    assert!(stage.state.shown.silent_since.is_some());
}

#[test]
fn ac_08_turn_with_an_open_question_is_not_silent() {
    let mut stage = Stage::working(false);
    stage.asks_to_run(1);
    assert_eq!(stage.sleep(), None);
    stage.tick(600_000);
    assert_eq!(remarks(&mut stage), []);
    assert_eq!(stage.state.shown.silent_since, None);
}

#[test]
fn ac_08_silence_follows_a_clock_that_was_set_back() {
    let mut stage = Stage::working(false);
    stage.now = Timestamp(500_000);
    stage.tick(0);
    assert_eq!(stage.sleep(), Some(30_000));
    assert_eq!(remarks(&mut stage).len(), 1);
}

#[test]
fn ac_08_idle_agent_is_not_silent() {
    let mut stage = Stage::ready();
    stage.tick(600_000);
    assert_eq!(stage.take_ops(), []);
    assert_eq!(stage.sleep(), None);
}

#[test]
fn usage_and_model_of_a_turn_are_reported() {
    let mut stage = Stage::working(false);
    let id = stage.prompt.take();
    let usage = json!({"inputTokens": 10, "outputTokens": 3});
    stage.line(&json!({"id": id, "result": {"stopReason": "end_turn", "usage": usage}}));
    let ops = stage.take_ops();
    assert!(matches!(&ops[0], OutboundOp::Usage(None, used) if used.output == 3), "{ops:?}");
}

#[test]
fn last_words_are_those_of_the_last_message() {
    let mut stage = Stage::ready();
    stage.mail("bob", "hello", "m1");
    let says = |stage: &mut Stage, message: &str, text: &str| {
        let mut update = chunk("agent_message_chunk", text);
        update["messageId"] = json!(message);
        stage.update(update);
    };
    says(&mut stage, "a", "first");
    says(&mut stage, "b", "sec");
    says(&mut stage, "b", "ond");
    assert_eq!(stage.state.last_words, "second");
    for _ in 0..100 {
        says(&mut stage, "b", &"é".repeat(100));
    }
    assert!(stage.state.last_words.chars().count() <= 1200);
    stage.stops("end_turn");
    stage.mail("bob", "next", "m2");
    assert_eq!(stage.state.last_words, "");
}

#[test]
fn only_completed_changes_are_reported() {
    let mut stage = Stage::working(false);
    for (id, path, status) in [("a", "/work/a", "completed"), ("b", "/work/b", "failed")] {
        stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": id, "status": status,
            "content": [{"type": "diff", "path": path, "newText": "x"}]}));
    }
    assert_eq!(stage.state.changed, BTreeSet::from(["/work/a".to_owned()]));
}

#[test]
fn ac_08_time_of_an_open_question_is_no_silence() {
    for in_pane in [true, false] {
        let mut stage = Stage::working(false);
        let request = stage.asks_to_run(1);
        stage.tick(600_000);
        if in_pane {
            let question = stage.open_question();
            stage.chooses(question, "once");
        } else {
            stage.permit(LEAD, &request, Ok(()));
        }
        assert_eq!(remarks(&mut stage), []);
        assert_eq!(stage.sleep(), Some(30_000), "the agent works from now on");
        assert_eq!(remarks(&mut stage).len(), 1);
    }
}

#[test]
fn ac_08_agent_lead_with_an_open_question_is_not_silent() {
    let mut stage = Stage::ready_as(AgentRole::Lead, false);
    stage.types("work");
    stage.asks(1, &json!({"toolCallId": "c"}), &SHELL);
    stage.tick(600_000);
    assert_eq!(stage.state.shown.silent_since, None);
}
