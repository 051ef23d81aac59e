//! The `team` subcommands.

pub(crate) mod background;
pub(crate) mod brief;
pub(crate) mod broken;
pub(crate) mod closing;
pub(crate) mod compose;
pub(crate) mod deletion;
pub(crate) mod ended;
pub(crate) mod init;
pub(crate) mod lead;
pub(crate) mod lead_report;
pub(crate) mod lead_session;
pub(crate) mod manifest;
pub(crate) mod template;
pub(crate) mod up;
pub(crate) mod up_again;
pub(crate) mod up_plan;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::ending::by_process;
use crate::ending::stop::{delete_ended, end_members};
use crate::fail::{Exit, Failure, VerbResult};
use crate::read::{MAX_MANIFEST, prompt_file, read_text};
use crate::setup::Setup;
use config::manifest::Manifest;
use model::id::TeamName;
use model::team::settings::{MAX_MEMBERS, PlacementHome, Settings};
use model::text;
use ops::authority::Action;
use ops::ending::shutdown::ShutdownOptions;
use ops::starting::settings::SettingsChange;
use ops::{self, Kind, OpsError, TeamStore};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TeamVerb {
    /// Create a team without members.
    #[command(
        after_help = "Examples:\n  phalanx team create demo --description \"try things out\"\n  \
        phalanx team create demo --settings team.toml"
    )]
    Create(CreateTeamArgs),
    /// List all teams.
    List,
    /// Show one team, its members and its settings.
    Show,
    Set(SetTeamArgs),
    /// Give the team's task board all verbs.
    #[command(after_help = "Example:\n  phalanx team upgrade\n\n\
        Same as `phalanx team set board.version 2`.")]
    Upgrade,
    /// Delete a team whose members have stopped.
    Delete {
        /// Kill its members first, without asking.
        #[arg(long)]
        force: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct CreateTeamArgs {
    /// Name of the team.
    pub(crate) name: String,
    /// Purpose of the team.
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// Agent type of the lead in the team file.
    #[arg(long, value_name = "TYPE")]
    pub(crate) agent_type: Option<String>,
    /// Socket of the tmux server to use.
    #[arg(long, value_name = "PATH")]
    pub(crate) tmux_socket: Option<PathBuf>,
    /// Settings file in TOML: a manifest without a name and without tasks.
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Append -2, -3 … if the name is taken.
    #[arg(long)]
    pub(crate) unique: bool,
}

/// Change settings of a team, or list them.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  phalanx team set\n  phalanx team set max_members 12 finish tasks-done\n  \
    phalanx team set notify '[\"notify-send\", \"phalanx\"]' env.deny '[\"AWS_*\"]'\n  \
    phalanx team set role.scout.model haiku member.dev.scale '{ max = 3 }'\n  \
    phalanx team set --unset notify\n\n\
    A key is a key of [team] in a manifest, or a dotted path into another section. A value is TOML; \
    quotes around a string are optional. Several changes are applied together or not at all. A running lead applies them at once."
)]
pub(crate) struct SetTeamArgs {
    /// Keys, each followed by its value.
    #[arg(value_names = ["KEY", "VALUE"], num_args = 0..)]
    pub(crate) pairs: Vec<String>,
    /// Reset a key to its default; repeatable.
    #[arg(long, value_name = "KEY")]
    pub(crate) unset: Vec<String>,
}

pub(crate) fn team(setup: &Setup, verb: TeamVerb) -> VerbResult {
    match verb {
        TeamVerb::Create(args) => create(setup, &args),
        TeamVerb::List => list(setup),
        TeamVerb::Show => show(setup),
        TeamVerb::Set(args) => set(setup, &args),
        TeamVerb::Upgrade => {
            let pairs = ["board.version", "2"].map(str::to_owned).to_vec();
            set(setup, &SetTeamArgs { pairs, unset: Vec::new() })
        }
        TeamVerb::Delete { force } => delete(setup, None, force),
    }
}

