//! What a manifest says.

use std::collections::BTreeSet;

use super::difference::{Difference, MemberStep, change, new_task};
use crate::starting::settings;
use model::board::task_definition::TaskDefinition;
use model::digest;
use model::id::MemberName;
use model::members::launch::{LaunchSpec, Template};
use model::team::settings::{AppliedManifest, Settings};

/// What a manifest says.
#[derive(Debug, Clone)]
pub struct WantedTeam {
    /// The name of the manifest in messages.
    pub source: String,
    /// With the templates of the members that the lead starts.
    pub settings: Settings,
    /// The members to start at once.
    pub specs: Vec<LaunchSpec>,
    pub tasks: Vec<TaskDefinition>,
}

impl WantedTeam {
    /// Returns the settings for a new team.
    pub fn settings_of_new(&self) -> Settings {
        Settings { manifest: Some(self.applied()), ..self.settings.clone() }
    }

    pub(super) fn applied(&self) -> AppliedManifest {
        let whole = format!("{:?}{:?}{:?}", self.settings, self.specs, self.tasks);
        AppliedManifest {
            digest: digest::hash(&[whole.as_bytes()]),
            tasks: self.tasks.iter().map(|task| task.key.clone()).collect(),
        }
    }

    /// Returns the changes that make the team of nothing.
    pub fn of_nothing(&self) -> Difference {
        let starts =
            self.specs.iter().map(|spec| change(&spec.name, MemberStep::Start, Vec::new()));
        let offered = |template: &&Template| {
            !template.names().iter().any(|name| self.spec(name.as_str()).is_some())
        };
        let offers = self.settings.templates.iter().filter(offered);
        let offers = offers.map(|of| change(&of.spec.name, MemberStep::Offer, Vec::new()));
        let tasks = self.tasks.iter().map(|task| new_task(task.key.clone(), task.subject.clone()));
        Difference {
            members: starts.chain(offers).collect(),
            tasks: tasks.collect(),
            ..Difference::default()
        }
    }

    /// Returns the spec of a member that is started at once.
    pub(super) fn spec(&self, name: &str) -> Option<&LaunchSpec> {
        self.specs.iter().find(|spec| spec.name.eq_ignore_ascii_case(name))
    }

    /// Returns true if the lead starts members of this name by the number that is needed.
    pub(super) fn is_pooled(&self, name: &str) -> bool {
        let template = MemberName::existing(name).ok().and_then(|name| self.template_of(&name));
        template.is_some_and(|template| !template.is_single())
    }

    pub(super) fn template_of(&self, name: &MemberName) -> Option<&Template> {
        self.settings.templates.iter().find(|template| template.makes(name))
    }

    /// Returns the spec that a member of this name is to be started from.
    pub(super) fn spec_of(&self, name: &MemberName) -> Option<LaunchSpec> {
        let direct = self.spec(name.as_str()).cloned();
        direct.or_else(|| Some(self.template_of(name)?.spec_named(name)))
    }

    /// Returns the settings of a team that has `current`, with what the manifest does not decide
    /// as it is.
    pub(super) fn settings_over(&self, current: &Settings, gone: &BTreeSet<String>) -> Settings {
        let is_ours =
            |name: &MemberName| self.spec_of(name).is_some() || gone.contains(name.as_str());
        let mut new = settings::over(current, self.settings.clone(), is_ours);
        if let Some(socket) = &self.settings.home.tmux_socket {
            new.home.tmux_socket = Some(socket.clone());
        }
        let by_hand = current.templates.iter().filter(|of| of.spec.entry.is_none());
        new.templates.extend(by_hand.cloned());
        new
    }
}
