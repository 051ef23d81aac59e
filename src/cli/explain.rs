//! `explain`: shows the facts behind a member's state.

use super::args::MemberArg;
use super::fail::{Done, Exit};
use super::setup::Setup;
use crate::ops::authority::Action;
use crate::{ops, ui};

pub(super) fn explain(setup: &Setup, args: &MemberArg) -> Done {
    let (team, name) = setup.member(&args.name, Action::Look)?;
    let found = ops::explain::explain(&setup.ctx, &team, &name)?;
    setup.out.give(&found, || ui::explain(&found, setup.out.paint))?;
    Ok(Exit::DONE)
}
