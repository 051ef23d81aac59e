//! `explain`: shows the facts behind a member's state.

use super::fail::Exit;
use super::setup::Setup;
use super::{Done, args};
use crate::ops::authority::Action;
use crate::{ops, ui};

pub(super) fn explain(setup: &Setup, args: &args::Named) -> Done {
    let (team, name) = setup.member(&args.name, Action::Look)?;
    let found = ops::explain::explain(&setup.ctx, &team, &name)?;
    setup.out.give(&found, || ui::explain(&found, setup.out.paint))?;
    Ok(Exit::DONE)
}
