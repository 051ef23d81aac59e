//! Delivery of mail as prompts.

use super::*;
use crate::words::tests::PROTOCOL;

/// Marks a message that is sent again.
const REPEATED: &str = "(This message may repeat one that you have received already.)";
const IN_DOUBT: &str = "possibly a repetition: it was sent before without a receipt";

/// A replayed prompt. Its end is seen by the answer that follows.
fn replay(stage: &mut Stage, text: &str) {
    stage.update(chunk("user_message_chunk", text));
    stage.says("done");
}

#[test]
fn ac_01_message_is_received_once_its_turn_has_an_update_and_lasts_for_a_second() {
    let mut stage = Stage::ready();
    stage.mail("bob", "hello", "m1");
    assert!(stage.prompt().contains("<teammate-message id=\"m1\" teammate_id=\"bob\">\nhello\n"));
    stage.update(json!({"sessionUpdate": "available_commands_update", "availableCommands": []}));
    assert_eq!(stage.acknowledged, [""; 0], "that belongs to no turn");
    stage.tick(STORED_MS);
    assert_eq!(stage.acknowledged, [""; 0], "nothing has come");
    stage.says("Hi");
    assert_eq!(stage.acknowledged, ["m1"]);
    stage.says(", Bob");
    stage.stops("end_turn");
    assert_eq!(stage.acknowledged, ["m1"]);
}

/// codex warns in the first 80 ms of a turn, before it has stored the prompt.
#[test]
fn ac_02_agent_that_dies_in_the_first_second_has_not_received_its_message() {
    for (after, received) in [(0, &[][..]), (STORED_MS - 1, &[]), (STORED_MS, &["m1"])] {
        let mut stage = Stage::ready();
        stage.mail("bob", "hello", "m1");
        stage.prompt();
        stage.says("a warning");
        stage.tick(after);
        stage.at(0, Event::Ended { code: 137, said: None });
        assert_eq!(stage.acknowledged, received, "after {after} ms");
    }
}

#[test]
fn ac_01_receipt_is_a_deadline_of_its_own() {
    let mut stage = Stage::ready();
    stage.mail("bob", "hello", "m1");
    stage.prompt();
    stage.says("Hi");
    assert_eq!(stage.sleep(), Some(STORED_MS));
    assert_eq!(stage.acknowledged, ["m1"]);
}

#[test]
fn prompt_of_mail_has_a_heading_for_the_agents_that_need_it() {
    for needs_heading in [false, true] {
        let mut stage = Stage::ready();
        stage.state.facts.needs_heading = needs_heading;
        stage.mail("bob", "hello", "m1");
        let heading = if needs_heading { "Mail for you:\n\n" } else { "" };
        let begin = format!("{heading}<teammate-message id=\"m1\"");
        let prompt = stage.prompt();
        assert!(prompt.starts_with(&begin), "{prompt}");
    }
}

#[test]
fn ac_01_message_is_journaled_before_it_is_written() {
    let mut stage = Stage::ready();
    stage.mailbox.push(message("bob", "hello", "m1"));
    let unread = stage.unread();
    let effects = react(&mut stage.state, unread, stage.now);
    let journaled = |effect: &Effect| matches!(effect, Effect::Journal { .. });
    let written = |effect: &Effect| matches!(effect, Effect::Write(_));
    let journaled = effects.iter().position(journaled);
    assert!(journaled.is_some() && journaled < effects.iter().position(written), "{effects:?}");
}

#[test]
fn ac_01_question_is_a_receipt_too() {
    let mut stage = Stage::ready();
    stage.mail("bob", "hello", "m1");
    stage.asks_to_run(1);
    stage.tick(STORED_MS);
    assert_eq!(stage.acknowledged, ["m1"]);
}

#[test]
fn ac_01_turn_that_ends_at_once_was_received() {
    for reason in ["end_turn", "cancelled", "refusal"] {
        let mut stage = Stage::ready();
        stage.mail("bob", "hello", "m1");
        stage.stops(reason);
        assert_eq!(stage.acknowledged, ["m1"], "{reason}");
    }
}

