//! Members at the usage limit of their provider: asks them to continue, or reports to the lead that
//! they are not asked again. Each step is persisted before its message is sent: a lead that crashes
//! in between skips one message, and no lead sends more than the settings allow.

use crate::{OpsError, Post, now};
use model::id::{Incarnation, MemberName};
use model::members::rate_limit::RateLimit;
use store::TeamStore;
use sys::clock;

/// The message after the end of a limit, or after a pause if the end is not known.
const CONTINUE: &str = "Your usage limit may have ended. Continue with your work.";

/// Asks the member to continue. Has no effect if its limit is over.
///
/// # Errors
/// A record or mailbox that cannot be written.
pub fn resume(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    let count = |limit: &mut RateLimit| {
        limit.attempts += 1;
        limit.resumed_at = Some(now());
    };
    match change(team, name, incarnation, count)? {
        Some(_) => Post::notice(name, CONTINUE.to_owned()).send(team).map(drop),
        None => Ok(()),
    }
}

/// Notifies the lead that the member is not asked to continue.
///
/// # Errors
/// A record or mailbox that cannot be written.
pub fn report(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
) -> Result<(), OpsError> {
    let Some(limit) = change(team, name, incarnation, |limit| limit.is_reported = true)? else {
        return Ok(());
    };
    let tries = match limit.attempts {
        0 => String::new(),
        tries => format!(" (attempts to continue: {tries})"),
    };
    let text = format!(
        "{name} is at the usage limit of its account {}{tries}: {}. phalanx does not ask it to \
         continue; send it a message when the limit has ended, give its work to another member, or \
         end it with `phalanx shutdown {name}`.",
        limit.describe(&clock::local_zone()),
        limit.said
    );
    Post::notice(&MemberName::lead(), text).send(team).map(drop)
}

fn change(
    team: &TeamStore,
    name: &MemberName,
    incarnation: &Incarnation,
    edit: impl Fn(&mut RateLimit),
) -> Result<Option<RateLimit>, OpsError> {
    let changed = team.change_record(name, incarnation, |record| {
        let limit = record.rate_limit.as_mut().filter(|limit| !limit.is_over)?;
        edit(limit);
        Some(limit.clone())
    })?;
    Ok(changed.flatten())
}
