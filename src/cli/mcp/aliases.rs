//! Other names for arguments and actions: those that Claude Code's own team tools and other team
//! systems use, which models know by heart.

use serde_json::{Value, json};

use model::wire::Object;

/// A tool, a name that callers use, and the argument that it means.
type Alias = (&'static str, &'static str, &'static str);

pub(super) const ALIASES: &[Alias] = &[
    ("TeamCreate", "name", "team_name"),
    ("SpawnTeammate", "subagent_type", "role"),
    ("SpawnTeammate", "agent_type", "role"),
    ("SpawnTeammate", "plan_mode_required", "plan"),
    ("SpawnTeammate", "isolation", "worktree"),
    ("SpawnTeammate", "working_directory", "cwd"),
    ("SpawnTeammate", "disallowed", "disallowed_tools"),
    ("SendMessage", "to", "recipient"),
    ("SendMessage", "target", "recipient"),
    ("SendMessage", "target_agent_id", "recipient"),
    ("SendMessage", "message", "content"),
    ("SendMessage", "text", "content"),
    ("SendMessage", "reason", "content"),
    ("SendMessage", "feedback", "content"),
    ("SendMessage", "msg_type", "type"),
    ("SendMessage", "approved", "approve"),
    ("SendMessage", "pending_work", "pending"),
    ("SendMessage", "artifacts_committed", "committed"),
    ("TeamMessage", "recipient", "to"),
    ("TeamMessage", "message", "text"),
    ("TeamMessage", "content", "text"),
    ("ReadInbox", "timeout", "wait"),
    ("TaskCreate", "title", "subject"),
    ("TaskCreate", "task_type", "type"),
    ("TaskCreate", "assignee", "owner"),
    ("TaskCreate", "addBlockedBy", "blockedBy"),
    ("TaskGet", "task_id", "taskId"),
    ("TaskUpdate", "title", "subject"),
    ("TaskUpdate", "assignee", "owner"),
    ("TeamTasks", "title", "subject"),
    ("TeamTasks", "type", "task_type"),
    ("TeamTasks", "message", "text"),
    ("TeamTasks", "content", "text"),
    ("TeamTasks", "comment", "text"),
    ("TeamTasks", "path", "file"),
    ("TeamTasks", "progress_percent", "percent"),
    ("TeamTasks", "progress_step", "step"),
    ("Answer", "approved", "approve"),
    ("Answer", "feedback", "reason"),
    ("Answer", "content", "reason"),
    ("Shutdown", "name", "names"),
    ("Shutdown", "recipient", "names"),
    ("Shutdown", "to", "names"),
    ("Shutdown", "target_agent_id", "names"),
    ("Shutdown", "deadline_seconds", "deadline"),
    ("Restart", "name", "names"),
    ("Peek", "name", "names"),
    ("Logs", "name", "names"),
    ("Events", "name", "names"),
    ("WaitFor", "name", "names"),
    ("Handoff", "subagent_type", "role"),
    ("Handoff", "message", "prompt"),
    ("Handoff", "to", "name"),
    ("TeamHandoffs", "to", "name"),
    ("TeamHandoffs", "team", "to_team"),
    ("TeamWorkspace", "text", "content"),
    ("TeamWorkspace", "chat_id", "chat"),
    ("TeamWorkspace", "file", "path"),
];

/// Arguments that have no meaning here: Claude Code's label of a call, and the choice to wait for
/// the end of a member, for which there is `WaitFor`.
const IGNORED: &[(&str, &str)] =
    &[("SpawnTeammate", "description"), ("SpawnTeammate", "run_in_background")];

/// Returns the action that a word means.
pub(super) fn action(word: &str) -> &str {
    match word {
        "ask_user" => "remind",
        "clear_ask_user" => "unremind",
        word => word,
    }
}

/// Returns the argument that another name for it means.
pub(super) fn meant(tool: &str, name: &str) -> Option<&'static str> {
    let found = ALIASES.iter().find(|(of, alias, _)| *of == tool && *alias == name);
    found.map(|(.., name)| *name)
}

/// Returns the arguments of a call under the names that the tool lists. An argument that is given
/// under both names keeps both, and the second one is refused as unknown.
pub(super) fn translate(tool: &str, given: Object) -> Object {
    let mut given = match tool {
        "SendMessage" => message(given),
        "SpawnTeammate" => member(given),
        _ => given,
    };
    for (_, name) in IGNORED.iter().filter(|(of, _)| *of == tool) {
        given.shift_remove(*name);
    }
    for (_, alias, name) in ALIASES.iter().filter(|(of, ..)| *of == tool) {
        if !given.contains_key(*name)
            && let Some(value) = given.shift_remove(*alias)
        {
            given.insert((*name).to_owned(), value);
        }
    }
    given
}

/// Newer releases of Claude Code put a protocol message as an object into `message`, and send to
/// everyone as to `*`.
fn message(mut given: Object) -> Object {
    if let Some(Value::Object(inner)) =
        given.get("message").filter(|inner| inner["type"].is_string())
    {
        let inner = inner.clone();
        given.shift_remove("message");
        given.extend(inner);
    }
    let everyone =
        ["to", "recipient"].into_iter().find(|name| given.get(*name) == Some(&json!("*")));
    if let Some(name) = everyone {
        given.shift_remove(name);
        given.entry("type").or_insert_with(|| json!("broadcast"));
    }
    given
}

/// Claude Code's type of an agent without a role is `general-purpose`, and its `isolation` has one
/// word that phalanx has a boolean for.
fn member(mut given: Object) -> Object {
    if given.get("subagent_type") == Some(&json!("general-purpose")) {
        given.shift_remove("subagent_type");
    }
    if given.get("isolation") == Some(&json!("worktree")) {
        given.insert("isolation".to_owned(), json!(true));
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(tool: &str, given: Value) -> Value {
        Value::Object(translate(tool, given.as_object().expect("an object").clone()))
    }

    #[test]
    fn newest_tools_of_claude_code_are_understood() {
        let table = [
            (
                "SendMessage",
                json!({"to": "ann", "message": "hi", "summary": "s"}),
                json!({"summary": "s", "recipient": "ann", "content": "hi"}),
            ),
            (
                "SendMessage",
                json!({"to": "team-lead", "message": {
                    "type": "shutdown_response", "request_id": "r", "approve": false, "reason": "busy"}}),
                json!({"type": "shutdown_response", "request_id": "r", "approve": false,
                    "recipient": "team-lead", "content": "busy"}),
            ),
            (
                "SendMessage",
                json!({"to": "*", "message": "all"}),
                json!({"type": "broadcast", "content": "all"}),
            ),
            (
                "SpawnTeammate",
                json!({"name": "ann", "subagent_type": "general-purpose", "description": "d",
                    "run_in_background": true, "isolation": "worktree"}),
                json!({"name": "ann", "worktree": true}),
            ),
            (
                "SpawnTeammate",
                json!({"name": "ann", "subagent_type": "reviewer"}),
                json!({"name": "ann", "role": "reviewer"}),
            ),
        ];
        for (tool, given, expected) in table {
            assert_eq!(translated(tool, given), expected);
        }
        let both = json!({"recipient": "ann", "to": "ben"});
        assert_eq!(translated("SendMessage", both.clone()), both);
    }
}
