//! The TOML manifest of `phalanx up`: a team, its members and its tasks. It is parsed from text,
//! without access to files, profiles or the task board.
//!
//! Paths (`cwd`, `prompt_file`) are kept as written. A relative path is relative to the working
//! directory of `up`, not to the manifest's directory, so that one manifest can serve several
//! checkouts: `phalanx up fixtures/teams/checks.toml` with `cwd = "."` works on the current
//! directory.

mod access;
mod builtin;
mod check;
mod doable;
mod followup;
mod form;
mod hosts;
mod member;
mod roles;
mod rules;
mod schema;
mod spec;
mod tables;
mod task;
mod template;
mod worktree;

use super::{ConfigError, Faults, LineCounter, parse};
use crate::model::host::HostConfig;
use crate::model::settings::Settings;
use crate::model::task_definition::TaskDefinition;
pub(crate) use builtin::{builtin_template, builtin_templates};
use form::Form;
pub(crate) use schema::{TEAM_KEYS, TeamKey};
pub(crate) use spec::{MemberSpec, TeamMode};
use tables::{LocatedManifest, ManifestTable};
use task::LocatedTask;
pub(crate) use template::{ManifestTemplate, TemplateValues};

/// A valid manifest.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Manifest {
    /// A name that phalanx may create ([`crate::model::name::check_name`]).
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    /// Address of the shared store to keep the team in; `None` means files.
    pub(crate) store: Option<String>,
    pub(crate) mode: TeamMode,
    /// All settings of the team except for its templates, with the rules of its members.
    pub(crate) settings: Settings,
    /// In the order of the file. Names are unique, ignoring case.
    pub(crate) members: Vec<MemberSpec>,
    /// In the order of the file. Keys are unique, and `after` forms no cycle.
    pub(crate) tasks: Vec<TaskDefinition>,
}

impl Manifest {
    /// Parses a manifest of a user that has no other hosts.
    ///
    /// # Errors
    /// As [`Manifest::parse_with_hosts`].
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn parse(text: &str) -> Result<Manifest, ConfigError> {
        Manifest::parse_with_hosts(text, &[])
    }

    /// Parses a manifest whose members may name its own hosts and those in `known`.
    ///
    /// # Errors
    /// A fault with its position: the first invalid key or value, or else the first contradiction
    /// within an entry, or else the first fault between entries (unknown references, cycles,
    /// duplicate names, tasks that no member can do).
    pub(crate) fn parse_with_hosts(
        text: &str,
        known: &[HostConfig],
    ) -> Result<Manifest, ConfigError> {
        Manifest::parse_as(Form::Manifest, text, known)
    }

    /// Parses the settings of a team: a manifest without a name and without tasks.
    ///
    /// # Errors
    /// As [`Manifest::parse_with_hosts`].
    pub(crate) fn parse_settings(
        text: &str,
        known: &[HostConfig],
    ) -> Result<Manifest, ConfigError> {
        Manifest::parse_as(Form::Settings, text, known)
    }

    /// Parses the tasks of a manifest, for a team that exists: the other tables may be missing, and
    /// any member may be an owner.
    ///
    /// # Errors
    /// As [`Manifest::parse_with_hosts`].
    pub(crate) fn parse_tasks(text: &str) -> Result<Vec<TaskDefinition>, ConfigError> {
        let located = Manifest::locate(Form::Tasks, text)?;
        let mut faults = Faults::of(text);
        check::check_tasks(&located.tasks, &mut faults);
        faults.into_result()?;
        let mut lines = LineCounter::new(text);
        let tasks = located.tasks.into_iter();
        let line =
            |one: LocatedTask| TaskDefinition { line: lines.line_at(one.key.start), ..one.task };
        Ok(tasks.map(line).collect())
    }

    fn locate(form: Form, text: &str) -> Result<LocatedManifest, ConfigError> {
        let table: ManifestTable = parse(form.document(), text)?;
        let mut faults = Faults::of(text);
        let located = table.locate(form, &mut faults);
        faults.into_result()?;
        Ok(located)
    }

    fn parse_as(form: Form, text: &str, known: &[HostConfig]) -> Result<Manifest, ConfigError> {
        let located = Manifest::locate(form, text)?;
        let mut faults = Faults::of(text);
        check::check_hosts(&located, known, &mut faults);
        faults.into_result()?;
        for check in [check::check, doable::check] {
            let mut faults = Faults::of(text);
            check(&located, &mut faults);
            faults.into_result()?;
        }
        Ok(Manifest {
            name: located.name,
            description: located.description,
            store: located.store,
            mode: located.mode,
            settings: located.settings,
            members: located.members.into_iter().map(|member| member.spec).collect(),
            tasks: located.tasks.into_iter().map(|task| task.task).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
