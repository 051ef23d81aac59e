//! Questions of the agent as requests to the team. The first answer that the agent is sent wins,
//! from the pane or from the lead. Each end of a question is reported, so that the record says it.

use super::super::effect::OutboundOp;
use super::super::words::AgentRole;
use super::face::ConversationUpdate;
use super::state::{FiledQuestion, State};
use acp::{AgentQuestion, AgentToolCall, OptionKind, QuestionId, ToolContent, ToolKind};
use model::decisions::question::{DENIED, Typed};
use model::id::RequestId;
use model::mail::protocol::{
    Message, PermissionRequest, PermissionResponse, PermissionVerdict, PlanApprovalRequest,
    PlanApprovalResponse,
};
use model::text;
use serde_json::{Map, Value, json};

/// Maximum length of the arguments of a tool in a description, in characters.
const ARGUMENTS: usize = 500;
/// Maximum length of a reason, in characters.
const REASON: usize = 500;

/// Files a question. That of an agent lead is answered in its terminal.
pub(super) fn file(state: &mut State, question: &AgentQuestion) {
    if state.role == AgentRole::Lead || state.teamless {
        return;
    }
    state.asked += 1;
    // `Incarnation::has_asked` looks for the run in the id.
    let run = &state.me.incarnation.as_str()[..8];
    let is_plan = question.plan.is_some();
    let kind = if is_plan { "plan" } else { "perm" };
    let id = format!("{kind}-{}-{run}-{}", state.now.0, state.asked);
    let request = RequestId::parse(&id).expect("digits, letters and hyphens are safe");
    let input = input(&question.tool);
    let message = match &question.plan {
        Some(plan) => Message::PlanApprovalRequest(PlanApprovalRequest {
            from: Some(state.me.name.to_string()),
            timestamp: Some(state.now.iso()),
            plan_file_path: None,
            plan_content: Some(plan.clone()),
            request_id: id,
        }),
        None => Message::PermissionRequest(permission(state, &question.tool, id, input.clone())),
    };
    state.outbox.send(message);
    state.filed.push(FiledQuestion { request, question: question.id, is_plan, input });
}

fn permission(
    state: &State,
    tool: &AgentToolCall,
    request_id: String,
    input: Value,
) -> PermissionRequest {
    let tool_name = tool_name(tool);
    // The title of a tool of a server is often its name.
    let is_named = tool.title.is_empty() || tool_name.contains(&tool.title);
    let described = if is_named { arguments(&input) } else { Some(tool.title.clone()) };
    PermissionRequest {
        request_id,
        agent_id: Some(state.me.name.to_string()),
        tool_name,
        tool_use_id: Some(tool.id.clone()),
        description: described,
        input,
        ..PermissionRequest::default()
    }
}

/// Returns the arguments of a tool on one line; `None` if it has none.
fn arguments(input: &Value) -> Option<String> {
    let input = match input.get("arguments") {
        Some(arguments @ Value::Object(_)) => arguments,
        _ => input,
    };
    let is_empty = input.as_object().is_none_or(Map::is_empty);
    (!is_empty).then(|| text::short(&input.to_string(), ARGUMENTS))
}

/// Returns the name that Claude Code has for a tool of this kind: rules are written with these.
fn tool_name(tool: &AgentToolCall) -> String {
    if let Some(name) = mcp_tool(tool) {
        return name;
    }
    let name = match tool.kind {
        ToolKind::Execute => "Bash",
        ToolKind::Read => "Read",
        ToolKind::Search => "Grep",
        ToolKind::Fetch => "WebFetch",
        ToolKind::Edit if is_new_file(tool) => "Write",
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move => "Edit",
        ToolKind::Think | ToolKind::SwitchMode | ToolKind::Other => {
            let title = text::short(&tool.title, 60);
            return if title.is_empty() { "tool".to_owned() } else { title };
        }
    };
    name.to_owned()
}

