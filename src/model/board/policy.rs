//! Demands of a team on the users of its task board.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::board::task::Task;
use crate::id::{MemberName, TaskId};
use crate::time::Timestamp;

/// The set of verbs that a team's board has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum BoardVersion {
    /// Creating, claiming, assigning, completing and cancelling tasks.
    One,
    /// All verbs.
    #[default]
    Two,
}

impl JsonSchema for BoardVersion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "BoardVersion".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "enum": [u8::from(BoardVersion::One), u8::from(BoardVersion::Two)] })
    }
}

impl TryFrom<u8> for BoardVersion {
    type Error = String;

    fn try_from(number: u8) -> Result<BoardVersion, String> {
        match number {
            1 => Ok(BoardVersion::One),
            2 => Ok(BoardVersion::Two),
            other => Err(format!("{other} is no version of the board; use 1 or 2")),
        }
    }
}

impl From<BoardVersion> for u8 {
    fn from(version: BoardVersion) -> u8 {
        match version {
            BoardVersion::One => 1,
            BoardVersion::Two => 2,
        }
    }
}

/// Notification of an idle agent of tasks that it could claim (`pull`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[derive(strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Pull {
    /// The lead notifies one idle agent after the other of a free task.
    #[default]
    Tell,
    /// It looks for tasks by itself.
    Never,
}

/// The rules of a team's board. By default none restricts its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "board", deny_unknown_fields)]
pub struct BoardPolicy {
    /// The set of verbs of the board: 2 has all.
    pub version: BoardVersion,
    /// Require an owner for each new task.
    pub assignee: bool,
    /// Require a member to list the tasks before it creates one.
    pub list_before_create: bool,
    /// Require a task for a member that is started with a prompt.
    pub delegation_task: bool,
    /// Notification of idle agents of free tasks. `"tell"`: one after the other, until one
    /// claims the task. `"never"`: they look by themselves.
    pub pull: Pull,
}

impl BoardPolicy {
    pub fn is_default(&self) -> bool {
        *self == BoardPolicy::default()
    }
}

/// Returns the newest task by another member that `who` cannot have seen when it last looked at the
/// board; `Ok` if there is none. A member that has never looked has seen nothing.
///
/// # Errors
/// The id of that task; `None` if `who` has never looked.
pub fn has_seen_all<'t>(
    tasks: impl Iterator<Item = &'t Task>,
    who: &MemberName,
    looked_at: Option<Timestamp>,
) -> Result<(), Option<TaskId>> {
    let Some(looked_at) = looked_at else { return Err(None) };
    let by_others = tasks.filter(|task| !task.is_created_by(who));
    let newest = by_others
        .filter(|task| task.extra.created_at.is_some_and(|at| at > looked_at))
        .max_by_key(|task| task.extra.created_at);
    newest.map_or(Ok(()), |task| Err(Some(task.id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_newer_tasks_of_others_are_unseen() {
        let who = |name| MemberName::existing(name).expect("a name");
        let task = |id, by: &str, at| {
            let mut task = Task::new(TaskId(id), "s", "d");
            task.extra.created_by = Some(by.to_owned());
            task.extra.created_at = Some(Timestamp(at));
            task
        };
        let tasks = [task(1, "ann", 10), task(2, "ben", 20), task(3, "ann", 30)];
        let seen =
            |name, at: Option<u64>| has_seen_all(tasks.iter(), &who(name), at.map(Timestamp));
        assert_eq!(seen("ann", None), Err(None));
        assert_eq!(seen("ann", Some(15)), Err(Some(TaskId(2))));
        assert_eq!(seen("ann", Some(20)), Ok(()));
        assert_eq!(seen("ben", Some(20)), Err(Some(TaskId(3))));
    }

    #[test]
    fn versions_are_one_and_two() {
        assert_eq!(serde_json::from_str::<BoardVersion>("1").ok(), Some(BoardVersion::One));
        assert!(serde_json::from_str::<BoardVersion>("3").is_err());
        assert_eq!(serde_json::to_string(&BoardVersion::Two).ok().as_deref(), Some("2"));
    }
}
