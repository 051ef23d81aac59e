//! Properties of any conversation: no panic, one prompt at a time, and no message that is lost or
//! acknowledged twice. The stage checks each step.

use proptest::prelude::*;

use super::super::super::event::OpFailure;
use super::*;
use sys::signal::Signal;

/// Something that happens to a member.
#[derive(Debug, Clone)]
enum Step {
    Mail {
        urgent: bool,
        bytes: usize,
    },
    Reread,
    Update(&'static str),
    Line(String),
    Bytes(Vec<u8>),
    /// The agent answers its oldest request with one of these results.
    Reply(usize),
    Ask(u64),
    WithdrawQuestion(u64),
    LeadAnswers {
        allows: bool,
        to_last: bool,
    },
    PaneAnswers(usize),
    Type,
    Cancel,
    SetMode(&'static str),
    ShutDown(u64),
    Accept,
    Stick(bool),
    FailOp {
        lasting: bool,
    },
    FailMail,
    Wait(u64),
    ClockBack(u64),
    Sleep,
    End(usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    let update = prop::sample::select(vec![
        "agent_message_chunk",
        "agent_thought_chunk",
        "user_message_chunk",
        "available_commands_update",
        "session_info_update",
    ]);
    let garbage = prop::sample::select(vec![
        "",
        "null",
        "[]",
        "{",
        r#"{"id":99,"result":null}"#,
        r#"{"id":98,"error":{"code":-32000}}"#,
        r#"{"method":"session/update"}"#,
        r#"{"id":1,"method":"session/request_permission","params":{}}"#,
        r#"{"id":1,"method":"fs/read_text_file"}"#,
        r#"{"method":"session/update","params":{"sessionId":"other","update":{}}}"#,
    ]);
    let mail = (any::<bool>(), prop::sample::select(vec![1, 30 << 10, 80 << 10]));
    let answer = any::<(bool, bool)>();
    let mode = prop::sample::select(vec!["plan", "bypassPermissions", "someday"]);
    prop_oneof![
        6 => mail.prop_map(|(urgent, bytes)| Step::Mail { urgent, bytes }),
        2 => Just(Step::Reread),
        6 => update.prop_map(Step::Update),
        2 => garbage.prop_map(|line| Step::Line(line.to_owned())),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Step::Bytes),
        10 => (0..8_usize).prop_map(Step::Reply),
        3 => (0..4_u64).prop_map(Step::Ask),
        1 => (0..4_u64).prop_map(Step::WithdrawQuestion),
        3 => answer.prop_map(|(allows, to_last)| Step::LeadAnswers { allows, to_last }),
        2 => (0..4_usize).prop_map(Step::PaneAnswers),
        2 => Just(Step::Type),
        2 => Just(Step::Cancel),
        1 => mode.prop_map(Step::SetMode),
        1 => prop::sample::select(vec![0, 3000, 60_000]).prop_map(Step::ShutDown),
        1 => Just(Step::Accept),
        1 => any::<bool>().prop_map(Step::Stick),
        1 => any::<bool>().prop_map(|lasting| Step::FailOp { lasting }),
        1 => Just(Step::FailMail),
        3 => prop::sample::select(vec![1, 999, 2000, 30_000, 900_000]).prop_map(Step::Wait),
        1 => (0..2_000_000_u64).prop_map(Step::ClockBack),
        3 => Just(Step::Sleep),
        1 => (0..40_usize).prop_map(Step::End),
    ]
}

impl Stage {
    fn take_step(&mut self, step: Step, number: usize) {
        match step {
            Step::Mail { urgent, bytes } => {
                let mail = message("bob", &"x".repeat(bytes), &format!("mail-{number}"));
                self.deliver(vec![Envelope { urgent, ..mail }]);
            }
            Step::Reread => {
                let unread = self.unread();
                self.at(0, unread);
            }
            Step::Update(kind) => {
                // As agents that echo a prompt, or replay one late.
                let echoed = self.mailbox.last().map_or("text", |envelope| &envelope.msg_id);
                let update = chunk(kind, echoed);
                self.update(update);
            }
            Step::Line(line) => self.at(0, Event::Output(format!("{line}\n").into_bytes())),
            Step::Bytes(bytes) => self.at(0, Event::Output([&bytes[..], b"\n"].concat())),
            Step::Reply(which) => self.reply_to_any(which),
            Step::Ask(id) => {
                let kind = if id == 0 { "switch_mode" } else { "execute" };
                let call = json!({"toolCallId": "c", "kind": kind, "rawInput": {"plan": "p"}});
                self.asks(id, &call, &SHELL);
            }
            Step::WithdrawQuestion(id) => self.withdraws(id),
            Step::LeadAnswers { allows, to_last } => {
                let filed = self.state.filed.last().map(|filed| filed.request.clone());
                let other = RequestId::parse("perm-1-00000000-9").expect("id");
                let request = filed.filter(|_| to_last).unwrap_or(other);
                if number.is_multiple_of(2) {
                    self.permit(LEAD, &request, if allows { Ok(()) } else { Err("no") });
                } else {
                    self.decide_plan(&request, allows, Some("words"));
                }
            }
            Step::PaneAnswers(option) => {
                let options = ["always", "once", "cancel", "none"];
                let question = self.state.session.questions().next().map(|question| question.id);
                self.chooses(question.unwrap_or(QuestionId(99)), options[option]);
            }
            Step::Type => self.types("typed"),
            Step::Cancel => self.at(0, Event::Person(ConversationAction::Cancel)),
            Step::SetMode(mode) => {
                let text = json!({"type": "mode_set_request", "mode": mode}).to_string();
                self.mail(LEAD, &text, &format!("mode-{number}"));
            }
            Step::ShutDown(deadline) => {
                if self.requests.is_empty() {
                    self.ask_to_shut_down(LEAD, deadline);
                }
            }
            Step::Accept => self.accept(),
            Step::Stick(is_stuck) => {
                self.is_stuck = is_stuck;
                if !is_stuck && self.state.outbox.asked {
                    self.at(0, Event::Member(MemberEvent::Done(Ok(()))));
                }
            }
            Step::FailOp { lasting } => {
                if self.state.outbox.asked {
                    let failure = OpFailure { text: "no space".to_owned(), lasting };
                    self.at(0, Event::Member(MemberEvent::Done(Err(failure))));
                }
            }
            Step::FailMail => {
                let failure = OpFailure { text: "no mail".to_owned(), lasting: false };
                self.at(0, Event::Member(MemberEvent::NoMail(failure)));
            }
            Step::Wait(ms) => self.tick(ms),
            Step::ClockBack(ms) => {
                self.now = self.now.minus_ms(ms);
                self.tick(0);
            }
            Step::Sleep => drop(self.sleep()),
            Step::End(0) => self.exits(1, None),
            Step::End(1) => self.at(0, Event::Person(ConversationAction::Leave)),
            Step::End(2) => self.at(0, Event::Signal(Signal::Terminate)),
            Step::End(3) => self.at(0, Event::Member(MemberEvent::Over("gone".to_owned()))),
            Step::End(_) => {}
        }
    }

    fn reply_to_any(&mut self, which: usize) {
        let is_request = |message: &Value| message["id"].is_u64() && message["method"].is_string();
        let Some(at) = self.sent.iter().position(is_request) else { return };
        let request = self.sent.remove(at);
        if self.prompt.as_ref() == Some(&request["id"]) {
            self.prompt = None;
        }
        let (result, error) = ("result", "error");
        let (key, body) = match (request["method"].as_str(), which) {
            (_, 0) => (error, json!({"code": -32603, "message": "Internal error"})),
            (Some("session/prompt"), 1) => (error, json!({"code": 429, "message": "usage limit"})),
            (Some("session/prompt"), 2) => (result, json!({"stopReason": "cancelled"})),
            (Some("session/prompt"), 3) => (result, json!({"stopReason": "max_tokens"})),
            (Some("session/prompt"), _) => (result, json!({"stopReason": "end_turn"})),
            (Some("_session/steering"), 1..5) => (result, json!({"outcome": "injected"})),
            (Some("_session/steering"), _) => (result, json!({"outcome": "promptRequired"})),
            _ => (result, json!({})),
        };
        self.line(&json!({"id": request["id"], key: body}));
    }

    /// Returns the ids of the messages for the agent that are unread.
    fn unread_mail(&self) -> BTreeSet<&str> {
        let unread = self.mailbox.iter().filter(|one| !one.read && one.msg_id.starts_with("mail"));
        unread.map(|envelope| envelope.msg_id.as_str()).collect()
    }
}

proptest! {
    // A file of failures beside the crates would be taken for a crate.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_conversation_panics_or_has_two_prompts_or_receipts(
        is_lead in any::<bool>(),
        can_steer in any::<bool>(),
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let role = if is_lead { AgentRole::Lead } else { AgentRole::Teammate };
        let mut stage = Stage::ready_as(role, can_steer);
        for (number, step) in steps.into_iter().enumerate() {
            stage.take_step(step, number);
        }
    }

    #[test]
    fn no_conversation_after_a_crash_has_two_prompts_or_receipts(
        steps in prop::collection::vec(any_step(), 0..60),
    ) {
        let mut stage = Stage::loading(&["mail-a", "mail-b"]);
        for (number, step) in steps.into_iter().enumerate() {
            stage.take_step(step, number);
        }
    }

    #[test]
    fn no_message_is_lost(
        can_steer in any::<bool>(),
        answers_all in any::<bool>(),
        steps in prop::collection::vec(any_step(), 0..40),
    ) {
        let is_kept = |step: &Step| !matches!(step, Step::End(_) | Step::ShutDown(_));
        let mut stage = Stage::ready_as(AgentRole::Teammate, can_steer);
        for (number, step) in steps.into_iter().filter(is_kept).enumerate() {
            stage.take_step(step, number);
        }
        // Everything works again, and the agent answers its prompts, or all that it is asked.
        stage.take_step(Step::Stick(false), 0);
        for _ in 0..100 {
            stage.tick(900_000);
            stage.sent.retain(|message| answers_all || message["method"] == "session/prompt");
            stage.reply_to_any(4);
        }
        prop_assert_eq!(stage.unread_mail(), BTreeSet::new());
        prop_assert!(stage.state.is_free() && stage.state.typed.is_empty());
    }

    #[test]
    fn ac_12_no_request_or_report_is_left_after_an_exit(
        can_steer in any::<bool>(),
        steps in prop::collection::vec(any_step(), 0..40),
    ) {
        let is_kept = |step: &Step| !matches!(step, Step::End(_) | Step::ShutDown(_));
        let mut stage = Stage::ready_as(AgentRole::Teammate, can_steer);
        for (number, step) in steps.into_iter().filter(is_kept).enumerate() {
            stage.take_step(step, number);
        }
        stage.exits(1, None);
        stage.take_step(Step::Stick(false), 0);
        while stage.state.end.is_none() {
            prop_assert!(stage.sleep().is_some(), "it hangs");
        }
        prop_assert!(stage.state.filed.is_empty() && stage.state.outbox.queue.is_empty());
    }
}
