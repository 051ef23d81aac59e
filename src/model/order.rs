//! A teammate that is wanted, and one that is wanted only while there is work for it. How it is started is not known
//! here.

use serde::{Deserialize, Serialize};

use super::board::Board;
use super::id::MemberName;
use super::mode::Mode;
use super::role::Tools;
use super::task::{Task, TaskState};
use super::worktree;

/// A teammate that is wanted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Order {
    pub(crate) name: String,
    /// With a command line and no profile: `shell`.
    pub(crate) profile: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<Mode>,
    /// It must have a plan approved before it works.
    pub(crate) plan: bool,
    pub(crate) prompt: Option<String>,
    /// A session of its program's own to go on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    /// Relative to the caller's directory.
    pub(crate) cwd: Option<String>,
    /// It works in a git worktree of its own, made from the repository that its directory is in.
    pub(crate) worktree: Option<worktree::Wish>,
    pub(crate) tools: Tools,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) command: Vec<String>,
}

/// How many of a kind there shall be (seed 002, dynamic scaling).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Scale {
    /// So many, even with nothing to do.
    pub(crate) min: usize,
    pub(crate) max: usize,
}

/// When members of a kind are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Demand {
    /// Always: the one member is started again when it fails.
    Standing,
    /// The one member, as soon as there is a task that it could begin.
    WhenNeeded,
    /// As many as there is work for, `NAME-1` and on.
    Scaled(Scale),
}

/// What members of a kind are made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Template {
    pub(crate) order: Order,
    pub(crate) demand: Demand,
}

impl Template {
    /// The names that its members can have.
    pub(crate) fn names(&self) -> Vec<MemberName> {
        let names = match self.demand {
            Demand::Standing | Demand::WhenNeeded => vec![self.order.name.clone()],
            Demand::Scaled(scale) => (1..=scale.max).map(|n| format!("{}-{n}", self.order.name)).collect(),
        };
        names.iter().filter_map(|name| MemberName::new(name).ok()).collect()
    }

    /// An order for one more.
    pub(crate) fn order(&self, name: &MemberName) -> Order {
        Order { name: name.to_string(), ..self.order.clone() }
    }

    /// How many there should be: one for each task in hand and for each that one of them could begin now, within
    /// bounds.
    pub(crate) fn wanted(&self, board: &Board) -> usize {
        let (min, max) = match self.demand {
            Demand::Standing => (1, 1),
            Demand::WhenNeeded => (0, 1),
            Demand::Scaled(Scale { min, max }) => (min, max),
        };
        let names = self.names();
        let ours = |task: &Task| names.iter().any(|name| task.is_owned_by(name));
        let role = self.order.role.as_deref();
        // One that is there for its role alone does not come for what anybody can do.
        let waits_for_role = self.demand == Demand::WhenNeeded && role.is_some();
        let suits = |task: &Task| task.fits(role) && (task.extra.role.is_some() || !waits_for_role);
        let counts = |task: &&Task| match task.state {
            TaskState::InProgress => ours(task),
            TaskState::Pending => (task.owner.is_none() && suits(task) || ours(task)) && board.is_free(task),
            TaskState::Completed | TaskState::Failed | TaskState::Cancelled => false,
        };
        board.tasks.values().filter(counts).count().clamp(min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::TaskId;

    fn board(states: &[(TaskState, Option<&str>, Option<&str>)]) -> Board {
        let mut board = Board::default();
        for (id, (state, owner, role)) in (1..).zip(states) {
            let mut task = Task::new(TaskId(id), "s", "d");
            (task.state, task.owner, task.extra.role) =
                (*state, owner.map(str::to_owned), role.map(str::to_owned));
            board.tasks.insert(TaskId(id), task);
        }
        board
    }

    fn template(demand: Demand) -> Template {
        let order = Order { name: "dev".to_owned(), role: Some("coder".to_owned()), ..Order::default() };
        Template { order, demand }
    }

    #[test]
    fn as_many_as_there_is_work_for_within_bounds() {
        use TaskState::{Completed, Failed, InProgress, Pending};
        type Tasks = &'static [(TaskState, Option<&'static str>, Option<&'static str>)];
        let five = template(Demand::Scaled(Scale { min: 1, max: 5 }));
        let table: [(Tasks, usize); 7] = [
            (&[], 1),
            (&[(Pending, None, None); 3], 3),
            (&[(Pending, None, None); 9], 5),
            (&[(Pending, None, Some("coder")), (Pending, None, Some("Tester"))], 1),
            (&[(InProgress, Some("dev-1"), None), (Pending, None, None)], 2),
            (&[(InProgress, Some("other"), None), (Pending, Some("other"), None)], 1),
            (&[(Completed, Some("dev-1"), None), (Failed, None, None), (Pending, Some("dev-1"), None)], 1),
        ];
        for (states, expected) in table {
            assert_eq!(five.wanted(&board(states)), expected, "{states:?}");
        }
        let when_needed = template(Demand::WhenNeeded);
        assert_eq!(when_needed.wanted(&board(&[])), 0);
        assert_eq!(when_needed.wanted(&board(&[(Pending, None, None); 3])), 0, "anybody can do these");
        assert_eq!(when_needed.wanted(&board(&[(Pending, None, Some("coder")); 3])), 1);
        assert_eq!(when_needed.wanted(&board(&[(Pending, Some("dev"), None)])), 1);
        assert_eq!(template(Demand::Standing).wanted(&board(&[])), 1);
    }

    #[test]
    fn names_are_counted() {
        let names =
            |template: Template| template.names().iter().map(MemberName::to_string).collect::<Vec<_>>();
        assert_eq!(names(template(Demand::WhenNeeded)), ["dev"]);
        let three = template(Demand::Scaled(Scale { min: 0, max: 3 }));
        assert_eq!(names(three), ["dev-1", "dev-2", "dev-3"]);
    }
}
