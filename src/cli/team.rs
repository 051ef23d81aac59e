//! The `team` subcommands.

use std::path::Path;

use serde_json::json;

use super::args::SetTeam;
use super::fail::{Class, Exit, Failure};
use super::setup::Setup;
use super::up::{MAX_MANIFEST, read_text};
use super::{Done, broken, shutdown, worktree};
use crate::config::manifest::Manifest;
use crate::model::id::TeamName;
use crate::model::settings::{MAX_MEMBERS, Settings};
use crate::model::text;
use crate::ops::authority::Action;
use crate::ops::settings::SettingsChange;
use crate::ops::{self, OpsError};
use crate::ui;

pub(super) struct New {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) agent_type: Option<String>,
    pub(super) unique: bool,
}

pub(super) fn create(
    setup: &Setup,
    new: &New,
    tmux_socket: Option<&Path>,
    file: Option<&Path>,
) -> Done {
    let tmux_socket = tmux_socket.map(|path| setup.absolute(path)).transpose()?;
    // A lead that is started later must not delete the team, which belongs to its creator.
    let base = Settings { tmux_socket, ..Settings::by_hand(MAX_MEMBERS) };
    let (settings, described) = match file {
        Some(file) => from_file(setup, &base, file)?,
        None => (base, None),
    };
    let description = new.description.clone().or(described).unwrap_or_default();
    let agent_type = new.agent_type.as_deref();
    let team =
        ops::team::create(&setup.ctx, &new.name, &description, agent_type, &settings, new.unique)?;
    let document = json!({
        "team_name": team.name().as_str(),
        "team_file_path": team.team_file().to_string_lossy(),
        "lead_agent_id": team.team()?.lead_agent_id,
    });
    setup.out.confirm(&document, || {
        format!("created team {0}; add members with `phalanx spawn NAME -t {0}`", team.name())
    })?;
    Ok(Exit::DONE)
}

/// Returns the settings of a file on top of `base`, and the description in the file.
fn from_file(
    setup: &Setup,
    base: &Settings,
    file: &Path,
) -> Result<(Settings, Option<String>), Failure> {
    let shown = file.display();
    let refused =
        |problem: String, hint| Failure::new(Class::Usage, format!("{shown}: {problem}"), hint);
    let text =
        read_text(&setup.ctx.caller.cwd.join(file), MAX_MANIFEST).map_err(|e| refused(e, None))?;
    let manifest = Manifest::parse_settings(&text).map_err(|fault| {
        let hint = match &fault.nearest {
            Some(word) => format!("did you mean `{word}`?"),
            None => {
                "settings are a manifest without `name` and tasks; `phalanx team set` lists keys"
                    .to_owned()
            }
        };
        let message = format!("{shown}:{}:{}: {}", fault.line, fault.column, fault.message);
        Failure::new(Class::Usage, message, Some(hint))
    })?;
    let (tasks_only, said) =
        ops::manifest::choose_mode(&setup.ctx, &manifest, &manifest.settings.backend);
    let settings =
        ops::settings::from_file(&setup.ctx, base, &text, tasks_only, &mut prompt_reader(setup))
            .map_err(|e| refused(e.to_string(), e.hint()))?;
    let crowds = ops::manifest::shared_checkout_warnings(&settings.templates);
    said.iter().chain(&crowds).for_each(|line| setup.out.say(line));
    Ok((settings, manifest.description))
}

/// Returns a function that reads a member's prompt file.
fn prompt_reader(setup: &Setup) -> impl FnMut(&str) -> Result<String, OpsError> {
    let here = setup.ctx.caller.cwd.clone();
    move |file| {
        let problem = |problem| OpsError::Usage {
            problem: format!("prompt file {file}: {problem}"),
            hint: None,
        };
        read_text(&here.join(file), MAX_MANIFEST).map_err(problem)
    }
}

pub(super) fn set(setup: &Setup, args: &SetTeam) -> Done {
    let is_look = args.pairs.is_empty() && args.unset.is_empty();
    let team = setup.team(if is_look { Action::Look } else { Action::SetTeam })?;
    if is_look {
        let document = ops::settings::document(&team)?;
        setup.out.give(&document, || ui::settings_table(&document, setup.out.paint))?;
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
    ops::settings::set(&setup.ctx, &team, &change, &mut prompt_reader(setup))?;
    let document = ops::settings::document(&team)?;
    setup.out.give(&document, || changes(team.name(), &change))?;
    Ok(Exit::DONE)
}

fn changes(team: &TeamName, change: &SettingsChange) -> String {
    let set = change.set.iter().map(|(key, value)| format!("{key} = {}", text::short(value, 60)));
    let unset = change.unset.iter().map(|key| format!("{key} has its default again"));
    let lines: Vec<String> =
        set.chain(unset).map(|line| format!("team {team}: {}", text::line(&line))).collect();
    lines.join("\n")
}

pub(super) fn list(setup: &Setup) -> Done {
    let teams = ops::team::list(&setup.ctx)?;
    if teams.is_empty() && !setup.out.json {
        setup.out.say("no teams");
        return Ok(Exit::DONE);
    }
    setup.out.give(&teams, || ui::team_list(&teams, setup.out.paint))?;
    Ok(Exit::DONE)
}

pub(super) fn show(setup: &Setup) -> Done {
    let team = setup.team(Action::Look)?;
    let found = team.team()?;
    let members: Vec<_> = found.members.iter().map(crate::model::team::Member::to_entry).collect();
    let document = json!({
        "name": found.name,
        "description": found.description,
        "createdAt": found.created_at,
        "leadAgentId": found.lead_agent_id,
        "leadSessionId": found.lead_session_id,
        "members": members,
        "team_file_path": team.team_file().to_string_lossy(),
        "settings": ops::settings::document(&team).ok(),
    });
    setup.out.give(&document, || {
        let lines = ui::team_lines(&found, setup.out.paint);
        let changed = ops::settings::document(&team).ok().and_then(|settings| {
            ui::changed_settings(&settings, &ops::settings::defaults(), setup.out.paint)
        });
        changed.into_iter().fold(lines, |lines, changed| format!("{lines}\n\n{changed}"))
    })?;
    Ok(Exit::DONE)
}

/// Deletes the team that `given` or the options name.
pub(super) fn delete(setup: &Setup, given: Option<&str>, force: bool) -> Done {
    if let Some(name) = setup.named_team(given)?
        && ops::team::finish_deletion(&setup.ctx, &name)?
    {
        return deleted(setup, &name);
    }
    if force {
        broken::restore_missing(setup, given)?;
    }
    let team = setup.team_called(given, Action::Delete)?;
    if force {
        broken::make_endable(setup, &team)?;
    }
    let strangers = ops::team::living_strangers(&setup.ctx, &team)?;
    if force {
        shutdown::end_all_by_force(setup, &team)?;
    } else if !strangers.is_empty() {
        let mut members = ops::status::live_members(&team)?;
        members.extend(strangers);
        return Err(OpsError::LiveMembers { team: team.name().clone(), members }.into());
    }
    match ops::team::delete(&setup.ctx, &team) {
        Err(e) if !force || team.exists() => return Err(Failure::from(e)),
        Ok(kept) => worktree::tell_kept(&kept, |words| setup.out.say(words)),
        Err(_) => {}
    }
    deleted(setup, team.name())
}

fn deleted(setup: &Setup, name: &TeamName) -> Done {
    let message = format!("team {name} is deleted");
    let document = json!({ "success": true, "message": message, "team_name": name.as_str() });
    setup.out.confirm(&document, || message.clone())?;
    Ok(Exit::DONE)
}
