//! `peek`: the last lines of a member's screen.

use std::path::Path;

use super::backends;
use super::context::Context;
use super::error::OpsError;
use crate::backend::pty;
use crate::model::id::MemberName;
use crate::model::record::MemberRecord;
use crate::store::{StoreError, TeamStore};

/// Returns the last `lines` lines of a member's screen.
pub(crate) fn peek(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    lines: usize,
) -> Result<String, OpsError> {
    let record = record(team, name)?;
    let Some(placement) = &record.placement else {
        return Err(OpsError::Failed {
            problem: format!("`{name}` has no screen: it was never placed"),
        });
    };
    if let Some(screen) = live(&record, lines) {
        return Ok(screen);
    }
    let backend = backends::of_placement(ctx, team, placement)?;
    Ok(backend.screen(placement, record.mark(), lines)?)
}

/// Returns the screen from the launcher, if that runs and keeps that many lines; otherwise the log
/// is the best source.
fn live(record: &MemberRecord, lines: usize) -> Option<String> {
    let socket = record.start.as_ref()?.socket.as_ref()?;
    (lines <= pty::LIVE_SCROLLBACK).then(|| pty::peek(Path::new(socket), lines).ok()).flatten()
}

/// Returns the record of a member that phalanx started.
pub(super) fn record(team: &TeamStore, name: &MemberName) -> Result<MemberRecord, OpsError> {
    if let Some(record) = team.member_record(name)? {
        return Ok(record);
    }
    let roster = team.team()?;
    if roster.member(name).is_some() {
        return Err(OpsError::NotOurMember { name: name.clone() });
    }
    let known = roster.members.into_iter().map(|m| m.name).collect();
    Err(StoreError::NoSuchMember { team: team.name().clone(), name: name.clone(), known }.into())
}
