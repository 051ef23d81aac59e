//! The TOML manifest of `phalanx up`: a team, its members and its tasks, read from text and checked as a
//! whole. Knows no files (the caller reads the text and puts the file's name in front of an error), no
//! profiles beyond their names, and no task ids.
//!
//! Paths (`cwd`, `prompt_file`) are kept as written. A relative one is meant relative to the working
//! directory of whoever runs `up`, not to the manifest's own directory: one manifest can serve several
//! checkouts, and `phalanx up fixtures/teams/checks.toml` with `cwd = "."` works on the directory one stands
//! in.

mod check;
mod doable;
mod followup;
mod roles;
mod rules;
mod sections;
pub(crate) mod settings;

use std::collections::BTreeMap;

use crate::model::followup::Followup;
use crate::model::hook::Hook;
use crate::model::limits::Limits;
use crate::model::mode::Mode;
use crate::model::order::Scale;
use crate::model::placement::Layout;
use crate::model::role::{Roles, Tools};
use crate::model::rules::{RuleSet, TeamRules};
use crate::model::settings::{BackendChoice, OnHang, Privacy};
use crate::model::sheet::{Faults, SheetError};
use crate::model::worktree;
use sections::Form;

/// A whole manifest, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) team: TeamSection,
    pub(crate) env: EnvSection,
    /// `[rules]`, for the team and for roles.
    pub(crate) rules: TeamRules,
    /// `[role.NAME]`, and the tools of `[defaults]`.
    pub(crate) roles: Roles,
    /// What members inherited. Already applied to [`MemberSpec`]; kept for members that join later.
    pub(crate) defaults: Defaults,
    pub(crate) worktree: worktree::Rules,
    /// In the order of the file.
    pub(crate) hooks: Vec<Hook>,
    /// In the order of the file. Names are unique without regard to case.
    pub(crate) members: Vec<MemberSpec>,
    /// In the order of the file. Keys are unique, and following `after` never leads back.
    pub(crate) tasks: Vec<TaskSpec>,
}

impl Manifest {
    /// Reads a manifest. Of several faults the first in the file is reported; faults between entries
    /// (references, cycles, double names, tasks that no member can do) only once each entry is right in itself.
    pub(crate) fn parse(text: &str) -> Result<Manifest, SheetError> {
        Manifest::parse_as(Form::Manifest, text)
    }

    /// Reads settings of a team: a manifest without a name and without tasks.
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
    /// Matches the rule for names that phalanx creates (protocol.md section 1).
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) mode: TeamMode,
    pub(crate) backend: BackendChoice,
    pub(crate) layout: Layout,
    pub(crate) finish: Finish,
    /// How many teammates the team may have, the lead not counted. At least 1.
    pub(crate) max_members: usize,
    /// How many seconds what members ask can be answered. At least 1.
    pub(crate) answer_within: u64,
    /// After how many seconds a member that owes an answer counts as unresponsive. At least 1.
    pub(crate) unresponsive_after: u64,
    /// The action for a member that hangs, and after how many seconds without activity it does. At least 1.
    pub(crate) on_hang: OnHang,
    pub(crate) hang_after: u64,
    /// How who owes an answer or progress is reminded; none: not at all.
    pub(crate) followup: Option<Followup>,
    /// The program that is told of requests, and its arguments; empty for none.
    pub(crate) notify: Vec<String>,
    /// How deep teams may be nested.
    pub(crate) max_depth: usize,
    /// Readers of a member's output.
    pub(crate) privacy: Privacy,
    /// How many tasks of one member may be open at once. Each at least 1.
    pub(crate) limits: Limits,
}

/// `mode = …` of the team: who does its tasks (seed 002).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TeamMode {
    /// Members that stand, but those that are marked as task-only.
    #[default]
    Teammate,
    /// A run of its own for each task; nobody stands.
    Task,
    /// As `Teammate` where there is a backend for standing members, else as `Task`.
    Auto,
}

/// `finish = …`: when `up` is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    /// When no task is left to do.
    TasksDone,
    /// When somebody says so.
    Manual,
}

/// `[env]`: which variables of the caller's environment reach the members. Each entry is a variable's name,
/// or the beginning of one followed by `*`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct EnvSection {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

/// `[defaults]`: what a member gets when it does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Defaults {
    pub(crate) profile: String,
    pub(crate) cwd: String,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<Mode>,
    pub(crate) env: BTreeMap<String, String>,
}

/// One `[[member]]`, with the defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberSpec {
    pub(crate) name: String,
    pub(crate) role: Option<String>,
    /// Its own; else `shell` when it has a `run`; else the default. That a profile of this name exists is not
    /// known here.
    pub(crate) profile: String,
    pub(crate) model: Option<String>,
    pub(crate) mode: Option<Mode>,
    /// Never together with `prompt_file`.
    pub(crate) prompt: Option<String>,
    pub(crate) prompt_file: Option<String>,
    pub(crate) cwd: String,
    /// It works in a git worktree of its own.
    pub(crate) worktree: Option<worktree::Wish>,
    /// Its own command line: program and arguments, at least the program.
    pub(crate) run: Option<Vec<String>>,
    /// The variables of `[defaults.env]`, overridden by its own.
    pub(crate) env: BTreeMap<String, String>,
    /// Must it have its plan approved before it works?
    pub(crate) plan: bool,
    /// It is started when there is a task for it, and not before.
    pub(crate) when_needed: bool,
    /// It stands for so many of its kind, `NAME-1` and on.
    pub(crate) scale: Option<Scale>,
    /// It is started again when it fails.
    pub(crate) restart: bool,
    /// It is never there: each task is a run of its own.
    pub(crate) task_only: bool,
    /// On top of the team's and its role's.
    pub(crate) rules: RuleSet,
    /// Its own; its role and the team may say more.
    pub(crate) tools: Tools,
}

impl MemberSpec {
    /// Whether it is never there, by its own word or by its role's.
    pub(crate) fn is_task_only(&self, roles: &Roles) -> bool {
        let role = self.role.as_ref().and_then(|role| roles.named.get(role));
        self.task_only || role.is_some_and(|role| role.task_only)
    }
}

/// One `[[task]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskSpec {
    /// Its name inside this manifest.
    pub(crate) key: String,
    pub(crate) subject: String,
    pub(crate) description: Option<String>,
    pub(crate) active_form: Option<String>,
    /// What a worker runs: program and arguments, at least the program.
    pub(crate) run: Option<Vec<String>>,
    /// Keys of tasks that must be completed before, each once.
    pub(crate) after: Vec<String>,
    /// Patterns of the files it will touch.
    pub(crate) files: Vec<String>,
    /// The name of a member, spelled as there.
    pub(crate) owner: Option<String>,
    /// Only members of this role take it.
    pub(crate) role: Option<String>,
    pub(crate) priority: Option<i64>,
    /// Else the working directory of the member that takes it.
    pub(crate) cwd: Option<String>,
    /// On top of the member's own.
    pub(crate) env: BTreeMap<String, String>,
    /// The team's final report repeats what the task printed.
    pub(crate) show_output: bool,
}

#[cfg(test)]
mod tests;
