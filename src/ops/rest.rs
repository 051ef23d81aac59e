//! A native program that rests and has not said so, seen on its screen. Claude Code 2.1.34 that starts while another one
//! writes the team file in place does not know its team: it reads its mail and works, and never says that it rests
//! (observed).

use std::time::Duration;

use super::context::Context;
use super::error::OpsError;
use super::{output, presence, profiles};
use crate::model::id::{Incarnation, MemberName};
use crate::model::lifecycle::{Cause, MemberState};
use crate::model::record::MemberRecord;
use crate::profile::{Look, Profile, ScreenState, judge, last_words};
use crate::store::TeamStore;
use crate::sys::clock::sleep;

/// Between two steps of its work a program can look for a moment as if it rested.
const STILL: Duration = Duration::from_millis(1500);
/// More than any screen has.
const LINES: usize = 200;

/// Looks twice; a run that by its profile rests both times, and has said nothing in between, does.
///
/// # Errors
/// No such profile any more; its screen cannot be read.
pub(crate) fn look(
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
    let profile = profiles::find(ctx, &before.wish.profile)?;
    let words = || -> Result<Option<Vec<String>>, OpsError> {
        Ok(words_at_rest(&profile, &output::peek(ctx, team, name, LINES)?))
    };
    let Some(first) = words()? else { return Ok(()) };
    sleep(STILL);
    if words()? == Some(first)
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

/// All that a screen says, if it shows that the program rests. Below its composer it may give hints, one after the other.
fn words_at_rest(profile: &Profile, screen: &str) -> Option<Vec<String>> {
    let look = Look::of_text(screen);
    (judge(profile, &look).state == ScreenState::Idle).then(|| last_words(profile, &look, LINES))
}
