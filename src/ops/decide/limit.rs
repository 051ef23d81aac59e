//! How much one member can ask at a time: one that asks in a circle must not fill the disk and its person's eyes.

use super::{BY_RULE, OpsError, decision};
use crate::model::id::MemberName;
use crate::model::question::{Decision, Outcome};
use crate::store::TeamStore;

/// More than any program asks before it waits for an answer.
const MOST_OPEN: usize = 32;

/// The answer to a member that has asked too much; none as long as it has not.
pub(super) fn over(team: &TeamStore, asker: &MemberName) -> Result<Option<Decision>, OpsError> {
    let open = team.questions()?.iter().filter(|q| q.is_open() && q.from == *asker).count();
    Ok((open >= MOST_OPEN).then(|| Decision {
        rule: Some(format!("at most {MOST_OPEN} open requests per member")),
        reason: Some(format!("{open} of your requests are still open; wait for their answers")),
        ..decision(Outcome::Denied, BY_RULE)
    }))
}
