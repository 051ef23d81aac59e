//! Runs of one task each (seed 002, task mode): the one-shot form of a program, as in the last tier of the cascade, started
//! like any teammate, with its task claimed in its name before it runs. What it comes to, its launcher sees to.

use super::super::backends;
use super::super::context::Context;
use super::super::error::OpsError;
use super::{Spawned, Terms, attempt, cascade, depth, prepare, roles};
use crate::model::order::Order;
use crate::model::role::Roles;
use crate::store::TeamStore;

/// Starts a run for the task of each of `orders`, one after the other: a task that somebody else has taken meanwhile is no
/// matter of the others'.
///
/// # Errors
/// What concerns all of them; what concerns one stands in its own result.
pub(super) fn dispatch(
    ctx: &Context,
    team: &TeamStore,
    orders: &[Order],
    terms: &Terms,
) -> Result<Vec<Result<Spawned, OpsError>>, OpsError> {
    depth::must_allow(ctx)?;
    let roles = roles::of(team)?;
    Ok(orders.iter().map(|order| start(ctx, team, &roles, order, terms)).collect())
}

fn start(
    ctx: &Context,
    team: &TeamStore,
    roles: &Roles,
    order: &Order,
    terms: &Terms,
) -> Result<Spawned, OpsError> {
    let drafts = [prepare::draft_once(ctx, roles, order)?];
    prepare::check_modes(ctx, team, &drafts)?;
    let said = cascade::said(&drafts);
    let backend = backends::once(ctx, team, order.task);
    let attempts = attempt(ctx, team, &drafts, backend.as_ref(), terms, None)?;
    cascade::note(team, &said);
    attempts.into_iter().next().expect("each draft has its attempt").result
}
