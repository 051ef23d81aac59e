//! Signs of a lead that is not on record: Claude Code 2.1.34 does not write which process leads its
//! team. Processes of other users, containers and hosts are not visible.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::members::backends;
use crate::{Context, OpsError};
use model::team::event::EventKind;
use model::team::{Member, Team};
use store::TeamStore;
use sys::fs;
use sys::proc::{self, RunningProcess};

/// The processes that a search for the lead does not cover.
pub(crate) const UNSEEN: &str =
    "a lead of another user, in another container or on another host is not visible from here";

/// The program that creates teams without a record of their lead.
const PROGRAM: &str = "claude";
/// The option that only its teammates have.
const TEAMMATE: &str = "--agent-id";
/// Age up to which a write to the team's files counts as a sign.
const RECENT: Duration = Duration::from_secs(60);

/// Returns true if another program made the team, and phalanx has not adopted it.
pub(crate) fn is_foreign(team: &TeamStore) -> Result<bool, OpsError> {
    if team.settings()?.is_some() {
        return Ok(false);
    }
    let events = team.events()?;
    Ok(!events.iter().any(|event| event.event == EventKind::LeadAdopted))
}

/// Returns true if the team is foreign, and no process is on record as its lead.
pub(crate) fn is_unnamed(team: &TeamStore) -> Result<bool, OpsError> {
    Ok(is_foreign(team)? && team.team()?.lead_process.is_none())
}

/// Returns the signs that the lead may be running: a process, its open pane, a recent write.
pub(crate) fn signs(ctx: &Context, team: &TeamStore) -> Result<Vec<String>, OpsError> {
    let write = team.latest_write()?.filter(|(_, age)| *age < RECENT);
    let write =
        write.map(|(path, age)| format!("{} was written {} s ago", path.display(), age.as_secs()));
    Ok(signs_of_life(ctx, team)?.into_iter().chain(write).collect())
}

/// Returns the signs of a living lead: a process, and its open pane.
pub(crate) fn signs_of_life(ctx: &Context, team: &TeamStore) -> Result<Vec<String>, OpsError> {
    let file = team.team()?;
    let lead = file.members.iter().find(|member| member.name.is_lead());
    let process = lead.and_then(|lead| process_sign(team, &file, lead));
    let pane = lead.map(|lead| lead.pane_id.as_str()).filter(|pane| pane.starts_with('%'));
    let pane = match pane {
        Some(pane) if backends::tmux_pane_lives(ctx, team, pane)? => {
            Some(format!("its pane {pane} is open"))
        }
        Some(_) | None => None,
    };
    Ok([process, pane].into_iter().flatten().collect())
}

/// Time limit for a process that seems to be exiting.
const EXITING: Duration = Duration::from_millis(200);

/// Finds a process with the lead's session, or one that runs the lead's program in its directory.
fn process_sign(team: &TeamStore, file: &Team, lead: &Member) -> Option<String> {
    let panes: BTreeSet<&str> = file.teammates().map(|member| member.pane_id.as_str()).collect();
    let is_teammate = |running: &RunningProcess| {
        let pane = running.var("TMUX_PANE");
        running.argv.iter().any(|word| word == TEAMMATE)
            || running.var("PHALANX_INCARNATION").is_some()
            || pane
                .and_then(|pane| pane.into_string().ok())
                .is_some_and(|pane| panes.contains(pane.as_str()))
    };
    let session = file.lead_session_id.as_deref().filter(|session| !session.is_empty());
    proc::of_this_user().into_iter().filter(|running| !is_teammate(running)).find_map(|running| {
        let pid = running.process.pid;
        if session.is_some_and(|session| running.argv.iter().any(|word| word == session)) {
            return Some(format!("process {pid} has its session"));
        }
        if !runs_program(&running) {
            return None;
        }
        let (cwd, root) = (running.cwd(), config_root(&running));
        // An exiting process no longer has either.
        if (cwd.is_none() || root.is_none()) && proc::wait_exit(running.process, EXITING) {
            return None;
        }
        let may_lead = cwd.is_none_or(|cwd| is_same(&cwd, Path::new(&lead.cwd)))
            && root.is_none_or(|root| is_same(&root, team.root()));
        may_lead.then(|| format!("process {pid} runs {PROGRAM} in {}", lead.cwd))
    })
}

/// Returns true for the program itself, and for an interpreter with the program as its script. From
/// npm, the file of 2.1.332 is `claude.exe`.
pub(crate) fn runs_program(running: &RunningProcess) -> bool {
    let is_it = |word: &OsString| {
        Path::new(word).file_name().is_some_and(|name| name == PROGRAM || name == "claude.exe")
    };
    running.argv.iter().take(2).any(is_it)
}

/// Returns true if the program of the process keeps its teams in the config root of the team.
pub(crate) fn is_of_root(running: &RunningProcess, team: &TeamStore) -> bool {
    config_root(running).is_some_and(|root| is_same(&root, team.root()))
}

/// Returns the config root by the environment of the process, if that names one.
fn config_root(running: &RunningProcess) -> Option<PathBuf> {
    let named = running.var("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    named.or_else(|| running.var("HOME").map(|home| Path::new(&home).join(".claude")))
}

fn is_same(one: &Path, other: &Path) -> bool {
    one == other
        || fs::canonical(one)
            .ok()
            .zip(fs::canonical(other).ok())
            .is_some_and(|(one, other)| one == other)
}