/// Returns the name of a tool of an MCP server, if the input says that it is one, as with codex.
fn mcp_tool(tool: &AgentToolCall) -> Option<String> {
    let word = |key: &str| tool.input.get(key).and_then(Value::as_str);
    let (server, name) = (word("server")?, word("tool")?);
    Some(text::short(&format!("mcp__{server}__{name}"), 120))
}

fn is_new_file(tool: &AgentToolCall) -> bool {
    let mut diffs = diffs(tool).peekable();
    diffs.peek().is_some() && diffs.all(|diff| diff.old.is_none())
}

fn diffs(tool: &AgentToolCall) -> impl Iterator<Item = &acp::Diff> {
    tool.content.iter().filter_map(|content| match content {
        ToolContent::Diff(diff) => Some(diff),
        ToolContent::Text(_) => None,
    })
}

/// Returns the input of a tool in the words of Claude Code, which rules and the dashboard know:
/// `command`, or `file_path` with the change; and what else the agent says.
fn input(tool: &AgentToolCall) -> Value {
    let mut input = match &tool.input {
        Value::Object(given) => given.clone(),
        Value::Null => Map::new(),
        other => Map::from_iter([("input".to_owned(), other.clone())]),
    };
    if tool.kind == ToolKind::Execute {
        if let Some(command) = command(&input, &tool.title).filter(|_| mcp_tool(tool).is_none()) {
            input.insert("command".to_owned(), command.into());
        }
        return input.into();
    }
    let path = diffs(tool).map(|diff| diff.path.clone()).next();
    if let Some(path) = path.or_else(|| tool.locations.first().cloned()) {
        input.entry("file_path").or_insert(path.into());
    }
    if let Some(diff) = diffs(tool).next() {
        let change = match &diff.old {
            Some(old) => [("old_string", old.clone()), ("new_string", diff.new.clone())].to_vec(),
            None => [("content", diff.new.clone())].to_vec(),
        };
        for (key, text) in change {
            input.entry(key).or_insert(json!(text));
        }
    }
    input.into()
}

/// Returns the command line of a tool: agents give it as text, or as words for a shell.
fn command(input: &Map<String, Value>, title: &str) -> Option<String> {
    let given = ["command", "cmd"].iter().find_map(|key| input.get(*key));
    match given {
        Some(Value::String(line)) => Some(line.clone()),
        Some(Value::Array(words)) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            match words.as_slice() {
                // A shell and its option to run a line.
                [_, option, line] if option.starts_with('-') && option.ends_with('c') => {
                    Some((*line).to_owned())
                }
                words => shlex::try_join(words.iter().copied()).ok(),
            }
        }
        _ => Some(title.trim_matches('`').to_owned()).filter(|title| !title.is_empty()),
    }
}

/// Handles the choice of a person in the pane.
pub(super) fn answer_in_pane(state: &mut State, id: QuestionId, option: &str) {
    let chosen = state.session.questions().find(|question| question.id == id);
    let chosen = chosen.and_then(|question| question.options.iter().find(|one| one.id == option));
    let Some((kind, name)) = chosen.map(|chosen| (chosen.kind, chosen.name.clone())) else {
        return;
    };
    if !answer(state, id, Some(option)) {
        return;
    }
    let (allowed, verdict) = match kind {
        OptionKind::AllowOnce | OptionKind::AllowAlways => (Some(true), "allowed"),
        OptionKind::RejectOnce | OptionKind::RejectAlways => (Some(false), "denied"),
        OptionKind::Other => (None, "answered"),
    };
    let words = format!("{verdict} here: {}", text::short(&name, 80));
    end(state, id, words, allowed);
}

/// Answers a question. The agent's silence counts from now on. One that is being ended is sent
/// nothing.
fn answer(state: &mut State, id: QuestionId, option: Option<&str>) -> bool {
    let is_taken = state.leaving.is_none() && state.session.answer(id, option);
    if let Some(turn) = state.turn.as_mut().filter(|_| is_taken) {
        turn.heard_at = state.now;
    }
    is_taken
}

