//! The team verbs.

use std::path::Path;

use serde_json::json;

use super::fail::{Exit, Failure};
use super::setup::Setup;
use super::{Done, shutdown, worktree};
use crate::model::id::TeamName;
use crate::model::settings::Settings;
use crate::ops::{self, OpsError};
use crate::ui;

/// How many members a team that is built by hand may have: enough, and a stop for a script that runs away.
const MAX_MEMBERS: usize = 256;

pub(super) fn create(
    setup: &Setup,
    name: &str,
    description: Option<&str>,
    agent_type: Option<&str>,
    tmux_socket: Option<&Path>,
    unique: bool,
) -> Done {
    let tmux_socket = tmux_socket.map(|path| setup.absolute(path)).transpose()?;
    // A lead that is started for it later leads it; whoever made it deletes it.
    let settings = Settings { tmux_socket, ..Settings::by_hand(MAX_MEMBERS) };
    let team =
        ops::team::create(&setup.ctx, name, description.unwrap_or_default(), agent_type, &settings, unique)?;
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
    let team = setup.team()?;
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
    });
    setup.out.give(&document, || ui::team_lines(&found, setup.out.paint))?;
    Ok(Exit::DONE)
}

/// Deletes the team that `given` or the options name.
pub(super) fn delete(setup: &Setup, given: Option<&str>, force: bool) -> Done {
    if let Some(name) = setup.named_team(given)?
        && ops::team::finish_deletion(&setup.ctx, &name)?
    {
        return deleted(setup, &name);
    }
    let team = setup.team_called(given)?;
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
