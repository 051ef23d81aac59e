//! Launch specs of teammates, and templates from which the lead makes launch specs on demand.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::board::policy::Pull;
use crate::board::task::{Task, TaskState};
use crate::board::waiting::Ability;
use crate::board::{self, Board};
use crate::id::{MemberName, TaskId};
use crate::mail::access::LinkAccess;
use crate::members::lifecycle::Cause;
use crate::members::mode::Mode;
use crate::members::readiness::ReadyCheck;
use crate::team::host::HostChoice;
use crate::team::role::Tools;
use crate::team::worktree;

/// Uptime after which a failure of a restarted member no longer counts as consecutive.
pub const WELL_AFTER_MS: u64 = 60_000;

/// Profile of phalanx's own worker, which runs the commands of tasks.
pub const WORKER: &str = "worker";
/// Profile for an arbitrary command line.
pub const SHELL: &str = "shell";

/// Returns the kind of tasks that members with this profile can do. User-defined profiles count as
/// agents.
pub fn ability(profile: &str) -> Ability {
    match profile {
        WORKER => Ability::Commands,
        SHELL => Ability::Nothing,
        _ => Ability::Prompts,
    }
}

/// A teammate to start, as the command line, a manifest, a template or an earlier run has it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaunchSpec {
    pub name: String,
    /// `None` means `shell` if there is a `command`, else `worker`.
    pub profile: Option<String>,
    pub role: Option<String>,
    pub model: Option<String>,
    pub mode: Option<Mode>,
    /// The member must have a plan approved before it works.
    pub plan: bool,
    /// Its prompts do not ask for a person's attention.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_unattended: bool,
    /// Notification of free tasks; `None` means the setting of the team.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull: Option<Pull>,
    /// The users whose requests it takes, besides the lists of its entry in the settings.
    #[serde(skip_serializing_if = "LinkAccess::is_empty")]
    pub access: LinkAccess,
    pub prompt: Option<String>,
    /// Session of the member's program to resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// `None` means this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<HostChoice>,
    /// Relative to the caller's working directory.
    pub cwd: Option<String>,
    /// Creates a git worktree for the member, from the repository that `cwd` is in.
    pub worktree: Option<worktree::WorktreeRequest>,
    /// Revision that a new branch of the worktree starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The repository of that worktree, if it is on another machine: a command there sends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<worktree::WorktreeOrigin>,
    pub tools: Tools,
    /// Variables; their values may contain placeholders.
    pub env: Vec<(String, String)>,
    /// A file with further variables, relative to the member's own directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_file: Option<String>,
    /// Command line to which that of the program is appended; `None` means that of the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrap: Option<Vec<String>>,
    /// Program and arguments, for profiles such as `shell` that need them.
    pub command: Vec<String>,
    /// The check whether it is ready; `None` means that it is as soon as it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyCheck>,
    /// The members that must be ready before the lead starts it, as [`readiness_key`] names them.
    ///
    /// [`readiness_key`]: crate::members::readiness::readiness_key
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Set for a single run of this task; a standing member has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Conversation that the member works for; `None` means `default`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
    /// The entry of a manifest that it comes from; `None` for a member that was added by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<EntryDigests>,
}

/// Digests of the values of a manifest's entry, by key: they tell what a later manifest changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntryDigests(pub BTreeMap<String, String>);

impl EntryDigests {
    /// Returns the keys whose values differ, in alphabetical order.
    pub fn differing(&self, other: &EntryDigests) -> Vec<String> {
        let keys: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        keys.into_iter().filter(|key| self.0.get(*key) != other.0.get(*key)).cloned().collect()
    }
}

/// Bounds on the number of members created from a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Number of members to keep even without work.
    pub min: usize,
    pub max: usize,
}

/// Conditions under which members of a template are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Demand {
    /// One member, started once, when all that it waits for is ready.
    Once,
    /// Always one member, restarted when it fails.
    Standing,
    /// Always one member, restarted whenever it ends by itself.
    Always,
    /// One member, started as soon as a task is available to it.
    WhenNeeded,
    /// One member per available task within the bounds, named `NAME-1`, `NAME-2`, and so on.
    Scaled(Scale),
    /// No standing members: each task gets its own run. `Some(n)` allows `n` concurrent runs named
    /// `NAME-1` to `NAME-n`; `None` runs tasks one at a time under the plain name.
    PerTask(Option<usize>),
}

