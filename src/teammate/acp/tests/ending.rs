//! The start of the agent, its exit, and shutdowns.

use super::super::super::event::OpFailure;
use super::*;
use sys::signal::Signal;

fn exit_words(stage: &Stage) -> Vec<&str> {
    let notices = stage.shown.iter().filter_map(|shown| match shown {
        ConversationUpdate::Notice(text) => Some(text.as_str()),
        _ => None,
    });
    notices.collect()
}

#[test]
fn ac_09_exit_of_the_agent_is_a_failure() {
    for (code, exit) in [(0, 1), (3, 3), (137, 137)] {
        let mut stage = Stage::working(false);
        stage.exits(code, Some("out of memory"));
        assert_eq!(stage.state.end, Some(exit));
        let words = format!("the agent has exited with code {code}; it said last: out of memory");
        assert_eq!(exit_words(&stage), [words]);
        assert!(!stage.has_prompt());
    }
}

#[test]
fn ac_09_agent_that_exits_before_it_is_ready_has_failed() {
    let mut stage = Stage::starting(AgentRole::Teammate, start());
    stage.exits(0, Some("no such model"));
    assert!(stage.state.end.is_some_and(|code| code != 0), "{:?}", stage.state.end);
    assert!(exit_words(&stage).iter().any(|words| words.contains("no such model")));
}

#[test]
fn ac_09_idle_agent_agrees_to_a_shutdown() {
    let mut stage = Stage::ready();
    let request = stage.ask_to_shut_down(LEAD, 60_000);
    let reports = stage.reports();
    let [Message::ShutdownApproved(answer)] = reports[..] else { panic!("{reports:?}") };
    assert_eq!(answer.request_id, request.id.to_string());
    assert!(stage.is_ended);
    assert_eq!(stage.acknowledged, ["down"]);
    stage.exits(0, Some("bye"));
    assert_eq!(stage.state.end, Some(0));
    assert_eq!(exit_words(&stage), [""; 0], "it was asked to");
}

#[test]
fn ac_09_agent_that_agreed_gets_nothing_and_ends_after_its_reports() {
    let mut stage = Stage::ready();
    stage.is_stuck = true;
    stage.ask_to_shut_down(LEAD, 60_000);
    assert!(stage.state.agreed && !stage.is_ended);
    stage.mail("bob", "one more", "m1");
    stage.types("and this");
    assert!(!stage.has_prompt());
    // The first attempt fails, and is repeated a second later.
    let failure = OpFailure { text: "no space".to_owned(), lasting: false };
    stage.at(0, Event::Member(MemberEvent::Done(Err(failure))));
    assert_eq!(stage.warnings, ["no space"]);
    stage.is_stuck = false;
    assert!(!stage.is_ended);
    assert_eq!(stage.sleep(), Some(1000));
    assert!(matches!(stage.reports()[..], [Message::ShutdownApproved(_)]));
    assert!(stage.is_ended && !stage.has_prompt());
    assert_eq!(stage.acknowledged, ["down"], "the message stays unread");
}

#[test]
fn ac_09_busy_agent_is_left_to_the_deadline() {
    let mut stage = Stage::working(false);
    stage.ask_to_shut_down(LEAD, 20_000);
    stage.tick(19_999);
    assert!(stage.reports().is_empty());
    assert_eq!(stage.state.pending.len(), 1);
}

#[test]
fn ac_09_busy_agent_agrees_if_its_turn_ends_in_time() {
    let mut stage = Stage::working(false);
    stage.ask_to_shut_down(LEAD, 20_000);
    stage.tick(10_000);
    stage.stops("end_turn");
    assert!(matches!(stage.reports()[..], [.., Message::ShutdownApproved(_)]));
    assert!(stage.is_ended);
}

#[test]
fn ac_09_agent_that_asks_or_starts_is_left_to_the_deadline() {
    let mut asking = Stage::working(false);
    asking.asks_to_run(1);
    let mut starting = Stage::starting(AgentRole::Teammate, start());
    starting.accept();
    for mut stage in [asking, starting] {
        let before = stage.reports().len();
        stage.ask_to_shut_down(LEAD, 1000);
        stage.tick(999);
        assert_eq!(stage.reports().len(), before);
        assert!(!stage.is_ended && stage.state.pending.len() == 1);
    }
}

#[test]
fn ac_09_request_that_ended_otherwise_needs_no_answer() {
    let mut stage = Stage::working(false);
    let mut request = stage.ask_to_shut_down(LEAD, 60_000);
    request.outcome = Some(model::decisions::request::ShutdownOutcome::Gone);
    let requests = Requests::from([(request.id.to_string(), Ok(request))]);
    stage.at(0, Event::Member(MemberEvent::Requests(requests)));
    stage.stops("end_turn");
    assert!(!stage.is_ended);
    assert_eq!(stage.reports().len(), 1, "only the idle notification");
}

#[test]
fn ac_09_agent_that_does_not_exit_is_left_after_15_s() {
    let ends = [
        (Event::Person(ConversationAction::Leave), 0),
        (Event::Signal(Signal::Terminate), Signal::Terminate.exit_code()),
        (Event::Member(MemberEvent::Over("the team is gone".to_owned())), 0),
    ];
    for (event, code) in ends {
        let mut stage = Stage::working(false);
        stage.at(0, event.clone());
        assert!(stage.is_ended && stage.state.end.is_none(), "{event:?}");
        stage.is_ended = false;
        stage.at(0, event.clone());
        assert!(!stage.is_ended, "once: {event:?}");
        stage.mail("bob", "hello", "m2");
        stage.says("still here");
        stage.tick(14_999);
        assert_eq!(stage.state.end, None, "{event:?}");
        assert_eq!(stage.sleep(), Some(1));
        assert_eq!(stage.state.end, Some(code), "{event:?}");
        assert!(!stage.has_prompt());
    }
}

