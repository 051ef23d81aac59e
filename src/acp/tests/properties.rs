//! Properties of any input: no panic, no session that is stuck, and no dependence on how the bytes
//! are cut.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::fake::{FakeAgent, SESSION, mode, start};
use crate::{AgentTraits, Session, SessionReport, SessionStart};

/// Returns some JSON, with the words of the protocol among its texts.
fn any_json() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("s1".to_owned()),
        Just("text".to_owned()),
        Just("diff".to_owned()),
        Just("end_turn".to_owned()),
        Just("mode".to_owned()),
        ".{0,6}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((any_key(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_key() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "sessionId",
        "update",
        "sessionUpdate",
        "content",
        "type",
        "text",
        "toolCallId",
        "title",
        "kind",
        "status",
        "rawInput",
        "locations",
        "path",
        "options",
        "optionId",
        "name",
        "id",
        "currentValue",
        "value",
        "modes",
        "availableModes",
        "currentModeId",
        "models",
        "usage",
        "configOptions",
        "_meta",
        "codex",
        "error",
        "message",
        "data",
        "code",
        "toolCall",
        "stopReason",
        "cost",
        "amount",
        "used",
        "size",
        "entries",
        "plan",
        "authStatus",
        "outcome",
        "requestId",
        "$serde_json::private::Number",
        "$serde_json::private::RawValue",
    ])
    .prop_map(str::to_owned)
}

/// Returns one of the agent's messages, with odd values in places where others belong.
fn any_message() -> impl Strategy<Value = Value> {
    let kinds = prop::sample::select(vec![
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
        "available_commands_update",
        "current_mode_update",
        "config_option_update",
        "session_info_update",
        "usage_update",
        "someday",
    ]);
    let fields = || prop::collection::vec((any_key(), any_json()), 0..5);
    let with = |base: Value, fields: Vec<(String, Value)>| {
        let Value::Object(base) = base else { panic!("no object") };
        Value::Object(fields.into_iter().chain(base).collect())
    };
    let update = (kinds, fields()).prop_map(move |(kind, fields)| {
        let update = with(json!({"sessionUpdate": kind}), fields);
        let params = json!({"sessionId": SESSION, "update": update});
        json!({"method": "session/update", "params": params})
    });
    let ask = (any_json(), fields(), fields()).prop_map(move |(id, call, params)| {
        let call = with(json!({"toolCallId": "a"}), call);
        let options = json!([{"optionId": "y", "kind": "allow_once"}]);
        let base = json!({"sessionId": SESSION, "toolCall": call, "options": options});
        let params = with(base, params);
        json!({"id": id, "method": "session/request_permission", "params": params})
    });
    let methods = prop::sample::select(vec![
        "session/update",
        "session/request_permission",
        "$/cancel_request",
        "_auth/status_update",
        "fs/read_text_file",
    ]);
    let other = (methods, any_json(), any_json())
        .prop_map(|(method, id, params)| json!({"id": id, "method": method, "params": params}));
    let notification =
        any_json().prop_map(|params| json!({"method": "session/update", "params": params}));
    let reply = (0..8_u64, any_json()).prop_map(|(id, result)| json!({"id": id, "result": result}));
    let error = (0..8_u64, any_json()).prop_map(|(id, error)| json!({"id": id, "error": error}));
    prop_oneof![6 => update, 2 => ask, 1 => other, 1 => notification, 2 => reply, 1 => error,
        1 => any_json()]
}

/// Something that happens to a session.
#[derive(Debug, Clone)]
enum SessionStep {
    Line(Value),
    Bytes(Vec<u8>),
    Prompt,
    Cancel,
    Steer,
    SetMode,
    Answer(bool),
}

fn any_step() -> impl Strategy<Value = SessionStep> {
    prop_oneof![
        8 => any_message().prop_map(SessionStep::Line),
        1 => prop::collection::vec(any::<u8>(), 0..30).prop_map(SessionStep::Bytes),
        2 => Just(SessionStep::Prompt),
        1 => Just(SessionStep::Cancel),
        1 => Just(SessionStep::Steer),
        1 => Just(SessionStep::SetMode),
        1 => any::<bool>().prop_map(SessionStep::Answer),
    ]
}

