//! The start of a session: initialize, load or make, choose model and mode.

use serde_json::{Value, json};

use super::fake::{FakeAgent, SESSION, chunk, mode, start};
use crate::{
    AgentCommand, FailureKind, McpServer, ModeChoice, Session, SessionMode, SessionReport,
    SessionStart,
};

fn loading(seek: &[&str]) -> SessionStart {
    let seek = seek.iter().map(|text| (*text).to_owned()).collect();
    SessionStart { load: Some(SESSION.to_owned()), seek, ..start() }
}

fn can_load() -> Value {
    json!({"agentCapabilities": {"loadSession": true}})
}

fn modes(current: &str, ids: &[&str]) -> Value {
    let ids: Vec<Value> = ids.iter().map(|id| json!({"id": id, "name": id})).collect();
    json!({"currentModeId": current, "availableModes": ids})
}

fn option(id: &str, current: &str, values: &[&str]) -> Value {
    let values: Vec<Value> = values.iter().map(|id| json!({"value": id, "name": id})).collect();
    json!({"id": id, "name": id, "type": "select", "currentValue": current, "options": values})
}

fn refusal(reports: &[SessionReport]) -> &str {
    match reports.last() {
        Some(SessionReport::Refused(failure)) => &failure.said,
        other => panic!("not refused: {other:?}"),
    }
}

fn ready(is_loaded: bool, found: &[&str]) -> SessionReport {
    let found = found.iter().map(|text| (*text).to_owned()).collect();
    SessionReport::Ready { session: SESSION.to_owned(), is_loaded, found }
}

#[test]
fn initialize_declares_no_files_and_no_terminal() {
    let mut agent = FakeAgent::new(start());
    let sent = agent.request("initialize");
    assert_eq!(sent["jsonrpc"], "2.0");
    let expected = json!({
        "protocolVersion": 1,
        "clientInfo": {"name": "phalanx", "version": "1.2.3"},
        "clientCapabilities": {
            "fs": {"readTextFile": false, "writeTextFile": false},
            "terminal": false,
        },
    });
    assert_eq!(sent["params"], expected);
}

#[test]
fn initialized_session_is_not_free_yet() {
    let start = SessionStart { cwd: "/work".to_owned(), ..SessionStart::default() };
    let mut session = Session::new(start);
    let line = String::from_utf8(session.take_output()).expect("text");
    assert!(line.contains("\"initialize\"") && line.ends_with('\n'), "{line}");
    let reply = br#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;
    let reports = session.receive(&[reply, &b"\n"[..]].concat());
    assert!(matches!(reports[..], [SessionReport::Initialized(_)]), "{reports:?}");
    assert!(!session.is_free());
}

#[test]
fn agent_describes_itself() {
    let mut agent = FakeAgent::new(start());
    agent.initialize(json!({
        "agentInfo": {"name": "gemini-cli", "version": "0.61.0"},
        "agentCapabilities": {
            "loadSession": true,
            "sessionCapabilities": {"resume": {}, "list": null},
            "_meta": {"steering": {"supported": true}},
        },
        "authMethods": [{"id": "a", "name": "Log in"}, {"id": "b"}, 7],
    }));
    let info = &agent.session.agent;
    assert_eq!((&*info.name, &*info.version), ("gemini-cli", "0.61.0"));
    assert!(info.can_load && info.can_resume && !info.can_list && info.can_steer);
    assert_eq!(info.logins, ["Log in", "b"]);
    assert_eq!(agent.reports, [SessionReport::Initialized(info.clone())]);
}

#[test]
fn new_session_gets_directory_and_servers() {
    let server = McpServer {
        name: "phx".to_owned(),
        command: "/bin/phalanx".to_owned(),
        args: vec!["mcp".to_owned()],
        env: vec![("TEAM".to_owned(), "a".to_owned())],
    };
    let mut agent = FakeAgent::new(SessionStart { mcp: vec![server], ..start() });
    agent.initialize(json!({}));
    let expected = json!({"cwd": "/work", "mcpServers": [{
        "name": "phx", "command": "/bin/phalanx", "args": ["mcp"],
        "env": [{"name": "TEAM", "value": "a"}],
    }]});
    let sent = agent.request("session/new");
    assert_eq!(sent["params"], expected);
    assert!(!agent.session.is_ready());
    let reports = agent.feed(&json!({"id": sent["id"], "result": {"sessionId": SESSION}}));
    assert_eq!(reports, [ready(false, &[])]);
    assert_eq!(agent.session.id.as_deref(), Some(SESSION));
    assert!(agent.session.is_ready() && agent.session.is_free());
}

