//! End-of-turn reports that agent programs send through their hooks, parsed leniently because other
//! projects own their formats.

use serde_json::Value;

/// The end of an agent's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnEnd {
    /// The agent's last message verbatim; empty if the program does not report it.
    pub last_words: String,
    /// The program's session id, validated to be safe on its command line; `None` if missing or
    /// invalid.
    pub session: Option<String>,
    /// The turn belongs to the member's conversation. codex 0.169.0 sends the same report for
    /// auxiliary model calls, such as generating a title, each with its own session id.
    pub is_own: bool,
}

/// Prefixes of the prompts that phalanx sends to a member: its mail and its team context.
const OURS: [&str; 2] = ["<teammate-message", "<system_context>"];

/// Maximum length of a session id, in bytes.
const LONGEST_ID: usize = 128;

/// Returns true if `word` can be a session id and cannot be mistaken for an option or a path.
fn is_id(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    word.len() <= LONGEST_ID
        && word.starts_with(|first: char| first.is_ascii_alphanumeric())
        && word.bytes().all(plain)
}

impl TurnEnd {
    /// Parses the argument that codex passes to its `notify` program, or the stdin of Claude Code's
    /// `Stop` hook. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<TurnEnd> {
        let told: Value = serde_json::from_str(text).ok()?;
        let word = |key: &str| told.get(key).and_then(Value::as_str);
        let asked = || told.get("input-messages").and_then(Value::as_array).into_iter().flatten();
        let is_ours = |text: &str| OURS.iter().any(|tag| text.trim_start().starts_with(tag));
        let (last_words, session, is_own) = match (word("type"), word("hook_event_name")) {
            (Some("agent-turn-complete"), _) => {
                let is_own = asked().filter_map(Value::as_str).any(is_ours);
                (word("last-assistant-message"), word("thread-id"), is_own)
            }
            (_, Some("Stop")) => (word("last_assistant_message"), word("session_id"), true),
            (_, _) => return None,
        };
        let session = session.filter(|id| is_id(id)).map(str::to_owned);
        Some(TurnEnd { last_words: last_words.unwrap_or_default().to_owned(), session, is_own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<String> {
        TurnEnd::parse(text).map(|end| end.last_words)
    }

    #[test]
    fn last_message_is_read_from_codex_and_claude_reports() {
        let codex = r#"{"type":"agent-turn-complete","turn-id":"1","input-messages":["hi"],"last-assistant-message":"Done."}"#;
        assert_eq!(said(codex).as_deref(), Some("Done."));
        let claude = r#"{"session_id":"s","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Ok."}"#;
        assert_eq!(said(claude).as_deref(), Some("Ok."));
        assert_eq!(
            said(r#"{"hook_event_name":"Stop","transcript_path":"/t"}"#).as_deref(),
            Some("")
        );
    }

    #[test]
    fn sec_03_session_id_cannot_be_an_option_or_a_path() {
        let session = |id: &str| {
            let told = serde_json::json!({ "type": "agent-turn-complete", "thread-id": id });
            TurnEnd::parse(&told.to_string()).expect("an end").session
        };
        assert_eq!(session("0199-aB_c").as_deref(), Some("0199-aB_c"));
        for bad in ["", "-c", "--yolo", "a b", "a/../b", "a=b", "ü", "a\n", &"x".repeat(129)] {
            assert_eq!(session(bad), None, "{bad:?}");
        }
        let claude = r#"{"session_id":"s-1","hook_event_name":"Stop"}"#;
        assert_eq!(TurnEnd::parse(claude).expect("an end").session.as_deref(), Some("s-1"));
    }

    /// The inputs follow what codex 0.169.0 reports for a title request and for the conversation
    /// itself.
    #[test]
    fn msg_04_auxiliary_model_call_is_not_the_members_turn() {
        let is_own = |asked: &[&str]| {
            let told = serde_json::json!({ "type": "agent-turn-complete", "thread-id": "t", "input-messages": asked });
            TurnEnd::parse(&told.to_string()).expect("an end").is_own
        };
        let message =
            "<teammate-message teammate_id=\"team-lead\">\nsay hello\n</teammate-message>";
        assert!(
            is_own(&["<system_context>\nYou are `ada`", message])
                && is_own(&["typed by hand", message])
        );
        assert!(
            !is_own(&[&format!("Generate a concise title.\n\nUser prompt:\n{message}")])
                && !is_own(&[])
        );
    }

    #[test]
    fn other_events_and_invalid_json_are_ignored() {
        for other in
            ["", "{", "[]", "17", "null", r#"{"type":17}"#, r#"{"hook_event_name":"Notification"}"#]
        {
            assert_eq!(said(other), None, "{other}");
        }
        assert_eq!(
            said(r#"{"type":"agent-turn-complete","last-assistant-message":[]}"#).as_deref(),
            Some("")
        );
    }
}
