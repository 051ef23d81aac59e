//! Detects native programs that are idle but have not reported it, by their screens. If Claude Code
//! 2.1.34 starts while another program writes the team file in place, it does not find its team: it
//! reads its mail and works, but never reports that it is idle (observed).

use std::time::Duration;

use crate::model::id::{Incarnation, MemberName};
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::record::MemberRecord;
use crate::ops::{Context, OpsError, output, presence, profiles};
use crate::profile::{Look, Profile, ScreenState, judge, last_words};
use crate::store::TeamStore;
use crate::sys::clock::sleep;

/// Pause between the two reads: between two steps of its work a program can look idle for a moment.
const STILL: Duration = Duration::from_millis(1500);
/// More lines than any screen has.
const LINES: usize = 200;

/// Reads the screen twice. A run that its profile judges idle both times, with the same text and no
/// report in between, becomes idle.
///
/// # Errors
/// A profile that no longer exists; a screen that cannot be read.
pub(crate) fn check_idle(
    ctx: &Context,
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    let at_work = || -> Result<Option<MemberRecord>, OpsError> {
        let record = team.member_record(name)?;
        Ok(record.filter(|record| record.is(incarnation) && record.state == MemberState::Working))
    };
    let Some(before) = at_work()? else { return Ok(()) };
    let profile = profiles::find(ctx, &before.request.profile)?;
    let read_text = || -> Result<Option<Vec<String>>, OpsError> {
        Ok(text_if_idle(&profile, &output::peek(ctx, team, name, LINES)?))
    };
    let Some(first) = read_text()? else { return Ok(()) };
    sleep(STILL);
    if read_text()? == Some(first)
        && at_work()?.is_some_and(|now| now.state_since == before.state_since)
    {
        presence::move_on(
            team,
            name,
            incarnation,
            Cause::Rest,
            Some("its screen shows that it rests"),
        )?;
    }
    Ok(())
}

/// Returns the text above the composer, if the screen shows that the program is idle. Hints below
/// the composer may change while it is.
fn text_if_idle(profile: &Profile, screen: &str) -> Option<Vec<String>> {
    let look = Look::of_text(screen);
    (judge(profile, &look).state == ScreenState::Idle).then(|| last_words(profile, &look, LINES))
}
