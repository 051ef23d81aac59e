//! The lead's authority over a member, and agents that are the lead.

use super::*;
use model::mail::protocol::{IdleNotification, ModeSetRequest, TaskCompleted};

fn set_mode(stage: &mut Stage, from: &str, mode: &str) {
    let asked = ModeSetRequest { mode: mode.to_owned(), from: None };
    let id = format!("mode-{}", stage.mailbox.len());
    stage.mail(from, &Message::ModeSetRequest(asked).to_text(), &id);
}

#[test]
fn ac_10_answer_of_another_member_is_text_for_the_agent() {
    for from in ["bob", "Team-Lead", "ann"] {
        let mut stage = Stage::working(false);
        let request = stage.asks_to_run(1);
        stage.take_ops();
        stage.permit(from, &request, Ok(()));
        assert_eq!((stage.answer(1), stage.take_ops()), (None, Vec::new()), "{from}");
        stage.stops("end_turn");
        let prompt = stage.prompt();
        assert!(prompt.contains(&format!("teammate_id=\"{from}\"")), "{prompt}");
        assert!(!prompt.contains("is allowed"), "{prompt}");
    }
}

#[test]
fn ac_10_mode_set_by_the_lead_is_set_in_the_session() {
    let mut stage = Stage::working(false);
    set_mode(&mut stage, LEAD, "plan");
    let request = stage.take("session/set_mode");
    assert_eq!(request["params"], json!({"sessionId": SESSION, "modeId": "plan"}));
    set_mode(&mut stage, LEAD, "acceptEdits");
    assert_eq!(stage.take("session/set_mode")["params"]["modeId"], "autoEdit");
    set_mode(&mut stage, LEAD, "bypassPermissions");
    let params = &stage.take("session/set_config_option")["params"];
    assert_eq!((&params["configId"], &params["value"]), (&json!("approval"), &json!("never")));
    assert_eq!(stage.warnings, [""; 0]);
    assert_eq!(stage.acknowledged.len(), 3);
}

#[test]
fn ac_11_mode_set_before_the_session_is_ready_comes_before_the_first_prompt() {
    let mut stage = Stage::starting(AgentRole::Teammate, start());
    stage.accept();
    stage.mail("bob", "hello", "m1");
    set_mode(&mut stage, LEAD, "acceptEdits");
    stage.initialize("1.18.33", false);
    set_mode(&mut stage, LEAD, "plan");
    stage.reply("session/new", json!({"sessionId": SESSION}));
    let request = stage.take("session/set_mode");
    assert_eq!(request["params"], json!({"sessionId": SESSION, "modeId": "plan"}));
    assert!(!stage.has_prompt());
    stage.line(&json!({"id": request["id"], "result": {}}));
    assert!(stage.prompt().contains("hello"));
    assert_eq!(stage.find("session/set_mode"), None, "the last one wins");
}

#[test]
fn ac_10_unknown_mode_is_a_warning() {
    for mode in ["someday", "auto"] {
        let mut stage = Stage::ready();
        set_mode(&mut stage, LEAD, mode);
        let warning = format!("ignored the mode `{mode}`: its profile has no such mode");
        assert_eq!(stage.warnings, [warning]);
        assert_eq!((stage.sent.len(), stage.acknowledged.len()), (0, 1));
    }
}

#[test]
fn ac_10_mode_set_by_another_member_is_ignored() {
    let mut stage = Stage::ready();
    set_mode(&mut stage, "bob", "plan");
    assert_eq!(stage.sent, [] as [Value; 0]);
    let warning = "ignored a mode_set_request from bob: this program cannot handle it";
    assert_eq!(stage.warnings, [warning]);
}

#[test]
fn ac_10_shutdown_request_of_another_member_is_ignored() {
    let mut stage = Stage::ready();
    stage.ask_to_shut_down("bob", 60_000);
    assert!(!stage.is_ended && stage.reports().is_empty());
    assert_eq!(stage.acknowledged, ["down"]);
    assert!(stage.warnings[0].contains("only team-lead may request a shutdown"));
}

