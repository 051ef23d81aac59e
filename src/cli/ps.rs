//! `ps`: lists every team on this machine.

use super::fail::{Exit, VerbResult};
use super::setup::Setup;
use crate::{ops, ui};

pub(super) fn ps(setup: &Setup) -> VerbResult {
    let teams = ops::ps::ps(&setup.ctx)?;
    let out = &setup.out;
    out.print(&teams, || ui::ps(&teams, setup.ctx.store.root(), out.width(), out.paint))?;
    Ok(Exit::DONE)
}
