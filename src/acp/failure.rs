//! Failures from error replies and from texts, sorted by what a person can do about them.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::report::{AgentFailure, FailureKind};
use crate::wire::{RpcError, parse_or_default};

/// The longest text of a failure, in characters.
const LONGEST_TEXT: usize = 300;

/// Longer texts are not searched further, in bytes.
const SEARCHED: usize = 4096;

/// Code of the specification for a missing login.
const AUTH_REQUIRED: i64 = -32000;

/// Code of the specification for a request that was cancelled.
pub(crate) const REQUEST_CANCELLED: i64 = -32800;

/// Fields of an error's data that agents put their own message into.
const SAID: [&str; 3] = ["details", "message", "errorName"];

/// Fields of an error's data that name its class.
const CLASSES: [&str; 5] = ["errorKind", "codexErrorInfo", "status", "statusCode", "code"];

/// Phrases that tell the kind of a failure, among words that single spaces separate.
const TOO_LONG: &[&str] = &[
    " context length",
    " contextoverflow",
    " context window",
    " contextwindow",
    " maximum context",
    " exceeds the maximum number of tokens",
];

/// Something else that is too long.
const TIMEOUT: &[&str] = &[" took too long ", " takes too long ", " taking too long "];

/// A usage limit of the account. Too many requests at a time, the other meaning of 429, end the
/// turn only: the next prompt may be answered.
const LIMITED: &[&str] = &[" usage limit", " usagelimit", " quota", " hit your ", " resets "];

/// The message of JSON-RPC that says nothing.
const INTERNAL: &str = "Internal error";

const NEEDS_LOGIN: &[&str] =
    &[" 401 ", " log in ", " login ", " logged in ", " api key", " apikey", " unauthorized "];

impl AgentFailure {
    pub(crate) fn other(text: &str) -> Self {
        Self { kind: FailureKind::Other, said: one_line(text, LONGEST_TEXT) }
    }

    pub(crate) fn from_text(text: &str) -> Self {
        Self { kind: kind_of(0, text), said: spoken(text) }
    }

    /// Takes a text, and more that only tells its kind.
    pub(crate) fn from_text_and_class(text: &str, class: &Value) -> Self {
        Self { kind: kind_of(0, &format!("{text} {}", plain(class))), said: spoken(text) }
    }

    pub(crate) fn from_reply(error: &RawValue) -> Self {
        Self::from_error(&parse_or_default(Some(error)))
    }

    /// Reads an error reply. Its code may be outside of the ranges of JSON-RPC, such as 401.
    pub(crate) fn from_error(error: &RpcError) -> Self {
        let message = error.message.trim();
        let own = message.strip_prefix(INTERNAL).map(|rest| rest.trim_start_matches([':', ' ']));
        let mut said = own.unwrap_or(message).to_owned();
        let own = SAID.iter().filter_map(|name| error.data.get(name)?.as_str());
        for text in own.chain(error.data.as_str()) {
            if !text.trim().is_empty() && !said.contains(text.trim()) {
                let separator = if said.is_empty() { "" } else { ": " };
                said = format!("{said}{separator}{}", text.trim());
            }
        }
        if said.is_empty() {
            said = match message {
                "" => format!("error {}", error.code),
                message => message.to_owned(),
            };
        }
        let classes = CLASSES.iter().filter_map(|name| error.data.get(name)).map(plain);
        let searched = classes.fold(said.clone(), |text, class| format!("{text} {class}"));
        Self { kind: kind_of(error.code, &searched), said: spoken(&said) }
    }
}

