//! The tool calls of a turn, merged from their parts: calls, updates, and permission requests.

use std::collections::VecDeque;

use serde_json::Value;

use crate::report::{AgentToolCall, Diff, ToolContent, ToolKind, ToolStatus};
use crate::wire::{ContentPart, ToolPart, variant};

/// Above these limits, old calls are dropped; later updates of them begin anew.
const MOST_CALLS: usize = 256;
const MOST_BYTES: usize = 32 << 20;

/// The merged state of recent tool calls.
#[derive(Debug, Default)]
pub(crate) struct CallTable {
    calls: VecDeque<KeptCall>,
    /// The sum of the sizes of all calls.
    bytes: usize,
}

#[derive(Debug)]
struct KeptCall {
    call: AgentToolCall,
    /// The length of its longest part, in bytes.
    size: usize,
}

impl KeptCall {
    fn is_over(&self) -> bool {
        matches!(self.call.status, ToolStatus::Completed | ToolStatus::Failed)
    }
}

impl CallTable {
    pub(crate) fn is_any_open(&self) -> bool {
        !self.calls.iter().all(KeptCall::is_over)
    }

    pub(crate) fn clear(&mut self) {
        self.calls.clear();
        self.bytes = 0;
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Merges a part of so many bytes into its call, which may be new. Returns the call, and
    /// whether it is new or has changed.
    pub(crate) fn merge(&mut self, part: ToolPart, size: usize) -> (&AgentToolCall, bool) {
        self.drop_old_calls(MOST_CALLS);
        // Parts of the latest calls are the usual case.
        let found = self.calls.iter().rposition(|kept| kept.call.id == part.tool_call_id);
        let index = found.unwrap_or_else(|| {
            self.drop_old_calls(MOST_CALLS - 1);
            let call = AgentToolCall { id: part.tool_call_id.clone(), ..AgentToolCall::default() };
            self.calls.push_back(KeptCall { call, size: 0 });
            self.calls.len() - 1
        });
        let kept = &mut self.calls[index];
        self.bytes += size.saturating_sub(kept.size);
        kept.size = kept.size.max(size);
        let has_changed = merge_part(&mut kept.call, part);
        (&kept.call, has_changed || found.is_none())
    }

    /// Returns the text that the last change of a file has left, for an agent whose changes are of
    /// whole files.
    pub(crate) fn text_of_file(&self, path: &str) -> Option<&str> {
        let is_done = |kept: &&KeptCall| kept.call.status == ToolStatus::Completed;
        let contents = self.calls.iter().filter(is_done).flat_map(|kept| &kept.call.content);
        let mut texts = contents.filter_map(|content| match content {
            ToolContent::Diff(diff) if diff.path == path => Some(diff.new.as_str()),
            ToolContent::Diff(_) | ToolContent::Text(_) => None,
        });
        texts.next_back()
    }

    /// Drops calls until so many are left, and their size is below the limit. Those that are over
    /// go first.
    fn drop_old_calls(&mut self, most: usize) {
        while self.calls.len() > most || self.bytes > MOST_BYTES {
            let oldest = self.calls.iter().position(KeptCall::is_over).unwrap_or(0);
            match self.calls.remove(oldest) {
                Some(dropped) => self.bytes -= dropped.size,
                None => return,
            }
        }
    }
}

/// Takes over what the part has, and returns whether that is different. An empty field does not
/// replace one that is not: agents repeat calls in permission requests without input and content.
fn merge_part(call: &mut AgentToolCall, part: ToolPart) -> bool {
    let mut has_changed = false;
    if !part.title.is_empty() {
        has_changed |= set(&mut call.title, part.title);
    }
    let kind = part.kind.as_deref().map(variant).unwrap_or_default();
    if kind != ToolKind::Other {
        has_changed |= set(&mut call.kind, kind);
    }
    if let Some(status) = part.status {
        has_changed |= set(&mut call.status, variant(&status));
    }
    if !is_empty(&part.raw_input) {
        has_changed |= set(&mut call.input, part.raw_input);
    }
    let content: Vec<ToolContent> = part.content.into_iter().filter_map(tool_content).collect();
    if !content.is_empty() {
        has_changed |= set(&mut call.content, content);
    }
    if !part.locations.is_empty() {
        let paths = part.locations.into_iter().map(|location| location.path).collect();
        has_changed |= set(&mut call.locations, paths);
    }
    // copilot has its changes only here, as a unified diff.
    if call.content.is_empty()
        && let Some(diff) = call.input.get("diff").and_then(Value::as_str)
    {
        has_changed |= set(&mut call.content, vec![ToolContent::Text(diff.to_owned())]);
    }
    has_changed
}

fn set<T: PartialEq>(field: &mut T, value: T) -> bool {
    let has_changed = *field != value;
    *field = value;
    has_changed
}

fn is_empty(input: &Value) -> bool {
    match input {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

fn tool_content(part: ContentPart) -> Option<ToolContent> {
    match part.kind.as_str() {
        "content" => part.content.into_text().map(ToolContent::Text),
        "diff" => Some(ToolContent::Diff(Diff {
            path: part.path,
            old: part.old_text,
            new: part.new_text,
        })),
        // A terminal has an id of the agent's own.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merge(calls: &mut CallTable, part: Value) -> (&AgentToolCall, bool) {
        let part = part.to_string();
        calls.merge(serde_json::from_str(&part).unwrap(), part.len())
    }

    #[test]
    fn empty_fields_of_a_part_keep_what_was_there() {
        let mut calls = CallTable::default();
        merge(
            &mut calls,
            json!({
                "toolCallId": "a", "title": "Edit f", "kind": "edit", "status": "in_progress",
                "rawInput": {"path": "f"}, "locations": [{"path": "/f", "line": 3}],
                "content": [{"type": "diff", "path": "/f", "oldText": null, "newText": "x"}],
            }),
        );
        let (call, _) = merge(
            &mut calls,
            json!({
                "toolCallId": "a", "title": null, "rawInput": {}, "content": [], "locations": null,
                "kind": "someday", "status": "completed",
            }),
        );
        assert_eq!(call.title, "Edit f");
        assert_eq!(call.kind, ToolKind::Edit);
        assert_eq!(call.status, ToolStatus::Completed);
        assert_eq!(call.input, json!({"path": "f"}));
        assert_eq!(call.locations, ["/f"]);
        let diff = Diff { path: "/f".to_owned(), old: None, new: "x".to_owned() };
        assert_eq!(call.content, [ToolContent::Diff(diff)]);
    }

    #[test]
    fn content_of_every_type_is_read_or_left_out() {
        let mut calls = CallTable::default();
        let (call, _) = merge(
            &mut calls,
            json!({"toolCallId": "a", "content": [
                {"type": "content", "content": {"type": "text", "text": "out"}},
                {"type": "content", "content": {"type": "resource_link", "name": "n", "uri": "u"}},
                {"type": "content", "content": {"type": "resource", "resource": {"uri": "/r"}}},
                {"type": "content", "content": {"type": "image", "data": "AAAA"}},
                {"type": "terminal", "terminalId": "a"},
                {"type": "later"}, 5,
            ]}),
        );
        let texts = ["out", "n", "/r"].map(|text| ToolContent::Text(text.to_owned()));
        assert_eq!(call.content, texts);
    }

    #[test]
    fn unified_diff_of_the_input_becomes_text() {
        let mut calls = CallTable::default();
        let (call, _) =
            merge(&mut calls, json!({"toolCallId": "a", "rawInput": {"diff": "-a\n+b"}}));
        assert_eq!(call.content, [ToolContent::Text("-a\n+b".to_owned())]);
    }

    #[test]
    fn repeated_part_changes_nothing() {
        let mut calls = CallTable::default();
        let repeated = json!({"toolCallId": "a", "title": "t", "rawInput": {"x": 1}});
        assert!(merge(&mut calls, repeated.clone()).1);
        assert!(!merge(&mut calls, repeated).1);
        assert!(merge(&mut calls, json!({"toolCallId": "a", "status": "failed"})).1);
        assert!(merge(&mut calls, json!({"toolCallId": "b"})).1);
    }

    #[test]
    fn finished_calls_are_dropped_first() {
        let mut calls = CallTable::default();
        merge(&mut calls, json!({"toolCallId": "open"}));
        for number in 0..2 * MOST_CALLS {
            let id = number.to_string();
            merge(&mut calls, json!({"toolCallId": id, "status": "completed"}));
        }
        assert_eq!(calls.len(), MOST_CALLS);
        assert!(calls.calls.iter().any(|kept| kept.call.id == "open"));
    }

    #[test]
    fn size_of_all_calls_is_bounded() {
        let mut calls = CallTable::default();
        for round in 0..4 {
            for number in 0..20 {
                let content = json!([{"type": "diff", "path": "/f", "newText": "x".repeat(20)}]);
                let id = number.to_string();
                let part = json!({"toolCallId": id, "title": round, "content": content});
                // As if the diff had a mebibyte and more.
                let part = serde_json::from_str(&part.to_string()).unwrap();
                calls.merge(part, (round + 1) << 20);
                assert!(calls.bytes <= MOST_BYTES + (4 << 20));
                assert_eq!(calls.bytes, calls.calls.iter().map(|kept| kept.size).sum::<usize>());
            }
        }
        assert!(calls.len() < 20);
        calls.clear();
        assert_eq!(calls.bytes, 0);
    }
}
