//! Teams inside teams: a teammate starts nobody, unless its team says how deep that may go. A rule for those who keep
//! to it, not a wall: whoever changes its own environment gets around it.

use std::path::Path;

use super::context::Context;
use super::error::OpsError;
use crate::model::id::{MemberName, TeamName};
use crate::store::Store;

/// How deep a process stands: 0 outside of all teams, 1 for a teammate of such a process.
pub(super) fn depth(ctx: &Context) -> usize {
    let said = ctx.caller.var("PHALANX_DEPTH").and_then(|word| word.to_str()?.parse().ok());
    said.unwrap_or_else(|| usize::from(teammate(ctx).is_some()))
}

/// Where the teammates of this process stand.
pub(super) fn below(ctx: &Context) -> usize {
    depth(ctx).saturating_add(1)
}

/// Whether the asking process may make a team or start a teammate.
///
/// # Errors
/// [`OpsError::Nested`] for a teammate whose team does not allow that.
pub(super) fn must_allow(ctx: &Context) -> Result<(), OpsError> {
    let Some(name) = teammate(ctx) else { return Ok(()) };
    let (depth, max) = (below(ctx), allowed(ctx));
    if depth <= max {
        return Ok(());
    }
    let team = ctx.caller.var("PHALANX_TEAM").unwrap_or_default().to_string_lossy().into_owned();
    Err(OpsError::Nested { name, team, depth, max })
}

/// Whether the asking process may make a team that allows this depth: from within a team, only what that one allows.
///
/// # Errors
/// [`OpsError::TooDeep`] where it would lift the limit of its own team.
pub(super) fn must_keep_within(ctx: &Context, wanted: usize) -> Result<(), OpsError> {
    let max = allowed(ctx);
    if depth(ctx) == 0 || wanted <= max { Ok(()) } else { Err(OpsError::TooDeep { wanted, max }) }
}

/// Who the asking process is, by the environment that its launcher gave it.
fn teammate(ctx: &Context) -> Option<MemberName> {
    let name = ctx.caller.var("PHALANX_AGENT_NAME")?.to_str()?;
    MemberName::existing(name).ok().filter(|name| !name.is_lead())
}

/// What the teammate's own team says, wherever the other team is to be. Without its word: none is nested.
fn allowed(ctx: &Context) -> usize {
    let own = || {
        let root = ctx.caller.var("PHALANX_CONFIG_DIR").map_or(ctx.store.root(), Path::new);
        let name = TeamName::existing(ctx.caller.var("PHALANX_TEAM")?.to_str()?).ok()?;
        Store::at(root).team(&name).ok()?.settings().ok()?
    };
    own().map_or(1, |settings| settings.max_depth)
}
