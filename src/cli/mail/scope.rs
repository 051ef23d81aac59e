//! The origin of a request and the conversation it belongs to, from options and environment.

use std::ffi::OsStr;

use clap::Args;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::fail::Failure;
use crate::json;
use crate::setup::Setup;
use model::mail::scope::{ChatName, Scope};

/// The origin of a request.
#[derive(Debug, Clone, Default, Args, Deserialize, JsonSchema)]
pub(crate) struct ScopeArgs {
    /// Origin, as user=U,channel=C,chat=X [default: $PHALANX_SCOPE].
    #[arg(long, value_name = "SCOPE", value_parser = Scope::parse)]
    #[serde(default, deserialize_with = "scope_from_json")]
    #[schemars(with = "Option<String>")]
    pub(crate) scope: Option<Scope>,
}

impl ScopeArgs {
    /// Returns the given scope, else that of the environment, else an empty one.
    pub(crate) fn resolve(&self, setup: &Setup) -> Result<Scope, Failure> {
        let given =
            self.scope.clone().map(Ok).or_else(|| variable(setup, "PHALANX_SCOPE", Scope::parse));
        given.unwrap_or_else(|| Ok(Scope::default()))
    }
}

// The conversation whose files are meant. Not a doc comment: clap would show it as the description
// of the verbs.
#[derive(Debug, Clone, Default, Args, Deserialize, JsonSchema)]
pub(crate) struct ChatArg {
    /// Conversation [default: $PHALANX_CHAT, else `default`].
    #[arg(long, value_name = "CHAT", value_parser = ChatName::parse, allow_hyphen_values = true)]
    #[serde(default, deserialize_with = "chat_from_json")]
    #[schemars(with = "Option<String>")]
    pub(crate) chat: Option<ChatName>,
}

impl ChatArg {
    pub(crate) fn resolve(&self, setup: &Setup) -> Result<ChatName, Failure> {
        let given =
            self.chat.clone().map(Ok).or_else(|| variable(setup, "PHALANX_CHAT", ChatName::parse));
        given.unwrap_or_else(|| Ok(ChatName::default()))
    }
}

fn scope_from_json<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Scope>, D::Error> {
    let parse = |text: &str| Scope::parse(text).map_err(|problem| format!("`scope`: {problem}"));
    json::optional(deserializer, parse)
}

fn chat_from_json<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ChatName>, D::Error> {
    json::optional(deserializer, ChatName::parse)
}

/// Parses a variable of the environment; `None` if it is not set.
fn variable<T>(
    setup: &Setup,
    name: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Option<Result<T, Failure>> {
    let value = setup.ctx.caller.var(name).map(OsStr::to_string_lossy)?;
    Some(parse(&value).map_err(|problem| {
        Failure::usage(format!("${name}: {problem}"), "correct the variable, or unset it")
    }))
}