#[test]
fn refused_start_has_the_reason_and_its_kind() {
    let mut agent = FakeAgent::new(start());
    agent.initialize(json!({}));
    let error = json!({"code": -32000, "message": "Authentication required"});
    let reports = agent.reply_error("session/new", error);
    match &reports[..] {
        [SessionReport::Refused(failure)] => assert_eq!(failure.kind, FailureKind::NeedsLogin),
        other => panic!("{other:?}"),
    }
    assert!(!agent.session.is_ready() && !agent.session.prompt("t", "x"));
}

#[test]
fn start_without_usable_replies_is_refused() {
    let mut agent = FakeAgent::new(start());
    let reports = agent.reply("initialize", json!({"protocolVersion": 2}));
    assert_eq!(refusal(&reports), "the agent needs version 2 of the protocol, not 1");
    let mut agent = FakeAgent::new(start());
    let error = json!({"code": -32603, "message": "no"});
    assert_eq!(refusal(&agent.reply_error("initialize", error)), "no");
    let mut agent = FakeAgent::new(start());
    agent.initialize(json!({}));
    let reports = agent.reply("session/new", Value::Null);
    assert_eq!(refusal(&reports), "the agent's new session has no id");
}

#[test]
fn updates_before_the_session_has_an_id_are_kept() {
    let mut agent = FakeAgent::new(start());
    agent.initialize(json!({}));
    let commands = json!({"sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "memory", "description": "d"}]});
    assert_eq!(agent.update(commands.clone()), []);
    assert_eq!(agent.update_of("other", commands), []);
    let reports = agent.reply("session/new", json!({"sessionId": SESSION}));
    let command = AgentCommand { name: "memory".to_owned(), about: "d".to_owned() };
    assert_eq!(reports, [SessionReport::Commands(vec![command]), ready(false, &[])]);
}

#[test]
fn replay_is_reported_and_searched() {
    let mut agent = FakeAgent::new(loading(&["tag-2", "tag-1", "tag-3"]));
    agent.initialize(can_load());
    let sent = agent.request("session/load");
    let expected = json!({"cwd": "/work", "mcpServers": [], "sessionId": SESSION});
    assert_eq!(sent["params"], expected);
    agent.reports.clear();
    agent.update(chunk("user_message_chunk", "first ta"));
    agent.update(chunk("user_message_chunk", "g-1"));
    agent.text("answer");
    agent.update(chunk("user_message_chunk", "tag"));
    agent.update(chunk("agent_thought_chunk", "hm"));
    agent.update(chunk("user_message_chunk", "-3 and tag-2"));
    agent.feed(&json!({"id": sent["id"], "result": null}));
    let user = |text: &str| SessionReport::User(text.to_owned());
    let text = SessionReport::Text { message: None, text: "answer".to_owned() };
    let expected = [
        user("first tag-1"),
        text,
        user("tag"),
        SessionReport::Thought("hm".to_owned()),
        user("-3 and tag-2"),
        ready(true, &["tag-2", "tag-1"]),
    ];
    assert_eq!(agent.reports, expected);
}

#[test]
fn messages_with_ids_of_their_own_are_apart() {
    let mut agent = FakeAgent::new(loading(&["ab"]));
    agent.initialize(can_load());
    for (id, text) in [("1", "a"), ("2", "b")] {
        let mut update = chunk("user_message_chunk", text);
        update["messageId"] = json!(id);
        agent.update(update);
    }
    let reports = agent.reply("session/load", json!({}));
    assert_eq!(reports, [SessionReport::User("b".to_owned()), ready(true, &[])]);
}

#[test]
fn session_is_resumed_if_it_cannot_be_loaded() {
    let mut agent = FakeAgent::new(loading(&[]));
    agent.initialize(json!({"agentCapabilities": {"sessionCapabilities": {"resume": {}}}}));
    let reports = agent.reply("session/resume", json!({}));
    assert_eq!(reports, [ready(true, &[])]);
}

#[test]
fn failed_load_is_reported_and_a_session_is_made() {
    let mut agent = FakeAgent::new(loading(&["tag"]));
    agent.initialize(can_load());
    agent.update(chunk("user_message_chunk", "tag"));
    let error = json!({"code": -32603, "message": "Internal error",
        "data": {"details": "Invalid session identifier"}});
    let reports = agent.reply_error("session/load", error);
    let Some(SessionReport::Refused(failure)) = reports.last() else { panic!("{reports:?}") };
    let why = format!("{SESSION} cannot be continued: Invalid session identifier");
    assert!(failure.said.ends_with(&why), "{failure:?}");
}

#[test]
fn agent_that_cannot_load_is_refused() {
    let mut agent = FakeAgent::new(loading(&[]));
    let reports = agent.initialize(json!({}));
    assert!(matches!(reports.last(), Some(SessionReport::Refused(_))));
}

#[test]
fn mode_is_set_and_confirmed_before_ready() {
    for load in [None, Some(SESSION.to_owned())] {
        let mut agent =
            FakeAgent::new(SessionStart { modes: vec![mode("default")], load, ..start() });
        agent.initialize(can_load());
        let method =
            if agent.session.start.load.is_some() { "session/load" } else { "session/new" };
        let offers = modes("auto", &["auto", "default"]);
        let reports = agent.reply(method, json!({"sessionId": SESSION, "modes": offers}));
        assert!(matches!(&reports[..], [SessionReport::Mode { current, .. }] if current == "auto"));
        assert!(!agent.session.is_ready());
        let sent = agent.request("session/set_mode");
        assert_eq!(sent["params"], json!({"sessionId": SESSION, "modeId": "default"}));
        let reports = agent.feed(&json!({"id": sent["id"], "result": {}}));
        let choices =
            ["auto", "default"].map(|id| SessionMode { id: id.to_owned(), name: id.to_owned() });
        let mode =
            SessionReport::Mode { current: "default".to_owned(), available: choices.to_vec() };
        assert_eq!(reports[0], mode);
        assert!(agent.session.is_ready());
    }
}

#[test]
fn mode_that_is_not_offered_is_refused() {
    let mut agent = FakeAgent::new(SessionStart { modes: vec![mode("yolo")], ..start() });
    agent.initialize(json!({}));
    let offers = json!({"sessionId": SESSION, "modes": modes("auto", &["auto", "plan"])});
    let reports = agent.reply("session/new", offers);
    assert_eq!(refusal(&reports), "the agent has no mode yolo; it offers auto, plan");
}

#[test]
fn mode_that_the_agent_refuses_is_refused() {
    let mut agent = FakeAgent::new(SessionStart { modes: vec![mode("plan")], ..start() });
    agent.initialize(json!({}));
    // An agent that lists no modes is asked.
    agent.reply("session/new", json!({"sessionId": SESSION}));
    let error = json!({"code": -32602, "message": "Bad mode"});
    let reports = agent.reply_error("session/set_mode", error);
    assert_eq!(refusal(&reports), "the agent refuses the mode plan: Bad mode");
}

#[test]
fn mode_can_be_an_option() {
    let by_id = ModeChoice::Option { id: "mode".to_owned(), value: "plan".to_owned() };
    for choice in [mode("plan"), by_id] {
        let mut agent = FakeAgent::new(SessionStart { modes: vec![choice], ..start() });
        agent.initialize(json!({}));
        let options = json!([option("mode", "build", &["build", "plan"])]);
        agent.reply("session/new", json!({"sessionId": SESSION, "configOptions": options}));
        let sent = agent.request("session/set_config_option");
        let expected = json!({"sessionId": SESSION, "configId": "mode", "value": "plan"});
        assert_eq!(sent["params"], expected);
        let options = json!([option("mode", "plan", &["build", "plan"])]);
        let result = json!({"configOptions": options});
        let reports = agent.feed(&json!({"id": sent["id"], "result": result}));
        assert!(matches!(&reports[0], SessionReport::Mode { current, .. } if current == "plan"));
        assert!(agent.session.is_ready());
    }
}

#[test]
fn option_that_keeps_its_value_is_refused() {
    let choice = ModeChoice::Option { id: "mode".to_owned(), value: "plan".to_owned() };
    let mut agent = FakeAgent::new(SessionStart { modes: vec![choice], ..start() });
    agent.initialize(json!({}));
    let options = json!([option("mode", "build", &["build", "plan"])]);
    agent.reply("session/new", json!({"sessionId": SESSION, "configOptions": options}));
    let reports = agent.reply("session/set_config_option", json!({"configOptions": options}));
    assert_eq!(refusal(&reports), "the option mode is still build");
}

#[test]
fn unknown_options_and_values_are_refused() {
    let cases = [
        ("mood", "x", "the agent has no option mood; it offers mode"),
        ("mode", "x", "the option mode has no value x; it offers build, plan"),
    ];
    for (id, value, why) in cases {
        let choice = ModeChoice::Option { id: id.to_owned(), value: value.to_owned() };
        let mut agent = FakeAgent::new(SessionStart { modes: vec![choice], ..start() });
        agent.initialize(json!({}));
        let options = json!([option("mode", "build", &["build", "plan"])]);
        let offers = json!({"sessionId": SESSION, "configOptions": options});
        assert_eq!(refusal(&agent.reply("session/new", offers)), why);
    }
}

#[test]
fn switch_is_sent_as_a_boolean() {
    let choice = ModeChoice::Option { id: "allow_all".to_owned(), value: "on".to_owned() };
    let mut agent = FakeAgent::new(SessionStart { modes: vec![choice], ..start() });
    agent.initialize(json!({}));
    let options = json!([{"id": "allow_all", "type": "boolean", "currentValue": false}]);
    agent.reply("session/new", json!({"sessionId": SESSION, "configOptions": options}));
    let params = agent.sent()[0]["params"].clone();
    assert_eq!((&params["type"], &params["value"]), (&json!("boolean"), &json!(true)));
    agent.reply("session/set_config_option", json!({}));
    assert!(agent.session.is_ready());
}

#[test]
fn model_is_chosen_where_the_agent_offers_it() {
    let option = json!([option("model", "a", &["a", "b"])]);
    let models = json!({"currentModelId": "a", "availableModels": [
        {"modelId": "a", "name": "A"}, {"modelId": "$runtime|b", "id": "x", "name": "b"}]});
    let grouped = json!([{"id": "m", "category": "model", "currentValue": "a",
        "options": [{"group": "g", "name": "G", "options": [{"value": "b", "name": "B"}]}]}]);
    let cases = [
        (json!({"configOptions": option}), "session/set_config_option", "value", "b"),
        (json!({"configOptions": grouped}), "session/set_config_option", "value", "b"),
        (json!({"models": models}), "session/set_model", "modelId", "$runtime|b"),
        (json!({}), "session/set_model", "modelId", "b"),
    ];
    for (offers, method, field, value) in cases {
        let mut agent = FakeAgent::new(SessionStart { model: Some("b".to_owned()), ..start() });
        agent.initialize(json!({}));
        let mut result = offers;
        result["sessionId"] = json!(SESSION);
        agent.reply("session/new", result);
        let sent = agent.request(method);
        assert_eq!(sent["params"][field], value);
        agent.feed(&json!({"id": sent["id"], "result": {}}));
        assert!(agent.session.is_ready());
    }
}

#[test]
fn refused_model_names_the_others() {
    let mut agent = FakeAgent::new(SessionStart { model: Some("x".to_owned()), ..start() });
    agent.initialize(json!({}));
    let models = json!({"currentModelId": "a", "availableModels": [{"modelId": "a"}]});
    let reports = agent.reply("session/new", json!({"sessionId": SESSION, "models": models}));
    assert_eq!(reports, [SessionReport::Model("a".to_owned())]);
    let error = json!({"code": -32603, "message": "No such model"});
    let reports = agent.reply_error("session/set_model", error);
    let expected = "the agent refuses the model x: No such model; it offers a";
    assert_eq!(refusal(&reports), expected);
}

#[test]
fn mode_is_set_after_the_model() {
    let choices =
        SessionStart { model: Some("b".to_owned()), modes: vec![mode("plan")], ..start() };
    let mut agent = FakeAgent::new(choices);
    agent.initialize(json!({}));
    agent.reply("session/new", json!({"sessionId": SESSION}));
    agent.reply("session/set_model", json!({}));
    assert!(!agent.session.is_ready());
    agent.reply("session/set_mode", json!({}));
    assert!(agent.session.is_ready());
}

#[test]
fn modes_of_the_start_are_set_one_after_the_other() {
    // As codex, which plans in an option beside its mode.
    let plan = ModeChoice::Option { id: "collaboration".to_owned(), value: "plan".to_owned() };
    let choices = SessionStart { modes: vec![mode("read-only"), plan], ..start() };
    let mut agent = FakeAgent::new(choices);
    agent.initialize(json!({}));
    agent.reply("session/new", json!({"sessionId": SESSION}));
    let sent = agent.take_sent();
    assert_eq!(sent.last().unwrap()["params"]["modeId"], "read-only");
    agent.feed(&json!({"id": sent.last().unwrap()["id"], "result": {}}));
    assert!(!agent.session.is_ready());
    let sent = agent.request("session/set_config_option");
    assert_eq!(sent["params"]["value"], "plan");
    let error = json!({"id": sent["id"], "error": {"code": -32602, "message": "no"}});
    assert_eq!(refusal(&agent.feed(&error)), "the agent refuses the collaboration plan: no");
}

#[test]
fn mode_changes_while_ready() {
    let modes = modes("default", &["default", "plan"]);
    let mut agent = FakeAgent::ready_with(start(), json!({"modes": modes}));
    agent.session.set_mode(&mode("plan"));
    // The agent reports the mode before it confirms it.
    let reports = agent.update(json!({
        "sessionUpdate": "current_mode_update", "currentModeId": "plan"}));
    assert!(matches!(&reports[..], [SessionReport::Mode { current, .. }] if current == "plan"));
    let reports = agent.reply("session/set_mode", json!({}));
    assert!(matches!(&reports[..], [SessionReport::Mode { current, .. }] if current == "plan"));
    agent.session.set_mode(&mode("default"));
    let error = json!({"code": -32603, "message": "no"});
    let reports = agent.reply_error("session/set_mode", error);
    let why = "the agent refuses the mode default: no; it offers default, plan";
    assert_eq!(reports, [SessionReport::Notice(why.to_owned())]);
    agent.session.set_mode(&mode("yolo"));
    let why = "the agent has no mode yolo; it offers default, plan";
    assert_eq!(agent.session.receive(b""), [SessionReport::Notice(why.to_owned())]);
    assert!(agent.session.is_free());
}

/// Plays a start in four replies. Before each of them, the owner asks for these modes.
fn play_start(asked_at: [&[&str]; 4]) -> FakeAgent {
    let choices =
        SessionStart { model: Some("b".to_owned()), modes: vec![mode("default")], ..start() };
    let mut agent = FakeAgent::new(choices);
    let offers = modes("auto", &["auto", "default", "plan", "edit"]);
    for (step, modes) in asked_at.into_iter().enumerate() {
        modes.iter().for_each(|id| agent.session.set_mode(&mode(id)));
        match step {
            0 => drop(agent.initialize(json!({}))),
            1 => drop(agent.reply("session/new", json!({"sessionId": SESSION, "modes": offers}))),
            2 => drop(agent.reply("session/set_model", json!({}))),
            _ => drop(agent.reply("session/set_mode", json!({}))),
        }
    }
    agent
}

#[test]
fn last_mode_of_those_set_during_the_start_is_confirmed_before_ready() {
    let starts: [[&[&str]; 4]; 5] = [
        [&["edit", "plan"], &[], &[], &[]],
        [&["edit"], &["plan"], &[], &[]],
        [&["yolo"], &[], &["plan"], &[]],
        [&[], &[], &[], &["edit", "plan"]],
        [&["plan"], &[], &[], &["plan"]],
    ];
    for asked_at in starts {
        let mut agent = play_start(asked_at);
        assert!(!agent.session.is_ready() && !agent.session.prompt("t", "x"), "{asked_at:?}");
        let sent = agent.request("session/set_mode");
        assert_eq!(sent["params"]["modeId"], "plan", "{asked_at:?}");
        let reports = agent.feed(&json!({"id": sent["id"], "result": {}}));
        let [SessionReport::Mode { current, .. }, SessionReport::Ready { .. }] = &reports[..]
        else {
            panic!("{reports:?}")
        };
        assert_eq!(current, "plan");
        assert_eq!(agent.take_sent(), [] as [Value; 0], "{asked_at:?}");
    }
}

#[test]
fn mode_set_during_the_start_that_is_refused_leaves_that_of_the_start() {
    let agent = play_start([&["yolo"], &[], &[], &[]]);
    let why = "the agent has no mode yolo; it offers auto, default, plan, edit";
    assert!(agent.reports.contains(&SessionReport::Notice(why.to_owned())));
    assert!(agent.session.is_free());

    let mut agent = play_start([&["plan"], &[], &[], &[]]);
    let reports = agent.reply_error("session/set_mode", json!({"code": -32603, "message": "no"}));
    let [SessionReport::Notice(why), SessionReport::Ready { .. }] = &reports[..] else {
        panic!("{reports:?}")
    };
    assert!(why.starts_with("the agent refuses the mode plan: no"), "{why}");
    assert!(agent.session.is_free());
}

#[test]
fn mode_set_while_another_is_confirmed_follows_it() {
    let mut agent = play_start([&["edit"], &[], &[], &[]]);
    agent.session.set_mode(&mode("plan"));
    agent.reply("session/set_mode", json!({}));
    assert!(!agent.session.is_ready());
    assert_eq!(agent.request("session/set_mode")["params"]["modeId"], "plan");
}

#[test]
fn exit_during_the_start_refuses_the_session() {
    let mut agent = FakeAgent::new(start());
    assert_eq!(refusal(&agent.session.end()), "the agent has exited");
    assert_eq!(agent.session.end(), []);
}