/// Makes a team that stays until a person ends it.
pub(crate) fn make_team(setup: &Setup, name: &str) -> Result<TeamStore, Failure> {
    let settings = Settings::by_hand(MAX_MEMBERS);
    Ok(ops::team::create(&setup.ctx, name, "", None, &settings, false)?)
}

fn create(setup: &Setup, args: &CreateTeamArgs) -> VerbResult {
    let tmux_socket = args.tmux_socket.as_deref().map(|path| setup.absolute(path)).transpose()?;
    // A lead that is started later must not delete the team, which belongs to its creator.
    let base = Settings {
        home: PlacementHome { tmux_socket, chosen: None },
        ..Settings::by_hand(MAX_MEMBERS)
    };
    let (settings, described) = match &args.settings {
        Some(file) => from_file(setup, &base, file)?,
        None => (base, None),
    };
    let description = args.description.clone().or(described).unwrap_or_default();
    let agent_type = args.agent_type.as_deref();
    let team = ops::team::create(
        &setup.ctx,
        &args.name,
        &description,
        agent_type,
        &settings,
        args.unique,
    )?;
    let document = json!({
        "team_name": team.name().as_str(),
        "team_file_path": team.team_file().to_string_lossy(),
        "lead_agent_id": team.team()?.lead_agent_id,
    });
    setup.out.confirm_new(&document, team.name(), || {
        format!("created team {0}; add members with `phalanx spawn NAME -t {0}`", team.name())
    })
}

/// Returns the settings of a file on top of `base`, and the description in the file.
fn from_file(
    setup: &Setup,
    base: &Settings,
    file: &Path,
) -> Result<(Settings, Option<String>), Failure> {
    let shown = file.display();
    let refused =
        |problem: String, hint| Failure::new(Kind::Usage, format!("{shown}: {problem}"), hint);
    let text =
        read_text(&setup.ctx.caller.cwd.join(file), MAX_MANIFEST).map_err(|e| refused(e, None))?;
    let hosts = ops::hosts::user_hosts(&setup.ctx)?;
    let manifest = Manifest::parse_settings(&text, &hosts).map_err(|fault| {
        let hint = match &fault.nearest {
            Some(word) => format!("did you mean `{word}`?"),
            None => {
                "settings are a manifest without `name` and tasks; `phalanx team set` lists keys"
                    .to_owned()
            }
        };
        let message = format!("{shown}:{}:{}: {}", fault.line, fault.column, fault.message);
        Failure::new(Kind::Usage, message, Some(hint))
    })?;
    let (tasks_only, message) =
        ops::starting::manifest::choose_mode(&setup.ctx, &manifest, manifest.settings.backend);
    let settings =
        ops::starting::settings::from_file(&setup.ctx, base, &text, tasks_only, &mut |file| {
            prompt_file(&setup.ctx.caller.cwd, file)
        })
        .map_err(|e| refused(e.to_string(), e.hint()))?;
    let crowds = ops::starting::manifest::shared_checkout_warnings(&settings.templates);
    message.iter().chain(&crowds).for_each(|line| setup.out.print_message(line));
    Ok((settings, manifest.description))
}

fn set(setup: &Setup, args: &SetTeamArgs) -> VerbResult {
    let is_read = args.pairs.is_empty() && args.unset.is_empty();
    let team = setup.team(if is_read { Action::Look } else { Action::SetTeam })?;
    if is_read {
        let document = ops::starting::settings::document(&team)?;
        setup.out.print(&document, || ui::settings_table(&document, setup.out.paint))?;
        return Ok(Exit::DONE);
    }
    let (pairs, rest) = args.pairs.as_chunks::<2>();
    if let [key] = rest {
        let hint = match key.split_once('=') {
            Some((key, value)) => {
                format!("write it as `phalanx team set {} {}`", key.trim(), value.trim())
            }
            None => "a key and its value take turns; a text with spaces needs quotes".to_owned(),
        };
        return Err(Failure::usage(format!("`{}` has no value", key.escape_debug()), &hint));
    }
    let change = SettingsChange {
        set: pairs.iter().map(|[key, value]| (key.clone(), value.clone())).collect(),
        unset: args.unset.clone(),
    };
    ops::starting::settings::set(&setup.ctx, &team, &change, &mut |file| {
        prompt_file(&setup.ctx.caller.cwd, file)
    })?;
    let document = ops::starting::settings::document(&team)?;
    setup.out.confirm(&document, || changes(team.name(), &change))
}

