//! Authentication of the caller: a process with a token acts only as the member or the agent lead
//! whose living run has that token (SEC-04, SEC-12). docs/security.md lists what this cannot
//! prevent.

use std::ffi::OsStr;

use super::context::Context;
use super::error::{OpsError, holder};
use super::names;
use crate::model::event::{EventKind, Note};
use crate::model::id::{MemberName, TeamName};
use crate::model::record::MemberRecord;
use crate::store::{StoreError, TeamStore};

/// Checks the speaker against the caller's `PHALANX_TOKEN`. Without a token, the speaker must be
/// the lead or on the roster.
///
/// # Errors
/// [`OpsError::NotTheSpeaker`] for the token of another member of this team, or of a run that has
/// ended or is not the member's latest; the attempt is journaled. [`StoreError::NoSuchMember`] for
/// a speaker that is not on the team.
pub(super) fn check(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    let Some(token) = ctx.caller.var("PHALANX_TOKEN") else {
        return must_be_here(team, &ctx.speaker);
    };
    let owner = owner(team, token, &ctx.speaker)?;
    if owner.as_ref() == Some(&ctx.speaker) {
        return Ok(());
    }
    if owner.is_none() && !is_member_here(ctx, team) {
        // A member of another team, whose token means nothing here; it may have created this team.
        return must_be_here(team, &ctx.speaker);
    }
    let who = holder(owner.as_ref());
    let text = format!("{who} tried to act as `{}` and was refused", ctx.speaker);
    let note = Note { member: owner.clone(), ..Note::of(EventKind::Warning) };
    team.record(note.with("text", text))?;
    Err(OpsError::NotTheSpeaker { speaker: ctx.speaker.clone(), owner })
}

/// Returns the member of this team, or its lead, whose living run has this token. Looks at `likely`
/// first, so that the common case costs one read.
fn owner(
    team: &TeamStore,
    token: &OsStr,
    likely: &MemberName,
) -> Result<Option<MemberName>, StoreError> {
    let holds = |record: &MemberRecord| !record.has_ended() && token == OsStr::new(&record.token);
    if team.member_record(likely)?.is_some_and(|record| holds(&record)) {
        return Ok(Some(likely.clone()));
    }
    if team.lead_token()?.is_some_and(|of_lead| token == OsStr::new(&of_lead)) {
        return Ok(Some(MemberName::lead()));
    }
    Ok(team.member_records()?.into_iter().find(holds).map(|record| record.name))
}

fn must_be_here(team: &TeamStore, speaker: &MemberName) -> Result<(), OpsError> {
    if speaker.is_lead() {
        return Ok(());
    }
    let known: Vec<MemberName> =
        team.team()?.members.into_iter().map(|member| member.name).collect();
    if known.contains(speaker) {
        return Ok(());
    }
    names::must_be_exact(team, speaker)?;
    Err(StoreError::NoSuchMember { team: team.name().clone(), name: speaker.clone(), known }.into())
}

/// Returns true if the caller's environment makes it a member of this team.
fn is_member_here(ctx: &Context, team: &TeamStore) -> bool {
    let named = ctx
        .caller
        .var("PHALANX_TEAM")
        .and_then(OsStr::to_str)
        .and_then(|t| TeamName::existing(t).ok());
    let same_root =
        ctx.caller.var("PHALANX_CONFIG_DIR").is_none_or(|root| root == team.root().as_os_str());
    same_root && named.as_ref() == Some(team.name())
}
