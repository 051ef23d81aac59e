//! Checks the screens of native programs, which report less than wrapped ones: finds those that
//! wait for a person, for example at a question of a first start, and those that are idle but have
//! not reported it. If Claude Code 2.1.34 starts while another program writes the team file in
//! place, it does not find its team: it reads its mail and works, but never reports that it is idle
//! (observed).

use std::time::Duration;

use crate::decisions::decide::close;
use crate::effects::start_dialog;
use crate::members::{output, presence, profiles};
use crate::{Context, OpsError, now};
use model::id::{Incarnation, MemberName};
use model::members::lifecycle::{Cause, MemberState};
use model::members::rate_limit::next_try;
use model::members::record::{MemberRecord, retrying_reason};
use profile::{Profile, ScreenFinding, ScreenState, Screenshot, judge, last_words};
use store::TeamStore;
use sys::clock::{self, sleep};

/// Pause between the two reads: between two steps of its work a program can look idle for a moment.
const RECHECK_DELAY: Duration = Duration::from_millis(1500);
/// Time from the start of its work for which a program can look idle, in ms.
const BEGINNING_MS: u64 = 10_000;
/// More lines than any screen has.
const LINES: usize = 200;

/// Reads the screen, and again a moment later if it shows something to record:
/// - a dialog that the keys of its profile answer becomes a request;
/// - a permission that a program at rest has asked for is withdrawn;
/// - a run that waits for a person, or that repeats a request by itself, gets this as the reason of
///   its state, until it no longer does;
/// - a working run that its profile judges idle both times, with the same text and no report in
///   between, becomes idle.
///
/// # Errors
/// A profile that no longer exists; a screen that cannot be read.
pub fn check_screen(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    let current = || -> Result<Option<MemberRecord>, OpsError> {
        let looked_at = |record: &MemberRecord| {
            let state = matches!(
                record.state,
                MemberState::Working | MemberState::Idle | MemberState::AwaitingPermission
            );
            // A member that another program started has no place that phalanx knows.
            record.is(incarnation) && state && record.placement.is_some()
        };
        Ok(team.member_record(name)?.filter(looked_at))
    };
    let Some(before) = current()? else { return Ok(()) };
    let profile = profiles::find(ctx, &before.request.profile)?;
    let read = || -> Result<(ScreenFinding, CheckedScreen), OpsError> {
        let look = Screenshot::of_text(&output::peek(ctx, team, name, LINES)?);
        let finding = judge(&profile, &look);
        let checked = sign(&profile, &look, &finding);
        Ok((finding, checked))
    };
    let (finding, first) = match read() {
        Ok(first) => first,
        // `ps` and `doctor` report a host that does not answer.
        Err(_) if before.is_elsewhere => return Ok(()),
        Err(e) => return Err(e),
    };
    if !profile.answers.is_empty() {
        start_dialog::settle(ctx, team, &before, &profile, &finding)?;
    }
    let is_asked = start_dialog::answerable(&profile, &finding).is_some();
    let asks = before.state == MemberState::AwaitingPermission;
    if is_asked || asks && !matches!(first, CheckedScreen::Idle(_)) {
        return Ok(());
    }
    let next = next_try(finding.until.as_deref(), now(), &clock::local_zone());
    let is_news = match &first {
        // The time of the next try follows.
        CheckedScreen::Blocked(reason) => {
            before.reason.as_ref().is_none_or(|before| !before.starts_with(reason))
        }
        CheckedScreen::Idle(_) => asks || has_worked_on(&before) || before.is_blocked(),
        CheckedScreen::Other => before.is_blocked(),
    };
    if !is_news {
        return Ok(());
    }
    sleep(RECHECK_DELAY);
    let is_same = match read() {
        Ok((_, again)) => again == first,
        Err(_) if before.is_elsewhere => false,
        Err(e) => return Err(e),
    };
    // Two checks can overlap.
    let unchanged =
        |now: &MemberRecord| now.state_since == before.state_since && now.reason == before.reason;
    let Some(now) = current()?.filter(|now| is_same && unchanged(now)) else { return Ok(()) };
    match first {
        CheckedScreen::Blocked(reason) => {
            presence::remark(team, name, incarnation, Some(&(reason + &next)))?;
        }
        CheckedScreen::Idle(_) if asks => close::withdraw_at_rest(team, &now)?,
        CheckedScreen::Idle(_) if has_worked_on(&now) => {
            let reason = Some("its screen shows that it rests");
            presence::move_on(team, name, incarnation, Cause::Rest, reason)?;
            presence::set_active(team, name, false)?;
        }
        CheckedScreen::Idle(_) | CheckedScreen::Other if now.is_blocked() => {
            presence::remark(team, name, incarnation, None)?;
        }
        CheckedScreen::Idle(_) | CheckedScreen::Other => {}
    }
    Ok(())
}

/// Returns true for a run that works, and began to long enough ago to be over.
fn has_worked_on(record: &MemberRecord) -> bool {
    record.state == MemberState::Working && now().since(record.state_since) >= BEGINNING_MS
}

/// The state of a program, as far as its screen shows it.
#[derive(Debug, PartialEq, Eq)]
enum CheckedScreen {
    /// It waits for a person or for its next try, for this reason.
    Blocked(String),
    /// It is idle. The text above the composer; hints below it may change meanwhile.
    Idle(Vec<String>),
    Other,
}

fn sign(profile: &Profile, look: &Screenshot, finding: &ScreenFinding) -> CheckedScreen {
    let is_retrying = finding.state == ScreenState::Retrying;
    let retrying = || is_retrying.then(|| retrying_reason(&finding.evidence));
    match finding.blocked_reason().or_else(retrying) {
        Some(reason) => CheckedScreen::Blocked(reason),
        None => match finding.state {
            // The turn of a program at its usage limit has ended, too.
            ScreenState::Idle | ScreenState::Limited | ScreenState::Failed { .. } => {
                CheckedScreen::Idle(last_words(profile, look, LINES))
            }
            _ => CheckedScreen::Other,
        },
    }
}
