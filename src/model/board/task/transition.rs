//! The transitions of a task: which action leads from which state to which, and who may perform it.
//! docs/lifecycle.md shows the table.

use serde::{Deserialize, Serialize};

use super::{Task, TaskState};
use crate::id::MemberName;

/// An action that changes the state of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[derive(strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum TaskAction {
    /// Starts a task for its new owner.
    Claim,
    /// Ends it with success. A pending task is claimed first.
    Complete,
    /// Submits finished work for approval.
    Review,
    /// Accepts submitted work.
    Approve,
    /// Sends submitted work back to its owner.
    Reject,
    Cancel,
    Fail,
    /// Makes a task that has ended or went stale available again.
    Retry,
    /// Gives a task back: it loses its owner.
    Release,
    /// Marks a task whose owner is silent. The lead performs it by itself.
    Stall,
    /// Resumes a stale task; any report of progress does this.
    Recover,
}

/// The members that may perform a [`TaskAction`]. The lead may perform all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permit {
    /// The owner, or anyone if the task is pending and has none.
    Claimant,
    Owner,
    /// The owner; before the task has begun also its creator.
    OwnerOrCreator,
    LeadOnly,
}

/// The reason for refusing a [`TaskAction`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransitionRefusal {
    /// `who` may not perform the action on this task.
    NotPermitted(Permit),
    /// The task's state does not allow the action.
    WrongState,
}

impl TaskAction {
    /// The name in tables.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// The states from which the action may be performed. A blocked task is pending.
    pub fn from(self) -> &'static [TaskState] {
        use TaskState::{Cancelled, Completed, Failed, InProgress, InReview, Pending, Stale};
        match self {
            TaskAction::Claim => &[Pending],
            TaskAction::Complete => &[Pending, InProgress, Stale],
            TaskAction::Review => &[InProgress, Stale],
            TaskAction::Approve | TaskAction::Reject => &[InReview],
            TaskAction::Cancel => &[Pending, InProgress, InReview, Stale, Failed],
            TaskAction::Fail => &[Pending, InProgress, InReview, Stale],
            TaskAction::Retry => &[Completed, Failed, Cancelled, Stale],
            TaskAction::Release => &[Pending, InProgress, InReview, Stale],
            TaskAction::Stall => &[InProgress],
            TaskAction::Recover => &[Stale],
        }
    }

    /// The state to which the action leads.
    pub fn to(self) -> TaskState {
        match self {
            TaskAction::Claim | TaskAction::Reject | TaskAction::Recover => TaskState::InProgress,
            TaskAction::Complete | TaskAction::Approve => TaskState::Completed,
            TaskAction::Review => TaskState::InReview,
            TaskAction::Cancel => TaskState::Cancelled,
            TaskAction::Fail => TaskState::Failed,
            TaskAction::Retry | TaskAction::Release => TaskState::Pending,
            TaskAction::Stall => TaskState::Stale,
        }
    }

    pub fn permit(self) -> Permit {
        match self {
            TaskAction::Claim | TaskAction::Complete => Permit::Claimant,
            TaskAction::Review
            | TaskAction::Fail
            | TaskAction::Retry
            | TaskAction::Release
            | TaskAction::Recover => Permit::Owner,
            TaskAction::Cancel => Permit::OwnerOrCreator,
            TaskAction::Approve | TaskAction::Reject | TaskAction::Stall => Permit::LeadOnly,
        }
    }
}

impl Permit {
    fn covers(self, task: &Task, who: &MemberName) -> bool {
        let owns = task.is_owned_by(who);
        who.is_lead()
            || match self {
                Permit::Claimant => {
                    owns || task.state == TaskState::Pending && task.owner.is_none()
                }
                Permit::Owner => owns,
                Permit::OwnerOrCreator => {
                    owns || task.state == TaskState::Pending && task.is_created_by(who)
                }
                Permit::LeadOnly => false,
            }
    }
}