/// Ends a question without an answer of the lead, and its request.
pub(super) fn end(state: &mut State, id: QuestionId, words: String, allowed: Option<bool>) {
    state.show(ConversationUpdate::Decided { id, words });
    if let Some(filed) = take_filed(state, |filed| filed.question == id) {
        state.outbox.push(OutboundOp::Withdraw(filed.request, allowed));
    }
}

fn take_filed(state: &mut State, is_it: impl Fn(&FiledQuestion) -> bool) -> Option<FiledQuestion> {
    let at = state.filed.iter().position(is_it)?;
    Some(state.filed.remove(at))
}

/// The effect of an answer of the lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerEffect {
    /// It is for no question of this run.
    None,
    Allowed,
    /// The agent was not allowed what it asked for, or no longer asks.
    NotAllowed,
}

/// Gives the lead's answer to the agent.
pub(super) fn answered(state: &mut State, response: &PermissionResponse) -> AnswerEffect {
    let is_approval = matches!(response.verdict, PermissionVerdict::Allowed { .. });
    let (allowed, reason) = match &response.verdict {
        PermissionVerdict::Allowed { updated_input: Some(input), .. }
            if is_other_input(state, &response.request_id, input) =>
        {
            (false, Some(format!("use this input instead: {input}")))
        }
        PermissionVerdict::Allowed { .. } => (true, None),
        PermissionVerdict::Denied { error } => {
            (false, Some(error.clone()).filter(|error| error != DENIED))
        }
    };
    decide(state, &response.request_id, is_approval, (allowed, reason))
}

/// Returns true for an input that the request did not have: the agent would use its own.
fn is_other_input(state: &State, request: &str, given: &Value) -> bool {
    let filed = state.filed.iter().find(|filed| filed.request.as_str() == request);
    filed.is_some_and(|filed| filed.input != *given)
}

/// The same for a plan.
pub(super) fn plan_answered(state: &mut State, response: &PlanApprovalResponse) -> AnswerEffect {
    let verdict = (response.approved, response.feedback.clone());
    decide(state, &response.request_id, response.approved, verdict)
}

fn decide(
    state: &mut State,
    request: &str,
    is_approval: bool,
    (allowed, reason): (bool, Option<String>),
) -> AnswerEffect {
    let Some(filed) = take_filed(state, |filed| filed.request.as_str() == request) else {
        // The report that it was answered in the pane, or withdrawn, has replaced this answer.
        let is_over = state.me.incarnation.has_asked(request);
        return if is_over { AnswerEffect::NotAllowed } else { AnswerEffect::None };
    };
    let question = state.session.questions().find(|question| question.id == filed.question);
    let option = question.and_then(|question| question.choose(allowed)).map(|one| one.id.clone());
    // Without an option for this decision, the question is cancelled, which allows nothing.
    if !answer(state, filed.question, option.as_deref()) {
        state.outbox.push(OutboundOp::Withdraw(filed.request, None));
        return AnswerEffect::NotAllowed;
    }
    let is_allowed = allowed && option.is_some();
    let typed = if is_approval && !is_allowed { Typed::Rejected } else { Typed::Taken };
    state.outbox.push(OutboundOp::Typed(filed.request, typed));
    let verdict = match (allowed, &option) {
        (true, Some(_)) => "allowed by the lead",
        (true, None) => "the agent has no option to allow it once",
        (false, _) => "denied by the lead",
    };
    state.show(ConversationUpdate::Decided { id: filed.question, words: verdict.to_owned() });
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    if reason.is_some() || allowed && option.is_none() {
        // An answer has no text, and in most agents a rejection ends the turn.
        let what = if filed.is_plan { "your plan" } else { "your request" };
        let verdict = match (allowed, &option) {
            (true, Some(_)) => "approved by the lead",
            (true, None) => "approved by the lead, but it has no option to allow it once",
            (false, _) => "denied by the lead",
        };
        let reason = text::after_colon(reason.map(|reason| text::short(&reason, REASON)));
        state.typed.push_back(format!("{what} was {verdict}{reason}"));
    }
    if is_allowed { AnswerEffect::Allowed } else { AnswerEffect::NotAllowed }
}
