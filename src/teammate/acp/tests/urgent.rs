//! Urgent mail.

use super::*;

#[test]
fn ac_07_urgent_message_is_taken_into_the_turn() {
    let mut stage = Stage::working(true);
    stage.urgent("u1");
    let steering = stage.take("_session/steering");
    assert!(text_of(&steering).contains("id=\"u1\""));
    let meta = &steering["params"]["_meta"]["steering"];
    assert_eq!(meta["idleBehavior"], "promptRequired");
    assert_eq!(stage.progress, [submitted(&["u1"], None)]);
    assert_eq!(stage.acknowledged, [""; 0]);
    // The mailbox still has it.
    let unread = stage.unread();
    stage.at(10, unread);
    assert_eq!(stage.find("_session/steering"), None);
    stage.line(&json!({"id": steering["id"], "result": {"outcome": "injected"}}));
    assert_eq!(stage.acknowledged, ["u1"]);
    stage.stops("end_turn");
    assert!(!stage.has_prompt() && stage.find("session/cancel").is_none());
}

#[test]
fn ac_07_refused_steering_cancels_the_turn() {
    let replies = [
        json!({"result": {"outcome": "promptRequired"}}),
        json!({"result": {"outcome": "startedNewTurn"}}),
        json!({"result": {}}),
        json!({"error": {"code": -32601, "message": "Method not found"}}),
    ];
    for mut reply in replies {
        let mut stage = Stage::working(true);
        stage.urgent("u1");
        reply["id"] = stage.take("_session/steering")["id"].clone();
        stage.line(&reply);
        stage.take("session/cancel");
        assert_eq!(stage.warnings.len(), 1, "{reply}");
        assert!(stage.is_waiting("u1"), "{reply}");
        stage.stops("cancelled");
        assert!(stage.prompt().contains("id=\"u1\""), "{reply}");
        stage.says("Stopped");
        stage.tick(STORED_MS);
        assert_eq!(stage.acknowledged, ["u1"], "{reply}");
        assert_eq!(stage.find("_session/steering"), None);
    }
}

#[test]
fn ac_07_turn_of_an_agent_that_cannot_steer_is_cancelled() {
    let mut stage = Stage::working(false);
    stage.urgent("u1");
    stage.take("session/cancel");
    assert_eq!(stage.progress, [interrupted(&["u1"])]);
    stage.tick(1000);
    let unread = stage.unread();
    stage.at(10, unread);
    assert_eq!(stage.find("session/cancel"), None, "once per message");
    stage.urgent("u2");
    stage.take("session/cancel");
    stage.stops("cancelled");
    let prompt = stage.prompt();
    assert!(prompt.contains("id=\"u1\"") && prompt.contains("id=\"u2\""), "{prompt}");
}

#[test]
fn ac_07_urgent_message_waits_until_the_turn_has_begun() {
    for can_steer in [true, false] {
        let mut stage = Stage::ready_as(AgentRole::Teammate, can_steer);
        stage.mail("bob", "begin", "m1");
        stage.urgent("u1");
        stage.tick(STORED_MS - 1);
        assert_eq!(stage.find("session/cancel"), None);
        // What codex says within 20 ms, a warning of its own, is no sign that its API answers.
        stage.says("on it");
        stage.take("session/cancel");
    }
}

/// An agent that retries in silence may read nothing for minutes.
#[test]
fn ac_07_turn_without_output_is_cancelled_and_its_prompt_sent_again() {
    for can_steer in [true, false] {
        let mut stage = Stage::ready_as(AgentRole::Teammate, can_steer);
        stage.tick(10_000);
        stage.mail("bob", "begin", "m1");
        stage.prompt();
        stage.tick(300);
        stage.urgent("u1");
        stage.mail("bob", "later", "m2");
        assert_eq!(stage.find("session/cancel"), None);
        assert_eq!(stage.sleep(), Some(STORED_MS - 300));
        stage.take("session/cancel");
        assert_eq!(stage.progress, [submitted(&["m1"], None), interrupted(&["u1"])]);
        stage.forget();
        stage.stops("cancelled");
        assert_eq!(stage.acknowledged, [""; 0], "nothing shows that the agent has kept it");
        let prompt = stage.prompt();
        let parts = ["id=\"m1\"", "may repeat one", "begin", "id=\"u1\"", "id=\"m2\""];
        let places = parts.map(|part| prompt.find(part).unwrap_or_else(|| panic!("{prompt}")));
        assert!(places.is_sorted() && prompt.matches("may repeat one").count() == 1, "{prompt}");
        let reason = "possibly a repetition: it was sent before without a receipt";
        let expected = [submitted(&["u1", "m2"], None), submitted(&["m1"], Some(reason))];
        assert_eq!(stage.progress, expected);
        stage.says("Stopped");
        stage.tick(STORED_MS);
        assert_eq!(stage.acknowledged, ["m1", "u1", "m2"]);
        stage.stops("end_turn");
        assert!(!stage.has_prompt() && stage.find("session/cancel").is_none());
    }
}

