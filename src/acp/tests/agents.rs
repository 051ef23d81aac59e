//! The six agents, each with what it was seen to do: at a second prompt, a cancellation, a
//! rejection, and a failure of its API.

use serde_json::{Value, json};

use super::fake::{FakeAgent, chunk, ended};
use crate::{AgentTraits, FailureKind, Outcome, SessionReport, UsageBasis};

/// One end of a turn of an agent.
struct SeenEnd {
    agent: &'static str,
    /// The agent sends these before its reply.
    updates: Vec<Value>,
    is_cancelled: bool,
    /// The result, or else the error.
    reply: Result<Value, Value>,
    outcome: SeenOutcome,
}

#[derive(Debug, PartialEq)]
enum SeenOutcome {
    Done,
    Cancelled,
    Failed(FailureKind),
}

pub(super) fn traits(agent: &str) -> AgentTraits {
    match agent {
        "copilot" => {
            AgentTraits { usage: UsageBasis::Session, failure_prefix: Some("Error: ".to_owned()) }
        }
        "opencode" => AgentTraits { usage: UsageBasis::Request, failure_prefix: None },
        _ => AgentTraits::default(),
    }
}

fn stop(reason: &str) -> Result<Value, Value> {
    Ok(json!({"stopReason": reason}))
}

fn error(code: i64, message: &str, data: Value) -> Result<Value, Value> {
    Err(json!({"code": code, "message": message, "data": data}))
}

fn text(text: &str) -> Value {
    chunk("agent_message_chunk", text)
}

fn codex(meta: Value) -> Value {
    json!({"sessionUpdate": "session_info_update", "_meta": {"codex": meta}})
}

fn play(ends: Vec<SeenEnd>) {
    for SeenEnd { agent: name, updates, is_cancelled, reply, outcome } in ends {
        let mut agent = FakeAgent::ready(traits(name));
        agent.session.prompt("t", "x");
        for update in &updates {
            agent.update(update.clone());
        }
        if is_cancelled {
            assert!(agent.session.cancel());
        }
        let reports = match reply {
            Ok(result) => agent.reply("session/prompt", result),
            Err(error) => agent.reply_error("session/prompt", error),
        };
        let seen = match ended(&reports).outcome {
            Outcome::Done => SeenOutcome::Done,
            Outcome::Cancelled => SeenOutcome::Cancelled,
            Outcome::Failed(failure) => SeenOutcome::Failed(failure.kind),
            Outcome::Stopped(reason) => panic!("{name} stopped: {reason}"),
        };
        assert_eq!(seen, outcome, "{name}, {updates:?}");
        assert!(agent.session.is_free());
    }
}

#[test]
fn second_prompt_never_reaches_an_agent() {
    // It would cancel the first in three of them.
    for name in ["claude", "codex", "gemini", "opencode", "qwen", "copilot"] {
        let mut agent = FakeAgent::ready(traits(name));
        assert!(agent.session.prompt("a", "x"));
        assert!(!agent.session.prompt("b", "y"));
        agent.session.cancel();
        assert!(!agent.session.prompt("b", "y"));
        agent.end_turn("cancelled");
        assert!(agent.session.prompt("b", "y"));
        let prompts = agent.take_sent();
        let prompts = prompts.iter().filter(|sent| sent["method"] == "session/prompt");
        assert_eq!(prompts.count(), 1);
    }
}

#[test]
fn cancellation_of_each_agent_ends_as_cancelled() {
    let end = |agent, reply| SeenEnd {
        agent,
        updates: vec![text("partial")],
        is_cancelled: true,
        reply,
        outcome: SeenOutcome::Cancelled,
    };
    play(vec![
        end("claude", stop("cancelled")),
        end("codex", stop("cancelled")),
        end("gemini", stop("cancelled")),
        end("opencode", stop("cancelled")),
        end("opencode", stop("end_turn")),
        end("qwen", stop("cancelled")),
        end("qwen", error(-32603, "Internal error", json!({"details": "Request was aborted."}))),
        end("copilot", stop("cancelled")),
    ]);
}

