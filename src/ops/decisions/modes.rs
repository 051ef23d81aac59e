//! `mode`: changes the permission mode of members while they run, and the lead's own.

use serde::Serialize;

use crate::decisions::decide::{above, lead_mode};
use crate::mail::post::Post;
use crate::members::profiles;
use crate::team::claude_settings;
use crate::{Context, OpsError};
use model::id::MemberName;
use model::mail::protocol::{Message, ModeSetRequest};
use model::members::mode::Mode;
use model::members::record::MemberRecord;
use model::team::Team;
use profile::Runs;
use store::TeamStore;

/// A member whose mode was changed, or whose program was asked to change it.
#[derive(Debug, Clone, Serialize)]
pub struct ModeChange {
    pub name: MemberName,
    pub mode: Mode,
    /// Id of the message that asks its program to change; `None` for the lead, which is not asked.
    pub msg_id: Option<String>,
    /// The team file has the mode. It is not known whether a native program changes its mode.
    #[serde(skip)]
    pub is_recorded: bool,
}

/// Changes the mode of one member; without a name, of all whose programs can change it while they
/// run.
///
/// # Errors
/// [`OpsError::NotAllowed`] for a mode that is disabled, only for leads, or more permissive than
/// the lead's (PM-06); a refusal for a member whose program takes its mode only at
/// start; [`OpsError::no_such_member`] for an unknown name. Nothing is changed then.
pub fn set(
    ctx: &Context,
    team: &TeamStore,
    name: Option<&MemberName>,
    mode: Mode,
) -> Result<Vec<ModeChange>, OpsError> {
    let roster = team.team()?;
    claude_settings::must_be_enabled(ctx, &roster, mode)?;
    if name.is_some_and(MemberName::is_lead) {
        return set_lead(ctx, team, &roster, mode).map(|change| vec![change]);
    }
    if mode == Mode::Delegate {
        return Err(OpsError::NotAllowed {
            problem: "mode `delegate` is only for leads".to_owned(),
        });
    }
    if let Some(own) = lead_mode(&roster).filter(|own| mode.reach() > own.reach()) {
        return Err(OpsError::NotAllowed { problem: above(own, mode) });
    }
    changeable_members(ctx, team, &roster, name)?
        .into_iter()
        .map(|name| request_change(team, name, mode))
        .collect()
}

/// An agent lead may not widen its own permissions; a person may.
fn set_lead(
    ctx: &Context,
    team: &TeamStore,
    roster: &Team,
    mode: Mode,
) -> Result<ModeChange, OpsError> {
    let is_agent = ctx.caller.var("PHALANX_TOKEN").is_some();
    if let Some(own) = lead_mode(roster).filter(|own| is_agent && mode.reach() > own.reach()) {
        return Err(OpsError::NotAllowed { problem: above(own, mode) });
    }
    let name = MemberName::lead();
    team.change_roster(|roster| Ok(roster.set(&name, "mode", mode.as_str())))?;
    Ok(ModeChange { name, mode, msg_id: None, is_recorded: true })
}

fn changeable_members(
    ctx: &Context,
    team: &TeamStore,
    roster: &Team,
    name: Option<&MemberName>,
) -> Result<Vec<MemberName>, OpsError> {
    let Some(name) = name else {
        let mut names = Vec::new();
        for member in roster.teammates() {
            if fixed_by(ctx, team, &member.name)?.is_none() {
                names.push(member.name.clone());
            }
        }
        return Ok(names);
    };
    let Some(member) = roster.teammates().find(|member| member.name.clashes_with(name.as_str()))
    else {
        return Err(OpsError::no_such_member(team, name, roster.teammates()));
    };
    match fixed_by(ctx, team, &member.name)? {
        Some(profile) => {
            let name = &member.name;
            Err(OpsError::refused(
                format!(
                    "`{name}` cannot change its mode while it runs: `{profile}` is given it at its \
                     start"
                ),
                format!("end it with `phalanx shutdown {name}`, and spawn it with `--mode`"),
            ))
        }
        None => Ok(vec![member.name.clone()]),
    }
}

/// Returns the profile of a member whose program takes its mode only at start. Only native members
/// and those over ACP read `mode_set_request`; a member that phalanx did not start counts as native.
fn fixed_by(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
) -> Result<Option<String>, OpsError> {
    let is_fixed =
        |record: &MemberRecord| !record.reads_mail() || record.request.native == Some(false);
    let Some(record) = team.member_record(name)?.filter(is_fixed) else { return Ok(None) };
    let profile = record.request.profile;
    let is_over_acp = profiles::find(ctx, &profile)?.runs == Runs::Acp;
    Ok((!is_over_acp).then_some(profile))
}

fn request_change(team: &TeamStore, name: MemberName, mode: Mode) -> Result<ModeChange, OpsError> {
    let lead = MemberName::lead();
    let message = Message::ModeSetRequest(ModeSetRequest {
        mode: mode.as_str().to_owned(),
        from: Some(lead.to_string()),
    });
    let msg_id = Some(Post::new(&lead, &name, message).send(team)?);
    let is_recorded = team.member_record(&name)?.is_some_and(|record| !record.is_native());
    if is_recorded {
        team.change_roster(|roster| Ok(roster.set(&name, "mode", mode.as_str())))?;
    }
    Ok(ModeChange { name, mode, msg_id, is_recorded })
}