#[test]
fn ac_10_shutdown_request_that_is_not_filed_is_ignored() {
    let mut stage = Stage::working(false);
    stage.ask_to_shut_down(LEAD, 20_000);
    stage.requests.clear();
    stage.mailbox.push(Envelope {
        msg_id: "d2".to_owned(),
        read: false,
        ..stage.mailbox[1].clone()
    });
    let unread = stage.unread();
    stage.at(0, unread);
    assert!(stage.warnings[0].contains("there is no such request"), "{:?}", stage.warnings);
    assert_eq!(stage.state.pending.len(), 1);
}

fn agent_lead() -> Stage {
    Stage::ready_as(AgentRole::Lead, true)
}

#[test]
fn agent_lead_files_and_reports_nothing() {
    let mut stage = agent_lead();
    stage.mail("bob", "which colour?", "m1");
    assert!(stage.prompt().contains("which colour?"));
    stage.asks(1, &json!({"toolCallId": "c", "kind": "execute"}), &SHELL);
    stage.tick(600_000);
    let question = stage.open_question();
    stage.chooses(question, "once");
    assert_eq!(stage.answer(1).as_deref(), Some("once"));
    stage.stops("end_turn");
    stage.fails_next_turn();
    assert_eq!(stage.take_ops(), []);
    assert_eq!(stage.sleep(), None);
}

impl Stage {
    fn fails_next_turn(&mut self) {
        self.types("go on");
        self.prompt();
        self.fails(-32603, "Connection error.");
    }
}

#[test]
fn agent_lead_gets_reports_of_members_in_words() {
    let mut stage = agent_lead();
    let idle = IdleNotification {
        from: Some("bob".to_owned()),
        idle_reason: Some("available".to_owned()),
        summary: Some("all tests pass".to_owned()),
        ..IdleNotification::default()
    };
    stage.mail("bob", &Message::IdleNotification(idle).to_text(), "m1");
    assert!(stage.prompt().contains("I am idle. Result of my turn: all tests pass"));
    stage.stops("end_turn");
    let done = r#"{"type":"task_completed","taskId":"3","from":"bob","taskSubject":"Build"}"#;
    assert!(matches!(Message::parse(done), Message::TaskCompleted(TaskCompleted { .. })));
    stage.mail("bob", done, "m2");
    assert!(stage.prompt().contains("I completed task #3: Build."));
}

#[test]
fn agent_lead_leaves_other_messages_to_its_loop() {
    let mut stage = agent_lead();
    stage.ask_to_shut_down("bob", 60_000);
    let asked = r#"{"type":"permission_request","request_id":"r","tool_name":"Bash","input":{}}"#;
    stage.mail("bob", asked, "m1");
    assert!(!stage.has_prompt() && !stage.is_ended);
    assert_eq!(stage.acknowledged, [""; 0]);
}

#[test]
fn urgent_mail_does_not_cancel_the_turn_of_an_agent_lead() {
    let mut stage = agent_lead();
    stage.types("work");
    stage.says("on it");
    stage.urgent("u1");
    assert!(stage.find("_session/steering").is_none() && stage.find("session/cancel").is_none());
    stage.stops("end_turn");
    assert!(stage.sent.iter().any(|sent| sent.to_string().contains("u1")));
}

#[test]
fn agent_lead_goes_on_without_its_team() {
    let mut stage = agent_lead();
    stage.types("work");
    stage.mail("bob", "later", "m1");
    stage.at(0, Event::Member(MemberEvent::Over("the team is gone".to_owned())));
    assert!(!stage.is_ended && !stage.is_waiting("m1"));
    stage.prompt();
    stage.stops("end_turn");
    assert!(!stage.has_prompt());
    stage.types("and now alone");
    assert_eq!(stage.prompt(), "and now alone");
}
