//! `brief`: prints the description of a team for the prompt of an agent.

use clap::Args;
use serde_json::json;

use crate::fail::VerbResult;
use crate::setup::Setup;
use ops::authority::Action;

/// Print the description of the team for the prompt of an agent.
#[derive(Debug, Args)]
pub(crate) struct BriefArgs {
    /// Member to print it for [default: the caller].
    name: Option<String>,
}

pub(crate) fn brief(setup: &Setup, args: &BriefArgs) -> VerbResult {
    // Without any team the brief says so instead of failing.
    let has_no_team = setup.named_team(None)?.is_none() && setup.ctx.store.teams()?.is_empty();
    let text = if has_no_team && args.name.is_none() {
        ops::starting::brief::brief(&setup.ctx, None, None)?
    } else {
        let (team, named) = setup.members(args.name.as_slice(), Action::Look)?;
        ops::starting::brief::brief(&setup.ctx, Some(&team), named.first())?
    };
    setup.out.print(&json!({ "text": text }), || text.clone())
}
