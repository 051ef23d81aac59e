//! Rules for turns that ended with an error, on recordings of the real programs.

use super::*;
use profile::{ScreenState, builtin};

/// The screen of a recording.
fn recorded(program: &str, name: &str) -> Screenshot {
    let mut screen = Screen::new(40, 120);
    screen.feed(&recording(program, name));
    screen.look(60_000)
}

fn judged(program: &str, look: &Screenshot) -> (String, String) {
    let found = judge(&builtin(program).expect("built in"), look);
    (found.state.to_string(), found.evidence)
}

#[test]
fn st_03_error_of_a_turn_is_a_state_with_the_words_of_the_program() {
    for (program, name, state, words) in [
        ("gemini", "key_refused", "failed:login", "invalid x-api-key"),
        ("gemini", "refused", "failed", "This key has no permission to use the model."),
        ("gemini", "too_long", "failed", "The input token count (1200000) exceeds the maximum"),
        ("gemini", "model", "dialog:model", "It seems like you don't have access to gemini"),
        ("opencode", "key_refused", "failed:login", "invalid x-api-key"),
        ("opencode", "refused", "failed", "This key has no permission to use the model."),
        ("opencode", "too_long", "failed", "Session too large to compact"),
        ("opencode", "retrying", "retrying", "Internal server error. · attempt #3"),
        ("aider", "key_refused", "failed:login", "Check your API key."),
        ("aider", "refused", "failed", "This key has no permission to use the model."),
        ("aider", "limited", "failed", "The usage limit has been reached"),
        ("aider", "too_long", "failed", "Model openai/canned has hit a token limit!"),
        ("qwen", "key_refused", "failed:login", "401 invalid x-api-key"),
        ("qwen", "refused", "failed", "403 This key has no permission to use the model."),
        ("qwen", "too_long", "failed", "your messages resulted in 210000 tokens."),
        (
            "copilot",
            "key_refused",
            "failed:login",
            "(HTTP 403). Check your COPILOT_PROVIDER_API_KEY",
        ),
        ("copilot", "too_long", "failed", "your messages resulted in 210000 tokens."),
        ("copilot", "limited", "failed", "429 The usage limit has been reached"),
        ("copilot", "busy", "failed", "request would exceed your rate limit."),
    ] {
        let (found, evidence) = judged(program, &recorded(program, name));
        assert_eq!(found, state, "{program}/{name}: {evidence}");
        assert!(evidence.contains(words), "{program}/{name}: {evidence}");
    }
}

/// ST-08: a program that repeats a failed request by itself says which error, and which attempt.
#[test]
fn st_08_retry_is_a_state_with_error_attempt_and_time() {
    let below = "529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\
                 \"message\":\"refused by the stand-in\"}} · attempt 5/10";
    let codex = "Unexpected status 401 Unauthorized: invalid x-api-key, url: \
                 http://127.0.0.1:8377/v1/responses · Reconnecting... 2/5";
    let aider = "InternalServerError: OpenAIException - Internal server error. · \
                 Retrying in 2.0 seconds";
    for (program, name, words, until) in [
        ("claude", "retrying", "529 refused by the stand-in · attempt 5/10", Some("in 5s")),
        ("claude", "retrying_below", below, Some("in 9 seconds")),
        ("claude", "key_refused", "API error · attempt 7/10", Some("in 26s")),
        ("opencode", "retrying", "Internal server error. · attempt #3", Some("in 5s")),
        ("codex", "reconnecting", codex, None),
        ("aider", "retrying", aider, None),
    ] {
        let found = judge(&builtin(program).expect("built in"), &recorded(program, name));
        assert_eq!(found.state, ScreenState::Retrying, "{program}/{name}");
        assert_eq!((found.evidence.as_str(), found.until.as_deref()), (words, until));
    }
}

/// The agent can write the text of an error. A rule that fits it in an answer would be imitable.
#[test]
fn sec_04_error_that_the_agent_writes_is_not_that_of_a_turn() {
    for (program, name, answer, imitations) in [
        (
            "gemini",
            "after_refusal",
            "✦ Hello",
            &["✦ ✕ [API Error: no]", "✦ No", "  ✕ [API Error: no]"][..],
        ),
        ("opencode", "after_refusal", "     Hello", &["     ┃", "     ┃  no", "     ┃"][..]),
        ("aider", "after_refusal", "Hello", &["litellm.APIError: no"][..]),
        ("qwen", "after_refusal", "  ◆", &["  ◆ ✕ [API Error: no]", "    ✕ [API Error: no]"][..]),
        ("copilot", "after_refusal", " ● Hello", &[" ● ✗ 400 no", "   ✗ 400 no"][..]),
    ] {
        let mut look = recorded(program, name);
        let at = look.rows.iter().rposition(|row| row.starts_with(answer)).expect("an answer");
        look.rows.splice(at..=at, imitations.iter().map(|row| (*row).to_owned()));
        assert_eq!(judged(program, &look).0, "idle", "{program}: {:#?}", look.rows);
    }
}
