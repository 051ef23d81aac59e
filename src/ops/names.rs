//! Exact names of members: in every verb, a name that differs from a member's only in case names no
//! member.

use super::error::OpsError;
use crate::model::id::MemberName;
use crate::store::{StoreError, TeamStore};

/// Rejects a name that differs from that of a present or former member only in case. Unknown names
/// pass, since each verb decides which of them it accepts.
///
/// # Errors
/// [`StoreError::NoSuchMember`] for such a name; its hint names the member.
pub(crate) fn must_be_exact(team: &TeamStore, name: &MemberName) -> Result<(), OpsError> {
    let mut known: Vec<MemberName> =
        team.team()?.members.into_iter().map(|member| member.name).collect();
    if known.contains(name) || team.member_record(name)?.is_some_and(|record| record.name == *name)
    {
        return Ok(());
    }
    let former = team.member_records()?.into_iter().map(|record| record.name);
    let former: Vec<MemberName> = former
        .filter(|former| former.clashes_with(name.as_str()) && !known.contains(former))
        .collect();
    known.extend(former);
    if !known.iter().any(|known| known.clashes_with(name.as_str())) {
        return Ok(());
    }
    Err(StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into())
}
