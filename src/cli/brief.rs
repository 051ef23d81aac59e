//! `brief`: what a program has to know of its team.

use clap::Args;
use serde_json::json;

use super::Done;
use super::fail::Exit;
use super::setup::{Setup, member};
use crate::ops;

/// Print what a program has to know of its team, for its prompt.
#[derive(Debug, Args)]
pub(super) struct Brief {
    /// The member that it is for; else the speaker.
    name: Option<String>,
}

pub(super) fn brief(setup: &Setup, args: &Brief) -> Done {
    let named = args.name.as_deref().map(member).transpose()?;
    // Where there is no team at all, that is what a program should be told.
    let nowhere = setup.named_team()?.is_none() && setup.ctx.store.teams()?.is_empty();
    let team = if nowhere && named.is_none() { None } else { Some(setup.team()?) };
    let text = ops::brief::brief(&setup.ctx, team.as_ref(), named.as_ref())?;
    setup.out.give(&json!({ "text": text }), || text.clone())?;
    Ok(Exit::DONE)
}
