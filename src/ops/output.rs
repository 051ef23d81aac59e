//! `peek` and `logs`: what a member shows and what it has printed.

use std::path::{Path, PathBuf};

use super::backends;
use super::context::Context;
use super::error::OpsError;
use crate::backend::pty;
use crate::model::id::MemberName;
use crate::model::placement::Placement;
use crate::model::record::MemberRecord;
use crate::store::{StoreError, TeamStore};
use crate::sys::fs;

/// Where the output of a member is to be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// All that it printed is in this file.
    File(PathBuf),
    /// Its screen is all there is.
    Screen,
}

/// The last `lines` lines of a member's screen.
pub(crate) fn peek(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    lines: usize,
) -> Result<String, OpsError> {
    let record = record(team, name)?;
    let Some(placement) = &record.placement else {
        return Err(OpsError::NotEnded { what: format!("`{name}` has no screen: it was never placed") });
    };
    if let Some(screen) = live(&record, lines) {
        return Ok(screen);
    }
    let backend = backends::of_placement(ctx, team, placement)?;
    Ok(backend.screen(placement, &record.token, lines)?)
}

/// The screen as its launcher has it, if that runs and holds so many lines; else its log is the next best thing.
fn live(record: &MemberRecord, lines: usize) -> Option<String> {
    let socket = record.start.as_ref()?.socket.as_ref()?;
    (lines <= pty::LIVE_SCROLLBACK).then(|| pty::peek(Path::new(socket), lines).ok()).flatten()
}

/// Where the output of a member is.
pub(crate) fn source(team: &TeamStore, name: &MemberName) -> Result<Source, OpsError> {
    Ok(match record(team, name)?.placement {
        Some(Placement::Pty(hold)) => Source::File(PathBuf::from(hold.log)),
        Some(Placement::Tmux(_) | Placement::Iterm2(_) | Placement::Exec(_)) | None => Source::Screen,
    })
}

/// Up to `max` bytes of a log from byte `from` on.
pub(crate) fn read(log: &std::path::Path, from: u64, max: u64) -> Result<Vec<u8>, OpsError> {
    Ok(fs::read_range(log, from, max)?)
}

/// The record of a member that is to be looked at.
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