#[test]
fn ac_01_message_whose_turn_failed_is_not_sent_again() {
    let mut stage = Stage::ready();
    stage.mail("bob", "hello", "m1");
    stage.prompt();
    stage.fails(-32603, "Internal error");
    stage.tick(3_600_000);
    assert_eq!(stage.acknowledged, ["m1"]);
    assert!(!stage.has_prompt());
}

#[test]
fn ac_01_message_that_is_still_unread_is_not_sent_again() {
    let mut stage = Stage::ready();
    stage.mail("bob", "hello", "m1");
    stage.prompt();
    let repeated = stage.unread();
    stage.at(100, repeated);
    assert_eq!(stage.acknowledged, [""; 0]);
    stage.says("Hi");
    stage.tick(STORED_MS);
    // It could not be marked as read.
    stage.mailbox[0].read = false;
    let repeated = stage.unread();
    stage.at(100, repeated);
    assert_eq!(stage.acknowledged, ["m1", "m1"]);
    stage.stops("end_turn");
    assert!(!stage.has_prompt());
}

#[test]
fn ac_02_message_in_the_loaded_conversation_was_received() {
    let mut stage = Stage::loading(&["m1", "m2"]);
    replay(&mut stage, "<teammate-message id=\"m1\" teammate_id=\"bob\">\ntext of m1");
    stage.reply("session/load", json!({}));
    assert_eq!(stage.acknowledged, ["m1"]);
    stage.tick(2000);
    let prompt = stage.prompt();
    assert!(prompt.contains("text of m2") && !prompt.contains("text of m1"), "{prompt}");
}

#[test]
fn ac_02_replay_after_the_reply_to_its_load_counts_too() {
    let mut stage = Stage::loading(&["m1"]);
    stage.reply("session/load", json!({}));
    stage.tick(1500);
    replay(&mut stage, "<teammate-message id=\"m1\" teammate_id=\"bob\">\ntext of m1");
    assert_eq!(stage.acknowledged, ["m1"]);
    stage.tick(60_000);
    assert!(!stage.has_prompt());
}

#[test]
fn ac_02_message_without_a_trace_is_sent_again_and_marked() {
    let mut stage = Stage::loading(&["m1"]);
    stage.mail("bob", "a new one", "m2");
    replay(&mut stage, "another text");
    stage.reply("session/load", json!({}));
    stage.tick(1999);
    assert!(!stage.has_prompt() && stage.progress.is_empty());
    assert_eq!(stage.sleep(), Some(1));
    let prompt = stage.prompt();
    assert!(prompt.contains(&format!("{REPEATED}\n\ntext of m1")), "{prompt}");
    assert_eq!(prompt.matches(REPEATED).count(), 1, "{prompt}");
    let expected = [submitted(&["m2"], None), submitted(&["m1"], Some(IN_DOUBT))];
    assert_eq!(stage.progress, expected);
    assert_eq!(stage.acknowledged, [""; 0]);
    stage.says("Hi");
    stage.tick(STORED_MS);
    assert_eq!(stage.acknowledged, ["m1", "m2"]);
}

#[test]
fn ac_02_message_found_before_it_is_read_is_not_sent() {
    let mut stage = Stage::loading(&[]);
    stage.state.in_doubt = BTreeSet::from(["m1".to_owned()]);
    stage.reply("session/load", json!({}));
    stage.mailbox.push(message("bob", "text of m1", "m1"));
    replay(&mut stage, "id=\"m1\"");
    assert_eq!(stage.acknowledged, ["m1"]);
    stage.mailbox[0].read = false;
    let unread = stage.unread();
    stage.at(5000, unread);
    assert!(!stage.has_prompt());
}

#[test]
fn ac_03_mail_during_a_turn_becomes_one_prompt_after_it() {
    let mut stage = Stage::working(true);
    stage.mail("bob", "second", "m2");
    stage.mail("cid", "third", "m3");
    assert!(!stage.has_prompt());
    stage.stops("end_turn");
    let prompt = stage.prompt();
    assert!(prompt.find("second") < prompt.find("third"), "{prompt}");
    assert_eq!(stage.progress, [submitted(&["m2", "m3"], None)]);
    stage.says("Fine");
    stage.tick(STORED_MS);
    assert_eq!(stage.acknowledged, ["m2", "m3"]);
}

