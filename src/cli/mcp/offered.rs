//! The tools that a caller has, and their calls.

use serde_json::Value;

use super::aliases;
use super::arguments::ToolArguments;
use super::call::{Reply, ToolCall};
use super::schema::{ACTION, ToolSchema};
use super::table::TOOLS;
use super::tools::{Audience, ToolAction, ToolDefinition, ToolEffect, schema_of_tool};
use crate::fail::Failure;
use crate::out::Out;
use model::members::mode::Mode;
use model::name::nearest;
use model::wire::Object;

/// The caller of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ToolUser {
    pub(super) is_lead: bool,
    pub(super) mode: Option<Mode>,
    pub(super) read_only: bool,
}

impl ToolUser {
    fn may(self, effect: ToolEffect) -> bool {
        let is_allowed = !self.read_only || effect == ToolEffect::Reads;
        is_allowed && (self.mode != Some(Mode::Delegate) || effect != ToolEffect::Works)
    }
}

/// A tool with the actions of it that a caller may use.
pub(super) struct OfferedTool {
    pub(super) definition: &'static ToolDefinition,
    pub(super) actions: Vec<&'static ToolAction>,
}

impl OfferedTool {
    pub(super) fn schema(&self) -> ToolSchema {
        schema_of_tool(self.actions.iter().copied())
    }

    pub(super) fn has_only(&self, effect: ToolEffect) -> bool {
        self.actions.iter().all(|action| action.effect == effect)
    }

    /// Runs the tool with the arguments of a call.
    pub(super) fn run(&self, call: &ToolCall, given: Object) -> Result<Reply, Failure> {
        let mut given = aliases::translate(self.definition.name, given);
        // Many models give null for what they leave out.
        given.retain(|_, value| !value.is_null());
        let action = match self.actions.as_slice() {
            [only] if only.names.name.is_empty() => *only,
            actions => chosen(actions, given.shift_remove(ACTION))?,
        };
        let given = ToolArguments::read(action.names, action.schema(), given)?;
        if action.effect == ToolEffect::Reads {
            return (action.run)(call, given);
        }
        let ensure_lead = || call.server.leads.ensure(&call.setup(Out::captured().0).ok()?);
        // Before, for members of an earlier session; after, for members that it has started.
        let before = ensure_lead();
        let mut reply = (action.run)(call, given)?;
        reply.notes.extend(before.or_else(ensure_lead));
        Ok(reply)
    }
}

/// Returns the tools that the caller may use.
pub(super) fn offered(user: ToolUser) -> impl Iterator<Item = OfferedTool> {
    TOOLS.iter().filter_map(move |definition| {
        let is_for_user = match definition.audience {
            Audience::Lead => user.is_lead,
            Audience::Teammate => !user.is_lead,
            Audience::Everyone => true,
        };
        let actions: Vec<_> =
            definition.actions.iter().filter(|action| user.may(action.effect)).collect();
        (is_for_user && !actions.is_empty()).then_some(OfferedTool { definition, actions })
    })
}

/// Returns the action that a call names.
fn chosen(
    actions: &[&'static ToolAction],
    given: Option<Value>,
) -> Result<&'static ToolAction, Failure> {
    let given = given.as_ref().map(|given| given.as_str().unwrap_or_default());
    let word = given.map(aliases::action).unwrap_or_default();
    if let Some(found) = actions.iter().find(|action| action.names.name == word) {
        return Ok(found);
    }
    let names: Vec<&str> = actions.iter().map(|action| action.names.name).collect();
    let meant = nearest(word, names.iter().copied());
    let meant = meant.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    let problem = match given {
        None => "`action` is missing".to_owned(),
        Some(given) => format!("there is no action {given:?}"),
    };
    Err(Failure::usage(problem, &format!("{meant}the actions are {}", names.join(", "))))
}
