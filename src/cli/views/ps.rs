//! `ps`: lists every team on this machine.

use crate::fail::VerbResult;
use crate::setup::Setup;
use ops::authority::Action;

pub(crate) fn ps(setup: &Setup) -> VerbResult {
    ops::authority::enter_without_team(&setup.ctx, Action::ListTeams)?;
    let teams = ops::views::ps::ps(&setup.ctx)?;
    let out = &setup.out;
    out.print(&teams, || ui::ps(&teams, setup.ctx.store.root(), out.width(), out.paint))
}
