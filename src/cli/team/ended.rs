//! The files of a team that has ended, for `events --ended` and `inbox --ended`.

use crate::fail::Failure;
use crate::setup::{Setup, since};
use model::id::MemberName;
use ops::{self, EndedTeam, Kind};

/// Returns the ended team that the options name, with the members that the arguments name. `verb`
/// is the caller's.
///
/// # Errors
/// A refusal for a member: a team that has ended has no members, and only a person may look at it.
pub(crate) fn ended_team(
    setup: &Setup,
    names: &[String],
    before: &str,
    verb: &str,
) -> Result<(Vec<MemberName>, EndedTeam), Failure> {
    let before = since(before)?;
    must_be_person(setup)?;
    let (names, team) = setup.unopened_members(names)?;
    let team = team.ok_or_else(|| {
        let hint = format!("name it: `phalanx {verb} -t NAME --ended`");
        Failure::usage("no ended team is named", &hint)
    })?;
    Ok((names, setup.ctx.store.ended_team(&team, before)?))
}

/// Refuses a member: it may not look at a team that has ended.
pub(crate) fn must_be_person(setup: &Setup) -> Result<(), Failure> {
    if ops::authority::speaker::has_token(&setup.ctx) {
        let problem = "only a person may look at a team that has ended";
        let hint = Some("ask the person who started the team".to_owned());
        return Err(Failure::new(Kind::Refused, problem, hint));
    }
    Ok(())
}
