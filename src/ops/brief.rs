//! `brief`: what a program has to know of the team that it is in.

use super::context::Context;
use super::error::OpsError;
use crate::model::brief;
use crate::model::id::MemberName;
use crate::store::{StoreError, TeamStore};

/// The text for a member; for the speaker where none is named. A speaker that is not in the team gets the one for whoever
/// is in none, and so does everybody where there is no team.
///
/// # Errors
/// A named member that is not on the team, a team that cannot be read.
pub(crate) fn brief(
    ctx: &Context,
    team: Option<&TeamStore>,
    named: Option<&MemberName>,
) -> Result<String, OpsError> {
    let Some(team) = team else { return Ok(brief::outside()) };
    let roster = team.team()?;
    match (roster.member(named.unwrap_or(&ctx.speaker)), named) {
        (Some(member), _) => Ok(brief::brief(&roster, &member.name)),
        (None, None) => Ok(brief::outside()),
        (None, Some(name)) => {
            let known = roster.members.into_iter().map(|member| member.name).collect();
            Err(StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into())
        }
    }
}
