//! Explains why a pending task does not run.

use std::fmt;

use serde::Serialize;

use crate::board::Board;
use crate::board::task::{Task, TaskState};
use crate::id::{MemberName, TaskId};
use crate::time::{Timestamp, human};

/// The kind of tasks that a program can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ability {
    /// Runs the commands of tasks: phalanx's worker.
    Commands,
    /// Reads tasks and works on them: an agent.
    Prompts,
    /// Does not do tasks: an arbitrary command.
    Nothing,
}

/// A member that could do a task: it is on the team, or the lead starts it on demand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub name: MemberName,
    pub role: Option<String>,
    pub ability: Ability,
    /// True if the member runs; false if the lead would start it on demand.
    pub is_here: bool,
}

/// The reason why a pending task does not run.
#[derive(Debug, Clone, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Waiting {
    /// These tasks block it; the flag marks those that failed.
    Blocked(Vec<(TaskId, bool)>),
    /// This running task may touch the same files.
    Files(TaskId),
    /// It is completed when this member is ready.
    Readiness(String),
    OwnerGone,
    /// The owner has been busy with another task for this many milliseconds.
    OwnerBusy {
        with: TaskId,
        for_ms: u64,
    },
    /// The owner is free but has not begun the task.
    OwnerIdle,
    NoMembers,
    /// No candidate has the required role.
    NoRole(String),
    /// The task has no command, and all candidates only run commands.
    NoCommand,
    /// The task has a command, and no candidate runs commands.
    NoWorker,
    /// All candidates are busy. Holds the role, if the task requires one.
    NoneFree(Option<String>),
    /// A member must be started for the task; the flag says whether there is a lead to do so.
    Start(bool),
    /// A free member could claim the task but has not done so.
    Unclaimed,
}

impl Waiting {
    /// The name in `--json`.
    pub fn kind(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Waiting::Blocked(by) => {
                let failed = |failed| if failed { " (failed)" } else { "" };
                let ids: Vec<String> =
                    by.iter().map(|(id, is)| format!("#{id}{}", failed(*is))).collect();
                write!(f, "blocked by {}", ids.join(", "))
            }
            Waiting::Files(with) => write!(f, "files in use by #{with}"),
            Waiting::Readiness(member) => write!(f, "{member} is not ready"),
            Waiting::OwnerGone => f.write_str("owner is not on the team"),
            Waiting::OwnerBusy { with, for_ms } => {
                write!(f, "owner is busy with #{with} for {}", human(*for_ms))
            }
            Waiting::OwnerIdle => f.write_str("owner has not begun it"),
            Waiting::NoMembers => f.write_str("the team has no members"),
            Waiting::NoRole(role) => write!(f, "no member of role {role}"),
            Waiting::NoCommand => f.write_str("no command, only workers here"),
            Waiting::NoWorker => f.write_str("no worker to run its command"),
            Waiting::NoneFree(None) => f.write_str("no free member"),
            Waiting::NoneFree(Some(role)) => write!(f, "no free member of role {role}"),
            Waiting::Start(true) => f.write_str("a member is to be started for it"),
            Waiting::Start(false) => f.write_str("no lead to start a member for it"),
            Waiting::Unclaimed => f.write_str("no member has claimed it"),
        }
    }
}

/// A reason as shown in `--json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitsFor {
    pub kind: &'static str,
    pub text: String,
}

impl From<Waiting> for WaitsFor {
    fn from(waiting: Waiting) -> WaitsFor {
        WaitsFor { kind: waiting.kind(), text: waiting.to_string() }
    }
}