#[test]
fn ac_03_prompt_has_at_most_64_kib_of_messages() {
    let mut stage = Stage::working(false);
    let text = |bytes| "x".repeat(bytes);
    let sizes = [("a", 32 << 10), ("b", 32 << 10), ("c", 1), ("d", 100 << 10), ("e", 1)];
    stage.deliver(sizes.map(|(id, bytes)| message("bob", &text(bytes), id)).to_vec());
    stage.stops("end_turn");
    for expected in [&["a", "b"][..], &["c"], &["d"], &["e"]] {
        assert_eq!(stage.progress.pop(), Some(submitted(expected, None)));
        stage.says("ok");
        stage.stops("end_turn");
    }
    assert_eq!(stage.state.waiting, []);
}

#[test]
fn ac_03_prompt_of_a_person_goes_before_mail() {
    let mut stage = Stage::working(false);
    stage.mail("bob", "later", "m2");
    stage.types("look at this");
    assert!(!stage.has_prompt());
    stage.stops("end_turn");
    assert_eq!(stage.prompt(), "look at this");
    stage.stops("end_turn");
    assert!(stage.prompt().contains("later"));
}

#[test]
fn ac_03_message_that_was_read_elsewhere_is_not_sent() {
    let mut stage = Stage::working(false);
    stage.mail("bob", "second", "m2");
    stage.mailbox.iter_mut().for_each(|envelope| envelope.read = true);
    let unread = stage.unread();
    stage.at(0, unread);
    stage.stops("end_turn");
    assert!(!stage.has_prompt());
}

#[test]
fn mail_waits_until_the_start_is_confirmed() {
    let mut stage = Stage::starting(AgentRole::Teammate, start());
    stage.mail("bob", "hello", "m1");
    stage.initialize("1.18.33", false);
    stage.reply("session/new", json!({"sessionId": SESSION}));
    assert!(!stage.has_prompt() && stage.is_waiting("m1"));
    assert_eq!(stage.take_ops(), [OutboundOp::Session(SESSION.to_owned()), OutboundOp::Hello]);
    stage.accept();
    assert!(stage.has_prompt());
}

#[test]
fn ac_02_message_in_doubt_follows_a_clock_that_was_set_back() {
    let mut stage = Stage::loading(&["m1"]);
    stage.reply("session/load", json!({}));
    stage.now = Timestamp(500_000);
    stage.tick(0);
    assert_eq!(stage.sleep(), Some(2000));
    assert!(stage.has_prompt());
}

/// A later run looks for it in the conversation.
#[test]
fn ac_01_message_without_a_receipt_is_unread_after_the_agent_exits() {
    for is_asked in [true, false] {
        let mut stage = Stage::ready();
        stage.mail("bob", "hello", "m1");
        stage.prompt();
        if is_asked {
            stage.at(0, Event::Person(ConversationAction::Leave));
        }
        stage.exits(1, None);
        assert_eq!(stage.acknowledged, [""; 0]);
        assert!(stage.state.end.is_some());
    }
}

#[test]
fn ac_13_no_message_of_the_protocol_reaches_the_agent_or_the_pane_as_json() {
    let senders =
        [(AgentRole::Teammate, LEAD), (AgentRole::Teammate, "bob"), (AgentRole::Lead, "bob")];
    for (role, from) in
        senders.into_iter().chain([(AgentRole::Teammate, "system"), (AgentRole::Lead, "system")])
    {
        for text in PROTOCOL {
            let mut stage = Stage::ready_as(role, false);
            stage.mail(from, text, "m1");
            let prompt = stage.find("session/prompt").map(|prompt| text_of(&prompt));
            let shown = stage.shown.iter().filter_map(|shown| match shown {
                ConversationUpdate::Prompt { text, .. } => Some(text.clone()),
                _ => None,
            });
            for words in shown.chain(prompt) {
                assert!(!words.contains("\"type\""), "{text} from {from}: {words}");
            }
        }
    }
}
