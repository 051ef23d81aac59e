//! The TOML manifest of `phalanx up`: a team, its members and its tasks. It is parsed from text,
//! without access to files, profiles or the task board.
//!
//! Paths (`cwd`, `prompt_file`) are kept as written. A relative path is relative to the working
//! directory of `up`, not to the manifest's directory, so that one manifest can serve several
//! checkouts: `phalanx up fixtures/teams/checks.toml` with `cwd = "."` works on the current
//! directory.

mod check;
mod doable;
mod followup;
mod roles;
mod rules;
mod sections;
pub(crate) mod settings;

use std::collections::BTreeMap;

use crate::model::followup::ReminderPolicy;
use crate::model::hook::Hook;
use crate::model::launch::Scale;
use crate::model::limits::Limits;
use crate::model::mode::Mode;
use crate::model::placement::Layout;
use crate::model::role::{Roles, Tools};
use crate::model::rules::{RuleSet, TeamRules};
use crate::model::settings::{BackendChoice, OnHang, Privacy};
use crate::model::sheet::{Faults, SheetError};
use crate::model::worktree;
use sections::Form;

/// A valid manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) team: TeamSection,
    pub(crate) env: EnvSection,
    /// `[rules]`, for the team and for roles.
    pub(crate) rules: TeamRules,
    /// `[role.NAME]`, and the tools of `[defaults]`.
    pub(crate) roles: Roles,
    /// The values that members inherit. Already applied to [`MemberSpec`]; kept for members that
    /// join later.
    pub(crate) defaults: Defaults,
    pub(crate) worktree: worktree::Rules,
    /// In the order of the file.
    pub(crate) hooks: Vec<Hook>,
    /// In the order of the file. Names are unique, ignoring case.
    pub(crate) members: Vec<MemberSpec>,
    /// In the order of the file. Keys are unique, and `after` forms no cycle.
    pub(crate) tasks: Vec<TaskSpec>,
}

impl Manifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// The first fault in the file. Faults between entries (unknown references, cycles, duplicate
    /// names, tasks that no member can do) are reported only if each entry is valid by itself.
    pub(crate) fn parse(text: &str) -> Result<Manifest, SheetError> {
        Manifest::parse_as(Form::Manifest, text)
    }

    /// Parses the settings of a team: a manifest without a name and without tasks.
    ///
    /// # Errors
    /// As [`Manifest::parse`].
    pub(crate) fn parse_settings(text: &str) -> Result<Manifest, SheetError> {
        Manifest::parse_as(Form::Settings, text)
    }

    fn parse_as(form: Form, text: &str) -> Result<Manifest, SheetError> {
        let table =
            toml::de::DeTable::parse(text).map_err(|error| SheetError::syntax(text, &error))?;
        let mut faults = Faults::default();
        let draft = sections::read(form, table.get_ref(), &mut faults);
        faults.into_result(text)?;
        let mut faults = Faults::default();
        check::check(&draft, &mut faults);
        faults.into_result(text)?;
        let mut faults = Faults::default();
        doable::check(&draft, &mut faults);
        faults.into_result(text)?;
        Ok(draft.into_manifest())
    }
}

/// `[team]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TeamSection {
    /// A name that phalanx may create ([`crate::model::sheet::check_name`]).
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) mode: TeamMode,
    pub(crate) backend: BackendChoice,
    pub(crate) layout: Layout,
    /// The condition under which `up` ends.
    pub(crate) finish: Finish,
    /// Maximum number of teammates, without the lead. At least 1.
    pub(crate) max_members: usize,
    /// Seconds in which a member's request can be answered. At least 1.
    pub(crate) answer_within: u64,
    /// Seconds until a member that has not started an assigned task counts as unresponsive. At
    /// least 1.
    pub(crate) unresponsive_after: u64,
    /// The action for a member that hangs.
    pub(crate) on_hang: OnHang,
    /// Seconds without activity until a member with a task in progress counts as hanging. At least
    /// 1.
    pub(crate) hang_after: u64,
    /// Reminders of overdue answers and of tasks without progress; `None` for no reminders.
    pub(crate) followup: Option<ReminderPolicy>,
    /// Program and arguments to run for each request that waits for a person; empty for none.
    pub(crate) notify: Vec<String>,
    /// Maximum nesting depth of teams. At least 1.
    pub(crate) max_depth: usize,
    /// Access of teammates to a member's output.
    pub(crate) privacy: Privacy,
    /// Limits on the open tasks of one member. Each at least 1.
    pub(crate) limits: Limits,
}