/// Returns a text for people: on one line, with the message in place of a JSON document.
fn spoken(text: &str) -> String {
    let message = || {
        let (before, document) = text.split_at(text.find('{')?);
        let document: Value = serde_json::from_str(document).ok()?;
        let message = document.pointer("/error/message").or_else(|| document.get("message"))?;
        Some(format!("{before}{}", message.as_str()?))
    };
    one_line(&message().unwrap_or_else(|| text.to_owned()), LONGEST_TEXT)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn kind_of(code: i64, text: &str) -> FailureKind {
    // All separators become one space, so that a phrase is also found in `rate_limit`.
    let text = prefix(text, SEARCHED).to_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let text = format!(" {} ", words.join(" "));
    let has = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    if code == 401 {
        FailureKind::NeedsLogin
    } else if has(TOO_LONG) || (has(&[" too long "]) && !has(TIMEOUT)) {
        FailureKind::TooLong
    } else if has(LIMITED) {
        FailureKind::Limited
    } else if code == AUTH_REQUIRED || has(NEEDS_LOGIN) || words.iter().any(|word| is_auth(word)) {
        FailureKind::NeedsLogin
    } else {
        FailureKind::Other
    }
}

/// Returns whether a word is "auth" or begins so, except the words of "author".
fn is_auth(word: &str) -> bool {
    word.strip_prefix("auth").is_some_and(|rest| {
        !rest.starts_with("or") || rest.starts_with("oriz") || rest.starts_with("oris")
    })
}

/// Joins all lines, and cuts after so many characters.
pub(crate) fn one_line(text: &str, limit: usize) -> String {
    // No character has more than four bytes, and spaces are dropped, hence the margin.
    let text = prefix(text, limit * 8);
    let is_space = |c: char| c.is_whitespace() || c.is_control();
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(limit) {
        None => line,
        Some(_) => line.chars().take(limit - 1).chain(['…']).collect(),
    }
}

/// Returns at most so many bytes of a text, cut between characters.
pub(crate) fn prefix(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failure(code: i64, message: &str, data: Value) -> AgentFailure {
        AgentFailure::from_error(&RpcError { code, message: message.to_owned(), data })
    }

    #[test]
    fn failures_of_six_agents_have_the_right_kind() {
        use FailureKind::{Limited, NeedsLogin, Other, TooLong};
        let cases = [
            (NeedsLogin, -32000, "Authentication required", Value::Null),
            (NeedsLogin, 401, "Request had invalid credentials", Value::Null),
            (NeedsLogin, -32603, "Internal error", json!({"details": "401 Incorrect key"})),
            (NeedsLogin, -32603, "Please log in first", Value::Null),
            (NeedsLogin, -32603, "Unauthorized", Value::Null),
            (Limited, 429, "You exceeded your current quota", Value::Null),
            (Limited, -32603, "5-hour limit reached ∙ resets 3pm", Value::Null),
            (Limited, -32603, "You've hit your limit", json!({"errorKind": "rate_limit"})),
            (NeedsLogin, -32603, "x", json!({"errorKind": "authentication_failed"})),
            (Limited, -32000, "You have hit your usage limit", Value::Null),
            (Limited, -32603, "failed", json!({"codexErrorInfo": "usageLimitExceeded"})),
            (TooLong, -32603, "x", json!({"errorName": "ContextOverflowError"})),
            (TooLong, 400, "The input exceeds the maximum number of tokens", Value::Null),
            (TooLong, -32603, "prompt is too long: 9 tokens", json!({"errorKind": "invalid"})),
            (Other, -32603, "The request took too long", Value::Null),
            (Other, -32603, "The catalog in use is empty", Value::Null),
            (Other, -32603, "Connection error.", Value::Null),
            (Other, -32603, "overloaded", json!({"errorKind": "server_error"})),
            (Other, 429, "slow down", Value::Null),
            (Other, -32603, "429 Too Many Requests", json!({"errorName": "APIError"})),
            (Other, -32603, "would exceed your rate limit", json!({"errorKind": "rate_limit"})),
            (Other, -32603, "The author of line 4291 is unknown", Value::Null),
        ];
        for (kind, code, message, data) in cases {
            assert_eq!(failure(code, message, data.clone()).kind, kind, "{message} {data}");
        }
    }

    #[test]
    fn text_has_the_message_and_what_the_data_adds() {
        let cases = [
            ("Internal error", json!({"details": "401 bad\nkey"}), "401 bad key"),
            ("Internal error", json!({}), "Internal error"),
            ("Internal error: invalid x-api-key", Value::Null, "invalid x-api-key"),
            (r#"{"type": "error", "error": {"message": "no quota"}}"#, Value::Null, "no quota"),
            (r#"400: {"message": "too long", "code": 400}"#, Value::Null, "400: too long"),
            ("an odd {\"text\"", Value::Null, "an odd {\"text\""),
            ("Bad key", json!({"message": "Bad key"}), "Bad key"),
            ("", json!("gone"), "gone"),
            ("", Value::Null, "error -32603"),
            ("Oops", json!({"errorName": "APIError", "stack": "x"}), "Oops: APIError"),
        ];
        for (message, data, said) in cases {
            assert_eq!(failure(-32603, message, data).said, said);
        }
    }

    #[test]
    fn text_is_one_short_line() {
        let said = failure(1, &"é \n".repeat(100_000), Value::Null).said;
        assert_eq!(said.chars().count(), 300);
        assert!(said.ends_with('…') && !said.contains('\n'));
    }
}
