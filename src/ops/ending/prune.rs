//! Prunes requests that ended long ago; the journal keeps them for good. The newest stay, so that a
//! second or late answer reports how the request ended.

use crate::OpsError;
use model::decisions::question::Question;
use model::decisions::request::ShutdownRequest;
use model::time::Timestamp;
use store::TeamStore;

/// Ended requests of each kind that stay.
const ENDED_KEPT: usize = 256;
/// Pruning starts above this number. The gap to [`ENDED_KEPT`] keeps it from running for each
/// request.
const PRUNE_ABOVE: usize = 2 * ENDED_KEPT;

/// Prunes the questions of members; `all` are all of the team.
pub fn questions(team: &TeamStore, all: &[Question]) -> Result<(), OpsError> {
    let settled = all.iter().filter(|question| question.is_settled());
    let at = |question: &Question| {
        question.decision.as_ref().map_or(Timestamp(0), |decision| decision.at)
    };
    for question in oldest(settled.collect(), at) {
        team.forget_question(&question.id)?;
    }
    Ok(())
}

/// Prunes shutdown requests. Those of each member's last run stay for the team's report.
pub fn shutdowns(team: &TeamStore) -> Result<(), OpsError> {
    let all = team.requests()?;
    if all.len() <= PRUNE_ABOVE {
        return Ok(());
    }
    let records = team.member_records()?;
    let is_last =
        |request: &ShutdownRequest| records.iter().any(|record| record.is(&request.incarnation));
    let over = all.iter().filter(|request| request.is_settled() && !is_last(request));
    for request in oldest(over.collect(), |request| request.ended_at.unwrap_or(request.asked_at)) {
        team.forget_request(&request.id)?;
    }
    Ok(())
}

/// Returns all but the newest [`ENDED_KEPT`] entries, once there are more than [`PRUNE_ABOVE`].
fn oldest<T>(mut over: Vec<&T>, at: impl Fn(&T) -> Timestamp) -> Vec<&T> {
    if over.len() <= PRUNE_ABOVE {
        return Vec::new();
    }
    over.sort_by_key(|one| at(one));
    over.truncate(over.len() - ENDED_KEPT);
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_stay_and_pruning_starts_above_the_limit() {
        let times: Vec<u64> = (0..=PRUNE_ABOVE as u64).rev().collect();
        let at = |time: &u64| Timestamp(*time);
        let goes: Vec<u64> = oldest(times.iter().collect(), at).into_iter().copied().collect();
        assert_eq!(goes, (0..=(PRUNE_ABOVE - ENDED_KEPT) as u64).collect::<Vec<_>>());
        assert_eq!(oldest(times[1..].iter().collect(), at), Vec::<&u64>::new());
    }
}
