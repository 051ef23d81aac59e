//! `peek`: the last lines of a member's screen, also after its end.

use std::path::Path;

use crate::authority::names::started_record;
use crate::members::{backends, presence};
use crate::{Context, OpsError};
use backend::{BackendError, Mark, pty};
use model::id::MemberName;
use model::members::placement::{Placement, Verdict};
use model::members::record::MemberRecord;
use model::text;
use store::TeamStore;
use sys::fs;
use sys::proc::Liveness;

/// More bytes than a launcher keeps of a pane.
const KEPT_BYTES: u64 = 1024 * 1024;

/// Returns the last `lines` lines of a member's screen, or of what it had printed when it ended.
///
/// # Errors
/// A name that is not on the team, a member that was never placed, a backend that cannot read the
/// screen, or an ended member whose output was not kept.
pub fn peek(
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
    if let Some(screen) = launcher_screen(&record, lines) {
        return Ok(screen);
    }
    let backend = backends::open_for(ctx, team, &record, placement)?;
    match backend.screen(Mark::new(placement, record.mark()), lines) {
        Err(BackendError::NotOurs { verdict: Verdict::Gone, .. }) if has_ended(&record) => {
            Err(not_kept(&record))
        }
        screen => Ok(screen?),
    }
}

fn has_ended(record: &MemberRecord) -> bool {
    record.exit.is_some() || presence::liveness(record) == Liveness::Dead
}

/// The error for an ended member whose output is lost with its pane.
fn not_kept(record: &MemberRecord) -> OpsError {
    let problem = format!(
        "the last output of `{}` was not kept: {}",
        record.name,
        match &record.exit {
            Some(_) => "its pane was closed or did not answer when its program ended",
            None => "its launcher was killed, or its pane was closed with it",
        }
    );
    OpsError::Failed { problem }
}

/// Returns the screen of a run on this host as its launcher holds it, or as it kept it at the end.
pub(crate) fn launcher_screen(record: &MemberRecord, lines: usize) -> Option<String> {
    live_screen(record, lines).or_else(|| kept_lines(record, lines))
}

/// Returns the last lines that an ended run on this host has printed; `None` if they were not kept.
pub fn last_output(
    ctx: &Context,
    team: &TeamStore,
    record: &MemberRecord,
    lines: usize,
) -> Option<String> {
    if record.is_elsewhere || !has_ended(record) {
        return None;
    }
    let of_log = || match record.placement.as_ref()? {
        // Its log has everything.
        placement @ Placement::Pty(_) => {
            let backend = backends::open_for(ctx, team, record, placement).ok()?;
            backend.screen(Mark::new(placement, record.mark()), lines).ok()
        }
        Placement::Tmux(_) | Placement::Iterm2(_) => None,
    };
    kept_lines(record, lines).or_else(of_log).filter(|text| !text.trim().is_empty())
}

/// Returns the last lines that the launcher of a program in a pane kept when that had ended.
pub(crate) fn kept_lines(record: &MemberRecord, lines: usize) -> Option<String> {
    let log = record.exit.as_ref().filter(|_| !record.is_elsewhere)?.log.as_deref()?;
    let kept = fs::read_tail(Path::new(log), KEPT_BYTES).ok().filter(|kept| !kept.is_empty())?;
    Some(text::last_lines(&String::from_utf8_lossy(&kept), lines))
}

/// Returns the screen from the launcher, if that runs and keeps that many lines; otherwise the log
/// is the best source.
pub(crate) fn live_screen(record: &MemberRecord, lines: usize) -> Option<String> {
    let socket = record.socket()?;
    (lines <= pty::LIVE_SCROLLBACK).then(|| pty::peek(Path::new(socket), lines).ok()).flatten()
}
