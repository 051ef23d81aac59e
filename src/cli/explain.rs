//! `explain`: shows the facts behind a member's state.

use super::args::MemberArg;
use super::fail::{Exit, VerbResult};
use super::setup::Setup;
use ops::authority::Action;

pub(super) fn explain(setup: &Setup, args: &MemberArg) -> VerbResult {
    let (team, name) = setup.member(&args.name, Action::Look)?;
    let found = ops::views::explain::explain(&setup.ctx, &team, &name)?;
    setup.out.print(&found, || ui::explain(&found, setup.out.verbose, setup.out.paint))?;
    Ok(Exit::DONE)
}
