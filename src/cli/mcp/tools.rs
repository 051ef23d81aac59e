//! The description of a tool. The table of all tools is in `table`.

use serde_json::json;

use super::arguments::ToolArguments;
use super::call::{Reply, ToolCall};
use super::schema::{ACTION, ActionNames, Renamed, ToolSchema};
use crate::fail::Failure;

/// The members that have a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Lead,
    Teammate,
    Everyone,
}

/// The changes that an action makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolEffect {
    /// Nothing.
    Reads,
    /// The team: its members, messages, requests, and the tasks that it shares.
    Writes,
    /// Files, a terminal, or the progress of a task: the work of a member, which a lead in delegate
    /// mode leaves to others.
    Works,
    /// It ends or deletes what cannot be restored.
    Ends,
}

/// A tool.
pub(super) struct ToolDefinition {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) audience: Audience,
    /// The values of its argument `action`; a tool without one has a single action without a name.
    pub(super) actions: &'static [ToolAction],
}

/// An action of a tool.
#[derive(Clone, Copy)]
pub(super) struct ToolAction {
    pub(super) names: ActionNames,
    pub(super) effect: ToolEffect,
    /// The verbs of the command line that it performs.
    pub(super) verbs: &'static [&'static str],
    pub(super) schema: fn(&ActionNames) -> ToolSchema,
    pub(super) run: fn(&ToolCall, ToolArguments) -> Result<Reply, Failure>,
}

impl ToolAction {
    pub(super) const fn named(mut self, name: &'static str) -> ToolAction {
        self.names.name = name;
        self
    }

    /// Names the action by the last word of its last verb.
    pub(super) const fn named_by_verb(self) -> ToolAction {
        let verb = self.verbs[self.verbs.len() - 1];
        let mut start = verb.len();
        while start > 0 && verb.as_bytes()[start - 1] != b' ' {
            start -= 1;
        }
        self.named(verb.split_at(start).1)
    }

    pub(super) const fn renamed(mut self, renamed: &'static [Renamed]) -> ToolAction {
        self.names.renamed = renamed;
        self
    }

    pub(super) fn schema(&self) -> ToolSchema {
        (self.schema)(&self.names)
    }
}

/// Returns the schema of a tool: the arguments of all its actions that are offered.
pub(super) fn schema_of_tool<'a>(actions: impl Iterator<Item = &'a ToolAction>) -> ToolSchema {
    let (mut whole, mut names) = (ToolSchema::default(), Vec::new());
    for action in actions {
        let schema = action.schema();
        if action.names.name.is_empty() {
            return schema;
        }
        names.push(action.names.name);
        whole.merge(schema);
    }
    let action = json!({ "type": "string", "enum": names });
    whole.properties.shift_insert(0, ACTION.to_owned(), action);
    whole.required = vec![ACTION.to_owned()];
    whole
}