fn changes(team: &TeamName, change: &SettingsChange) -> String {
    let set = change.set.iter().map(|(key, value)| format!("{key} = {}", text::short(value, 60)));
    let unset = change.unset.iter().map(|key| format!("{key} has its default again"));
    let lines: Vec<String> =
        set.chain(unset).map(|line| format!("team {team}: {}", text::line(&line))).collect();
    lines.join("\n")
}

fn list(setup: &Setup) -> VerbResult {
    ops::authority::enter_without_team(&setup.ctx, Action::ListTeams)?;
    let teams = ops::team::list(&setup.ctx)?;
    setup.out.print_list(&teams, "no teams", || ui::team_list(&teams, setup.out.paint))
}

fn show(setup: &Setup) -> VerbResult {
    let team = setup.team(Action::Look)?;
    let found = team.team()?;
    let members: Vec<_> = found.members.iter().map(model::team::Member::to_entry).collect();
    let document = json!({
        "name": found.name,
        "description": found.description,
        "createdAt": found.created_at,
        "leadAgentId": found.lead_agent_id,
        "leadSessionId": found.lead_session_id,
        "members": members,
        "team_file_path": team.team_file().to_string_lossy(),
        "creator": team.settings().map_err(OpsError::from)?.and_then(|settings| settings.creator),
        "settings": ops::starting::settings::document(&team).ok(),
    });
    setup.out.print(&document, || {
        let lines = ui::team_lines(&found, setup.out.paint);
        let changed = ops::starting::settings::document(&team).ok().and_then(|settings| {
            ui::changed_settings(&settings, &ops::starting::settings::defaults(), setup.out.paint)
        });
        changed.into_iter().fold(lines, |lines, changed| format!("{lines}\n\n{changed}"))
    })
}

/// Deletes the team that `given` or the options name.
pub(crate) fn delete(setup: &Setup, given: Option<&str>, force: bool) -> VerbResult {
    match delete_in_order(setup, given, force) {
        Err(failure) if force => by_process::down(setup, given, failure),
        done => done,
    }
}

fn delete_in_order(setup: &Setup, given: Option<&str>, force: bool) -> VerbResult {
    if force {
        by_process::store_must_answer(setup, setup.named_team(given)?)?;
    }
    if let Some(name) = setup.named_team(given)?
        && ops::ending::delete::finish_deletion(&setup.ctx, &name)?
    {
        return deleted(setup, &name);
    }
    if force {
        broken::restore_missing(setup, given)?;
    }
    let team = setup.team_called(given, Action::Delete)?;
    ops::team::lease::must_be_left(&setup.ctx, &team)?;
    if force {
        broken::prepare_deletion(setup, &team)?;
        let reason = Some("the team is deleted".to_owned());
        let options = ShutdownOptions { reason, deadline_s: 30, force, ..Default::default() };
        end_members(setup, &team, &options)?;
        delete_ended(setup, &team, &options)?;
        return deleted(setup, team.name());
    }
    let strangers = ops::ending::delete::living_strangers(&setup.ctx, &team)?;
    if !strangers.is_empty() {
        let mut members = ops::members::status::live_members(&team)?;
        members.extend(strangers);
        return Err(OpsError::LiveMembers { team: team.name().clone(), members }.into());
    }
    deletion::delete_team(&setup.ctx, &team, |words| setup.out.print_message(words))?;
    deleted(setup, team.name())
}

fn deleted(setup: &Setup, name: &TeamName) -> VerbResult {
    let message = format!("team {name} is deleted");
    let document = json!({ "success": true, "message": message, "team_name": name.as_str() });
    setup.out.confirm(&document, || message.clone())
}
