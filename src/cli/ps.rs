//! `ps`: every team on this machine.

use super::Done;
use super::fail::Exit;
use super::setup::Setup;
use crate::{ops, ui};

pub(super) fn ps(setup: &Setup) -> Done {
    let teams = ops::ps::ps(&setup.ctx)?;
    setup.out.give(&teams, || ui::ps(&teams, setup.out.paint))?;
    Ok(Exit::DONE)
}
