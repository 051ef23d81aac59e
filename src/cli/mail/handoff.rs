//! The `handoff` subcommands.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use strum::VariantArray;

use crate::args::object;
use crate::fail::{Failure, VerbResult};
use crate::mail::scope::ScopeArgs;
use crate::read::text_from;
use crate::setup::Setup;
use model::id::TeamName;
use model::mail::handoff::{HandoffField, HandoffType};
use model::name::nearest;
use model::wire::Object;
use ops::authority::Action;

#[derive(Debug, Subcommand, Deserialize, JsonSchema)]
#[command(defer = true)]
#[serde(tag = "action", rename_all = "snake_case")]
pub(crate) enum HandoffVerb {
    Send(SendHandoffArgs),
    /// List the types of handoffs, or the fields of one type with an example.
    Types {
        /// Type to explain.
        #[arg(value_name = "TYPE")]
        kind: Option<String>,
    },
    Put(PutHandoffArgs),
    /// List the handoffs from other teams.
    List {
        /// Only those of this team.
        #[arg(long, value_name = "TEAM")]
        from: Option<String>,
    },
    /// Print a handoff from another team.
    Get {
        /// Id of the handoff, or its beginning.
        #[arg(value_name = "ID")]
        handoff: String,
    },
}

/// Send a member a message with a typed body.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx handoff send sam --type dev_progress --body '{\"task\": \"01-01/T3\", \
    \"plan_id\": \"01-01\", \"status\": \"complete\", \"commit\": \"abc1234\"}'\n  \
    phalanx handoff send --type dev_blocker --file blocker.json\n\n\
    The body is checked first. A dev_blocker without NAME goes to whom the team escalates it, or else to the lead. \
    A handoff does not change the task board."
)]
pub(crate) struct SendHandoffArgs {
    /// Recipient; only a dev_blocker needs none.
    pub(crate) name: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) body: BodyArgs,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) scope: ScopeArgs,
}

/// Hand a typed body over to the lead of another team.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Example:\n  phalanx handoff put frontend -t backend --type api_contract --file contract.json\n\n\
    The body is kept in a file of that team, and its lead gets one message that names the command to read it."
)]
pub(crate) struct PutHandoffArgs {
    /// The other team.
    #[arg(value_name = "TEAM")]
    pub(crate) to_team: String,
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) body: BodyArgs,
}

/// The body of a handoff; read from stdin if neither option is given.
#[derive(Debug, Args, Deserialize, JsonSchema)]
pub(crate) struct BodyArgs {
    /// Type of the body; see `handoff types`.
    #[arg(long = "type", value_name = "TYPE")]
    pub(crate) kind: String,
    /// The body, a JSON object [default: stdin].
    #[arg(long, value_name = "JSON", value_parser = object)]
    #[schemars(schema_with = "crate::json::object")]
    pub(crate) body: Option<Object>,
    /// File with the body; - reads stdin.
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    #[serde(skip)]
    pub(crate) file: Option<PathBuf>,
}

pub(crate) fn handoff(setup: &Setup, verb: HandoffVerb) -> VerbResult {
    match verb {
        HandoffVerb::Send(args) => send(setup, args),
        HandoffVerb::Types { kind: None } => types(setup),
        HandoffVerb::Types { kind: Some(kind) } => one_type(setup, &kind),
        HandoffVerb::Put(args) => put(setup, args),
        HandoffVerb::List { from } => list(setup, from.as_deref()),
        HandoffVerb::Get { handoff } => get(setup, &handoff),
    }
}

fn send(setup: &Setup, args: SendHandoffArgs) -> VerbResult {
    let (team, to) = match &args.name {
        Some(name) => setup.member(name, Action::Talk).map(|(team, to)| (team, Some(to)))?,
        None => (setup.team(Action::Talk)?, None),
    };
    let (kind, body) = read_body(args.body)?;
    let scope = args.scope.resolve(setup)?;
    let sent = ops::mail::handoff::send(&setup.ctx, &team, to.as_ref(), &kind, body, &scope)?;
    warn_if_unchecked(setup, &kind);
    setup.out.confirm(&sent, || sent.message.clone())
}

