//! Repairs a team whose files are broken: moves each of them into quarantine, so that the verbs
//! work again from the member records and processes.

use std::path::PathBuf;

use crate::authority::speaker;
use crate::{Context, OpsError, now};
use model::id::{LEAD, TeamName};
use model::team::Team;
use model::team::event::{EventKind, Note};
use model::wire::Object;
use store::{Broken, TeamStore};
use sys::rand;

/// Number of passes: files behind an unreadable directory show up only in the next one.
const ROUNDS: usize = 3;

/// A broken path that was repaired or moved away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    pub path: PathBuf,
    pub problem: String,
    /// `None` if the path became usable again and stayed where it was.
    pub moved_to: Option<PathBuf>,
}

/// Writes the missing team file of a team that is about to end, for a person only: without that
/// file a team has no members. Returns its path if it was missing.
pub fn restore_missing(ctx: &Context, name: &TeamName) -> Result<Option<PathBuf>, OpsError> {
    if speaker::has_token(ctx) {
        return Ok(None);
    }
    let restored = ctx.store.restore_missing(name, &founding(ctx, name))?;
    if restored { Ok(Some(ctx.store.team(name)?.team_file())) } else { Ok(None) }
}

/// Returns a team file for a team of which nothing else is known.
fn founding(ctx: &Context, name: &TeamName) -> Object {
    let cwd = ctx.caller.cwd.to_string_lossy();
    Team::found(name, "", LEAD, &rand::uuid(), &cwd, now())
}

/// Sets aside all broken files of a team that is about to end.
pub fn set_aside_all(ctx: &Context, team: &TeamStore) -> Result<Vec<SetAside>, OpsError> {
    let mut done = Vec::new();
    for _ in 0..ROUNDS {
        let mut broken = team.linked_dirs();
        broken.extend(team.broken());
        if broken.is_empty() {
            break;
        }
        done.extend(set_aside(ctx, team, &broken)?);
    }
    Ok(done)
}

/// Sets these paths aside and records each in the journal.
pub fn set_aside(
    ctx: &Context,
    team: &TeamStore,
    broken: &[Broken],
) -> Result<Vec<SetAside>, OpsError> {
    let founding = founding(ctx, team.name());
    let mut done = Vec::new();
    for one in broken {
        let moved_to = team.set_aside(one, &founding)?;
        done.push(SetAside { path: one.path.clone(), problem: one.problem.clone(), moved_to });
    }
    // Last, since the journal may be one of the broken files.
    team.record_all(done.iter().filter_map(quarantine_note).collect())?;
    Ok(done)
}

fn quarantine_note(done: &SetAside) -> Option<Note> {
    let note = Note::of(EventKind::FileQuarantined)
        .with("path", done.path.to_string_lossy())
        .with("copy", done.moved_to.as_ref()?.to_string_lossy())
        .with("problem", done.problem.as_str());
    Some(note)
}
