//! Authentication of the caller: a process with a token is the member or the agent lead whose
//! living run has that token. It acts in its own team under its own name, in a team that it created
//! as the lead, and in no other team (SEC-04, SEC-12). docs/security.md lists what this cannot
//! prevent.

use std::ffi::OsStr;
use std::path::Path;

use crate::authority::names;
use crate::{Context, OpsError};
use model::id::{MemberName, TeamName};
use model::members::record::MemberRecord;
use model::team::settings::Creator;
use store::{StoreError, TeamStore};

/// The rights of the caller in one team.
pub(crate) enum CallerRights {
    /// It has no token: a person, who acts as the lead or as any member.
    Person,
    /// It acts as this member, or as the lead.
    Member(MemberName),
    /// It is a member or the agent lead of another team, and did not create this one.
    Stranger { member: MemberName, own: TeamName },
    /// No living run has its token.
    Invalid,
}

/// The member or agent lead that the caller is.
struct Identity {
    team: TeamStore,
    name: MemberName,
}

/// Checks that the caller may act in this team as the speaker. Without a token, the speaker must be
/// the lead or on the roster.
///
/// # Errors
/// [`OpsError::NotTheSpeaker`] for the token of another member, or of a run that has ended;
/// [`OpsError::NotItsTeam`] for that of a member of another team; [`StoreError::NoSuchMember`] for
/// a speaker that is not on the team.
pub fn check(ctx: &Context, team: &TeamStore) -> Result<(), OpsError> {
    let speaker = &ctx.speaker;
    match rights(ctx, team)? {
        CallerRights::Person => must_be_here(team, speaker),
        CallerRights::Member(name) if name == *speaker => Ok(()),
        CallerRights::Member(name) => {
            Err(OpsError::NotTheSpeaker { speaker: speaker.clone(), owner: Some(name) })
        }
        CallerRights::Stranger { member, own } => {
            Err(OpsError::NotItsTeam { member, own, team: team.name().clone() })
        }
        CallerRights::Invalid => {
            Err(OpsError::NotTheSpeaker { speaker: speaker.clone(), owner: None })
        }
    }
}

/// Returns the rights that the caller's token gives in a team.
pub(crate) fn rights(ctx: &Context, team: &TeamStore) -> Result<CallerRights, OpsError> {
    let Some(token) = token(ctx) else { return Ok(CallerRights::Person) };
    // Its own team, under whichever path of the config root.
    if own_name(ctx).as_ref() == Some(team.name())
        && let Some(name) = owner(team, token, &ctx.speaker)?
    {
        return Ok(CallerRights::Member(name));
    }
    let Some(identity) = identify(ctx) else { return Ok(CallerRights::Invalid) };
    // Settings that cannot be read name no creator.
    let creator = team.settings().ok().flatten().and_then(|settings| settings.creator);
    if creator.is_some() && creator == identity.to_creator().ok() {
        return Ok(CallerRights::Member(MemberName::lead()));
    }
    let Identity { team: own, name: member } = identity;
    Ok(CallerRights::Stranger { member, own: own.name().clone() })
}

/// Returns true if the caller is a member or an agent lead, living or not, and no person.
pub fn has_token(ctx: &Context) -> bool {
    token(ctx).is_some()
}

/// Returns the team that the caller's environment names, if it can be opened.
pub(crate) fn own_team(ctx: &Context) -> Option<TeamStore> {
    let root = ctx.caller.var("PHALANX_CONFIG_DIR").map_or(ctx.store.root(), Path::new);
    ctx.store.under(root).team(&own_name(ctx)?).ok()
}

/// Returns what a team that the caller creates records about it; `None` for a person.
pub fn creator(ctx: &Context) -> Result<Option<Creator>, OpsError> {
    identify(ctx).map(|identity| identity.to_creator()).transpose()
}

impl Identity {
    fn to_creator(&self) -> Result<Creator, OpsError> {
        let team_created_at = self.team.team()?.created_at;
        Ok(Creator { team: self.team.name().clone(), team_created_at, member: self.name.clone() })
    }
}

/// Returns the member or agent lead that the caller is in its own team. `None` without a token, and
/// if that team cannot be read or has no living run with the token.
fn identify(ctx: &Context) -> Option<Identity> {
    let (token, team) = (token(ctx)?, own_team(ctx)?);
    let name = ctx.caller.var("PHALANX_AGENT_NAME").and_then(OsStr::to_str);
    let likely = name.and_then(|name| MemberName::existing(name).ok());
    let name = owner(&team, token, &likely.unwrap_or_else(MemberName::lead)).ok()??;
    Some(Identity { team, name })
}

fn token(ctx: &Context) -> Option<&OsStr> {
    ctx.caller.var("PHALANX_TOKEN")
}

fn own_name(ctx: &Context) -> Option<TeamName> {
    TeamName::existing(ctx.caller.var("PHALANX_TEAM")?.to_str()?).ok()
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
