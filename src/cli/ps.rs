//! `ps`: lists every team on this machine.

use super::fail::{Done, Exit};
use super::setup::Setup;
use crate::{ops, ui};

pub(super) fn ps(setup: &Setup) -> Done {
    let teams = ops::ps::ps(&setup.ctx)?;
    let out = &setup.out;
    out.give(&teams, || ui::ps(&teams, setup.ctx.store.root(), out.width(), out.paint))?;
    Ok(Exit::DONE)
}