fn put(setup: &Setup, args: PutHandoffArgs) -> VerbResult {
    let team = setup.team(Action::HandOver)?;
    let to = setup.ctx.store.find(&args.to_team)?;
    let to = setup.ctx.store.team(&to)?;
    let (kind, body) = read_body(args.body)?;
    let done = ops::mail::handoff::put(&setup.ctx, &team, &to, &kind, body)?;
    warn_if_unchecked(setup, &kind);
    setup.out.confirm(&done, || done.message.clone())
}

/// Returns the type and the body.
fn read_body(args: BodyArgs) -> Result<(String, Object), Failure> {
    let BodyArgs { kind, body, file } = args;
    if let Some(body) = body {
        return Ok((kind, body));
    }
    let file = file.unwrap_or_else(|| PathBuf::from("-"));
    let text = text_from("body", &file)?;
    let body = serde_json::from_str(&text).map_err(|e| {
        let name = if file == Path::new("-") { "stdin".into() } else { file.display().to_string() };
        let problem = format!("{name}:{}:{}: not a JSON object: {e}", e.line(), e.column());
        let hint = format!("see a valid one with `phalanx handoff types {kind}`");
        Failure::usage(problem, &hint)
    })?;
    Ok((kind, body))
}

/// Reports a body that was not checked, because its type is not known.
fn warn_if_unchecked(setup: &Setup, kind: &str) {
    if kind.parse::<HandoffType>().is_err() {
        let meant = nearest(kind, HandoffType::VARIANTS.iter().map(|known| known.as_str()));
        let meant = meant.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
        let words = format!("`{kind}` is not a known type, so its body was not checked{meant}");
        setup.out.print_message(&words);
    }
}

fn type_document(kind: HandoffType) -> Value {
    let field = |field: &HandoffField| json!({ "name": field.name, "required": field.is_required, "expected": field.expected });
    let fields: Vec<Value> = kind.fields().iter().map(field).collect();
    let example: Value = serde_json::from_str(kind.example()).unwrap_or_default();
    json!({ "type": kind.as_str(), "purpose": kind.purpose(), "fields": fields, "example": example })
}

fn types(setup: &Setup) -> VerbResult {
    let documents: Vec<Value> = HandoffType::VARIANTS.iter().copied().map(type_document).collect();
    setup.out.print(&documents, || ui::handoff_types(setup.out.paint))
}

fn one_type(setup: &Setup, given: &str) -> VerbResult {
    let kind: HandoffType = given.parse().map_err(|_| {
        let known = || HandoffType::VARIANTS.iter().map(|kind| kind.as_str());
        let meant = nearest(given, known()).map(|word| format!("did you mean `{word}`? "));
        let known = known().collect::<Vec<_>>().join(", ");
        let hint = format!("{}known: {known}", meant.unwrap_or_default());
        Failure::usage(format!("`{}` is not a known type", given.escape_debug()), &hint)
    })?;
    setup.out.print(&type_document(kind), || ui::handoff_type(kind, setup.out.paint))
}

fn list(setup: &Setup, from: Option<&str>) -> VerbResult {
    let team = setup.team(Action::Look)?;
    let mut found = ops::mail::handoff::list(&setup.ctx, &team)?;
    if let Some(from) = from {
        let from = TeamName::existing(from)?;
        found.handoffs.retain(|handoff| handoff.from_team == from);
    }
    found.faults.iter().for_each(|fault| setup.out.print_message(fault));
    let width = setup.out.width();
    let table = || ui::handoff_table(&found.handoffs, ops::now(), width, setup.out.paint);
    setup.out.print_list(&found.handoffs, "no handoffs from other teams", table)
}

fn get(setup: &Setup, id: &str) -> VerbResult {
    let team = setup.team(Action::Look)?;
    let handoff = ops::mail::handoff::get(&setup.ctx, &team, id)?;
    setup.out.print(&handoff, || ui::handoff_page(&handoff, setup.out.paint))
}
