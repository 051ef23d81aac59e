//! `explain`: shows the facts behind a member's state.

use crate::args::MemberArg;
use crate::fail::VerbResult;
use crate::setup::Setup;
use ops::authority::Action;

pub(crate) fn explain(setup: &Setup, args: &MemberArg) -> VerbResult {
    let (team, name) = setup.member(&args.name, Action::Look)?;
    let found = ops::views::explain::explain(&setup.ctx, &team, &name)?;
    setup.out.print(&found, || ui::explain(&found, setup.out.verbose, setup.out.paint))
}
