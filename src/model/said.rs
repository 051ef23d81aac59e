//! What programs say of themselves through the hooks they have: the end of a turn, and their last words in it. Others' forms,
//! read as far as they are understood.

use serde_json::Value;

/// What a program reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TurnEnd {
    /// The agent's last message, as it wrote it; empty if the program does not say.
    pub(crate) last_words: String,
}

impl TurnEnd {
    /// Reads what codex gives its `notify` program as an argument, and Claude Code its `Stop` hook on stdin. None: it is
    /// something else.
    pub(crate) fn parse(text: &str) -> Option<TurnEnd> {
        let told: Value = serde_json::from_str(text).ok()?;
        let word = |key: &str| told.get(key).and_then(Value::as_str);
        let last_words = match (word("type"), word("hook_event_name")) {
            (Some("agent-turn-complete"), _) => word("last-assistant-message"),
            (_, Some("Stop")) => word("last_assistant_message"),
            (_, _) => return None,
        };
        Some(TurnEnd { last_words: last_words.unwrap_or_default().to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Option<String> {
        TurnEnd::parse(text).map(|end| end.last_words)
    }

    #[test]
    fn the_forms_of_codex_and_of_claude() {
        let codex = r#"{"type":"agent-turn-complete","turn-id":"1","input-messages":["hi"],"last-assistant-message":"Done."}"#;
        assert_eq!(said(codex).as_deref(), Some("Done."));
        let claude = r#"{"session_id":"s","hook_event_name":"Stop","stop_hook_active":false,"last_assistant_message":"Ok."}"#;
        assert_eq!(said(claude).as_deref(), Some("Ok."));
        assert_eq!(said(r#"{"hook_event_name":"Stop","transcript_path":"/t"}"#).as_deref(), Some(""));
    }

    #[test]
    fn what_is_something_else_says_nothing() {
        for other in ["", "{", "[]", "17", "null", r#"{"type":17}"#, r#"{"hook_event_name":"Notification"}"#]
        {
            assert_eq!(said(other), None, "{other}");
        }
        assert_eq!(
            said(r#"{"type":"agent-turn-complete","last-assistant-message":[]}"#).as_deref(),
            Some("")
        );
    }
}
