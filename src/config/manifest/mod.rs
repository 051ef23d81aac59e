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
mod member;
mod roles;
mod schema;
mod spec;
mod tables;
mod task;
mod template;

use std::collections::BTreeSet;

use super::{ConfigError, Faults, LineCounter, Place, parse};
use model::board::task_definition::TaskDefinition;
use model::team::host::HostConfig;
pub use schema::{TEAM_KEYS, TeamKey};
pub use spec::{Manifest, MemberSpec, TeamMode};
use tables::{Form, ManifestTable};
pub use template::{ManifestTemplate, TemplateValues, builtin_template, builtin_templates};

impl Manifest {
    /// Parses a manifest of a user that has no other hosts.
    ///
    /// # Errors
    /// As [`Manifest::parse_with_hosts`].
    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Result<Manifest, ConfigError> {
        Manifest::parse_with_hosts(text, &[])
    }

    /// Parses a manifest whose members may name its own hosts and those in `known`.
    ///
    /// # Errors
    /// A fault with its position: the first invalid key or value, or else the first contradiction
    /// within an entry, or else the first fault between entries (unknown references, cycles,
    /// duplicate names, tasks that no member can do).
    pub fn parse_with_hosts(text: &str, known: &[HostConfig]) -> Result<Manifest, ConfigError> {
        Manifest::parse_as(Form::Manifest, text, known)
    }

    /// Parses the settings of a team: a manifest without a name and without tasks.
    ///
    /// # Errors
    /// As [`Manifest::parse_with_hosts`].
    pub fn parse_settings(text: &str, known: &[HostConfig]) -> Result<Manifest, ConfigError> {
        Manifest::parse_as(Form::Settings, text, known)
    }

    /// Parses the tasks of a manifest, for a team that exists: the other tables may be missing, and
    /// any member may be an owner.
    ///
    /// # Errors
    /// As [`Manifest::parse_with_hosts`].
    pub(crate) fn parse_tasks(text: &str) -> Result<Vec<TaskDefinition>, ConfigError> {
        let mut tasks = Manifest::read(Form::Tasks, text)?.tasks;
        let mut faults = Faults::new(text);
        check::check_tasks(&tasks, &mut faults);
        let mut lines = LineCounter::new(text);
        for (at, task) in tasks.iter_mut().enumerate() {
            let key = faults.span_of(&[Place::Key("task"), Place::Index(at), Place::Key("key")]);
            task.line = lines.line_at(key.start);
        }
        faults.into_result()?;
        remove_repeated(&mut tasks);
        Ok(tasks)
    }

    fn read(form: Form, text: &str) -> Result<Manifest, ConfigError> {
        parse::<ManifestTable>(form.document(), text)?.into_manifest(form, text)
    }

    fn parse_as(form: Form, text: &str, known: &[HostConfig]) -> Result<Manifest, ConfigError> {
        let mut manifest = Manifest::read(form, text)?;
        let mut faults = Faults::new(text);
        check::check_hosts(&manifest, known, &mut faults);
        faults.into_result()?;
        manifest.check(form, text)?;
        remove_repeated(&mut manifest.tasks);
        Ok(manifest)
    }

    /// Checks the entries against each other, except for hosts.
    fn check(&self, form: Form, text: &str) -> Result<(), ConfigError> {
        let mut faults = Faults::new(text);
        check::check(self, form, &mut faults);
        faults.into_result()?;
        let mut faults = Faults::new(text);
        doable::check(self, &mut faults);
        faults.into_result()
    }
}

/// Removes repeated keys from `after`. The checks need them: a fault is at the index of its key.
fn remove_repeated(tasks: &mut [TaskDefinition]) {
    for task in tasks {
        let mut seen = BTreeSet::new();
        task.after.retain(|key| seen.insert(key.clone()));
    }
}

#[cfg(test)]
mod tests;
