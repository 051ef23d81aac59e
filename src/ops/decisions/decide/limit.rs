//! Limits the open requests of one member, so that a member in a loop cannot fill the disk or flood
//! the user with questions.

use super::close::{BY_RULE, decision};
use crate::OpsError;
use model::decisions::question::{Decision, DecisionOutcome};
use model::id::MemberName;
use store::TeamStore;

/// More open requests than any program makes before it waits for an answer.
const MOST_OPEN: usize = 32;

/// Returns a denial if `asker` has reached the limit of open requests.
pub(super) fn over(team: &TeamStore, asker: &MemberName) -> Result<Option<Decision>, OpsError> {
    let open = team.questions()?.iter().filter(|q| q.is_open() && q.from == *asker).count();
    Ok((open >= MOST_OPEN).then(|| Decision {
        rule: Some(format!("at most {MOST_OPEN} open requests per member")),
        reason: Some(format!("{open} of your requests are still open; wait for their answers")),
        ..decision(DecisionOutcome::Denied, BY_RULE)
    }))
}
