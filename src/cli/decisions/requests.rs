//! `requests`, `mode` and `rules`.

use clap::{Args, Subcommand};
use schemars::JsonSchema;
use serde::Deserialize;
use strum::VariantNames;

use crate::args::{self, request_id};
use crate::fail::{Exit, Failure, VerbResult};
use crate::json;
use crate::setup::Setup;
use model::decisions::rules::{List, Rule};
use model::members::mode::Mode;
use ops::authority::Action;
use ops::decisions::modes::ModeChange;
use ops::decisions::requests;
use ops::{self, TeamStore};

/// List open requests: plans, permissions, hosts and shutdowns.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx requests --all\n  phalanx requests show perm-1795214628804-k2j",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct RequestsArgs {
    /// Include requests that were answered.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(subcommand)]
    pub(crate) verb: Option<RequestsVerb>,
}

/// The subcommands about one request.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum RequestsVerb {
    /// Show one request in full: the plan, the command, the edit as a diff, the question.
    Show {
        /// The request's id, or its beginning.
        #[arg(value_name = "ID")]
        id: String,
    },
}

/// Change the permission mode of members.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(after_help = "Examples:\n  phalanx mode ada acceptEdits\n  phalanx mode --all plan")]
pub(crate) struct ModeArgs {
    /// Member to change.
    #[arg(required_unless_present = "all", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Change all members that read mail.
    #[arg(long)]
    #[serde(default)]
    pub(crate) all: bool,
    /// The new mode.
    #[arg(value_parser = args::mode(), required_unless_present = "all", value_name = "MODE")]
    #[serde(default)]
    #[schemars(schema_with = "json::words::<Mode>")]
    pub(crate) mode: Option<Mode>,
}

/// Show, add or remove rules for what members may do.
#[derive(Debug, Args, Deserialize, JsonSchema)]
#[command(
    after_help = "Examples:\n  phalanx rules\n  phalanx rules deny \"Bash(git push:*)\"\n  phalanx rules deny --remove \"Bash(git push:*)\"\n\n\
    A change applies at once. A program that already has its own copy of a removed rule keeps it until it restarts."
)]
pub(crate) struct RulesArgs {
    /// List to change.
    #[arg(value_parser = args::word::<List>(), value_name = "deny|ask|allow")]
    #[arg(requires = "patterns")]
    #[serde(default, deserialize_with = "json::word")]
    #[schemars(schema_with = "json::words::<List>")]
    pub(crate) list: Option<List>,
    /// Patterns such as `Bash(git:*)` or `Edit(src/**)`, separated by commas.
    #[arg(value_parser = Rule::parse_list, value_name = "PATTERN")]
    #[serde(default, deserialize_with = "json::rules")]
    #[schemars(schema_with = "json::texts")]
    pub(crate) patterns: Vec<Vec<Rule>>,
    /// Remove the patterns from the list.
    #[arg(long, requires = "list")]
    #[serde(skip)]
    pub(crate) remove: bool,
}

pub(crate) fn requests(setup: &Setup, args: &RequestsArgs) -> VerbResult {
    if let Some(RequestsVerb::Show { id }) = &args.verb {
        let team = setup.team(Action::Look)?;
        let id = ops::decisions::ids::request(&setup.ctx, &team, &request_id(id)?)?;
        let shown = requests::show(&setup.ctx, &team, &id)?;
        setup.out.print(&shown, || ui::request_page(&shown, setup.out.paint))?;
        return Ok(Exit::DONE);
    }
    let shown = requests::list(&setup.ctx, &setup.team(Action::Look)?, args.all)?;
    setup.out.print(&shown, || ui::requests(&shown, setup.out.paint))
}

pub(crate) fn mode(setup: &Setup, args: &ModeArgs) -> VerbResult {
    // With `--all` the only positional argument is the mode.
    let (given, word) = match (args.all, &args.name, args.mode) {
        (true, Some(word), None) => (None, Mode::parse(word).ok_or(word.clone())),
        (false, Some(name), Some(mode)) => (Some(name), Ok(mode)),
        (_, given, _) => (None, Err(given.clone().unwrap_or_default())),
    };
    let mode = word.map_err(|word| {
        let known = Mode::VARIANTS.join(", ");
        let hint =
            format!("write `phalanx mode NAME MODE` or `phalanx mode --all MODE`; modes: {known}");
        Failure::usage(format!("{word:?} is not a mode for all members"), &hint)
    })?;
    let (team, names) = setup.members(given.map_or(&[], std::slice::from_ref), Action::SetMode)?;
    let changes = ops::decisions::modes::set(&setup.ctx, &team, names.first(), mode)?;
    if changes.iter().any(|change| !change.is_recorded) {
        setup.out.print_message(
            "warning: a native program does not confirm its mode, and Claude Code ignores the \
             request from 2.1.329 on; `phalanx keys NAME BTab` changes the mode on its screen",
        );
    }
    setup.out.confirm(&changes, || {
        if changes.is_empty() {
            "no member changes its mode while it runs".to_owned()
        } else {
            changes.iter().map(change_line).collect::<Vec<_>>().join("\n")
        }
    })
}

fn change_line(change: &ModeChange) -> String {
    let mode = change.mode.as_str();
    match change.msg_id {
        Some(_) => format!("asked {} to change to mode {mode}", change.name),
        None => format!("{} is in mode {mode}", change.name),
    }
}

pub(crate) fn rules(setup: &Setup, args: &RulesArgs) -> VerbResult {
    let team = setup.team(if args.list.is_some() { Action::SetRules } else { Action::Look })?;
    let Some(list) = args.list else {
        let rules = ops::decisions::rules::list(&team)?;
        setup.out.print(&rules, || ui::rules(&rules, setup.out.paint))?;
        return Ok(Exit::DONE);
    };
    if args.remove {
        return remove_rules(setup, &team, list, &args.patterns.concat());
    }
    let changed = ops::decisions::rules::add(&setup.ctx, &team, list, &args.patterns.concat())?;
    let informed = changed.told.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    if !changed.kept_back.is_empty() {
        setup.out.print_message(
            "programs ask on, and phalanx answers them: the same tool is denied or asked elsewhere",
        );
    }
    setup.out.confirm(&changed, || match (changed.added.len(), informed.as_str()) {
        (0, _) => "nothing new".to_owned(),
        (n, "") => format!("{n} added to {}", list.as_str()),
        (n, informed) => format!("{n} added to {}; told: {informed}", list.as_str()),
    })
}

fn remove_rules(setup: &Setup, team: &TeamStore, list: List, rules: &[Rule]) -> VerbResult {
    let done = ops::decisions::rules::remove(&setup.ctx, team, list, rules)?;
    if !done.kept_by.is_empty() {
        let names = done.kept_by.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        setup.out.print_message(&format!(
            "what their programs were told before they keep until they are started again: {names}"
        ));
    }
    setup.out.confirm(&done, || format!("{} taken out of {}", done.removed.len(), list.as_str()))
}
