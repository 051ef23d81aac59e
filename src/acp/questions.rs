//! The permissions that an agent asks for, and their answers. An option is chosen by its kind only:
//! agents list a permanent permission first, and give the ids meanings of their own.

use serde_json::{Value, json};

use crate::calls::CallTable;
use crate::report::{
    AgentQuestion, AgentToolCall, OptionKind, QuestionId, QuestionOption, ToolContent, ToolKind,
};
use crate::wire::OptionPart;

/// The most questions that can be open. An agent waits for each.
const MOST_QUESTIONS: usize = 256;

/// The beginning of the id and of the title of gemini's call that leaves its plan mode.
const GEMINI_PLAN_EXIT: &str = "exit_plan_mode__";
const GEMINI_PLAN_FILE: &str = "Requesting plan approval for: ";

impl AgentQuestion {
    /// Returns the option that allows this once, or that rejects it. It never returns a permanent
    /// permission, and a permanent rejection only without another one. Of several options it takes
    /// the first, which for a plan keeps the more careful mode.
    pub fn choose(&self, allow: bool) -> Option<&QuestionOption> {
        let first = |kind| self.options.iter().find(|option| option.kind == kind);
        if allow {
            first(OptionKind::AllowOnce)
        } else {
            first(OptionKind::RejectOnce).or_else(|| first(OptionKind::RejectAlways))
        }
    }

    pub(crate) fn new(
        id: QuestionId,
        tool: AgentToolCall,
        plan: Option<String>,
        options: Vec<OptionPart>,
    ) -> Self {
        let options = options.into_iter().map(|option| QuestionOption {
            id: option.option_id,
            name: option.name,
            kind: option.kind.parse().unwrap_or(OptionKind::Other),
        });
        Self { id, tool, options: options.collect(), plan }
    }
}

/// Returns the text of the plan, if the tool leaves the agent's plan mode. `calls` are those of the
/// turn.
pub(crate) fn plan_of(tool: &AgentToolCall, calls: &CallTable) -> Option<String> {
    if tool.kind == ToolKind::SwitchMode {
        return own_plan(tool);
    }
    // gemini has no kind for it. The name of the tool is in the id, and the title names the file
    // that an earlier call has written.
    let is_exit = tool.id.starts_with(GEMINI_PLAN_EXIT);
    let path = tool.title.strip_prefix(GEMINI_PLAN_FILE).filter(|_| is_exit)?;
    Some(calls.text_of_file(path).unwrap_or(&tool.title).to_owned())
}

/// Returns the text of a plan, which is in the input or in the content.
fn own_plan(tool: &AgentToolCall) -> Option<String> {
    if let Some(plan) = tool.input.get("plan").and_then(Value::as_str) {
        return Some(plan.to_owned());
    }
    let texts = tool.content.iter().filter_map(|content| match content {
        ToolContent::Text(text) => Some(text.as_str()),
        ToolContent::Diff(_) => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then_some(text)
}

/// The open questions.
#[derive(Debug, Default)]
pub(crate) struct QuestionTable {
    last: u64,
    open: Vec<AskedQuestion>,
}

#[derive(Debug)]
struct AskedQuestion {
    /// The id of the agent's request, a number or a text.
    request: Value,
    question: AgentQuestion,
}

impl QuestionTable {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &AgentQuestion> {
        self.open.iter().map(|open| &open.question)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.open.len() >= MOST_QUESTIONS
    }

    pub(crate) fn add(
        &mut self,
        request: Value,
        tool: AgentToolCall,
        plan: Option<String>,
        options: Vec<OptionPart>,
    ) -> &AgentQuestion {
        self.last += 1;
        let question = AgentQuestion::new(QuestionId(self.last), tool, plan, options);
        &self.open.push_mut(AskedQuestion { request, question }).question
    }

    pub(crate) fn get(&self, id: QuestionId) -> Option<&AgentQuestion> {
        self.iter().find(|question| question.id == id)
    }

    /// Removes a question and returns the id of its request.
    pub(crate) fn remove(&mut self, id: QuestionId) -> Option<Value> {
        let index = self.open.iter().position(|open| open.question.id == id)?;
        Some(self.open.remove(index).request)
    }

    pub(crate) fn find(&self, request: &Value) -> Option<QuestionId> {
        self.open.iter().find(|open| open.request == *request).map(|open| open.question.id)
    }

    /// Removes all questions.
    pub(crate) fn take(&mut self) -> Vec<(Value, QuestionId)> {
        self.open.drain(..).map(|open| (open.request, open.question.id)).collect()
    }
}

pub(crate) fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

pub(crate) fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}
