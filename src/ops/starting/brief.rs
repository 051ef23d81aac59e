//! `brief`: the text that introduces a program to its team.

use std::path::Path;

use crate::members::profiles;
use crate::starting::roles;
use crate::{Context, OpsError};
use model::id::MemberName;
use model::members::record::MemberRecord;
use model::team::brief;
use profile::Placeholder;
use store::TeamStore;

/// Returns the text for the named member, or without a name for the speaker. A speaker that is not
/// on the team, and any caller without a team, gets the text for programs outside a team.
///
/// # Errors
/// [`OpsError::no_such_member`] for a named member that is not on the team; a team that cannot be
/// read.
pub fn brief(
    ctx: &Context,
    team: Option<&TeamStore>,
    named: Option<&MemberName>,
) -> Result<String, OpsError> {
    let Some(team) = team else { return Ok(brief::outside()) };
    let roster = team.team()?;
    match (roster.member(named.unwrap_or(&ctx.speaker)), named) {
        (Some(member), _) => {
            let record = team.member_record(&member.name)?;
            let role = record.and_then(|record| role(ctx, team, &record));
            let descriptions = roles::descriptions(ctx, &roles::team_roles(team)?, &roster);
            Ok(brief::brief(&roster, &member.name, role.as_deref(), &descriptions))
        }
        (None, None) => Ok(brief::outside()),
        (None, Some(name)) => Err(OpsError::no_such_member(team, name, &roster.members)),
    }
}

/// Returns the prompt of the member's role, unless its program loads roles itself. A role that no
/// longer exists has none.
fn role(ctx: &Context, team: &TeamStore, record: &MemberRecord) -> Option<String> {
    let request = &record.request;
    let at_home = profiles::find(ctx, &request.profile)
        .is_ok_and(|profile| profile.takes(Placeholder::Agents));
    let own = roles::team_roles(team).ok().filter(|_| !at_home)?;
    roles::resolve_role(ctx, &own, request.role.as_deref()?, Path::new(&request.cwd))
        .ok()?
        .role
        .prompt
}
