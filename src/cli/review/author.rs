//! The author of the work that a person names.

use crate::fail::Failure;
use crate::setup::Setup;
use model::board::task_ref::TaskRef;
use model::id::MemberName;
use ops::TeamStore;
use ops::authority::Action;
use ops::review::page;

/// Resolves the author of the work that is shown, if one is named, and the team.
pub(super) fn shown_author(
    setup: &Setup,
    given: Option<&str>,
) -> Result<(TeamStore, Option<MemberName>), Failure> {
    match given {
        Some(given) => author(setup, given, Action::Look).map(|(team, name)| (team, Some(name))),
        None => Ok((setup.team(Action::Look)?, None)),
    }
}

/// Resolves the author of work: a member, or the owner of a task.
pub(super) fn author(
    setup: &Setup,
    given: &str,
    action: Action,
) -> Result<(TeamStore, MemberName), Failure> {
    let Ok(task @ TaskRef::Id(_)) = TaskRef::parse(given) else {
        return setup.member(given, action);
    };
    let owner = page::author_of(&setup.team(action)?, &task)?;
    let team = setup.team(action)?;
    setup.member(&format!("{owner}@{}", team.name()), action)
}
