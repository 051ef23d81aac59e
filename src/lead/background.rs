//! Runs blocking work outside the lead's loop and journals failures as warnings.

use model::id::MemberName;
use model::team::event::{EventKind, Note};
use ops::{Context, OpsError, TeamStore};

/// Runs `run` on a blocking thread so that the loop keeps handling signals. A failure is journaled
/// as a warning and does not stop the lead.
///
/// # Errors
/// Returns an error if the warning cannot be journaled.
pub(super) async fn attempt(
    ctx: &Context,
    team: &TeamStore,
    run: fn(&Context, &TeamStore) -> Result<(), OpsError>,
    failed: &str,
) -> Result<(), OpsError> {
    let (ctx, of) = (ctx.clone(), team.clone());
    let problem = match tokio::task::spawn_blocking(move || run(&ctx, &of)).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(e)) => e.to_string(),
        Err(e) => e.to_string(),
    };
    if team.exists() { warn(team, None, format!("{failed}: {problem}")) } else { Ok(()) }
}

/// Journals a warning, which may be about a member.
pub(super) fn warn(
    team: &TeamStore,
    about: Option<MemberName>,
    text: impl Into<String>,
) -> Result<(), OpsError> {
    let note = Note::of(EventKind::Warning).with("text", text.into());
    Ok(team.record(Note { member: about, ..note }).map(drop)?)
}