/// Returns why `task` waits; `None` unless it is pending. `crew` holds all candidates; `is_led`
/// says whether the team has a lead.
pub fn why(
    board: &Board,
    task: &Task,
    crew: &[Candidate],
    is_led: bool,
    now: Timestamp,
) -> Option<Waiting> {
    if task.state != TaskState::Pending {
        return None;
    }
    let blockers = board.open_blockers(task);
    if !blockers.is_empty() {
        let failed = |id: &TaskId| {
            board.tasks.get(id).is_some_and(|blocker| blocker.state == TaskState::Failed)
        };
        return Some(Waiting::Blocked(blockers.into_iter().map(|id| (id, failed(&id))).collect()));
    }
    if let Some(member) = task.awaited_member() {
        return Some(Waiting::Readiness(member.to_owned()));
    }
    if let Some(with) = board.overlap(task) {
        return Some(Waiting::Files(with));
    }
    Some(match task.owner_name() {
        Some(owner) => of_owned(board, task, owner, crew, is_led, now),
        None => of_free(board, task, crew, is_led),
    })
}

fn of_owned(
    board: &Board,
    task: &Task,
    owner: &str,
    crew: &[Candidate],
    is_led: bool,
    now: Timestamp,
) -> Waiting {
    let found = crew.iter().find(|one| one.name.clashes_with(owner));
    // The lead may own tasks without being a candidate. It decides itself when to begin them.
    if MemberName::existing(owner).is_ok_and(|name| name.is_lead()) {
        return Waiting::OwnerIdle;
    }
    let Some(one) = found else { return Waiting::OwnerGone };
    if one.ability != Ability::Prompts && task.extra.run.is_empty() {
        return Waiting::NoCommand;
    }
    if !one.is_here {
        return Waiting::Start(is_led);
    }
    match board.work_of(&one.name) {
        Some(with) => {
            let since = board.tasks.get(&with).and_then(|other| other.extra.claimed_at);
            let for_ms = since.map_or(0, |since| now.since(since));
            Waiting::OwnerBusy { with, for_ms }
        }
        None => Waiting::OwnerIdle,
    }
}

