//! Exact names: in every verb, a name that differs from a member's only in case names no member.
//! The error about an unknown request suggests the nearest id.

use crate::OpsError;
use model::id::{MemberName, RequestId};
use model::members::record::MemberRecord;
use model::name::nearest;
use store::{StoreError, TeamStore};

/// Rejects a name that differs from that of a present or former member only in case. Unknown names
/// pass, since each verb decides which of them it accepts.
///
/// # Errors
/// [`StoreError::NoSuchMember`] for such a name; its hint names the member.
pub fn must_be_exact(team: &TeamStore, name: &MemberName) -> Result<(), OpsError> {
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

/// Replaces the error about an unknown request with one that names the nearest known id.
///
/// # Errors
/// The failure in `found`, or one to read the requests.
pub(crate) fn suggest_nearest_request<T>(
    team: &TeamStore,
    id: &RequestId,
    found: Result<T, StoreError>,
) -> Result<T, OpsError> {
    match found {
        Err(StoreError::NoSuchRequest { .. }) => {
            let shutdowns = team.requests()?.into_iter().map(|request| request.id);
            let ids: Vec<RequestId> = team
                .questions()?
                .into_iter()
                .map(|question| question.id)
                .chain(shutdowns)
                .collect();
            let nearest = nearest(id.as_str(), ids.iter().map(RequestId::as_str));
            Err(OpsError::NoSuchRequest { id: id.clone(), nearest: nearest.map(str::to_owned) })
        }
        other => Ok(other?),
    }
}

/// Returns the record of a member that phalanx started.
///
/// # Errors
/// [`OpsError::NotOurMember`] for a member that another program started,
/// [`StoreError::NoSuchMember`] for an unknown name.
pub(crate) fn started_record(
    team: &TeamStore,
    name: &MemberName,
) -> Result<MemberRecord, OpsError> {
    if let Some(record) = team.member_record(name)? {
        return Ok(record);
    }
    let roster = team.team()?;
    match roster.member(name) {
        Some(_) => Err(OpsError::NotOurMember { name: name.clone() }),
        None => Err(OpsError::no_such_member(team, name, &roster.members)),
    }
}

/// Ids that an error names.
const SHOWN: usize = 5;

/// Returns the known id that `given` is or begins; `None` if there is none.
///
/// # Errors
/// [`OpsError::Usage`] with the candidates if it begins several.
pub(crate) fn by_beginning<'k>(
    what: &str,
    given: &str,
    known: &[&'k str],
) -> Result<Option<&'k str>, OpsError> {
    if let Some(whole) = known.iter().find(|id| **id == given) {
        return Ok(Some(*whole));
    }
    let begun: Vec<&str> =
        known.iter().copied().filter(|id| !given.is_empty() && id.starts_with(given)).collect();
    match begun.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(*only)),
        several => {
            Err(ambiguous(format!("{} {what}s begin with `{given}`", several.len()), several))
        }
    }
}

/// Returns the error about an id that begins several.
pub(crate) fn ambiguous(problem: String, candidates: &[&str]) -> OpsError {
    let shown = candidates.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let more = if candidates.len() > SHOWN { ", …" } else { "" };
    OpsError::Usage { problem, hint: Some(format!("write one of: {shown}{more}")) }
}
