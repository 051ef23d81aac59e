//! Requests of members as questions of the session, and its answers as answers to them.

use acp::{AgentToolCall, Diff, OptionKind, QuestionOption, ToolContent, ToolKind, ToolStatus};
use model::decisions::question::{Ask, Question};
use model::decisions::user_question::UserQuestion;
use model::mail::protocol::AnsweredBy;
use model::text;
use ops::decisions::decide::{Answer, ApprovalPreview};
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

/// Returns the question for a request, with the consequences of approving it; `None` if it cannot be
/// answered with one choice: it is answered in the member's pane, or by `phalanx answer`.
pub(super) fn question(
    request: &Question,
    preview: Option<&ApprovalPreview>,
) -> Option<SessionQuestion> {
    if request.answered_by() == Some(AnsweredBy::Pane) {
        return None;
    }
    let asked = request.user_questions();
    let options = match asked.as_slice() {
        [] => yes_and_no(request, preview),
        [one] if !one.takes_several && !one.options.is_empty() => answers(one),
        _ => return None,
    };
    let mut tool = tool(request, asked.first());
    let reasons = preview.map(ApprovalPreview::reasons).unwrap_or_default();
    tool.content.extend(reasons.iter().map(|reason| ToolContent::Text(text::line(reason))));
    Some(SessionQuestion { tool, options })
}

fn yes_and_no(request: &Question, preview: Option<&ApprovalPreview>) -> Vec<QuestionOption> {
    let (yes, no) = match request.ask() {
        Some(Ask::Plan(_)) => ("Approve", "Reject"),
        Some(Ask::Permission(_) | Ask::Sandbox(_)) | None => ("Allow", "Deny"),
    };
    let rules = preview.and_then(|preview| preview.always.as_ref().ok());
    let always = rules.filter(|rules| !rules.is_empty()).map(|rules| {
        let rules: Vec<String> = rules.iter().cloned().map(String::from).collect();
        let name = format!("Allow {} to every member from now on", rules.join(", "));
        option(ALWAYS, &text::line(&name), OptionKind::AllowAlways)
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
    Some(Answer { approve, answers, always: option == ALWAYS, ..Answer::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::decisions::question::QuestionKind;
    use model::decisions::rules::Rule;
    use model::id::{MemberName, RequestId};
    use model::time::Timestamp;
    use serde_json::json;

    fn request(kind: QuestionKind, message: &Value) -> Question {
        Question {
            format: 1,
            id: RequestId::parse("perm-1-k2j").expect("an id"),
            kind,
            from: MemberName::existing("ann").expect("a name"),
            incarnation: None,
            msg_id: "m1".to_owned(),
            asked_at: Timestamp(1),
            deadline_at: Timestamp(2),
            last_notification: None,
            message: message.to_string(),
            decision: None,
            event: "e1".to_owned(),
        }
    }

    fn permission(tool: &str, input: Value, answered_by: Option<&str>) -> Question {
        let mut message = json!({
            "type": "permission_request", "request_id": "perm-1-k2j", "agent_id": "ann",
            "tool_name": tool, "input": input,
        });
        if let Some(by) = answered_by {
            message["answered_by"] = by.into();
        }
        request(QuestionKind::Permission, &message)
    }

    fn ids(asked: &SessionQuestion) -> Vec<&str> {
        asked.options.iter().map(|option| option.id.as_str()).collect()
    }

    fn preview(outside: Option<&str>, asked_by: Option<&str>) -> ApprovalPreview {
        let rule = Rule::parse("Bash(rm:*)").expect("a rule");
        ApprovalPreview {
            always: Ok(vec![rule]),
            asked_by: asked_by.map(str::to_owned),
            outside: outside.map(str::to_owned),
        }
    }

    #[test]
    fn permission_shows_all_that_is_approved() {
        let command = format!("rm -rf /tmp/a && {} ; rm -rf /", "true ".repeat(100));
        let request = permission("Bash", json!({"command": command}), None);
        let asked = question(&request, Some(&preview(Some("/"), Some("Bash(rm:*)")))).expect("one");
        assert!(asked.tool.title.starts_with("ann: Bash: rm -rf /tmp/a"), "{}", asked.tool.title);
        assert_eq!(
            asked.tool.content,
            [
                ToolContent::Text(command),
                ToolContent::Text("A rule has this asked: Bash(rm:*).".to_owned()),
                ToolContent::Text("It names /, outside of its directory.".to_owned()),
            ]
        );
        assert_eq!(ids(&asked), [ALLOW, ALWAYS, REJECT]);
        assert_eq!(asked.options[1].name, "Allow Bash(rm:*) to every member from now on");
    }

    #[test]
    fn option_for_a_rule_needs_a_rule() {
        let request = permission("Bash", json!({"command": "ls"}), None);
        let refused = ApprovalPreview { always: Err("no".to_owned()), ..preview(None, None) };
        let none = ApprovalPreview { always: Ok(Vec::new()), ..preview(None, None) };
        for preview in [None, Some(&refused), Some(&none)] {
            let asked = question(&request, preview).expect("one");
            assert_eq!(ids(&asked), [ALLOW, REJECT], "{preview:?}");
        }
    }

    #[test]
    fn change_of_a_file_is_a_diff() {
        let input = json!({"file_path": "/w/a", "old_string": "one", "new_string": "two"});
        let asked = question(&permission("Edit", input, None), None).expect("one");
        let diff =
            Diff { path: "/w/a".to_owned(), old: Some("one".to_owned()), new: "two".to_owned() };
        assert_eq!(asked.tool.content, [ToolContent::Diff(diff)]);
        assert_eq!(
            (asked.tool.kind, asked.tool.locations),
            (ToolKind::Edit, vec!["/w/a".to_owned()])
        );
    }

    #[test]
    fn plan_is_shown_whole() {
        let message = json!({
            "type": "plan_approval_request", "request_id": "perm-1-k2j", "planContent": "# A plan\n\n1. Do it.",
        });
        let asked = question(&request(QuestionKind::Plan, &message), None).expect("one");
        assert_eq!(asked.tool.title, "ann: A plan");
        assert_eq!(asked.tool.content, [ToolContent::Text("# A plan\n\n1. Do it.".to_owned())]);
        assert_eq!(asked.options[0].name, "Approve");
    }

    #[test]
    fn question_to_the_user_is_answered_by_one_of_its_options() {
        let one =
            json!({"question": "Which colour?", "options": [{"label": "red"}, {"label": "blue"}]});
        let asked = permission("AskUserQuestion", json!({"questions": [one]}), None);
        let asked = question(&asked, None).expect("one");
        assert_eq!(asked.tool.title, "ann: Which colour?");
        assert_eq!(ids(&asked), ["answer-1", "answer-2", REJECT]);
        let made = answer("answer-2").expect("an answer");
        assert_eq!((made.approve, made.answers), (true, vec!["2".to_owned()]));
        let several = json!({"questions": [one, one]});
        assert_eq!(question(&permission("AskUserQuestion", several, None), None), None);
    }

    #[test]
    fn dialog_of_a_pane_without_keys_is_not_asked() {
        let request = permission("Bash", json!({"command": "ls"}), Some("pane"));
        assert_eq!(question(&request, None), None);
    }

    #[test]
    fn options_are_answers() {
        let rows = [(ALLOW, true, false), (ALWAYS, true, true), (REJECT, false, false)];
        for (option, approve, always) in rows {
            let made = answer(option).expect("an answer");
            assert_eq!((made.approve, made.always), (approve, always), "{option}");
        }
        assert!(answer("something else").is_none());
    }
}