#[test]
fn ac_07_text_is_taken_into_a_turn_with_recent_output_or_a_tool() {
    type Before = fn(&mut Stage);
    fn tool(stage: &mut Stage, status: &str) {
        stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": status}));
        stage.tick(60_000);
    }
    let (taken, cancelled) = ("_session/steering", "session/cancel");
    let turns: [(Before, &str); 5] = [
        (|stage| stage.tick(999), taken),
        (|stage| stage.tick(1000), cancelled),
        (|stage| tool(stage, "in_progress"), taken),
        (|stage| tool(stage, "completed"), cancelled),
        // Until a person has answered, the agent would read nothing.
        (|stage| drop(stage.asks_to_run(1)), cancelled),
    ];
    for (before, method) in turns {
        let mut stage = Stage::working(true);
        before(&mut stage);
        stage.urgent("u1");
        stage.take(method);
        if method == cancelled {
            stage.stops("cancelled");
            let prompt = stage.prompt();
            assert!(prompt.contains("id=\"u1\"") && !prompt.contains("may repeat"), "{prompt}");
        }
    }
}

#[test]
fn ac_07_message_of_usual_urgency_does_not_cancel() {
    let mut stage = Stage::working(false);
    stage.mail("bob", "when you have time", "m2");
    assert_eq!(stage.find("session/cancel"), None);
}

#[test]
fn ac_07_urgent_message_to_an_idle_agent_is_a_prompt() {
    let mut stage = Stage::steerable();
    stage.urgent("u1");
    assert!(stage.prompt().contains("id=\"u1\""));
    assert_eq!(stage.find("_session/steering"), None);
}

#[test]
fn ac_07_urgent_message_is_unread_after_the_agent_exits() {
    let mut stage = Stage::working(true);
    stage.urgent("u1");
    stage.exits(1, None);
    assert_eq!(stage.acknowledged, [""; 0]);
}

#[test]
fn ac_07_late_refusal_does_not_cancel_the_next_turn() {
    let mut stage = Stage::working(true);
    stage.urgent("u1");
    let steering = stage.take("_session/steering");
    stage.types("next");
    stage.stops("end_turn");
    assert_eq!(stage.prompt(), "next");
    stage.line(&json!({"id": steering["id"], "result": {"outcome": "promptRequired"}}));
    assert_eq!(stage.find("session/cancel"), None);
    stage.says("on it");
    assert_eq!(stage.find("_session/steering"), None, "once per message");
    stage.stops("end_turn");
    assert!(stage.prompt().contains("id=\"u1\""));
}

#[test]
fn ac_07_urgent_message_without_a_reply_is_a_prompt_after_its_turn() {
    type End = fn(&mut Stage);
    let ends: [End; 3] = [
        |stage| stage.stops("end_turn"),
        |stage| stage.fails(-32603, "Internal error"),
        |stage| {
            stage.at(0, Event::Person(ConversationAction::Cancel));
            stage.stops("cancelled");
        },
    ];
    for end in ends {
        let mut stage = Stage::working(true);
        stage.urgent("u1");
        let steering = stage.take("_session/steering");
        stage.forget();
        end(&mut stage);
        assert!(!stage.has_prompt(), "the reply may follow");
        stage.tick(1999);
        assert!(!stage.has_prompt());
        stage.tick(1);
        let prompt = stage.prompt();
        assert!(prompt.contains("id=\"u1\"") && prompt.contains("may repeat one"), "{prompt}");
        let reason = "possibly a repetition: it was sent before without a receipt";
        assert_eq!(stage.progress, [submitted(&["u1"], Some(reason))]);
        // Its reply comes far too late.
        stage.line(&json!({"id": steering["id"], "result": {"outcome": "injected"}}));
        assert_eq!(stage.acknowledged, [""; 0]);
        stage.says("Stopped");
        stage.tick(STORED_MS);
        assert_eq!(stage.acknowledged, ["u1"]);
        stage.stops("end_turn");
        assert!(!stage.has_prompt());
    }
}

#[test]
fn ac_07_reply_shortly_after_the_turn_counts() {
    let mut stage = Stage::working(true);
    stage.urgent("u1");
    let steering = stage.take("_session/steering");
    stage.stops("end_turn");
    stage.tick(100);
    stage.line(&json!({"id": steering["id"], "result": {"outcome": "injected"}}));
    assert_eq!(stage.acknowledged, ["u1"]);
    stage.tick(60_000);
    assert!(!stage.has_prompt());
}

#[test]
fn ac_02_urgent_message_in_doubt_is_marked_in_a_running_turn() {
    let mut stage = Stage::loading(&["u1"]);
    stage.mailbox[0].urgent = true;
    let unread = stage.unread();
    stage.state.waiting.clear();
    stage.at(0, unread);
    stage.reply("session/load", json!({}));
    stage.types("go on");
    stage.update(json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress"}));
    let steering = stage.take("_session/steering");
    assert!(text_of(&steering).contains("may repeat one"));
    let reason = "possibly a repetition: it was sent before without a receipt";
    assert_eq!(stage.progress, [submitted(&["u1"], Some(reason))]);
    stage.line(&json!({"id": steering["id"], "result": {"outcome": "injected"}}));
    stage.stops("end_turn");
    // Its text in the conversation is no second receipt.
    stage.update(chunk("user_message_chunk", "id=\"u1\""));
    stage.says("done");
    assert_eq!(stage.acknowledged, ["u1"]);
}

#[test]
fn ac_07_urgent_message_waits_until_the_start_is_confirmed() {
    for can_steer in [true, false] {
        let mut stage = Stage::starting(AgentRole::Teammate, start());
        stage.initialize("1.18.33", can_steer);
        stage.reply("session/new", json!({"sessionId": SESSION}));
        stage.types("look around");
        stage.update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress"}),
        );
        stage.urgent("u1");
        let method = if can_steer { "_session/steering" } else { "session/cancel" };
        assert_eq!(stage.find(method), None);
        stage.accept();
        stage.take(method);
    }
}
