//! The member that sent a request, and the rules that apply to it.

use crate::OpsError;
use model::decisions::rules::{RuleSet, TeamRules};
use model::id::MemberName;
use model::members::record::MemberRecord;
use model::team::Member;
use model::time::Timestamp;
use store::TeamStore;

/// The member that sent a request.
pub(super) struct Asker {
    pub(super) member: Member,
    pub(super) record: Option<MemberRecord>,
    /// Requests sent before this time are those of an earlier run.
    pub(super) since: Timestamp,
}

/// Returns `None` for a member that is not on the team, or whose run is over.
pub(super) fn asker(team: &TeamStore, name: &MemberName) -> Result<Option<Asker>, OpsError> {
    let Some(member) = team.team()?.member(name).cloned() else { return Ok(None) };
    let record = team.member_record(&member.name)?;
    if record.as_ref().is_some_and(|record| record.state.is_over()) {
        return Ok(None);
    }
    let since = record.as_ref().map_or(member.joined_at, |record| record.asked_at);
    Ok(Some(Asker { member, record, since }))
}

/// Returns the sets of rules that apply to the member, each with the name of its owner.
pub(super) fn rules_of<'r>(rules: &'r TeamRules, asker: &Asker) -> Vec<(String, &'r RuleSet)> {
    let role = asker
        .record
        .as_ref()
        .and_then(|r| r.request.role.clone())
        .or(asker.member.agent_type.clone());
    rules.sets_for(&asker.member.name, role.as_deref())
}