#[test]
fn ac_12_exit_withdraws_the_requests_of_open_questions() {
    type End = fn(&mut Stage);
    let ends: [End; 3] = [
        |stage| stage.exits(137, None),
        |stage| {
            stage.at(0, Event::Person(ConversationAction::Leave));
            stage.exits(0, None);
        },
        |stage| {
            stage.at(0, Event::Signal(Signal::Terminate));
            stage.tick(15_000);
        },
    ];
    for end in ends {
        let mut stage = Stage::working(false);
        let requests = [stage.asks_to_run(1), stage.asks_to_run(2)];
        stage.take_ops();
        end(&mut stage);
        let withdrawals = requests.map(|request| OutboundOp::Withdraw(request, None));
        assert_eq!(stage.take_ops(), withdrawals);
        assert!(stage.state.end.is_some());
    }
}

/// AC-26: nothing is written to an agent any more once it is to end.
#[test]
fn ac_26_answer_while_the_agent_is_ended_is_not_reported_as_taken() {
    let mut stage = Stage::working(false);
    let request = stage.asks_to_run(1);
    stage.take_ops();
    stage.at(0, Event::Person(ConversationAction::Leave));
    let question = stage.open_question();
    stage.chooses(question, "once");
    stage.permit(LEAD, &request, Ok(()));
    stage.exits(0, None);
    assert_eq!(stage.answer(1), None);
    assert_eq!(stage.take_ops(), [OutboundOp::Withdraw(request, None)]);
}

#[test]
fn ac_12_reports_that_wait_are_sent_after_the_exit() {
    let mut stage = Stage::working(false);
    stage.is_stuck = true;
    stage.stops("end_turn");
    stage.exits(1, None);
    assert_eq!(stage.state.end, None);
    let failure = OpFailure { text: "no space".to_owned(), lasting: false };
    stage.at(0, Event::Member(MemberEvent::Done(Err(failure))));
    stage.is_stuck = false;
    assert_eq!((stage.sleep(), stage.state.end), (Some(1000), Some(1)));
    let ops = stage.take_ops();
    let [OutboundOp::MoveOn(..), OutboundOp::Send(idle)] = &ops[..] else { panic!("{ops:?}") };
    assert!(matches!(**idle, Message::IdleNotification(_)));
}

#[test]
fn ac_12_files_that_fail_delay_the_end_by_5_s() {
    let mut stage = Stage::working(false);
    stage.asks_to_run(1);
    stage.is_stuck = true;
    stage.exits(3, None);
    let failure = OpFailure { text: "no space".to_owned(), lasting: false };
    for _ in 0..4 {
        stage.at(0, Event::Member(MemberEvent::Done(Err(failure.clone()))));
        assert_eq!((stage.sleep(), stage.state.end), (Some(1000), None));
    }
    // The last attempt has no result at all.
    assert_eq!((stage.sleep(), stage.state.end), (Some(1000), Some(3)));
}

#[test]
fn ac_12_end_after_the_exit_is_not_delayed_for_a_team_or_person_that_is_gone() {
    for event in [
        Event::Person(ConversationAction::Leave),
        Event::Signal(Signal::Terminate),
        Event::Member(MemberEvent::Over("the team is gone".to_owned())),
    ] {
        let mut stage = Stage::working(false);
        stage.asks_to_run(1);
        stage.is_stuck = true;
        stage.exits(3, None);
        assert_eq!(stage.state.end, None);
        stage.at(0, event);
        assert_eq!(stage.state.end, Some(3));
    }
}

#[test]
fn agent_that_refuses_its_session_is_ended() {
    let mut stage = Stage::starting(AgentRole::Teammate, start());
    stage.initialize("1.18.33", false);
    let id = stage.take("session/new")["id"].clone();
    stage.line(&json!({"id": id, "error": {"code": -32000, "message": "Log in first"}}));
    assert_eq!(stage.warnings, ["Log in first"]);
    assert!(stage.is_ended);
    stage.exits(0, None);
    assert_eq!(stage.state.end, Some(1));
}

#[test]
fn old_agent_is_named_with_what_to_install() {
    let warning = |version| {
        let mut stage = Stage::starting(AgentRole::Teammate, start());
        stage.initialize(version, false);
        assert_eq!(exit_words(&stage), stage.warnings);
        stage.warnings.pop()
    };
    for version in ["1.18.33", "1.18.2", "1.19.0", "2.0.0", "1.18.33-beta.1", "nightly", ""] {
        assert_eq!(warning(version), None, "{version}");
    }
    for version in ["1.17.99", "0.49.0", "1.9.40"] {
        let text = warning(version).unwrap_or_else(|| panic!("{version} is old"));
        assert!(text.contains(&format!("fake {version} is older than 1.18.33")), "{text}");
        assert!(text.ends_with(": `npm i agent`"), "{text}");
    }
}

#[test]
fn mail_that_cannot_be_read_is_tried_again_after_a_pause() {
    for (lasting, pause) in [(false, 1000), (true, 60_000)] {
        let mut stage = Stage::ready();
        let failure = OpFailure { text: "no space".to_owned(), lasting };
        stage.mailbox.push(message("bob", "hello", "m1"));
        stage.at(0, Event::Member(MemberEvent::NoMail(failure)));
        assert_eq!(stage.warnings, ["no space"]);
        assert!(!stage.has_prompt());
        assert_eq!(stage.sleep(), Some(pause));
        assert!(stage.has_prompt());
    }
}
