//! Ids as people write them: the whole id, or the beginning of exactly one. Ids of tasks are
//! numbers and are always whole, because `1` would also begin `12`.

use model::text;
use std::collections::BTreeSet;

use crate::authority::names::{ambiguous, by_beginning, must_be_exact};
use crate::decisions::decide::process_requests;
use crate::{Context, Kind, OpsError};
use model::id::{MemberName, RequestId};
use store::TeamStore;

/// Maximum length of the names in a hint, in characters.
const NAMES_LENGTH: usize = 60;

/// Resolves the id of a request that a person wrote. Of open and resolved requests with the same
/// beginning, an open one is meant. An unknown id is returned as it is.
///
/// # Errors
/// [`OpsError::Usage`] if it begins several ids; failures to read the requests.
pub fn request(ctx: &Context, team: &TeamStore, given: &RequestId) -> Result<RequestId, OpsError> {
    let found = read_requests(ctx, team, given)?;
    resolve(given, &found)
}

/// Resolves the id of a request to answer: as [`request`] does, or the name of a member with one
/// open request. The name of a member takes precedence over the beginning of an id.
///
/// # Errors
/// [`OpsError::Usage`] if several are meant, a refusal for a member without one;
/// failures to read the requests.
pub fn request_to_answer(
    ctx: &Context,
    team: &TeamStore,
    given: &RequestId,
) -> Result<RequestId, OpsError> {
    let found = read_requests(ctx, team, given)?;
    // A member answers the request for its own shutdown, the lead all others.
    let is_own = ctx.speaker.as_str() == given.as_str();
    let is_meant = |one: &&KnownRequest| {
        one.is_open && one.member.as_str() == given.as_str() && one.id.is_shutdown() == is_own
    };
    let of_member: Vec<&str> = found.iter().filter(is_meant).map(|one| one.id.as_str()).collect();
    match of_member.as_slice() {
        _ if found.iter().any(|one| one.id == *given) => Ok(given.clone()),
        [] => {
            let id = resolve(given, &found)?;
            match MemberName::existing(given.as_str()) {
                Ok(name) if !is_own && !found.iter().any(|one| one.id == id) => {
                    must_have_a_request(team, &name, &found)?;
                }
                Ok(_) | Err(_) => {}
            }
            Ok(id)
        }
        [only] => Ok(RequestId::parse(only)?),
        several => {
            let problem = format!("`{given}` has {} open requests", several.len());
            Err(ambiguous(problem, several))
        }
    }
}

/// Returns the only open request that the lead answers.
///
/// # Errors
/// [`OpsError::Usage`] if several are open, a refusal if none is; failures to read the requests.
pub fn only_request(ctx: &Context, team: &TeamStore) -> Result<RequestId, OpsError> {
    process_requests(ctx, team)?;
    let mut open = known_requests(team)?;
    open.retain(|one| one.is_open && !one.id.is_shutdown());
    match open.as_slice() {
        [only] => Ok(only.id.clone()),
        [] => {
            let hint = "`phalanx requests --all` lists those that were answered".to_owned();
            Err(OpsError::described(Kind::NotFound, "no request is open".to_owned(), hint))
        }
        several => {
            let ids: Vec<&str> = several.iter().map(|one| one.id.as_str()).collect();
            Err(ambiguous(format!("{} requests are open", ids.len()), &ids))
        }
    }
}

/// Returns an error if this is the name of a present or former member: it has no request to answer.
fn must_have_a_request(
    team: &TeamStore,
    name: &MemberName,
    known: &[KnownRequest],
) -> Result<(), OpsError> {
    must_be_exact(team, name)?;
    if team.team()?.member(name).is_none() && team.member_record(name)?.is_none() {
        return Ok(());
    }
    let open = || known.iter().filter(|one| one.is_open);
    let is_leaving = open().any(|one| one.member == *name);
    let others: BTreeSet<&str> =
        open().filter(|one| !one.id.is_shutdown()).map(|one| one.member.as_str()).collect();
    let leaving =
        if is_leaving { "; it was asked to shut down and answers that itself" } else { "" };
    let hint = match others.first() {
        Some(first) => {
            let has = if others.len() == 1 { "has" } else { "have" };
            let names = others.iter().copied().collect::<Vec<_>>().join(", ");
            let names = text::short(&names, NAMES_LENGTH);
            format!("{names} {has} one: `phalanx answer {first} --approve`, or `--reject`")
        }
        None => {
            "no member has one; `phalanx requests --all` lists those that were answered".to_owned()
        }
    };
    let problem = format!("`{name}` has no open request{leaving}");
    Err(OpsError::described(Kind::NotFound, problem, hint))
}

struct KnownRequest {
    id: RequestId,
    /// The member that asks, or that is asked to shut down.
    member: MemberName,
    is_open: bool,
}

/// Reads all requests; without new mail if the whole id is known.
fn read_requests(
    ctx: &Context,
    team: &TeamStore,
    given: &RequestId,
) -> Result<Vec<KnownRequest>, OpsError> {
    let known = known_requests(team)?;
    if known.iter().any(|one| one.id == *given) {
        return Ok(known);
    }
    process_requests(ctx, team)?;
    known_requests(team)
}

fn known_requests(team: &TeamStore) -> Result<Vec<KnownRequest>, OpsError> {
    let shutdowns = team.requests()?.into_iter().map(|request| KnownRequest {
        is_open: request.is_open(),
        id: request.id,
        member: request.member,
    });
    let questions = team.questions()?.into_iter().map(|question| KnownRequest {
        is_open: question.is_open(),
        id: question.id,
        member: question.from,
    });
    Ok(shutdowns.chain(questions).collect())
}

fn resolve(given: &RequestId, known: &[KnownRequest]) -> Result<RequestId, OpsError> {
    let ids = |is_open: bool| -> Vec<&str> {
        known.iter().filter(|one| one.is_open == is_open).map(|one| one.id.as_str()).collect()
    };
    let is_whole = known.iter().any(|one| one.id == *given);
    let (open, over) = (ids(true), ids(false));
    let found = match by_beginning("request", given.as_str(), &open) {
        _ if is_whole => None,
        Ok(None) => by_beginning("request", given.as_str(), &over)?,
        found => found?,
    };
    Ok(found.map(RequestId::parse).transpose()?.unwrap_or_else(|| given.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_of_exactly_one_id_is_enough() {
        let known = ["perm-1", "perm-12", "plan-1"];
        let found = |given| by_beginning("request", given, &known);
        for (given, expected) in [
            ("perm-1", Some("perm-1")),
            ("perm-12", Some("perm-12")),
            ("pl", Some("plan-1")),
            ("x", None),
            ("perm-123", None),
            ("", None),
        ] {
            assert_eq!(found(given).expect("not ambiguous"), expected, "{given:?}");
        }
        let error = found("pe").expect_err("two begin so");
        assert_eq!(error.to_string(), "2 requests begin with `pe`");
        assert_eq!(error.hint().as_deref(), Some("write one of: perm-1, perm-12"));
    }
}
