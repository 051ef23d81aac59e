//! The routing rules of a team, applied to the messages of members.

use crate::OpsError;
use crate::error::names;
use model::id::MemberName;
use model::mail::routing::RoutingPolicy;
use model::team::{Member, Team};
use store::TeamStore;

/// Returns the rules of the team; none for a team that phalanx did not create.
pub fn policy(team: &TeamStore) -> Result<RoutingPolicy, OpsError> {
    Ok(team.settings()?.map(|settings| settings.routing).unwrap_or_default())
}

/// Checks that `from` may message `to`. A message to oneself always may be sent.
///
/// # Errors
/// A refusal, which names the rule and the members that `from` may message.
pub(crate) fn must_permit(
    policy: &RoutingPolicy,
    roster: &Team,
    from: &Member,
    to: &Member,
) -> Result<(), OpsError> {
    if from.name == to.name {
        return Ok(());
    }
    policy.check(from, to).map_err(|refusal| {
        let may = policy.recipients(from, &roster.members);
        let may: Vec<MemberName> = may.into_iter().map(|member| member.name.clone()).collect();
        let may = if may.is_empty() { "no member".to_owned() } else { names(&may) };
        let change = if from.name.is_lead() {
            "; the rules are changed with `phalanx team set routing.allow LIST` or `routing.deny LIST`"
        } else {
            ""
        };
        OpsError::refused(
            format!("`{}` may not message `{}`: {refusal}", from.name, to.name),
            format!("`{}` may message: {may}{change}", from.name),
        )
    })
}
