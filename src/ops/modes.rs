//! `mode`: a member's permission mode is changed while it runs. Its program does so; what is said here is that it was
//! asked to.

use serde::Serialize;

use super::decide::{above, lead_mode};
use super::error::OpsError;
use super::send;
use crate::model::id::MemberName;
use crate::model::mode::Mode;
use crate::model::protocol::{Message, ModeSetRequest};
use crate::store::{StoreError, TeamStore};

/// A member that was asked to change its mode.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Asked {
    pub(crate) name: MemberName,
    pub(crate) mode: Mode,
    pub(crate) msg_id: String,
}

/// Asks members to work in `mode` from now on; none means all that read mail.
///
/// # Errors
/// A mode that is the lead's alone or reaches further than its own (PM-06), a name that
/// is not on the team, a member that reads no mail. Nobody is asked then.
pub(crate) fn set(team: &TeamStore, name: Option<&MemberName>, mode: Mode) -> Result<Vec<Asked>, OpsError> {
    if mode == Mode::Delegate {
        return Err(OpsError::NotAllowed { problem: "mode `delegate` is only for leads".to_owned() });
    }
    if let Some(own) = lead_mode(team)?.filter(|own| mode.reach() > own.reach()) {
        return Err(OpsError::NotAllowed { problem: above(own, mode) });
    }
    targets(team, name)?.into_iter().map(|name| ask(team, name, mode)).collect()
}

fn targets(team: &TeamStore, name: Option<&MemberName>) -> Result<Vec<MemberName>, OpsError> {
    let roster = team.team()?;
    let Some(name) = name else {
        let all = roster.teammates().map(|member| member.name.clone());
        let reads = all.map(|name| Ok((send::reads_mail(team, &name)?, name)));
        let reads: Vec<(bool, MemberName)> = reads.collect::<Result<_, OpsError>>()?;
        return Ok(reads.into_iter().filter(|(reads, _)| *reads).map(|(_, name)| name).collect());
    };
    match roster.teammates().find(|member| member.name.clashes_with(name.as_str())) {
        None => {
            let known = roster.teammates().map(|member| member.name.clone()).collect();
            Err(StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into())
        }
        Some(member) if send::reads_mail(team, &member.name)? => Ok(vec![member.name.clone()]),
        Some(member) => Err(OpsError::ReadsNoMail { name: member.name.clone() }),
    }
}

fn ask(team: &TeamStore, name: MemberName, mode: Mode) -> Result<Asked, OpsError> {
    let lead = MemberName::lead();
    let message = Message::ModeSetRequest(ModeSetRequest { mode, from: Some(lead.to_string()) });
    let msg_id = send::say(team, &lead, &name, &message, None)?;
    team.change_roster(|roster| Ok(roster.set(&name, "mode", mode.as_str())))?;
    Ok(Asked { name, mode, msg_id })
}