/// `mode = …` of the team: the kind of members that do its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TeamMode {
    /// Standing members, except those that are marked as task-only.
    #[default]
    Teammate,
    /// A separate run for each task; there are no standing members.
    Task,
    /// `Teammate` if there is a backend for standing members, else `Task`.
    Auto,
}

/// `finish = …`: the condition under which `up` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// No task is left to do.
    TasksDone,
    /// The user ends the team.
    Manual,
}

/// `[env]`: the variables of the caller's environment that members get. Each entry is a variable's
/// name, or a prefix followed by `*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EnvSection {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

/// `[defaults]`: values for members that do not set them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Defaults {
    pub(crate) profile: String,
    pub(crate) cwd: String,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<Mode>,
    pub(crate) env: BTreeMap<String, String>,
}

/// One `[[member]]`, with the defaults applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberSpec {
    pub(crate) name: String,
    pub(crate) role: Option<String>,
    /// The member's own profile, else `shell` if it has a `run`, else the default. Its existence is
    /// not checked here.
    pub(crate) profile: String,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<Mode>,
    /// Never set together with `prompt_file`.
    pub(crate) prompt: Option<String>,
    pub(crate) prompt_file: Option<String>,
    pub(crate) cwd: String,
    /// The git worktree to create for it; `None` for none.
    pub(crate) worktree: Option<worktree::WorktreeRequest>,
    /// The member's command line: program and arguments, at least the program.
    pub(crate) run: Option<Vec<String>>,
    /// The variables of `[defaults.env]`, overridden by the member's own.
    pub(crate) env: BTreeMap<String, String>,
    /// Its plan must be approved before it works.
    pub(crate) plan: bool,
    /// It is started only when there is a task for it.
    pub(crate) when_needed: bool,
    /// It stands for several members, named `NAME-1`, `NAME-2` and so on.
    pub(crate) scale: Option<Scale>,
    /// It is restarted when it fails.
    pub(crate) restart: bool,
    /// It is never a standing member: each task is a separate run.
    pub(crate) task_only: bool,
    /// The member's own rules, in addition to those of the team and of its role.
    pub(crate) rules: RuleSet,
    /// The member's own restrictions; its role and the team may add more.
    pub(crate) tools: Tools,
}

impl MemberSpec {
    /// Returns true if the member or its role is marked as task-only.
    pub(crate) fn is_task_only(&self, roles: &Roles) -> bool {
        let role = self.role.as_ref().and_then(|role| roles.named.get(role));
        self.task_only || role.is_some_and(|role| role.task_only)
    }
}

/// One `[[task]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskSpec {
    /// Its name within this manifest.
    pub(crate) key: String,
    pub(crate) subject: String,
    pub(crate) description: Option<String>,
    pub(crate) active_form: Option<String>,
    /// The command for a worker: program and arguments, at least the program.
    pub(crate) run: Option<Vec<String>>,
    /// Keys of tasks that must be completed before this one, without duplicates.
    pub(crate) after: Vec<String>,
    /// Patterns of the files that it may touch.
    pub(crate) files: Vec<String>,
    /// The name of a member, in the same case.
    pub(crate) owner: Option<String>,
    /// Only members with this role can claim it.
    pub(crate) role: Option<String>,
    pub(crate) priority: Option<i64>,
    /// `None` for the working directory of the member that runs it.
    pub(crate) cwd: Option<String>,
    /// Additions to the member's own variables.
    pub(crate) env: BTreeMap<String, String>,
    /// The team's final report includes the output of the task.
    pub(crate) show_output: bool,
}

#[cfg(test)]
mod tests;
