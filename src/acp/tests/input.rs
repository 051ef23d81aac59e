//! Input that is not as the protocol has it: garbage, long lines, and very many updates.

use serde_json::json;

use super::fake::{FakeAgent, SESSION, start};
use crate::{AgentTraits, Session, SessionReport};

fn ready() -> FakeAgent {
    FakeAgent::ready(AgentTraits::default())
}

fn text(text: &str) -> SessionReport {
    SessionReport::Text { message: None, text: text.to_owned() }
}

fn line_of(text: &str) -> String {
    format!(
        r#"{{"method":"session/update","params":{{"sessionId":"{SESSION}","update":
        {{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
    )
    .replace('\n', "")
}

#[test]
fn garbage_is_a_fault_and_the_session_goes_on() {
    let mut agent = ready();
    let lines = [
        "not json",
        "[]",
        "{}",
        "null",
        "7",
        r#"{"id":null}"#,
        r#"{"id":99,"result":{}}"#,
        r#"{"method":7}"#,
        r#"{"method":"session/update"}"#,
        r#"{"method":"session/update","params":{"sessionId":"s1"}}"#,
        r#"{"method":"session/update","params":{"sessionId":"s1","update":{}}}"#,
        r#"{"method":"session/update","params":{"sessionId":"s2","update":{}}}"#,
    ];
    for line in lines {
        let reports = agent.session.receive(format!("{line}\n").as_bytes());
        assert!(matches!(reports[..], [SessionReport::Fault(_)]), "{line}: {reports:?}");
    }
    assert!(agent.session.is_free());
    assert_eq!(agent.text("ok"), [text("ok")]);
}

#[test]
fn empty_lines_and_carriage_returns_are_accepted() {
    let mut agent = ready();
    let bytes = format!("\n  \n\r\n{}\r\n", line_of("a"));
    assert_eq!(agent.session.receive(bytes.as_bytes()), [text("a")]);
}

#[test]
fn broken_characters_do_not_lose_a_text() {
    let mut agent = ready();
    let mut bytes = line_of("a?b").into_bytes();
    let at = bytes.windows(3).position(|window| window == b"a?b").unwrap();
    bytes[at + 1] = 0xff;
    bytes.push(b'\n');
    assert_eq!(agent.session.receive(&bytes), [text("a\u{fffd}b")]);
    let bytes = format!("{}\n", line_of(r"half \ud83d"));
    assert_eq!(agent.session.receive(bytes.as_bytes()), [text("half \u{fffd}")]);
}

#[test]
fn deep_nesting_is_a_fault_at_most() {
    let mut agent = ready();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let update = json!({"sessionUpdate": "tool_call", "toolCallId": "a", "rawInput": "X"});
    let params = json!({"sessionId": SESSION, "update": update});
    let line = json!({"method": "session/update", "params": params}).to_string();
    let line = line.replace("\"X\"", &deep) + "\n";
    let reports = agent.session.receive(line.as_bytes());
    assert!(matches!(&reports[..], [SessionReport::Tool(call)] if call.input.is_null()));
    agent.session.receive(format!("{deep}\n").as_bytes());
    assert!(agent.session.is_free());
}

#[test]
fn long_line_is_read() {
    let mut agent = ready();
    let long = "x".repeat(600_000);
    let bytes = format!("{}\n", line_of(&long));
    let mut reports = Vec::new();
    for piece in bytes.as_bytes().chunks(4096) {
        reports.extend(agent.session.receive(piece));
    }
    assert_eq!(reports, [text(&long)]);
}

#[test]
fn line_above_the_limit_is_one_fault() {
    let mut session = Session::with_longest_line(start(), 1000);
    let bytes = format!("{}\n{}\nx\n", "x".repeat(5000), "y".repeat(1001));
    let expected = ["a line was skipped: it is too long"; 2].map(|text| text.to_owned());
    let faults: Vec<String> = session
        .receive(bytes.as_bytes())
        .into_iter()
        .filter_map(|report| match report {
            SessionReport::Fault(text) => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(faults[..2], expected);
    assert_eq!(faults[2..], ["a line is no message: x".to_owned()]);
}

#[test]
fn only_the_first_faults_are_reported() {
    let mut agent = ready();
    let reports = agent.session.receive("garbage \x1b[2J\n".repeat(100).as_bytes());
    assert_eq!(reports.len(), 20);
    assert_eq!(reports[0], SessionReport::Fault("a line is no message: garbage [2J".to_owned()));
    let reports = agent.session.end();
    assert_eq!(reports, [SessionReport::Fault("80 more faults were not reported".to_owned())]);
}

#[test]
fn excerpt_of_a_fault_is_short() {
    let mut agent = ready();
    let reports = agent.session.receive(format!("{}\n", "é".repeat(10_000)).as_bytes());
    match &reports[..] {
        [SessionReport::Fault(fault)] => assert!(fault.chars().count() < 150),
        other => panic!("{other:?}"),
    }
}

#[test]
fn last_line_without_an_end_is_read() {
    let mut agent = ready();
    assert_eq!(agent.session.receive(line_of("a").as_bytes()), []);
    assert_eq!(agent.session.end(), [text("a")]);
}

#[test]
fn many_updates_keep_only_the_calls_of_the_turn() {
    let mut agent = ready();
    agent.session.prompt("t", "x");
    for number in 0..20_000 {
        let update = if number % 4 == 0 {
            let id = (number / 40).to_string();
            json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "title": number,
                "status": "completed"})
        } else {
            json!({"sessionUpdate": "agent_message_chunk",
                "content": {"type": "text", "text": "Error: words "}})
        };
        let params = json!({"sessionId": SESSION, "update": update});
        let line = json!({"method": "session/update", "params": params});
        agent.session.receive(format!("{line}\n").as_bytes());
        assert!(agent.session.calls.len() <= 256);
    }
    assert_eq!(agent.session.take_output().iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(agent.session.early.is_empty());
}
