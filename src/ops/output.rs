//! `peek`: the last lines of a member's screen.

use std::path::Path;

use super::backends;
use super::context::Context;
use super::error::OpsError;
use super::names::started_record;
use crate::backend::pty;
use crate::model::id::MemberName;
use crate::model::record::MemberRecord;
use crate::store::TeamStore;

/// Returns the last `lines` lines of a member's screen.
pub(crate) fn peek(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    lines: usize,
) -> Result<String, OpsError> {
    let record = started_record(team, name)?;
    let Some(placement) = &record.placement else {
        return Err(OpsError::Failed {
            problem: format!("`{name}` has no screen: it was never placed"),
        });
    };
    if let Some(screen) = live_screen(&record, lines) {
        return Ok(screen);
    }
    let backend = backends::open_for(ctx, team, &record, placement)?;
    Ok(backend.screen(placement, record.mark(), lines)?)
}

/// Returns the screen from the launcher, if that runs and keeps that many lines; otherwise the log
/// is the best source.
pub(super) fn live_screen(record: &MemberRecord, lines: usize) -> Option<String> {
    let socket = record.socket()?;
    (lines <= pty::LIVE_SCROLLBACK).then(|| pty::peek(Path::new(socket), lines).ok()).flatten()
}
