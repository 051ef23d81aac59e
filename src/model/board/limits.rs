//! Limits on the open tasks assigned to one member. A task counts for its owner from its assignment
//! or claim until it is over, even while it is blocked.

use serde::{Deserialize, Serialize};

use crate::board::task::Task;
use crate::id::{MemberName, TaskId};

/// Limits on assignments by others. Tasks that a member claims itself are never refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    /// Open tasks that one assigner may have given to a member.
    pub max_per_link: usize,
    /// Open tasks of a member, assigned or claimed.
    pub max_per_member: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_per_link: 3, max_per_member: 5 }
    }
}

/// A member that has reached a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Full {
    pub owner: MemberName,
    /// Tasks that count towards the limit.
    pub open: Vec<TaskId>,
    pub limit: usize,
    /// The assigner, if only tasks from one assigner count.
    pub from: Option<MemberName>,
}

impl Full {
    pub fn key(&self) -> &'static str {
        match self.from {
            Some(_) => "max_per_link",
            None => "max_per_member",
        }
    }
}

impl Limits {
    /// Checks whether `by` may assign one more task to `owner`. `tasks` may include tasks of other
    /// owners.
    ///
    /// # Errors
    /// [`Full`] if `owner` has reached the limit per assigner or the total limit.
    pub fn admit<'a>(
        self,
        tasks: impl Iterator<Item = &'a Task>,
        owner: &MemberName,
        by: &MemberName,
    ) -> Result<(), Full> {
        let open: Vec<&Task> =
            tasks.filter(|task| task.is_owned_by(owner) && !task.state.is_over()).collect();
        let full = |open: Vec<TaskId>, limit, from| {
            let owner = owner.clone();
            if open.len() < limit { Ok(()) } else { Err(Full { owner, open, limit, from }) }
        };
        let theirs =
            open.iter().filter(|task| task.extra.assigned_by.as_deref() == Some(by.as_str()));
        full(theirs.map(|task| task.id).collect(), self.max_per_link, Some(by.clone()))?;
        full(open.iter().map(|task| task.id).collect(), self.max_per_member, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::task::TaskState;

    fn who(name: &str) -> MemberName {
        MemberName::existing(name).expect("a name")
    }

    #[test]
    fn open_tasks_are_limited_per_assigner_and_in_total() {
        use TaskState::{Cancelled, Completed, Failed, InProgress, Pending};
        const LEAD: Option<&str> = Some("team-lead");
        type Tasks = &'static [(TaskState, &'static str, Option<&'static str>)];
        let table: [(&str, Tasks, Option<&str>); 8] = [
            ("nothing", &[], None),
            ("two of the lead's", &[(Pending, "ann", LEAD), (InProgress, "ann", LEAD)], None),
            ("three of the lead's", &[(Pending, "ann", LEAD); 3], Some("max_per_link")),
            ("in another spelling", &[(Pending, "ANN@alpha", LEAD); 3], Some("max_per_link")),
            ("three of another's", &[(Pending, "ann", Some("bob")); 3], None),
            ("five that she took", &[(InProgress, "ann", None); 5], Some("max_per_member")),
            ("others' tasks", &[(Pending, "bob", LEAD); 9], None),
            (
                "what is over",
                &[(Completed, "ann", LEAD), (Failed, "ann", LEAD), (Cancelled, "ann", LEAD)],
                None,
            ),
        ];
        let task = |(nth, (state, owner, by)): (usize, &(TaskState, &str, Option<&str>))| {
            let mut task = Task::new(TaskId(nth as u64 + 1), "s", "d");
            (task.state, task.owner) = (*state, Some((*owner).to_owned()));
            task.extra.assigned_by = by.map(str::to_owned);
            task
        };
        let admit =
            |tasks: &[Task]| Limits::default().admit(tasks.iter(), &who("ann"), &who("team-lead"));
        for (what, tasks, expected) in table {
            let tasks: Vec<Task> = tasks.iter().enumerate().map(task).collect();
            assert_eq!(admit(&tasks).err().map(|full| full.key()), expected, "{what}");
        }
        let mixed = ["a", "b", "team-lead", "a", "c"].map(|by| (Pending, "ann", Some(by)));
        let mixed: Vec<Task> = mixed.iter().enumerate().map(task).collect();
        let full = admit(&mixed).expect_err("five");
        assert_eq!((full.key(), full.limit, full.open.len()), ("max_per_member", 5, 5));
    }
}