/// Returns the state of `task` after `who` has performed `action`. Blockers and conflicts over
/// files are rules of the board: see [`Board::may_claim`](crate::board::Board::may_claim).
///
/// # Errors
/// [`TransitionRefusal::NotPermitted`], which takes precedence, or
/// [`TransitionRefusal::WrongState`].
pub fn transition(
    task: &Task,
    action: TaskAction,
    who: &MemberName,
) -> Result<TaskState, TransitionRefusal> {
    if !action.permit().covers(task, who) {
        return Err(TransitionRefusal::NotPermitted(action.permit()));
    }
    if !action.from().contains(&task.state) {
        return Err(TransitionRefusal::WrongState);
    }
    Ok(action.to())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use strum::VariantArray;

    use super::*;
    use crate::id::TaskId;

    const ALL: &[TaskAction] = TaskAction::VARIANTS;

    fn who(name: &str) -> MemberName {
        MemberName::existing(name).expect("a name")
    }

    fn task(state: TaskState, owner: Option<&str>) -> Task {
        let mut task = Task::new(TaskId(1), "s", "d");
        (task.state, task.owner) = (state, owner.map(str::to_owned));
        task.extra.created_by = Some("cleo".to_owned());
        task
    }

    /// The columns of docs/lifecycle.md: action, from, to, who.
    #[test]
    fn transitions_are_those_of_the_page() {
        let page = include_str!("../../../../docs/lifecycle.md");
        let rows: Vec<Vec<&str>> = page
            .lines()
            .skip_while(|line| !line.starts_with("| action "))
            .skip(2)
            .take_while(|line| line.starts_with('|'))
            .map(|line| line.split('|').skip(1).map(str::trim).take(4).collect())
            .collect();
        let states = |states: &[TaskState]| {
            states
                .iter()
                .map(|state| format!("`{}`", state.as_str()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let who = |permit| match permit {
            Permit::Claimant => "owner, lead; anyone if pending without an owner",
            Permit::Owner => "owner, lead",
            Permit::OwnerOrCreator => "owner, lead; creator while pending",
            Permit::LeadOnly => "lead",
        };
        let expected = ALL.iter().map(|action| {
            let (name, to) = (format!("`{}`", action.as_str()), states(&[action.to()]));
            vec![name, states(action.from()), to, who(action.permit()).to_owned()]
        });
        assert_eq!(rows, expected.collect::<Vec<_>>());
    }

    #[test]
    fn permission_depends_on_owner_creator_and_state() {
        use TaskAction::{Approve, Cancel, Claim, Complete, Release};
        use TransitionRefusal::{NotPermitted, WrongState};
        let cases = [
            (Claim, task(TaskState::Pending, None), "ann", Ok(TaskState::InProgress)),
            (
                Claim,
                task(TaskState::Pending, Some("ben")),
                "ann",
                Err(NotPermitted(Permit::Claimant)),
            ),
            (Complete, task(TaskState::Pending, None), "ann", Ok(TaskState::Completed)),
            (
                Complete,
                task(TaskState::InProgress, None),
                "ann",
                Err(NotPermitted(Permit::Claimant)),
            ),
            (Complete, task(TaskState::InReview, Some("ann")), "ann", Err(WrongState)),
            (
                Approve,
                task(TaskState::InReview, Some("ann")),
                "ann",
                Err(NotPermitted(Permit::LeadOnly)),
            ),
            (
                Approve,
                task(TaskState::InReview, Some("ann")),
                "team-lead",
                Ok(TaskState::Completed),
            ),
            (Cancel, task(TaskState::Pending, Some("ann")), "cleo", Ok(TaskState::Cancelled)),
            (
                Cancel,
                task(TaskState::InProgress, Some("ann")),
                "cleo",
                Err(NotPermitted(Permit::OwnerOrCreator)),
            ),
            (Release, task(TaskState::Completed, Some("ann")), "ann", Err(WrongState)),
        ];
        for (action, task, name, expected) in cases {
            let found = transition(&task, action, &who(name));
            assert_eq!(found, expected, "{action:?} of {:?} by {name}", task.state);
        }
    }

    /// A second description of the rules, by the properties that members rely on.
    fn model(state: TaskState, action: TaskAction) -> Option<TaskState> {
        use TaskState::*;
        let open = matches!(state, Pending | InProgress | InReview | Stale);
        let works = matches!(state, InProgress | Stale);
        let next = match action {
            TaskAction::Claim => (state == Pending).then_some(InProgress),
            TaskAction::Complete => (works || state == Pending).then_some(Completed),
            TaskAction::Review => works.then_some(InReview),
            TaskAction::Approve => (state == InReview).then_some(Completed),
            TaskAction::Reject => (state == InReview).then_some(InProgress),
            TaskAction::Cancel => (open || state == Failed).then_some(Cancelled),
            TaskAction::Fail => open.then_some(Failed),
            TaskAction::Retry => {
                matches!(state, Completed | Failed | Cancelled | Stale).then_some(Pending)
            }
            TaskAction::Release => open.then_some(Pending),
            TaskAction::Stall => (state == InProgress).then_some(Stale),
            TaskAction::Recover => (state == Stale).then_some(InProgress),
        };
        // Nothing is stored as blocked or stopping.
        next.filter(|next| ![state, *next].iter().any(|one| matches!(one, Blocked | Stopping)))
    }

    proptest! {
        #[test]
        fn sequences_of_actions_follow_the_model(steps in prop::collection::vec(0..ALL.len(), 1..40)) {
            let (lead, mut task) = (who("team-lead"), task(TaskState::Pending, Some("ann")));
            for action in steps.into_iter().map(|nth| ALL[nth]) {
                let found = transition(&task, action, &lead);
                prop_assert_eq!(found.ok(), model(task.state, action));
                task.state = found.unwrap_or(task.state);
            }
        }
    }
}
