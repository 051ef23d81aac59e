//! The access policy: checks the origin of a request before it creates work.

use crate::{Context, OpsError};
use model::id::MemberName;
use model::mail::access::{AccessDenied, LinkAccess};
use model::mail::scope::Scope;
use model::members::launch::LaunchSpec;
use model::team::event::{EventKind, Note};
use model::team::settings::Settings;
use store::TeamStore;

/// Checks that the team takes requests of this origin. `undone` says what is refused.
///
/// # Errors
/// [`OpsError::AccessDenied`], which is journaled.
pub(crate) fn must_admit(
    ctx: &Context,
    team: &TeamStore,
    scope: &Scope,
    undone: &str,
) -> Result<(), OpsError> {
    // The usual case costs no read.
    if scope.is_empty() {
        return Ok(());
    }
    let Some(settings) = team.settings()? else { return Ok(()) };
    settings.access.admit(scope).or_else(|why| refuse(ctx, team, undone.to_owned(), why))
}

/// Checks that this member takes requests of this origin. `new` describes one that is still to
/// start.
///
/// # Errors
/// As [`must_admit`].
pub(crate) fn must_admit_to(
    ctx: &Context,
    team: &TeamStore,
    scope: &Scope,
    (member, new): (&MemberName, Option<&LaunchSpec>),
    undone: &str,
) -> Result<(), OpsError> {
    if scope.is_empty() {
        return Ok(());
    }
    let Some(settings) = team.settings()? else { return Ok(()) };
    let (role, own) = match new {
        Some(spec) => (spec.role.clone(), spec.access.clone()),
        None => role_and_access(team, &settings, member)?,
    };
    let admitted = settings.admit_to(scope, member, &own, role.as_deref());
    admitted.or_else(|why| refuse(ctx, team, format!("{undone} `{member}`"), why))
}

/// As [`must_admit_to`], for a member of the team. Returns false if it is refused.
pub(crate) fn admits_to(
    ctx: &Context,
    team: &TeamStore,
    scope: &Scope,
    member: &MemberName,
    undone: &str,
) -> Result<bool, OpsError> {
    match must_admit_to(ctx, team, scope, (member, None), undone) {
        Err(OpsError::AccessDenied { .. }) => Ok(false),
        checked => checked.map(|()| true),
    }
}

/// Returns the role of a member and the lists of its start, also of one that the lead has yet to
/// start.
fn role_and_access(
    team: &TeamStore,
    settings: &Settings,
    member: &MemberName,
) -> Result<(Option<String>, LinkAccess), OpsError> {
    if let Some(record) = team.member_record(member)? {
        return Ok((record.request.role, record.request.access));
    }
    if let Some(member) = team.team()?.member(member) {
        return Ok((member.agent_type.clone(), LinkAccess::default()));
    }
    let template = settings.templates.iter().find(|template| template.makes(member));
    Ok((template.and_then(|template| template.spec.role.clone()), LinkAccess::default()))
}

fn refuse(
    ctx: &Context,
    team: &TeamStore,
    undone: String,
    why: AccessDenied,
) -> Result<(), OpsError> {
    let refusal = OpsError::AccessDenied { undone, why };
    let note = Note::of(EventKind::Warning).member(&ctx.speaker);
    team.record(note.with("text", refusal.to_string()))?;
    Err(refusal)
}
