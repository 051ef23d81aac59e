//! Refuses starts of members whose budget is used up.

use crate::OpsError;
use model::members::budget::{self, BudgetUse};
use model::members::launch::LaunchSpec;
use model::team::settings::Settings;
use store::TeamStore;

/// Checks the budgets of the team and of the members to be started.
///
/// # Errors
/// A refusal for the first member that may not be started; records that cannot be
/// read.
pub(crate) fn must_allow(
    team: &TeamStore,
    settings: &Settings,
    specs: &[LaunchSpec],
) -> Result<(), OpsError> {
    if settings.budgets.is_empty() {
        return Ok(());
    }
    let uses = budget::uses(&settings.budgets, &settings.prices, &team.member_records()?);
    let covers =
        |of: &BudgetUse, name: &str| of.member.as_ref().is_none_or(|m| m.clashes_with(name));
    let full = |spec: &LaunchSpec| {
        uses.iter()
            .find(|of| of.stops_spawns() && covers(of, &spec.name))
            .map(|of| (spec.name.clone(), of))
    };
    match specs.iter().find_map(full) {
        None => Ok(()),
        Some((name, of)) => Err(OpsError::refused(
            format!("`{name}` is not started: {}", of.describe()),
            format!("raise it with `phalanx team set {} N`", of.key),
        )),
    }
}
