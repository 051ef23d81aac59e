//! Runs for one task each (task mode): the one-shot form of a program, with its task claimed in its
//! name before it starts. Its launcher reports the outcome.

use super::super::backends;
use super::super::context::Context;
use super::super::error::OpsError;
use super::{SpawnOptions, Spawned, attempt, depth, fallback, prepare, roles};
use crate::model::order::Order;
use crate::model::role::Roles;
use crate::store::TeamStore;

/// Starts a run for the task of each order, one after another, so that a task claimed by another
/// member in the meantime fails only its own order.
///
/// # Errors
///
/// The nesting depth forbids a start, or the roles cannot be read. Other failures are in the
/// results.
pub(super) fn dispatch(
    ctx: &Context,
    team: &TeamStore,
    orders: &[Order],
    terms: &SpawnOptions,
) -> Result<Vec<Result<Spawned, OpsError>>, OpsError> {
    depth::must_allow(ctx)?;
    let roles = roles::team_roles(team)?;
    Ok(orders.iter().map(|order| start(ctx, team, &roles, order, terms)).collect())
}

fn start(
    ctx: &Context,
    team: &TeamStore,
    roles: &Roles,
    order: &Order,
    terms: &SpawnOptions,
) -> Result<Spawned, OpsError> {
    let drafts = [prepare::draft_once(ctx, roles, order)?];
    prepare::check_modes(ctx, team, &drafts)?;
    let said = fallback::said(&drafts);
    let backend = backends::open_one_shot(ctx, team, order.task);
    let attempts = attempt(ctx, team, &drafts, backend.as_ref(), terms, None)?;
    fallback::note(team, &said);
    attempts.into_iter().next().expect("each draft has its attempt").result
}
