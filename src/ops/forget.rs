//! Requests that came to their end long ago leave the table; the journal has them for good. The newest stay, so that a second
//! answer, or one that comes too late, is told what became of the first.

use super::error::OpsError;
use crate::model::question::Question;
use crate::model::request::ShutdownRequest;
use crate::model::time::Timestamp;
use crate::store::TeamStore;

/// So many of each sort stay.
const KEPT: usize = 256;
/// With so many the older ones go: not at each one more.
const FULL: usize = 2 * KEPT;

/// Clears the table of what members have asked, of which this is all.
pub(super) fn questions(team: &TeamStore, all: &[Question]) -> Result<(), OpsError> {
    let settled = all.iter().filter(|question| question.is_settled());
    let at = |question: &Question| {
        question.decision.as_ref().map_or(Timestamp(0), |decision| decision.at)
    };
    for question in oldest(settled.collect(), at) {
        team.forget_question(&question.id)?;
    }
    Ok(())
}

/// Clears the table of shutdowns; those of runs that are their member's last are part of the team's report, and stay.
pub(super) fn shutdowns(team: &TeamStore) -> Result<(), OpsError> {
    let all = team.requests()?;
    if all.len() <= FULL {
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

/// Those that are too many, once they are far too many.
fn oldest<T>(mut over: Vec<&T>, at: impl Fn(&T) -> Timestamp) -> Vec<&T> {
    if over.len() <= FULL {
        return Vec::new();
    }
    over.sort_by_key(|one| at(one));
    over.truncate(over.len() - KEPT);
    over
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay_and_nothing_goes_before_there_are_far_too_many() {
        let times: Vec<u64> = (0..=FULL as u64).rev().collect();
        let at = |time: &u64| Timestamp(*time);
        let goes: Vec<u64> = oldest(times.iter().collect(), at).into_iter().copied().collect();
        assert_eq!(goes, (0..=(FULL - KEPT) as u64).collect::<Vec<_>>());
        assert_eq!(oldest(times[1..].iter().collect(), at), Vec::<&u64>::new());
    }
}
