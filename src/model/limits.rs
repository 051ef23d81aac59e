//! How many tasks of one member may be open at once (seed 001, concurrency limits). A task is open for its owner from
//! when it is given to it, or taken by it, until it is over; one that is blocked counts, for it is the owner's already.

use serde::{Deserialize, Serialize};

use super::id::{MemberName, TaskId};
use super::task::Task;

/// The most that a member is given. What it takes by itself is refused to nobody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Limits {
    /// Open tasks that one and the same has given to a member.
    pub(crate) max_per_link: usize,
    /// Open tasks of a member, whoever gave them to it.
    pub(crate) max_per_member: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { max_per_link: 3, max_per_member: 5 }
    }
}

/// A member that has as much to do as it may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Full {
    pub(crate) owner: MemberName,
    /// What is open, as far as it counts.
    pub(crate) open: Vec<TaskId>,
    pub(crate) limit: usize,
    /// Whose tasks these are, where only those of one count.
    pub(crate) from: Option<MemberName>,
}

impl Full {
    /// The setting that says how much it may have.
    pub(crate) fn key(&self) -> &'static str {
        match self.from {
            Some(_) => "max_per_link",
            None => "max_per_member",
        }
    }
}

impl Limits {
    /// Whether `by` may give one more task to `owner`, who has these `tasks`, and others'.
    ///
    /// # Errors
    /// What stands in the way.
    pub(crate) fn admit<'a>(
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
    use crate::model::task::TaskState;

    fn who(name: &str) -> MemberName {
        MemberName::existing(name).expect("a name")
    }

    #[test]
    fn a_member_is_given_so_much_by_one_and_so_much_by_all() {
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
