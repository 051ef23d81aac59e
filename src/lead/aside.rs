//! What is done beside the lead's loop, and what is told of it when it fails. Decides nothing.

use crate::model::event::{EventKind, Note};
use crate::ops::{self, Context, OpsError, Team};

/// Does something that may take its time beside the loop that hears signals. What goes wrong with it keeps nobody from
/// leading or from ending: it is told.
pub(super) async fn attempt(
    ctx: &Context,
    team: &Team,
    run: fn(&Context, &Team) -> Result<(), OpsError>,
    failed: &str,
) -> Result<(), OpsError> {
    let (ctx, of) = (ctx.clone(), team.clone());
    let problem = match tokio::task::spawn_blocking(move || run(&ctx, &of)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(e)) => e.to_string(),
        Err(e) => e.to_string(),
    };
    match team.exists() {
        true => warn(team, format!("{failed}: {problem}")),
        false => Ok(()),
    }
}

pub(super) fn warn(team: &Team, text: impl Into<String>) -> Result<(), OpsError> {
    ops::events::note(team, Note::of(EventKind::Warning).with("text", text.into())).map(drop)
}
