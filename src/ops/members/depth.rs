//! Nesting of teams: a teammate starts no members unless its team's `max_depth` allows it. This is
//! a convention, not a security boundary: a process can change its own environment.

use crate::authority::speaker;
use crate::{Context, OpsError};
use model::id::MemberName;

/// Returns the caller's depth: 0 outside all teams, 1 for a teammate of such a process.
pub fn depth(ctx: &Context) -> usize {
    let said = ctx.caller.var("PHALANX_DEPTH").and_then(|word| word.to_str()?.parse().ok());
    said.unwrap_or_else(|| usize::from(teammate(ctx).is_some()))
}

/// Returns the depth of teammates that this process starts.
pub fn below(ctx: &Context) -> usize {
    depth(ctx).saturating_add(1)
}

/// Checks that the caller may create a team or start a teammate.
///
/// # Errors
/// [`OpsError::Nested`] for a teammate whose team does not allow that.
pub(crate) fn must_allow(ctx: &Context) -> Result<(), OpsError> {
    let Some(name) = teammate(ctx) else { return Ok(()) };
    let (depth, max) = (below(ctx), allowed(ctx));
    if depth <= max {
        return Ok(());
    }
    let team = ctx.caller.var("PHALANX_TEAM").unwrap_or_default().to_string_lossy().into_owned();
    Err(OpsError::Nested { name, team, depth, max })
}

/// Checks that the caller may create a team that allows this depth. From within a team, the limit
/// of the caller's own team applies.
///
/// # Errors
/// A refusal if `wanted` exceeds that limit.
pub(crate) fn must_keep_within(ctx: &Context, wanted: usize) -> Result<(), OpsError> {
    let max = allowed(ctx);
    if depth(ctx) == 0 || wanted <= max {
        return Ok(());
    }
    Err(OpsError::refused(
        format!("`max_depth = {wanted}` exceeds the limit of the parent team: {max}"),
        format!("use at most `max_depth = {max}` in its [team]"),
    ))
}

/// Returns the teammate that the caller is, by the environment that its launcher set.
fn teammate(ctx: &Context) -> Option<MemberName> {
    let name = ctx.caller.var("PHALANX_AGENT_NAME")?.to_str()?;
    MemberName::existing(name).ok().filter(|name| !name.is_lead())
}

/// Returns the limit of the teammate's own team, whichever team the command works on. Without a
/// readable limit it is 1: no nesting.
fn allowed(ctx: &Context) -> usize {
    let own = speaker::own_team(ctx).and_then(|team| team.settings().ok().flatten());
    own.map_or(1, |settings| settings.max_depth)
}