#[test]
fn failures_of_each_api_are_recognized() {
    use FailureKind::{Limited, NeedsLogin, Other, TooLong};
    let end = |agent, updates, reply, kind| SeenEnd {
        agent,
        updates,
        is_cancelled: false,
        reply,
        outcome: SeenOutcome::Failed(kind),
    };
    let system_error = || codex(json!({"threadStatus": {"type": "systemError"}}));
    let retry = codex(json!({"error": {"message": "Reconnecting... 1/2", "willRetry": true}}));
    let own = |message: &str| codex(json!({"error": {"message": message, "willRetry": false}}));
    let kind = |kind: &str| json!({"errorKind": kind});
    play(vec![
        end(
            "claude",
            vec![text("Please run /login")],
            error(-32000, "Authentication required", Value::Null),
            NeedsLogin,
        ),
        end(
            "claude",
            vec![text("API Error: 529")],
            error(-32603, "Internal error: overloaded", kind("server_error")),
            Other,
        ),
        end(
            "claude",
            vec![text("Prompt is too long")],
            error(-32603, "Internal error: Prompt is too long", kind("invalid_request")),
            TooLong,
        ),
        end("codex", vec![], error(-32000, "Authentication required", Value::Null), NeedsLogin),
        end(
            "codex",
            vec![],
            error(-32603, "Internal error", json!({"codexErrorInfo": "usageLimitExceeded"})),
            Limited,
        ),
        end(
            "codex",
            vec![text("exceeded retry limit, last status: 429"), system_error()],
            stop("end_turn"),
            Other,
        ),
        end(
            "codex",
            vec![retry.clone(), own("stream disconnected"), text("stream disconnected")],
            stop("end_turn"),
            Other,
        ),
        end("codex", vec![retry, system_error()], stop("end_turn"), Other),
        end(
            "codex",
            vec![own("Your input exceeds the context window"), system_error()],
            stop("end_turn"),
            TooLong,
        ),
        end("gemini", vec![], error(401, "Invalid credentials", Value::Null), NeedsLogin),
        end(
            "gemini",
            vec![],
            error(400, "The input token count exceeds the maximum number of tokens", Value::Null),
            TooLong,
        ),
        end(
            "opencode",
            vec![],
            error(-32603, "Unauthorized", json!({"errorName": "APIError"})),
            NeedsLogin,
        ),
        end(
            "opencode",
            vec![],
            error(-32603, "Too Many Requests", json!({"errorName": "APIError"})),
            Other,
        ),
        end(
            "opencode",
            vec![],
            error(-32603, "x", json!({"errorName": "ContextOverflowError"})),
            TooLong,
        ),
        end(
            "qwen",
            vec![],
            error(-32603, "Internal error", json!({"details": "401 Incorrect API key"})),
            NeedsLogin,
        ),
        end("qwen", vec![], error(-32603, "Connection error.", Value::Null), Other),
        end(
            "copilot",
            vec![text("Info: failed. Retrying…"), text("Error: 401 Unauthorized")],
            stop("end_turn"),
            NeedsLogin,
        ),
        end("copilot", vec![text("Err"), text("or: 429 usage limit\n")], stop("end_turn"), Limited),
    ]);
}

#[test]
fn turns_that_recover_are_done() {
    let end = |agent, updates| SeenEnd {
        agent,
        updates,
        is_cancelled: false,
        reply: stop("end_turn"),
        outcome: SeenOutcome::Done,
    };
    let retry = codex(json!({"error": {"message": "Reconnecting... 1/2", "willRetry": true}}));
    let active = codex(json!({"threadStatus": {"type": "active"}}));
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "a"});
    play(vec![
        end("codex", vec![active, retry, text("Fine.")]),
        end("copilot", vec![text("Error: no such file\n"), text("was in the log.")]),
        end("copilot", vec![text("Error: a"), call, text("Fixed it.")]),
        // Only copilot marks failures so.
        end("claude", vec![text("Error: a")]),
    ]);
}

#[test]
fn failure_of_a_turn_does_not_stay() {
    let mut agent = FakeAgent::ready(AgentTraits::default());
    agent.session.prompt("t", "x");
    agent.update(codex(json!({"threadStatus": {"type": "systemError"}})));
    assert!(matches!(agent.end_turn("end_turn").outcome, Outcome::Failed(_)));
    agent.session.prompt("u", "x");
    assert_eq!(agent.end_turn("end_turn").outcome, Outcome::Done);
}

#[test]
fn rejection_of_each_agent_ends_its_turn() {
    // The id of the option that rejects, and the stop reason that follows. claude goes on.
    let cases = [
        ("claude", "reject", "end_turn", SeenOutcome::Done),
        ("codex", "cancel", "cancelled", SeenOutcome::Cancelled),
        ("gemini", "cancel", "end_turn", SeenOutcome::Done),
        ("opencode", "reject", "end_turn", SeenOutcome::Done),
        ("qwen", "cancel", "end_turn", SeenOutcome::Done),
        ("copilot", "reject_once", "end_turn", SeenOutcome::Done),
    ];
    for (name, reject, reason, expected) in cases {
        let mut agent = FakeAgent::ready(traits(name));
        agent.session.prompt("t", "x");
        let options = [("all", "allow_always"), ("one", "allow_once"), (reject, "reject_once")];
        let question = agent.ask(json!(0), json!({"toolCallId": "a"}), &options);
        let option = question.choose(false).map(|option| option.id.clone());
        assert_eq!(option.as_deref(), Some(reject));
        assert!(agent.session.answer(question.id, option.as_deref()));
        let outcome = match agent.end_turn(reason).outcome {
            Outcome::Done => SeenOutcome::Done,
            Outcome::Cancelled => SeenOutcome::Cancelled,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(outcome, expected, "{name}");
        let is_withdrawn =
            |report: &SessionReport| matches!(report, SessionReport::Withdrawn { .. });
        assert!(!agent.reports.iter().any(is_withdrawn));
    }
}