fn take(session: &mut Session, step: SessionStep) -> Vec<SessionReport> {
    match step {
        SessionStep::Line(line) => return session.receive(format!("{line}\n").as_bytes()),
        SessionStep::Bytes(bytes) => return session.receive(&[&bytes[..], b"\n"].concat()),
        SessionStep::Prompt => {
            let is_free = session.is_free();
            assert_eq!(session.prompt("t", "x"), is_free);
        }
        SessionStep::Cancel => {
            let is_running = session.turn.is_some();
            assert_eq!(session.cancel(), is_running);
        }
        SessionStep::Steer => {
            session.steer("u", "x");
        }
        SessionStep::SetMode => session.set_mode(&mode("plan")),
        SessionStep::Answer(allow) => {
            let question = session.questions().next();
            let answer = question.map(|question| {
                (question.id, question.choose(allow).map(|option| option.id.clone()))
            });
            if let Some((id, option)) = answer {
                assert!(session.answer(id, option.as_deref()));
            }
        }
    }
    session.receive(b"")
}

/// Compares the reports of a turn with the state of the session.
fn check(session: &mut Session, reports: &[SessionReport], open_turns: &mut i32) {
    for report in reports {
        if let SessionReport::Ended(_) = report {
            *open_turns -= 1;
        }
    }
    assert_eq!(session.is_free(), session.is_ready() && *open_turns == 0);
    for line in String::from_utf8(session.take_output()).unwrap().lines() {
        let sent: Value = serde_json::from_str(line).unwrap();
        assert_eq!(sent["jsonrpc"], "2.0");
    }
}

proptest! {
    // A file in `src` would be taken for a crate.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_input_panics_or_leaves_a_ready_session_stuck(
        steps in prop::collection::vec(any_step(), 0..40),
    ) {
        let mut session = FakeAgent::ready(AgentTraits {
            failure_prefix: Some("Error: ".to_owned()),
            ..AgentTraits::default()
        }).session;
        let mut open_turns = 0;
        for step in steps {
            let was_running = session.turn.is_some();
            let reports = take(&mut session, step);
            if !was_running && session.turn.is_some() {
                open_turns += 1;
            }
            check(&mut session, &reports, &mut open_turns);
        }
        let reports = session.end();
        let ends = reports.iter().filter(|report| matches!(report, SessionReport::Ended(_))).count();
        prop_assert_eq!(ends, open_turns as usize);
        prop_assert_eq!(session.questions().count(), 0);
    }

    #[test]
    fn no_reply_during_the_start_panics(
        messages in prop::collection::vec(any_message(), 0..30),
        does_load in any::<bool>(),
    ) {
        let mut session = Session::new(SessionStart {
            load: does_load.then(|| SESSION.to_owned()),
            seek: vec!["x".to_owned()],
            modes: vec![mode("plan")],
            model: Some("m".to_owned()),
            ..start()
        });
        for message in messages {
            session.receive(format!("{message}\n").as_bytes());
            prop_assert!(!session.is_free() || session.is_ready());
        }
        session.end();
        prop_assert!(!session.is_ready());
    }

    #[test]
    fn reports_do_not_depend_on_how_bytes_are_cut(
        messages in prop::collection::vec(any_message(), 1..12),
        garbage in prop::collection::vec(any::<u8>(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut bytes = Vec::new();
        for message in messages {
            bytes.extend_from_slice(format!("{message}\r\n").as_bytes());
            bytes.extend_from_slice(&garbage);
            bytes.push(b'\n');
        }
        let new = || {
            let mut session = FakeAgent::ready(AgentTraits::default()).session;
            session.prompt("t", "x");
            session
        };
        let mut whole = new();
        let mut expected = whole.receive(&bytes);
        expected.extend(whole.end());
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        cuts.push(bytes.len());
        let mut session = new();
        let mut reports = Vec::new();
        let mut from = 0;
        for cut in cuts {
            reports.extend(session.receive(&bytes[from..cut]));
            from = cut;
        }
        reports.extend(session.end());
        prop_assert_eq!(reports, expected);
    }
}