fn of_free(board: &Board, task: &Task, crew: &[Candidate], is_led: bool) -> Waiting {
    if crew.is_empty() {
        return Waiting::NoMembers;
    }
    let suiting: Vec<&Candidate> =
        crew.iter().filter(|one| task.fits(one.role.as_deref())).collect();
    let role = task.extra.role.clone();
    if let Some(role) = role.clone().filter(|_| suiting.is_empty()) {
        return Waiting::NoRole(role);
    }
    let has_command = !task.extra.run.is_empty();
    let able = |one: &&&Candidate| match one.ability {
        Ability::Commands => has_command,
        Ability::Prompts => !has_command,
        Ability::Nothing => false,
    };
    let able: Vec<&Candidate> = suiting.iter().filter(able).copied().collect();
    if able.is_empty() {
        return if has_command { Waiting::NoWorker } else { Waiting::NoCommand };
    }
    if !able.iter().any(|one| one.is_here) {
        return Waiting::Start(is_led);
    }
    let is_free = |one: &&Candidate| one.is_here && board.work_of(&one.name).is_none();
    if able.iter().any(is_free) { Waiting::Unclaimed } else { Waiting::NoneFree(role) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(200_000);

    fn one(name: &str, role: Option<&str>, ability: Ability, is_here: bool) -> Candidate {
        let name = MemberName::new(name).expect("name");
        Candidate { name, role: role.map(str::to_owned), ability, is_here }
    }

    /// Four tasks with a command each; #1 has been in progress with ada for 60 s.
    fn board() -> Board {
        let mut board = Board::default();
        for id in 1..=4 {
            let mut task = Task::new(TaskId(id), "s", "");
            task.extra.run = vec!["true".to_owned()];
            board.tasks.insert(TaskId(id), task);
        }
        let first = board.tasks.get_mut(&TaskId(1)).expect("a task");
        (first.state, first.owner) = (TaskState::InProgress, Some("ada".to_owned()));
        first.extra.claimed_at = Some(Timestamp(140_000));
        board
    }

    fn told(change: impl FnOnce(&mut Task), crew: &[Candidate], is_led: bool) -> String {
        let mut board = board();
        change(board.tasks.get_mut(&TaskId(2)).expect("a task"));
        let task = &board.tasks[&TaskId(2)];
        why(&board, task, crew, is_led, NOW)
            .map_or("does not wait".to_owned(), |why| why.to_string())
    }

    #[test]
    fn unowned_task_waits_for_a_suitable_member() {
        use Ability::{Commands, Nothing, Prompts};
        let ada = || one("ada", None, Commands, true);
        let wants = |role: &str| {
            let role = role.to_owned();
            |task: &mut Task| task.extra.role = Some(role)
        };
        let bare = |task: &mut Task| task.extra.run.clear();
        assert_eq!(told(|t| t.state = TaskState::Completed, &[ada()], true), "does not wait");
        assert_eq!(told(|_| {}, &[], true), "the team has no members");
        assert_eq!(told(|_| {}, &[ada()], true), "no free member");
        assert_eq!(
            told(|_| {}, &[ada(), one("bob", None, Commands, true)], true),
            "no member has claimed it"
        );
        assert_eq!(told(wants("tester"), &[ada()], true), "no member of role tester");
        let tester = one("ada", Some("Tester"), Commands, true);
        assert_eq!(told(wants("tester"), &[tester], true), "no free member of role tester");
        assert_eq!(told(bare, &[ada()], true), "no command, only workers here");
        assert_eq!(
            told(bare, &[ada(), one("eve", None, Prompts, true)], true),
            "no member has claimed it"
        );
        assert_eq!(
            told(|_| {}, &[one("log", None, Nothing, true)], true),
            "no worker to run its command"
        );
        let coming = || one("dev-1", None, Commands, false);
        assert_eq!(told(|_| {}, &[coming()], true), "a member is to be started for it");
        assert_eq!(told(|_| {}, &[coming()], false), "no lead to start a member for it");
        assert_eq!(told(|_| {}, &[ada(), coming()], true), "no free member");
    }

    #[test]
    fn owned_task_waits_for_its_owner() {
        let ada = one("ada", None, Ability::Commands, true);
        let bob = one("bob", None, Ability::Commands, true);
        let owned = |owner: &str| {
            let owner = owner.to_owned();
            |task: &mut Task| task.owner = Some(owner)
        };
        let crew = [ada, bob];
        assert_eq!(told(owned("Ada"), &crew, true), "owner is busy with #1 for 1m00s");
        assert_eq!(told(owned("bob"), &crew, true), "owner has not begun it");
        assert_eq!(told(owned("eve"), &crew, true), "owner is not on the team");
        assert_eq!(told(owned("team-lead"), &crew, true), "owner has not begun it");
        let bare =
            |task: &mut Task| (task.owner, task.extra.run) = (Some("bob".to_owned()), Vec::new());
        assert_eq!(told(bare, &crew, true), "no command, only workers here");
    }

    #[test]
    fn blockers_and_files_take_precedence_over_members() {
        let mut board = board();
        board.tasks.get_mut(&TaskId(3)).expect("a task").state = TaskState::Failed;
        board.tasks.get_mut(&TaskId(2)).expect("a task").blocked_by = vec![TaskId(1), TaskId(3)];
        let words = |board: &Board| {
            why(board, &board.tasks[&TaskId(2)], &[], true, NOW)
                .map(|why| (why.kind(), why.to_string()))
        };
        assert_eq!(words(&board), Some(("blocked", "blocked by #1, #3 (failed)".to_owned())));
        board.tasks.get_mut(&TaskId(2)).expect("a task").blocked_by.clear();
        for id in [1, 2] {
            board.tasks.get_mut(&TaskId(id)).expect("a task").extra.files =
                vec!["src/**".to_owned()];
        }
        assert_eq!(words(&board), Some(("files", "files in use by #1".to_owned())));
    }
}
