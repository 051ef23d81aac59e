//! A valid manifest and its entries.

use schemars::JsonSchema;
use serde::Deserialize;

use model::board::task_definition::TaskDefinition;
use model::board::waiting::Ability;
use model::members::launch::{Demand, LaunchSpec, Scale, WORKER, ability};
use model::team::role::Roles;
use model::team::settings::Settings;

/// A valid manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// A name that phalanx may create ([`model::name::check_name`]).
    pub name: String,
    pub description: Option<String>,
    /// Address of the shared store to keep the team in; `None` means files.
    pub store: Option<String>,
    pub mode: TeamMode,
    /// All settings of the team except for its templates, with the rules of its members.
    pub settings: Settings,
    /// In the order of the file. Names are unique, ignoring case.
    pub members: Vec<MemberSpec>,
    /// In the order of the file. Keys are unique, and `after` forms no cycle.
    pub tasks: Vec<TaskDefinition>,
}

/// The kind of members that do the tasks of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TeamMode {
    /// Members are standing processes, except those that are marked as task-only.
    #[default]
    Teammate,
    /// Each task is a separate run, and no member is a standing process.
    Task,
    /// `teammate` if the backend works, otherwise `task`.
    Auto,
}

/// One `[[member]]`, with the defaults applied.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberSpec {
    /// Always with a profile: the member's own, else `shell` if it has a `run`, else the default.
    /// Its directory is as written.
    pub launch: LaunchSpec,
    /// Never set together with the prompt of `launch`.
    pub prompt_file: Option<String>,
    /// It is started only when there is a task for it.
    pub when_needed: bool,
    /// It stands for several members, named `NAME-1`, `NAME-2` and so on.
    pub scale: Option<Scale>,
    /// The condition on which it is restarted: `Standing` or `Always`.
    pub restart: Option<Demand>,
    /// It is never a standing member: each task is a separate run.
    pub task_only: bool,
}

impl MemberSpec {
    /// Returns the names of all members that it stands for.
    pub(crate) fn instance_names(&self) -> Vec<String> {
        match self.scale {
            Some(scale) => (1..=scale.max).map(|n| format!("{}-{n}", self.launch.name)).collect(),
            None => vec![self.launch.name.clone()],
        }
    }

    /// Returns true if others can wait until it is ready: it is one standing member.
    pub(super) fn can_be_awaited(&self, mode: TeamMode, roles: &Roles) -> bool {
        self.scale.is_none() && mode != TeamMode::Task && !self.is_task_only(roles)
    }

    /// Returns the kind of tasks that it can do.
    pub(super) fn ability(&self) -> Ability {
        ability(self.launch.profile.as_deref().unwrap_or(WORKER))
    }

    /// Returns true if the member or its role is marked as task-only.
    pub fn is_task_only(&self, roles: &Roles) -> bool {
        let role = self.launch.role.as_ref().and_then(|role| roles.named.get(role));
        self.task_only || role.is_some_and(|role| role.task_only)
    }
}