impl Demand {
    /// Returns true if a member that has ended this way is started again.
    pub fn restarts(self, cause: Cause) -> bool {
        let ended = match cause {
            Cause::Vanished => true,
            Cause::Ended { code } => code != Some(0) || self == Demand::Always,
            _ => false,
        };
        ended && self != Demand::Once
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Template {
    #[serde(rename = "order")]
    pub spec: LaunchSpec,
    pub demand: Demand,
}

impl Template {
    /// Returns all names that members of this template can have.
    pub fn names(&self) -> Vec<MemberName> {
        let counted = |max| (1..=max).map(|n| format!("{}-{n}", self.spec.name)).collect();
        let names = match self.demand {
            Demand::Once
            | Demand::Standing
            | Demand::Always
            | Demand::WhenNeeded
            | Demand::PerTask(None) => vec![self.spec.name.clone()],
            Demand::Scaled(Scale { max, .. }) | Demand::PerTask(Some(max)) => counted(max),
        };
        names.iter().filter_map(|name| MemberName::new(name).ok()).collect()
    }

    /// Returns true if a member of this name belongs to this template.
    pub fn makes(&self, name: &MemberName) -> bool {
        self.names().iter().any(|ours| ours.clashes_with(name.as_str()))
    }

    pub fn spec_named(&self, name: &MemberName) -> LaunchSpec {
        LaunchSpec { name: name.to_string(), ..self.spec.clone() }
    }

    pub fn is_per_task(&self) -> bool {
        matches!(self.demand, Demand::PerTask(_))
    }

    /// Returns true if its single member is there whatever the board says.
    pub fn is_single(&self) -> bool {
        matches!(self.demand, Demand::Once | Demand::Standing | Demand::Always)
    }

    /// Returns the spec of one run of `task` under `name`. A worker runs the task's command; any
    /// other program receives the task as its prompt.
    pub(crate) fn spec_for(&self, name: &MemberName, task: &Task) -> LaunchSpec {
        let chat = task.extra.scope.chat.clone();
        let spec = LaunchSpec { task: Some(task.id), chat, ..self.spec_named(name) };
        if self.takes_commands() {
            let mut env = spec.env.clone();
            env.extend(task.extra.env.clone());
            let cwd = task.extra.cwd.clone().or(spec.cwd.clone());
            let command = task.extra.run.clone();
            return LaunchSpec {
                profile: Some(SHELL.to_owned()),
                prompt: None,
                cwd,
                env,
                command,
                ..spec
            };
        }
        let task_text = format!("Task #{}: {}\n\n{}", task.id, task.subject, task.description);
        let parts: Vec<&str> =
            spec.prompt.as_deref().into_iter().chain([task_text.trim_end()]).collect();
        LaunchSpec { prompt: Some(parts.join("\n\n")), ..spec }
    }

    /// Returns a representative spec, used to check whether the template's members can be started.
    pub fn sample(&self) -> LaunchSpec {
        let mut task = Task::new(TaskId(0), "any", "");
        task.extra.run.push("true".to_owned());
        match (self.is_per_task(), self.names().first()) {
            (true, Some(name)) => self.spec_for(name, &task),
            (true | false, _) => self.spec.clone(),
        }
    }

    /// Returns the runs to start now: at most one per name that is not `busy`, for tasks that can
    /// start and are not `taken`. Tasks assigned to one of the names come first; within each group
    /// tasks keep claim order.
    pub fn dispatch(
        &self,
        board: &Board,
        busy: &BTreeSet<MemberName>,
        taken: &BTreeSet<TaskId>,
    ) -> Vec<LaunchSpec> {
        let is_busy =
            |name: &MemberName| busy.iter().any(|other| other.clashes_with(name.as_str()));
        let mut free: Vec<MemberName> =
            self.names().into_iter().filter(|name| !is_busy(name)).collect();
        if free.is_empty() {
            return Vec::new();
        }
        let mut open = board.pending();
        open.retain(|task| !taken.contains(&task.id) && board.is_free(task));
        let names = self.names();
        let mine = open.iter().filter(|task| task.owner.is_some() && self.is_for_it(&names, task));
        let anybodys =
            open.iter().filter(|task| task.owner.is_none() && self.is_for_it(&names, task));
        let (mut specs, mut chosen) = (Vec::new(), Vec::<&Task>::new());
        for task in mine.chain(anybodys) {
            let suits = |name: &MemberName| task.owner.is_none() || task.is_owned_by(name);
            let Some(place) = free.iter().position(suits) else { continue };
            if !chosen.iter().any(|other| board::share_files(other, task)) {
                specs.push(self.spec_for(&free.remove(place), task));
                chosen.push(task);
            }
        }
        specs
    }

    /// Returns true if members run the commands of tasks. Only phalanx's worker does, and it does
    /// nothing else.
    pub fn takes_commands(&self) -> bool {
        self.spec.command.is_empty() && self.spec.profile.as_deref().unwrap_or(WORKER) == WORKER
    }

    /// Returns true if a member of this template, which can have these `names`, may take the task
    /// once it is pending.
    pub fn is_for_it(&self, names: &[MemberName], task: &Task) -> bool {
        let role = self.spec.role.as_deref();
        // An on-demand member with a role is not started for tasks that any role may take.
        let waits_for_role = self.demand == Demand::WhenNeeded && role.is_some();
        let suits = task.fits(role) && (task.extra.role.is_some() || !waits_for_role);
        let able = !self.is_per_task() || self.takes_commands() != task.extra.run.is_empty();
        let ours = names.iter().any(|name| task.is_owned_by(name));
        able && (ours || task.owner.is_none() && suits)
    }

    /// Returns the wanted number of members: one per task in progress or available to them, clamped
    /// to the bounds.
    pub fn wanted(&self, board: &Board) -> usize {
        let (min, max) = match self.demand {
            Demand::Once | Demand::Standing | Demand::Always => (1, 1),
            Demand::WhenNeeded => (0, 1),
            Demand::Scaled(Scale { min, max }) => (min, max),
            Demand::PerTask(max) => (0, max.unwrap_or(1)),
        };
        let names = self.names();
        let counts = |task: &&Task| match task.state {
            TaskState::InProgress | TaskState::Stopping | TaskState::Stale => {
                names.iter().any(|name| task.is_owned_by(name))
            }
            TaskState::Pending => self.is_for_it(&names, task) && board.is_free(task),
            TaskState::Blocked
            | TaskState::InReview
            | TaskState::Completed
            | TaskState::Failed
            | TaskState::Cancelled => false,
        };
        board.work().filter(counts).count().clamp(min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::TaskId;

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
        let spec = LaunchSpec {
            name: "dev".to_owned(),
            role: Some("coder".to_owned()),
            ..LaunchSpec::default()
        };
        Template { spec, demand }
    }

    #[test]
    fn wanted_members_follow_available_work_within_bounds() {
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
            (
                &[
                    (Completed, Some("dev-1"), None),
                    (Failed, None, None),
                    (Pending, Some("dev-1"), None),
                ],
                1,
            ),
        ];
        for (states, expected) in table {
            assert_eq!(five.wanted(&board(states)), expected, "{states:?}");
        }
        let when_needed = template(Demand::WhenNeeded);
        assert_eq!(when_needed.wanted(&board(&[])), 0);
        assert_eq!(
            when_needed.wanted(&board(&[(Pending, None, None); 3])),
            0,
            "anybody can do these"
        );
        assert_eq!(when_needed.wanted(&board(&[(Pending, None, Some("coder")); 3])), 1);
        assert_eq!(when_needed.wanted(&board(&[(Pending, Some("dev"), None)])), 1);
        assert_eq!(template(Demand::Standing).wanted(&board(&[])), 1);
    }

    #[test]
    fn scaled_members_get_numbered_names() {
        let names = |template: Template| {
            template.names().iter().map(MemberName::to_string).collect::<Vec<_>>()
        };
        assert_eq!(names(template(Demand::WhenNeeded)), ["dev"]);
        let three = template(Demand::Scaled(Scale { min: 0, max: 3 }));
        assert_eq!(names(three), ["dev-1", "dev-2", "dev-3"]);
    }

    fn dispatched(
        template: &Template,
        board: &Board,
        busy: &[&str],
        taken: &[u64],
    ) -> Vec<(String, u64)> {
        let busy = busy.iter().map(|name| MemberName::new(name).expect("name")).collect();
        let taken = taken.iter().copied().map(TaskId).collect();
        let specs = template.dispatch(board, &busy, &taken);
        specs.into_iter().map(|spec| (spec.name, spec.task.expect("a task").0)).collect()
    }

    #[test]
    fn tasks_go_to_free_names_and_assigned_tasks_go_first() {
        use TaskState::{Completed, Failed, InProgress, Pending};
        let mut dev = template(Demand::PerTask(Some(2)));
        dev.spec.profile = Some("claude".to_owned());
        let given = |names: &[(&str, u64)]| {
            names.iter().map(|(name, id)| ((*name).to_owned(), *id)).collect::<Vec<_>>()
        };
        let mut all = board(&[(Pending, None, None); 4]);
        assert_eq!(dispatched(&dev, &all, &[], &[]), given(&[("dev-1", 1), ("dev-2", 2)]));
        assert_eq!(dispatched(&dev, &all, &["DEV-1"], &[1]), given(&[("dev-2", 2)]));
        assert_eq!(dispatched(&dev, &all, &["dev-1", "dev-2"], &[]), []);
        all.tasks.get_mut(&TaskId(4)).expect("a task").owner = Some("dev-1".to_owned());
        assert_eq!(dispatched(&dev, &all, &[], &[]), given(&[("dev-1", 4), ("dev-2", 1)]));
        assert_eq!(
            dispatched(&dev, &all, &["dev-1"], &[]),
            given(&[("dev-2", 1)]),
            "4 waits for dev-1"
        );
        for id in [1, 2] {
            all.tasks.get_mut(&TaskId(id)).expect("a task").extra.files = vec!["src/**".to_owned()];
        }
        assert_eq!(dispatched(&dev, &all, &["dev-1"], &[]), given(&[("dev-2", 1)]));
        all.tasks.get_mut(&TaskId(4)).expect("a task").state = Completed;
        assert_eq!(
            dispatched(&dev, &all, &[], &[]),
            given(&[("dev-1", 1), ("dev-2", 3)]),
            "1 and 2 touch the same"
        );
        let others = [
            (Pending, Some("ann"), None),
            (Pending, None, Some("tester")),
            (InProgress, Some("dev-1"), None),
            (Failed, None, None),
        ];
        assert_eq!(dispatched(&dev, &board(&others), &[], &[]), []);
        let alone = Template { demand: Demand::PerTask(None), ..dev };
        assert_eq!(
            dispatched(&alone, &board(&[(Pending, None, None); 4]), &[], &[]),
            given(&[("dev", 1)])
        );
    }

    #[test]
    fn worker_runs_task_command_and_agent_gets_task_as_prompt() {
        let mut all = board(&[(TaskState::Pending, None, None); 2]);
        let task = all.tasks.get_mut(&TaskId(2)).expect("a task");
        task.extra.run = vec!["make".to_owned()];
        task.extra.cwd = Some("/sub".to_owned());
        task.extra.env = [("A".to_owned(), "b".to_owned())].into();
        let mut one = template(Demand::PerTask(Some(5)));
        (one.spec.prompt, one.spec.cwd) = (Some("Be short.".to_owned()), Some("/".to_owned()));
        let run = &one.dispatch(&all, &BTreeSet::new(), &BTreeSet::new())[..];
        let [run] = run else { panic!("one spec: {run:?}") };
        assert_eq!(
            (run.task, run.profile.as_deref(), &run.prompt),
            (Some(TaskId(2)), Some("shell"), &None)
        );
        assert_eq!(
            (run.cwd.as_deref(), run.command.as_slice()),
            (Some("/sub"), &["make".to_owned()][..])
        );
        assert_eq!(run.env, [("A".to_owned(), "b".to_owned())]);
        one.spec.profile = Some("claude".to_owned());
        let run = &one.dispatch(&all, &BTreeSet::new(), &BTreeSet::new())[..];
        let [run] = run else { panic!("one spec: {run:?}") };
        assert_eq!((run.task, run.profile.as_deref()), (Some(TaskId(1)), Some("claude")));
        assert_eq!(run.prompt.as_deref(), Some("Be short.\n\nTask #1: s\n\nd"));
        assert_eq!((one.wanted(&all), run.cwd.as_deref()), (1, Some("/")));
    }
}
