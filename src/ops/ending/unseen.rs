//! The work of a team that would be lost if the team were deleted now: unread results, and work
//! that waits for a review.

use crate::OpsError;
use crate::effects::results;
use crate::members::lead;
use model::board::task::TaskState;
use model::id::TaskId;
use model::team::settings::Finish;
use store::TeamStore;

/// Number of tasks that a sentence names.
const NAMED: usize = 5;

/// Unread results and work in review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnseenWork {
    in_review: Vec<TaskId>,
    /// The number of unread reports of ended tasks.
    reports: usize,
    /// The number of ended tasks that the running lead reports in a moment.
    unreported: usize,
}

/// Returns the unseen work; `None` if all was seen. What the lead has approved or landed, it
/// has seen.
pub fn unseen_work(team: &TeamStore) -> Result<Option<UnseenWork>, OpsError> {
    let board = team.board()?;
    let in_review = board.work().filter(|task| task.state == TaskState::InReview);
    let in_review: Vec<TaskId> = in_review.map(|task| task.id).collect();
    let reports = results::unread(team, &board)?;
    let reports_tasks = team.settings()?.is_some_and(|s| s.finish == Finish::Manual);
    let unreported =
        if reports_tasks && lead::is_led(team)? { results::unreported(team, &board)? } else { 0 };
    let unseen = UnseenWork { in_review, reports, unreported };
    Ok(Some(unseen).filter(|unseen| !unseen.describe().is_empty()))
}

impl UnseenWork {
    /// Returns the work in words.
    pub fn describe(&self) -> String {
        let reports = match self.reports {
            0 => None,
            1 => Some("1 unread report of ended tasks".to_owned()),
            some => Some(format!("{some} unread reports of ended tasks")),
        };
        let unreported = match self.unreported {
            0 => None,
            1 => Some("1 ended task without a report yet".to_owned()),
            some => Some(format!("{some} ended tasks without a report yet")),
        };
        let mut ids: Vec<String> =
            self.in_review.iter().take(NAMED).map(|id| format!("#{id}")).collect();
        if self.in_review.len() > NAMED {
            ids.push(format!("{} more", self.in_review.len() - NAMED));
        }
        let in_review = (!ids.is_empty()).then(|| format!("work in review ({})", ids.join(", ")));
        [reports, unreported, in_review].into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }

    /// Returns the commands that show the work and decide about it.
    pub fn advice(&self) -> String {
        let has_reports = self.reports > 0 || self.unreported > 0;
        let read = has_reports.then(|| "read the reports with `phalanx inbox`".to_owned());
        let decide = self.in_review.first().map(|id| {
            format!(
                "decide with `phalanx task approve {id}` or `phalanx task reject {id} --reason TEXT`"
            )
        });
        read.into_iter().chain(decide).collect::<Vec<_>>().join(", and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sd_16_unseen_work_is_named_with_what_to_do() {
        let both =
            UnseenWork { in_review: (3..=9).map(TaskId).collect(), reports: 2, unreported: 1 };
        assert_eq!(
            both.describe(),
            "2 unread reports of ended tasks and 1 ended task without a report yet and work in review (#3, #4, #5, #6, #7, 2 more)"
        );
        assert!(both.advice().starts_with("read the reports with `phalanx inbox`, and decide"));
        let one = UnseenWork { in_review: Vec::new(), reports: 1, unreported: 0 };
        assert_eq!(one.describe(), "1 unread report of ended tasks");
        assert_eq!(one.advice(), "read the reports with `phalanx inbox`");
    }
}
