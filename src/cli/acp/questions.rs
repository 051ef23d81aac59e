//! Requests of members as questions of the session, and its answers as answers to them.

use acp::{AgentToolCall, Diff, OptionKind, QuestionOption, ToolContent, ToolKind, ToolStatus};
use model::decisions::question::{Ask, Question};
use model::decisions::user_question::UserQuestion;
use model::mail::protocol::AnsweredBy;
use model::text;
use ops::decisions::decide::Answer;
use serde_json::Value;

/// Maximum length of a title, in characters.
const TITLE: usize = 200;

/// Ids of the options.
const ALLOW: &str = "allow";
const ALWAYS: &str = "always";
const REJECT: &str = "reject";
/// Prefix of the options that answer a question of the program to its user.
const ANSWER: &str = "answer-";

/// A request as a question of the session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SessionQuestion {
    pub(super) tool: AgentToolCall,
    pub(super) options: Vec<QuestionOption>,
}

/// Returns the question for a request; `None` if it cannot be answered with one choice: it is
/// answered in the member's pane, or by `phalanx answer`.
pub(super) fn question(request: &Question) -> Option<SessionQuestion> {
    if request.answered_by() == Some(AnsweredBy::Pane) {
        return None;
    }
    let asked = request.user_questions();
    let options = match asked.as_slice() {
        [] => yes_and_no(request),
        [one] if !one.takes_several && !one.options.is_empty() => answers(one),
        _ => return None,
    };
    Some(SessionQuestion { tool: tool(request, asked.first()), options })
}

fn yes_and_no(request: &Question) -> Vec<QuestionOption> {
    let (yes, no) = match request.ask() {
        Some(Ask::Plan(_)) => ("Approve", "Reject"),
        Some(Ask::Permission(_) | Ask::Sandbox(_)) | None => ("Allow", "Deny"),
    };
    let takes_rule =
        matches!(request.ask(), Some(Ask::Permission(_))) && request.answered_by().is_none();
    let always = takes_rule.then(|| {
        option(ALWAYS, "Allow the same to every member from now on", OptionKind::AllowAlways)
    });
    let yes = option(ALLOW, yes, OptionKind::AllowOnce);
    [yes].into_iter().chain(always).chain([option(REJECT, no, OptionKind::RejectOnce)]).collect()
}

fn answers(asked: &UserQuestion) -> Vec<QuestionOption> {
    let answer = |(nth, one): (usize, &model::decisions::user_question::UserOption)| {
        option(&format!("{ANSWER}{nth}"), &text::short(&one.label, TITLE), OptionKind::AllowOnce)
    };
    let answers = (1..).zip(&asked.options).map(answer);
    answers.chain([option(REJECT, "Do not answer", OptionKind::RejectOnce)]).collect()
}

fn option(id: &str, name: &str, kind: OptionKind) -> QuestionOption {
    QuestionOption { id: id.to_owned(), name: name.to_owned(), kind }
}

fn tool(request: &Question, asked: Option<&UserQuestion>) -> AgentToolCall {
    let (kind, input, content, path) = match request.ask() {
        Some(Ask::Plan(plan)) => {
            let plan = plan.plan_content.unwrap_or_default();
            (ToolKind::SwitchMode, Value::Null, texts(&plan), None)
        }
        Some(Ask::Permission(asked)) => {
            let word = |key: &str| asked.input.get(key).and_then(Value::as_str).map(str::to_owned);
            let path = word("file_path");
            let content = match (&path, word("new_string").or_else(|| word("content"))) {
                (Some(path), Some(new)) => {
                    let (path, old) = (path.clone(), word("old_string"));
                    vec![ToolContent::Diff(Diff { path, old, new })]
                }
                _ => texts(&word("command").or(asked.description).unwrap_or_default()),
            };
            (kind_of(&asked.tool_name), asked.input, content, path)
        }
        Some(Ask::Sandbox(_)) | None => (ToolKind::Fetch, Value::Null, Vec::new(), None),
    };
    let summary = asked.map_or_else(|| request.summary(), |asked| asked.text.clone());
    AgentToolCall {
        id: request.id.to_string(),
        title: text::short(&format!("{}: {}", request.from, text::line(&summary)), TITLE),
        kind,
        status: ToolStatus::Pending,
        input,
        content,
        locations: path.into_iter().collect(),
    }
}

fn texts(text: &str) -> Vec<ToolContent> {
    let text = text::block(text);
    if text.is_empty() { Vec::new() } else { vec![ToolContent::Text(text)] }
}

fn kind_of(tool: &str) -> ToolKind {
    match tool {
        "Bash" => ToolKind::Execute,
        "Read" => ToolKind::Read,
        "Grep" | "Glob" => ToolKind::Search,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => ToolKind::Edit,
        _ => ToolKind::Other,
    }
}

/// Returns the answer that an option stands for; `None` for an unknown one.
pub(super) fn answer(option: &str) -> Option<Answer> {
    let approve = option != REJECT;
    let answers: Vec<String> = option.strip_prefix(ANSWER).map(str::to_owned).into_iter().collect();
    if !matches!(option, ALLOW | ALWAYS | REJECT) && answers.is_empty() {
        return None;
    }
    Some(Answer {
        approve,
        reason: None,
        mode: None,
        input: None,
        answers,
        always: option == ALWAYS,
        via: None,
    })
}
